defmodule Nx.Vulkan.NativeViewsTest do
  use ExUnit.Case, async: true

  alias Nx.Vulkan.{Device, NativeV, Request}

  @u16 {:u, 16}
  @huge 0xFFFF_FFFF_FFFF_FFFF

  setup_all do
    %{device: Device.fetch!(Device.default())}
  end

  test "axes named twice, missing, negative or huge, and lengths that differ, are errors",
       context do
    a = upload(context.device, {2, 1, 3})

    for axes <- [[0, 0, 2], [0, 1], [0, 1, 2, 2], [0, 1, 3], [0, 1, @huge], []],
        do: refused(NativeV.transpose(a, axes), "transpose")

    for axes <- [[0], [1, 1], [3], [@huge], [1, 2]],
        do: refused(NativeV.squeeze(a, axes), "squeeze")

    for {shape, axes} <- [
          {{2, 1, 3}, [0, 1, 1]},
          {{2, 3, 3}, [0, 2, 2]},
          {{2, 2}, [0, 1, 1]},
          {{2, 1, 3}, [0, 1]},
          {{2, 1, 3}, [0, 1, 2, 2]},
          {{2, 1, 3}, [0, 1, 3]},
          {{2, 1, 3}, [0, 1, @huge]},
          {{4, 1, 3}, [0, 1, 2]},
          {{2, 1, 3}, []},
          {{}, [0, 1, 2]}
        ],
        do: refused(NativeV.broadcast(a, shape, axes), "broadcast")

    {:ok, square} = NativeV.reshape(upload(context.device, {4}), {2, 2})
    refused(NativeV.broadcast(square, {2, 2}, [0, 0]), "broadcast")

    for axes <- [[0, 0], [2, 1, 2], [3], [@huge]],
        do: refused(NativeV.reverse(a, axes), "reverse")

    for {starts, lengths, strides} <- [
          {[0, 0], [2, 1, 3], [1, 1, 1]},
          {[0, 0, 0], [2, 1], [1, 1, 1]},
          {[0, 0, 0], [2, 1, 3], [1, 1]},
          {[0, 0, 0], [2, 1, 3], [1, 1, 1, 1]},
          {[0, 0, 0], [2, 1, 3], [1, 0, 1]},
          {[0, 0, 1], [2, 1, 3], [1, 1, 1]},
          {[0, 0, 0], [2, 1, 2], [1, 1, 3]},
          {[0, 0, 4], [2, 1, 0], [1, 1, 1]},
          {[0, 0, @huge], [2, 1, 1], [1, 1, 1]},
          {[0, 0, 1], [2, 1, @huge], [1, 1, 1]},
          {[0, 0, 1], [2, 1, 2], [1, 1, @huge]},
          {[0, 0, 0], [@huge, @huge, @huge], [@huge, @huge, @huge]}
        ],
        do: refused(NativeV.slice(a, starts, lengths, strides), "slice")

    for shape <- [{7}, {2, 2}, {}, {0}, {@huge, 2}, {@huge, @huge}, {6, 0}],
        do: refused(NativeV.reshape(a, shape), "")

    for type <- [{:u, 8}, {:f, 32}, {:c, 128}], do: refused(NativeV.bitcast(a, type), "bitcast")
    {:ok, bytes} = Request.upload(context.device, {:u, 8}, {1}, <<255>>)
    for type <- [{:u, 2}, {:s, 4}], do: refused(NativeV.bitcast(bytes, type), "bitcast")
  end

  test "what is no list of numbers is an ArgumentError", context do
    a = upload(context.device, {2, 3})

    for axes <- [[-1, 0], [1.0, 0], [0 | 1], [:a], :a, "01", [@huge + 1]] do
      for view <- [:transpose, :squeeze, :reverse],
          do: assert_raise(ArgumentError, fn -> apply(NativeV, view, [a, axes]) end)

      assert_raise ArgumentError, fn -> NativeV.broadcast(a, {2, 3}, axes) end
      assert_raise ArgumentError, fn -> NativeV.slice(a, axes, [1, 1], [1, 1]) end
      assert_raise ArgumentError, fn -> NativeV.slice(a, [0, 0], axes, [1, 1]) end
      assert_raise ArgumentError, fn -> NativeV.slice(a, [0, 0], [1, 1], axes) end
      assert_raise ArgumentError, fn -> NativeV.run("sum", [a], [{@u16, {}}], axes: {axes}) end
      assert_raise ArgumentError, fn -> NativeV.run("negate", [a | a], [{@u16, {2, 3}}], []) end
      assert_raise ArgumentError, fn -> NativeV.run("negate", [a], [{@u16, {2, 3}} | a], []) end
    end

    for shape <- [[2, 3], {-1, 6}, {2.0, 3}, {@huge + 1}, :a, 6] do
      assert_raise ArgumentError, fn -> NativeV.reshape(a, shape) end
      assert_raise ArgumentError, fn -> NativeV.broadcast(a, shape, [0, 1]) end
    end
  end

  test "a slice of one element may have a step of any size", context do
    a = upload(context.device, {2, 3})
    {:ok, one} = NativeV.slice(a, [1, 1], [1, 1], [@huge, 0x8000_0000_0000_0000])
    assert values(one) == [4]
    {:ok, reversed} = NativeV.reverse(one, [0, 1])
    assert values(reversed) == [4]
    {:ok, wide} = NativeV.broadcast(reversed, {2, 2}, [0, 1])
    assert values(wide) == [4, 4, 4, 4]
  end

  test "a view without elements downloads as nothing, however it was made", context do
    for shape <- [{0, 3}, {3, 0}, {2, 0, 2}, {0, @huge}, {@huge, 0, @huge}] do
      {:ok, empty} = Request.upload(context.device, @u16, shape, "")
      axes = Enum.to_list(0..(tuple_size(shape) - 1))

      views = [
        {:reverse, [axes]},
        {:reverse, [[0]]},
        {:transpose, [Enum.reverse(axes)]},
        {:reshape, [{0}]},
        {:reshape, [{1, 0, 5}]},
        {:broadcast, [shape, axes]},
        {:bitcast, [{:s, 16}]}
      ]

      for {first, arguments} <- views,
          {second, [more]} <- [{:reverse, [[0]]}, {:reshape, [{0, 2}]}] do
        {:ok, view} = apply(NativeV, first, [empty | arguments])
        {:ok, view} = apply(NativeV, second, [view, more])
        assert NativeV.download(view, nil) == {:ok, ""}
        assert NativeV.download(view, 5) == {:ok, ""}
      end
    end

    # Of a tensor with elements, and with an offset.
    full = upload(context.device, {2, 3})
    {:ok, none} = NativeV.slice(full, [1, 2], [0, 1], [1, 1])
    {:ok, none} = NativeV.reverse(none, [0, 1])
    assert NativeV.download(none, nil) == {:ok, ""}
    {:ok, [copy]} = Request.run("as_type", [none], [{@u16, {0, 1}}], [])
    assert NativeV.download(copy, nil) == {:ok, ""}
    {:ok, [sum]} = Request.run("sum", [none], [{@u16, {1}}], axes: [0])
    assert values(sum) == [0]
  end

  @programs 150

  test "views of views, right and wrong, are what an oracle in Elixir says", context do
    :rand.seed(:exsss, {5, 6, 7})

    for _ <- 1..@programs do
      shape = for(_ <- 1..Enum.random(1..4), do: Enum.random([1, 2, 3])) |> List.to_tuple()
      ref = upload(context.device, shape)
      steps = row_major(shape)
      at = fn index -> Enum.sum(Enum.zip_with(index, steps, &*/2)) end

      {ref, shape, at} =
        Enum.reduce(1..5, {ref, shape, at}, fn _, {ref, shape, at} = tensor ->
          {view, arguments} = random_call(shape)
          answer = apply(NativeV, view, [ref | arguments])

          case {oracle(view, shape, at, arguments), answer} do
            {{shape, at}, {:ok, ref}} -> {ref, shape, at}
            {{_, _}, :copy} -> tensor
            {:wrong, {:error, :bad_input, _}} -> tensor
          end
        end)

      assert NativeV.tensor_info(ref).shape == shape
      assert values(ref) == Enum.map(indices(shape), at)
    end
  end

  defp random_call(shape) do
    rank = tuple_size(shape)
    axes = fn count -> for _ <- 1..count//1, do: Enum.random(0..rank) end
    proper = Enum.shuffle(Enum.to_list(0..(rank - 1)//1))
    some = if rank == 0, do: [], else: Enum.take(proper, Enum.random(0..rank))

    case Enum.random([:transpose, :squeeze, :broadcast, :slice, :reverse, :reshape]) do
      :transpose ->
        {:transpose, [Enum.random([proper, proper, axes.(rank)])]}

      :squeeze ->
        ones = Enum.filter(some, &(elem(shape, &1) == 1))
        {:squeeze, [Enum.random([ones, ones ++ ones, axes.(1)])]}

      :reverse ->
        {:reverse, [Enum.random([some, some, axes.(2)])]}

      :broadcast ->
        places = Enum.take_random(0..rank, rank) |> Enum.shuffle()

        wide =
          Enum.with_index(places)
          |> Map.new(fn {place, i} -> {place, widened(elem(shape, i))} end)

        out = for(i <- 0..rank, do: wide[i] || Enum.random(1..2)) |> List.to_tuple()
        {:broadcast, [out, Enum.random([places, places, axes.(rank)])]}

      :slice ->
        ranges = for extent <- Tuple.to_list(shape), do: range(extent)
        {:slice, for(part <- 0..2, do: Enum.map(ranges, &elem(&1, part)))}

      :reshape ->
        size = Tuple.product(shape)
        {:reshape, [Enum.random([{size}, {1, size}, {size, 1, 1}, {2, div(size, 2)}])]}
    end
  end

  defp widened(1), do: Enum.random(1..2)
  defp widened(extent), do: Enum.random([extent, extent, extent, 2])

  defp range(extent) do
    start = Enum.random(0..extent)
    {start, Enum.random([1, 1, max(extent - start, 1), 2]), Enum.random([1, 1, 2])}
  end

  defp oracle(:transpose, shape, at, [axes]) do
    if Enum.sort(axes) == Enum.to_list(0..(tuple_size(shape) - 1)//1) do
      back = fn index -> Enum.zip(axes, index) |> Enum.sort() |> Enum.map(&elem(&1, 1)) end
      {axes |> Enum.map(&elem(shape, &1)) |> List.to_tuple(), &at.(back.(&1))}
    else
      :wrong
    end
  end

  defp oracle(:squeeze, shape, at, [axes]) do
    if distinct?(axes, shape) and Enum.all?(axes, &(elem(shape, &1) == 1)) do
      kept = for(i <- 0..(tuple_size(shape) - 1)//1, i not in axes, do: elem(shape, i))
      put = fn index -> Enum.reduce(Enum.sort(axes), index, &List.insert_at(&2, &1, 0)) end
      {List.to_tuple(kept), &at.(put.(&1))}
    else
      :wrong
    end
  end

  defp oracle(:reverse, shape, at, [axes]) do
    if distinct?(axes, shape) do
      turn = fn index ->
        for {i, axis} <- Enum.with_index(index),
            do: if(axis in axes, do: elem(shape, axis) - 1 - i, else: i)
      end

      {shape, &at.(turn.(&1))}
    else
      :wrong
    end
  end

  defp oracle(:broadcast, shape, at, [out, axes]) do
    extents = Tuple.to_list(shape)

    fits =
      length(axes) == length(extents) and distinct?(axes, out) and
        Enum.all?(Enum.zip(axes, extents), fn {axis, e} -> e == 1 or e == elem(out, axis) end)

    pick = fn index ->
      Enum.zip_with(axes, extents, fn axis, e -> if e == 1, do: 0, else: Enum.at(index, axis) end)
    end

    if fits, do: {out, &at.(pick.(&1))}, else: :wrong
  end

  defp oracle(:slice, shape, at, [starts, lengths, strides]) do
    fits =
      Enum.zip([starts, lengths, strides, Tuple.to_list(shape)])
      |> Enum.all?(fn {start, length, step, extent} -> start + (length - 1) * step < extent end)

    move = fn index ->
      Enum.zip_with([index, starts, strides], fn [i, start, step] -> start + i * step end)
    end

    if fits, do: {List.to_tuple(lengths), &at.(move.(&1))}, else: :wrong
  end

  defp oracle(:reshape, shape, at, [out]) do
    if Tuple.product(out) == Tuple.product(shape) do
      split = fn index ->
        flat = Enum.sum(Enum.zip_with(index, row_major(out), &*/2))
        Enum.zip_with(row_major(shape), Tuple.to_list(shape), &rem(div(flat, &1), &2))
      end

      {out, &at.(split.(&1))}
    else
      :wrong
    end
  end

  defp distinct?(axes, shape),
    do: axes == Enum.uniq(axes) and Enum.all?(axes, &(&1 < tuple_size(shape)))

  defp row_major(shape),
    do:
      shape
      |> Tuple.to_list()
      |> Enum.reverse()
      |> Enum.scan(1, &*/2)
      |> then(&[1 | &1])
      |> Enum.take(tuple_size(shape))
      |> Enum.reverse()

  defp indices(shape) do
    Enum.reduce(Enum.reverse(Tuple.to_list(shape)), [[]], fn extent, tails ->
      for i <- 0..(extent - 1)//1, tail <- tails, do: [i | tail]
    end)
  end

  defp upload(device, shape) do
    bytes = for i <- 0..(Tuple.product(shape) - 1)//1, into: <<>>, do: <<i::16-native>>
    {:ok, ref} = Request.upload(device, @u16, shape, bytes)
    ref
  end

  defp values(ref) do
    {:ok, bytes} = NativeV.download(ref, nil)
    for <<x::16-native <- bytes>>, do: x
  end

  defp refused(answer, part) do
    assert {:error, :bad_input, message} = answer
    assert message =~ part
  end
end
