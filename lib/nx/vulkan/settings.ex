defmodule Nx.Vulkan.Settings do
  @moduledoc false
  # The keys of the application's environment. Who uses a setting checks its value.
  require Logger

  @keys ~w(device registry packs cache_dir shader_timeout measure validation timeout_ms memory kept_memory replays lazy
           node_timeout_ms fallback add_backend_on_inspect)a

  # Nearer names are likely the same one, misspelt.
  @near 0.8

  def keys, do: @keys

  @doc """
  Warns of each key that nobody reads, and of the value that nobody raises for.
  """
  def warn do
    inspects = Application.get_env(:nx_vulkan, :add_backend_on_inspect)

    if inspects not in [nil, true, false] do
      expected = "expected :add_backend_on_inspect to be a boolean"
      Logger.warning("config :nx_vulkan: #{expected}, got: #{inspect(inspects)}")
    end

    for {key, _value} <- Application.get_all_env(:nx_vulkan), key not in @keys do
      Logger.warning("config :nx_vulkan has no setting #{inspect(key)}#{hint(key)}")
    end
  end

  defp hint(key) do
    near = &String.jaro_distance(to_string(key), to_string(&1))
    known = Enum.max_by(@keys, near)
    if near.(known) > @near, do: "; did you mean #{inspect(known)}?", else: ""
  end
end
