defmodule Nx.Vulkan.Dev do
  @moduledoc """
  Packs and shaders that change while the VM runs.

  With `[dev] watch` in `registry.toml`, a rebuilt pack, a new pack in a search folder, an edited shader and an
  edited registry file are used as soon as they are written. What is broken is not used, and what served before
  serves on. A process that subscribes is told:

      :ok = Nx.Vulkan.Dev.subscribe()

      receive do
        {:nx_vulkan, %{kind: :shader_rejected, message: message}} -> IO.puts(message)
      end

  An event is a map with

    * `:kind` - `:pack_added`, `:pack_replaced`, `:pack_removed`, `:rejected`, `:shader_replaced`, `:shader_rejected`,
      `:registry_replaced`, `:rolled_back`, `:chosen` or `:watch_trouble`
    * `:message` - what happened and why, in one sentence; with file and line where there are any
    * `:pack`, `:op`, `:file` - what it is about, or `nil`; a file by its path, a shader that serves by its name in the pack
    * `:generation` - the number of the table that is in force
    * `:took_us` - microseconds from the moment a change was settled

  The same events are emitted as telemetry, `[:nx_vulkan, :reload]` and for choices `[:nx_vulkan, :choice]`, with the
  measurements `count` and `duration_us`. A choice is told the first time a kind of request is made, and whenever
  another kernel serves it than before.
  """

  alias Nx.Vulkan.{Device, Error, Events, NativeV}

  @doc """
  Sends the calling process `{:nx_vulkan, event}` for what happens on any open device, and opens one. Raises
  `ArgumentError` where the application `:nx_vulkan` is not started.
  """
  def subscribe(choice \\ Device.default()) do
    device(choice)
    Events.subscribe(self())
  end

  @doc """
  Ends what `subscribe/1` began.
  """
  def unsubscribe, do: Events.unsubscribe(self())

  @doc """
  Looks for changes now, whether or not they are watched for. Returns the events.
  """
  def reload(choice \\ Device.default()) do
    choice |> device() |> NativeV.reload()
  end

  @doc """
  The versions of a pack that can serve, the newest last: maps with `:version`, `:sha256`, `:edited` and `:serves`.

  Raises `ArgumentError` when there is no such pack.
  """
  def versions(pack, choice \\ Device.default()), do: choice |> device() |> versions!(pack)

  @doc """
  Lets the version of a pack serve that is `steps` before the one that serves now, until its file changes again or
  `resume/2` is called; 0 keeps the one that serves. Returns it, as `versions/2` shows it.

  Raises `ArgumentError` when there is no such pack, or none that old.
  """
  def rollback(pack, steps \\ 1, choice \\ Device.default()) do
    if steps not in 0..0xFFFF_FFFF,
      do:
        raise(
          ArgumentError,
          "expected steps to be an integer from 0 to 4294967295, got: #{inspect(steps)}"
        )

    case choice |> device() |> NativeV.rollback(id!(pack), steps) do
      {:ok, version} -> version
      {:error, kind, message} -> Error.raise!(kind, message)
    end
  end

  @doc """
  Ends a rollback: the pack's file and its edited shaders serve again. Returns the events.

  Raises `ArgumentError` when there is no such pack.
  """
  def resume(pack, choice \\ Device.default()) do
    device = device(choice)
    versions!(device, pack)
    NativeV.resume_pack(device, pack)
  end

  defp versions!(device, pack) do
    case NativeV.pack_versions(device, id!(pack)) do
      [] -> raise ArgumentError, "expected a loaded pack, got: #{pack}"
      versions -> versions
    end
  end

  defp id!(pack) when is_binary(pack), do: pack

  defp id!(pack),
    do: raise(ArgumentError, "expected the id of a pack as a string, got: #{inspect(pack)}")

  defp device(choice), do: choice |> Device.validate!() |> Device.fetch!()
end
