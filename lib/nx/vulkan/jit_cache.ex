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

  # Functions that are kept, and bytes of the tensors in them; the last one stays whatever it holds.
  @functions 512
  @bytes 268_435_456

  # Parts of a function with all it closes over, beyond which it takes too long to compare: 15 ms. A Llama of 80 blocks has 320,000,
  # what generates with one of 12 a million.
  @parts 524_288

  # Functions that a process knows again without a look at their parts.
  @recent 2

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
         hash = hash(fun),
         true <- light?(arguments) do
      id = sha256({hash, arguments, backend})

      case compiled(id) do
        nil ->
          if seen?(id) and room?(), do: {:put, {id, generation}}, else: :new

        compiled ->
          know(fun, hash)
          {:ok, compiled}
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
  def put({id, generation}, compiled, bytes) do
    term = make_ref()

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

  # Of bytes, and not of the term, in which numbers may be equal that are not the same. The functions that this process called last are
  # most often those that it calls next. One of too many parts is known to the process that has it, by what it is there.
  defp hash(fun) do
    case known(fun) do
      {_, hash} ->
        hash

      nil ->
        if light?(fun), do: sha256(fun), else: know(fun, make_ref())
    end
  end

  defp known(fun),
    do: Enum.find(Process.get(__MODULE__, []), fn {last, _} -> :erts_debug.same(last, fun) end)

  defp know(fun, hash) do
    if !known(fun) do
      others = Process.get(__MODULE__, [])
      Process.put(__MODULE__, [{fun, hash} | Enum.take(others, @recent - 1)])
    end

    hash
  end

  defp sha256(term), do: :crypto.hash(:sha256, :erlang.term_to_binary(term))

  defp light?(term), do: parts([term], @parts) > 0

  # How many of so many parts are left after those of the terms on a stack. What is shared counts as often as it would be written.
  defp parts(_stack, left) when left <= 0, do: 0
  defp parts([], left), do: left
  defp parts([[] | stack], left), do: parts(stack, left)
  defp parts([[head | tail] | stack], left), do: parts([head, tail | stack], left - 1)

  defp parts([binary | stack], left) when is_bitstring(binary),
    do: parts(stack, left - 1 - div(bit_size(binary), 256))

  defp parts([tuple | stack], left) when is_tuple(tuple),
    do: parts([Tuple.to_list(tuple) | stack], left - 1)

  defp parts([map | _], left) when map_size(map) > left, do: 0

  defp parts([map | stack], left) when is_map(map),
    do: parts([:maps.to_list(map) | stack], left - 1)

  defp parts([fun | stack], left) when is_function(fun) do
    {:env, env} = :erlang.fun_info(fun, :env)
    parts([env | stack], left - 1)
  end

  defp parts([_ | stack], left), do: parts(stack, left - 1)

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
    state = look(state)
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
