if Code.ensure_loaded?(Nx) do
  defmodule Nx.Vulkan.RoutineTest do
    use ExUnit.Case, async: true

    import Nx.Vulkan.Routines

    alias Nx.Vulkan.{Compiler, Routine, Trace, VulkanoBackend}

    @backend {VulkanoBackend, []}

    setup do
      Nx.default_backend(VulkanoBackend)
      :ok
    end

    defmodule Defns do
      @moduledoc false
      import Nx.Defn

      defn(count(x), do: while(x, x > 0, do: x - 1))

      defn rows(x) do
        {_, sum, _} =
          while {i = 0, sum = x[0] * 0, x}, i < 4 do
            {i + 1, Nx.sin(sum) + x[i] * i, x}
          end

        sum
      end

      defn pick(n, x) do
        twice = x * 2
        more = n + 1

        {a, b} =
          cond do
            more > 4 -> {twice + n, Nx.exp(x)}
            n * more > 0 -> {Nx.exp(x) * twice, if(n > 1, do: x, else: -twice)}
            true -> {x, twice}
          end

        a + b + Nx.exp(x)
      end

      defn nested(n) do
        {_, total} =
          while {n, total = 1.0}, n > 0 do
            {_, _, total} =
              while {k = n, n, total}, k > 0 do
                {k - 1, n, if(k > 1, do: total * 1.5, else: total + n)}
              end

            {n - 1, total}
          end

        total
      end
    end

    test "ops that follow each other are one program, with views among them" do
      fun = fn x, w ->
        h = Nx.dot(x, w) |> Nx.sigmoid() |> Nx.transpose()
        rows = h[0..1] |> Nx.reshape({2, 2, 1}) |> Nx.squeeze(axes: [2]) |> Nx.reverse(axes: [0])
        bits = Nx.bitcast(rows, :s32)
        {Nx.add(rows, Nx.broadcast(Nx.sum(h, axes: [1])[0], {2, 2})), %{bits: bits}}
      end

      x = Nx.tensor([[0.5, -1.0, 2.0], [0.25, 1.0, 1.5]], names: [:a, :b])
      w = Nx.iota({3, 4}, type: :f32)
      same(fun, [x, w])
      assert [%{program: program, checks: []}] = routine(fun, [x, w]).parts
      assert is_reference(program)
    end

    test "scalars that are reduced, many tensors that are joined, slices with starts of the device" do
      same(fn x -> {Nx.sum(x), Nx.argmax(x), Nx.sort(Nx.new_axis(x, 0))} end, [Nx.tensor(3.0)])
      same(fn x -> Nx.concatenate(List.duplicate(Nx.multiply(x, x), 70)) end, [Nx.iota({3})])

      same(fn x, at -> Nx.add(x[[at, 0..1]], Nx.slice(x, [Nx.add(at, 1), 0], [1, 2])[0]) end, [
        Nx.iota({4, 3}),
        Nx.tensor(2)
      ])

      same(fn x, at -> Nx.put_slice(Nx.negate(x), [at], Nx.tensor([7, 8])) end, [
        Nx.iota({6}),
        Nx.tensor(3)
      ])
    end

    test "slices that begin where the device finds are a part of the program" do
      fun = fn x, at ->
        last = Nx.argmax(x[0])
        rows = Nx.slice(Nx.exp(x), [at, 1], [2, 4], strides: [1, 2])
        columns = Nx.slice(x, [1, last], [2, 3], strides: [1, 2])
        both = Nx.slice(Nx.negate(x), [Nx.subtract(at, 1), Nx.as_type(last, :u8)], [3, 2])
        {rows, Nx.sum(columns), Nx.multiply(both, 2)}
      end

      x = Nx.iota({5, 6}, type: :f32)
      assert [%{program: program}] = routine(fun, [x, Nx.tensor(0)]).parts
      assert is_reference(program)
      # Behind the end, and before the beginning, they move to where they fit.
      for at <- [0, 2, 3, 9, -7, 2_147_483_647, -2_147_483_648], do: same(fun, [x, Nx.tensor(at)])
      same(fun, [Nx.as_type(x, :s8), Nx.tensor(3, type: :u64)])

      # One that is large is a view wherever the VM knows its start.
      large = fn x, at -> Nx.add(Nx.slice(Nx.negate(x), [at], [300_000]), 1) end
      args = [Nx.iota({300_010}), Nx.tensor(7)]
      assert Enum.any?(Enum.flat_map(routine(large, args).parts, & &1.steps), &(&1.native == nil))
      same(large, args)
    end

    test "blocks, with one result and several" do
      a = Nx.tensor([[4.0, 1.0], [1.0, 3.0]])

      same(fn a -> {Nx.cumulative_sum(Nx.exp(a)), Nx.take(Nx.negate(a), Nx.tensor([1, 0]))} end, [
        a
      ])

      same(
        fn a ->
          {q, r} = Nx.LinAlg.qr(a)
          Nx.dot(q, r)
        end,
        [a]
      )

      same(
        fn a ->
          {l, u} = Nx.top_k(Nx.multiply(a, 2), k: 1)
          {l, u}
        end,
        [a]
      )
    end

    test "results that are arguments, constants, and one tensor twice" do
      same(fn x, y -> {y, x, Nx.tensor([1, 2]), {Nx.add(x, 1), Nx.add(x, 1)}, Nx.iota({2})} end, [
        Nx.tensor([1, 2]),
        Nx.tensor(2.5)
      ])

      same(fn -> Nx.iota({3}) end, [])
      got = Nx.Defn.compile(&Nx.multiply/2, [2, Nx.template({2}, :s32)], compiler: Compiler)
      assert Nx.to_flat_list(got.(3, Nx.tensor([1, 2], backend: Nx.BinaryBackend))) == [3, 6]
    end

    test "the same op on the same operands runs once, and what no argument changes when it is compiled" do
      fun = fn x ->
        angles = Nx.cos(Nx.multiply(Nx.iota({4}), 0.1))

        Nx.add(
          Nx.multiply(Nx.exp(x), angles),
          Nx.divide(Nx.exp(x), Nx.cos(Nx.multiply(Nx.iota({4}), 0.1)))
        )
      end

      x = Nx.tensor([0.0, 1.0, 2.0, 3.0])
      assert Enum.sort(ops(fun, [x])) == [:add, :divide, :exp, :multiply]
      same(fun, [x])
      # What takes more than a megabyte is not kept.
      assert ops(fn x -> Nx.add(x, Nx.iota({1025, 256})) end, [Nx.tensor(1)]) == [:iota, :add]
    end

    test "loops and branches, inside of each other, with what is computed outside" do
      for {fun, args} <- [
            {&Defns.count/1, [Nx.tensor(5)]},
            {&Defns.rows/1, [Nx.iota({4, 3}, type: :f32)]},
            {&Defns.pick/2, [Nx.tensor(5), Nx.tensor([1.0, 2.0])]},
            {&Defns.pick/2, [Nx.tensor(2), Nx.tensor([1.0, 2.0])]},
            {&Defns.pick/2, [Nx.tensor(-2), Nx.tensor([1.0, 2.0])]},
            {&Defns.nested/1, [Nx.tensor(3)]},
            {fn key -> Nx.Random.normal(key, shape: {2, 5}) end, [Nx.Random.key(7)]}
          ] do
        assert {:ok, _} = Routine.new(Trace.of(fun, args), @backend)
        same(fun, args)
      end
    end

    test "what a loop counts with stays known" do
      run = Nx.Defn.compile(&Defns.count/1, [1], compiler: Compiler)
      assert Nx.Vulkan.NativeV.constant_of(run.(3).data.ref) != nil
    end

    test "hooks run, in their order, and only where somebody listens" do
      test = self()
      say = fn name -> &send(test, {name, Nx.to_flat_list(&1.twice)}) end

      fun = fn x ->
        y = Nx.Defn.Kernel.hook(%{twice: Nx.multiply(x, 2), x: x}, :first).twice
        z = Nx.Defn.Kernel.hook(Nx.add(y, 1), :nobody)
        Nx.Defn.Kernel.hook(%{twice: Nx.negate(z)}, :second, say.(:given)).twice
      end

      x = Nx.tensor([1, 2])
      hooks = %{first: say.(:first)}
      run = Nx.Defn.compile(fun, [x], compiler: Compiler, hooks: hooks)
      assert {:ok, _} = Routine.new(Trace.of(fun, [x]), @backend, hooks: hooks)
      assert Nx.to_flat_list(run.(x)) == [-3, -5]
      assert {:messages, [first: [2, 4], given: [-3, -5]]} = Process.info(self(), :messages)
    end

    test "a hook whose value a branch reads too runs once, and after what comes before it" do
      test = self()
      say = fn name -> &send(test, {name, Nx.to_number(&1)}) end

      fun = fn x ->
        first = Nx.Defn.Kernel.hook(Nx.add(x, 1), :first, say.(:first))

        inner = fn -> Nx.Defn.Kernel.hook(Nx.add(first, 1), :second, say.(:second)) end
        y = Nx.Defn.Expr.cond([{Nx.greater(x, 0), inner.()}], x)
        Nx.add(y, first)
      end

      run = Nx.Defn.compile(fun, [Nx.tensor(1)], compiler: Compiler)
      assert Nx.to_number(run.(1)) == 5
      assert {:messages, [first: 2, second: 3]} = Process.info(self(), :messages)
    end

    test "branches in branches of branches are for the evaluator" do
      chain = fn x ->
        Enum.reduce(1..8, x, fn i, y ->
          Nx.Defn.Expr.cond([{Nx.greater(x, i), Nx.add(y, i)}], Nx.subtract(y, 1))
        end)
      end

      assert Routine.new(Trace.of(chain, [Nx.tensor(3)]), @backend) == :error
      same(chain, [Nx.tensor(3)])
    end

    defmodule Scaled do
      @moduledoc false
      defstruct by: 1
    end

    test "blocks with functions of their own stay apart" do
      block = fn x, fun -> Nx.block(%Scaled{by: 2}, [x], x, fn _, x -> fun.(x) end) end
      fun = fn x -> {block.(x, &Nx.add(&1, 1)), block.(x, &Nx.multiply(&1, 5))} end
      same(fun, [Nx.tensor([1, 2, 3])])
    end

    test "results may be deallocated, and the function copied to another process" do
      fun = fn x -> {Nx.add(x, 1), Nx.add(x, 1), Nx.iota({3}), Nx.tensor([4, 5, 6])} end
      run = Nx.Defn.compile(fun, [Nx.template({3}, :s32)], compiler: Compiler)

      for _ <- 1..3 do
        {gone, left, kept, literal} = run.(Nx.tensor([1, 2, 3]))
        assert Nx.to_flat_list(kept) == [0, 1, 2] and Nx.to_flat_list(literal) == [4, 5, 6]
        for tensor <- [gone, kept, literal], do: assert(Nx.backend_deallocate(tensor) == :ok)
        assert Nx.to_flat_list(left) == [2, 3, 4]
      end

      # Each step reads the one before twice: expressions would be 2^60 of them in a copy.
      doubled = fn x -> Enum.reduce(1..60, x, fn _, x -> Nx.add(x, x) |> Nx.remainder(7) end) end
      run = Nx.Defn.compile(doubled, [Nx.template({}, :s32)], compiler: Compiler)
      assert Task.await(Task.async(fn -> Nx.to_number(run.(1)) end), 60_000) == 1
    end

    test "closures and vectors are for the evaluator" do
      for {fun, args} <- [
            {fn x -> Nx.reduce(x, 0, fn a, b -> Nx.add(a, b) end) end, [Nx.iota({3})]},
            {fn x -> Nx.sum(Nx.vectorize(x, :rows)) end, [Nx.iota({2, 3})]}
          ] do
        assert Routine.new(Trace.of(fun, args), @backend) == :error
        same(fun, args)
      end
    end

    test "what the VM knows to have no result raises at the call, what the device finds when it is read" do
      take =
        Nx.Defn.compile(
          fn x, at -> Nx.negate(Nx.take(x, Nx.as_type(at, :s64))) end,
          [
            Nx.template({3}, :f32),
            Nx.template({2}, :s32)
          ],
          compiler: Compiler
        )

      x = Nx.tensor([1.0, 2.0, 3.0])
      assert Nx.to_flat_list(take.(x, Nx.tensor([2, 0]))) == [-3.0, -1.0]
      far = take.(x, Nx.tensor([2, 3]))
      assert_raise ArgumentError, fn -> Nx.to_binary(far) end

      factor =
        Nx.Defn.jit(fn a -> Nx.add(Nx.LinAlg.cholesky(a), 1) end, compiler: Compiler)

      for _ <- 1..3 do
        assert_raise ArithmeticError, fn -> factor.(Nx.tensor([[1.0, 2.0], [2.0, 1.0]])) end

        assert Nx.to_flat_list(factor.(Nx.tensor([[4.0, 0.0], [0.0, 1.0]]))) == [
                 3.0,
                 1.0,
                 1.0,
                 2.0
               ]
      end

      rest =
        Nx.Defn.compile(fn x, y -> Nx.quotient(Nx.add(x, 1), y) end, [1, 1], compiler: Compiler)

      assert Nx.to_number(rest.(6, 2)) == 3
      assert_raise ArithmeticError, fn -> rest.(6, 0) end
    end

    test "an error is that of the op" do
      add =
        Nx.Defn.compile(fn x, y -> Nx.exp(Nx.add(x, y)) end, [Nx.template({2}, :f32), 1],
          compiler: Compiler
        )

      gone = Nx.tensor([1.0, 2.0])
      Nx.backend_deallocate(gone)

      assert_raise ArgumentError, ~r/expected a live tensor, got: one that was deallocated/, fn ->
        add.(gone, 1)
      end

      assert Nx.to_flat_list(add.(Nx.tensor([0.0, 0.0]), 0)) == [1.0, 1.0]
    end

    test "what packs do not run is run by the host, and counted" do
      shape = Tuple.duplicate(1, 17)
      counted = fn -> Map.get(Map.new(Nx.Vulkan.NativeV.fallback_counts()), "cbrt", 0) end
      fun = fn x -> Nx.cbrt(Nx.multiply(x, 2.0)) end
      run = Nx.Defn.compile(fun, [Nx.template(shape, :f32)], compiler: Compiler)
      before = counted.()
      assert Nx.to_flat_list(run.(Nx.broadcast(4.0, shape))) == [2.0]
      assert counted.() == before + 1
    end
  end
end
