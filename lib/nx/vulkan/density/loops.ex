if Code.ensure_loaded?(Nx) do
  defmodule Nx.Vulkan.Density.Loops do
    @moduledoc false
    # The loops of a plan, which all invocations of the workgroup share, and the folds of what each of them gathered.

    import Nx.Vulkan.Density.Statements, only: [kind: 1]

    alias Nx.Vulkan.Density.{Element, Plan, Reduction, Row, Statements, Value}

    # Accumulators that one round of a reduction takes.
    @round 8

    @doc """
    Writes the loops of a plan.
    """
    def write(st, plan), do: Enum.reduce(plan.levels, st, &level/2)

    @doc """
    The most accumulators of one round.
    """
    def accumulators(plan) do
      Enum.max([1 | for(loops <- plan.levels, do: min(results(loops, plan.graph), @round))])
    end

    defp level(loops, st) do
      {reductions, st} = Enum.flat_map_reduce(loops, st, &loop/2)
      arrays? = Enum.any?(loops, fn {_, items} -> Enum.any?(items, &match?({:array, _}, &1)) end)
      st = if arrays?, do: Statements.line(st, 0, "settle();"), else: st
      reductions |> Enum.chunk_every(@round) |> Enum.reduce(st, &reduce/2)
    end

    # One loop over a domain: fills the arrays and folds each invocation's share of the reductions.
    defp loop({domain, items}, st) do
      size = Plan.size(domain)

      reductions =
        for {:scalars, id} <- items, idx <- Plan.indices(st.graph.nodes[id].shape), do: {id, idx}

      {accumulators, st} =
        Enum.map_reduce(reductions, st, fn {id, idx}, st ->
          node = st.graph.nodes[id]
          start = Value.text(Reduction.identity(node), kind(node), st.type)
          {{kind, name, 0}, st} = Statements.fresh(st, kind(node), start, 0)
          {{id, idx, {kind, name, 1}}, st}
        end)

      st = %{st | depth: 1}
      st = Enum.reduce(items, st, &item(&1, &2, domain, accumulators))
      {body, st} = Statements.take(st, 1)
      st = Statements.close(st, 1)
      st = Statements.line(st, 0, ["for (int j = I; j < #{size}; j += W) {", body, "}"])
      {accumulators, st}
    end

    # What does not depend on the turn of the loop is written out before it: an array's elements may be among that.
    defp item({:array, id}, st, domain, _) do
      node = st.graph.nodes[id]
      {where, offset} = st.places[id]
      idx = Value.unflat({"j", 1}, domain)

      {value, st} =
        if Plan.reduction?(node) and not small?(node, st),
          do: Reduction.serial(st, node, idx, Plan.reduced(node, st.graph)),
          else: Element.at(%{st | places: Map.delete(st.places, id)}, id, idx)

      places = Map.put(st.places, id, {where, offset})

      st = %{
        st
        | places: places,
          memo: Map.reject(st.memo, fn {{other, _}, _} -> other == id end)
      }

      Statements.line(st, 1, "#{where}(j + #{offset}) = #{Value.text(value, :float, st.type)};")
    end

    defp item({:scalars, id}, st, _, accumulators) do
      node = st.graph.nodes[id]
      {extents, looped} = Plan.reduced(node, st.graph)
      {positions, st} = Reduction.positions(st, extents, looped, "j")

      for({^id, idx, accumulator} <- accumulators, do: {idx, accumulator})
      |> Enum.reduce(st, fn {idx, {_, name, _} = accumulator}, st ->
        {value, st} = Reduction.fold(st, node, idx, positions, Reduction.identity(node))

        Statements.line(
          st,
          1,
          "#{name} = #{Reduction.combined(node, accumulator, value, st.type)};"
        )
      end)
    end

    defp small?(node, st) do
      {extents, _} = Plan.reduced(node, st.graph)
      Plan.size(extents) <= Plan.inline()
    end

    # Folds the invocations' shares in a fixed order, and leaves each result in every invocation.
    defp reduce(accumulators, st) do
      numbered = Enum.with_index(accumulators)
      nodes = for {{id, _, _}, _} <- numbered, do: st.graph.nodes[id]

      shares =
        for {{_, _, accumulator}, _} <- numbered, do: Value.text(accumulator, :float, st.type)

      round = "r#{st.names}_"

      lines =
        if st.subgroups,
          do: by_subgroup(nodes, shares, round, st.type),
          else: by_halves(nodes, shares, st.type)

      st = Enum.reduce(lines, st, &Statements.line(&2, 0, &1))

      st =
        for {{id, idx, _}, n} <- numbered, reduce: st do
          st ->
            node = st.graph.nodes[id]
            text = if st.subgroups, do: "#{round}#{n}", else: "partials[#{n} * W]"
            {result, st} = Statements.fresh(st, :float, text, 0)
            {value, st} = converted(st, kind(node), result)
            {value, st} = Reduction.with_target(st, node, idx, value)
            put_in(st.memo[{id, idx}], value)
        end

      # Before the shares of the next round take their place.
      Statements.line(st, 0, "barrier();")
    end

    defp by_halves(nodes, shares, type) do
      stores = for {share, n} <- Enum.with_index(shares), do: "partials[#{n} * W + I] = #{share};"

      folds =
        for {node, n} <- Enum.with_index(nodes) do
          [a, b] = for at <- ["I", "I + span"], do: {:float, "partials[#{n} * W + #{at}]", 0}
          "partials[#{n} * W + I] = #{folded(node, a, b, type)};"
        end

      halves = [
        "for (int span = W / 2; span > 0; span /= 2) {",
        "if (I < span) {",
        folds,
        "}",
        "barrier();",
        "}"
      ]

      stores ++ ["barrier();", halves]
    end

    # Each subgroup by its own instructions, then all subgroups' results in every invocation.
    defp by_subgroup(nodes, shares, round, type) do
      numbered = nodes |> Enum.zip(shares) |> Enum.with_index()

      shares =
        for {{node, share}, n} <- numbered,
            do: "REAL #{round}#{n} = #{subgroup(node.op, share, type)};"

      stores = for {_, n} <- numbered, do: "partials[#{n} * W + S] = #{round}#{n};"
      totals = for {_, n} <- numbered, do: "#{round}#{n} = partials[#{n} * W];"

      folds =
        for {{node, _}, n} <- numbered do
          total = {:float, "#{round}#{n}", 0}
          "#{round}#{n} = #{folded(node, total, {:float, "partials[#{n} * W + s]", 0}, type)};"
        end

      shares ++
        [
          ["if (subgroupElect()) {", stores, "}"],
          "barrier();",
          totals,
          ["for (int s = 1; s < SUBGROUPS; ++s) {", folds, "}"]
        ]
    end

    defp subgroup(op, x, _) when op in [:sum, :dot, :indexed_add], do: "subgroupAdd(#{x})"
    defp subgroup(:product, x, _), do: "subgroupMul(#{x})"
    defp subgroup(:all, x, _), do: "subgroupMin(#{x})"
    defp subgroup(:any, x, _), do: "subgroupMax(#{x})"

    defp subgroup(op, x, type) when op in [:reduce_max, :reduce_min] do
      name = %{reduce_max: "subgroupMax", reduce_min: "subgroupMin"}[op]
      "subgroupAny(#{Row.text(:is_nan, [x])}) ? #{Value.float(:nan, type)} : #{name}(#{x})"
    end

    # Shares travel as floats: a truth as 0 or 1.
    defp folded(%{op: :all}, a, b, type),
      do: Row.text(:min, [Value.text(a, :float, type), Value.text(b, :float, type)])

    defp folded(%{op: :any}, a, b, type),
      do: Row.text(:max, [Value.text(a, :float, type), Value.text(b, :float, type)])

    defp folded(node, a, b, type), do: Reduction.combined(%{node | type: {:f, 64}}, a, b, type)

    defp converted(st, :float, value), do: {value, st}

    defp converted(st, kind, value),
      do: Statements.fresh(st, kind, Value.text(value, kind, st.type), 0)

    defp results(loops, graph) do
      Enum.sum(
        for {_, items} <- loops, {:scalars, id} <- items, do: Plan.size(graph.nodes[id].shape)
      )
    end
  end
end
