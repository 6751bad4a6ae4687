defmodule Nx.Vulkan.JitCache do
  @moduledoc false
  # What `Nx.Defn.jit/2` was given, compiled. A function is compiled when it comes a second time with arguments of the same
  # types and shapes, so that what is new each time, such as a closure over a batch, costs little and is not held. Functions
  # go by their bytes as terms. Once a module is not what it was, all of them are forgotten: any of them may have called it.

  # Functions that are kept, and bytes of the tensors in them; the last one stays whatever it holds.
  @functions 256
  @bytes 268_435_456

  # Bytes of a function with all it closes over, beyond which comparing takes too long. A model of 32 blocks closes over 1 MB.
  @largest 4_194_304

  # Functions that were seen once: each has one of these places, until another one takes it.
  @places 4_096
  # How much the code server had worked when the modules were looked at, and how often all was forgotten.
  @worked @places + 1
  @forgotten @places + 2

  @doc """
  Makes room for it; the process that calls this owns that.
  """
  def start do
    :ets.new(__MODULE__, [:named_table, :public, :ordered_set])
    :persistent_term.put(__MODULE__, :atomics.new(@forgotten, signed: false))
  end

  @doc """
  What was put for this function with arguments like these; `{:put, place}` where it comes again, `:new` where it is not known.
  """
  def fetch(fun, arguments, backend) do
    with true <- :ets.whereis(__MODULE__) != :undefined,
         notes = :persistent_term.get(__MODULE__),
         :ok <- look_at_modules(notes),
         {:ok, hash} <- hash(fun) do
      id = :erlang.term_to_binary({hash, arguments, backend})

      case :persistent_term.get({__MODULE__, id}, nil) do
        nil ->
          if seen?(id, notes), do: {:put, {id, :atomics.get(notes, @forgotten)}}, else: :new

        compiled ->
          Process.put(__MODULE__, {fun, hash})
          {:ok, compiled}
      end
    else
      _ -> :new
    end
  end

  @doc """
  Keeps `compiled`, with so many bytes of tensors in it, and no longer what was kept first, where that is too much.
  """
  def put({id, forgotten}, compiled, bytes) do
    notes = :persistent_term.get(__MODULE__)
    :persistent_term.put({__MODULE__, id}, compiled)
    :ets.insert(__MODULE__, {System.unique_integer([:monotonic]), id, bytes})
    kept = :ets.match_object(__MODULE__, {:_, :_, :_})
    drop(kept, length(kept), kept |> Enum.map(&elem(&1, 2)) |> Enum.sum())

    # It was traced with modules that are other ones by now.
    look_at_modules(notes)
    if :atomics.get(notes, @forgotten) != forgotten, do: forget()
    :ok
  end

  defp drop([{place, id, bytes} | [_ | _] = later], functions, all)
       when functions > @functions or all > @bytes do
    :ets.delete(__MODULE__, place)
    :persistent_term.erase({__MODULE__, id})
    drop(later, functions - 1, all - bytes)
  end

  defp drop(_, _, _), do: :ok

  @doc """
  Keeps nothing of what there is.
  """
  def forget do
    if :ets.whereis(__MODULE__) != :undefined do
      :atomics.add(:persistent_term.get(__MODULE__), @forgotten, 1)

      for {place, id, _} <- :ets.match_object(__MODULE__, {:_, :_, :_}) do
        :ets.delete(__MODULE__, place)
        :persistent_term.erase({__MODULE__, id})
      end
    end

    :ok
  end

  @doc """
  How many functions are kept.
  """
  def size, do: length(:ets.match_object(__MODULE__, {:_, :_, :_}))

  # Of bytes, and not of the term, in which numbers may be equal that are not the same. The function that this process called last is
  # most often the one that it calls next.
  defp hash(fun) do
    with {last, hash} <- Process.get(__MODULE__),
         true <- :erts_debug.same(last, fun) do
      {:ok, hash}
    else
      _ ->
        if :erlang.external_size(fun) <= @largest,
          do: {:ok, :crypto.hash(:sha256, :erlang.term_to_binary(fun))},
          else: :error
    end
  end

  defp seen?(id, notes) do
    hash = :erlang.phash2(id, 4_294_967_296)
    place = rem(hash, @places) + 1
    # No place is 0, so that it stands for nobody.
    :atomics.exchange(notes, place, hash + 1) == hash + 1
  end

  # Whatever loads a module has the code server work, which costs nothing to see.
  defp look_at_modules(notes) do
    {:reductions, worked} = Process.info(Process.whereis(:code_server), :reductions)

    if :atomics.exchange(notes, @worked, worked) != worked do
      modules = for m <- :erlang.loaded(), md5 = md5(m), into: %{}, do: {m, md5}
      before = with [{:modules, before}] <- :ets.lookup(__MODULE__, :modules), do: before
      :ets.insert(__MODULE__, {:modules, modules})
      if Enum.any?(before, fn {m, md5} -> modules[m] != md5 end), do: forget()
    end

    :ok
  end

  # What has no current code has no version.
  defp md5(module) do
    if :erlang.module_loaded(module), do: module.module_info(:md5)
  rescue
    UndefinedFunctionError -> nil
  end
end
