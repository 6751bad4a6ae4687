defmodule Nx.Vulkan.Packed do
  @moduledoc false
  # Types narrower than a byte: Nx packs their elements, a device buffer holds one per byte.

  defguard is_packed(type) when is_tuple(type) and elem(type, 1) < 8

  @doc """
  One byte for each element, sign-extended.
  """
  def unpack(bits, {:u, size}), do: for(<<x::size(size) <- bits>>, into: <<>>, do: <<x>>)

  def unpack(bits, {:s, size}),
    do: for(<<x::signed-size(size) <- bits>>, into: <<>>, do: <<x::signed>>)

  @doc """
  The elements next to each other, as Nx has them.
  """
  def pack(bytes, {_, size}), do: for(<<x <- bytes>>, into: <<>>, do: <<x::size(size)>>)
end
