if Code.ensure_loaded?(Nx) do
  defmodule Nx.Vulkan.Density.Elementwise do
    @moduledoc false
    # GLSL of ops on one element of each operand.

    import Nx.Vulkan.Density.Statements, only: [kind: 1, named: 4, unsupported: 1]

    alias Nx.Vulkan.{Density.Value, Ops}

    # Functions of the math headers, by their Nx names.
    @unary_math Ops.functions(1)
    @binary_math Ops.functions(2)
    @arithmetic %{add: "+", subtract: "-", multiply: "*"}
    @comparisons %{
      equal: "==",
      not_equal: "!=",
      greater: ">",
      less: "<",
      greater_equal: ">=",
      less_equal: "<="
    }
    @logic %{logical_and: "&&", logical_or: "||", logical_xor: "!="}
    @bits %{bitwise_and: "&", bitwise_or: "|"}
    @infix Enum.flat_map([@arithmetic, @comparisons, @logic, @bits], &Map.keys/1)

    @unary @unary_math ++ ~w(negate sign abs floor ceil round is_nan is_infinity real conjugate)a
    @binary @infix ++ @binary_math ++ ~w(divide remainder quotient min max)a

    @doc """
    An op of one operand: `{value, state}`.
    """
    def unary(_, %{op: op} = node, _) when op not in @unary, do: unsupported(node)
    def unary(st, %{op: op}, value) when op in [:real, :conjugate], do: {value, st}

    def unary(st, %{op: op} = node, value) do
      kind = kind(node)
      x = Value.text(value, if(op in [:is_nan, :is_infinity], do: :float, else: kind), st.type)

      case {op, value, kind} do
        {:negate, {:const, number}, :float} when is_number(number) ->
          {{:const, -number}, st}

        {op, _, :float} when op in @unary_math ->
          named(st, :float, "nxv_#{op}(#{x})", [value])

        {:negate, _, _} ->
          named(st, kind, wrapped("-#{x}", node.type), [value])

        {:abs, _, _} ->
          named(st, kind, wrapped("abs(#{x})", node.type), [value])

        {:sign, _, :int} ->
          named(st, :int, "sign(#{x})", [value])

        {:sign, _, :float} ->
          named(st, :float, "sign_of(#{x})", [value])

        {:is_nan, _, _} ->
          named(st, :bool, "isnan(#{x})", [value])

        {:is_infinity, _, _} ->
          named(st, :bool, "isinf(#{x})", [value])

        {:round, _, :float} ->
          named(st, :float, "sign_of(#{x}) * floor(abs(#{x}) + REAL(0.5))", [value])

        {op, _, :float} when op in [:floor, :ceil] ->
          named(st, :float, "#{op}(#{x})", [value])

        {_, _, :int} ->
          {value, st}
      end
    end

    @doc """
    An op of two operands: `{value, state}`.
    """
    def binary(_, %{op: op} = node, _, _) when op not in @binary, do: unsupported(node)

    def binary(st, %{op: op} = node, a, b) do
      cond do
        folded = folded(op, kind(node), a, b) ->
          {folded, st}

        text = @arithmetic[op] ->
          arithmetic(st, node, text, a, b)

        op == :divide and kind(node) == :float and Value.depth(b) < Value.depth(a) ->
          # A division costs as much as ten products: what a loop divides by is inverted outside of it.
          {inverse, st} = inverse(st, b)
          infix(st, :float, :float, "*", a, inverse)

        text = @comparisons[op] ->
          infix(st, :bool, merged(a, b), text, a, b)

        text = @logic[op] ->
          infix(st, :bool, :bool, text, a, b)

        text = @bits[op] ->
          infix(st, :int, :int, text, a, b)

        op == :pow and kind(node) == :int ->
          unsupported(node)

        true ->
          kind = kind(node)
          [x, y] = Enum.map([a, b], &Value.text(&1, kind, st.type))
          named(st, kind, call(op, kind, x, y, b), [a, b])
      end
    end

    defp inverse(st, b) do
      key = {{:inverse, b}, []}

      case st.memo do
        %{^key => inverse} ->
          {inverse, st}

        _ ->
          {inverse, st} =
            named(
              st,
              :float,
              "#{Value.float(1.0, st.type)} / #{Value.text(b, :float, st.type)}",
              [b]
            )

          {inverse, put_in(st.memo[key], inverse)}
      end
    end

    defp call(:divide, :float, x, y, _), do: "#{x} / #{y}"
    defp call(:pow, :float, x, _, {:const, two}) when two in [2, 2.0], do: "#{x} * #{x}"
    defp call(op, :float, x, y, _) when op in @binary_math, do: "nxv_#{op}(#{x}, #{y})"
    defp call(:remainder, :float, x, y, _), do: "nxv_fmod(#{x}, #{y})"
    defp call(:min, _, x, y, _), do: "minimum(#{x}, #{y})"
    defp call(:max, _, x, y, _), do: "maximum(#{x}, #{y})"
    defp call(:quotient, :int, x, y, _), do: "(#{y} == 0 ? 0 : #{x} / #{y})"
    defp call(:remainder, :int, x, y, _), do: "(#{y} == 0 ? 0 : #{x} - #{x} / #{y} * #{y})"

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
    Two operands of kind `operands` with an operator between them.
    """
    def infix(st, kind, operands, text, a, b) do
      [x, y] = Enum.map([a, b], &Value.text(&1, operands, st.type))
      named(st, kind, "#{x} #{text} #{y}", [a, b])
    end

    @doc """
    Two operands with an arithmetic operator between them, in the node's own type.
    """
    def arithmetic(st, node, text, a, b) do
      kind = kind(node)
      [x, y] = Enum.map([a, b], &Value.text(&1, kind, st.type))
      named(st, kind, wrapped("#{x} #{text} #{y}", node.type), [a, b])
    end

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
    The kind in which two values are compared.
    """
    def merged(a, b) do
      if Enum.any?([a, b], &match?({:float, _, _}, &1)) or Enum.any?([a, b], &float_const?/1),
        do: :float,
        else: :int
    end

    defp float_const?({:const, number}), do: is_float(number) or is_atom(number)
    defp float_const?(_), do: false
  end
end
