Code.require_file("support/vm.exs", __DIR__)

if Code.ensure_loaded?(Nx) do
  defmodule Nx.Vulkan.ReplaysTest do
    use ExUnit.Case, async: true

    alias Nx.Vulkan.VM

    @moduletag :tmp_dir

    # A device takes its settings when it opens. Measured times would leave some ops to the host.
    @script """
    Application.put_env(:nx_vulkan, :replays, true)
    Application.put_env(:nx_vulkan, :measure, false)
    {:ok, _} = Application.ensure_all_started(:nx_vulkan)
    backend = Nx.Vulkan.VulkanoBackend

    predict = fn x, %{w: w, b: b} ->
      hidden = Enum.reduce(1..4, x, fn _, x -> x |> Nx.dot(w) |> Nx.add(b) |> Nx.tanh() end)
      less = Nx.subtract(hidden, Nx.reduce_max(hidden, axes: [1], keep_axes: true))
      {Nx.exp(less), Nx.transpose(hidden), x}
    end

    floats = fn shape, add ->
      Nx.iota(shape, type: :f32, backend: backend) |> Nx.multiply(0.001) |> Nx.add(add)
    end

    params = fn add -> %{w: floats.({16, 16}, add), b: floats.({16}, add)} end
    x = floats.({8, 16}, 0)
    one = params.(0.01)
    compiled = Nx.Defn.compile(predict, [x, one], compiler: Nx.Vulkan.Compiler)
    bytes = fn results -> for t <- Tuple.to_list(results), do: Nx.to_binary(t) end

    check = fn params, add ->
      x = floats.({8, 16}, add)
      expected = bytes.(Nx.Defn.jit(predict, compiler: Nx.Defn.Evaluator).(x, params))
      ^expected = bytes.(compiled.(x, params))
    end

    runs = fn -> Nx.Vulkan.stats().replays.runs end
    for add <- 1..6, do: check.(one, add / 10)
    4 = runs.()
    two = params.(0.02)
    for add <- 1..6, do: check.(two, add / 10)
    8 = runs.()

    # Processes share what is recorded, and results outlive it.
    tasks = for add <- 1..8, do: Task.async(fn -> for _ <- 1..10, do: check.(two, add / 8) end)
    Task.await_many(tasks, 60_000)
    %{programs: 1, bytes: bytes} = Nx.Vulkan.stats().replays
    true = bytes > 0
    IO.puts("replayed")
    """

    test "compiled functions are replayed with the bits that they have op by op", %{
      tmp_dir: folder
    } do
      File.chmod!(folder, 0o700)
      assert VM.run!(@script, folder) =~ "replayed"
    end
  end
end
