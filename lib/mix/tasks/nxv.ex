defmodule Mix.Tasks.Nxv do
  @shortdoc "Runs nxv, the command-line tool of nx_vulkan"
  @moduledoc """
  Builds `nxv` with cargo, if it is not built yet, and runs it with the arguments.

      mix nxv devices
      mix nxv help pack

  Input, output and exit code are those of `nxv`. It looks at the packs of this package unless `--packs` or
  `$NX_VULKAN_PACKS` says otherwise.
  """
  use Mix.Task

  @impl true
  def run(args) do
    quietly(fn -> Mix.Task.run("compile") end)

    case status(args) do
      0 -> :ok
      status -> exit({:shutdown, status})
    end
  end

  # What Mix says of compiling would stand before what the tool prints; errors and warnings go to standard error anyway.
  defp quietly(function) do
    shell = Mix.shell()
    Mix.shell(Mix.Shell.Quiet)

    try do
      function.()
    after
      Mix.shell(shell)
    end
  end

  # The tool writes to this terminal itself, so that it sees whether there is one.
  defp status(args) do
    tool = built()
    priv = to_string(:code.priv_dir(:nx_vulkan))
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

  defp built do
    cargo =
      System.find_executable("cargo") ||
        Mix.raise("cargo was not found: install Rust from https://rustup.rs")

    args = ~w(build --release --quiet -p nx-vulkan-tool)

    case System.cmd(cargo, args,
           cd: root(),
           into: IO.stream(:stderr, :line),
           stderr_to_stdout: true
         ) do
      {_, 0} ->
        Path.join(target(), "release/nxv#{if match?({:win32, _}, :os.type()), do: ".exe"}")

      {_, status} ->
        Mix.raise("cargo #{Enum.join(args, " ")} failed with status #{status}")
    end
  end

  defp target, do: Path.expand(System.get_env("CARGO_TARGET_DIR", "target"), root())

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
