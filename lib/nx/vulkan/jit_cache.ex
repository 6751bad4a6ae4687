defmodule Nx.Vulkan.JitCache do
  @moduledoc false
  # What `Nx.Defn.jit/2` was given, compiled. A function is compiled when it comes a second time with arguments of the same
  # types and shapes, so that what is new each time, such as a closure over a batch, costs little and is not held. Functions
  # go by a hash of their bytes as terms. Once a module is loaded, all of them are forgotten: any of them may have called it, or
  # asked for it.
  #
  # A row of the table names a persistent term, which a lookup does not copy. Rows and terms are this process's, so that
  # whoever is killed leaves none.
  use GenServer

  # Functions that are kept, and bytes of the tensors and binaries in them; the last one stays whatever it holds.
  @functions 512
  @bytes 268_435_456

  # Parts of a function with all it closes over, beyond which it takes too long to compare: 15 ms. A Llama of 80 blocks has 320,000,
  # what generates with one of 12 a million.
  @parts 524_288

  # Bytes of the binaries of one, beyond which nobody keeps it.
  @binaries 16_777_216

  # Functions of very many parts that a process keeps with what it made of them: nobody else could know them again.
  @own {__MODULE__, :own}
  @recent 4

  # Functions that were seen once: each has one of these places, until another one takes it.
  @places 4_096

  # Of those that come again where there is no room, one of so many takes another one's.
  @lucky 8

  def start_link(_), do: GenServer.start_link(__MODULE__, nil, name: __MODULE__)

  @doc """
  What was put for this function with arguments like these; `{:put, place}` where it comes again, `:new` where it is not known,
  or where nothing can be said.
  """
  def fetch(fun, arguments, backend) do
    with {:ok, generation} <- now(),
         :ok <- drop_old(generation),
         {:light, _} <- weight(arguments) do
      case hash(fun) do
        {:ok, known} -> shared(known, sha256({elem(known, 1), arguments, backend}), generation)
        :own -> own(fun, sha256({arguments, backend}), generation)
        :error -> :new
      end
    else
      _ -> :new
    end
  rescue
    # The table went with its process.
    _ in [ArgumentError, ArithmeticError] -> :new
  catch
    :exit, _ -> :new
  end

  @doc """
  Keeps `compiled`, with so many bytes of tensors in it, and no longer what was kept first, where that is too much.
  """
  def put({:own, fun, key, generation}, compiled, _bytes),
    do: keep({fun, key, generation, {:compiled, compiled}})

  def put({id, generation, binaries}, compiled, bytes) do
    term = make_ref()
    # What is evaluated is not held.
    bytes = if is_function(compiled), do: bytes + binaries, else: bytes

    try do
      :ok = GenServer.call(__MODULE__, {:coming, term}, :infinity)
      :persistent_term.put({__MODULE__, term}, compiled)
      GenServer.call(__MODULE__, {:put, id, generation, term, bytes}, :infinity)
    catch
      :exit, _ ->
        erase(term)
        :ok
    end
  end

  @doc """
  Keeps nothing of what there is.
  """
  def forget do
    GenServer.call(__MODULE__, :forget)
  catch
    :exit, _ -> :ok
  end

  @doc """
  How many functions are kept.
  """
  def size, do: :ets.info(__MODULE__, :size) - 1

  ## Whose function it is

  # Of bytes, and not of the term, in which numbers may be equal that are not the same. The function that this process called last is
  # most often the one that it calls next. One of very many parts is known by what it is where it is.
  defp hash(fun) do
    with {last, _, _} = known <- Process.get(__MODULE__),
         true <- :erts_debug.same(last, fun) do
      {:ok, known}
    else
      _ ->
        case !owned?(fun) && weight(fun) do
          {:light, bytes} -> {:ok, {fun, sha256(fun), bytes}}
          :large -> :error
          _ -> :own
        end
    end
  end

  defp shared({_fun, _hash, binaries} = known, id, generation) do
    case compiled(id) do
      nil ->
        if seen?(id) and room?(), do: {:put, {id, generation, binaries}}, else: :new

      compiled ->
        Process.put(__MODULE__, known)
        {:ok, compiled}
    end
  end

  defp own(fun, key, generation) do
    case Enum.find(Process.get(@own, []), &own?(&1, fun, key)) do
      {_, _, ^generation, {:compiled, compiled}} ->
        {:ok, compiled}

      {_, _, ^generation, :seen} ->
        {:put, {:own, fun, key, generation}}

      _ ->
        keep({fun, key, generation, :seen})
        :new
    end
  end

  defp owned?(fun),
    do: Enum.any?(Process.get(@own, []), fn {own, _, _, _} -> :erts_debug.same(own, fun) end)

  defp own?({own, id, _, _}, fun, key), do: id == key and :erts_debug.same(own, fun)

  defp keep({fun, key, _, _} = entry) do
    others = Enum.reject(Process.get(@own, []), &own?(&1, fun, key))
    Process.put(@own, [entry | Enum.take(others, @recent - 1)])
    :ok
  end

  # What this process keeps itself, nobody else can forget.
  defp drop_old(generation) do
    with [_ | _] = all <- Process.get(@own, []),
         {[_ | _], kept} <- Enum.split_with(all, &(elem(&1, 2) != generation)),
         do: Process.put(@own, kept)

    :ok
  end

  defp sha256(term), do: :crypto.hash(:sha256, :erlang.term_to_binary(term))

  # Whether a term has too many parts, or binaries that are too large; else how many bytes those have. What is shared counts as
  # often as it would be written.
  defp weight(term), do: weight([term], @parts, @binaries)

  defp weight(_stack, parts, _bytes) when parts <= 0, do: :many
  defp weight(_stack, _parts, bytes) when bytes <= 0, do: :large
  defp weight([], _parts, bytes), do: {:light, @binaries - bytes}
  defp weight([[] | stack], parts, bytes), do: weight(stack, parts, bytes)

  defp weight([[head | tail] | stack], parts, bytes),
    do: weight([head, tail | stack], parts - 1, bytes)

  defp weight([binary | stack], parts, bytes) when is_bitstring(binary),
    do: weight(stack, parts - 1, bytes - div(bit_size(binary), 8))

  defp weight([tuple | stack], parts, bytes) when is_tuple(tuple),
    do: weight([Tuple.to_list(tuple) | stack], parts - 1, bytes)

  defp weight([map | _], parts, _bytes) when map_size(map) > parts, do: :many

  defp weight([map | stack], parts, bytes) when is_map(map),
    do: weight([:maps.to_list(map) | stack], parts - 1, bytes)

  defp weight([fun | stack], parts, bytes) when is_function(fun) do
    {:env, env} = :erlang.fun_info(fun, :env)
    weight([env | stack], parts - 1, bytes)
  end

  defp weight([_ | stack], parts, bytes), do: weight(stack, parts - 1, bytes)

  defp seen?(id) do
    hash = :erlang.phash2(id, 4_294_967_296)
    # No place is 0 once it is taken.
    :atomics.exchange(:persistent_term.get(__MODULE__), rem(hash, @places) + 1, hash + 1) ==
      hash + 1
  end

  defp room?, do: size() < @functions or rem(:erlang.phash2(make_ref()), @lucky) == 0

  defp compiled(id) do
    case :ets.lookup(__MODULE__, id) do
      [{_, term, _}] -> :persistent_term.get({__MODULE__, term}, nil)
      [] -> nil
    end
  end

  # Which of the times between two forgettings this is. Whatever loads a module has the code server work, which costs nothing to
  # see; then nobody goes on before this process has looked.
  defp now do
    worked = worked()

    case :ets.lookup(__MODULE__, :now) do
      [{_, ^worked, generation}] -> {:ok, generation}
      _ -> {:ok, GenServer.call(__MODULE__, :look)}
    end
  end

  defp worked do
    {:reductions, worked} = Process.info(Process.whereis(:code_server), :reductions)
    worked
  end

  ## The process

  @impl true
  def init(_) do
    Process.flag(:trap_exit, true)
    # Those of the process before this one, if it was killed.
    for {{__MODULE__, term}, _} <- :persistent_term.get(), do: erase(term)
    :persistent_term.put(__MODULE__, :atomics.new(@places, signed: false))
    :ets.new(__MODULE__, [:named_table, read_concurrency: true])

    {:ok,
     look(%{
       modules: nil,
       generation: nil,
       coming: %{},
       order: :queue.new(),
       functions: 0,
       bytes: 0
     })}
  end

  @impl true
  def handle_call({:coming, term}, {pid, _}, state),
    do: {:reply, :ok, put_in(state.coming[term], Process.monitor(pid))}

  def handle_call({:put, id, generation, term, bytes}, _from, state) do
    # Another process was told that it comes, if that was killed.
    {monitor, coming} = Map.pop(state.coming, term)
    if monitor, do: Process.demonitor(monitor, [:flush])
    # It may have been traced with modules that are other ones by now.
    state = look(%{state | coming: coming})

    if generation == state.generation and not :ets.member(__MODULE__, id) do
      :ets.insert(__MODULE__, {id, term, bytes})

      {:reply, :ok,
       make_room(%{
         state
         | order: :queue.in(id, state.order),
           functions: state.functions + 1,
           bytes: state.bytes + bytes
       })}
    else
      erase(term)
      {:reply, :ok, state}
    end
  end

  def handle_call(:look, _from, state) do
    now = worked()

    # Another caller may have asked because of the same change.
    state =
      if match?([{:now, ^now, _}], :ets.lookup(__MODULE__, :now)), do: state, else: look(state)

    {:reply, state.generation, state}
  end

  def handle_call(:forget, _from, state), do: {:reply, :ok, forget(state)}

  # Whoever was to put one died.
  @impl true
  def handle_info({:DOWN, monitor, :process, _, _}, state) do
    {gone, coming} = Map.split_with(state.coming, &match?({_, ^monitor}, &1))
    for {term, _} <- gone, do: erase(term)
    {:noreply, %{state | coming: coming}}
  end

  def handle_info(_, state), do: {:noreply, state}

  @impl true
  def terminate(_reason, state) do
    for {term, _} <- state.coming, do: erase(term)
    forget(state)
  end

  defp look(state) do
    worked = worked()
    modules = for m <- :erlang.loaded(), md5 = md5(m), into: %{}, do: {m, md5}
    state = if modules == state.modules, do: state, else: forget(%{state | modules: modules})
    :ets.insert(__MODULE__, {:now, worked, state.generation})
    state
  end

  # What has no current code has no version.
  defp md5(module) do
    if :erlang.module_loaded(module), do: module.module_info(:md5)
  rescue
    UndefinedFunctionError -> nil
  end

  defp make_room(%{functions: functions, bytes: bytes} = state)
       when functions > 1 and (functions > @functions or bytes > @bytes) do
    {{:value, id}, order} = :queue.out(state.order)
    [{_, term, own}] = :ets.take(__MODULE__, id)
    erase(term)
    make_room(%{state | order: order, functions: functions - 1, bytes: bytes - own})
  end

  defp make_room(state), do: state

  defp forget(state) do
    for id <- :queue.to_list(state.order),
        [{_, term, _}] = :ets.take(__MODULE__, id),
        do: erase(term)

    generation = make_ref()
    :ets.insert(__MODULE__, {:now, -1, generation})
    %{state | generation: generation, order: :queue.new(), functions: 0, bytes: 0}
  end

  defp erase(term), do: :persistent_term.erase({__MODULE__, term})
end
