if Code.ensure_loaded?(Nx) do
  defmodule Nx.Vulkan.LaterTest do
    use ExUnit.Case, async: false

    alias Nx.Vulkan.{Compiler, Later, VulkanoBackend}

    setup do
      Nx.default_backend(VulkanoBackend)
      :ok
    end

    defmodule Defns do
      @moduledoc false
      import Nx.Defn

      # A branch and its gradient have all of the products in common.
      defn net(x, w) do
        value_and_grad(w, fn w ->
          if x[0][0] > 100,
            do: Nx.sum(Nx.tanh(Nx.dot(Nx.tanh(Nx.dot(x, w)), w))),
            else: Nx.sum(w)
        end)
      end

      defn twice(x, w) do
        y = Nx.dot(x, w)
        p = x[0][0] > 100
        {if(p, do: Nx.sum(y), else: 0.0), if(p, do: Nx.reduce_max(y), else: 1.0)}
      end

      # One condition needs what another one needs too, and something of its own.
      defn chained(x, w) do
        y = Nx.dot(x, w)
        z = Nx.tanh(y) + 1
        a = if x[0][0] > 100, do: Nx.sum(y), else: 0.0
        b = if x[0][0] > 50, do: Nx.sum(z), else: Nx.sum(x)
        c = if x[0][0] > 200, do: Nx.sum(z * y), else: b
        {a + c, b}
      end

      defn nested(x, w) do
        y = Nx.dot(x, w)

        inner = fn x ->
          a = if x[0][0] > 100, do: Nx.sum(y), else: 0.0
          b = if x[0][1] > 100, do: Nx.reduce_max(y), else: a
          a + b
        end

        if x[0][0] > 50, do: inner.(x), else: Nx.sum(x)
      end

      # What a result and a condition need does not wait.
      defn needed(x, w) do
        y = Nx.dot(x, w)
        a = if y[0][0] > 100, do: Nx.sum(y), else: 0.0
        b = if y[0][0] > 50, do: Nx.reduce_max(y), else: 1.0
        {a, b}
      end

      # What each of the branches needs does not wait either.
      defn in_each(x, w) do
        y = Nx.dot(x, w)
        a = if x[0][0] > 100, do: Nx.sum(y), else: Nx.reduce_max(y)
        b = if x[0][0] > 50, do: Nx.sum(y) + 1, else: a
        {a, b}
      end

      defn in_loop(x, w, n) do
        {x, _, _, _} =
          while {x, w, n, i = 0}, i < n do
            y = Nx.dot(x, w)
            a = if i > 2, do: y * 0.5, else: x
            b = if i > 2, do: y + 1, else: x
            {a + b, w, n, i + 1}
          end

        x
      end

      defn seen_after(x, n) do
        y = Nx.dot(x, x)
        a = if n > 0, do: Nx.sum(y), else: 0
        b = if n > 0, do: Nx.reduce_max(y), else: 1
        hook(a + b, :seen)
      end

      defn raises(x, n) do
        y = Nx.dot(x, x)
        a = if n > 0, do: Nx.sum(y), else: 0
        b = if n > 0, do: hook(Nx.reduce_max(y), :seen), else: 1
        a + b
      end
    end

    defp dots do
      Enum.sum(for {"dot", _, count} <- Nx.Vulkan.stats().served, do: count)
    end

    defp matrix(first),
      do: Nx.tensor([[first, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]])

    for {name, counts} <- [
          net: [{1, 0}, {101, 5}],
          twice: [{1, 0}, {101, 1}],
          chained: [{1, 0}, {60, 1}, {101, 1}, {201, 1}],
          nested: [{1, 0}, {60, 0}, {101, 1}],
          needed: [{1, 1}, {60, 1}],
          in_each: [{1, 1}, {60, 1}]
        ] do
      test "branches compute what they share once, and only where one needs it: #{name}" do
        fun = Function.capture(Defns, unquote(name), 2)
        w = Nx.divide(matrix(1), 10)
        compiled = Nx.Defn.compile(fun, [matrix(1), w], compiler: Compiler)

        for {first, count} <- unquote(Macro.escape(counts)), x = matrix(first), _ <- 1..3 do
          before = dots()
          ours = compiled.(x, w) |> flat()
          assert {first, dots() - before} == {first, count}
          theirs = Nx.Defn.jit_apply(fun, [x, w], compiler: Nx.Defn.Evaluator)
          assert ours == flat(theirs)
        end

        assert kept() == []
      end
    end

    test "what waits in a loop waits in each iteration" do
      args = [matrix(1), Nx.divide(matrix(1), 10), Nx.tensor(5)]
      compiled = Nx.Defn.compile(&Defns.in_loop/3, args, compiler: Compiler)
      theirs = Nx.Defn.jit_apply(&Defns.in_loop/3, args, compiler: Nx.Defn.Evaluator)
      before = dots()
      ours = apply(compiled, args)
      assert dots() - before == 2
      assert flat(ours) == flat(theirs)
      assert kept() == []
    end

    test "nothing is kept once the last branch that needs it has run" do
      test = self()
      hooks = %{seen: fn seen -> send(test, {Nx.to_number(seen), kept()}) end}
      options = [compiler: Compiler, hooks: hooks]
      compiled = Nx.Defn.compile(&Defns.seen_after/2, [Nx.eye(3), Nx.tensor(1)], options)
      before = dots()
      compiled.(Nx.eye(3), Nx.tensor(1))
      assert dots() - before == 1
      assert_received {4, []}
    end

    test "nothing is kept of a run that fails" do
      x = Nx.iota({3, 3})
      hooks = %{seen: fn seen -> if Nx.to_number(seen) > 100, do: raise("too large") end}
      options = [compiler: Compiler, hooks: hooks]
      compiled = Nx.Defn.compile(&Defns.raises/2, [x, Nx.tensor(1)], options)
      assert Nx.to_number(compiled.(Nx.eye(3), Nx.tensor(1))) == 3 + 1
      assert_raise RuntimeError, "too large", fn -> compiled.(x, Nx.tensor(1)) end
      assert kept() == []
      assert Nx.to_number(compiled.(x, Nx.tensor(0))) == 1
    end

    defp kept, do: for({Later, _, _} = key <- Process.get_keys(), do: key)

    defp flat(results),
      do: [results] |> Nx.Defn.Composite.flatten_list() |> Enum.map(&Nx.to_binary/1)
  end
end
