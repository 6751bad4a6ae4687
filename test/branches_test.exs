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

    for name <- [:guarded, :guarded_below, :guarded_in_conditions, :computed_anyway, :counted] do
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

    test "a hook that branches of several conds share is called where one of them is taken, once" do
      test = self()
      x = Nx.tensor([10, 20])

      for compiler <- [Nx.Defn.Evaluator, Compiler], n <- 0..2 do
        hooks = %{shared: &send(test, {:shared, Nx.to_flat_list(&1)})}
        Nx.Defn.jit(&Defns.hooked/2, compiler: compiler, hooks: hooks).(x, n)
        if n > 0, do: assert_received({:shared, [30, 60]})
        refute_received {:shared, _}
      end
    end
  end
end
