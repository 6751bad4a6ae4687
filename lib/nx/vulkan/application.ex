defmodule Nx.Vulkan.Application do
  @moduledoc false
  use Application

  alias Nx.Vulkan.JitCache

  @impl true
  def start(_type, _args) do
    JitCache.start()
    Supervisor.start_link([Nx.Vulkan.Events], strategy: :one_for_one, name: Nx.Vulkan.Supervisor)
  end

  @impl true
  def prep_stop(state) do
    JitCache.forget()
    state
  end
end
