if Code.ensure_loaded?(Nx) do
  defmodule Nx.Vulkan.JitCacheTest do
    # What is kept is kept for the whole VM, and loading a module gives it back.
    use ExUnit.Case, async: false

    alias Nx.Vulkan.{Compiler, JitCache, VulkanoBackend}

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

    test "is used by functions of modules and by other processes" do
      for _ <- 1..3,
          do: Task.await(Task.async(fn -> jit(&Nx.cumulative_sum/1).(Nx.iota({3})) end))

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

      # Nothing that is loaded for the first time can have been called.
      size = JitCache.size()
      assert size > 0
      Code.compile_string("defmodule Nx.Vulkan.JitCacheTest.Another, do: def(a, do: 1)")
      jit(&Nx.cos/1).(1)
      assert JitCache.size() == size
    after
      for module <- [Nx.Vulkan.JitCacheTest.Helper, Nx.Vulkan.JitCacheTest.Another] do
        :code.purge(module)
        :code.delete(module)
      end
    end

    test "a number of functions is kept, and the tensors of few" do
      for n <- 1..300, _ <- 1..2, do: jit(&Nx.add(&1, n)).(Nx.tensor([1, 2]))
      assert JitCache.size() == 256
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
    end

    test "what closes over much, has hooks or no routine is not kept" do
      much = :binary.copy("x", 5_000_000)
      much = jit(fn x -> Nx.add(x, byte_size(much)) end)
      for _ <- 1..3, do: assert(Nx.to_number(much.(1)) == 5_000_001)

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
  end
end
