if Code.ensure_loaded?(Nx) do
  defmodule Nx.Vulkan.ScanTest do
    use ExUnit.Case, async: false

    # The first run after a change of a shader compiles every variant.

    import Nx.Vulkan.Reference, only: [agree: 2, same: 2]

    @ops ~w(cumulative_sum cumulative_product cumulative_min cumulative_max)a
    @integers ~w(u8 u16 u32 u64 s8 s16 s32 s64)a

    setup do
      Nx.default_backend(Nx.Vulkan.VulkanoBackend)
      :ok
    end

    # Small whole numbers: every order of adding them gives the same.
    defp values(shape, type) do
      low = if type in [:u8, :u16, :u32, :u64], do: 0, else: -2
      list = for i <- 1..Tuple.product(shape), do: low + :erlang.phash2({type, i}, 6)
      list |> Nx.tensor(type: type) |> Nx.reshape(shape)
    end

    for op <- @ops do
      test "#{op} of every type along every axis" do
        for type <- @integers ++ ~w(f16 bf16 f32 f64)a, axis <- 0..2, reverse <- [false, true] do
          opts = [axis: axis, reverse: reverse]
          same([values({3, 5, 4}, type)], &apply(Nx, unquote(op), [&1, opts]))
        end
      end

      test "#{op} of views, names and vectors" do
        x = values({4, 6}, :s32)
        op = &apply(Nx, unquote(op), [&1, &2])
        same([Nx.transpose(x)], &op.(&1, axis: 1))
        same([Nx.reverse(x)], &op.(&1, []))
        same([Nx.broadcast(x[0], {3, 6})], &op.(&1, axis: 0))
        same([Nx.rename(x, [:rows, :columns])], &op.(&1, axis: :columns))
        same([x], &Nx.devectorize(op.(Nx.vectorize(&1, :x), axis: 0)))
        same([Nx.tensor([1.0, :nan, 2.0, :infinity])], &op.(&1, axis: -1))
      end
    end

    test "complex numbers add up" do
      agree([Nx.tensor([Complex.new(1, 2), Complex.new(0.5, -1), 3])], &Nx.cumulative_sum/1)
      agree([Nx.tensor([Complex.new(1, 2), Complex.new(0.5, -1), 3])], &Nx.cumulative_product/1)
    end

    test "a long line is scanned in parts" do
      n = 300_001
      sums = Nx.cumulative_sum(Nx.broadcast(Nx.tensor(1, type: :s64), {n}))
      assert Nx.to_number(Nx.all(Nx.equal(sums, Nx.add(Nx.iota({n}, type: :s64), 1)))) == 1
    end

    test "scans run on the device" do
      x = values({4, 6}, :f32)
      before = Nx.Vulkan.stats().fallbacks
      for op <- @ops, do: apply(Nx, op, [x, [axis: 1]]) |> Nx.to_binary()
      assert Nx.Vulkan.stats().fallbacks == before
    end
  end
end
