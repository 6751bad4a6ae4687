if Code.ensure_loaded?(Nx) do
  defmodule Nx.Vulkan.CallbacksTest do
    # Every callback of Nx.Backend, here and on Nx.BinaryBackend, for a type of each class that it takes.
    use ExUnit.Case, async: true

    # The first run after a change of a shader compiles every variant.

    alias Nx.Vulkan.Reference

    # Of each class one type, in turn.
    @integers [[:u8, :u16, :u32, :u64], [:s8, :s16, :s32, :s64]]
    @packed [[:u2, :u4], [:s2, :s4]]
    @floats [[:f16, :bf16], [:f32], [:f64]]
    @complex [[:c64], [:c128]]
    @real @integers ++ @floats
    @all @real ++ @packed ++ @complex ++ [[:f8, :f8_e4m3fn]]

    @exempt %{
      init: "its options are this backend's own: VulkanoBackendTest",
      to_pointer: "Nx.BinaryBackend has no pointers: PointerTest",
      from_pointer: "Nx.BinaryBackend has no pointers: PointerTest"
    }

    @parts [[-2.5, -1, -0.25, 0], [0.5, 1, 1.75, 3]]
    @row [[1, 3, 3], [2, 0, 1]]
    @bits ~w(bitwise_and bitwise_or bitwise_xor)a

    # Calls of these callbacks with tensors of these types. They are given the callback, what makes a tensor of a list,
    # and the type.
    defp rows do
      [
        {~w(exp expm1 log1p sigmoid cos sin tan cosh sinh tanh asinh atan cbrt erf erfc)a, @real,
         &one/3},
        {~w(log acosh sqrt rsqrt)a, @real, fn op, t, _ -> apply(Nx, op, [t.([1, 1.75, 3])]) end},
        {~w(atanh acos asin erf_inv)a, @real,
         fn op, t, _ -> apply(Nx, op, [t.([-0.5, 0, 0.75])]) end},
        {~w(negate abs sign conjugate real imag is_nan is_infinity)a, @real ++ @complex, &one/3},
        {~w(exp sin cos tan sinh cosh tanh sqrt)a, @complex, &one/3},
        {~w(round ceil floor)a, @real, &one/3},
        {~w(is_nan is_infinity abs)a, @floats,
         fn op, t, _ -> apply(Nx, op, [t.([:nan, :infinity, :neg_infinity, 1])]) end},
        {~w(bitwise_not count_leading_zeros population_count)a, @integers, &one/3},
        {~w(add subtract multiply)a, @real ++ @complex, &two/3},
        {~w(min max less less_equal greater greater_equal divide atan2)a, @real, &two/3},
        {~w(equal not_equal logical_and logical_or logical_xor)a, @real ++ @complex, &two/3},
        {@bits, @integers ++ @packed, &two/3},
        {~w(pow)a, @real, fn _, t, _ -> Nx.pow(t.([1, 2, 3]), t.([[0], [1], [3]])) end},
        {~w(quotient remainder)a, @integers ++ @packed,
         fn op, t, _ -> apply(Nx, op, [t.([7, -5, 1, 0]), t.([[1], [3]])]) end},
        {~w(remainder)a, @floats,
         fn _, t, _ -> Nx.remainder(t.([7, -5, 1.5]), t.([[1], [3]])) end},
        {~w(left_shift right_shift)a, @integers,
         fn op, t, _ -> apply(Nx, op, [t.([-5, 0, 1, 100]), t.([[0], [1]])]) end},
        {~w(select)a, @all -- @packed,
         fn _, t, _ -> Nx.select(Nx.tensor([[0, 1, 1, 0], [1, 0, 0, 1]]), t.(@parts), t.(1)) end},
        {~w(clip)a, @real, fn _, t, _ -> Nx.clip(t.(@parts), t.(1), t.(2)) end},
        {~w(sum product reduce_max reduce_min all any)a, @real, &reduced/3},
        {~w(sum)a, @complex, &reduced/3},
        {~w(argmax argmin)a, @real, &chosen/3},
        {~w(dot)a, @real ++ @complex, &dots/3},
        # Beyond an integer type a float becomes its nearest bound; Nx.BinaryBackend keeps the low bits.
        {~w(as_type)a, @all,
         fn _, t, _ -> for [type | _] <- @all, do: Nx.as_type(t.([0, 1, 1.75]), type) end},
        {~w(bitcast)a, @real,
         fn _, t, {_, bits} -> Nx.bitcast(t.([[1, 2], [-1, 0]]), {:u, bits}) end},
        {~w(constant)a, @all, fn _, _, type -> constants([0, 3], type) end},
        {~w(constant)a, @floats ++ [[:c64]],
         fn _, _, type -> constants([:nan, :infinity, :neg_infinity], type) end},
        {~w(from_binary)a, @all,
         fn _, t, type -> t.(@parts) |> Nx.to_binary() |> Nx.from_binary(type) end},
        {~w(to_binary)a, @all,
         fn _, t, _ -> for limit <- [3, 8], do: Nx.to_binary(t.(@parts), limit: limit) end},
        {~w(backend_copy backend_transfer)a, @all,
         fn op, t, _ -> apply(Nx, op, [t.(@parts), Nx.default_backend()]) end},
        {~w(backend_deallocate)a, @all, fn _, t, _ -> Nx.backend_deallocate(t.(@parts)) end},
        {~w(inspect)a, @all -- @packed, fn _, t, _ -> inspect(t.(@parts), limit: 3) end},
        {~w(to_batched)a, @all, &batches/3},
        {~w(eye)a, @all, fn _, _, type -> Nx.eye({2, 3, 2}, type: type) end},
        {~w(iota)a, @real,
         fn _, _, type -> for axis <- [nil, 0, 1], do: Nx.iota({2, 3}, axis: axis, type: type) end},
        {~w(reshape)a, @all, fn _, t, _ -> Nx.reshape(Nx.transpose(t.(@parts)), {2, 4}) end},
        {~w(squeeze)a, @all, fn _, t, _ -> Nx.squeeze(t.([@parts]), axes: [0]) end},
        {~w(broadcast)a, @all,
         fn _, t, _ -> Nx.broadcast(t.(@parts), {2, 3, 4}, axes: [0, 2]) end},
        {~w(transpose)a, @all,
         fn _, t, _ -> Nx.transpose(t.([@parts, @parts]), axes: [2, 0, 1]) end},
        {~w(reverse)a, @all, fn _, t, _ -> Nx.reverse(t.(@parts), axes: [1]) end},
        {~w(slice)a, @all,
         fn _, t, _ ->
           Nx.slice(t.(@parts), [Nx.tensor(9), Nx.tensor(-3)], [1, 3], strides: [1, 2])
         end},
        {~w(put_slice)a, @all, fn _, t, _ -> Nx.put_slice(t.(@parts), [1, 2], t.([[1, 0]])) end},
        {~w(pad)a, @all, fn _, t, _ -> Nx.pad(t.(@parts), t.(1), [{1, -1, 0}, {0, 2, 1}]) end},
        {~w(concatenate)a, @all,
         fn _, t, _ -> Nx.concatenate([t.(@parts), t.([[1, 0, 1, 0]])]) end},
        {~w(stack)a, @all, fn _, t, _ -> Nx.stack([t.(@parts), t.(@parts)], axis: 1) end},
        {~w(gather)a, @all, fn _, t, _ -> Nx.gather(t.(@parts), Nx.tensor([[1, 2], [0, 3]])) end},
        # Sums of 8-bit floats are rounded, and cut off by Nx.BinaryBackend.
        {~w(indexed_add)a, @all -- [[:f8, :f8_e4m3fn]],
         fn op, t, _ -> apply(Nx, op, [t.(@parts), Nx.tensor([[1, 2], [0, 3]]), t.([1, 2])]) end},
        {~w(indexed_put)a, @all,
         fn op, t, _ -> apply(Nx, op, [t.(@parts), Nx.tensor([[1, 2], [0, 3]]), t.([1, 2])]) end},
        {~w(sort argsort)a, @real,
         fn op, t, _ ->
           for way <- [:asc, :desc], do: apply(Nx, op, [t.(@parts), [axis: 1, direction: way]])
         end},
        {~w(conv)a, @real,
         fn _, t, _ ->
           Nx.conv(t.([[[1, 2, 3], [0, 1, 2]]]), t.([[[1, 2]], [[0, 1]]]), feature_group_size: 2)
         end},
        {~w(reduce)a, @real,
         fn _, t, _ -> Nx.reduce(t.(@parts), t.(0), [axes: [1]], &Nx.max/2) end},
        {~w(window_reduce)a, [[:s32], [:f32]],
         fn _, t, _ -> Nx.window_reduce(t.(@parts), t.(0), {1, 2}, &Nx.max/2) end},
        {~w(window_sum window_product window_max window_min)a, @real,
         fn op, t, _ -> apply(Nx, op, [t.(@parts), {2, 2}, [padding: :same, strides: [1, 2]]]) end},
        {~w(window_scatter_max window_scatter_min)a, @real,
         fn op, t, _ ->
           apply(Nx, op, [t.(@parts), t.([[1, 2]]), t.(0), {2, 2}, [strides: [2, 2]]])
         end},
        {~w(triangular_solve)a, [[:f32], [:f64], [:c64]],
         fn _, t, _ -> Nx.LinAlg.triangular_solve(t.([[1, 0], [0.5, 2]]), t.([1, 3])) end},
        {~w(fft ifft)a, @floats ++ @complex,
         fn op, t, _ -> apply(Nx, op, [t.([1, 2, 0, 3]), [length: 4]]) end},
        {~w(block)a, [[:s32], [:f32]], &blocks/3}
      ]
    end

    defp one(op, t, _type), do: apply(Nx, op, [t.(@parts)])

    # The second operand is broadcast, and of the same type, then of others.
    defp two(op, t, type) do
      {x, y} = {t.(@parts), t.([[1], [-2]])}

      others =
        case type do
          {kind, bits} when kind in [:s, :u] and bits < 8 -> []
          {:c, _} -> [:f32]
          _ when op in @bits -> [:s32]
          _ -> [:s32, :f32]
        end

      for y <- [y | Enum.map(others, &Nx.as_type(y, &1))], do: apply(Nx, op, [x, y])
    end

    defp reduced(op, t, _type) do
      for {x, opts} <- [
            {3, []},
            {@row, []},
            {@row, axes: [0]},
            {@row, axes: [1], keep_axes: true}
          ],
          do: apply(Nx, op, [t.(x), opts])
    end

    defp chosen(op, t, _type) do
      for opts <- [[], [axis: 0], [axis: 1, tie_break: :high, keep_axis: true]],
          do: apply(Nx, op, [t.(@row), opts])
    end

    defp dots(:dot, t, _type) do
      {a, b} = {t.([[1, 2, 3], [0, 1, 2]]), t.([[1, 0], [2, 1], [3, 1]])}
      batched = t.([[[1, 2, 3], [0, 1, 2]], [[1, 0, 1], [2, 1, 0]]])
      [Nx.dot(a, b), Nx.dot(a, Nx.transpose(a)), Nx.dot(batched, [2], [0], batched, [2], [0])]
    end

    defp constants(values, type) do
      {backend, opts} = Nx.default_backend()
      for value <- values, do: backend.constant(Nx.template({4}, type), value, opts)
    end

    defp batches(:to_batched, t, _type) do
      for leftover <- [:repeat, :discard],
          do: Enum.to_list(Nx.to_batched(t.([1, 2, 3]), 2, leftover: leftover))
    end

    defp blocks(:block, t, _type) do
      x = t.(@row)

      [
        Nx.logical_not(x),
        Nx.all_close(x, x),
        Nx.take(x, Nx.tensor([1, 0]), axis: 1),
        Nx.take_along_axis(x, Nx.tensor([[1], [0]]), axis: 1),
        Nx.top_k(x, k: 2),
        Nx.cumulative_sum(x, axis: 1, reverse: true)
      ]
    end

    for {callback, _arity} <- Nx.Backend.behaviour_info(:callbacks), !@exempt[callback] do
      test "#{callback}" do
        rows = for {names, types, call} <- rows(), unquote(callback) in names, do: {types, call}
        assert rows != [], "no row calls this callback"

        for {types, call} <- rows, class <- types do
          type = Enum.at(class, :erlang.phash2(unquote(callback), length(class)))

          [ours, theirs] =
            Reference.both(fn ->
              call.(unquote(callback), &tensor(&1, type), Nx.Type.normalize!(type))
            end)

          agree(ours, theirs, type)
        end
      end
    end

    test "exempt are only callbacks" do
      callbacks = Keyword.keys(Nx.Backend.behaviour_info(:callbacks))
      assert Map.keys(@exempt) -- callbacks == []
      assert for({names, _, _} <- rows(), name <- names, name not in callbacks, do: name) == []
    end

    # Integers take the whole part, and without a sign its size.
    defp tensor(list, type), do: Nx.tensor(entry(list, Nx.Type.normalize!(type)), type: type)

    defp entry(list, type) when is_list(list), do: Enum.map(list, &entry(&1, type))
    defp entry(x, {:u, _}), do: abs(trunc(x))
    defp entry(x, {:s, _}), do: trunc(x)
    defp entry(x, {:c, _}) when is_number(x), do: Complex.new(x, 1 - x)
    defp entry(x, _type), do: x

    defp agree(%Nx.Tensor{} = ours, theirs, _type), do: Reference.agree!(ours, theirs)

    defp agree(ours, theirs, type) when is_tuple(ours),
      do: agree(Tuple.to_list(ours), Tuple.to_list(theirs), type)

    defp agree(ours, theirs, type) when is_list(ours),
      do: for({x, y} <- Enum.zip(ours, theirs), do: agree(x, y, type))

    defp agree(ours, theirs, type), do: assert(ours == theirs, to_string(type))
  end
end
