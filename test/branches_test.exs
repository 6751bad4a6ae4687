if Code.ensure_loaded?(Nx) do
  defmodule Nx.Vulkan.BranchesTest do
    use ExUnit.Case, async: true

    alias Nx.Vulkan.{Compiler, VulkanoBackend}

    setup do
      Nx.default_backend(VulkanoBackend)
      :ok
    end

    defmodule Defns do
      @moduledoc false
      import Nx.Defn

      defn(constant(x), do: if(Nx.sum(x) > 0, do: Nx.iota({4}), else: Nx.as_type(x, :s32)))

      defn twice(x) do
        if Nx.sum(x) > 0 do
          y = x * 2
          {y, y}
        else
          {x, x}
        end
      end

      defn replaced(x) do
        {_, y} = while({i = 0, y = Nx.as_type(x, :s32)}, i < 2, do: {i + 1, Nx.iota({4}) + 0 * y})
        {_, z} = while({i = 0, _z = Nx.as_type(x, :s32)}, i < 2, do: {i + 1, Nx.iota({4})})
        {y, z}
      end

      defn guarded(x, n) do
        y = Nx.quotient(x, n)
        a = if n > 0, do: y, else: 0
        b = if n > 0, do: y + 1, else: 0
        a + b
      end

      # What the branches share is a function of what may raise.
      defn guarded_below(x, n) do
        y = Nx.remainder(x, n) * 3
        a = if n > 0, do: y, else: 0
        b = if n > 1, do: y + 1, else: if(n > 0, do: y, else: 1)
        a + b
      end

      # One of the branches is another one's condition.
      defn guarded_in_conditions(x, n) do
        y = Nx.quotient(Nx.sum(x), n)

        a =
          cond do
            n == 0 -> 0
            y > 3 -> y
            true -> 1
          end

        b = if n > 0, do: y, else: 0
        a + b
      end

      defn computed_anyway(x, n) do
        y = Nx.quotient(x, n)
        a = if n > 0, do: y, else: 0
        b = if n > 1, do: y + 1, else: 0
        a + b + y
      end

      defn counted(x, n) do
        {_, y} = while({i = n, y = x}, i > 0, do: {i - 1, y + i})
        a = if n > 2, do: y, else: x
        b = if n > 1, do: y * 2, else: x
        a + b
      end

      defn hooked(x, n) do
        y = hook(x * 3, :shared)
        a = if n > 0, do: y, else: x
        b = if n > 1, do: y + 1, else: x
        a + b
      end

      # The first branch and what is behind it both use the quotient of a condition that may not hold.
      defn in_every_branch(x, n) do
        y = Nx.quotient(x, n + 1)
        a = if n > 0, do: y * 2, else: y - 1
        b = if n > 1, do: y + 1, else: y * y
        a + b
      end

      defn hooked_pair(x, n) do
        {a, b} = hook({x * 3, x + 1}, :shared)
        c = if n > 0, do: a, else: x
        d = if n > 0, do: b, else: x
        c + d
      end

      defn hooked_condition(x, n) do
        y = hook(Nx.sum(x) + n, :shared)

        cond do
          n < 1 -> 0
          y > 3 -> y
          true -> 1
        end
      end

      # The loop is written out where its length is known.
      defn hooked_loop(x, n) do
        {_, y, _} =
          while {i = 0, y = x, n}, i < 3 do
            z = hook(Nx.sum(y), :shared)

            y =
              cond do
                Nx.reduce_max(y) < -100 -> y
                z > 3 -> y + n
                true -> y + 1
              end

            {i + 1, y, n}
          end

        y
      end

      defn loop_with_hook(x, n) do
        {_, w, _} =
          while {i = 0, w = x, most = Nx.reduce_min(x)}, i < most do
            {i + 4, hook(w + 1, :shared), most}
          end

        a = if n > 0, do: w, else: x
        b = if n > 1, do: w + 1, else: x
        a + b
      end

      defn loop_with_hook_in_condition(x, n) do
        {_, w, _} =
          while {i = 0, w = x, most = Nx.reduce_min(x)}, i < most do
            {i + 4, hook(w + 1, :shared), most}
          end

        cond do
          n < 1 -> x
          Nx.sum(w) > 3 -> w
          true -> w + 1
        end
      end

      # A loop that is written out, with branches of many steps.
      defn long_branches(x, n) do
        {_, y, _} =
          while {i = 0, y = x, n}, i < 150 do
            {i + 1, if(n > i, do: chained(y), else: chained(y + 1)), n}
          end

        y
      end

      deftransformp chained(y) do
        Enum.reduce(1..40, y, fn k, y -> Nx.add(Nx.multiply(y, 1.0), k) end)
      end

      defn(seen(x), do: hook(Nx.iota({4}), :seen) + x)
    end

    defp all(results), do: Nx.Defn.Composite.flatten_list([results])

    # Whoever has a result may free it, whatever the next call returns.
    for name <- [:constant, :twice, :replaced], free <- [:deallocate, :transfer] do
      test "results of #{name} may be given up: #{free}" do
        fun = Function.capture(Defns, unquote(name), 1)
        x = Nx.tensor([1.0, 2.0, 3.0, 4.0])
        expected = fun |> Nx.Defn.jit_apply([x]) |> all() |> Enum.map(&Nx.to_flat_list/1)
        compiled = Nx.Defn.compile(fun, [x], compiler: Compiler)
        # The first call of a jitted function is the evaluator's, which returns one tensor twice.
        jitted = if unquote(name) != :twice, do: Nx.Defn.jit(fun, compiler: Compiler)

        for call <- [compiled, jitted], call != nil, _ <- 1..4 do
          got =
            for result <- all(call.(x)) do
              list = Nx.to_flat_list(result)

              case unquote(free) do
                :deallocate -> Nx.backend_deallocate(result)
                :transfer -> Nx.backend_transfer(result, Nx.BinaryBackend)
              end

              list
            end

          assert got == expected
        end

        assert Nx.to_flat_list(x) == [1.0, 2.0, 3.0, 4.0]
      end
    end

    test "a hook may free what it gets" do
      free = fn tensor -> Nx.backend_deallocate(tensor) end
      options = [compiler: Compiler, hooks: %{seen: free}]
      compiled = Nx.Defn.compile(&Defns.seen/1, [Nx.iota({4})], options)
      for _ <- 1..3, do: assert(Nx.to_flat_list(compiled.(Nx.iota({4}))) == [0, 2, 4, 6])
    end

    for name <- [
          :guarded,
          :guarded_below,
          :guarded_in_conditions,
          :computed_anyway,
          :counted,
          :in_every_branch
        ] do
      test "what branches of several conds share: #{name}" do
        fun = Function.capture(Defns, unquote(name), 2)
        x = Nx.tensor([10, 20])
        compiled = Nx.Defn.compile(fun, [x, 1], compiler: Compiler)

        for n <- 0..4 do
          # This one divides by 0 for the evaluator too.
          unless unquote(name) == :computed_anyway and n == 0 do
            expected = Nx.Defn.jit_apply(fun, [x, n], compiler: Nx.Defn.Evaluator)
            assert Nx.to_binary(compiled.(x, Nx.tensor(n))) == Nx.to_binary(expected), "#{n}"
          end
        end
      end
    end

    test "a hook that branches share is called where one of them is taken, once" do
      test = self()
      x = Nx.tensor([10, 20])

      for fun <- [
            &Defns.hooked/2,
            &Defns.hooked_pair/2,
            &Defns.hooked_condition/2,
            &Defns.hooked_loop/2,
            &Defns.loop_with_hook/2,
            &Defns.loop_with_hook_in_condition/2
          ],
          n <- 0..2 do
        hooks = %{shared: &send(test, {:shared, Nx.Defn.Composite.flatten_list([&1])})}

        [theirs, ours] =
          for compiler <- [Nx.Defn.Evaluator, Compiler] do
            Nx.Defn.compile(fun, [x, n], compiler: compiler, hooks: hooks).(x, Nx.tensor(n))
            heard()
          end

        assert theirs == ours, "#{inspect(fun)} of #{n}"
        if n > 0, do: assert(ours != [])
      end
    end

    defp heard do
      receive do
        {:shared, tensors} -> [Enum.map(tensors, &Nx.to_flat_list/1) | heard()]
      after
        0 -> []
      end
    end

    test "a loop that is written out stays steps, whatever its branches have" do
      args = [Nx.tensor([1.0, 2.0]), 70]
      expr = Nx.Vulkan.Trace.of(&Defns.long_branches/2, args)
      assert {:ok, _, _} = Nx.Vulkan.Steps.new(expr, {VulkanoBackend, []})
    end

    test "many risks beside a small branch stay steps" do
      fun = fn x, n ->
        y = Enum.reduce(1..4_200, x, fn _, y -> Nx.quotient(y, n) end)
        Nx.add(y, choice(n, 0, x, n))
      end

      expr = Nx.Vulkan.Trace.of(fun, [Nx.tensor([1, 2]), Nx.tensor(1)])
      assert {:ok, _, _} = Nx.Vulkan.Steps.new(expr, {VulkanoBackend, []})
    end

    defp choice(n, at, yes, no), do: Nx.Defn.Expr.cond([{Nx.greater(n, at), yes}], no)

    # Sums of branches, each of which uses the sum before.
    defp stacked(x, n, depth, branch) do
      Enum.reduce(1..depth, Nx.quotient(x, n), fn _, y ->
        1..6
        |> Enum.map(&choice(n, &1, branch.(y, &1), Nx.subtract(x, y)))
        |> Enum.reduce(fn t, sum -> Nx.add(t, sum) end)
      end)
    end

    test "branches in branches that share what may raise compile in good time" do
      x = Nx.tensor([10, 20])

      for branch <- [fn y, i -> Nx.multiply(y, i) end, fn _y, i -> Nx.tensor([i, i]) end] do
        fun = &stacked(&1, &2, 4, branch)
        {us, _} = :timer.tc(fn -> Nx.Defn.compile(fun, [x, 1], compiler: Compiler) end)
        assert us < 30_000_000, "#{us} us"
      end

      fun = &stacked(&1, &2, 2, fn y, i -> Nx.multiply(y, i) end)
      expected = Nx.Defn.jit_apply(fun, [x, 3], compiler: Nx.Defn.Evaluator)
      compiled = Nx.Defn.compile(fun, [x, 3], compiler: Compiler)
      assert Nx.to_binary(compiled.(x, Nx.tensor(3))) == Nx.to_binary(expected)
    end

    test "long functions of what may raise compile in time that grows with their length" do
      fun = fn x, n ->
        y = Enum.reduce(1..3_000, Nx.quotient(x, n), fn i, y -> Nx.add(y, i) end)
        a = choice(n, 0, y, x)
        Nx.add(a, choice(n, 1, y, a))
      end

      args = [Nx.tensor([1, 2]), 1]
      {us, _} = :timer.tc(fn -> Nx.Defn.compile(fun, args, compiler: Compiler) end)
      assert us < 30_000_000, "#{us} us"
    end
  end
end
