if Code.ensure_loaded?(Nx) do
  defmodule Nx.Vulkan.Steps do
    @moduledoc false
    # A traced function as steps over numbered slots, each after those that make what it reads. A step is a call of the backend,
    # and what a program of the library says for it where it can. What is known now or was computed before is no step.

    import Nx.Vulkan.Slots

    alias Nx.Defn.{Composite, Expr}
    alias Nx.Tensor, as: T

    alias Nx.Vulkan.{Block, Device, Loops, Movement, NativeV}
    alias Nx.Vulkan.{Ops, Precision, Routine, Scope, VulkanoBackend}

    @enforce_keys [:backend]
    @counts [depth: 0, kept: 0, next: 0]
    @tables [hooks: %{}, captured: %{}, parameters: %{}, ids: %{}, known: %{}, templates: %{}]
    @fields [scope: %Scope{}, spent: Scope.nothing(), steps: []]
    defstruct [:backend, :outer, :given, :unrolling] ++ @fields ++ @counts ++ @tables

    # As many tensors as one request joins.
    @joined 64

    # Branches in branches: each reads those around it anew.
    @deepest 5

    # Bytes of a slice up to which its own copy costs less than two programs in place of one.
    @sliced 1_048_576

    @native for {name, _, _, :native} <- Ops.callbacks(), do: name

    @doc """
    The steps of what a trace gave, and the slots of its results in the order in which Nx walks through it. `:error` where
    there is something that is no call of the backend on tensors alone, nor a loop, a branch or a hook.
    """
    def new(expr, backend, hooks \\ %{}) do
      {slots, steps} = trace(expr, %__MODULE__{backend: backend, hooks: hooks})
      {:ok, steps, slots}
    catch
      :unsupported -> :error
    end

    defp trace(_expr, %{depth: depth}) when depth > @deepest, do: throw(:unsupported)

    defp trace(expr, steps) do
      {slots, steps} =
        Enum.map_reduce(Composite.flatten_list([expr]), %{steps | scope: Scope.of(expr)}, &slot/2)

      {slots, %{steps | steps: Enum.reverse(steps.steps)}}
    end

    defp slot(%T{vectorized_axes: [_ | _]}, _steps), do: throw(:unsupported)
    defp slot(%T{data: %Expr{op: :metadata, args: [%T{} = t, _]}}, steps), do: slot(t, steps)

    defp slot(%T{data: %Expr{id: id, op: op, args: args}} = t, steps) do
      case seen(id, steps) do
        {slot, steps} when is_integer(slot) ->
          {slot, steps}

        nil ->
          {slot, steps} = first(op, args, t, Scope.spend(id, steps))
          {slot, steps} = of_type(slot, t, steps)
          {slot, put_in(steps.ids[id], slot)}
      end
    end

    # Nx gives gradients of loops the types of what they begin with, whatever the types of what they are.
    defp of_type(slot, %{type: type} = t, steps) do
      case steps.templates do
        %{^slot => %{type: other}} when other != type ->
          convertible!(other, type)
          request(:as_type, [{:slot, slot}], [slot], [], t, steps)

        %{} ->
          {slot, steps}
      end
    end

    # What is used outside of a branch as well is computed there, once.
    defp first(op, args, t, %{outer: outer} = steps) do
      if Scope.shared?(t, outer) do
        {slot, steps} = Scope.around(steps, &slot(t, &1))
        from_outside(slot, steps)
      else
        lower(op, args, t, steps)
      end
    end

    # Where a value is that was met before. A branch reads what is computed outside of it through a slot of its own.
    defp seen(id, %{ids: ids} = steps) when is_map_key(ids, id), do: {ids[id], steps}
    defp seen(_id, %{outer: nil}), do: nil

    defp seen(id, steps) do
      with {slot, outer} <- seen(id, steps.outer) do
        {own, steps} = from_outside(slot, %{steps | outer: outer})
        {own, put_in(steps.ids[id], own)}
      end
    end

    defp from_outside(slots, steps) when is_tuple(slots) do
      {own, steps} = Enum.map_reduce(Tuple.to_list(slots), steps, &from_outside/2)
      {List.to_tuple(own), steps}
    end

    defp from_outside(slot, %{outer: outer} = steps) do
      case outer.captured do
        %{^slot => tensor} ->
          capture(tensor, steps)

        %{} ->
          {own, steps} = new_slot(outer.templates[slot], steps)
          {own, put_in(steps.parameters[own], slot)}
      end
    end

    defp lower(:parameter, [at], _, %{given: given} = steps) when given != nil,
      do: {elem(given, at), steps}

    defp lower(:parameter, [at], t, %{outer: nil} = steps) do
      {slot, steps} = new_slot(t, steps)
      {slot, put_in(steps.parameters[slot], at)}
    end

    defp lower(:parameter, _, t, steps) do
      {slot, outer} = slot(t, steps.outer)
      from_outside(slot, %{steps | outer: outer})
    end

    defp lower(:constant, [number], t, steps), do: constant(number, t, steps)

    defp lower(:tensor, [%T{vectorized_axes: []} = t], _, steps) do
      case t.data do
        %VulkanoBackend{} -> capture(t, steps)
        %Nx.BinaryBackend{} -> capture(Nx.backend_copy(t, steps.backend), steps)
        _ -> throw(:unsupported)
      end
    end

    defp lower(:elem, [%T{data: %Expr{op: op, id: id} = tuple}, at], _, steps)
         when op in [:block, :while, :cond, :hook] do
      {slots, steps} =
        with nil <- seen(id, steps) do
          {slots, steps} = several(op, tuple.args, steps)
          slots = List.to_tuple(slots)
          {slots, put_in(steps.ids[id], slots)}
        end

      {elem(slots, at), steps}
    end

    defp lower(:elem, [%T{data: %Expr{op: :metadata, args: [tuple, _]}}, at], _, steps)
         when is_tuple(tuple),
         do: slot(elem(tuple, at), steps)

    defp lower(:block, [struct, args, %T{}, fun], t, steps) do
      {[slot], steps} = block(struct, args, Nx.to_template(t), fun, steps)
      {slot, steps}
    end

    defp lower(op, args, _, steps) when op in [:while, :cond, :hook] do
      {[slot], steps} = several(op, args, steps)
      {slot, steps}
    end

    # Nx makes a vector of a scalar that is reduced or sorted.
    defp lower(op, [%T{shape: {}} = scalar, opts], t, steps)
         when op in @native and is_list(opts) do
      vector = Nx.template({1}, scalar.type)
      {slot, steps} = view(:reshape, [scalar], {1}, vector, steps)
      request(op, [{:slot, slot}, opts], [slot], Ops.attrs(op, [vector, opts]), t, steps)
    end

    defp lower(op, [list, _] = args, t, steps)
         when op in [:concatenate, :stack] and length(list) > @joined,
         do: plain(op, args, t, steps)

    defp lower(op, args, t, steps) when op in @native do
      {filled, steps} = slots(args, steps)
      {operands, attrs} = Ops.request(op, args)
      {reads, steps} = Enum.map_reduce(operands, steps, &slot/2)
      request(op, filled, reads, attrs, t, steps)
    end

    defp lower(:slice, [from, starts, lengths, strides] = args, t, steps) do
      bounds = Enum.zip_with(Tuple.to_list(from.shape), lengths, &(&1 - &2))
      {starts, steps} = starts |> Enum.zip(bounds) |> Enum.map_reduce(steps, &start/2)

      cond do
        Enum.all?(starts, &is_integer/1) ->
          args = [from, starts, lengths, strides]
          view(:slice, args, {starts, Tuple.to_list(t.shape), strides}, t, steps)

        Nx.byte_size(t) > @sliced ->
          plain(:slice, args, t, steps)

        true ->
          dynamic_slice(from, starts, lengths, strides, t, steps)
      end
    end

    defp lower(:reshape, args, t, steps), do: view(:reshape, args, t.shape, t, steps)

    defp lower(:bitcast, args, %{type: {_, bits}} = t, steps) when bits < 8,
      do: lower(:as_type, args, t, steps)

    defp lower(:bitcast, args, t, steps), do: view(:bitcast, args, t.type, t, steps)

    defp lower(:broadcast, [_, shape, axes] = args, t, steps),
      do: view(:broadcast, args, {shape, axes}, t, steps)

    defp lower(op, [_, axes] = args, t, steps) when op in [:squeeze, :transpose, :reverse],
      do: view(op, args, axes, t, steps)

    defp lower(op, args, t, %{backend: {_, opts}} = steps) when op in [:iota, :eye] do
      attrs = for axis <- args, do: {:axis, List.wrap(axis)}
      {out, native} = {Nx.to_template(t), {:request, "#{op}", [{t.type, t.shape}], attrs}}
      one(%{op: op, out: out, args: args, options: [opts], reads: [], native: native}, t, steps)
    end

    defp lower(_op, _args, _t, _steps), do: throw(:unsupported)

    # A view of the axes whose start is known, and of that what begins where the device finds.
    defp dynamic_slice(from, starts, lengths, strides, t, steps) do
      {first, extents, by, attrs} = Movement.slice(from.shape, t.shape, starts, lengths, strides)
      out = %{Nx.to_template(from) | shape: List.to_tuple(extents)}
      {seen, steps} = view(:slice, [from, first, extents, by], {first, extents, by}, out, steps)

      {rest, steps} =
        [starts, lengths, strides, extents]
        |> Enum.zip()
        |> Enum.map_reduce(steps, fn
          {%T{} = start, length, stride, _extent}, steps ->
            {slot, steps} = slot(start, steps)
            {{{:slot, slot}, length, stride}, steps}

          {_start, _length, _stride, extent}, steps ->
            {{0, extent, 1}, steps}
        end)

      args = [{:slot, seen} | Enum.map(0..2, fn at -> Enum.map(rest, &elem(&1, at)) end)]
      native = {:request, "dynamic_slice", [{t.type, t.shape}], attrs}
      step = %{op: :slice, out: Nx.to_template(t), args: args, options: []}
      one(Map.merge(step, %{reads: reads(args), native: native}), t, steps)
    end

    defp several(:block, [struct, args, out, fun], steps) when is_tuple(out),
      do: block(struct, args, Composite.traverse(out, &Nx.to_template/1), fun, steps)

    defp several(:while, [initial, _, condition, body] = loop, steps) do
      steps = Scope.once_in(loop, body, steps)
      {slots, steps} = Enum.map_reduce(Composite.flatten_list([initial]), steps, &slot/2)
      Loops.lower(condition, body, slots, steps)
    end

    defp several(:cond, [clauses, last], steps) do
      {clauses, steps} =
        Enum.map_reduce(clauses, steps, fn {condition, body}, steps ->
          {condition, steps} = branch(condition, steps)
          {body, steps} = branch(body, steps)
          {{condition, body}, steps}
        end)

      outs = Composite.flatten_list([last])
      {last, steps} = branch(last, steps)
      inner = [last | Enum.flat_map(clauses, &Tuple.to_list/1)]
      reads = for({branch, _} <- inner, slot <- Map.values(branch.parameters), do: slot)
      reads = Enum.uniq(reads)
      routine = &branch_routine(&1, Enum.with_index(reads))
      clauses = for {condition, body} <- clauses, do: {routine.(condition), routine.(body)}
      step = %{op: :cond, clauses: clauses, last: routine.(last), reads: reads, native: nil}
      push(step, outs, steps)
    end

    defp several(:hook, [expr, spec, _template, ref], steps) do
      steps = Scope.once(ref, steps)
      {slots, steps} = Enum.map_reduce(Composite.flatten_list([expr]), steps, &slot/2)
      {slots, hook(spec, expr, steps)}
    end

    defp several(_, _, _), do: throw(:unsupported)

    @doc """
    The slots of an expression of its own parameters, with these slots in their place; of the results at `places` alone
    where those are named.
    """
    def inline(expr, slots, steps, places \\ nil) do
      inner = %{steps | ids: %{}, outer: nil, given: List.to_tuple(slots)}
      results = Composite.flatten_list([expr])
      results = if places, do: Enum.map(places, &Enum.at(results, &1)), else: results
      # A loop that is written out has its hooks once for each iteration.
      inner = %{inner | scope: Scope.of(List.to_tuple(results)), spent: Scope.nothing()}
      {slots, inner} = Enum.map_reduce(results, inner, &slot/2)

      {slots, Map.merge(inner, Map.take(steps, [:ids, :outer, :given, :scope, :spent]))}
    end

    defp hook({:token_hook, hooked, spec}, _expr, steps), do: hook(spec, hooked, steps)

    defp hook(spec, expr, %{hooks: hooks} = steps) do
      fun =
        case spec do
          {:fn, fun} -> fun
          {:named, name, fun} -> hooks[name] || fun
        end

      {reads, steps} = Enum.map_reduce(Composite.flatten_list([expr]), steps, &slot/2)
      out = Composite.traverse(expr, &Nx.to_template/1)
      step = %{op: :hook, fun: fun, out: out, reads: reads, native: nil}
      if fun, do: step |> push([], steps) |> elem(1), else: steps
    end

    defp branch(expr, %{backend: backend, hooks: hooks, depth: depth} = steps) do
      inner = %__MODULE__{backend: backend, hooks: hooks, outer: steps, depth: depth + 1}
      {slots, branch} = trace(expr, Map.merge(inner, Map.take(steps, [:unrolling, :spent])))
      {{%{branch | outer: nil}, slots}, Map.merge(branch.outer, Scope.after_branch(branch))}
    end

    # What a branch reads from outside becomes its arguments.
    defp branch_routine({branch, slots}, reads) do
      reads = Map.new(reads)
      parameters = Map.new(branch.parameters, fn {own, slot} -> {own, reads[slot]} end)
      Routine.of(%{branch | parameters: parameters}, slots, [])
    end

    # Whether a block is a request depends on the packs that are there now; what they no longer run, its call still does.
    defp block(struct, args, out, fun, %{backend: {_, opts}} = steps) do
      struct = Precision.fill(struct, opts)
      args = Block.widened(struct, args)
      {filled, steps} = slots(args, steps)
      reads = reads(filled)
      outs = Composite.flatten_list([out])
      op = Block.op(struct)
      templates = for arg <- args, do: if(is_struct(arg, T), do: Nx.to_template(arg), else: arg)

      native =
        with true <- NativeV.has_op(Device.fetch!(opts[:device] || Device.default()), op),
             {[_ | _], outs, attrs} <- Block.request(struct, out, templates) do
          {:request, op, outs, attrs}
        else
          _ -> nil
        end

      step = %{op: :block, out: out, args: filled, struct: struct, fun: fun}
      emit(Map.merge(step, %{reads: reads, native: native}), outs, steps)
    end

    # Where a slice starts, if that is known now, within its bounds.
    defp start({at, last}, steps) when is_integer(at), do: {Ops.start(at, last), steps}

    defp start({t, last}, steps) do
      with {slot, %{captured: captured} = steps} when is_map_key(captured, slot) <-
             slot(t, steps),
           do: {captured[slot] |> Nx.to_number() |> Ops.start(last), steps},
           else: ({_slot, steps} -> {t, steps})
    end

    defp view(op, args, how, t, steps) do
      {[{:slot, slot} | _] = filled, steps} = slots(args, steps)

      {out, native} = {Nx.to_template(t), {:view, op, how}}
      one(%{op: op, out: out, args: filled, options: [], reads: [slot], native: native}, t, steps)
    end

    defp request(op, filled, reads, attrs, t, %{backend: {_, opts}} = steps) do
      attrs = Precision.add(attrs, op, opts)
      native = {:request, Atom.to_string(op), [{t.type, t.shape}], attrs}
      out = Nx.to_template(t)
      one(%{op: op, out: out, args: filled, options: [], reads: reads, native: native}, t, steps)
    end

    defp plain(op, args, t, steps) do
      {filled, steps} = slots(args, steps)
      out = Nx.to_template(t)
      step = %{op: op, out: out, args: filled, options: [], reads: reads(filled), native: nil}
      one(step, t, steps)
    end

    defp one(step, t, steps) do
      {[slot], steps} = emit(step, [t], steps)
      {slot, steps}
    end

    defp slots(args, steps) do
      Enum.map_reduce(args, steps, fn
        %T{} = t, steps ->
          {slot, steps} = slot(t, steps)
          {{:slot, slot}, steps}

        [_ | _] = list, steps ->
          if Enum.any?(list, &is_struct(&1, T)), do: slots(list, steps), else: {list, steps}

        arg, steps ->
          {arg, steps}
      end)
    end
  end
end
