Code.require_file("support/vm.exs", __DIR__)

# Not async: a device has one profile at a time.
defmodule Nx.Vulkan.ProfileTest do
  use ExUnit.Case

  test "what a function gives, raises or throws goes on, and the profile ends" do
    assert {:result, profile} = Nx.Vulkan.profile(fn -> :result end)
    assert profile.rows == [] and profile.dropped == 0 and profile.device_us == 0.0
    assert profile.text =~ "0 commands"
    assert_raise RuntimeError, "mine", fn -> Nx.Vulkan.profile(fn -> raise "mine" end) end
    assert catch_throw(Nx.Vulkan.profile(fn -> throw(:mine) end)) == :mine
    assert catch_exit(Nx.Vulkan.profile(fn -> exit(:mine) end)) == :mine
    assert {[1], _} = Nx.Vulkan.profile(fn -> [1] end)
  end

  test "a device has one profile at a time" do
    two = fn -> Nx.Vulkan.profile(fn -> Nx.Vulkan.profile(fn -> :two end) end) end
    assert_raise ArgumentError, ~r/expected no other profile of .*, got: one that is on/, two
    assert {:one, _} = Nx.Vulkan.profile(fn -> :one end)
  end

  test "the profile of a process that is killed ends" do
    test = self()

    pid =
      spawn(fn ->
        Nx.Vulkan.profile(fn ->
          send(test, :on)
          Process.sleep(:infinity)
        end)
      end)

    assert_receive :on, 10_000
    assert_raise ArgumentError, fn -> Nx.Vulkan.profile(fn -> :other end) end
    ref = Process.monitor(pid)
    Process.exit(pid, :kill)
    assert_receive {:DOWN, ^ref, _, _, :killed}
    assert {:next, _} = profile_soon(fn -> :next end, 100)
  end

  # The VM collects a process after it has told of its end.
  defp profile_soon(fun, tries) do
    Nx.Vulkan.profile(fun)
  rescue
    error in ArgumentError ->
      if tries == 0, do: reraise(error, __STACKTRACE__)
      Process.sleep(20)
      profile_soon(fun, tries - 1)
  end

  if Code.ensure_loaded?(Nx) do
    alias Nx.Vulkan.VM

    @moduletag :tmp_dir

    test "a profile whose result is no tensor of this VM ends" do
      gone = struct(Nx.Vulkan.VulkanoBackend, ref: make_ref())
      # With room enough nothing is collected, which would end it too.
      Process.flag(:min_heap_size, 1_000_000)
      :erlang.garbage_collect()

      assert_raise ArgumentError, ~r/a tensor of this VM/, fn ->
        Nx.Vulkan.profile(fn -> gone end)
      end

      assert {:next, _} = Nx.Vulkan.profile(fn -> :next end)
    end

    # A device takes its settings when it opens. Measured times would leave some ops to the host.
    @script """
    for {key, value} <- [measure: false, lazy: true, replays: true, validation: true],
        do: Application.put_env(:nx_vulkan, key, value)

    {:ok, _} = Application.ensure_all_started(:nx_vulkan)
    Nx.default_backend(Nx.Vulkan.VulkanoBackend)
    x = Nx.iota({64, 64}, type: :f32) |> Nx.multiply(0.001)
    ops = fn rows -> for row <- rows, do: row.op |> String.split("(") |> hd() end

    # What only waits is run, wherever it is in the result.
    eager = fn -> {:ok, %{sum: Nx.sum(x, axes: [1]), others: [Nx.add(Nx.sin(x), x) | :end]}} end
    for _ <- 1..3, do: Nx.Vulkan.profile(eager)
    {{:ok, %{sum: _, others: [%Nx.Tensor{} | :end]}}, profile} = Nx.Vulkan.profile(eager)
    ["sum", "fused"] = ops.(profile.rows)
    [%{kernel: "reduce/sum", op: "sum(f32[64,64]) -> f32[64]"} = row | _] = profile.rows
    true = row.step =~ ".comp" and row.index == 0 and row.steps >= 1
    {_, _, _} = row.groups

    ends = for row <- profile.rows, do: (true = row.us > 0; row.start_us + row.us)
    true = ends == Enum.sort(ends) and hd(profile.rows).start_us == 0.0
    true = abs(List.last(ends) - profile.span_us) < 1.0e-6
    true = profile.device_us <= profile.span_us + 1.0e-6
    2 = profile.text |> String.split("\\n") |> Enum.count(&(&1 =~ " % "))

    # A loop that the device's numbers end, around products.
    defmodule Loop do
      import Nx.Defn

      defn run(x) do
        {_, x} =
          while {s = Nx.sum(x), x}, s < 1.4e4 do
            x = Nx.dot(x, x) |> Nx.sigmoid() |> Nx.add(x)
            {Nx.sum(x), x}
          end

        x
      end
    end

    loop = Nx.Vulkan.jit(&Loop.run/1)
    for _ <- 1..3, do: loop.(x)
    {_, profile} = Nx.Vulkan.profile(fn -> loop.(x) end)
    names = ops.(profile.rows)
    2 = Enum.count(names, &(&1 == "dot"))

    # What is recorded once is told one by one.
    net = fn x, w -> Enum.reduce(1..5, x, fn _, x -> x |> Nx.dot(w) |> Nx.tanh() |> Nx.sort(axis: 1) end) end
    net = Nx.Defn.compile(net, [x, x], compiler: Nx.Vulkan.Compiler)
    w = Nx.Vulkan.sync() && x
    for n <- 1..4, do: net.(Nx.add(x, n / 10), w)
    2 = Nx.Vulkan.stats().replays.runs
    {result, profile} = Nx.Vulkan.profile(fn -> net.(Nx.add(x, 0.5), w) end)
    3 = Nx.Vulkan.stats().replays.runs
    %{"dot" => 5, "sort" => sorts} = Enum.frequencies(ops.(profile.rows))
    true = sorts >= 5
    same = net.(Nx.add(x, 0.5), w)
    true = Nx.to_binary(result) == Nx.to_binary(same)
    [] = Nx.Vulkan.NativeV.validation_messages()
    IO.puts("profiled")
    """

    test "eager ops, loops and what is recorded once have rows", %{tmp_dir: folder} do
      File.chmod!(folder, 0o700)
      assert VM.run!(@script, folder) =~ "profiled"
    end
  end
end
