if Code.ensure_loaded?(Nx) do
  defmodule Nx.Vulkan.RandomMovesTest do
    # What moves, joins, pads, sorts and adds up elements, of random shapes and views, here and on Nx.BinaryBackend: the same
    # numbers. Rows are long enough for vectors, and begin anywhere in them. A failure prints its seed.
    use ExUnit.Case, async: true

    alias Nx.Vulkan.VulkanoBackend

    @types [:u8, :s16, :s32, :f32, :f64]
    @cases 60
    @longest 50

    for op <- ~w(pad slice put_slice reverse concatenate window scan sort take)a do
      test "#{op}" do
        for seed <- 1..@cases do
          :rand.seed(:exsss, {seed, :erlang.phash2(unquote(op)), 20_261_129})
          type = Enum.random(@types)
          t = tensor(shape(), type)
          view = view(Nx.rank(t))
          {others, fun} = operation(unquote(op), view.(t), type)

          [ours, theirs] =
            for backend <- [VulkanoBackend, Nx.BinaryBackend] do
              [t | others] = Enum.map([t | others], &Nx.backend_copy(&1, backend))
              Nx.with_default_backend(backend, fn -> apply(fun, [view.(t) | others]) end)
            end

          assert {seed, ours.type, Nx.to_list(ours)} == {seed, theirs.type, Nx.to_list(theirs)}
          assert %VulkanoBackend{} = ours.data
        end
      end
    end

    defp between(low, high), do: low + :rand.uniform(high - low + 1) - 1

    defp shape do
      outer = for _ <- 1..between(0, 2)//1, do: between(1, 4)
      List.to_tuple(outer ++ [between(1, @longest)])
    end

    # Whole numbers, so small that every order of summing gives the same.
    defp tensor(shape, type) do
      numbers = for _ <- 1..Tuple.product(shape), do: between(0, 9)
      Nx.tensor(numbers, type: type, backend: Nx.BinaryBackend) |> Nx.reshape(shape)
    end

    # What lies as it is, turned, backwards, or as every other element of each axis.
    defp view(rank) do
      case between(1, 5) do
        1 -> &Nx.transpose/1
        2 -> &Nx.reverse(&1, axes: [rank - 1])
        3 -> &every_other/1
        _ -> & &1
      end
    end

    defp every_other(t) do
      lengths = Tuple.to_list(t.shape)

      Nx.slice(t, List.duplicate(0, length(lengths)), lengths,
        strides: Enum.map(lengths, fn _ -> 2 end)
      )
    end

    defp operation(:pad, t, type) do
      edges =
        for size <- Tuple.to_list(t.shape) do
          interior = Enum.random([0, 0, 0, 1, 2])
          low = between(-div(size, 2), 4)
          {low, between(-div(size - 1, 2), 4), interior}
        end

      {[tensor({}, type)], &Nx.pad(&1, &2, edges)}
    end

    defp operation(:slice, t, _type) do
      {starts, lengths} = parts(t)
      strides = for _ <- lengths, do: between(1, 3)

      if between(0, 1) == 0 do
        {[], &Nx.slice(&1, starts, lengths, strides: strides)}
      else
        # The first one is read by the device.
        {[Nx.tensor(starts, backend: Nx.BinaryBackend)],
         &Nx.slice(&1, [Nx.sum(&2[0..0]) | tl(starts)], lengths, strides: strides)}
      end
    end

    defp operation(:put_slice, t, type) do
      {starts, lengths} = parts(t)
      {[tensor(List.to_tuple(lengths), type)], &Nx.put_slice(&1, starts, &2)}
    end

    defp operation(:reverse, t, _type) do
      axes = for axis <- 0..(Nx.rank(t) - 1), between(0, 1) == 1, do: axis
      {[], &Nx.add(Nx.reverse(&1, axes: axes), 1)}
    end

    defp operation(:concatenate, t, type) do
      axis = between(0, Nx.rank(t) - 1)
      others = for _ <- 1..2, do: tensor(put_elem(t.shape, axis, between(1, 20)), type)
      {others, &Nx.concatenate([&2, &1, &3], axis: axis)}
    end

    defp operation(:window, t, _type) do
      sizes = Tuple.to_list(t.shape)
      window = for size <- sizes, do: between(1, min(size, 3))
      padding = for _ <- sizes, do: {between(0, 2), between(0, 2)}
      opts = [padding: padding, strides: for(_ <- sizes, do: between(1, 2))]
      op = Enum.random([:window_sum, :window_max, :window_min])
      {[], &apply(Nx, op, [&1, List.to_tuple(window), opts])}
    end

    defp operation(:scan, t, _type) do
      opts = [axis: between(0, Nx.rank(t) - 1), reverse: between(0, 1) == 1]
      op = Enum.random([:cumulative_sum, :cumulative_max, :cumulative_min])
      {[], &apply(Nx, op, [&1, opts])}
    end

    defp operation(:sort, t, _type) do
      opts = [axis: between(0, Nx.rank(t) - 1), direction: Enum.random([:asc, :desc])]
      {[], &Nx.sort(&1, opts)}
    end

    defp operation(:take, t, _type) do
      axis = between(0, Nx.rank(t) - 1)
      places = for _ <- 1..between(1, 40), do: between(0, elem(t.shape, axis) - 1)
      {[Nx.tensor(places, backend: Nx.BinaryBackend)], &Nx.take(&1, &2, axis: axis)}
    end

    # Where a part of a tensor begins, or a little before, and how long it is.
    defp parts(t) do
      lengths = for size <- Tuple.to_list(t.shape), do: between(1, size)

      starts =
        for {size, length} <- Enum.zip(Tuple.to_list(t.shape), lengths),
            do: between(-1, size - length)

      {starts, lengths}
    end
  end
end
