if Code.ensure_loaded?(Nx) do
  defmodule Nx.Vulkan.Density.Shader do
    @moduledoc false
    # The GLSL of leapfrog chains of a traced log density. One workgroup runs one chain; invocation i owns the coordinates
    # i, i + W, …. Every step ends with one evaluation of value and gradient, which the next step begins with.

    alias Nx.Vulkan.Density.{Element, Loops, Plan, Row, Statements, Value}
    alias Nx.Vulkan.LeapfrogGLSL

    @enforce_keys [:glsl, :shared, :scratch, :data_length]
    defstruct @enforce_keys

    # Bytes of shared memory that arrays may take, and the positions; the rest is the reductions'.
    @shared_arrays 8_192
    @shared_positions 8_192
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
      [value, gradient] = graph.outputs
      {places, shared, scratch} = places(plan, type)
      far? = d * size(type) > @shared_positions
      {positions, scratch} = if far?, do: {scratch, scratch + d}, else: {nil, scratch}

      if layout == :native and scratch > 0,
        do:
          throw(
            {:unsupported, "scratch memory of #{scratch} elements in a shader of seven bindings",
             {:f, 64}, {}}
          )

      st = %Statements{
        graph: graph,
        plan: plan,
        type: type,
        sources: sources,
        places: places,
        subgroups: subgroups
      }

      {shared_by_all, st} = st |> Loops.write(plan) |> Statements.take(0)
      {gradient, st} = gradient(st, gradient, d)
      {logp, st} = Element.at(st, value, [])
      {owners_own, _} = Statements.take(st, 0)

      names = [
        double: type == :f64,
        type: if(type == :f64, do: "double", else: "float"),
        d: d,
        length: length,
        layout: layout,
        arrays: shared,
        scratch: scratch,
        positions: positions,
        partials: Loops.accumulators(plan),
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

    # Statements that give `gradient` of coordinate i.
    defp gradient(st, id, d) when d <= @written_out do
      {values, st} = Enum.map_reduce(0..(d - 1), st, &Element.at(&2, id, [&1]))

      [last | rest] =
        values
        |> Enum.map(&Value.text(&1, :float, st.type))
        |> Enum.with_index()
        |> Enum.reverse()

      choice =
        Enum.reduce(rest, elem(last, 0), fn {text, n}, other ->
          "i == #{n} ? #{text} : #{other}"
        end)

      {["gradient = #{choice};"], st}
    end

    defp gradient(st, id, _d) do
      {value, st} = Element.at(%{st | depth: 1}, id, [{"i", 1}])
      {body, st} = Statements.take(st, 1)
      {[body, "gradient = #{Value.text(value, :float, st.type)};"], Statements.close(st, 1)}
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
        if(names[:double],
          do: ["#define MATH_F64", "#include \"math_f64.glsl\""],
          else: ["#define MATH_F32", "#include \"math_f32.glsl\""]
        ),
        # Integers are computed as C does: no element is without a result.
        "#define nxv_fault(absent)",
        Row.functions(),
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
  end
end
