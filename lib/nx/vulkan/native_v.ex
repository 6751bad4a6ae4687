defmodule Nx.Vulkan.NativeV do
  @moduledoc """
  The NIF library: buffers and ops of the Vulkan host, without Nx.

  The buffer functions below are for callers who bring their own bytes. They use the default device
  (`config :nx_vulkan, device: …`), which opens on first use. A buffer belongs to no process: any process may
  use it, and its memory goes back to the pool when the last reference is garbage collected.
  """

  @on_load :load

  # Name and arity of every function the library provides.
  @natives [
    open_device: 2,
    list_devices: 0,
    device_info: 1,
    device_stats: 1,
    sync_now: 1,
    sync_dirty: 1,
    validation_messages: 0,
    upload: 4,
    upload_dirty: 4,
    constant: 4,
    constant_of: 1,
    download_now: 2,
    download_dirty: 2,
    deallocate: 1,
    tensor_info: 1,
    device_of: 1,
    same_device: 2,
    run: 4,
    run_dirty: 4,
    explain: 5,
    reshape: 2,
    transpose: 2,
    squeeze: 2,
    broadcast: 3,
    slice: 4,
    reverse: 2,
    bitcast: 2,
    count_fallback: 1,
    fallback_counts: 0,
    buffer_upload: 2,
    buffer_alloc: 2,
    buffer_download_now: 1,
    buffer_download_dirty: 1,
    follow: 2,
    reload: 1,
    pack_versions: 2,
    rollback: 3,
    resume_pack: 2
  ]

  @doc """
  Copies a binary into a new device buffer.

  Returns `{:ok, ref}`, `{:error, :bad_input}` for anything but a binary, `{:error, :upload_failed, message}`, or
  `{:error, :vulkan_init_failed, message}` when there is no device.
  """
  def buf_upload(binary), do: with_device(&buffer_upload(&1, binary))

  @doc """
  Makes a device buffer of `n_bytes` zeros. Returns what `buf_upload/1` returns.
  """
  def buf_alloc(n_bytes), do: with_device(&buffer_alloc(&1, n_bytes))

  @doc """
  Reads a device buffer back.

  Returns `{:ok, binary}`, `{:error, :bad_input}` for anything but a live buffer, or `{:error, :download_failed, message}`.
  """
  def buf_download(ref) do
    with :dirty <- buffer_download_now(ref), do: buffer_download_dirty(ref)
  end

  @doc """
  Size of a buffer in bytes, as a plain integer.
  """
  def buf_byte_size(_ref), do: not_loaded()

  @doc """
  Overwrites a buffer with a binary of the same size.

  Returns `:ok`, `{:error, :size_mismatch}`, `{:error, :bad_input}` or `{:error, :upload_failed, message}`.
  """
  def buf_upload_into(_ref, _binary), do: not_loaded()

  for {name, arity} <- @natives do
    arguments = for i <- 1..arity//1, do: Macro.var(:"_argument#{i}", __MODULE__)
    @doc false
    def unquote(name)(unquote_splicing(arguments)), do: not_loaded()
  end

  @doc false
  def download(ref, limit) do
    with :dirty <- download_now(ref, limit), do: download_dirty(ref, limit)
  end

  @doc false
  def sync_device(device) do
    with :dirty <- sync_now(device), do: sync_dirty(device)
  end

  @doc false
  def load do
    :nx_vulkan |> :code.priv_dir() |> :filename.join(~c"libnx_vulkan_nif") |> :erlang.load_nif(0)
  end

  defp with_device(fun) do
    case Nx.Vulkan.Device.fetch(Nx.Vulkan.Device.default()) do
      {:ok, device} -> fun.(device)
      {:error, _kind, message} -> {:error, :vulkan_init_failed, message}
    end
  end

  defp not_loaded, do: :erlang.nif_error(:nif_not_loaded)
end
