if Code.ensure_loaded?(Nx) do
  defmodule Nx.Vulkan.Conv do
    @moduledoc false
    # A convolution with an epilogue, or with a precision of its own, as a block: the op `conv` of docs/ops.md, whose attributes
    # are the fields.

    @enforce_keys [
      :batch_group_size,
      :feature_group_size,
      :input_dilation,
      :input_permutation,
      :kernel_dilation,
      :kernel_permutation,
      :output_permutation,
      :padding,
      :strides
    ]
    defstruct @enforce_keys ++ [:epilogue, :precision]
  end
end
