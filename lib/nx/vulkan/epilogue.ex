if Code.ensure_loaded?(Nx) do
  defmodule Nx.Vulkan.Epilogue do
    @moduledoc false
    # What a function makes of the elements of a product, as the attribute `epilogue` of docs/ops.md.

    alias Nx.Defn.Expr
    alias Nx.Tensor, as: T
    alias Nx.Vulkan.{Graph, Ops}

    # Parameters of the function count from here, so that none is taken for one of a function around it.
    @first 1_000_000

    @unary Ops.floats(1)
    @binary Ops.floats(2)
    @ternary Ops.floats(3)
    # A truth's own arithmetic wraps, and is none of floats.
    @truths Ops.truths()

    # As the attribute takes.
    @most_calls 64

    @doc """
    `{text, template}` of what `fun` makes of `plain`, a product of the first two tensors, and the others, or `nil` where it is
    no such expression: of floats, element by element, of all its operands, without tensors of its own. `fun` may be called with
    expressions where it wants numbers: whatever goes wrong then is told when it is called with tensors.
    """
    def of(fun, plain, [a, b | operands]) do
      product = plain.(parameter(a, 0), parameter(b, 1))

      parameters =
        for {t, at} <- Enum.with_index([product | operands]), do: parameter(t, @first + at)

      with true <- Enum.all?(parameters, &match?({kind, _} when kind in [:f, :bf], &1.type)),
           %T{shape: shape, vectorized_axes: []} = t when shape == product.shape <-
             traced(fun, parameters),
           {:ok, text} <- text(t, parameters) do
        {text, Nx.to_template(t)}
      else
        _ -> nil
      end
    rescue
      _ -> nil
    catch
      _, _ -> nil
    end

    # Numbers among expressions become tensors of the default backend, which have to be constants here.
    defp traced(fun, parameters),
      do: Nx.with_default_backend(Nx.BinaryBackend, fn -> apply(fun, parameters) end)

    defp parameter(t, at), do: t |> Nx.to_template() |> Expr.parameter(:root, at)

    defp text(t, parameters) do
      %{nodes: nodes, captured: [], outputs: [last]} = graph = Graph.new([t])
      order = Graph.order(graph)
      widest = [t | parameters] |> Enum.map(&elem(&1.type, 1)) |> Enum.max() |> max(32)
      {calls, known} = Enum.reduce(order, {[], %{}}, &call(&1, nodes, widest, &2))
      terms = Map.values(known)
      used? = Enum.all?(0..(length(parameters) - 1), &(name(&1) in terms))

      # The product itself is no call.
      case known[last] do
        "%" <> _ when used? and length(calls) <= @most_calls ->
          {:ok, calls |> Enum.reverse() |> Enum.join("; ")}

        _ ->
          nil
      end
    end

    defp name(0), do: "x"
    defp name(at), do: "i#{at + 1}"

    defp call(id, nodes, widest, {calls, known}) do
      node = nodes[id]
      fits!(node, widest)

      case term(node, Enum.map(node.operands, &known[&1]), nodes) do
        {:same, term} ->
          {calls, Map.put(known, id, term)}

        call ->
          {[call | calls], Map.put(known, id, "%#{length(calls)}")}
      end
    end

    # Whether it is computed as Nx does in the one type that there is, which holds every parameter and the result.
    defp fits!(%{op: op}, _) when op in [:parameter | @truths], do: :ok

    defp fits!(%{op: :constant, attributes: [number: number]} = node, widest) do
      unless held?(number, widest), do: throw({:unsupported, :constant, node.type, node.shape})
    end

    defp fits!(%{type: {kind, bits}}, widest) when kind in [:f, :bf] and bits <= widest, do: :ok
    defp fits!(node, _), do: throw({:unsupported, node.op, node.type, node.shape})

    # A number that the type does not have is another one in comparisons.
    defp held?(number, 32) when is_integer(number), do: abs(number) < 16_777_216
    defp held?(number, _) when is_integer(number), do: abs(number) < 9_007_199_254_740_992

    defp held?(number, 32) when is_float(number),
      do: match?(<<^number::float-32>>, <<number::float-32>>)

    defp held?(_number, _widest), do: true

    defp term(%{op: :parameter, attributes: [index: at]}, [], _) when at >= @first,
      do: {:same, name(at - @first)}

    defp term(%{op: :constant, attributes: [number: number]}, [], _), do: {:same, number(number)}

    # Everything is computed in one type, which holds that of each float.
    defp term(%{op: :as_type, type: {kind, _}, operands: [from]} = node, [term], nodes)
         when kind in [:f, :bf] do
      case nodes[from].type do
        {kind, _} when kind in [:f, :bf, :u] -> {:same, term}
        _ -> throw({:unsupported, :as_type, node.type, node.shape})
      end
    end

    # Operands broadcast by themselves where their axes are the last ones.
    defp term(%{op: :broadcast, operands: [from]} = node, [term], nodes) do
      axes = node.attributes[:axes]
      rank = length(node.shape)

      if axes == Enum.to_list((rank - length(nodes[from].shape))..(rank - 1)//1),
        do: {:same, term},
        else: throw({:unsupported, :broadcast, node.type, node.shape})
    end

    defp term(%{op: op}, [a], _) when op in @unary, do: "#{op}(#{a})"
    defp term(%{op: op}, [a, b], _) when op in @binary, do: "#{op}(#{a}, #{b})"
    defp term(%{op: op}, [a, b, c], _) when op in @ternary, do: "#{op}(#{a}, #{b}, #{c})"
    defp term(node, _, _), do: throw({:unsupported, node.op, node.type, node.shape})

    defp number(:nan), do: "nan"
    defp number(:infinity), do: "inf"
    defp number(:neg_infinity), do: "-inf"
    defp number(number) when is_number(number), do: to_string(number)
  end
end
