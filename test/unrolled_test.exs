if Code.ensure_loaded?(Nx) do
  defmodule Nx.Vulkan.UnrolledTest do
    # Loops that count with what is known when they are compiled, and those that do not.
    use ExUnit.Case, async: true

    import Nx.Defn

    alias Nx.Vulkan.{Compiler, Steps, Trace, VulkanoBackend}

    setup do
      Nx.default_backend(VulkanoBackend)
      :ok
    end

    defn counted(x) do
      {_, x} =
        while {i = 0, x}, i < 5 do
          {i + 1, Nx.sin(x) + i}
        end

      x
    end

    defn nested(x) do
      {_, x} =
        while {i = 1, x}, i < 4 do
          {x, _} =
            while {x, i}, r <- Nx.tensor([3, 1, 2], type: :u8) do
              {Nx.left_shift(x, r) + i, i}
            end

          {i + 1, x}
        end

      x
    end

    # The slice that starts behind the end is the last one.
    defn sliced(x) do
      {_, _, sum} =
        while {i = -1, x, sum = x[0] * 0}, i < 6 do
          {i + 1, x, sum * 2 + Nx.squeeze(Nx.slice(x, [i], [1]), axes: [0])}
        end

      sum
    end

    defn never(x) do
      {_, x} =
        while {i = 9, x}, i < 5 do
          {i + 1, x * 2}
        end

      x
    end

    defn branching(x) do
      {_, x} =
        while {i = 0, x}, i < 3 do
          x = if Nx.sum(x) > i, do: x / 2, else: x + i
          {i + 1, x}
        end

      x
    end

    defn inside(x) do
      if Nx.sum(x) > 0, do: counted(x), else: counted(-x)
    end

    defn(until(x), do: while(x, Nx.sum(x) > 1, do: x / 2))

    defn long(x) do
      {_, x} =
        while {i = 0, x}, i < 1000 do
          {i + 1, x + i}
        end

      x
    end

    # One is left after the strides, and what it counts with changes only later.
    defn odd(x) do
      {_, _, _, x, _} =
        while {i = 0, j = 0, by = 3, x, y = x[0] * 2}, i < 997 do
          j = Nx.select(j < 500, j + 2, j + by)
          {i + 1, j, by, x * 0.5 + j, y}
        end

      x
    end

    # What is known of `j` ends when the loop in it begins to run.
    defn begins_late(x) do
      {_, j, x} =
        while {i = 0, j = 0.0, x}, i < 300 do
          {_, j, _, _} =
            while {k = 290, j, x, i}, k < i do
              {k + 1, j + x[0], x, i}
            end

          {i + 1, j, x + 1.0}
        end

      x + j
    end

    # What is read of a table is the same at first, and another row later.
    defn table(x) do
      {_, _, _, x} =
        while {i = 0, t = Nx.tensor([1.0, 2.0, 3.0]), c = Nx.tensor(1.0), x}, i < 1000 do
          {i + 1, t, t[Nx.max(i - 998, 0)], x + c}
        end

      x
    end

    # Nothing is left of it but a number.
    defn constant(x) do
      {_, s} =
        while {i = 0, s = 0.5}, i < 300 do
          {i + 1, Nx.sin(s) + i * 0.5}
        end

      x + s
    end

    defn triangle(x) do
      {_, x} =
        while {i = 0, x}, i < 300 do
          {_, _, x} =
            while {j = 0, i, x}, j < Nx.max(i - 280, 0) do
              {j + 1, i, x + 1}
            end

          {i + 1, x}
        end

      x
    end

    defn deep(x) do
      {_, x} =
        while {i = 0, x}, i < 100 do
          {_, x} =
            while {j = 0, x}, j < 100 do
              {j + 1, x + 1}
            end

          {i + 1, x}
        end

      x
    end

    # Nothing of it changes; it is not run.
    defn endless(x) do
      if Nx.sum(x) > 1.0e9 do
        {_, _, x} =
          while {i = 0, j = 0, x}, i < 1 do
            {_, _, x} =
              while {j, i, x}, j < 1 do
                {j, i, x}
              end

            {i, j, x}
          end

        x
      else
        x
      end
    end

    # The smallest numbers of f8 are others again when they are read as numbers.
    defn eighths(x) do
      c = Nx.tensor([1.52587890625e-5, 6.103515625e-5], type: :f8)

      {_, s, x} =
        while {i = 0, s = c[1], x}, i < 3 do
          {i + 1, s / 2, x + s * 32768}
        end

      {s, x}
    end

    # What it counts with comes with an argument after three iterations.
    defn late(x) do
      {_, _, x} =
        while {i = 0, j = 0, x}, j < 3 do
          j = if i > 2, do: Nx.as_type(x[0] * 0 + 3, :s32), else: j
          {i + 1, j, x + 1}
        end

      x
    end

    defp loops(fun, args, op \\ :while) do
      {:ok, steps, _} = Steps.new(Trace.of(fun, args), {VulkanoBackend, []})
      Enum.count(steps.steps, &(&1.op == op))
    end

    defp same!(fun, args) do
      expected = Nx.Defn.jit_apply(fun, args, compiler: Nx.Defn.Evaluator)
      compiled = Nx.Defn.compile(fun, args, compiler: Compiler)

      for _ <- 1..2 do
        got = apply(compiled, args)
        assert {got.shape, got.type} == {expected.shape, expected.type}
        assert Nx.to_binary(got) == Nx.to_binary(expected)
      end
    end

    # More than what is unrolled, over rows that the iteration picks, and into rows of what it gives.
    defn recurrent(x) do
      {_, _, _, out} =
        while {i = 0, h = x[0] * 0, x, out = x * 0}, i < 300 do
          h = Nx.tanh(Nx.dot(x[i], x) * 0.1 + h)
          {i + 1, h, x, Nx.put_slice(out, [i, 0], Nx.new_axis(h, 0))}
        end

      out
    end

    test "a body that picks rows and puts them is one program, for several iterations together" do
      args = [Nx.sin(Nx.iota({300, 300}, type: :f32))]
      {:ok, steps, _} = Steps.new(Trace.of(&recurrent/1, args), {VulkanoBackend, []})
      assert [%{body: body, strides: strides}] = Enum.filter(steps.steps, &(&1.native == nil))
      assert [_ | _] = strides
      assert [%{steps: [_, _ | _]}] = body.parts

      got = Nx.Defn.compile(&recurrent/1, args, compiler: Compiler).(hd(args))
      expected = recurrent(Nx.backend_copy(hd(args), Nx.BinaryBackend))
      apart = got |> Nx.backend_copy(Nx.BinaryBackend) |> Nx.subtract(expected) |> Nx.abs()
      assert Nx.to_number(Nx.reduce_max(apart)) < 1.0e-5
    end

    for {name, args, loops} <- [
          {:counted, [0.5, -1.0, 2.0], 0},
          {:nested, [1, 5, 70_000], 0},
          {:sliced, [3, 5, 7, 11], 0},
          {:never, [1.0, 2.0], 0},
          {:branching, [0.3, 0.9, 4.0], 0},
          {:inside, [0.5, 1.5], 0},
          {:until, [5.0, 7.0], 1},
          {:long, [1.0, 2.0], 0},
          {:odd, [1.0, 2.0], 0},
          {:begins_late, [1.0, 2.0], 1},
          {:table, [1.0, 2.0], 0},
          {:constant, [1.0, 2.0], 0},
          {:triangle, [1.0, 2.0], 0},
          {:late, [1.0, 2.0], 1}
        ] do
      test "#{name} is as with the evaluator, and #{loops} loops" do
        fun = Function.capture(__MODULE__, unquote(name), 1)
        args = [Nx.tensor(unquote(args))]
        same!(fun, args)
        assert loops(fun, args) == unquote(loops)
      end
    end

    test "loops that are too many in each other are told soon" do
      args = [Nx.tensor([1.0, 2.0])]

      for fun <- [&deep/1, &endless/1] do
        {microseconds, _} =
          :timer.tc(fn -> Nx.Defn.compile(fun, args, compiler: Compiler) end)

        assert microseconds < 120_000_000
        same!(fun, args)
      end

      assert loops(&deep/1, args, :strides) == 1
    end

    test "what is known keeps its bits" do
      args = [Nx.tensor([1.0, 2.0], type: :f8)]
      expected = Nx.Defn.jit_apply(&eighths/1, args, compiler: Nx.Defn.Evaluator)
      got = apply(Nx.Defn.compile(&eighths/1, args, compiler: Compiler), args)

      for k <- 0..1 do
        assert Nx.to_binary(elem(got, k)) == Nx.to_binary(elem(expected, k))
      end
    end

    test "what is random takes few requests, and is as on Nx.BinaryBackend" do
      fun = fn key -> key |> Nx.Random.uniform(shape: {64, 33}) |> elem(0) end
      key = Nx.Random.key(7)
      assert loops(fun, [key]) == 0
      compiled = Nx.Defn.compile(fun, [key], compiler: Compiler)
      expected = fun.(Nx.backend_copy(key, Nx.BinaryBackend))
      assert Nx.to_binary(compiled.(key)) == Nx.to_binary(expected)
    end

    test "a hook in a loop runs at each iteration" do
      pid = self()

      fun = fn x ->
        loop_with_hook(x, fn t -> send(pid, {:seen, Nx.to_number(t)}) end)
      end

      compiled = Nx.Defn.compile(fun, [Nx.tensor(1.0)], compiler: Compiler)
      assert Nx.to_number(compiled.(Nx.tensor(1.0))) == 8.0
      for seen <- [2.0, 4.0, 8.0], do: assert_receive({:seen, ^seen})
      refute_receive {:seen, _}, 10
    end

    test "a hook that a loop in a loop gets to later runs as often as with the evaluator" do
      pid = self()
      fun = fn x -> late_hook(x, fn t -> send(pid, {:seen, Nx.to_number(t)}) end) end

      seen = fn compiler ->
        Nx.Defn.compile(fun, [Nx.tensor(1.0)], compiler: compiler).(Nx.tensor(1.0))
        Process.info(self(), :message_queue_len) |> elem(1)
      end

      first = seen.(Nx.Defn.Evaluator)
      assert first == 2 * 300 - 3
      assert seen.(Compiler) == 2 * first
    end

    defn late_hook(x, fun) do
      {_, x} =
        while {i = 0, x}, i < 300 do
          {_, x, _} =
            while {k = 0, x, i}, k < Nx.min(i, 2) do
              {k + 1, hooked(x + 1, fun), i}
            end

          {i + 1, x}
        end

      x
    end

    defn loop_with_hook(x, fun) do
      {_, x} =
        while {i = 0, x}, i < 3 do
          {i + 1, hooked(x * 2, fun)}
        end

      x
    end

    deftransformp(hooked(x, fun), do: Nx.Defn.Kernel.hook(x, fun))
  end
end
