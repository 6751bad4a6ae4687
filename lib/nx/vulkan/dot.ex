if Code.ensure_loaded?(Nx) do
  defmodule Nx.Vulkan.Dot do
    @moduledoc false
    # A product with an epilogue, or with a precision of its own, as a block: the op `dot` of docs/ops.md, whose attributes are
    # the fields.

    @enforce_keys [:batch_a, :batch_b, :contract_a, :contract_b]
    defstruct @enforce_keys ++ [:epilogue, :precision]
  end
end
