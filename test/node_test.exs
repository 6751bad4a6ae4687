Code.require_file("support/spirv.exs", __DIR__)
Code.require_file("support/vm.exs", __DIR__)

defmodule Nx.Vulkan.NodeTest do
  # Sets the environment of the application.
  use ExUnit.Case, async: false

  import ExUnit.CaptureLog

  alias Nx.Vulkan.{NativeV, Node, PipelineCache, Spirv, VM}

  defp start!(opts \\ []) do
    name = :"node_#{System.unique_integer([:positive])}"
    start_supervised!({Node, [name: name] ++ opts}, id: name)
    name
  end

  defp with_timeout(ms) do
    Application.put_env(:nx_vulkan, :node_timeout_ms, ms)
    on_exit(fn -> Application.delete_env(:nx_vulkan, :node_timeout_ms) end)
  end

  test "has a name of its own under a supervisor" do
    refute Node.alive?()
    assert Node.status() == {:error, :node_dead}
    assert Node.with_node(fn -> :ran end) == {:error, :node_dead}
    pid = start_supervised!({Node, []})
    assert Node.alive?() and Node.alive?(pid)
    assert {:error, {:already_started, ^pid}} = Node.start_link()
    assert Node.with_node(fn -> self() end) == pid
    stop_supervised!(Node)
    refute Node.alive?() or Node.alive?(pid)
    assert Node.with_node(fn -> :ran end, pid) == {:error, :node_dead}
  end

  test "runs functions in its process, and counts them" do
    name = start!()
    assert %{uptime_ms: uptime, exec_count: 0} = Node.status(name)
    assert uptime >= 0
    assert Node.with_node(fn -> self() end, name) == Process.whereis(name)
    assert Node.with_node(fn -> {:ok, 1} end, name) == {:ok, 1}
    assert Node.with_node(fn -> Node.with_node(fn -> :inner end, name) end, name) == :inner
    Process.sleep(2)
    assert %{uptime_ms: later, exec_count: 3} = Node.status(name)
    assert later > uptime
  end

  test "runs them one after the other" do
    name = start!()
    counter = :counters.new(2, [])

    run = fn ->
      :counters.add(counter, 1, 1)
      alone = :counters.get(counter, 1) == 1
      Process.sleep(1)
      :counters.sub(counter, 1, 1)
      alone
    end

    alone = fn _ -> Node.with_node(run, name) end
    results = Task.async_stream(1..30, alone, max_concurrency: 8, timeout: 60_000)
    assert Enum.all?(results, &(&1 == {:ok, true}))
    assert Node.status(name).exec_count == 30
  end

  test "computes" do
    name = start!()
    assert {:ok, ref} = Node.with_node(fn -> NativeV.buf_upload("abcd") end, name)
    assert NativeV.buf_download(ref) == {:ok, "abcd"}
  end

  test "a caller waits no longer than it has to" do
    name = start!()
    with_timeout(50)
    parent = self()

    slow = fn ->
      send(parent, {:in, self()})
      receive do: (:go -> send(parent, :ran))
    end

    assert Node.with_node(slow, name) == {:error, :node_timeout}
    assert Node.with_node(fn -> :next end, name) == {:error, :node_timeout}
    assert Node.status(name) == {:error, :node_timeout}
    # The function runs on.
    assert_receive {:in, node}
    send(node, :go)
    assert_receive :ran
    with_timeout(5_000)
    assert Node.with_node(fn -> :later end, name) == :later
    assert Node.status(name).exec_count == 3
    refute_receive {_ref, _late_reply}, 10
  end

  test "a timeout that is none is an error of the caller" do
    name = start!()

    for other <- [-1, 1.5, "50", nil] do
      with_timeout(other)
      assert_raise ArgumentError, ~r/node_timeout_ms/, fn -> Node.with_node(fn -> 1 end, name) end
    end

    with_timeout(:infinity)
    assert Node.with_node(fn -> 1 end, name) == 1
  end

  test "a function that raises ends it, and the supervisor starts it anew" do
    name = start!()
    pid = Process.whereis(name)
    assert Node.with_node(fn -> :before end, name) == :before

    capture_log(fn ->
      assert {{%RuntimeError{message: "oh"}, _}, {GenServer, :call, _}} =
               catch_exit(Node.with_node(fn -> raise "oh" end, name))
    end)

    eventually(fn -> Node.alive?(name) and Process.whereis(name) != pid end)
    assert Node.status(name).exec_count == 0
    assert_raise FunctionClauseError, fn -> Node.with_node(fn _ -> 1 end, name) end
    assert_raise ArgumentError, fn -> Node.start_link(names: :typo) end
  end

  test "callers of a node that is stopped learn it" do
    {:ok, pid} = Node.start_link(name: nil)
    parent = self()

    slow = fn ->
      send(parent, :begun)
      Process.sleep(200)
    end

    waiting = Task.async(fn -> Node.with_node(slow, pid) end)
    assert_receive :begun
    queued = Task.async(fn -> Node.with_node(fn -> :never end, pid) end)
    Process.sleep(20)
    GenServer.stop(pid)
    assert Task.await(waiting, 60_000) == :ok
    assert Task.await(queued, 60_000) in [:never, {:error, :node_dead}]
  end

  test "what its functions were linked to may end" do
    name = start!()
    Node.with_node(fn -> spawn_link(fn -> exit(:boom) end) end, name)
    Process.sleep(20)
    assert Node.with_node(fn -> :alive end, name) == :alive
  end

  test "writes the pipeline cache when it ends" do
    cache = Spirv.folder!()

    VM.run!(
      """
      alias Nx.Vulkan.{Node, PipelineCache}
      path = PipelineCache.default_path()
      {:ok, supervisor} = Supervisor.start_link([Node], strategy: :one_for_one)
      :ok = Node.with_node(fn -> PipelineCache.clear() end)
      false = File.exists?(path)
      :ok = Supervisor.stop(supervisor)
      true = File.regular?(path)
      :ok = PipelineCache.load()
      """,
      cache
    )
  end

  test "a cache that cannot be used is logged, and no device is an error" do
    cache = Spirv.folder!()

    printed =
      VM.run!(
        """
        alias Nx.Vulkan.{Node, PipelineCache}
        File.write!(PipelineCache.default_path(), "damaged")
        {:ok, pid} = Node.start_link()
        :ok = GenServer.stop(pid)
        File.write!(PipelineCache.default_path(), "damaged")
        {:ok, _} = Node.start_link(load_pipeline_cache: false)
        Application.put_env(:nx_vulkan, :device, "no such device")
        Process.flag(:trap_exit, true)
        {:error, {:vulkan_init_failed, message}} = Node.start_link(name: :other)
        true = message =~ "no such device"
        Logger.flush()
        """,
        cache
      )

    assert length(String.split(printed, "is damaged")) == 2
  end

  test "the cache's functions work while it runs" do
    start!()
    assert PipelineCache.persist() == :ok
  end

  defp eventually(fun, tries \\ 6_000) do
    assert fun.() or tries > 0
    unless fun.(), do: Process.sleep(10) && eventually(fun, tries - 1)
  end
end
