if Code.ensure_loaded?(Nx) do
  defmodule Nx.Vulkan.Graph do
    @moduledoc false
    # A traced function of Nx as data: nodes by id, in the words of requests. A node has its op, the ids of its operands, the
    # type and shape of its result, and attributes. A `:parameter` is an input of the function and a `:tensor` one that it
    # captured, both with their `:index`; the rest are ops of Nx. The same op on the same operands is one node. Blocks are
    # their default functions, and `cond` is made of `select`.

    alias Nx.Defn.Expr
    alias Nx.Tensor, as: T
    alias Nx.Vulkan.Ops

    @enforce_keys [:nodes, :inputs, :captured, :outputs]
    defstruct @enforce_keys ++ [:scope, known: %{}]

    # Attributes of an op that come behind its operands.
    @attributes %{
      broadcast: [:shape, :axes],
      constant: [:number],
      iota: [:axis],
      pad: [:padding],
      reverse: [:axes],
      squeeze: [:axes],
      transpose: [:axes]
    }
    @reductions ~w(sum product all any reduce_max reduce_min)a

    @doc """
    The graph of the tensors that a trace gave. Throws `{:unsupported, op, type, shape}` for what is no op on tensors alone.
    """
    def new(tensors) do
      graph = %__MODULE__{nodes: %{}, inputs: %{}, captured: [], outputs: []}
      {outputs, graph} = Enum.map_reduce(tensors, graph, &flip/2)
      %{graph | outputs: outputs, captured: Enum.reverse(graph.captured)}
    end

    @doc """
    Ids of the nodes that the outputs need, each after those that it reads.
    """
    def order(graph) do
      {order, _} = Enum.reduce(graph.outputs, {[], MapSet.new()}, &visit(&1, &2, graph))
      Enum.reverse(order)
    end

    defp visit(id, {order, seen}, graph) do
      if MapSet.member?(seen, id) do
        {order, seen}
      else
        operands = graph.nodes[id].operands

        {order, seen} =
          Enum.reduce(operands, {order, MapSet.put(seen, id)}, &visit(&1, &2, graph))

        {[id | order], seen}
      end
    end

    defp convert(graph, %T{data: %Expr{id: id}}) when is_map_key(graph.nodes, id) do
      case graph.nodes[id] do
        {:same, other} -> {other, graph}
        _ -> {id, graph}
      end
    end

    defp convert(graph, %T{data: %Expr{id: id, op: op, args: args}} = t) do
      case node(graph, op, args, t) do
        {:same, other, graph} -> {other, put_in(graph.nodes[id], {:same, other})}
        {node, graph} -> put(graph, id, node, t)
      end
    end

    defp put(_, _, {op, _, _}, %T{type: {:c, _}} = t),
      do: throw({:unsupported, op, t.type, t.shape})

    defp put(graph, id, {op, operands, attributes}, t) do
      shape = Tuple.to_list(t.shape)
      node = %{op: op, operands: operands, type: t.type, shape: shape, attributes: attributes}

      case graph.known do
        %{^node => other} ->
          {other, put_in(graph.nodes[id], {:same, other})}

        known ->
          {id, %{graph | nodes: Map.put(graph.nodes, id, node), known: Map.put(known, node, id)}}
      end
    end

    defp node(graph, :metadata, [%T{} = t, _], _), do: same(graph, t)
    defp node(graph, :block, [_, args, %T{} = default, _], _), do: body(graph, args, default)

    defp node(graph, :elem, [%T{data: %Expr{op: :block, args: [_, args, tuple, _]}}, at], _)
         when is_tuple(tuple),
         do: body(graph, args, elem(tuple, at))

    defp node(graph, :elem, [%T{data: %Expr{op: :metadata, args: [tuple, _]}}, at], _)
         when is_tuple(tuple),
         do: same(graph, elem(tuple, at))

    defp node(graph, :elem, [%T{data: %Expr{op: :cond, args: [clauses, last]}}, at], t) do
      branches = for {condition, branch} <- clauses, do: {condition, elem(branch, at)}
      node(graph, :cond, [branches, elem(last, at)], t)
    end

    defp node(graph, :cond, [clauses, %T{} = last], t) do
      {otherwise, graph} = convert(graph, last)

      {id, graph} =
        clauses
        |> Enum.reverse()
        |> Enum.reduce({otherwise, graph}, fn {condition, branch}, {otherwise, graph} ->
          {condition, graph} = convert(graph, condition)
          {branch, graph} = convert(graph, branch)
          put(graph, make_ref(), {:select, [condition, branch, otherwise], []}, t)
        end)

      {:same, id, graph}
    end

    defp node(%{scope: %{} = scope} = graph, :parameter, [at], _), do: {:same, scope[at], graph}

    defp node(graph, :parameter, [at], t) do
      {{:parameter, [], index: at}, put_in(graph.inputs[at], Tuple.to_list(t.shape))}
    end

    defp node(graph, :constant, [number], t),
      do: {{:constant, [], number: rounded(number, t.type)}, graph}

    defp node(graph, :tensor, [tensor], _) do
      # A tensor that is captured twice is there once.
      case Enum.find_index(graph.captured, &(&1 == tensor)) do
        nil ->
          index = length(graph.captured)
          {{:tensor, [], index: index}, %{graph | captured: [tensor | graph.captured]}}

        at ->
          {{:tensor, [], index: length(graph.captured) - 1 - at}, graph}
      end
    end

    # A start that is a tensor comes behind the other operands; its attribute says which.
    defp node(graph, :slice, [t, starts, lengths, strides], _) do
      {starts, dynamic, graph} = starts(graph, starts, 1)
      attributes = [starts: starts, lengths: lengths, strides: strides]
      operands(graph, :slice, [t], dynamic, attributes)
    end

    defp node(graph, :put_slice, [t, starts, slice], _) do
      {starts, dynamic, graph} = starts(graph, starts, 2)
      operands(graph, :put_slice, [t, slice], dynamic, starts: starts)
    end

    defp node(graph, op, [list, axis], _) when op in [:concatenate, :stack],
      do: operands(graph, op, list, [], axis: axis)

    defp node(graph, op, [t, _] = args, _) when op in @reductions,
      do: operands(graph, op, [t], [], Ops.attrs(op, args))

    defp node(graph, :dot, [a, _, _, b, _, _] = args, _),
      do: operands(graph, :dot, [a, b], [], Ops.attrs(:dot, args))

    defp node(graph, op, args, _) when op in [:gather, :indexed_add] do
      {tensors, [opts]} = Enum.split(args, -1)
      operands(graph, op, tensors, [], axes: opts[:axes])
    end

    defp node(graph, op, args, t) do
      {tensors, rest} = Enum.split_while(args, &is_struct(&1, T))
      names = Map.get(@attributes, op, [])

      if length(names) == length(rest),
        do: operands(graph, op, tensors, [], Enum.zip(names, rest)),
        else: throw({:unsupported, name(op, args), t.type, t.shape})
    end

    defp name(:elem, [%T{data: %Expr{op: op}}, _]), do: op
    defp name(op, _), do: op

    # The body of a block has parameters of its own, which stand for the block's tensors.
    defp body(graph, args, default) do
      tensors =
        for %T{} = t <- Nx.Defn.Composite.flatten_list(Enum.filter(args, &tensors?/1)), do: t

      {ids, graph} = Enum.map_reduce(tensors, graph, &flip/2)
      scope = ids |> Enum.with_index() |> Map.new(fn {id, at} -> {at, id} end)
      {:same, id, inner} = same(%{graph | scope: scope}, default)
      {:same, id, %{inner | scope: graph.scope}}
    end

    defp tensors?(arg), do: not is_list(arg) and not is_atom(arg) and not is_number(arg)

    defp same(graph, t) do
      {id, graph} = convert(graph, t)
      {:same, id, graph}
    end

    defp operands(graph, op, tensors, more, attributes) do
      {ids, graph} = Enum.map_reduce(tensors, graph, &flip/2)
      {{op, ids ++ more, attributes}, graph}
    end

    # Starts as integers or `{:operand, n}`, and the ids of those.
    defp starts(graph, starts, count) do
      {starts, {dynamic, graph}} =
        Enum.map_reduce(starts, {[], graph}, fn
          start, acc when is_integer(start) ->
            {start, acc}

          %T{} = start, {dynamic, graph} ->
            {id, graph} = convert(graph, start)
            {{:operand, count + length(dynamic)}, {[id | dynamic], graph}}
        end)

      {starts, Enum.reverse(dynamic), graph}
    end

    defp flip(t, graph), do: convert(graph, t)

    # What an evaluator makes of the number.
    defp rounded(number, {:f, 32}) when is_float(number) do
      <<rounded::float-32>> = <<number::float-32>>
      rounded
    rescue
      ArgumentError -> number
      MatchError -> number
    end

    defp rounded(number, _), do: number
  end
end
