defmodule Nx.Vulkan.Device do
  @moduledoc false
  # Open devices. A device opens on first use and stays open.

  alias Nx.Vulkan.{Error, Events, NativeV}

  @doc """
  The choice for callers who name no device.
  """
  def default, do: Application.get_env(:nx_vulkan, :device, :auto)

  @doc """
  Raises unless `choice` is `:auto`, an index, a name or a UUID.
  """
  def validate!(choice) do
    case choice do
      :auto ->
        choice

      index when is_integer(index) and index >= 0 ->
        choice

      text when is_binary(text) and text != "" ->
        choice

      other ->
        raise ArgumentError,
              "expected :device to be an index, a name or a UUID, got: #{inspect(other)}"
    end
  end

  @doc """
  The open device for a choice: `{:ok, device}` or `{:error, kind, message}`.
  """
  def fetch(choice) do
    case :persistent_term.get({__MODULE__, choice}, nil) do
      nil -> open(choice)
      device -> {:ok, device}
    end
  end

  @doc """
  As `fetch/1`, raising.
  """
  def fetch!(choice) do
    case fetch(choice) do
      {:ok, device} -> device
      {:error, kind, message} -> Error.raise!(kind, message)
    end
  end

  @doc """
  The devices that are open.
  """
  def opened do
    Enum.uniq(for {{__MODULE__, _choice}, device} <- :persistent_term.get(), do: device)
  end

  defp open(choice) do
    with {:ok, device} <- NativeV.open_device(choice, settings()) do
      :persistent_term.put({__MODULE__, choice}, device)
      Events.follow(device)
      {:ok, device}
    end
  end

  defp shader_timeout! do
    case Application.get_env(:nx_vulkan, :shader_timeout) do
      nil ->
        nil

      limit when is_integer(limit) and limit in 1..0xFFFFFFFF ->
        limit

      other ->
        raise ArgumentError,
              "expected :shader_timeout to be a number of milliseconds, got: #{inspect(other)}"
    end
  end

  defp measure! do
    case Application.get_env(:nx_vulkan, :measure, true) do
      measure when is_boolean(measure) -> measure
      other -> raise ArgumentError, "expected :measure to be a boolean, got: #{inspect(other)}"
    end
  end

  defp switch!(name) do
    case Application.get_env(:nx_vulkan, name) do
      switch when is_boolean(switch) or is_nil(switch) ->
        switch

      other ->
        raise ArgumentError,
              "expected #{inspect(name)} to be a boolean or nil, got: #{inspect(other)}"
    end
  end

  defp settings do
    priv = :code.priv_dir(:nx_vulkan)
    child = Path.join(priv, "nxv-child")

    {memory_bytes, memory_share} = memory(Application.get_env(:nx_vulkan, :memory))
    {kept_bytes, kept_share} = kept(Application.get_env(:nx_vulkan, :kept_memory))

    %{
      timeout_ms: timeout(Application.get_env(:nx_vulkan, :timeout_ms)),
      memory_bytes: memory_bytes,
      memory_share: memory_share,
      kept_bytes: kept_bytes,
      kept_share: kept_share,
      registry: Application.get_env(:nx_vulkan, :registry),
      packs: Application.get_env(:nx_vulkan, :packs, []) ++ [Path.join(priv, "packs")],
      cache_dir: Application.get_env(:nx_vulkan, :cache_dir),
      prober: if(File.regular?(child), do: child),
      shader_timeout: shader_timeout!(),
      validation: Application.get_env(:nx_vulkan, :validation, false),
      measure: measure!(),
      replays: switch!(:replays),
      lazy: switch!(:lazy)
    }
  end

  # In bytes, or in thousandths of the device's memory.
  defp memory(nil), do: {nil, nil}
  defp memory(bytes) when is_integer(bytes) and bytes in 1..0xFFFFFFFFFFFFFFFF, do: {bytes, nil}

  defp memory(share) when is_float(share) and share > 0 and share <= 1,
    do: {nil, round(share * 1000)}

  defp memory(other) do
    raise ArgumentError,
          "expected :memory to be bytes or a share above 0.0 and up to 1.0, got: #{inspect(other)}"
  end

  # In bytes, or in thousandths of `:memory`; both may be 0.
  defp kept(nil), do: {nil, nil}
  defp kept(bytes) when is_integer(bytes) and bytes in 0..0xFFFFFFFFFFFFFFFF, do: {bytes, nil}

  defp kept(share) when is_float(share) and share >= 0 and share <= 1,
    do: {nil, round(share * 1000)}

  defp kept(other) do
    raise ArgumentError,
          "expected :kept_memory to be bytes or a share from 0.0 to 1.0, got: #{inspect(other)}"
  end

  defp timeout(nil), do: nil
  defp timeout(ms) when is_integer(ms) and ms in 1..0xFFFFFFFF, do: ms

  defp timeout(other) do
    raise ArgumentError, "expected :timeout_ms to be milliseconds, got: #{inspect(other)}"
  end
end
