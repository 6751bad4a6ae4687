defmodule Nx.Vulkan.Node do
  @moduledoc """
  A process that runs functions one after the other, for callers who want the device to themselves.

      children = [Nx.Vulkan.Node]
      ...
      Nx.Vulkan.Node.with_node(fn -> Nx.Vulkan.NativeV.leapfrog_chain_synth_f64(q, p, extras, push, k, path) end)

  Nothing needs it: every function of this library may be called by any number of processes at once. It opens the default
  device when it starts, and writes the pipeline cache (`Nx.Vulkan.PipelineCache`) when it ends.

  `config :nx_vulkan, node_timeout_ms: 5_000` limits how long a caller waits, in milliseconds; the default is `:infinity`.
  """

  use GenServer

  require Logger

  alias Nx.Vulkan.{Device, PipelineCache}

  @doc """
  Starts the process.

  ## Options

    * `:name` - under which it is registered; this module by default
    * `:load_pipeline_cache` - whether to read the pipeline cache again; true by default. A file that cannot be used is
      logged

  Returns what `GenServer.start_link/3` does, and `{:error, {:vulkan_init_failed, message}}` without a device.
  """
  def start_link(opts \\ []) do
    opts = Keyword.validate!(opts, name: __MODULE__, load_pipeline_cache: true)
    GenServer.start_link(__MODULE__, opts, name: opts[:name])
  end

  @doc """
  Whether the process is there.
  """
  def alive?(name \\ __MODULE__), do: pid(name) != nil

  @doc """
  `%{uptime_ms: …, exec_count: …}`: milliseconds since it started, and how many functions it was given. Returns
  `{:error, :node_timeout}` or `{:error, :node_dead}` as `with_node/2` does.
  """
  def status(name \\ __MODULE__), do: call(name, :status)

  @doc """
  Runs `fun` in the process, after those that were given before, and returns its value.

  Returns `{:error, :node_timeout}` when that takes longer than `config :nx_vulkan, node_timeout_ms` allows; the function
  runs on, and its value is dropped. Returns `{:error, :node_dead}` when there is no such process or it is being stopped. When
  `fun` raises, the process ends, and the caller exits as that of `GenServer.call/3` does. Inside of `fun` another
  `with_node` runs at once.
  """
  def with_node(fun, name \\ __MODULE__) when is_function(fun, 0) do
    if pid(name) == self(), do: fun.(), else: call(name, {:run, fun})
  end

  defp call(name, request) do
    GenServer.call(name, request, timeout())
  catch
    :exit, {:timeout, {GenServer, :call, _}} ->
      {:error, :node_timeout}

    :exit, {reason, {GenServer, :call, _}}
    when reason in [:noproc, :normal, :shutdown, :killed] ->
      {:error, :node_dead}

    :exit, {{:shutdown, _}, {GenServer, :call, _}} ->
      {:error, :node_dead}
  end

  defp pid(pid) when is_pid(pid), do: if(Process.alive?(pid), do: pid)
  defp pid(name), do: GenServer.whereis(name)

  defp timeout do
    case Application.get_env(:nx_vulkan, :node_timeout_ms, :infinity) do
      :infinity ->
        :infinity

      ms when is_integer(ms) and ms >= 0 ->
        ms

      other ->
        raise ArgumentError,
              "expected :node_timeout_ms to be milliseconds or :infinity, got: #{inspect(other)}"
    end
  end

  @impl true
  def init(opts) do
    # Else it would end without a call of terminate/2.
    Process.flag(:trap_exit, true)

    case Device.fetch(Device.default()) do
      {:ok, _device} ->
        with true <- opts[:load_pipeline_cache], {:error, message} <- PipelineCache.load() do
          Logger.warning(message)
        end

        {:ok, %{started: System.monotonic_time(:millisecond), count: 0}}

      {:error, _kind, message} ->
        {:stop, {:vulkan_init_failed, message}}
    end
  end

  @impl true
  def handle_call({:run, fun}, _from, state) do
    {:reply, fun.(), %{state | count: state.count + 1}}
  end

  def handle_call(:status, _from, state) do
    uptime = System.monotonic_time(:millisecond) - state.started
    {:reply, %{uptime_ms: uptime, exec_count: state.count}, state}
  end

  # Of ports and processes that functions were linked to.
  @impl true
  def handle_info(_message, state), do: {:noreply, state}

  @impl true
  def terminate(_reason, _state) do
    with {:error, message} <- PipelineCache.persist(), do: Logger.warning(message)
  end
end
