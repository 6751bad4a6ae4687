defmodule Nx.Vulkan.Garbage do
  @moduledoc false
  # The garbage collector of the VM does not see device memory: references that no process needs any more may own a lot of it.

  # Milliseconds between two collections of all processes, and for which one waits: a process inside a native function has
  # to leave it first.
  @pause 1_000
  @patience 500

  @doc """
  Collects what any process holds no longer, unless that was done just now.
  """
  def collect_all do
    last = last()
    before = :atomics.get(last, 1)
    now = System.monotonic_time(:millisecond)

    if now - before >= @pause and :atomics.compare_exchange(last, 1, before, now) == :ok do
      # Answers that come late are for a process that is gone.
      {pid, monitor} = spawn_monitor(&ask_all/0)

      receive do
        {:DOWN, ^monitor, :process, ^pid, _reason} -> :ok
      end
    end

    :ok
  end

  defp ask_all do
    Process.send_after(self(), :enough, @patience)
    asked = for pid <- Process.list(), pid != self(), do: ask(pid)
    await(length(asked))
  end

  defp ask(pid), do: :erlang.garbage_collect(pid, async: pid)

  defp await(0), do: :ok

  defp await(count) do
    receive do
      :enough -> :ok
      {:garbage_collect, _pid, _collected} -> await(count - 1)
    end
  end

  # Made where it is needed, so that nothing has to run for it.
  defp last do
    case :persistent_term.get(__MODULE__, nil) do
      nil ->
        made = :atomics.new(1, signed: true)
        :atomics.put(made, 1, System.monotonic_time(:millisecond) - @pause)
        :persistent_term.put(__MODULE__, made)
        made

      last ->
        last
    end
  end
end
