if Code.ensure_loaded?(Nx) do
  defmodule Nx.Vulkan.Operand do
    @moduledoc false
    # Right operands that have no result. A device gives a number for them; Nx.BinaryBackend raises. What the VM knows
    # without asking the device, the literals, raises here as well.

    alias Nx.Tensor, as: T
    alias Nx.Vulkan.{NativeV, VulkanoBackend}

    @doc """
    Raises when the right operand is an integer literal for which `op` is not defined.
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

    def check!(_op, _arguments), do: :ok

    defp literal(%T{data: %VulkanoBackend{ref: ref}, type: {kind, bits}}) do
      case NativeV.constant_of(ref) do
        <<n::signed-native-size(bits)>> when kind == :s -> n
        <<n::native-size(bits)>> -> n
        _ -> nil
      end
    end

    defp literal(%T{data: %Nx.BinaryBackend{}, shape: {}} = tensor), do: Nx.to_number(tensor)
    defp literal(_tensor), do: nil
  end
end
