defmodule Nx.Vulkan.Garbage do
  @moduledoc false
  # The garbage collector of the VM does not see device memory: references that no process needs any more may own a lot of it.

  # Milliseconds from one collection of all processes to the next, and for which one waits: a process inside a native
  # function has to leave it first.
  @pause 1_000
  @patience 500

  @doc """
  Collects what any process holds no longer, unless that was done just now.
  """
  def collect_all do
    {pid, monitor} = monitor(Process.whereis(__MODULE__))
    send(pid, {:wait, self(), monitor})

    receive do
      {^monitor, :collected} ->
        Process.demonitor(monitor, [:flush])
        :ok

      # It was another one's turn, or that one's has just ended.
      {:DOWN, ^monitor, :process, ^pid, _reason} ->
        collect_all()
    end
  end

  defp monitor(nil), do: spawn_monitor(&run/0)
  defp monitor(pid), do: {pid, Process.monitor(pid)}

  # One process at a time. It stays until another one may begin, and answers who comes meanwhile at once.
  defp run do
    try do
      Process.register(self(), __MODULE__)
    rescue
      ArgumentError -> exit(:taken)
    end

    Process.send_after(self(), :enough, @patience)
    asked = for pid <- Process.list(), pid != self(), do: ask(pid)
    await(length(asked))
    Process.send_after(self(), :rested, @pause)
    answer()
  end

  defp ask(pid), do: :erlang.garbage_collect(pid, async: pid)

  defp await(0), do: :ok

  defp await(count) do
    receive do
      :enough -> :ok
      {:garbage_collect, _pid, _collected} -> await(count - 1)
    end
  end

  defp answer do
    receive do
      {:wait, pid, monitor} ->
        send(pid, {monitor, :collected})
        answer()

      :rested ->
        :ok

      # Of processes that were late, and the end of the patience.
      _late ->
        answer()
    end
  end
end
