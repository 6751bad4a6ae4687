if Code.ensure_loaded?(Nx) do
  defmodule Nx.Vulkan.SortTest do
    use ExUnit.Case, async: false

    # The first run after a change of a shader compiles every variant.

    import Nx.Vulkan.Reference, only: [same: 2]

    @types ~w(u8 u16 u32 u64 s8 s16 s32 s64 f16 bf16 f32 f64)a
    @floats ~w(f16 bf16 f32 f64)a

    setup do
      Nx.default_backend(Nx.Vulkan.VulkanoBackend)
      :ok
    end

    # Many equal ones.
    defp values(shape, type, seed \\ 0) do
      low = if type in [:u8, :u16, :u32, :u64], do: 0, else: -20
      list = for i <- 1..Tuple.product(shape), do: low + :erlang.phash2({seed, i}, 40)
      list |> Nx.tensor(type: type) |> Nx.reshape(shape)
    end

    for op <- [:sort, :argsort] do
      test "#{op} of every type along every axis" do
        for type <- @types, axis <- 0..2, direction <- [:asc, :desc] do
          opts = [axis: axis, direction: direction]
          same([values({3, 50, 4}, type)], &apply(Nx, unquote(op), [&1, opts]))
        end
      end

      test "#{op} of views, names, vectors and nothing but one" do
        x = values({4, 6}, :s32)
        op = &apply(Nx, unquote(op), [&1, &2])
        same([Nx.transpose(x)], &op.(&1, axis: 1))
        same([Nx.reverse(x)], &op.(&1, []))
        same([Nx.broadcast(x[0], {3, 6})], &op.(&1, axis: 1))
        same([Nx.rename(x, [:rows, :columns])], &op.(&1, axis: :columns))
        same([x], &Nx.devectorize(op.(Nx.vectorize(&1, :x), axis: 0)))
        same([Nx.tensor([7])], &op.(&1, direction: :desc))
      end

      test "#{op} takes NaN for the highest and zeros for equal" do
        for type <- @floats, direction <- [:asc, :desc] do
          x = Nx.tensor([0.0, :nan, 2, :neg_infinity, -0.0, :infinity, :nan, -1], type: type)
          same([x], &apply(Nx, unquote(op), [&1, [direction: direction]]))
        end
      end
    end

    test "NaN of either sign is the highest" do
      for {type, nan} <- [f8: 0xFF, f8_e4m3fn: 0xFF, f16: 0xFE00, bf16: 0xFFC0, f32: 0xFFC00000] do
        bits = {:u, elem(Nx.Type.normalize!(type), 1)}
        nan = Nx.bitcast(Nx.tensor([nan], type: bits), type)
        x = Nx.concatenate([Nx.tensor([1, -2], type: type), nan, Nx.tensor([3], type: type)])

        for backend <- [Nx.Vulkan.VulkanoBackend, Nx.BinaryBackend] do
          x = Nx.backend_transfer(x, backend)
          assert Nx.to_flat_list(Nx.argsort(x)) == [1, 0, 3, 2]
          assert Nx.to_flat_list(Nx.argsort(x, direction: :desc)) == [2, 3, 0, 1]
          assert [-2.0, 1.0, 3.0, :nan] = Nx.to_flat_list(Nx.sort(x))
        end
      end
    end

    test "indices of any type" do
      x = values({300}, :f32)
      # Nx.BinaryBackend cuts bf16 off; here it is rounded.
      for type <- @types -- [:bf16], do: same([x], &Nx.argsort(&1, type: type))
    end

    test "long lines are sorted by their digits" do
      for type <- [:u8, :s16, :f32, :s64], direction <- [:asc, :desc] do
        x = values({2, 5000}, type, 1)
        same([x], &Nx.argsort(&1, axis: 1, direction: direction))
        same([Nx.transpose(x)], &Nx.sort(&1, axis: 0, direction: direction))
      end
    end

    test "top_k of every type" do
      for type <- @types, k <- [1, 7, 40] do
        x = values({3, 40}, type)
        for place <- [0, 1], do: same([x], &elem(Nx.top_k(&1, k: k), place))
      end

      x = Nx.tensor([0.0, :nan, 2, :neg_infinity, -0.0, :infinity, :nan])
      for place <- [0, 1], do: same([x], &elem(Nx.top_k(&1, k: 5), place))
      x = Nx.vectorize(values({3, 4}, :f32), :x)
      for place <- [0, 1], do: same([x], &Nx.devectorize(elem(Nx.top_k(&1, k: 2), place)))
    end

    test "top_k of long lines, few and many" do
      for type <- [:u8, :f32, :s64], k <- [50, 3000] do
        x = values({2, 9000}, type, 2)
        for place <- [0, 1], do: same([x], &elem(Nx.top_k(&1, k: k), place))
      end
    end

    test "sorts run on the device" do
      x = values({4, 6}, :f32)
      before = Nx.Vulkan.stats().fallbacks
      for op <- [:sort, :argsort], do: apply(Nx, op, [x]) |> Nx.to_binary()
      {values, indices} = Nx.top_k(x, k: 3)
      assert {Nx.shape(values), Nx.type(indices)} == {{4, 3}, {:s, 32}}
      median = Nx.median(x, axis: 1)
      assert Nx.shape(median) == {4}
      assert Nx.Vulkan.stats().fallbacks == before
    end
  end
end
