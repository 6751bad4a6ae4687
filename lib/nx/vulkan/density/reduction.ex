if Code.ensure_loaded?(Nx) do
  defmodule Nx.Vulkan.Density.Reduction do
    @moduledoc false
    # Reductions that are written out where they are used, or loops of one invocation.

    import Nx.Vulkan.Density.Statements, only: [kind: 1, named: 4]

    alias Nx.Vulkan.Density.{Choice, Element, Elementwise, Plan, Row, Statements, Value}

    @most 0x7FFFFFFF

    @doc """
    The element of a reduction's result at an index.
    """
    def result(st, id, node, idx) do
      {extents, _} = Plan.reduced(node, st.graph)

      cond do
        Plan.size(extents) <= Plan.inline() ->
          {value, st} = fold(st, node, idx, Plan.indices(extents), identity(node))
          with_target(st, node, idx, value)

        Enum.all?(idx, &is_integer/1) ->
          raise "#{inspect(id)} was not planned"

        true ->
          # One of few results, by its position.
          {values, st} = Enum.map_reduce(Plan.indices(node.shape), st, &Element.at(&2, id, &1))
          Choice.pick(st, kind(node), values, Value.flat(idx, node.shape))
      end
    end

    @doc """
    A reduction at `idx` by a loop of one invocation.
    """
    def serial(st, node, idx, {extents, looped}) do
      depth = st.depth + 1
      kind = kind(node)
      {name, st} = Statements.name(st)
      start = Value.text(identity(node), kind, st.type)
      outer = max(Value.deepest(idx), st.depth)
      st = Statements.line(st, outer, "#{Statements.declared(kind)} #{name} = #{start};")
      domain = Enum.map(looped, &Enum.at(extents, &1))
      st = %{st | depth: depth}
      {positions, st} = positions(st, extents, looped, "t#{depth}")
      {value, st} = fold(st, node, idx, positions, identity(node))
      text = combined(node, {kind, name, 0}, value, st.type)
      st = Statements.line(st, depth, "#{name} = #{text};")
      {body, st} = Statements.take(st, depth)
      st = Statements.close(st, depth)

      loop = [
        "for (int t#{depth} = 0; t#{depth} < #{Plan.size(domain)}; ++t#{depth}) {",
        body,
        "}"
      ]

      st = Statements.line(st, outer, loop)
      with_target(st, node, idx, {kind, name, outer})
    end

    @doc """
    The positions of what is reduced that one turn of a loop over `looped` axes takes, where `name` counts the turns.
    """
    def positions(st, extents, looped, name) do
      domain = Enum.map(looped, &Enum.at(extents, &1))
      at = looped |> Enum.zip(Value.unflat({name, st.depth}, domain)) |> Map.new()
      short = for {extent, axis} <- Enum.with_index(extents), not is_map_key(at, axis), do: extent

      positions =
        for rest <- Plan.indices(short), do: Value.placed(length(extents), at, rest)

      {positions, st}
    end

    @doc """
    Folds the elements of a reduction at `idx` into `from`, those at `positions` of what is reduced.
    """
    def fold(st, node, idx, positions, from) do
      Enum.reduce(positions, {from, st}, fn position, {acc, st} ->
        {value, st} = term(st, node, idx, position)
        if value == :none, do: {acc, st}, else: combine(st, node, acc, value)
      end)
    end

    @doc """
    What a reduction starts from.
    """
    def identity(%{op: op} = node) do
      case op do
        op when op in [:sum, :dot, :indexed_add] -> {:const, zero(node)}
        :product -> {:const, one(node)}
        :all -> {:const, 1}
        :any -> {:const, 0}
        :reduce_max -> {:const, if(kind(node) == :int, do: -@most, else: :neg_infinity)}
        :reduce_min -> {:const, if(kind(node) == :int, do: @most, else: :infinity)}
      end
    end

    @doc """
    One more term in an accumulator.
    """
    def combine(st, node, a, b) do
      if node.op not in [:all, :any] and a == identity(node),
        do: {b, st},
        else: named(st, kind(node), combined(node, a, b, st.type), [a, b])
    end

    @doc """
    GLSL of that.
    """
    def combined(node, a, b, type) do
      kind = kind(node)
      [a, b] = Enum.map([a, b], &Value.text(&1, kind, type))

      case node.op do
        op when op in [:sum, :dot, :indexed_add] -> Row.text(:add, [a, b])
        :product -> Row.text(:multiply, [a, b])
        :all -> "#{a} && #{b}"
        :any -> "#{a} || #{b}"
        :reduce_max -> Row.text(:max, [a, b])
        :reduce_min -> Row.text(:min, [a, b])
      end
    end

    @doc """
    The result of a reduction, once it is folded.
    """
    def with_target(st, %{op: :indexed_add, operands: [t | _]} = node, idx, value) do
      {target, st} = Element.at(st, t, idx)

      case {target, value} do
        {{:const, zero}, _} when zero in [0, 0.0] -> {value, st}
        _ -> arithmetic(st, node, :add, target, value)
      end
    end

    def with_target(st, %{op: :dot} = node, _, value) do
      if Elementwise.narrow?(node) do
        text = Elementwise.wrapped(Value.text(value, :int, st.type), node.type)
        named(st, :int, text, [value])
      else
        {value, st}
      end
    end

    def with_target(st, _, _, value), do: {value, st}

    # The term of a reduction's result at `idx` for one position of what is reduced; `:none` where it has none.
    defp term(st, %{op: :dot, operands: [a, b], attributes: attributes} = node, idx, position) do
      [batch_a: batch_a, batch_b: batch_b, contract_a: axes_a, contract_b: axes_b] = attributes
      {batch, rest} = Enum.split(idx, length(batch_a))
      rank_a = length(st.graph.nodes[a].shape)
      {free_a, free_b} = Enum.split(rest, rank_a - length(axes_a) - length(batch_a))

      at = fn rank, axes, batches, free ->
        fixed = Enum.zip(axes, position) ++ Enum.zip(batches, batch)
        Value.placed(rank, Map.new(fixed), free)
      end

      {x, st} = Element.at(st, a, at.(rank_a, axes_a, batch_a, free_a))
      {y, st} = Element.at(st, b, at.(length(st.graph.nodes[b].shape), axes_b, batch_b, free_b))
      arithmetic(st, node, :multiply, x, y)
    end

    defp term(st, %{op: :indexed_add} = node, idx, row) do
      %{operands: [_, indices, updates], attributes: [axes: axes]} = node
      targets = for axis <- axes, do: Enum.at(idx, axis)
      window = for {i, axis} <- Enum.with_index(idx), axis not in axes, do: i

      {matches, st} =
        Enum.map_reduce(Enum.with_index(targets), st, fn {target, n}, st ->
          {index, st} = Element.at(st, indices, row ++ [n])
          {{Value.to_index(index), target}, st}
        end)

      if Enum.any?(matches, fn {i, j} -> is_integer(i) and is_integer(j) and i != j end) do
        {:none, st}
      else
        {update, st} = Element.at(st, updates, row ++ window)
        guard(st, for({i, j} <- matches, i != j, do: {i, j}), update)
      end
    end

    defp term(st, %{operands: [t], attributes: [axes: axes]}, idx, position) do
      rank = length(st.graph.nodes[t].shape)
      kept? = length(idx) == rank
      free = for {i, axis} <- Enum.with_index(idx), not kept? or axis not in axes, do: i
      Element.at(st, t, Value.placed(rank, Map.new(Enum.zip(axes, position)), free))
    end

    # Of two values in the node's own type.
    defp arithmetic(st, node, op, x, y) do
      kind = kind(node)
      text = Row.text(op, Enum.map([x, y], &Value.text(&1, kind, st.type)))
      named(st, kind, Elementwise.wrapped(text, node.type), [x, y])
    end

    defp guard(st, [], update), do: {update, st}

    defp guard(st, matches, update) do
      condition =
        Enum.map_join(matches, " && ", fn {i, j} -> "#{Value.index(i)} == #{Value.index(j)}" end)

      parts = [update | Enum.flat_map(matches, &Tuple.to_list/1)]
      zero = Value.float(0.0, st.type)

      text = "#{condition} ? #{Value.text(update, :float, st.type)} : #{zero}"
      named(st, :float, text, parts)
    end

    defp zero(node), do: if(kind(node) == :int, do: 0, else: 0.0)
    defp one(node), do: if(kind(node) == :int, do: 1, else: 1.0)
  end
end
