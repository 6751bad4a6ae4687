if Code.ensure_loaded?(Nx) do
  defmodule Nx.Vulkan.Density.Graph do
    @moduledoc false
    # A traced log density and its gradient as plain nodes: `%{op, shape, type, args}` by id, where args name other nodes.

    alias Nx.Defn.Expr
    alias Nx.Tensor, as: T
    alias Nx.Vulkan.Density.Elementwise

    @enforce_keys [:nodes, :value, :gradient, :parameters, :captured]
    defstruct @enforce_keys ++ [:scope, known: %{}]

    @unary [:as_type | Elementwise.ops()[1]]
    @binary Elementwise.ops()[2]
    @aggregates ~w(sum product all any reduce_max reduce_min)a

    @doc """
    The graph of a value and its gradient. Throws `{:unsupported, op, type, shape}`.
    """
    def new(%T{} = value, %T{} = gradient) do
      graph = %__MODULE__{nodes: %{}, value: nil, gradient: nil, parameters: %{}, captured: []}
      {value, graph} = convert(graph, value)
      {gradient, graph} = convert(graph, gradient)
      %{graph | value: value, gradient: gradient, captured: Enum.reverse(graph.captured)}
    end

    @doc """
    Ids of the nodes that a node reads.
    """
    def reads(%{op: op, args: args}) do
      case {op, args} do
        {:slice, [t, starts, _lengths, _strides]} -> [t | Enum.filter(starts, &is_reference/1)]
        {:put_slice, [t, starts, slice]} -> [t, slice | Enum.filter(starts, &is_reference/1)]
        {op, [list, _axis]} when op in [:concatenate, :stack] -> list
        {_, args} -> Enum.filter(args, &is_reference/1)
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

    # The same op on the same operands is one node, whatever its id in the trace.
    defp put(_, _, {op, _}, %T{type: {:c, _}} = t),
      do: throw({:unsupported, op, t.type, t.shape})

    defp put(graph, id, {op, args}, t) do
      node = %{op: op, shape: Tuple.to_list(t.shape), type: t.type, args: args}

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
          put(graph, make_ref(), {:select, [condition, branch, otherwise]}, t)
        end)

      {:same, id, graph}
    end

    defp node(%{scope: %{} = scope} = graph, :parameter, [at], _), do: {:same, scope[at], graph}

    defp node(graph, :parameter, [at], t) do
      {{:parameter, [at]}, put_in(graph.parameters[at], Tuple.to_list(t.shape))}
    end

    defp node(graph, :constant, [number], t), do: {{:constant, [rounded(number, t.type)]}, graph}

    defp node(graph, :tensor, [tensor], _) do
      # A tensor that is captured twice is in the data once.
      case Enum.find_index(graph.captured, &(&1 == tensor)) do
        nil ->
          {{:captured, [length(graph.captured)]}, %{graph | captured: [tensor | graph.captured]}}

        at ->
          {{:captured, [length(graph.captured) - 1 - at]}, graph}
      end
    end

    defp node(graph, :iota, [axis], _), do: {{:iota, [axis]}, graph}
    defp node(graph, :eye, [], _), do: {{:eye, []}, graph}

    defp node(graph, op, args, _) when op in @unary and length(args) == 1,
      do: operands(graph, op, args, [])

    defp node(graph, op, args, _) when op in @binary, do: operands(graph, op, args, [])
    defp node(graph, op, args, _) when op in [:select, :clip], do: operands(graph, op, args, [])

    defp node(graph, op, [t, opts], _) when op in @aggregates do
      axes = opts[:axes] || Nx.axes(t)
      operands(graph, op, [t], [axes, opts[:keep_axes] || false])
    end

    defp node(graph, :dot, [a, axes_a, batch_a, b, axes_b, batch_b], _),
      do: operands(graph, :dot, [a, b], [{axes_a, batch_a}, {axes_b, batch_b}])

    defp node(graph, :reshape, [t], _), do: operands(graph, :reshape, [t], [])
    defp node(graph, :squeeze, [t, axes], _), do: operands(graph, :squeeze, [t], [axes])
    defp node(graph, :transpose, [t, axes], _), do: operands(graph, :transpose, [t], [axes])
    defp node(graph, :reverse, [t, axes], _), do: operands(graph, :reverse, [t], [axes])
    defp node(graph, :broadcast, [t, _, axes], _), do: operands(graph, :broadcast, [t], [axes])
    defp node(graph, :pad, [t, value, config], _), do: operands(graph, :pad, [t, value], [config])

    defp node(graph, :slice, [t, starts, lengths, strides], _) do
      {starts, graph} = starts(graph, starts)
      operands(graph, :slice, [t], [starts, lengths, strides])
    end

    defp node(graph, :put_slice, [t, starts, slice], _) do
      {starts, graph} = starts(graph, starts)
      {[t, slice], graph} = Enum.map_reduce([t, slice], graph, &flip(&1, &2))
      {{:put_slice, [t, starts, slice]}, graph}
    end

    defp node(graph, op, [list, axis], _) when op in [:concatenate, :stack] do
      {list, graph} = Enum.map_reduce(list, graph, &flip(&1, &2))
      {{op, [list, axis]}, graph}
    end

    defp node(graph, :gather, [t, indices, opts], _),
      do: operands(graph, :gather, [t, indices], [opts[:axes]])

    defp node(graph, :indexed_add, [t, indices, updates, opts], _),
      do: operands(graph, :indexed_add, [t, indices, updates], [opts[:axes]])

    defp node(_graph, op, args, t), do: throw({:unsupported, name(op, args), t.type, t.shape})

    defp name(:elem, [%T{data: %Expr{op: op}}, _]), do: op
    defp name(op, _), do: op

    # The body of a block has parameters of its own, which stand for the block's tensors.
    defp body(graph, args, default) do
      tensors =
        for %T{} = t <- Nx.Defn.Composite.flatten_list(Enum.filter(args, &tensors?/1)), do: t

      {ids, graph} = Enum.map_reduce(tensors, graph, &flip(&1, &2))
      scope = ids |> Enum.with_index() |> Map.new(fn {id, at} -> {at, id} end)
      {:same, id, inner} = same(%{graph | scope: scope}, default)
      {:same, id, %{inner | scope: graph.scope}}
    end

    defp tensors?(arg), do: not is_list(arg) and not is_atom(arg) and not is_number(arg)

    defp same(graph, t) do
      {id, graph} = convert(graph, t)
      {:same, id, graph}
    end

    defp operands(graph, op, tensors, rest) do
      {ids, graph} = Enum.map_reduce(tensors, graph, &flip(&1, &2))
      {{op, ids ++ rest}, graph}
    end

    defp starts(graph, starts) do
      Enum.map_reduce(starts, graph, fn
        start, graph when is_integer(start) -> {start, graph}
        %T{} = start, graph -> convert(graph, start)
      end)
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
