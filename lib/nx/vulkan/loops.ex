if Code.ensure_loaded?(Nx) do
  defmodule Nx.Vulkan.Loops do
    @moduledoc false
    # A loop of a traced function: its iterations one after the other, strides of several of them, or a loop that asks its
    # condition.

    import Nx.Vulkan.Slots

    alias Nx.Defn.Composite
    alias Nx.Vulkan.{Routine, Steps}

    # Iterations of a loop, with those in it, that stand one after the other at most, and slots that they make.
    @iterations 256
    @unrolled 8192

    # Slots of a stride, and iterations of a loop that goes in strides.
    @stride 4096
    @counted 4096

    @doc """
    The slots of what a loop ends with that begins with `slots`, and the steps up to there.
    """
    def lower(condition, body, slots, %{unrolling: nil} = steps) do
      with :error <- unrolled(condition, body, slots, steps),
           :error <- in_strides(condition, body, slots, steps),
           do: loop(condition, body, slots, steps)
    end

    def lower(condition, body, slots, steps), do: iterate(condition, body, slots, steps)

    # A loop that counts with what is known now is what its iterations are one after the other, and so are those in it.
    defp unrolled(condition, body, slots, steps) do
      budget = {@iterations, steps.next + @unrolled}
      {slots, inner} = iterate(condition, body, slots, %{steps | unrolling: budget})
      {slots, %{inner | unrolling: nil}}
    catch
      :remains -> :error
    end

    defp iterate(condition, body, slots, steps) do
      {left, last} = steps.unrolling
      {holds, steps} = holds?(condition, slots, steps)

      cond do
        not holds ->
          {slots, steps}

        left == 0 or steps.next > last ->
          throw(:remains)

        true ->
          {slots, steps} = Steps.inline(body, slots, %{steps | unrolling: {left - 1, last}})
          iterate(condition, body, slots, steps)
      end
    end

    defp holds?(condition, slots, steps) do
      {[holds], steps} = Steps.inline(condition, slots, steps)

      case steps.captured do
        %{^holds => known} -> {Nx.to_number(known) != 0, steps}
        %{} -> throw(:remains)
      end
    end

    ## Strides

    # A longer one is one routine of several iterations, again and again: a program whose runs cost as much as that of one
    # iteration. What it counts with is known before.
    defp in_strides(condition, body, slots, steps) do
      {slots, counters, size, steps} = first(condition, body, slots, steps, 3)
      {starts, steps} = starts(condition, body, slots, counters, steps, @counted)
      count = length(starts) - 1
      most = min(div(@stride, size), count)
      if most < 2, do: throw(:remains)
      length = Enum.max_by(div(most + 1, 2)..most, &{-rem(count, &1), &1})

      {now, steps} =
        strides(body, Enum.take_every(starts, length), counters, length, count, steps)

      Enum.reduce(1..rem(count, length)//1, {now, steps}, fn _, {slots, steps} ->
        Steps.inline(body, slots, steps)
      end)
    catch
      :remains -> :error
    end

    # The first iterations, until all that is known after one is known after the next one too; where those are, among the
    # slots, and how many slots an iteration makes.
    defp first(_condition, _body, _slots, _steps, 0), do: throw(:remains)

    defp first(condition, body, slots, steps, left) do
      {holds, steps} = holds?(condition, slots, steps)
      {next, after_one} = Steps.inline(body, slots, steps)
      made = Enum.take(after_one.steps, length(after_one.steps) - length(steps.steps))
      if not holds or Enum.any?(made, &(&1.native == nil)), do: throw(:remains)

      known? = &is_map_key(after_one.captured, &1)
      counters = for {slot, at} <- Enum.with_index(next), known?.(slot), do: at
      {again, after_two} = Steps.inline(body, next, after_one, counters)

      if Enum.all?(again, &is_map_key(after_two.captured, &1)),
        do: {next, counters, max(after_one.next - steps.next, 1), after_two},
        else: first(condition, body, next, after_one, left - 1)
    end

    # What each iteration begins with, and what the last one ends with, as far as that is known: the others are as they were.
    defp starts(condition, body, slots, counters, steps, left) do
      case holds?(condition, slots, steps) do
        {false, steps} ->
          {[slots], steps}

        {true, _} when left == 0 ->
          throw(:remains)

        {true, steps} ->
          {known, steps} = Steps.inline(body, slots, steps, counters)
          next = replace(slots, Enum.zip(counters, known))
          {rest, steps} = starts(condition, body, next, counters, steps, left - 1)
          {[slots | rest], steps}
      end
    end

    defp replace(slots, others) do
      others = Map.new(others)
      for {slot, at} <- Enum.with_index(slots), do: Map.get(others, at, slot)
    end

    # The strides from these starts as one step.
    defp strides(body, starts, counters, length, count, steps) do
      strides = div(count, length)
      [first, second | _] = starts
      inner = %Steps{backend: steps.backend, hooks: steps.hooks}
      # What is known and does not change is known to the routine as well.
      same? = fn at -> at in counters and Enum.at(first, at) == Enum.at(second, at) end

      {own, inner} =
        first
        |> Enum.with_index()
        |> Enum.map_reduce(inner, fn {slot, at}, inner ->
          if same?.(at),
            do: capture(steps.captured[slot], inner),
            else: parameter(steps.templates[slot], at, inner)
        end)

      {ends, inner} =
        Enum.reduce(1..length, {own, inner}, fn _, {slots, inner} ->
          Steps.inline(body, slots, inner)
        end)

      changed =
        for {{before, now}, at} <- own |> Enum.zip(ends) |> Enum.with_index(),
            before != now and at not in counters,
            do: {at, now}

      {places, results} = Enum.unzip(changed)
      routine = Routine.of(%{inner | steps: Enum.reverse(inner.steps)}, results, [])
      made = places |> Enum.with_index() |> Enum.map(fn {at, k} -> {at, {:made, k}} end)
      [first | others] = Enum.take(starts, strides)
      strides_of = [first | Enum.map(others, &replace(&1, made))]
      reads = strides_of |> List.flatten() |> Enum.filter(&is_integer/1) |> Enum.uniq()
      step = %{op: :strides, body: routine, strides: strides_of, reads: reads, native: nil}
      outs = Enum.map(places, &steps.templates[Enum.at(first, &1)])
      {slots, steps} = push(step, outs, steps)
      {starts |> Enum.at(strides) |> replace(Enum.zip(places, slots)), steps}
    end

    defp parameter(template, at, steps) do
      {slot, steps} = new_slot(template, steps)
      {slot, put_in(steps.parameters[slot], at)}
    end

    ## Loops

    defp loop(condition, body, slots, %{backend: backend, hooks: hooks} = steps) do
      with {:ok, condition} <- Routine.new(condition, backend, loop: true, hooks: hooks),
           {:ok, routine} <- Routine.new(body, backend, loop: true, hooks: hooks) do
        step = %{op: :while, condition: condition, body: routine, reads: slots, native: nil}
        push(step, Composite.flatten_list([body]), steps)
      else
        :error -> throw(:unsupported)
      end
    end
  end
end
