if Code.ensure_loaded?(Nx) do
  defmodule Nx.Vulkan.Scope do
    @moduledoc false
    # What of a traced function is computed outside of its branches. That is what is used there, and what several branches use,
    # which would be computed in each; but what may raise, and loops, run where a branch needs them, unless they run anyway.

    import Bitwise

    alias Nx.Defn.{Composite, Expr, Tree}
    alias Nx.Tensor, as: T
    alias Nx.Vulkan.Checks

    # By id the numbers of the risks at or below a node, and of those that are run whenever it is, as bits. `sure` are those that
    # are run in any case, `hooks` those that are hooks.
    defstruct ids: %{}, risks: %{}, sure: 0, hooks: 0

    # Risks of one scope that are told apart; the others count as one that may not be run.
    @most 4_096
    # Expressions that are lowered once more: what has more is for the evaluator.
    @lowered 20_000

    @doc """
    The scope of an expression.
    """
    def of(expr) do
      ids = Tree.scope_ids(expr)

      if Enum.any?(ids, &match?({_, :cond}, &1)) do
        none = %{risks: %{}, next: 0, hooks: 0}
        {{_reach, sure}, found} = all([expr], none)
        %__MODULE__{ids: ids, risks: found.risks, sure: sure, hooks: found.hooks}
      else
        %__MODULE__{ids: ids}
      end
    end

    @doc """
    Whether an expression that a branch uses is computed in one of the scopes around it.
    """
    def shared?(_t, nil), do: false
    def shared?(t, steps), do: computes?(t, steps.scope) or shared?(t, steps.outer)

    @doc """
    What was lowered in branches: how often once more, and what; and hooks.
    """
    def nothing, do: %{count: 0, ids: MapSet.new(), hooks: MapSet.new()}

    @doc """
    The steps with that expression lowered. What several branches need may be lowered in each of them, and in the branches in those;
    loops that are written out have a budget of their own.
    """
    def spend(_id, %{outer: outer, unrolling: unrolling} = steps)
        when outer == nil or unrolling != nil,
        do: steps

    def spend(id, %{spent: %{ids: ids, count: count}} = steps) do
      cond do
        id not in ids -> put_in(steps.spent.ids, MapSet.put(ids, id))
        count == @lowered -> throw(:unsupported)
        true -> put_in(steps.spent.count, count + 1)
      end
    end

    @doc """
    The steps with that hook, or loop with one: where a condition and its branch have one in common, it would be called in both.
    """
    def once(hook, steps) do
      if hook in steps.spent.hooks, do: throw(:unsupported)
      update_in(steps.spent.hooks, &MapSet.put(&1, hook))
    end

    @doc """
    As `once/2`, for a loop with that body in which a hook is.
    """
    def once_in(loop, body, steps) do
      [%T{data: %Expr{id: id}} | _] = Composite.flatten_list([body])
      if hooked?(loop), do: once(id, steps), else: steps
    end

    @doc """
    What `fun` gives of the steps around a branch, and the branch's own with what that lowered.
    """
    def around(%{outer: outer, spent: spent} = steps, fun) do
      {given, outer} = fun.(%{outer | spent: %{spent | hooks: outer.spent.hooks}})
      {given, %{steps | outer: outer, spent: %{outer.spent | hooks: spent.hooks}}}
    end

    @doc """
    What the steps around a branch know of it.
    """
    def after_branch(%{outer: outer, unrolling: unrolling, spent: spent}) do
      hooks = MapSet.union(spent.hooks, outer.spent.hooks)
      %{unrolling: unrolling, spent: %{spent | hooks: hooks}}
    end

    defp computes?(%T{data: %Expr{id: id, op: op, args: args}}, scope) do
      cond do
        is_map_key(scope.ids, id) -> safe?(id, scope)
        # Of several results those that are used elsewhere may be others.
        op == :elem -> computes?(hd(args), scope)
        true -> false
      end
    end

    defp safe?(id, %{risks: risks, sure: sure, hooks: hooks}) do
      {reach, _} = Map.get(risks, id, {0, 0})
      open = band(reach, bnot(sure))
      # Evaluators call it once, whichever branches there are.
      if band(open, hooks) != 0, do: throw(:unsupported)
      open == 0
    end

    # What is at or below expressions that are all computed, and which of it is run in any case.
    defp all(exprs, found) do
      exprs
      |> Composite.flatten_list()
      |> Enum.reduce({{0, 0}, found}, fn t, {{reach, sure}, found} ->
        {{own, certain}, found} = node(t, found)
        {{bor(reach, own), bor(sure, certain)}, found}
      end)
    end

    defp node(%T{data: %Expr{id: id}}, %{risks: risks} = found) when is_map_key(risks, id),
      do: {risks[id], found}

    defp node(%T{data: %Expr{id: id, op: :cond, args: [clauses, last]}}, found) do
      {own, found} = clauses(clauses, last, found)
      {own, put_in(found.risks[id], own)}
    end

    defp node(%T{data: %Expr{id: id}} = t, found) do
      {own, found} =
        Tree.apply_args(t, :scope, {{0, 0}, found}, fn arg, {{reach, sure}, found} ->
          {{own, certain}, found} = all([arg], found)
          {arg, {{bor(reach, own), bor(sure, certain)}, found}}
        end)
        |> elem(1)

      {own, found} = if risk = risk(t), do: number(risk, own, found), else: {own, found}
      {own, put_in(found.risks[id], own)}
    end

    defp node(_t, found), do: {{0, 0}, found}

    # The first condition is looked at always; after it comes its branch, or all that is behind.
    defp clauses([], last, found), do: all([last], found)

    defp clauses([{condition, body} | rest], last, found) do
      {{reach, sure}, found} = all([condition], found)
      {{body, in_body}, found} = all([body], found)
      {{others, in_others}, found} = clauses(rest, last, found)
      {{reach ||| body ||| others, sure ||| (in_body &&& in_others)}, found}
    end

    defp number(:hook, _own, %{next: @most}), do: throw(:unsupported)

    defp number(_risk, {reach, sure}, %{next: @most} = found),
      do: {{reach ||| bsl(1, @most), sure}, found}

    defp number(risk, {reach, sure}, %{next: next} = found) do
      bit = bsl(1, next)
      hooks = if risk == :hook, do: found.hooks ||| bit, else: found.hooks
      {{reach ||| bit, sure ||| bit}, %{found | next: next + 1, hooks: hooks}}
    end

    # Whether there is something that has to wait for its branch.
    defp risk(%T{data: %Expr{op: :hook}}), do: :hook

    defp risk(%T{data: %Expr{op: :while, args: args}}),
      do: if(hooked?(args), do: :hook, else: :runs)

    defp risk(%T{data: %Expr{op: :block, args: [struct | _]}}),
      do: if(foreign?(struct) or Checks.checked?(%{op: :block, struct: struct}), do: :raises)

    defp risk(%T{data: %Expr{op: op}, type: {_, _}} = t),
      do: if(Checks.checked?(%{op: op, out: t}), do: :raises)

    defp risk(_tuple), do: nil

    defp hooked?([_initial, _arg, condition, body]),
      do: Composite.reduce({condition, body}, {false, %{}}, &hooks/2) |> elem(0)

    defp hooks(_t, {true, _} = found), do: found
    defp hooks(%T{data: %Expr{op: :hook}}, {_, seen}), do: {true, seen}

    defp hooks(%T{data: %Expr{id: id}} = t, {false, seen}) when not is_map_key(seen, id),
      do:
        Tree.apply_args(t, :all, {false, Map.put(seen, id, true)}, &{&1, hooks(&1, &2)})
        |> elem(1)

    defp hooks(_t, found), do: found

    # A block of somebody else's may do anything.
    defp foreign?(%name{}), do: not String.starts_with?(Atom.to_string(name), "Elixir.Nx.")
  end
end
