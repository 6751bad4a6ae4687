defmodule Nx.Vulkan.Events do
  @moduledoc false
  # Gets what the library tells, sends it on to subscribers, as telemetry and to Logger. It owns the list of subscribers.
  use GenServer
  require Logger

  alias Nx.Vulkan.NativeV

  def start_link(_), do: GenServer.start_link(__MODULE__, nil, name: __MODULE__)

  @doc """
  From now on hears what happens on `device`. Does nothing where the application is not started.
  """
  def follow(device) do
    case Process.whereis(__MODULE__) do
      nil -> :ok
      pid -> NativeV.follow(device, pid)
    end
  end

  def subscribe(pid), do: call({:subscribe, pid})
  def unsubscribe(pid), do: call({:unsubscribe, pid})

  defp call(message) do
    Process.whereis(__MODULE__) ||
      raise ArgumentError,
            "the application :nx_vulkan, which tells of events, is not started: " <>
              "call Application.ensure_all_started(:nx_vulkan)"

    GenServer.call(__MODULE__, message)
  end

  @impl true
  def init(_) do
    # The process before this one, if there was one, heard of these.
    for device <- Nx.Vulkan.Device.opened(), do: NativeV.follow(device, self())
    # Nor has anybody read what it was told to log.
    if :erlang.module_loaded(NativeV), do: log()
    {:ok, %{}}
  end

  @impl true
  def handle_call({:subscribe, pid}, _from, subscribers) do
    {:reply, :ok, Map.put_new_lazy(subscribers, pid, fn -> Process.monitor(pid) end)}
  end

  def handle_call({:unsubscribe, pid}, _from, subscribers) do
    {monitor, subscribers} = Map.pop(subscribers, pid)
    if monitor, do: Process.demonitor(monitor, [:flush])
    {:reply, :ok, subscribers}
  end

  @impl true
  def handle_info({:nx_vulkan_event, event}, subscribers) do
    for {pid, _} <- subscribers, do: send(pid, {:nx_vulkan, event})
    telemetry(event)
    {:noreply, subscribers}
  end

  def handle_info(:nx_vulkan_log, subscribers) do
    log()
    {:noreply, subscribers}
  end

  def handle_info({:DOWN, _monitor, :process, pid, _reason}, subscribers) do
    {:noreply, Map.delete(subscribers, pid)}
  end

  def handle_info(_other, subscribers), do: {:noreply, subscribers}

  defp log do
    for {level, target, message} <- NativeV.logged(),
        do: Logger.log(level, "#{target}: #{message}", domain: [:nx_vulkan], target: target)
  end

  defp telemetry(event) do
    if Code.ensure_loaded?(:telemetry) do
      name = if event.kind == :chosen, do: :choice, else: :reload
      {duration, event} = Map.pop!(event, :took_us)
      :telemetry.execute([:nx_vulkan, name], %{count: 1, duration_us: duration}, event)
    end
  end
end
