# Verbs of nxv where an Elixir user looks for them: task, words before the arguments, what it does.
verbs = [
  {"Pack.New", ~w(pack new), "Writes a kernel pack to start from"},
  {"Pack.Compile", ~w(pack compile), "Compiles the shaders of a kernel pack, without a device"},
  {"Pack.Check", ~w(pack check), "Looks for what would make the host refuse a kernel pack"},
  {"Pack.Test", ~w(pack test), "Compares the kernels of a pack with the CPU kernels"},
  {"Pack.Bench", ~w(pack bench), "Times the kernels of a pack against those they compete with"},
  {"Pack.Pin", ~w(pack pin), "Pins a pack in a registry file by its sha256"},
  {"Pack.Watch", ~w(pack watch), "Shows what the kernels of a folder cost while they are edited"},
  {"Pack.Keygen", ~w(pack keygen), "Makes a key to sign packs with"},
  {"Pack.Sign", ~w(pack sign), "Signs a pack"},
  {"Pack.Quarantine", ~w(pack quarantine),
   "Lists the packs that are not loaded because they ended a process"},
  {"Pack.Release", ~w(pack release), "Lets a pack out of quarantine"},
  {"Explain", ~w(explain), "Says who runs a request, and why the others do not"},
  {"Tune", ~w(tune), "Times the kernels that compete, so that the registry can choose by it"},
  {"Registry.Check", ~w(registry check), "Checks a registry file before it is used"}
]

for {name, words, doc} <- verbs do
  defmodule Module.concat(Mix.Tasks.NxVulkan, name) do
    @shortdoc doc
    @moduledoc """
    #{doc}: `nxv #{Enum.join(words, " ")}` with the same arguments.

    `mix nxv help #{Enum.join(words, " ")}` says more.
    """
    use Mix.Task

    @words words

    @impl true
    def run(args), do: Mix.Tasks.Nxv.run(@words ++ args)
  end
end
