defmodule Nx.Vulkan.Application do
  @moduledoc false
  use Application

  @impl true
  def start(_type, _args) do
    Nx.Vulkan.Settings.warn()

    Supervisor.start_link([Nx.Vulkan.Events, Nx.Vulkan.JitCache],
      strategy: :one_for_one,
      name: Nx.Vulkan.Supervisor
    )
  end
end
