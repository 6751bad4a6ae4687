defmodule Nx.Vulkan.VM do
  @moduledoc false
  # Scripts in a VM of their own, with a cache folder of their own.

  @doc "What the script prints, which must end well."
  def run!(script, cache, env \\ [], code \\ :code.get_path()) do
    validation = Application.get_env(:nx_vulkan, :validation)
    timeout = Application.get_env(:nx_vulkan, :shader_timeout)

    script = """
    Application.put_env(:nx_vulkan, :validation, #{validation})
    Application.put_env(:nx_vulkan, :shader_timeout, #{timeout})
    #{script}
    """

    paths = Enum.flat_map(code, &["-pa", to_string(&1)])
    env = [{"NX_VULKAN_CACHE", cache} | env]

    case System.cmd("elixir", paths ++ ["-e", script], stderr_to_stdout: true, env: env) do
      {printed, 0} -> printed
      {printed, status} -> raise "the script ended with status #{status}:\n#{printed}"
    end
  end
end
