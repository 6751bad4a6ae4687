if Code.ensure_loaded?(Nx) do
  defmodule Nx.Vulkan.Scope do
    @moduledoc false
    # What of a traced function is computed outside of its branches. That is what is used there, and what several branches use,
    # which would be computed in each; but what may raise, and loops, run where a branch needs them.

    alias Nx.Defn.{Composite, Expr, Tree}
    alias Nx.Tensor, as: T
    alias Nx.Vulkan.Routine

    @doc """
    The steps with the scope of an expression: `scope` is all that may be computed there, `certain` what is in any case.
    """
    def of(steps, expr) do
      scope = Tree.scope_ids(expr)
      branches? = Enum.any?(scope, &match?({_, :cond}, &1))
      certain = if branches?, do: Composite.reduce(expr, %{}, &certain/2), else: scope
      %{steps | scope: scope, certain: certain}
    end

    # Of branches only the first condition is looked at always.
    defp certain(%T{data: %Expr{id: id}}, seen) when is_map_key(seen, id), do: seen

    defp certain(%T{data: %Expr{id: id, op: :cond, args: [[{first, _} | _], _]}}, seen),
      do: certain(first, Map.put(seen, id, true))

    defp certain(%T{data: %Expr{id: id}} = t, seen),
      do: below(t, Map.put(seen, id, true), &certain/2)

    defp certain(_t, seen), do: seen

    @doc """
    Whether an expression that a branch uses is computed in the scope around it.
    """
    def computes?(%T{data: %Expr{id: id}}, %{certain: certain}) when is_map_key(certain, id),
      do: true

    def computes?(%T{data: %Expr{id: id}} = t, %{scope: scope, certain: certain})
        when is_map_key(scope, id),
        do: t |> risks({false, certain}) |> elem(0) |> Kernel.not()

    def computes?(_t, _steps), do: false

    # Whether there is something to come that has to wait for its branch.
    defp risks(%T{data: %Expr{id: id}}, {risky?, seen}) when is_map_key(seen, id),
      do: {risky?, seen}

    # Evaluators call it once, whichever branches there are.
    defp risks(%T{data: %Expr{op: :hook}}, _), do: throw(:unsupported)

    defp risks(%T{data: %Expr{id: id}} = t, {risky?, seen}),
      do: below(t, {risky? or risky?(t), Map.put(seen, id, true)}, &risks/2)

    defp risks(_t, acc), do: acc

    defp risky?(%T{data: %Expr{op: :while}}), do: true

    defp risky?(%T{data: %Expr{op: :block, args: [struct | _]}}),
      do: Routine.checked?(%{op: :block, struct: struct})

    defp risky?(%T{data: %Expr{op: op}, type: {_, _}} = t),
      do: Routine.checked?(%{op: op, out: t})

    defp risky?(_tuple), do: false

    defp below(t, acc, fun),
      do: t |> Tree.apply_args(:scope, acc, &{&1, fun.(&1, &2)}) |> elem(1)
  end
end
