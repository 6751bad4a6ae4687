if Code.ensure_loaded?(Nx) do
  defmodule Nx.Vulkan.JitCacheTest do
    # What is kept is kept for the whole VM, and loading a module forgets it.
    use ExUnit.Case, async: false

    alias Nx.Vulkan.{Compiler, JitCache, VulkanoBackend}

    # What is loaded on the way would be seen too.
    setup_all do
      for app <- ~w(kernel stdlib crypto elixir logger ex_unit complex nx nx_vulkan)a,
          module <- Application.spec(app, :modules),
          do: Code.ensure_loaded(module)

      :ok
    end

    setup do
      Nx.default_backend(VulkanoBackend)
      Compiler.forget()
    end

    # Tells the test that it is traced.
    defp traced(test, fun) do
      fn x ->
        send(test, :traced)
        fun.(x)
      end
    end

    defp traces do
      receive do
        :traced -> 1 + traces()
      after
        0 -> 0
      end
    end

    # Terms that no row names any longer.
    defp terms do
      Enum.count(
        :persistent_term.get(),
        &match?({{JitCache, term}, _} when is_reference(term), &1)
      )
    end

    defp eventually(fun, tries \\ 6_000) do
      fun.() or (tries > 0 and Process.sleep(10) == :ok and eventually(fun, tries - 1))
    end

    defp jit(fun, opts \\ []), do: Nx.Defn.jit(fun, [compiler: Compiler] ++ opts)

    test "a function is traced twice for each shape and type, however often it is called" do
      test = self()
      call = fn x -> jit(traced(test, &Nx.cos(Nx.add(&1, 1)))).(x) end
      x = Nx.tensor([0.5, 1.5])
      [first | others] = for _ <- 1..5, do: Nx.to_binary(call.(x))
      assert Enum.uniq([first | others]) == [first]
      assert traces() == 2
      assert JitCache.size() == 1

      for _ <- 1..3, do: call.(Nx.tensor([0.5]))
      for _ <- 1..3, do: call.(Nx.tensor([1, 2]))
      for _ <- 1..3, do: call.(Nx.tensor([0.5, 1.5], names: [:x]))
      assert traces() == 6
      assert call.(Nx.tensor([0.5, 1.5], names: [:x])).names == [:x]
      assert call.(Nx.tensor([1, 2])).type == {:f, 32}
      assert JitCache.size() == 4

      assert Compiler.forget() == :ok
      assert JitCache.size() == 0
      call.(x)
      assert traces() == 1
    end

    test "a function of very many parts is known to the process that has it" do
      test = self()
      many = Enum.to_list(1..600_000)
      one = fn n -> traced(test, &Nx.add(&1, length(many) + n)) end
      [first, second] = [one.(1), one.(2)]

      for _ <- 1..4,
          {fun, n} <- [{first, 1}, {second, 2}],
          do: assert(Nx.to_number(jit(fun).(3)) == 600_003 + n)

      assert traces() == 4
      # Nobody else could: that process alone keeps it.
      assert JitCache.size() == 0
      again = Task.async(fn -> for _ <- 1..3, do: Nx.to_number(jit(first).(3)) end)
      assert Task.await(again, 60_000) == [600_004, 600_004, 600_004]
      assert JitCache.size() == 0
      traces()

      Compiler.forget()
      jit(first).(3)
      assert traces() == 1
      assert [{_, _, _, :seen}] = Process.get({JitCache, :own})
    end

    test "is used by functions of modules and by other processes" do
      for _ <- 1..3,
          do: Task.await(Task.async(fn -> jit(&Nx.cumulative_sum/1).(Nx.iota({3})) end), 60_000)

      assert JitCache.size() == 1
      assert Nx.to_flat_list(jit(&Nx.cumulative_sum/1).(Nx.iota({3}))) == [0, 1, 3]
    end

    test "closures over other values are other functions" do
      x = Nx.tensor([0.0, -1.0])

      for _ <- 1..3, n <- [1, 2, 1.0, 2.0] do
        got = jit(&Nx.add(&1, n)).(Nx.tensor([1, 2]))
        assert got.type == if(is_float(n), do: {:f, 32}, else: {:s, 32})
        assert Nx.to_number(got[0]) == 1 + n
      end

      for _ <- 1..3, {zero, want} <- [{0.0, :neg_infinity}, {-0.0, :infinity}] do
        assert Nx.to_number(jit(&Nx.divide(&1, zero)).(x)[1]) == want
      end

      for _ <- 1..3, n <- [1, 2] do
        t = Nx.tensor([n, n], backend: Nx.BinaryBackend)
        assert Nx.to_flat_list(jit(&Nx.add(&1, t)).(Nx.tensor([1, 2]))) == [1 + n, 2 + n]
      end
    end

    test "arguments that no tensor is decide too" do
      fun = fn x, opts -> Nx.sum(x, opts) end
      x = Nx.iota({2, 3})

      for _ <- 1..3, axis <- [0, 1] do
        assert Nx.shape(jit(fun).(x, axes: [axis])) == if(axis == 0, do: {3}, else: {2})
      end

      for _ <- 1..3 do
        assert %{a: _, b: _} = jit(fn %{a: a, b: b} -> %{a: b, b: a} end).(%{a: 1, b: 2})
      end
    end

    test "code that is loaded anew is what runs then" do
      for n <- 1..3 do
        :code.purge(Nx.Vulkan.JitCacheTest.Helper)
        :code.delete(Nx.Vulkan.JitCacheTest.Helper)

        Code.compile_string("""
        defmodule Nx.Vulkan.JitCacheTest.Helper do
          def add(x), do: Nx.add(x, #{n})
        end
        """)

        for _ <- 1..4 do
          got = jit(&apply(Nx.Vulkan.JitCacheTest.Helper, :add, [&1])).(Nx.tensor([0, 1]))
          assert Nx.to_flat_list(got) == [n, n + 1]
        end
      end

      # A function can ask whether a module is there.
      asks = fn x ->
        if Code.ensure_loaded?(Nx.Vulkan.JitCacheTest.Another), do: x, else: Nx.negate(x)
      end

      for _ <- 1..3, do: assert(Nx.to_number(jit(asks).(1)) == -1)
      Code.compile_string("defmodule Nx.Vulkan.JitCacheTest.Another, do: def(a, do: 1)")
      for _ <- 1..3, do: assert(Nx.to_number(jit(asks).(1)) == 1)
    after
      for module <- [Nx.Vulkan.JitCacheTest.Helper, Nx.Vulkan.JitCacheTest.Another] do
        :code.purge(module)
        :code.delete(module)
      end
    end

    test "a number of functions is kept, and the tensors of few" do
      for n <- 1..700, _ <- 1..2, do: jit(&Nx.add(&1, n)).(Nx.tensor([1, 2]))
      assert JitCache.size() == 512
      assert terms() == 512
      assert Nx.to_flat_list(jit(&Nx.add(&1, 1)).(Nx.tensor([1, 2]))) == [2, 3]

      # 60 MiB each that no argument changes.
      Compiler.forget()

      for n <- 1..5, _ <- 1..2 do
        tables = fn x ->
          for k <- 1..60, do: Nx.take(Nx.add(Nx.iota({262_144}), 1000 * k + n), x)
        end

        got = jit(&List.to_tuple(tables.(&1))).(Nx.tensor([3, 0]))
        assert Nx.to_flat_list(elem(got, 1)) == [2003 + n, 2000 + n]
      end

      assert JitCache.size() == 4
      assert terms() == 4
    end

    test "what functions close over counts too" do
      for n <- 1..24, task = Task.async(fn -> closes_over(n) end), do: Task.await(task, 60_000)
      assert JitCache.size() == div(268_435_456, 15_000_000)
    end

    defp closes_over(n) do
      binary = :binary.copy(<<n>>, 15_000_000)
      for _ <- 1..3, do: jit(fn x -> Nx.add(x, byte_size(binary)) end).(1)
    end

    test "what closes over much, has hooks or no routine is not kept" do
      much = :binary.copy("x", 20_000_000)
      much = jit(fn x -> Nx.add(x, byte_size(much)) end)
      for _ <- 1..3, do: assert(Nx.to_number(much.(1)) == 20_000_001)
      assert Process.get({JitCache, :own}) == nil

      test = self()
      hooked = jit(&Nx.Defn.Kernel.hook(&1, :name), hooks: %{name: &send(test, {:hook, &1})})
      for _ <- 1..3, do: hooked.(1)
      for _ <- 1..3, do: assert_received({:hook, _})
      assert JitCache.size() == 0

      vectorized = jit(fn x -> Nx.devectorize(Nx.add(Nx.vectorize(x, :rows), 1)) end)
      for _ <- 1..3, do: assert(Nx.to_flat_list(vectorized.(Nx.tensor([1, 2]))) == [2, 3])
    end

    test "errors are what they are op by op" do
      for _ <- 1..3 do
        assert_raise ArgumentError,
                     ~r/could not be broadcast|incompatible|cannot broadcast/,
                     fn ->
                       jit(&Nx.add(&1, Nx.iota({3}))).(Nx.iota({2}))
                     end
      end

      divide = jit(&Nx.quotient(&1, 0))
      for _ <- 1..3, do: assert_raise(ArithmeticError, fn -> divide.(Nx.tensor([1])) end)
    end

    test "processes that call at once get what is theirs" do
      1..8
      |> Task.async_stream(
        fn n ->
          for _ <- 1..20 do
            assert Nx.to_flat_list(jit(&Nx.add(&1, n)).(Nx.tensor([1, 2]))) == [1 + n, 2 + n]
          end
        end,
        timeout: 60_000
      )
      |> Enum.each(&assert match?({:ok, _}, &1))
    end

    test "parameters that lazy containers compute with or order are told apart" do
      [a, b] = for at <- 0..1, do: Nx.Defn.Expr.parameter(Nx.template({}, :f32), :root, at)
      given = for x <- [5.0, 2.0], do: fn -> Nx.tensor(x) end
      subtract = fn [{x, y}] -> Nx.subtract(x, y) end

      call = fn var ->
        [got] = Compiler.__jit__(subtract, [var], subtract, [given], [])
        Nx.to_number(got)
      end

      for _ <- 1..4 do
        assert call.({a, b}) == 3
        assert call.({b, a}) == -3
        assert call.({Nx.add(a, a), b}) == 8
        assert call.({Nx.negate(a), b}) == -7
      end
    end

    test "what is killed on the way leaves nothing" do
      for n <- 1..60 do
        work = fn -> for _ <- 1..3, do: jit(&Nx.add(&1, n)).(Nx.tensor([1, 2])) end
        {pid, monitor} = spawn_monitor(work)
        Process.sleep(rem(n, 4))
        Process.exit(pid, :kill)
        assert_receive {:DOWN, ^monitor, _, _, _}
      end

      # The cache hears of the last ones soon.
      Compiler.forget()
      assert eventually(fn -> JitCache.size() == 0 and terms() == 0 end)
    end

    test "calls go on while the application ends and starts" do
      callers =
        for n <- 1..3 do
          Task.async(fn ->
            for k <- 1..2_000 do
              assert Nx.to_number(jit(&Nx.add(&1, rem(k, 5) + n)).(1)) == 1 + rem(k, 5) + n
            end
          end)
        end

      Process.sleep(20)
      Process.exit(Process.whereis(JitCache), :kill)
      Process.sleep(20)

      ExUnit.CaptureLog.capture_log(fn ->
        :ok = Application.stop(:nx_vulkan)
        # A caller may be about to take back what it has just put there.
        assert eventually(fn -> terms() == 0 end)
        Process.sleep(20)
        {:ok, _} = Application.ensure_all_started(:nx_vulkan)
      end)

      Enum.each(callers, &Task.await(&1, 60_000))
      for _ <- 1..3, do: jit(&Nx.cos/1).(1.0)
      assert JitCache.size() > 0
      Compiler.forget()
      assert terms() == 0
    end

    test "what was announced to a process that was killed does no harm to the next one" do
      add = &Nx.add(&1, 1)
      assert JitCache.fetch(add, [], :backend) == :new
      {:put, {id, generation, _}} = JitCache.fetch(add, [], :backend)
      pid = Process.whereis(JitCache)
      assert GenServer.call(JitCache, {:put, id, generation, make_ref(), 0}) == :ok
      assert Process.whereis(JitCache) == pid
    end

    test "a function that several processes compile at once is kept once" do
      slow = fn x ->
        Process.sleep(100)
        Nx.add(x, 1)
      end

      1..6
      |> Task.async_stream(fn _ -> for _ <- 1..3, do: jit(slow).(1) end, timeout: 60_000)
      |> Stream.run()

      assert JitCache.size() == 1
      assert terms() == 1
    end

    test "what is shared over and over costs no more than what is large" do
      shared = Enum.reduce(1..40, [1], fn _, term -> [term, term] end)
      fun = jit(fn x -> Nx.add(x, length(shared)) end)
      {micros, _} = :timer.tc(fn -> for _ <- 1..3, do: fun.(1) end)
      assert micros < 60_000_000
      assert JitCache.size() == 0
    end

    test "a module that is loaded while others call is seen at once" do
      busy = spawn_link(fn -> Enum.each(Stream.cycle([1]), fn _ -> jit(&Nx.cos/1).(1.0) end) end)

      for n <- 1..20 do
        :code.purge(Nx.Vulkan.JitCacheTest.Helper)

        Code.compile_string("""
        defmodule Nx.Vulkan.JitCacheTest.Helper do
          def add(x), do: Nx.add(x, #{n})
        end
        """)

        for _ <- 1..4 do
          got = jit(&apply(Nx.Vulkan.JitCacheTest.Helper, :add, [&1])).(0)
          assert Nx.to_number(got) == n
        end
      end

      Process.unlink(busy)
      Process.exit(busy, :kill)
    after
      :code.purge(Nx.Vulkan.JitCacheTest.Helper)
      :code.delete(Nx.Vulkan.JitCacheTest.Helper)
    end

    test "results are on the device from the first call on" do
      constant = jit(fn x -> {Nx.tensor([1, 2]), Nx.add(x, 1)} end)

      for _ <- 1..3 do
        {a, b} = constant.(Nx.tensor(1, backend: Nx.BinaryBackend))
        assert is_struct(a.data, VulkanoBackend) and is_struct(b.data, VulkanoBackend)
      end
    end
  end
end
