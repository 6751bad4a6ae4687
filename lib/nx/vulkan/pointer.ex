if Code.ensure_loaded?(Nx) do
  defmodule Nx.Vulkan.Pointer do
    @moduledoc false
    # What an Nx.Pointer says of a tensor here, and the tensor that one stands for.

    import Nx.Vulkan.Packed, only: [is_packed: 1]

    alias Nx.Vulkan.NativeV

    @most_addresses 2 ** 64

    @doc """
    The pointer to the elements of `type` behind a reference: `{:ok, pointer}` or `{:error, kind, message}`.
    """
    def of(ref, type, opts) do
      opts = Keyword.validate!(opts, mode: :local, permissions: 0o400)
      bytes = whole_bytes!(type)
      # A vectorized tensor has more elements than its shape says.
      size = Tuple.product(NativeV.tensor_info(ref).shape) * bytes

      case {opts[:mode], opts[:permissions]} do
        {:local, _} ->
          with {:ok, address} <- NativeV.address_of(ref),
               do: {:ok, %Nx.Pointer{kind: :local, address: address, data_size: size}}

        {:ipc, permissions} when permissions in 0..0o7777 ->
          with {:ok, name} <- NativeV.share(ref, permissions),
               do: {:ok, %Nx.Pointer{kind: :ipc, handle: name, data_size: size}}

        {:ipc, permissions} ->
          raise ArgumentError,
                "expected :permissions to be a file's mode, such as 0o400, got: #{inspect(permissions)}"

        {mode, _} ->
          raise ArgumentError, "expected :mode to be :local or :ipc, got: #{inspect(mode)}"
      end
    end

    @doc """
    A reference to a tensor of what a pointer points at: `{:ok, reference}` or `{:error, kind, message}`.
    """
    def fetch(pointer, device, type, shape) do
      expected = Tuple.product(shape) * whole_bytes!(type)

      case pointer do
        # Where nobody says how much there is, it is what the shape says.
        %Nx.Pointer{data_size: size} when size not in [nil, expected] ->
          raise ArgumentError,
                "expected a pointer to #{expected} bytes for #{Nx.Type.to_string(type)}#{inspect(shape)}, " <>
                  "got: one to #{inspect(size)} bytes"

        %Nx.Pointer{kind: :local, address: address}
        when is_integer(address) and address > 0 and address < @most_addresses ->
          NativeV.from_address(device, type, shape, address)

        %Nx.Pointer{kind: :ipc, handle: handle} when is_binary(handle) and handle != "" ->
          if String.valid?(handle),
            do: NativeV.from_shared(device, type, shape, handle),
            else: refuse!(pointer)

        other ->
          refuse!(other)
      end
    end

    defp refuse!(pointer) do
      raise ArgumentError,
            "expected an Nx.Pointer with an address above 0 (of kind :local) or with the name of shared memory as its " <>
              "handle (of kind :ipc), got: #{inspect(pointer)}"
    end

    defp whole_bytes!(type) when is_packed(type) do
      raise ArgumentError,
            "expected a type of whole bytes, got: #{Nx.Type.to_string(type)}, of which memory here has one element a byte"
    end

    defp whole_bytes!({_, bits}), do: div(bits, 8)
  end
end
