if Code.ensure_loaded?(Nx) do
  defmodule Nx.Vulkan.Routine do
    @moduledoc false
    # A compiled function: programs of the library, which run many steps in one call, and calls of the backend between them.
    # A program that fails is run step by step, so that errors are those of the calls.

    alias Nx.Defn.Composite
    alias Nx.Tensor, as: T

    alias Nx.Vulkan.{
      Checks,
      Device,
      Later,
      NativeV,
      Report,
      Request,
      Step,
      Steps,
      VulkanoBackend
    }

    @enforce_keys [:parts, :captured, :parameters, :results, :templates, :views]
    # `held` are the references of what it holds, with those of loops and branches in it, `later` the parts that wait.
    defstruct @enforce_keys ++ [:held, later: []]

    @doc """
    The routine of what a trace gave; `:error` where only an evaluator runs that. With `loop: true` integers that are counted
    with are computed by calls of their own, so that the VM knows them wherever it knows what they begin with.
    """
    def new(expr, backend, opts \\ []) do
      with {:ok, steps, results} <- Steps.new(expr, backend, opts[:hooks] || %{}),
           do: {:ok, of(steps, results, opts)}
    end

    @doc """
    The routine of steps, with these slots as results.
    """
    def of(steps, results, opts) do
      {counting, others} = if opts[:loop], do: counting(steps), else: {[], steps.steps}
      groups = Later.groups(others, results, &(&1.native == nil))

      {parts, _} =
        (Enum.map(counting, &{false, [&1], []}) ++ groups)
        |> Enum.reverse()
        |> Enum.map_reduce(MapSet.new(results), &part(&1, &2, steps))

      # What only led to what is kept goes.
      read = Enum.concat([results | Enum.map(steps.steps, & &1.reads)])

      routine = %__MODULE__{
        parts: parts |> without_last_drop() |> Enum.reverse(),
        captured: Map.take(steps.captured, read),
        parameters: Map.to_list(steps.parameters),
        results: results,
        templates: steps.templates,
        views: Checks.views(steps)
      }

      later = for %{later: id} <- routine.parts, id != nil, do: id
      %{routine | held: held(routine), later: later}
    end

    defp held(routine) do
      own = for {_, %T{data: %VulkanoBackend{ref: ref}}} <- routine.captured, do: ref
      Enum.reduce(inner(routine), MapSet.new(own), &MapSet.union(&1.held, &2))
    end

    @doc """
    Bytes of the tensors that it holds, with those of loops and branches in it.
    """
    def bytes(routine) do
      own = routine.captured |> Map.values() |> Enum.map(&Nx.byte_size/1) |> Enum.sum()
      own + (routine |> inner() |> Enum.map(&bytes/1) |> Enum.sum())
    end

    # The loops and branches in it.
    defp inner(routine) do
      steps = Enum.flat_map(routine.parts, & &1.steps)
      Enum.flat_map(steps, &within/1)
    end

    defp within(%{op: :while, condition: condition, body: body}), do: [condition, body]

    defp within(%{op: :strides, body: body}), do: [body]

    defp within(%{op: :cond, clauses: clauses, last: last}),
      do: [last | Enum.flat_map(clauses, &Tuple.to_list/1)]

    defp within(_step), do: []

    @doc """
    Runs it on parameters, functions that give tensors, and answers with the results' tensors. `:error` where one of them is
    on another backend.
    """
    def run(%__MODULE__{} = routine, params) do
      params = List.to_tuple(params)
      given = for {slot, at} <- routine.parameters, do: {slot, parameter(elem(params, at).())}

      if Enum.all?(given, &match?({_, %T{data: %VulkanoBackend{}}}, &1)),
        do: {:ok, routine |> evaluate(Map.new(given)) |> own(routine)},
        else: :error
    end

    # What is kept for the next call, or is returned twice, gets a reference of its own: whoever has it may deallocate it.
    defp own(tensors, routine) do
      {tensors, _} =
        Enum.map_reduce(tensors, routine.held, fn tensor, taken ->
          tensor = if tensor.data.ref in taken, do: again(tensor), else: tensor
          {tensor, MapSet.put(taken, tensor.data.ref)}
        end)

      tensors
    end

    defp again(%T{data: %VulkanoBackend{} = data} = tensor) do
      case NativeV.reshape(data.ref, tensor.shape) do
        {:ok, ref} -> %{tensor | data: %{data | ref: ref}}
        _ -> Nx.backend_copy(tensor, VulkanoBackend)
      end
    end

    @doc """
    Runs `body` on what it gave last, first on `tensors`, as long as `condition` holds for it.
    """
    def loop(condition, body, tensors) do
      if holds?(condition, tensors),
        do: loop(condition, body, apply_to(body, tensors)),
        else: tensors
    end

    @doc """
    Runs the routine behind the first condition that holds, or else `last`.
    """
    def choose(clauses, last, tensors) do
      case Enum.find(clauses, fn {condition, _} -> holds?(condition, tensors) end) do
        {_, body} -> apply_to(body, tensors)
        nil -> apply_to(last, tensors)
      end
    end

    defp holds?(condition, tensors) do
      [holds] = apply_to(condition, tensors)
      Nx.to_number(holds) != 0
    end

    @doc """
    The results of the routine on tensors, the parameters.
    """
    def apply_to(routine, tensors) do
      tensors = List.to_tuple(tensors)

      evaluate(
        routine,
        Map.new(routine.parameters, fn {slot, at} -> {slot, elem(tensors, at)} end)
      )
    end

    defp evaluate(%{later: []} = routine, given) do
      values =
        Enum.reduce(routine.parts, given, fn part, values ->
          values = run_part(part, values, routine)
          Later.forget(for id <- part.ends, do: values.keys[id])
          values
        end)

      Enum.map(routine.results, &fetch(&1, values, routine))
    end

    defp evaluate(routine, given) do
      run = make_ref()
      keys = Map.new(routine.later, &{&1, {Later, run, &1}})

      try do
        evaluate(%{routine | later: []}, Map.put(given, :keys, keys))
      after
        Later.forget(Map.values(keys))
      end
    end

    defp parameter(%T{data: %Nx.Defn.Expr{}} = tensor) do
      raise ArgumentError,
            "cannot pass a tensor expression as argument to defn, got: #{inspect(tensor)}"
    end

    defp parameter(tensor), do: Nx.devectorize(tensor)

    defp fetch(slot, values, routine), do: slot |> waiting(values, routine) |> Later.value()

    # The value, as it is.
    defp waiting(slot, values, routine) do
      case values do
        %{^slot => value} -> value
        %{} -> Map.fetch!(routine.captured, slot)
      end
    end

    ## Parts

    # Integers that only depend on arguments that are integers, not tensors of many.
    defp counting(%{
           templates: templates,
           parameters: parameters,
           captured: captured,
           steps: steps
         }) do
      counts? = &match?(%T{shape: {}, type: {kind, _}} when kind in [:s, :u], templates[&1])
      known = Enum.filter(Map.keys(parameters) ++ Map.keys(captured), counts?)

      {steps, _} =
        Enum.map_reduce(steps, MapSet.new(known), fn step, known ->
          if step.native != nil and Enum.all?(step.makes, counts?) and
               Enum.all?(step.reads, &(&1 in known)),
             do: {{step, true}, Enum.into(step.makes, known)},
             else: {{step, false}, known}
        end)

      {counting, others} = Enum.split_with(steps, &elem(&1, 1))
      {Enum.map(counting, &elem(&1, 0)), Enum.map(others, &elem(&1, 0))}
    end

    # All that is left goes anyway when the last part has run.
    defp without_last_drop([last | parts]), do: [%{last | drop: []} | parts]
    defp without_last_drop([]), do: []

    # Parts are made from the last to the first: `needed` are the slots that later ones read.
    defp part({waits, steps, ends}, needed, all) do
      makes = Enum.flat_map(steps, & &1.makes)
      own = MapSet.new(makes)
      reads = steps |> Enum.flat_map(& &1.reads) |> Enum.uniq()
      reads = Enum.reject(reads, &(&1 in own))
      kept = Enum.filter(makes, &(&1 in needed))
      drop = Enum.reject(reads ++ makes, &(&1 in needed or is_map_key(all.captured, &1)))
      part = %{steps: steps, reads: reads, kept: kept, drop: drop, program: nil, checks: []}
      part = Map.merge(part, %{later: if(waits, do: Later.id(steps)), ends: ends})
      {compile(part, all), MapSet.union(needed, MapSet.new(reads))}
    end

    defp compile(%{steps: [_, _ | _] = steps, reads: [_ | _] = reads} = part, all) do
      first = reads |> Enum.with_index() |> Map.new()

      {terms, {numbers, _}} =
        Enum.map_reduce(steps, {first, length(reads)}, fn step, {numbers, next} ->
          term = term(step.native, Enum.map(step.reads, &numbers[&1]))
          made = Enum.with_index(step.makes, next)
          {term, {Enum.into(made, numbers), next + length(made)}}
        end)

      operands = Enum.map(reads, &operand(&1, all))

      results = Enum.map(part.kept, &numbers[&1])

      case NativeV.compile_program(operands, terms, results, gpu?(all)) do
        {:ok, program} -> %{part | program: program, checks: Checks.open(part, all)}
        {:error, _, _} -> part
      end
    end

    defp compile(part, _all), do: part

    # On a CPU each op goes to the faster of two sides, and one more costs little.
    defp gpu?(%{backend: {_, opts}}) do
      case Device.fetch(opts[:device] || Device.default()) do
        {:ok, device} -> NativeV.device_info(device).kind != "cpu"
        _ -> false
      end
    end

    # What is the same in every run goes in as it is: numbers become a part of the program.
    defp operand(slot, %{captured: captured, templates: templates}) do
      case captured do
        %{^slot => %T{data: %VulkanoBackend{ref: ref}}} -> ref
        %{} -> {templates[slot].type, templates[slot].shape}
      end
    end

    defp term({:view, name, how}, [value]), do: {name, value, how}
    defp term({:request, op, outs, attrs}, values), do: {op, values, outs, attrs}

    ## Running

    defp run_part(%{later: id} = part, values, routine) when id != nil do
      given = Map.take(values, part.reads)

      make = fn ->
        given = Map.new(given, fn {slot, value} -> {slot, Later.value(value)} end)
        %{part | later: nil} |> run_part(given, routine) |> Map.take(part.kept)
      end

      values.keys[id]
      |> Later.values(part.kept, make)
      |> Enum.into(values)
      |> Map.drop(part.drop)
    end

    defp run_part(%{program: nil} = part, values, routine) do
      part.steps
      |> Enum.reduce(values, fn step, values ->
        made = Step.call(step, reader(step, values, routine))
        step.makes |> Enum.zip(made) |> Enum.into(values)
      end)
      |> Map.drop(part.drop)
    end

    defp run_part(%{program: program} = part, values, routine) do
      Enum.each(part.checks, &Checks.check!(&1, values, routine))
      refs = for slot <- part.reads, do: fetch(slot, values, routine).data.ref

      case Request.run_compiled(refs, program) do
        {:ok, refs, places} ->
          for place <- places, do: report(Enum.at(part.steps, place), routine)

          part.kept
          |> Enum.zip_with(refs, fn slot, ref ->
            t = Map.fetch!(routine.templates, slot)
            {slot, %{t | data: %VulkanoBackend{ref: ref, shape: t.shape, type: t.type}}}
          end)
          |> Enum.into(values)
          |> Map.drop(part.drop)

        {:error, _kind, _message} ->
          run_part(%{part | program: nil}, values, routine)
      end
    end

    # What a hook does to a tensor is no business of the next call. A branch computes what it needs alone.
    defp reader(%{op: :hook}, values, routine), do: &again(fetch(&1, values, routine))
    defp reader(%{op: :cond}, values, routine), do: &waiting(&1, values, routine)
    defp reader(_step, values, routine), do: &fetch(&1, values, routine)

    defp report(%{native: {:request, op, _, _}, reads: reads}, routine) do
      operands = for slot <- reads, t = Map.fetch!(routine.templates, slot), do: {t.type, t.shape}
      Report.fallback(op, :host, operands)
    end

    @doc """
    The results of a trace with data in the place of expressions.
    """
    def results(expr, tensors) do
      {results, []} =
        Composite.traverse(expr, tensors, fn out, [tensor | rest] ->
          {%{Nx.to_template(out) | data: tensor.data}, rest}
        end)

      results
    end
  end
end
