if Code.ensure_loaded?(Nx) do
  defmodule Nx.Vulkan.Operand do
    @moduledoc false
    # Operands that have no result. A device gives a number or a NaN for them; Nx.BinaryBackend raises. What the VM knows
    # without asking the device, the literals, raises here as well.

    alias Nx.Tensor, as: T
    alias Nx.Vulkan.{NativeV, VulkanoBackend}

    @doc """
    Raises when the operands are literals for which `op` is not defined.
    """
    def check!(op, [_left, %T{type: {kind, _}} = right])
        when op in [:quotient, :left_shift, :right_shift] and kind in [:s, :u] do
      case {op, literal(right)} do
        {:left_shift, n} when n < 0 -> raise ArgumentError, "cannot left shift by #{n}"
        {:right_shift, n} when n < 0 -> raise ArgumentError, "cannot right shift by #{n}"
        {:quotient, 0} -> raise ArithmeticError
        _ -> :ok
      end
    end

    def check!(:remainder, [%T{type: {kind, _}} = left, %T{} = right]) when kind in [:f, :bf] do
      case {literal(left), literal(right)} do
        {a, b} when is_nil(a) or is_nil(b) -> :ok
        {a, b} when is_number(a) and is_number(b) -> :ok
        # Infinities and NaN have no remainder: this raises as Nx.BinaryBackend does.
        {a, b} -> :math.fmod(a, b)
      end
    end

    def check!(_op, _arguments), do: :ok

    defp literal(%T{data: %VulkanoBackend{ref: ref}, type: {kind, bits}}) do
      case NativeV.constant_of(ref) do
        <<n::signed-native-size(bits)>> when kind == :s ->
          n

        <<n::native-size(bits)>> when kind == :u ->
          n

        <<element::binary-size(div(bits, 8))>> when kind in [:f, :bf] ->
          number(element, {kind, bits})

        _ ->
          nil
      end
    end

    defp literal(%T{data: %Nx.BinaryBackend{}, shape: {}} = tensor), do: Nx.to_number(tensor)
    defp literal(_tensor), do: nil

    defp number(element, type),
      do:
        element
        |> Nx.from_binary(type, backend: Nx.BinaryBackend)
        |> Nx.squeeze()
        |> Nx.to_number()
  end
end
