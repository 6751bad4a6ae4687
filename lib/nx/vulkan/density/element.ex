if Code.ensure_loaded?(Nx) do
  defmodule Nx.Vulkan.Density.Element do
    @moduledoc false
    # The element of a node at an index, as GLSL.

    import Nx.Vulkan.Density.Statements, only: [kind: 1, named: 4, unsupported: 1]

    alias Nx.Vulkan.Ops
    alias Nx.Vulkan.Density.{Choice, Elementwise, Plan, Reduction, Statements, Value}

    # Bytes of an index from which on it has a name.
    @long 24

    @doc """
    The element of a node at an index: `{value, state}`.
    """
    def at(st, id, idx) do
      {idx, st} = Enum.map_reduce(idx, st, &short/2)
      key = {id, idx}

      case st.memo do
        %{^key => value} ->
          {value, st}

        _ ->
          node = st.graph.nodes[id]

          {value, st} =
            if st.places[id], do: load(st, id, node, idx), else: compute(st, id, node, idx)

          {value, put_in(st.memo[key], value)}
      end
    end

    # An index used twice is computed once: without a name its text would double with every reshape.
    defp short({text, depth}, st) when byte_size(text) > @long do
      {{:int, name, _}, st} = Statements.let(st, :int, text, depth)
      {{name, depth}, st}
    end

    defp short(index, st), do: {index, st}

    defp load(st, id, node, idx) do
      {where, offset} = st.places[id]
      at = idx |> Value.flat(node.shape) |> Value.add(offset)
      named(st, :float, "#{where}(#{Value.index(at)})", idx)
    end

    defp compute(st, id, node, idx) do
      if Plan.reduction?(node),
        do: Reduction.result(st, id, node, idx),
        else: element(st, node, idx)
    end

    defp element(st, %{op: :constant, attributes: [number: number]}, _),
      do: {{:const, number}, st}

    defp element(st, %{op: :parameter, attributes: [index: 0]} = node, idx),
      do: named(st, :float, "q(#{idx |> Value.flat(node.shape) |> Value.index()})", idx)

    defp element(st, %{op: op, attributes: [index: at]} = node, idx) do
      position = idx |> Value.flat(node.shape) |> Value.add(st.sources[{op, at}])
      {value, st} = named(st, :float, "data(#{Value.index(position)})", idx)

      if kind(node) == :int,
        do: named(st, :int, "int(#{elem(value, 1)})", idx),
        else: {value, st}
    end

    defp element(st, %{op: :iota, attributes: [axis: axis], shape: shape}, idx),
      do: {index_value(if(axis, do: Enum.at(idx, axis), else: Value.flat(idx, shape))), st}

    defp element(st, %{op: :eye}, idx) do
      case Enum.take(idx, -2) do
        [i, j] when is_integer(i) and is_integer(j) -> {{:const, if(i == j, do: 1, else: 0)}, st}
        [i, j] -> named(st, :bool, "#{Value.index(i)} == #{Value.index(j)}", [i, j])
      end
    end

    defp element(st, %{op: :reshape, operands: [t]} = node, idx) do
      inner = st.graph.nodes[t].shape
      at(st, t, Value.reshaped(idx, node.shape, inner))
    end

    defp element(st, %{op: :squeeze, operands: [t], attributes: [axes: axes]}, idx) do
      rank = length(st.graph.nodes[t].shape)

      {inner, []} =
        Enum.map_reduce(
          0..(rank - 1)//1,
          idx,
          &if(&1 in axes, do: {0, &2}, else: {hd(&2), tl(&2)})
        )

      at(st, t, inner)
    end

    defp element(st, %{op: :transpose, operands: [t], attributes: [axes: axes]}, idx) do
      inner = axes |> Enum.zip(idx) |> Enum.sort() |> Enum.map(&elem(&1, 1))
      at(st, t, inner)
    end

    defp element(st, %{op: :reverse, operands: [t], attributes: [axes: axes]} = node, idx) do
      inner =
        for {{i, extent}, axis} <- idx |> Enum.zip(node.shape) |> Enum.with_index() do
          if axis in axes, do: Value.subtract(extent - 1, i), else: i
        end

      at(st, t, inner)
    end

    defp element(st, %{op: :broadcast, operands: [t], attributes: attributes} = node, idx) do
      own = st.graph.nodes[t].shape
      inner = for pair <- Enum.zip(own, attributes[:axes]), do: repeated(pair, own, node, idx)
      at(st, t, inner)
    end

    defp element(st, %{op: :slice, operands: [t | _]} = node, idx) do
      [starts: _, lengths: lengths, strides: strides] = node.attributes
      {starts, st} = starts(st, node, st.graph.nodes[t].shape, lengths)

      inner =
        for {start, stride, i} <- Enum.zip([starts, strides, idx]),
            do: Value.add(start, Value.multiply(i, stride))

      at(st, t, inner)
    end

    defp element(st, %{op: :put_slice, operands: [t, slice | _]} = node, idx) do
      lengths = st.graph.nodes[slice].shape
      {starts, st} = starts(st, node, node.shape, lengths)
      inner = for {i, start} <- Enum.zip(idx, starts), do: Value.subtract(i, start)
      Choice.within(st, inner, lengths, {:elem, slice}, {:elem, t, idx})
    end

    defp element(st, %{op: :pad, operands: [t, value], attributes: [padding: config]}, idx) do
      extents = st.graph.nodes[t].shape

      inner =
        for {i, {low, _high, interior}} <- Enum.zip(idx, config) do
          {Value.subtract(i, low), interior + 1}
        end

      Choice.padded(st, inner, extents, t, value)
    end

    defp element(st, %{op: :concatenate, operands: list, attributes: [axis: axis]}, idx) do
      extents = Enum.map(list, &Enum.at(st.graph.nodes[&1].shape, axis))

      Choice.choose(st, list, extents, Enum.at(idx, axis), fn i ->
        List.replace_at(idx, axis, i)
      end)
    end

    defp element(st, %{op: :stack, operands: list, attributes: [axis: axis]}, idx) do
      extents = Enum.map(list, fn _ -> 1 end)
      Choice.choose(st, list, extents, Enum.at(idx, axis), fn _ -> List.delete_at(idx, axis) end)
    end

    defp element(st, %{op: :gather, operands: [t, indices], attributes: [axes: axes]}, idx) do
      %{shape: extents} = st.graph.nodes[t]
      %{shape: rows} = st.graph.nodes[indices]
      {at, rest} = Enum.split(idx, length(rows) - 1)

      {picked, st} =
        Enum.map_reduce(Enum.with_index(axes), st, fn {axis, n}, st ->
          {value, st} = at(st, indices, at ++ [n])
          {{axis, value |> Value.to_index() |> Value.clamp(0, Enum.at(extents, axis) - 1)}, st}
        end)

      at(st, t, Value.placed(length(extents), Map.new(picked), rest))
    end

    defp element(st, %{op: op, operands: [condition, a, b]} = node, idx)
         when op in [:select, :clip] do
      {[condition, a, b], st} = operands(st, [condition, a, b], idx)

      case {op, condition} do
        {:select, {:const, number}} -> {if(number in [0, 0.0], do: b, else: a), st}
        _ -> Elementwise.row(st, node, [condition, a, b])
      end
    end

    defp element(st, %{op: :as_type, operands: [t]} = node, idx) do
      {value, st} = at(st, t, idx)

      case {kind(node), value} do
        {_, {:const, number}} ->
          {{:const, cast(number, node.type)}, st}

        {:float, {:float, _, _}} ->
          {value, st}

        {kind, _} ->
          text = Value.text(value, kind, st.type)

          if Elementwise.narrow?(node),
            do: named(st, kind, Elementwise.wrapped(text, node.type), [value]),
            else: named(st, kind, text, [value])
      end
    end

    defp element(st, %{operands: [t]} = node, idx) do
      {[value], st} = operands(st, [t], idx)
      Elementwise.unary(st, node, value)
    end

    defp element(st, %{operands: [a, b]} = node, idx) do
      {[a, b], st} = operands(st, [a, b], idx)
      Elementwise.binary(st, node, a, b)
    end

    defp element(_, node, _), do: unsupported(node)

    # The index along an axis that is repeated. Nx's traces may name an axis of another extent (Nx.Defn.Expr.broadcast/4 of one that
    # follows another).
    defp repeated({1, _axis}, _own, _node, _idx), do: 0

    defp repeated({extent, axis}, own, node, idx) do
      if Enum.at(node.shape, axis) != extent do
        [own, shape] = for list <- [own, node.shape], do: inspect(List.to_tuple(list))

        raise ArgumentError,
              "broadcast: the shape #{own} does not fit #{shape} along axes #{inspect(node.attributes[:axes])}"
      end

      Enum.at(idx, axis)
    end

    defp starts(st, %{operands: operands, attributes: attributes}, extents, lengths) do
      Enum.map_reduce(Enum.zip([attributes[:starts], extents, lengths]), st, fn
        {start, extent, length}, st when is_integer(start) ->
          {Ops.start(start, extent - length), st}

        {{:operand, n}, extent, length}, st ->
          {value, st} = at(st, Enum.at(operands, n), [])
          {value |> Value.to_index() |> Value.clamp(0, extent - length), st}
      end)
    end

    # Operands of an elementwise op, their shapes aligned on the right.
    defp operands(st, ids, idx) do
      Enum.map_reduce(ids, st, fn id, st ->
        shape = st.graph.nodes[id].shape
        tail = Enum.take(idx, -length(shape))
        at(st, id, for({i, extent} <- Enum.zip(tail, shape), do: if(extent == 1, do: 0, else: i)))
      end)
    end

    defp index_value(index) when is_integer(index), do: {:const, index}
    defp index_value({text, depth}), do: {:int, text, depth}

    defp cast(number, {t, _}) when t in [:f, :bf] and is_integer(number), do: number * 1.0
    defp cast(number, {t, _}) when t in [:s, :u] and is_float(number), do: trunc(number)
    defp cast(number, _), do: number
  end
end
