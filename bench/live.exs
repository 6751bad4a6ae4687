# Replaces packs, shaders and the registry file, good ones and broken ones, while processes call ops: nothing may fail,
# no result may be wrong, and memory may grow by no more than a replaced library leaves behind.
# Usage: mix run bench/live.exs [--minutes 30] [--swaps 500] [--processes 8] [--first 150]. Ends with status 1 when a promise
# is broken; `--first` is what the median from saving a shader to its first result may take, in milliseconds.
# Before that it measures how long it takes from saving a shader until the new one serves.

defmodule Bench.Live do
  @moduledoc false

  alias Nx.Vulkan.{Dev, Device, NativeV, Request}

  @f32 {:f, 32}
  @settle_ms 50
  # A file that was written this lately is read at every look.
  @fresh_ms 4_000
  # Contents of a library that are told apart; each is mapped once.
  @libraries 40
  # What one more mapped library and its pipelines may add to the memory of the process.
  @bytes_per_swap 1_000_000

  def run(options) do
    folder = folder()
    Application.put_env(:nx_vulkan, :registry, Path.join(folder, "registry.toml"))
    Application.put_env(:nx_vulkan, :packs, [Path.join(folder, "packs")])
    device = Device.fetch!(Device.default())
    :ok = Dev.subscribe()
    IO.puts("#{Nx.Vulkan.device_info().name}, settle time #{@settle_ms} ms\n")

    latency(device, folder, options[:first])
    soak(device, folder, options)
  after
    # Only what this VM made, under a name of its own.
    File.rm_rf!(folder_name())
  end

  ## From saving to serving

  defp latency(device, folder, most) do
    shader = Path.join(folder, "shaders/template/unary.comp")
    one = upload(device, [1.0])
    Process.sleep(@fresh_ms)

    times =
      for scale <- 2..41 do
        text = String.replace(source(), "* SCALE", "* #{scale}.0")
        replace(shader, text)
        saved = System.monotonic_time(:microsecond)
        until(fn -> square(one) == [scale * 1.0] end)
        (System.monotonic_time(:microsecond) - saved) / 1000 - @settle_ms
      end

    sorted = Enum.sort(times)

    IO.puts(
      "from saving a shader to its first result, without the settle time: " <>
        "median #{ms(Enum.at(sorted, 20))}, 90 % within #{ms(Enum.at(sorted, 36))}, longest #{ms(List.last(sorted))}\n"
    )

    replace(shader, String.replace(source(), "* SCALE", ""))
    until(fn -> square(one) == [1.0] end)
    if Enum.at(sorted, 20) > most, do: fail("the median is above #{most} ms")
  end

  ## Swaps under load

  defp soak(device, folder, options) do
    parent = self()

    workers =
      for seed <- 1..options[:processes], do: spawn_link(fn -> work(parent, device, seed, 0) end)

    until_time = System.monotonic_time(:second) + round(options[:minutes] * 60)
    :rand.seed(:exsss, {1, 2, 3})
    IO.puts("  swaps   good   broken   calls        process MB   pipelines' tables   events")
    start = {System.monotonic_time(:second), 0, 0, rss(), %{}}
    {swaps, events} = swap(folder, workers, until_time, options[:swaps], start)
    calls = Enum.sum(for worker <- workers, do: calls(worker))
    Enum.each(workers, &send(&1, :stop))
    IO.puts("\n  #{swaps} swaps, #{calls} calls, none failed, none wrong")
    IO.puts("  events: #{inspect(events)}")

    for kind <- [
          :shader_replaced,
          :shader_rejected,
          :pack_replaced,
          :rejected,
          :registry_replaced
        ] do
      events[kind] || fail("no #{kind} was seen")
    end
  end

  defp swap(folder, workers, until_time, least, {started, swaps, good, warm, events}) do
    events = drain(events)
    now = System.monotonic_time(:second)

    if rem(swaps, 50) == 0, do: report(swaps, good, workers, events, warm)

    if now >= until_time and swaps >= least do
      report(swaps, good, workers, events, warm)
      {swaps, events}
    else
      is_good = Enum.random([true, true, false])
      change(folder, Enum.random([:library, :shader, :large_shader, :registry]), is_good)
      # Faster and slower than the settle time.
      Process.sleep(Enum.random([10, 60, 150, 300, pace(until_time, least, swaps, now)]))
      warm = if swaps == 100, do: rss(), else: warm
      state = {started, swaps + 1, good + if(is_good, do: 1, else: 0), warm, events}
      swap(folder, workers, until_time, least, state)
    end
  end

  # What is left of the time, over what is left of the swaps.
  defp pace(until_time, least, swaps, now) do
    left = max(until_time - now, 0) * 1000
    min(div(left, max(least - swaps, 1)), 3000)
  end

  defp change(folder, :library, good) do
    bytes = File.read!(template()) <> <<:rand.uniform(@libraries)::32>>
    bytes = if good, do: bytes, else: broken(bytes)
    path = Path.join(folder, "packs/#{Path.basename(template())}")
    if :rand.uniform(2) == 1, do: replace(path, bytes), else: File.write!(path, bytes)
  end

  defp change(folder, :shader, good) do
    text = String.replace(source(), "* SCALE", "* (1.0 + 0.0 * #{:rand.uniform(1_000_000)}.0)")
    text = if good, do: text, else: String.replace(text, "uint i", "unit i")
    replace(Path.join(folder, "shaders/template/unary.comp"), text)
  end

  defp change(folder, :large_shader, good) do
    text =
      File.read!("packs/elementwise/shaders/contiguous.comp") <>
        "// #{:rand.uniform(1_000_000)}\n"

    text = if good, do: text, else: String.replace(text, "void main", "void niam")
    File.write!(Path.join(folder, "shaders/elementwise/contiguous.comp"), text)
  end

  defp change(folder, :registry, good) do
    rule =
      if good,
        do: "[pack.template]\npriority = #{:rand.uniform(100)}\n" <> Enum.random(["", deny()]),
        else:
          Enum.random(["[[op]]\nname = 7\n", "[pack.template\n", "[defaults]\nfallbakc = 1\n"])

    replace(Path.join(folder, "registry.toml"), registry() <> rule)
  end

  # The CPU kernels serve then.
  defp deny, do: "[[deny]]\npack = \"elementwise\"\nop = \"add\"\nreason = \"a test\"\n"

  defp broken(bytes) do
    case :rand.uniform(3) do
      1 -> binary_part(bytes, 0, :rand.uniform(byte_size(bytes)))
      2 -> :rand.bytes(5000)
      3 -> ""
    end
  end

  ## One worker

  defp work(parent, device, seed, calls) do
    values = for i <- 1..64, do: rem(i * seed, 17) / 4 - 1.5
    x = upload(device, values)
    expect(square(x), Enum.map(values, &(&1 * &1)))
    expect(run("add", [x, x], 64), Enum.map(values, &(&1 + &1)))
    expect(run("multiply", [x, x], 64), Enum.map(values, &(&1 * &1)))
    expect(run("negate", [x], 64), Enum.map(values, &(-&1)))

    receive do
      :stop -> exit(:normal)
      {:calls, from} -> send(from, {:calls, self(), calls + 4})
    after
      0 -> :ok
    end

    work(parent, device, seed, calls + 4)
  end

  defp calls(worker) do
    send(worker, {:calls, self()})

    receive do
      {:calls, ^worker, calls} -> calls
    after
      10_000 -> 0
    end
  end

  defp square(x), do: run("square", [x], nil)

  defp run(op, operands, count) do
    count = count || elem(NativeV.tensor_info(hd(operands)).shape, 0)

    with {:ok, [result]} <- Request.run(op, operands, [{@f32, {count}}], []),
         {:ok, bytes} <- NativeV.download(result, nil) do
      for <<value::float-32-native <- bytes>>, do: value
    else
      failure -> fail("#{op} failed: #{inspect(failure)}")
    end
  end

  defp expect(same, same), do: :ok

  defp expect(got, expected),
    do: fail("a wrong result: #{inspect(got)}, not #{inspect(expected)}")

  ## Files

  defp folder do
    folder = folder_name()

    for name <- ~w(packs shaders/template shaders/elementwise),
        do: File.mkdir_p!(Path.join(folder, name))

    for pack <- Path.wildcard("priv/packs/*"),
        do: File.cp!(pack, Path.join([folder, "packs", Path.basename(pack)]))

    File.cp!(template(), Path.join([folder, "packs", Path.basename(template())]))
    File.write!(Path.join(folder, "registry.toml"), registry())
    folder
  end

  defp folder_name, do: Path.join(System.tmp_dir!(), "nx_vulkan-live-#{System.pid()}")

  defp registry do
    "schema = 1\n[search]\npaths = [\"packs\"]\n[dev]\nwatch = [\"shaders\"]\nsettle_ms = #{@settle_ms}\n"
  end

  defp template do
    library =
      "#{System.get_env("CARGO_TARGET_DIR", "target")}/release/libnx_vulkan_pack_template.{so,dylib}"

    case Path.wildcard(library) do
      [path] -> path
      [] -> fail("#{library} is missing: build abi/template into that folder")
    end
  end

  # The template's own shader, with a place for a factor.
  defp source do
    "abi/template/shaders/unary.comp"
    |> File.read!()
    |> String.replace("EXPRESSION(a)", "EXPRESSION(a) * SCALE")
  end

  # As editors save: under another name, then renamed.
  defp replace(path, content) do
    temporary = Path.join(Path.dirname(path), ".#{Path.basename(path)}.tmp")
    File.write!(temporary, content)
    File.rename!(temporary, path)
  end

  ## Reports

  defp report(swaps, good, workers, events, warm) do
    calls = Enum.sum(for worker <- workers, do: calls(worker))
    now = rss()

    IO.puts(
      "  #{cell(swaps, 5)}  #{cell(good, 5)}  #{cell(swaps - good, 7)}  #{cell(calls, 9)}  #{cell(mb(now), 12)}  " <>
        "#{cell(Nx.Vulkan.stats().plans, 18)}  #{cell(Enum.sum(Map.values(events)), 7)}"
    )

    if swaps > 100 and now - warm > (swaps - 100) * @bytes_per_swap + 64_000_000 do
      fail("memory grew by #{mb(now - warm)} MB in #{swaps - 100} swaps")
    end
  end

  defp drain(events) do
    receive do
      {:nx_vulkan, %{kind: kind}} -> events |> Map.update(kind, 1, &(&1 + 1)) |> drain()
    after
      0 -> events
    end
  end

  defp until(done, start \\ System.monotonic_time(:second)) do
    cond do
      done.() -> :ok
      System.monotonic_time(:second) - start > 30 -> fail("a change did not arrive")
      true -> until(done, start)
    end
  end

  defp upload(device, values) do
    bytes = for value <- values, into: <<>>, do: <<value::float-32-native>>
    {:ok, ref} = Request.upload(device, @f32, {length(values)}, bytes)
    ref
  end

  defp rss do
    [pages | _] = "/proc/self/statm" |> File.read!() |> String.split() |> tl()
    String.to_integer(pages) * 4096
  end

  defp fail(message) do
    IO.puts(:stderr, "\n#{message}")
    System.halt(1)
  end

  defp cell(value, width), do: value |> to_string() |> String.pad_leading(width)
  defp mb(bytes), do: :erlang.float_to_binary(bytes / 1.0e6, decimals: 1)
  defp ms(value), do: "#{:erlang.float_to_binary(value * 1.0, decimals: 1)} ms"
end

{options, _} =
  OptionParser.parse!(System.argv(),
    strict: [minutes: :float, swaps: :integer, processes: :integer, first: :integer]
  )

Bench.Live.run(Keyword.merge([minutes: 30.0, swaps: 500, processes: 8, first: 150], options))
