defmodule Mix.Tasks.Nxv do
  @shortdoc "Runs nxv, the command-line tool of nx_vulkan"
  @moduledoc """
  Runs `nxv`, the tool that the compiler of this package puts into `priv`, with the arguments.

      mix nxv devices
      mix nxv help pack

  Input, output and exit code are those of `nxv`. It looks at the packs of this package unless `--packs` or
  `$NX_VULKAN_PACKS` says otherwise.
  """
  use Mix.Task

  @impl true
  def run(args) do
    Mix.Task.run("compile")

    case status(args) do
      0 -> :ok
      status -> exit({:shutdown, status})
    end
  end

  # The tool writes to this terminal itself, so that it sees whether there is one.
  defp status(args) do
    priv = to_string(:code.priv_dir(:nx_vulkan))
    tool = Path.join(priv, if(match?({:win32, _}, :os.type()), do: "nxv.exe", else: "nxv"))
    File.exists?(tool) || Mix.raise("#{tool} is not here; run mix deps.compile nx_vulkan --force")
    packs = System.get_env("NX_VULKAN_PACKS") || Path.join(priv, "packs")

    port =
      Port.open({:spawn_executable, tool}, [
        :nouse_stdio,
        :exit_status,
        args: with_abi(args),
        env: [{~c"NX_VULKAN_PACKS", String.to_charlist(packs)}]
      ])

    receive do
      {^port, {:exit_status, status}} -> status
    end
  end

  # The contract that a new pack is built against is the one of this package.
  defp with_abi(["pack", "new" | rest] = args) do
    abi = Path.join(root(), "abi")
    given? = Enum.any?(rest, &String.starts_with?(&1, ["--abi", "--help", "-h"]))
    if given? or not File.dir?(abi), do: args, else: args ++ ["--abi", abi]
  end

  defp with_abi(args), do: args

  defp root do
    case Mix.Project.deps_paths() do
      %{nx_vulkan: path} -> path
      _ -> File.cwd!()
    end
  end
end
