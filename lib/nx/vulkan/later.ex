if Code.ensure_loaded?(Nx) do
  defmodule Nx.Vulkan.Later do
    @moduledoc false
    # What is computed outside of branches and read by nothing else waits until one of them runs: two conditions that do not hold share
    # nothing, as a branch and its gradient do. It is computed once, and kept until the last of them has run.

    @enforce_keys [:key, :slot, :make]
    defstruct @enforce_keys

    @doc """
    The steps as groups that run together, in an order in which they can, each with whether it waits and with the groups, by their `id/1`,
    that nothing waits for after it. Steps for which `alone?` holds run by themselves.
    """
    def groups(steps, results, alone?) do
      steps = Enum.with_index(steps)
      waiting = waiting(steps, results)
      {later, now} = Enum.split_with(steps, fn {_, at} -> is_map_key(waiting, at) end)

      later =
        later |> Enum.group_by(fn {_, at} -> waiting[at] end, &elem(&1, 0)) |> Enum.to_list()

      ends = Enum.group_by(later, &last_cond/1, fn {_, own} -> id(own) end)

      # What more branches wait for may be read by what fewer do, and not the other way round.
      later = Enum.sort_by(later, fn {branches, _} -> -MapSet.size(branches) end)
      later = Enum.group_by(later, &first_cond/1, fn {_, own} -> {true, own, []} end)

      now
      |> Enum.chunk_by(fn {step, _} -> alone?.(step) end)
      |> Enum.flat_map(fn [{step, _} | _] = own ->
        if alone?.(step), do: Enum.map(own, &[&1]), else: [own]
      end)
      |> Enum.flat_map(fn [{_, first} | _] = own ->
        own = {false, Enum.map(own, &elem(&1, 0)), Map.get(ends, first, [])}
        Map.get(later, first, []) ++ [own]
      end)
    end

    @doc """
    What tells a group that waits from others: a slot that it makes.
    """
    def id([%{makes: [slot | _]} | _]), do: slot

    defp last_cond({branches, _}), do: branches |> Enum.map(&elem(&1, 0)) |> Enum.max()
    defp first_cond({branches, _}), do: branches |> Enum.map(&elem(&1, 0)) |> Enum.min()

    # By the place of a step that waits the branches that it waits for: the place of the `cond`, and which one of it.
    defp waiting(steps, results) do
      if Enum.any?(steps, &match?({%{op: :cond}, _}, &1)) do
        readers = steps |> Enum.flat_map(&reads/1) |> Enum.group_by(&elem(&1, 0), &elem(&1, 1))
        needed = MapSet.new(results)
        conds = for {%{op: :cond} = step, at} <- steps, do: all(step, at)

        steps
        |> Enum.reverse()
        |> Enum.reduce(%{}, fn {step, at}, waiting ->
          branches = branches(step, readers, waiting)
          waits? = step.native != nil and not Enum.any?(step.makes, &(&1 in needed))

          if waits? and branches != nil and not Enum.any?(conds, &MapSet.subset?(&1, branches)),
            do: Map.put(waiting, at, branches),
            else: waiting
        end)
      else
        %{}
      end
    end

    # Of the branches of a `cond`, conditions apart, one runs.
    defp all(%{clauses: clauses}, at),
      do: MapSet.new(0..length(clauses), fn clause -> {at, branch(clause, length(clauses))} end)

    defp branch(clause, clauses) when clause < clauses, do: 2 * clause + 1
    defp branch(clause, _clauses), do: 2 * clause

    # What a step reads: each slot with the branch in which it does, or the step. The first condition is looked at in any case.
    defp reads({%{op: :cond, clauses: clauses, last: last, reads: reads}, at}) do
      branches = Enum.flat_map(clauses, &Tuple.to_list/1) ++ [last]

      for {branch, number} <- Enum.with_index(branches), {_, read} <- branch.parameters do
        {Enum.at(reads, read), if(number == 0, do: at, else: {at, number})}
      end
    end

    defp reads({step, at}), do: for(slot <- step.reads, do: {slot, at})

    # The branches that read what a step makes, or nothing where others do.
    defp branches(step, readers, waiting) do
      step.makes
      |> Enum.flat_map(&Map.get(readers, &1, []))
      |> Enum.map(fn
        {_, _} = branch -> MapSet.new([branch])
        at -> waiting[at]
      end)
      |> Enum.reduce(nil, fn
        nil, _ -> throw(:now)
        own, nil -> own
        own, all -> MapSet.union(own, all)
      end)
    catch
      :now -> nil
    end

    @doc """
    The values in these slots, which `make` gives by their slots once one of them is asked for.
    """
    def values(key, slots, make),
      do: Map.new(slots, &{&1, %__MODULE__{key: key, slot: &1, make: make}})

    @doc """
    A tensor, computed now if it has waited so far.
    """
    def value(%__MODULE__{key: key, slot: slot, make: make}) do
      made =
        with nil <- Process.get(key) do
          made = make.()
          Process.put(key, made)
          made
        end

      Map.fetch!(made, slot)
    end

    def value(tensor), do: tensor

    @doc """
    Lets go of what these keys have kept.
    """
    def forget(keys), do: Enum.each(keys, &Process.delete/1)
  end
end
