# Measures the Elixir layer: what one op costs through the NIF, and how ops compare with Nx.BinaryBackend.
# Usage: mix run bench/elixir.exs. Times are medians, taken warm, with the operands on the device.

defmodule Bench.Elixir do
  @moduledoc false

  alias Nx.Vulkan.{Device, NativeV, Request}

  @f32 {:f, 32}

  def run do
    device = Device.fetch!(Device.default())
    info = Nx.Vulkan.device_info()
    IO.puts("#{info.name}, #{info.driver}, OTP #{System.otp_release()}, #{Date.utc_today()}\n")

    IO.puts("one add of f32[1024] through the NIF (4 KB)")
    operands = for seed <- [1, 2], do: upload(device, numbers(1024, seed))
    add = fn -> run!("add", operands, {1024}) end
    wake(device)

    # 64 calls stay below what the queue submits at once; the collector runs between the batches.
    line("not waiting", median(200, 64, add, fn -> settle(device) end))

    line(
      "waiting for it",
      median(500, 1, fn -> {add.(), NativeV.sync_device(device)} end, &skip/0)
    )

    download = fn -> {:ok, _} = NativeV.download(add.(), nil) end
    line("and reading its 4 KB", median(500, 1, download, &skip/0))

    if Code.ensure_loaded?(Nx),
      do: compare(device),
      else: IO.puts("\nNx is not here: nothing to compare with")
  end

  defp compare(device) do
    IO.puts("\nagainst Nx.BinaryBackend")
    IO.puts("  #{pad("")}#{right("device")}#{right("BinaryBackend")}#{right("ratio")}")

    cases = [
      {"matmul 256x256 f32", {256, 256}, &Nx.dot(&1, &2)},
      {"add 10^6 f32", {1_000_000}, &Nx.add(&1, &2)},
      {"multiply 10^6 f32", {1_000_000}, &Nx.multiply(&1, &2)},
      {"less 10^6 f32", {1_000_000}, &Nx.less(&1, &2)},
      {"exp 10^6 f32", {1_000_000}, fn a, _ -> Nx.exp(a) end},
      {"tanh 10^6 f32", {1_000_000}, fn a, _ -> Nx.tanh(a) end},
      {"sum 10^6 f32", {1_000_000}, fn a, _ -> Nx.sum(a) end}
    ]

    binaries = for seed <- [1, 2], do: numbers(1_000_000, seed)

    for {name, shape, fun} <- cases do
      bytes = 4 * Tuple.product(shape)

      [[a, b], [host_a, host_b]] =
        for backend <- [Nx.Vulkan.VulkanoBackend, Nx.BinaryBackend] do
          for binary <- binaries do
            binary
            |> binary_part(0, bytes)
            |> Nx.from_binary(:f32, backend: backend)
            |> Nx.reshape(shape)
          end
        end

      fast = median(50, 1, fn -> {fun.(a, b), NativeV.sync_device(device)} end, &skip/0)
      # One run: it takes seconds, and a warm-up changes nothing.
      {slow, expected} = :timer.tc(fn -> fun.(host_a, host_b) end, :nanosecond)
      check!(name, fun.(a, b), expected)
      ratio = :erlang.float_to_binary(slow / fast, decimals: 1)
      IO.puts("  #{pad(name)}#{right(time(fast))}#{right(time(slow))}#{right(ratio <> "x")}")
    end
  end

  # A fast wrong answer is worth nothing.
  defp check!(name, result, expected) do
    result = Nx.backend_copy(result, Nx.BinaryBackend)
    close = Nx.all_close(result, expected, rtol: 1.0e-4, atol: 1.0e-4)
    Nx.to_number(close) == 1 || Mix.raise("#{name}: the device and Nx.BinaryBackend differ")
  end

  # A GPU that had nothing to do runs at a fraction of its clock; it takes half a second of work to get up to speed.
  defp wake(device) do
    operands =
      for seed <- [1, 2], do: upload(device, :binary.copy(<<seed::float-32-native>>, 1_000_000))

    until = System.monotonic_time(:millisecond) + 500
    work_until(until, fn -> {run!("add", operands, {1_000_000}), NativeV.sync_device(device)} end)
  end

  defp work_until(until, work) do
    work.()
    if System.monotonic_time(:millisecond) < until, do: work_until(until, work)
  end

  # Median time of one call in nanoseconds, over batches of `size` calls with `between` after each.
  defp median(batches, size, fun, between) do
    Enum.each(1..3//1, fn _ -> fun.() end)
    between.()

    times =
      for _ <- 1..batches do
        started = System.monotonic_time(:nanosecond)
        repeat(size, fun)
        took = System.monotonic_time(:nanosecond) - started
        between.()
        took / size
      end

    times |> Enum.sort() |> Enum.at(div(batches, 2))
  end

  defp repeat(0, _fun), do: :ok

  defp repeat(left, fun) do
    fun.()
    repeat(left - 1, fun)
  end

  defp settle(device) do
    NativeV.sync_device(device)
    :erlang.garbage_collect()
  end

  defp skip, do: :ok

  defp numbers(count, seed) do
    for i <- 1..count, into: <<>>, do: <<rem(i * 7919 * seed, 1000) / 500 - 1::float-32-native>>
  end

  defp upload(device, bytes) do
    {:ok, tensor} = Request.upload(device, @f32, {div(byte_size(bytes), 4)}, bytes)
    tensor
  end

  defp run!(op, operands, shape) do
    {:ok, [result]} = Request.run(op, operands, [{@f32, shape}], [])
    result
  end

  defp line(name, nanoseconds), do: IO.puts("  #{pad(name)}#{right(time(nanoseconds))}")
  defp pad(text), do: String.pad_trailing(text, 24)
  defp right(text), do: String.pad_leading(text, 16)

  defp time(ns) when ns < 1.0e6, do: "#{:erlang.float_to_binary(ns / 1.0e3, decimals: 2)} us"
  defp time(ns), do: "#{:erlang.float_to_binary(ns / 1.0e6, decimals: 2)} ms"
end

Bench.Elixir.run()
