defmodule Training.Contest do
  @moduledoc false
  # Runs the training in VMs of its own, one for each way: a device has one set of kernels per VM.

  alias Training.Terminal

  @host_kernels Path.expand("../host_kernels.toml", __DIR__)
  @worker Path.expand("worker.exs", __DIR__)

  @doc """
  The ways this build can train: `{label, worker's name, kernels}`. With Nx the host's kernels are asked through it too.
  """
  def ways(nx?) do
    native = [{"NativeV on packs", "native", :packs}]

    if nx?,
      do: [{"Nx on packs", "nx", :packs}] ++ native ++ [{"Nx on host kernels", "nx", :host}],
      else: native ++ [{"NativeV on the host", "native", :host}]
  end

  @doc """
  Trains one way; the map that worker.exs prints, or the run ends with what it said.
  """
  def train({label, way, kernels}, hidden, batch, steps) do
    paths = for path <- :code.get_path(), in_project?(path), flag <- ["-pa", path], do: flag
    arguments = [@worker, way | Enum.map([hidden, batch, steps], &Integer.to_string/1)]

    port =
      Port.open({:spawn_executable, System.find_executable("elixir")}, [
        :binary,
        :exit_status,
        :stderr_to_stdout,
        line: 1_000_000,
        args: paths ++ arguments,
        env: environment(kernels)
      ])

    Terminal.progress(label, 0, steps, "")
    listen(port, label, steps, [])
  end

  defp in_project?(path), do: String.starts_with?(to_string(path), Mix.Project.build_path())

  defp environment(:packs), do: []
  defp environment(:host), do: [{~c"NX_VULKAN_REGISTRY", String.to_charlist(@host_kernels)}]

  defp listen(port, label, steps, said) do
    receive do
      {^port, {:data, {:eol, "step " <> rest}}} ->
        with [step, loss] <- String.split(rest) do
          note = "loss #{loss |> String.to_float() |> Terminal.format()}"
          Terminal.progress(label, String.to_integer(step), steps, note)
        end

        listen(port, label, steps, said)

      {^port, {:data, {:eol, "result " <> encoded}}} ->
        encoded |> Base.decode64!() |> :erlang.binary_to_term()

      {^port, {:data, {_, line}}} ->
        listen(port, label, steps, [line | said])

      {^port, {:exit_status, status}} ->
        IO.puts(:stderr, ["\n", said |> Enum.reverse() |> Enum.intersperse("\n"), "\n"])
        Mix.raise("training by #{label} ended with status #{status}")
    end
  end
end
