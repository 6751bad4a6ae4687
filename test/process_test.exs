defmodule Nx.Vulkan.ProcessTest do
  # Counts the buffers of the whole device: nothing else may run.
  use ExUnit.Case, async: false
  @moduletag :same_with_nx

  alias Nx.Vulkan.{Device, NativeV, Request}

  @f32 {:f, 32}

  setup_all do
    %{device: Device.fetch!(Device.default())}
  end

  test "tensors of processes that died go back to the pool", %{device: device} do
    :erlang.garbage_collect()
    before = buffers(device)

    for _ <- 1..100 do
      {_pid, monitor} =
        spawn_monitor(fn ->
          for i <- 1..100 do
            {:ok, ref} = Request.upload(device, @f32, {64}, :binary.copy(<<i>>, 256))
            if rem(i, 10) == 0, do: {:ok, _} = Request.run("negate", [ref], [{@f32, {64}}], [])
          end
        end)

      assert_receive {:DOWN, ^monitor, :process, _, :normal}, 600_000
    end

    assert :ok = NativeV.sync_device(device)

    assert eventually(fn -> buffers(device) <= before + 16 end),
           "#{buffers(device)} buffers, #{before} before"
  end

  test "large results on a CPU do not wait for the heap to fill up", %{device: device} do
    if Nx.Vulkan.device_info().kind == "cpu" do
      n = 300_000
      {:ok, x} = Request.upload(device, @f32, {n}, :binary.copy(<<0.5::float-32-native>>, n))
      before = buffers(device)

      # A process of its own: one that held large binaries collects later.
      here = self()

      work = fn ->
        most =
          for _ <- 1..60, reduce: 0 do
            most ->
              {:ok, [_]} = Request.run("negate", [x], [{@f32, {n}}], [])
              :ok = NativeV.sync_device(device)
              max(most, buffers(device) - before)
          end

        send(here, {:most, most})
      end

      :erlang.spawn_opt(work, [:link, min_heap_size: 1_000_000])
      assert_receive {:most, most}, 600_000
      assert most < 30, "#{most} results that nobody held"
    end
  end

  test "uploads count by the time they take", %{device: device} do
    [small, large] = for size <- [4, 1_048_576], do: yields(device, :binary.copy(<<1>>, size))
    # Each is one call for the VM; of such calls it takes some 40 for a turn of a millisecond.
    assert large > 1.3 * small, "#{large} yields, and #{small} of small ones"
  end

  # How often a process that uploads a binary again and again gives its scheduler to others.
  defp yields(device, binary) do
    work = fn ->
      receive do: (:go -> :ok)

      for _ <- 1..2_000 do
        {:ok, ref} = Request.upload(device, {:u, 8}, {byte_size(binary)}, binary)
        :ok = NativeV.deallocate(ref)
      end
    end

    {pid, monitor} = spawn_monitor(work)
    :erlang.trace(pid, true, [:running])
    send(pid, :go)
    assert_receive {:DOWN, ^monitor, :process, _, :normal}, 600_000
    delivered = :erlang.trace_delivered(pid)
    assert_receive {:trace_delivered, ^pid, ^delivered}
    {:messages, messages} = Process.info(self(), :messages)
    Enum.count(messages, &match?({:trace, ^pid, :out, _}, &1))
  end

  test "a killed process leaks nothing and breaks nothing", %{device: device} do
    before = buffers(device)

    for _ <- 1..20 do
      pid = spawn(fn -> loop(device) end)
      Process.sleep(5)
      Process.exit(pid, :kill)
    end

    assert eventually(fn -> buffers(device) <= before + 16 end)
    assert {:ok, ref} = NativeV.buf_upload("fine")
    assert NativeV.buf_download(ref) == {:ok, "fine"}
  end

  test "many processes compute at once", %{device: device} do
    results =
      1..64
      |> Task.async_stream(
        fn i ->
          {:ok, start} =
            Request.upload(device, @f32, {128}, :binary.copy(<<i * 1.0::float-32-native>>, 128))

          last =
            Enum.reduce(1..50, start, fn _, ref ->
              {:ok, [next]} = Request.run("add", [ref, start], [{@f32, {128}}], [])
              next
            end)

          {:ok, bytes} = NativeV.download(last, nil)
          {i, Enum.uniq(for <<x::float-32-native <- bytes>>, do: x)}
        end,
        max_concurrency: 64,
        timeout: :infinity
      )
      |> Enum.map(fn {:ok, result} -> result end)

    assert results == for(i <- 1..64, do: {i, [51.0 * i]})
  end

  test "a tensor made by one process is read by another after the first died", %{device: device} do
    parent = self()

    {_pid, monitor} =
      spawn_monitor(fn ->
        {:ok, ref} = Request.upload(device, {:u, 8}, {4}, "abcd")
        send(parent, {:tensor, ref})
      end)

    assert_receive {:tensor, ref}
    assert_receive {:DOWN, ^monitor, :process, _, _}
    assert NativeV.download(ref, nil) == {:ok, "abcd"}
  end

  test "the VM halts cleanly in the middle of work" do
    script = """
    alias Nx.Vulkan.{Device, NativeV, Request}
    Application.put_env(:nx_vulkan, :validation, #{Application.get_env(:nx_vulkan, :validation)})
    device = Device.fetch!(Device.default())
    {:ok, a} = Request.upload(device, {:f, 32}, {4096}, :binary.copy(<<0>>, 16384))
    work = fn work -> {:ok, _} = NativeV.run("add", [a, a], [{{:f, 32}, {4096}}], []); work.(work) end
    for _ <- 1..8, do: spawn(fn -> work.(work) end)
    Process.sleep(200)
    System.halt(0)
    """

    paths = Enum.flat_map(:code.get_path(), &["-pa", to_string(&1)])

    for _ <- 1..3 do
      assert {_, 0} = System.cmd("elixir", paths ++ ["-e", script], stderr_to_stdout: true)
    end
  end

  defp loop(device) do
    {:ok, ref} = Request.upload(device, @f32, {1024}, :binary.copy(<<0>>, 4096))
    {:ok, [sum]} = Request.run("sum", [ref], [{@f32, {}}], axes: [0])
    {:ok, _} = NativeV.download(sum, nil)
    loop(device)
  end

  defp buffers(device), do: NativeV.device_stats(device).memory.buffers

  defp eventually(fun, tries \\ 3_000) do
    cond do
      fun.() ->
        true

      tries == 0 ->
        false

      true ->
        :erlang.garbage_collect()
        Process.sleep(20)
        eventually(fun, tries - 1)
    end
  end
end
