if Code.ensure_loaded?(Nx) do
  defmodule Nx.Vulkan.Density.Plan do
    @moduledoc false
    # What of a graph is computed by loops that the whole workgroup shares, and in which order. All else is computed where
    # it is used.
    #
    # A `{:scalars, id}` is a reduction with few results, each an accumulator of a loop over what is reduced. An
    # `{:array, id}` is kept in memory, by a loop over its elements. Those of one level need only those of lower levels.

    alias Nx.Vulkan.Graph

    @enforce_keys [:levels, :arrays, :graph]
    defstruct @enforce_keys

    @reductions ~w(sum product all any reduce_max reduce_min dot indexed_add)a
    @views ~w(reshape squeeze transpose reverse broadcast slice as_type metadata)a

    # Ops that compute an index from another.
    @moves ~w(reshape slice put_slice pad concatenate reverse gather)a

    # Reductions over at most so many elements are written out where they are used.
    @inline 16
    # Reductions with at most so many results keep them in variables.
    @scalars 64
    # Reductions with more results than that are written out where they are used, if they are over few elements.
    @crowd 256
    # Axes of at most this extent are written out inside loops.
    @short 8
    # What is read at more different indices than so many is kept.
    @readings 16

    @doc """
    The plan of a graph: for each level the loops, as `{domain, items}`.
    """
    def new(%Graph{} = graph) do
      order = Graph.order(graph)
      kinds = graph |> kinds(order) |> kept(graph, order)

      levels =
        Enum.reduce(order, %{}, fn id, levels ->
          below =
            graph.nodes[id].operands |> Enum.map(&levels[&1]) |> Enum.max(fn -> 0 end)

          Map.put(levels, id, if(kinds[id], do: below + 1, else: below))
        end)

      loops =
        order
        |> Enum.filter(&kinds[&1])
        |> Enum.group_by(&levels[&1])
        |> Enum.sort()
        |> Enum.map(fn {_, ids} ->
          ids
          |> Enum.map(&{domain(kinds[&1], graph.nodes[&1], graph), {kinds[&1], &1}})
          |> group()
        end)

      arrays = for id <- order, kinds[id] == :array, into: MapSet.new(), do: id
      %__MODULE__{levels: loops, arrays: arrays, graph: graph}
    end

    @doc """
    The axes that a reduction reduces, in the order in which they are counted: `{extents, looped positions}`.
    """
    def reduced(node, graph) do
      extents = extents(node, graph)
      long = for {extent, at} <- Enum.with_index(extents), extent > @short, do: at
      all = for {extent, at} <- Enum.with_index(extents), extent > 1, do: at
      {extents, if(long == [], do: all, else: long)}
    end

    @doc """
    Reductions over at most so many elements are written out where they are used.
    """
    def inline, do: @inline

    @doc """
    Whether a node is a reduction.
    """
    def reduction?(%{op: op}), do: op in @reductions

    @doc """
    Every index into a shape, in row-major order.
    """
    def indices(shape) do
      Enum.reduce(Enum.reverse(shape), [[]], fn extent, tails ->
        for i <- 0..(extent - 1)//1, tail <- tails, do: [i | tail]
      end)
    end

    def size(shape), do: Enum.product(shape)

    defp domain(:array, node, _), do: node.shape

    defp domain(:scalars, node, graph) do
      {extents, looped} = reduced(node, graph)
      Enum.map(looped, &Enum.at(extents, &1))
    end

    # In the order of first appearance, so that the same graph gives the same text.
    defp group(pairs) do
      domains = pairs |> Enum.map(&elem(&1, 0)) |> Enum.uniq()
      for domain <- domains, do: {domain, for({^domain, item} <- pairs, do: item)}
    end

    defp kinds(graph, order) do
      fed = fed(graph, order)

      reductions =
        for id <- order,
            reduction?(graph.nodes[id]),
            kind = kind(graph.nodes[id], graph, fed[id]),
            into: %{} do
          {id, kind}
        end

      # What a loop over results would compute again for each of them is kept.
      for id <- order,
          size(graph.nodes[id].shape) > @scalars,
          shared <- repeated(graph.nodes[id], graph),
          into: reductions,
          do: {shared, reductions[shared] || :array}
    end

    # An op that moves indices reads its operands at other indices than those at which it is read; a chain of them that
    # are read at two each would be written down twice as often with every link.
    defp kept(kinds, graph, order) do
      roots = Map.new(graph.outputs, &{&1, MapSet.new([&1])})

      {_, kinds} =
        Enum.reduce(Enum.reverse(order), {roots, kinds}, fn id, {readings, kinds} ->
          node = graph.nodes[id]
          own = readings[id]
          crowded? = MapSet.size(own) > @readings and size(node.shape) > @inline

          kinds =
            if crowded? and costly?(graph, id), do: Map.put_new(kinds, id, :array), else: kinds

          own = if kinds[id], do: MapSet.new([{:loop, domain(kinds[id], node, graph)}]), else: own

          readings =
            node.operands
            |> Enum.with_index()
            |> Enum.reduce(readings, fn {read, n}, readings ->
              more = moved(own, n, node, graph.nodes[read])
              Map.update(readings, read, few(more), &few(MapSet.union(&1, more)))
            end)

          {readings, kinds}
        end)

      kinds
    end

    # More than too many are as good as too many.
    defp few(readings), do: readings |> Enum.take(@readings + 1) |> MapSet.new()

    defp moved(own, n, node, read) do
      if node.op in @moves do
        # Starts and indices may be operands.
        others = List.delete_at(node.operands, n)
        MapSet.new(own, &{node.op, n, others, node.shape, read.shape, node.attributes, &1})
      else
        own
      end
    end

    defp kind(node, graph, fed?) do
      cond do
        crowd?(node, graph, fed?) -> :array
        size(extents(node, graph)) <= @inline -> nil
        size(node.shape) <= @scalars -> :scalars
        true -> :array
      end
    end

    # A product of matrices that would be written out in more terms than a loop over its elements has turns.
    defp crowd?(%{op: :dot} = node, graph, _fed?),
      do: size(extents(node, graph)) in 5..@inline and size(node.shape) in 9..@scalars

    defp crowd?(%{op: :indexed_add}, _graph, _fed?), do: false

    # Other reductions too, but not of data, whose rows loops go over anyway.
    defp crowd?(node, graph, fed?),
      do: not fed? and size(extents(node, graph)) in 5..@inline and size(node.shape) in 9..@crowd

    # Which values are made of data, or of tensors that the function knows.
    defp fed(graph, order) do
      Enum.reduce(order, %{}, fn id, fed ->
        node = graph.nodes[id]

        own? =
          node.op == :tensor or (node.op == :parameter and node.attributes[:index] != 0)

        Map.put(fed, id, own? or Enum.any?(node.operands, &fed[&1]))
      end)
    end

    defp repeated(%{op: :dot, operands: [a, b]}, graph),
      do: Enum.filter([a, b], &costly?(graph, &1))

    defp repeated(%{op: :indexed_add, operands: [_, i, u]}, graph),
      do: Enum.filter([i, u], &costly?(graph, &1))

    defp repeated(_, _), do: []

    defp costly?(graph, id) do
      case graph.nodes[id] do
        %{op: op} when op in [:parameter, :tensor, :constant, :iota, :eye] -> false
        %{op: op, operands: [t | _]} when op in @views -> costly?(graph, t)
        %{shape: shape} -> size(shape) > 1
      end
    end

    defp extents(%{op: :dot, operands: [a, _], attributes: attributes}, graph),
      do: Enum.map(attributes[:contract_a], &Enum.at(graph.nodes[a].shape, &1))

    defp extents(%{op: :indexed_add, operands: [_, indices, _]}, graph),
      do: Enum.drop(graph.nodes[indices].shape, -1)

    defp extents(%{operands: [t], attributes: attributes}, graph),
      do: Enum.map(attributes[:axes], &Enum.at(graph.nodes[t].shape, &1))
  end
end
