if Code.ensure_loaded?(Nx) do
  defmodule Nx.Vulkan.ClosureTest do
    # Counts what goes through Nx.BinaryBackend.
    use ExUnit.Case, async: false

    import Nx.Vulkan.Reference, only: [agree: 2]

    alias Nx.Vulkan.Closure

    setup do
      Nx.default_backend(Nx.Vulkan.VulkanoBackend)
      :ok
    end

    @ops ~w(add multiply max min logical_and logical_or)a

    # What `fun` gives, and how often it went through Nx.BinaryBackend.
    defp counted(fun) do
      before = count()
      {fun.(), count() - before}
    end

    defp count do
      ours = Map.take(Nx.Vulkan.stats().fallbacks, ~w(reduce window_reduce))
      ours |> Map.values() |> Enum.sum()
    end

    test "a closure is the op that it computes of its arguments" do
      f32 = {:f, 32}

      for op <- @ops, fun <- [&apply(Nx, op, [&1, &2]), &apply(Nx, op, [&2, &1])] do
        type = if op in [:logical_and, :logical_or], do: {:u, 8}, else: f32
        assert Closure.op(fun, f32, f32) == {op, type}
      end

      assert Closure.op(&Nx.add/2, {:u, 8}, {:s, 32}) == {:add, {:s, 32}}
      assert Closure.op(&Nx.add/2, f32, {:s, 32}) == {:add, f32}

      for fun <- [
            &Nx.subtract/2,
            fn x, _ -> x end,
            fn x, _ -> Nx.add(x, x) end,
            fn x, acc -> Nx.add(Nx.abs(x), acc) end,
            fn x, acc -> if(Nx.to_number(x) > 1, do: acc, else: x) end,
            fn _, _ -> 1 end,
            fn _, _ -> raise "no" end,
            fn _, _ -> throw(:no) end
          ],
          do: assert(Closure.op(fun, f32, f32) == nil)
    end

    test "reductions by an op run on the device" do
      x = Nx.tensor([[1.5, -2.0, 3.0], [0.0, 5.0, -0.5]])

      {_, count} =
        counted(fn ->
          for op <- ~w(add multiply max min)a,
              opts <- [[], [axes: [0]], [axes: [1], keep_axes: true]] do
            agree([x], &Nx.reduce(&1, 2, opts, fn x, acc -> apply(Nx, op, [x, acc]) end))

            agree(
              [Nx.transpose(x)],
              &Nx.reduce(&1, 0.5, opts, fn x, acc -> apply(Nx, op, [acc, x]) end)
            )
          end
        end)

      assert count == 0
    end

    test "truths are reduced" do
      for x <- [[0, 1, 2], [0, 0, 0], [3, 1, 1]],
          acc <- [0, 1],
          op <- ~w(logical_and logical_or)a do
        [x, acc] = for list <- [x, acc], do: Nx.tensor(list, type: :u8)
        agree([x, acc], &Nx.reduce(&1, &2, fn x, acc -> apply(Nx, op, [x, acc]) end))
      end
    end

    test "integers wrap as they do in a closure" do
      for type <- [:u8, :s8, :u32, :s64], op <- [:add, :multiply, :max, :min] do
        x = Nx.tensor([100, 3, 7, 50], type: type)
        acc = Nx.tensor(5, type: type)
        agree([x, acc], &Nx.reduce(&1, &2, fn x, acc -> apply(Nx, op, [x, acc]) end))
      end
    end

    test "windows by an op are padded with the accumulator" do
      x = Nx.tensor([[1.5, -2.0, 3.0], [0.0, 5.0, -0.5]])

      for op <- [:add, :multiply, :max, :min],
          opts <- [[], [padding: :same], [strides: [1, 2]], [padding: [{1, 0}, {0, 2}]]] do
        agree(
          [x],
          &Nx.window_reduce(&1, 2.0, {2, 2}, opts, fn x, acc -> apply(Nx, op, [x, acc]) end)
        )
      end

      {_, count} = counted(fn -> Nx.window_reduce(x, 0.0, {1, 2}, &Nx.add/2) end)
      assert count == 0
    end

    test "other closures run on Nx.BinaryBackend, and one that raises raises" do
      x = Nx.tensor([1.0, 2.0, 3.0])

      {_, count} =
        counted(fn ->
          agree([x], &Nx.reduce(&1, 0.0, fn x, acc -> Nx.add(Nx.sum(x), acc) end))
        end)

      assert count == 1
      agree([x], &Nx.window_reduce(&1, 1.0, {2}, fn x, acc -> Nx.divide(Nx.sum(x), acc) end))
      assert_raise RuntimeError, "no", fn -> Nx.reduce(x, 0.0, fn _, _ -> raise "no" end) end

      assert_raise RuntimeError, "no", fn ->
        Nx.window_reduce(x, 0.0, {2}, fn _, _ -> raise "no" end)
      end
    end

    test "closures of compiled functions are traced too" do
      x = Nx.tensor([[1.0, 2.0], [3.0, 4.0]])
      sum = fn x -> Nx.reduce(x, 10.0, [axes: [1]], fn x, acc -> Nx.add(x, acc) end) end

      {result, count} = counted(fn -> Nx.Defn.jit(sum, compiler: Nx.Vulkan.Compiler).(x) end)
      assert Nx.to_flat_list(result) == [13.0, 17.0]
      assert count == 0
    end
  end
end
