if Code.ensure_loaded?(Nx) do
  defmodule Nx.Vulkan.Density.Shader do
    @moduledoc false
    # The GLSL of leapfrog chains of a traced log density. One workgroup runs one chain; invocation i owns the coordinates
    # i, i + W, …. Every step ends with one evaluation of value and gradient, which the next step begins with.

    alias Nx.Vulkan.Density.{Emit, Plan, Value}
    alias Nx.Vulkan.LeapfrogGLSL

    @enforce_keys [:glsl, :shared, :scratch, :data_length]
    defstruct @enforce_keys

    # Bytes of shared memory that arrays may take, and the positions; the rest is the reductions'.
    @shared_arrays 8_192
    @shared_positions 8_192
    # Accumulators that one round of a reduction takes.
    @round 8
    # Coordinates up to which the gradient is written out.
    @written_out 64

    @doc """
    The shader. `sources` gives the first element of each operand and captured tensor in the data, `length` that of all.

    With `layout: :native` observations and inverse masses come as the extras of each chain, as
    `Nx.Vulkan.NativeV.leapfrog_chain_synth_f64/6` takes them; with `:resident` the data are a buffer of their own.
    `subgroups` tells whether the device folds within subgroups.
    """
    def new(graph, type, d, {sources, length}, layout, subgroups) do
      plan = Plan.new(graph)
      {places, shared, scratch} = places(plan, type)
      far? = d * size(type) > @shared_positions
      {positions, scratch} = if far?, do: {scratch, scratch + d}, else: {nil, scratch}

      if layout == :native and scratch > 0,
        do:
          throw(
            {:unsupported, "scratch memory of #{scratch} elements in a shader of seven bindings",
             {:f, 64}, {}}
          )

      st = %Emit{
        graph: graph,
        plan: plan,
        type: type,
        sources: sources,
        places: places,
        subgroups: subgroups
      }

      {shared_by_all, st} = plan.levels |> Enum.reduce(st, &level/2) |> Emit.take(0)
      {gradient, st} = gradient(st, graph.gradient, d)
      {logp, st} = Emit.elem(st, graph.value, [])
      {owners_own, _} = Emit.take(st, 0)

      rounds =
        Enum.max([1 | for(loops <- plan.levels, do: min(accumulators(loops, graph), @round))])

      names = [
        double: type == :f64,
        type: if(type == :f64, do: "double", else: "float"),
        d: d,
        length: length,
        layout: layout,
        arrays: shared,
        scratch: scratch,
        positions: positions,
        partials: rounds,
        subgroups: subgroups
      ]

      glsl = text(names, {shared_by_all, owners_own}, gradient, Value.text(logp, :float, type))
      %__MODULE__{glsl: glsl, shared: shared, scratch: scratch, data_length: length}
    end

    # Arrays up to a total of @shared_arrays bytes are shared, the others lie in scratch memory.
    defp places(plan, type) do
      size = size(type)

      plan.levels
      |> Enum.concat()
      |> Enum.flat_map(fn {_, items} -> for {:array, id} <- items, do: id end)
      |> Enum.reduce({%{}, 0, 0}, fn id, {places, shared, scratch} ->
        length = Plan.size(plan.graph.nodes[id].shape)

        if (shared + length) * size <= @shared_arrays,
          do: {Map.put(places, id, {"array", shared}), shared + length, scratch},
          else: {Map.put(places, id, {"scratch", scratch}), shared, scratch + length}
      end)
    end

    defp size(:f64), do: 8
    defp size(:f32), do: 4

    ## Loops

    defp level(loops, st) do
      {reductions, st} = Enum.flat_map_reduce(loops, st, &loop/2)
      arrays? = Enum.any?(loops, fn {_, items} -> Enum.any?(items, &match?({:array, _}, &1)) end)
      st = if arrays?, do: Emit.line(st, 0, "settle();"), else: st
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
          start = Value.text(Emit.identity(node), Emit.kind(node), st.type)
          {{kind, name, 0}, st} = Emit.fresh(st, Emit.kind(node), start, 0)
          {{id, idx, {kind, name, 1}}, st}
        end)

      st = %{st | depth: 1}
      st = Enum.reduce(items, st, &item(&1, &2, domain, accumulators))
      {body, st} = Emit.take(st, 1)
      st = Emit.close(st, 1)
      st = Emit.line(st, 0, ["for (int j = I; j < #{size}; j += W) {", body, "}"])
      {accumulators, st}
    end

    # What does not depend on the turn of the loop is written out before it: an array's elements may be among that.
    defp item({:array, id}, st, domain, _) do
      node = st.graph.nodes[id]
      {where, offset} = st.places[id]
      idx = Value.unflat({"j", 1}, domain)

      {value, st} =
        if Plan.reduction?(node) and not small?(node, st),
          do: Emit.serial(st, node, idx, Plan.reduced(node, st.graph)),
          else: Emit.elem(%{st | places: Map.delete(st.places, id)}, id, idx)

      places = Map.put(st.places, id, {where, offset})

      st = %{
        st
        | places: places,
          memo: Map.reject(st.memo, fn {{other, _}, _} -> other == id end)
      }

      Emit.line(st, 1, "#{where}(j + #{offset}) = #{Value.text(value, :float, st.type)};")
    end

    defp item({:scalars, id}, st, _, accumulators) do
      node = st.graph.nodes[id]
      {extents, looped} = Plan.reduced(node, st.graph)
      {positions, st} = Emit.positions(st, extents, looped, "j")

      for({^id, idx, accumulator} <- accumulators, do: {idx, accumulator})
      |> Enum.reduce(st, fn {idx, {_, name, _} = accumulator}, st ->
        {value, st} = Emit.fold(st, node, idx, positions, Emit.identity(node))
        Emit.line(st, 1, "#{name} = #{Emit.combined(node, accumulator, value, st.type)};")
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

      st = Enum.reduce(lines, st, &Emit.line(&2, 0, &1))

      st =
        for {{id, idx, _}, n} <- numbered, reduce: st do
          st ->
            node = st.graph.nodes[id]
            text = if st.subgroups, do: "#{round}#{n}", else: "partials[#{n} * W]"
            {result, st} = Emit.fresh(st, :float, text, 0)
            {value, st} = converted(st, Emit.kind(node), result)
            {value, st} = Emit.with_target(st, node, idx, value)
            put_in(st.memo[{id, idx}], value)
        end

      # Before the shares of the next round take their place.
      Emit.line(st, 0, "barrier();")
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
      "subgroupAny(isnan(#{x})) ? #{Value.float(:nan, type)} : #{name}(#{x})"
    end

    # Shares travel as floats: a truth as 0 or 1.
    defp folded(%{op: :all}, a, b, type),
      do: "minimum(#{Value.text(a, :float, type)}, #{Value.text(b, :float, type)})"

    defp folded(%{op: :any}, a, b, type),
      do: "maximum(#{Value.text(a, :float, type)}, #{Value.text(b, :float, type)})"

    defp folded(node, a, b, type), do: Emit.combined(%{node | type: {:f, 64}}, a, b, type)

    defp converted(st, :float, value), do: {value, st}
    defp converted(st, kind, value), do: Emit.fresh(st, kind, Value.text(value, kind, st.type), 0)

    defp accumulators(loops, graph) do
      Enum.sum(
        for {_, items} <- loops, {:scalars, id} <- items, do: Plan.size(graph.nodes[id].shape)
      )
    end

    # Statements that give `gradient` of coordinate i.
    defp gradient(st, id, d) when d <= @written_out do
      {values, st} = Enum.map_reduce(0..(d - 1), st, &Emit.elem(&2, id, [&1]))

      [last | rest] =
        values
        |> Enum.map(&Value.text(&1, :float, st.type))
        |> Enum.with_index()
        |> Enum.reverse()

      choice =
        Enum.reduce(rest, Kernel.elem(last, 0), fn {text, n}, other ->
          "i == #{n} ? #{text} : #{other}"
        end)

      {["gradient = #{choice};"], st}
    end

    defp gradient(st, id, _d) do
      {value, st} = Emit.elem(%{st | depth: 1}, id, [{"i", 1}])
      {body, st} = Emit.take(st, 1)
      {[body, "gradient = #{Value.text(value, :float, st.type)};"], Emit.close(st, 1)}
    end

    ## Text

    defp text(names, {shared_by_all, owners_own}, gradient, logp) do
      resident? = names[:layout] == :resident

      [
        "#version 450",
        if(names[:subgroups],
          do: [
            "#extension GL_KHR_shader_subgroup_arithmetic : require",
            "#extension GL_KHR_shader_subgroup_vote : require"
          ],
          else: []
        ),
        if(names[:double], do: "#define NXV_NEEDS_FP64", else: []),
        "#include \"dtype.glsl\"",
        if(names[:double], do: "#include \"math_f64.glsl\"", else: "#include \"math_f32.glsl\""),
        "#define REAL #{names[:type]}",
        "layout(local_size_x = 256, local_size_x_id = 0) in;",
        "const int W = int(gl_WorkGroupSize.x), D = #{names[:d]}, CHUNKS = (D + W - 1) / W;",
        "int I = int(gl_LocalInvocationIndex), chain = int(gl_WorkGroupID.x);",
        if(names[:subgroups],
          do: "int S = int(gl_SubgroupID), SUBGROUPS = int(gl_NumSubgroups);",
          else: []
        ),
        "layout(push_constant, std430) uniform Push { uint steps, observations, dimensions, chains; REAL step_size; } push;",
        buffer(0, "readonly", "q_init"),
        buffer(1, "readonly", "p_init"),
        buffer(2, "readonly", "extras"),
        buffer(3, "writeonly", "q_chain"),
        buffer(4, "writeonly", "p_chain"),
        buffer(5, "writeonly", "grad_chain"),
        buffer(6, "writeonly", "logp_chain"),
        if(resident? and names[:length] > 0,
          do: [buffer(7, "readonly", "observed"), "#define data(i) observed[i]"],
          else: []
        ),
        if(names[:scratch] > 0,
          do: [
            buffer(8, "coherent", "kept"),
            "#define scratch(i) kept[chain * #{names[:scratch]} + (i)]",
            "#define settle() memoryBarrierBuffer(); barrier()"
          ],
          else: "#define settle() barrier()"
        ),
        if(names[:positions],
          do: "#define q(i) scratch(#{names[:positions]} + (i))",
          else: ["shared REAL position[D];", "#define q(i) position[i]"]
        ),
        if(names[:arrays] > 0,
          do: ["shared REAL arrays[#{names[:arrays]}];", "#define array(i) arrays[i]"],
          else: []
        ),
        "shared REAL partials[#{names[:partials]} * gl_WorkGroupSize.x];",
        functions("REAL"),
        functions("int"),
        "REAL sign_of(REAL x) { return x > 0 ? REAL(1) : x < 0 ? REAL(-1) : x; }",
        if(resident? or names[:length] == 0,
          do: [],
          else: "#define data(i) extras[chain * (#{names[:length]} + D) + (i)]"
        ),
        "#define NXV_OWN CHUNKS",
        "#define NXV_POSITION(own) q(int(own) * W + I)",
        "#define NXV_SETTLE settle()",
        LeapfrogGLSL.leapfrog(),
        "bool nxv_owns(uint own) { return int(own) * W + I < D; }",
        "void nxv_evaluate(uint steps) {",
        shared_by_all,
        # The rest concerns those who own a coordinate.
        "if (I < D) {",
        owners_own,
        own(["REAL gradient;", gradient, "nxv_gradients[own] = gradient;"]),
        "if (steps > 0 && I == 0) logp_chain[chain * int(push.steps) + int(steps) - 1] = #{logp};",
        "}",
        "}",
        "void nxv_record(uint own, uint steps) {",
        "int i = int(own) * W + I, at = (chain * int(push.steps) + int(steps) - 1) * D + i;",
        "q_chain[at] = q(i); p_chain[at] = nxv_momenta[own]; grad_chain[at] = nxv_gradients[own];",
        "}",
        "void main() {",
        if(resident?,
          do: [
            "int masses = chain * (D + 1) + 1;",
            "REAL step_size = extras[masses - 1];"
          ],
          else: [
            "int masses = chain * (#{names[:length]} + D) + #{names[:length]};",
            "REAL step_size = push.step_size;"
          ]
        ),
        own([
          "q(i) = q_init[chain * D + i]; nxv_momenta[own] = p_init[chain * D + i];",
          "nxv_drifts[own] = step_size * extras[masses + i];"
        ]),
        # The positions are in place.
        "settle();",
        "nxv_leapfrog(push.steps, step_size);",
        "}"
      ]
      |> List.flatten()
      |> Enum.map_join(&[&1, "\n"])
    end

    defp buffer(binding, access, name),
      do:
        "layout(set = 0, binding = #{binding}, std430) #{access} buffer B#{binding} { REAL #{name}[]; };"

    defp own(body),
      do: [
        "for (uint own = 0; own < CHUNKS; ++own) {",
        "int i = int(own) * W + I;",
        "if (i < D) {",
        body,
        "}",
        "}"
      ]

    # The NaN of either operand is the result.
    defp functions(type) do
      nan = if type == "REAL", do: "isnan(a) ? a : isnan(b) ? b : ", else: ""

      [
        "#{type} minimum(#{type} a, #{type} b) { return #{nan}min(a, b); }",
        "#{type} maximum(#{type} a, #{type} b) { return #{nan}max(a, b); }"
      ]
    end
  end
end
