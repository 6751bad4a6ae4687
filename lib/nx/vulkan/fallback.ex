if Code.ensure_loaded?(Nx) do
  defmodule Nx.Vulkan.Fallback do
    @moduledoc false
    # Runs a callback on Nx.BinaryBackend when neither a pack nor the host has it.

    alias Nx.Tensor, as: T
    alias Nx.Vulkan.Report

    @doc """
    The result of callback `op`, as a Nx.BinaryBackend tensor or a stream of them.
    """
    def run(op, out, arguments) do
      operands = for %T{type: type, shape: shape} <- List.flatten(arguments), do: {type, shape}
      Report.fallback(Atom.to_string(op), Nx.BinaryBackend, operands)

      # Nx.BinaryBackend calls Nx.* inside some callbacks, which allocates on the default backend.
      Nx.with_default_backend(Nx.BinaryBackend, fn ->
        apply(Nx.BinaryBackend, op, [out | Enum.map(arguments, &to_host/1)])
      end)
    end

    defp to_host(%T{data: %Nx.BinaryBackend{}} = tensor), do: tensor
    defp to_host(%T{} = tensor), do: Nx.backend_copy(tensor, Nx.BinaryBackend)
    defp to_host(list) when is_list(list), do: Enum.map(list, &to_host/1)

    defp to_host(fun) when is_function(fun, 2),
      do: fn left, right -> to_host(fun.(left, right)) end

    defp to_host(other), do: other
  end
end
