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
    def lower(condition, body, slots, steps),
      do: lowered(condition, of_types(body, slots, steps), slots, steps)

    # The results of an iteration are what the next one begins with, of the same types.
    defp of_types(body, slots, steps) do
      types = for slot <- slots, do: steps.templates[slot].type

      {body, []} =
        Composite.traverse(body, types, fn t, [type | types] ->
          convertible!(t.type, type)
          {if(t.type == type, do: t, else: Nx.as_type(t, type)), types}
        end)

      body
    end

    defp lowered(condition, body, slots, %{unrolling: nil} = steps) do
      with :error <- unrolled(condition, body, slots, steps),
           :error <- in_strides(condition, body, slots, steps),
           do: loop(condition, body, slots, steps)
    end

    defp lowered(condition, body, slots, steps), do: iterate(condition, body, slots, steps)

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
    # iteration. What it counts with is known before. Loops in it are written out or keep it from that.
    defp in_strides(condition, body, slots, steps) do
      {slots, counters, size, inner} = first(condition, body, slots, budget(steps), 3)
      most = div(@stride, size)
      if most < 2, do: throw(:remains)
      {starts, inner} = starts(condition, body, slots, counters, inner, @counted)
      count = length(starts) - 1
      if count < 2, do: throw(:remains)
      most = min(most, count)
      several = Enum.max_by(div(most + 1, 2)..most, &{-rem(count, &1), &1})
      begins = starts |> Enum.take_every(several) |> Enum.take(div(count, several))
      {changed, inner} = strides(body, begins, counters, several, inner)
      ends = starts |> Enum.at(length(begins) * several) |> replace(changed)

      {slots, inner} =
        Enum.reduce(1..rem(count, several)//1, {ends, budget(inner)}, fn _, {slots, inner} ->
          Steps.inline(body, slots, inner)
        end)

      {slots, %{inner | unrolling: nil}}
    catch
      :remains -> :error
    end

    defp budget(steps), do: %{steps | unrolling: {@stride, steps.next + @stride}}

    # The first iterations, until all that is known after one is known after the next one too; where those are, among the
    # slots, and how many slots an iteration makes.
    defp first(_condition, _body, _slots, _steps, 0), do: throw(:remains)

    defp first(condition, body, slots, steps, left) do
      {holds, steps} = silent(steps, &holds?(condition, slots, &1))
      {next, after_one} = Steps.inline(body, slots, steps)
      made = Enum.take(after_one.steps, length(after_one.steps) - length(steps.steps))
      if not holds or Enum.any?(made, &(&1.native == nil)), do: throw(:remains)

      known? = &is_map_key(after_one.captured, &1)
      counters = for {slot, at} <- Enum.with_index(next), known?.(slot), do: at
      {again, after_two} = Steps.inline(body, next, after_one, counters)
      size = max(after_one.next - steps.next, 1)

      if are_known(again, after_two) and length(after_two.steps) == length(after_one.steps),
        do: {next, counters, size, after_two},
        else: first(condition, body, next, after_one, left - 1)
    end

    # What is asked of an expression that is known has to be no step of the program.
    defp silent(steps, ask) do
      {answer, asked} = ask.(steps)
      if length(asked.steps) > length(steps.steps), do: throw(:remains)
      {answer, asked}
    end

    defp are_known(slots, steps), do: Enum.all?(slots, &is_map_key(steps.captured, &1))

    # What each iteration begins with, and what the last one ends with, as far as that is known: the others are as they were.
    defp starts(condition, body, slots, counters, steps, left) do
      case silent(steps, &holds?(condition, slots, &1)) do
        {false, steps} ->
          {[slots], steps}

        {true, _} when left == 0 ->
          throw(:remains)

        {true, steps} ->
          {known, steps} = silent(steps, &Steps.inline(body, slots, &1, counters))
          if not are_known(known, steps), do: throw(:remains)
          next = replace(slots, Enum.zip(counters, known))
          {rest, steps} = starts(condition, body, next, counters, steps, left - 1)
          {[slots | rest], steps}
      end
    end

    defp replace(slots, others) do
      others = Map.new(others)
      for {slot, at} <- Enum.with_index(slots), do: Map.get(others, at, slot)
    end

    # The strides that begin with these slots as one step; places and slots of what they change that is not known.
    defp strides(body, [first | others] = begins, counters, several, steps) do
      inner = budget(%Steps{backend: steps.backend, hooks: steps.hooks})
      # What is known and begins all strides is known to the routine as well.
      by_place = Enum.zip_with(begins, &(&1 |> Enum.uniq() |> length()))

      {own, inner} =
        [first, by_place]
        |> Enum.zip()
        |> Enum.with_index()
        |> Enum.map_reduce(inner, fn {{slot, different}, at}, inner ->
          if at in counters and different == 1,
            do: capture(steps.captured[slot], inner),
            else: parameter(steps.templates[slot], at, inner)
        end)

      {ends, inner} =
        Enum.reduce(1..several, {own, inner}, fn _, {slots, inner} ->
          Steps.inline(body, slots, inner)
        end)

      if inner.next > 2 * @stride or Enum.any?(inner.steps, &(&1.native == nil)),
        do: throw(:remains)

      changed =
        for {{before, now}, at} <- own |> Enum.zip(ends) |> Enum.with_index(),
            before != now and at not in counters,
            do: {at, now}

      {places, results} = Enum.unzip(changed)

      if places == [] do
        {[], steps}
      else
        routine = Routine.of(%{inner | steps: Enum.reverse(inner.steps)}, results, [])
        made = places |> Enum.with_index() |> Enum.map(fn {at, k} -> {at, {:made, k}} end)
        strides = [first | Enum.map(others, &replace(&1, made))]
        reads = strides |> List.flatten() |> Enum.filter(&is_integer/1) |> Enum.uniq()
        step = %{op: :strides, body: routine, strides: strides, reads: reads, native: nil}
        outs = Enum.map(places, &steps.templates[Enum.at(first, &1)])
        {slots, steps} = push(step, outs, steps)
        {Enum.zip(places, slots), steps}
      end
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
