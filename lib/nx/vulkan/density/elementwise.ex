if Code.ensure_loaded?(Nx) do
  defmodule Nx.Vulkan.Density.Elementwise do
    @moduledoc false
    # GLSL of ops on one element of each operand.

    import Nx.Vulkan.Density.Statements, only: [kind: 1, named: 4, unsupported: 1]

    alias Nx.Vulkan.{Density.Row, Density.Value, Ops}

    @unary Ops.floats(1) ++ ~w(real conjugate)a
    @binary Ops.floats(2) ++ ~w(quotient bitwise_and bitwise_or)a
    @truths Ops.truths()
    # Their integers may leave the type.
    @wraps ~w(negate abs add subtract multiply quotient)a

    @doc """
    An op of one operand: `{value, state}`.
    """
    def unary(_, %{op: op} = node, _) when op not in @unary, do: unsupported(node)
    def unary(st, %{op: op}, value) when op in [:real, :conjugate], do: {value, st}

    def unary(st, %{op: :negate, type: {t, _}}, {:const, number})
        when t in [:f, :bf] and is_number(number),
        do: {{:const, -number}, st}

    def unary(st, node, value), do: row(st, node, [value])

    @doc """
    An op of two operands: `{value, state}`.
    """
    def binary(_, %{op: op} = node, _, _) when op not in @binary, do: unsupported(node)

    def binary(st, %{op: op} = node, a, b) do
      cond do
        folded = folded(op, kind(node), a, b) ->
          {folded, st}

        op == :divide and Value.depth(b) < Value.depth(a) ->
          # A division costs as much as ten products: what a loop divides by is inverted outside of it.
          {inverse, st} = inverse(st, b)
          row(st, %{node | op: :multiply}, [a, inverse])

        op == :pow and kind(node) == :int ->
          unsupported(node)

        op == :pow and b in [{:const, 2}, {:const, 2.0}] ->
          row(st, %{node | op: :multiply}, [a, a])

        true ->
          row(st, node, [a, b])
      end
    end

    @doc """
    The row of a node's op on these values: `{value, state}`.
    """
    def row(st, %{op: op} = node, values) do
      kind = if op in @truths, do: :bool, else: kind(node)
      computes = Row.compute(op, length(values))

      operands =
        for {compute, id, value} <- Enum.zip([computes, node.operands, values]) do
          Value.text(value, operand_kind(compute, st.graph.nodes[id], node, values), st.type)
        end

      text = Row.text(op, operands)
      text = if kind == :int and op in @wraps, do: wrapped(text, node.type), else: text
      named(st, kind, text, values)
    end

    defp operand_kind(:compared, _, _, values), do: merged(values)
    defp operand_kind(:own, operand, _, _), do: number(kind(operand))
    defp operand_kind(compute, _, node, _) when compute in [:result, :exact], do: kind(node)

    # A truth is the integer 0 or 1.
    defp number(:bool), do: :int
    defp number(kind), do: kind

    defp inverse(st, b) do
      key = {{:inverse, b}, []}

      case st.memo do
        %{^key => inverse} ->
          {inverse, st}

        _ ->
          one = Value.float(1.0, st.type)
          text = Row.text(:divide, [one, Value.text(b, :float, st.type)])
          {inverse, st} = named(st, :float, text, [b])
          {inverse, put_in(st.memo[key], inverse)}
      end
    end

    # What holds for every other operand, and for constants.
    defp folded(:add, _, {:const, zero}, b) when zero in [0, 0.0], do: same_kind(b)
    defp folded(:add, _, a, {:const, zero}) when zero in [0, 0.0], do: same_kind(a)
    defp folded(:subtract, _, a, {:const, zero}) when zero in [0, 0.0], do: same_kind(a)
    defp folded(:multiply, :float, {:const, one}, {:float, _, _} = b) when one in [1, 1.0], do: b
    defp folded(:multiply, :float, {:float, _, _} = a, {:const, one}) when one in [1, 1.0], do: a
    defp folded(:divide, :float, {:float, _, _} = a, {:const, one}) when one in [1, 1.0], do: a
    defp folded(_, _, _, _), do: nil

    # A bool or an int would have to be converted first.
    defp same_kind({:const, _} = value), do: value
    defp same_kind({:float, _, _} = value), do: value
    defp same_kind(_), do: nil

    @doc """
    Text of an int that keeps the bits of its type.
    """
    # An int of GLSL has 32 bits, of which a narrower type keeps the lowest.
    def wrapped(text, {:u, bits}) when bits < 32, do: "(#{text}) & #{2 ** bits - 1}"
    def wrapped(text, {:s, bits}) when bits < 32, do: "bitfieldExtract(#{text}, 0, #{bits})"
    def wrapped(text, _), do: text

    @doc """
    Whether a node has integers of fewer than 32 bits.
    """
    def narrow?(%{type: {t, bits}}), do: t in [:s, :u] and bits < 32

    @doc """
    The kind in which values are compared.
    """
    def merged(values) do
      if Enum.any?(values, &(match?({:float, _, _}, &1) or float_const?(&1))),
        do: :float,
        else: :int
    end

    defp float_const?({:const, number}), do: is_float(number) or is_atom(number)
    defp float_const?(_), do: false
  end
end
