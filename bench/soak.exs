# Many processes dispatch mixed ops; afterwards neither the process nor the device may hold more memory than when warm.
# Usage: mix run bench/soak.exs [--dispatches 200000] [--processes 32]. Ends with status 1 when something grew or was wrong.

defmodule Bench.Soak do
  @moduledoc false

  alias Nx.Vulkan.{Device, NativeV, Request}

  @f32 {:f, 32}
  @sizes [16, 256, 1024, 4096, 30_000]
  # Dispatches of one round of `work/3`.
  @round 10
  @points 20
  # What counts as flat, after the first quarter: pages that the allocators of the VM and the driver keep in reserve.
  @slack_process 16 * 1024 * 1024
  @slack_device 4 * 1024 * 1024

  def run(dispatches, processes) do
    device = Device.fetch!(Device.default())
    rounds = ceil(dispatches / (@round * processes * @points))
    IO.puts("#{Nx.Vulkan.device_info().name}: #{processes} processes\n")

    IO.puts(
      "  dispatches   process MB   device MB in use   allocated   buffers   dispatches per second"
    )

    parent = self()
    workers = for seed <- 1..processes, do: spawn_link(fn -> worker(parent, device, seed) end)
    curve = for point <- 1..@points, do: stretch(device, workers, point, rounds)
    Enum.each(workers, &send(&1, :stop))
    verdict(curve, rounds * @points * @round * processes)
  end

  # All workers do `rounds` rounds, then everything they dropped is collected and the memory is looked at.
  defp stretch(device, workers, point, rounds) do
    started = System.monotonic_time(:microsecond)
    Enum.each(workers, &send(&1, {:work, rounds}))

    for worker <- workers do
      receive do
        {:done, ^worker} -> :ok
      end
    end

    :ok = NativeV.sync_device(device)
    took = System.monotonic_time(:microsecond) - started
    memory = Nx.Vulkan.stats().memory
    dispatches = rounds * length(workers) * @round
    row = Map.put(memory, :process, resident())

    IO.puts([
      pad(point * dispatches, 12),
      pad(mega(row.process), 13),
      pad(mega(row.in_use), 19),
      pad(mega(row.allocated), 12),
      pad(row.buffers, 10),
      pad(round(dispatches * 1.0e6 / took), 24)
    ])

    row
  end

  defp worker(parent, device, seed) do
    receive do
      {:work, rounds} ->
        for round <- 1..rounds, do: work(device, seed, Enum.at(@sizes, rem(seed + round, 5)))
        :erlang.garbage_collect()
        send(parent, {:done, self()})
        worker(parent, device, seed)

      :stop ->
        :ok
    end
  end

  # Ten dispatches whose result is known: the elements are equal, so that dividing by the largest leaves ones.
  defp work(device, seed, size) do
    bytes = :binary.copy(<<seed::float-32-native>>, size)
    {:ok, x} = Request.upload(device, @f32, {size}, bytes)
    one = constant(device, 1.0)
    wide = {size}

    doubled = run("add", [x, x], wide)
    more = run("add", [doubled, one], wide)
    less = run("subtract", [more, x], wide)
    biggest = run("reduce_max", [less], {}, axes: [0])
    ratio = run("divide", [less, biggest], wide)
    rows = view(NativeV.reshape(ratio, {1, size}))
    product = dot(rows, view(NativeV.transpose(rows, [1, 0])))
    scaled = run("multiply", [product, biggest], {1, 1})
    scaled = run("multiply", [scaled, biggest], {1, 1})
    root = run("sqrt", [scaled], {1, 1})
    final = run("max", [root, one], {1, 1})

    {:ok, <<value::float-32-native>>} = NativeV.download(final, nil)
    expected = (seed + 1) * :math.sqrt(size)

    abs(value - expected) <= 1.0e-4 * expected ||
      raise "process #{seed} got #{value} for #{expected}"
  end

  defp dot(a, b) do
    attrs = [contract_a: [1], batch_a: [], contract_b: [0], batch_b: []]
    run("dot", [a, b], {1, 1}, attrs)
  end

  defp run(op, operands, shape, attrs \\ []) do
    {:ok, [result]} = Request.run(op, operands, [{@f32, shape}], attrs)
    result
  end

  defp constant(device, x) do
    {:ok, tensor} = Request.constant(device, @f32, {}, <<x::float-32-native>>)
    tensor
  end

  defp view({:ok, tensor}), do: tensor

  defp verdict(curve, dispatches) do
    {warm, rest} = Enum.split(curve, div(@points, 4))
    served = for {_op, kernel, count} <- Nx.Vulkan.stats().served, do: {kernel, count}
    total = served |> Enum.map(&elem(&1, 1)) |> Enum.sum()
    host = for {"host", count} <- served, reduce: 0, do: (sum -> sum + count)

    problems =
      [
        grew("the process", warm, rest, :process, @slack_process),
        grew("device memory", warm, rest, :allocated, @slack_device),
        grew("device memory in use", warm, rest, :in_use, @slack_device),
        if(total < dispatches, do: "only #{total} of #{dispatches} dispatches were counted")
        | NativeV.validation_messages()
      ]
      |> Enum.filter(& &1)

    IO.puts("\n  #{total} dispatches, #{host} of them on the host's kernels")
    for problem <- problems, do: IO.puts("  FAILED: #{problem}")
    if problems == [], do: IO.puts("  flat"), else: System.halt(1)
  end

  defp grew(what, warm, rest, key, slack) do
    before = warm |> Enum.map(& &1[key]) |> Enum.max()
    after_all = rest |> Enum.take(-5) |> Enum.map(& &1[key]) |> Enum.min()

    if after_all > before + slack,
      do: "#{what} grew from #{mega(before)} to #{mega(after_all)} MB"
  end

  defp resident do
    [_, kilobytes] = Regex.run(~r/VmRSS:\s+(\d+) kB/, File.read!("/proc/self/status"))
    String.to_integer(kilobytes) * 1024
  end

  defp mega(bytes), do: :erlang.float_to_binary(bytes / 1_048_576, decimals: 2)
  defp pad(value, width), do: value |> to_string() |> String.pad_leading(width)
end

{options, []} =
  OptionParser.parse!(System.argv(), strict: [dispatches: :integer, processes: :integer])

Bench.Soak.run(options[:dispatches] || 200_000, options[:processes] || 32)
