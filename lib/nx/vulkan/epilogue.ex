if Code.ensure_loaded?(Nx) do
  defmodule Nx.Vulkan.Epilogue do
    @moduledoc false
    # What a function makes of the elements of a product, as the attribute `epilogue` of docs/ops.md.

    alias Nx.Defn.Expr
    alias Nx.Tensor, as: T
    alias Nx.Vulkan.Graph

    # Parameters of the function count from here, so that none is taken for one of a function around it.
    @first 1_000_000

    @unary ~w(exp expm1 log log1p sigmoid cos sin tan cosh sinh tanh acosh asinh atanh acos asin atan sqrt rsqrt cbrt erf
              erfc erf_inv abs negate sign round ceil floor is_nan is_infinity)a
    @binary ~w(add subtract multiply divide atan2 pow remainder min max equal not_equal greater less greater_equal
               less_equal logical_and logical_or logical_xor)a
    @ternary ~w(select clip)a

    @doc """
    `{text, template}` of what `fun` makes of `plain`, a product of the first two tensors, and the others, or `nil` where it is
    no such expression: of floats, element by element, of all its operands, without tensors of its own.
    """
    def of(fun, plain, [a, b | operands]) do
      product = plain.(parameter(a, 0), parameter(b, 1))

      parameters =
        for {t, at} <- Enum.with_index([product | operands]), do: parameter(t, @first + at)

      with true <- Enum.all?(parameters, &match?({kind, _} when kind in [:f, :bf], &1.type)),
           %T{shape: shape, vectorized_axes: []} = t when shape == product.shape <-
             apply(fun, parameters),
           {:ok, text} <- text(t) do
        {text, Nx.to_template(t)}
      else
        _ -> nil
      end
    end

    defp parameter(t, at), do: Expr.parameter(:root, t.type, t.shape, at)

    defp text(t) do
      %{nodes: nodes, captured: [], outputs: [last]} = graph = Graph.new([t])
      order = Graph.order(graph)
      {calls, known} = Enum.reduce(order, {[], %{}}, &call(&1, nodes, &2))

      # The product itself is no call.
      case known[last] do
        "%" <> _ -> {:ok, calls |> Enum.reverse() |> Enum.join("; ")}
        _ -> nil
      end
    rescue
      MatchError -> nil
    catch
      {:unsupported, _, _, _} -> nil
    end

    defp call(id, nodes, {calls, known}) do
      node = nodes[id]

      case term(node, Enum.map(node.operands, &known[&1]), nodes) do
        {:same, term} ->
          {calls, Map.put(known, id, term)}

        call ->
          {[call | calls], Map.put(known, id, "%#{length(calls)}")}
      end
    end

    defp term(%{op: :parameter, attributes: [index: @first]}, [], _), do: {:same, "x"}

    defp term(%{op: :parameter, attributes: [index: at]}, [], _) when at > @first,
      do: {:same, "i#{at - @first + 1}"}

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
