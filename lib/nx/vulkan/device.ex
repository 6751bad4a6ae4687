defmodule Nx.Vulkan.Device do
  @moduledoc false
  # Open devices. A device opens on first use and stays open.

  alias Nx.Vulkan.{Error, Events, NativeV}

  @doc """
  The choice for callers who name no device.
  """
  def default do
    case Application.get_env(:nx_vulkan, :device) do
      nil -> :auto
      choice -> choice
    end
  end

  @doc """
  Raises unless `choice` is `:auto`, an index, a name or a UUID.
  """
  def validate!(choice) do
    if choice == :auto or choice in 0..0xFFFFFFFF or named?(choice),
      do: choice,
      else: refuse!(:device, "an index, a name or a UUID", choice)
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
    validate!(choice)

    with {:ok, device} <- NativeV.open_device(choice, settings()) do
      :persistent_term.put({__MODULE__, choice}, device)
      Events.follow(device)
      {:ok, device}
    end
  end

  defp milliseconds!(name),
    do: get(name, nil, "a number of milliseconds", &(&1 in 1..0xFFFFFFFF))

  defp switch!(name, default), do: get(name, default, "a boolean or nil", &is_boolean/1)

  # An empty one is none, as in the environment.
  defp path!(name) do
    path = get(name, nil, "a path as a string, or nil", &text?/1)
    if path != "", do: path
  end

  defp paths!(name) do
    get(name, [], "a list of paths as strings", fn paths ->
      is_list(paths) and not List.improper?(paths) and Enum.all?(paths, &named?/1)
    end)
  end

  defp named?(text), do: text?(text) and text != ""
  defp text?(text), do: is_binary(text) and String.valid?(text)

  # A setting, which has to hold and be `what` that says, or the default in place of `nil`.
  defp get(name, default, what, holds?) do
    case Application.get_env(:nx_vulkan, name) do
      nil -> default
      value -> if holds?.(value), do: value, else: refuse!(name, what, value)
    end
  end

  defp refuse!(name, what, value) do
    raise ArgumentError, "expected #{inspect(name)} to be #{what}, got: #{inspect(value)}"
  end

  defp settings do
    priv = :code.priv_dir(:nx_vulkan)
    child = Path.join(priv, "nxv-child")

    {memory_bytes, memory_share} = memory(Application.get_env(:nx_vulkan, :memory))
    {kept_bytes, kept_share} = kept(Application.get_env(:nx_vulkan, :kept_memory))

    %{
      timeout_ms: milliseconds!(:timeout_ms),
      memory_bytes: memory_bytes,
      memory_share: memory_share,
      kept_bytes: kept_bytes,
      kept_share: kept_share,
      registry: path!(:registry),
      packs: paths!(:packs) ++ [Path.join(priv, "packs")],
      cache_dir: path!(:cache_dir),
      prober: if(File.regular?(child), do: child),
      shader_timeout: milliseconds!(:shader_timeout),
      validation: switch!(:validation, false),
      measure: switch!(:measure, true),
      replays: switch!(:replays, nil),
      lazy: switch!(:lazy, nil)
    }
  end

  # In bytes, or in thousandths of the device's memory.
  defp memory(nil), do: {nil, nil}
  defp memory(bytes) when is_integer(bytes) and bytes in 1..0xFFFFFFFFFFFFFFFF, do: {bytes, nil}

  defp memory(share) when is_float(share) and share > 0 and share <= 1,
    do: {nil, round(share * 1000)}

  defp memory(other), do: refuse!(:memory, "bytes or a share above 0.0 and up to 1.0", other)

  # In bytes, or in thousandths of `:memory`; both may be 0.
  defp kept(nil), do: {nil, nil}
  defp kept(bytes) when is_integer(bytes) and bytes in 0..0xFFFFFFFFFFFFFFFF, do: {bytes, nil}

  defp kept(share) when is_float(share) and share >= 0 and share <= 1,
    do: {nil, round(share * 1000)}

  defp kept(other), do: refuse!(:kept_memory, "bytes or a share from 0.0 to 1.0", other)
end
