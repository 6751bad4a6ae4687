defmodule Nx.Vulkan.PipelineCache do
  @moduledoc """
  The driver's compiled pipelines on disk, which spare the next VM their compilation.

  The file is read when a device opens, and written whenever the device has nothing to do and pipelines were made, so
  nobody has to call these functions. It carries a checksum and the UUID by which the driver knows its own data: what is
  damaged, or from another device or driver, is not used, and written anew. It is of the default device
  (`config :nx_vulkan, device: …`), which opens on first use.

  A driver may have nothing to keep: lavapipe's file is the header alone.
  """

  alias Nx.Vulkan.{Device, NativeV}

  @doc """
  Adds what the file has to what the driver knows, as opening the device did.

  Returns `:ok`, also where there is no file, or `{:error, message}` for one that cannot be read, is damaged, or comes from
  another device or driver.
  """
  def load, do: call(&NativeV.load_pipelines/1)

  @doc """
  Writes the file now, under another name first. Returns `:ok` or `{:error, message}`.
  """
  def persist, do: call(&NativeV.persist_pipelines/1)

  @doc """
  Removes the file. Returns `:ok`, also where there is none, or `{:error, message}`. Pipelines that are there stay; the file is
  written again when the next one was made.
  """
  def clear, do: call(&NativeV.clear_pipelines/1)

  @doc """
  The file. Its name has the device's UUID and a hash of the driver's name and version.

  Raises `Nx.Vulkan.Error` without a device or a cache folder.
  """
  def default_path do
    case Device.default() |> Device.fetch!() |> NativeV.pipeline_cache_path() do
      {:ok, path} -> path
      {:error, kind, message} -> Nx.Vulkan.Error.raise!(kind, message)
    end
  end

  @doc """
  The `pipelineCacheUUID` of the device and its driver, as 32 hexadecimal digits.

  Raises `Nx.Vulkan.Error` without a device.
  """
  def device_uuid_hex, do: Device.default() |> Device.fetch!() |> NativeV.pipeline_cache_uuid()

  defp call(fun) do
    with {:ok, device} <- Device.fetch(Device.default()),
         :ok <- fun.(device) do
      :ok
    else
      {:error, _kind, message} -> {:error, message}
    end
  end
end
