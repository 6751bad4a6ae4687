defmodule Nx.Vulkan.ShaderTemplate do
  @moduledoc """
  The text of a shader that runs leapfrog chains of a family of independent coordinates.

  The shader keeps the contract of `Nx.Vulkan.NativeV.leapfrog_chain_synth/6` and its siblings, for one chain or a batch, and up
  to 256 coordinates. Position, momentum, gradient and log density of a row are all those after its step.
  """

  alias Nx.Vulkan.LeapfrogGLSL

  defmodule FamilySpec do
    @moduledoc """
    What a family puts into the template. All code is GLSL; `real` is the type.

      * `:name` - a word for messages
      * `:grad_block` - statements that declare `real grad_q`, the derivative of a coordinate's log density, from `real q`
      * `:logp_block` - statements that declare `real lp_i`, the log density of a coordinate, from `real q`. They run after
        those of `:grad_block` at the same q
      * `:logp_final` - the log density of a chain, from `partial[0]`, the sum over its coordinates, and `pc`; the sum
        itself by default
      * `:dtype` - `:f64` (the default) or `:f32`
      * `:params` - a keyword list of numbers, which become constants of the shader
      * `:push_fields` - names of numbers that follow the header of the push block, which become variables
      * `:helpers` - functions that the blocks use. Those of the ABI's `math_f32.glsl` or `math_f64.glsl` are there:
        `nxv_exp`, `nxv_log`, …

    `pc` is the push block: `pc.K`, `pc.n_obs`, `pc.d`, `pc.n_instances`, `pc.eps`, then the push fields.
    `obs(j)` is observation `j` of the chain.
    """

    @enforce_keys [:name, :grad_block, :logp_block]
    defstruct [
      :name,
      :grad_block,
      :logp_block,
      logp_final: "partial[0]",
      dtype: :f64,
      params: [],
      push_fields: [],
      helpers: ""
    ]
  end

  # Bytes that Vulkan promises for push constants, less the header.
  @room %{f32: 128 - 20, f64: 128 - 24}
  @size %{f32: 4, f64: 8}

  @doc """
  The GLSL of a family. Equal specs give equal texts.

  Raises `ArgumentError` for a parameter that is no number, a name that is none in GLSL, and for more push fields than
  fit into 128 bytes.
  """
  def render(%FamilySpec{} = spec) do
    %{dtype: dtype, params: params, push_fields: fields} = spec = validate!(spec)

    """
    #version 450
    #{if dtype == :f64, do: "#define NXV_NEEDS_FP64\n"}#include "dtype.glsl"
    #include "math_#{dtype}.glsl"
    #define REAL #{if dtype == :f64, do: "double", else: "float"}
    #define real REAL
    // #{spec.name}
    layout(local_size_x = 256) in;
    layout(push_constant, std430) uniform Push {
        uint K, n_obs, d, n_instances;
        real eps;
    #{Enum.map(fields, &"    real #{&1};\n")}} pc;
    layout(set = 0, binding = 0) readonly buffer Positions { real q_init[]; };
    layout(set = 0, binding = 1) readonly buffer Momenta { real p_init[]; };
    layout(set = 0, binding = 2) readonly buffer Extras { real extras[]; };
    layout(set = 0, binding = 3) writeonly buffer PositionChain { real q_chain[]; };
    layout(set = 0, binding = 4) writeonly buffer MomentumChain { real p_chain[]; };
    layout(set = 0, binding = 5) writeonly buffer GradientChain { real grad_chain[]; };
    layout(set = 0, binding = 6) writeonly buffer DensityChain { real logp_chain[]; };
    shared real partial[256];

    real obs(uint j) { return extras[gl_WorkGroupID.x * (pc.n_obs + pc.d) + j]; }
    #{Enum.map(params, fn {name, value} -> "const real #{name} = #{literal(value, dtype)};\n" end)}\
    #{Enum.map(fields, &"real #{&1} = pc.#{&1};\n")}\
    #{spec.helpers}

    real gradient(real q) {
        #{spec.grad_block}
        return grad_q;
    }

    real log_density(real q) {
        #{spec.logp_block}
        return lp_i;
    }

    #define NXV_OWN 1
    #{LeapfrogGLSL.leapfrog()}
    bool nxv_owns(uint own) { return gl_LocalInvocationID.x < pc.d; }

    void nxv_evaluate(uint steps) {
        uint i = gl_LocalInvocationID.x;
        nxv_gradients[0] = gradient(nxv_positions[0]);
        if (steps > 0) {
            partial[i] = nxv_owns(0) ? log_density(nxv_positions[0]) : real(0);
            for (uint span = 128; span > 0; span /= 2) {
                // What is added was written before.
                barrier();
                if (i < span) partial[i] += partial[i + span];
            }
            if (i == 0) logp_chain[gl_WorkGroupID.x * pc.K + steps - 1] = #{spec.logp_final};
            // The sum was read before the next row's terms are written.
            barrier();
        }
    }

    void nxv_record(uint own, uint steps) {
        uint at = (gl_WorkGroupID.x * pc.K + steps - 1) * pc.d + gl_LocalInvocationID.x;
        q_chain[at] = nxv_positions[0];
        p_chain[at] = nxv_momenta[0];
        grad_chain[at] = nxv_gradients[0];
    }

    void main() {
        uint i = gl_LocalInvocationID.x, at = gl_WorkGroupID.x * pc.d + i;
        bool live = nxv_owns(0);
        nxv_positions[0] = live ? q_init[at] : real(0);
        nxv_momenta[0] = live ? p_init[at] : real(0);
        nxv_drifts[0] = live ? pc.eps * extras[gl_WorkGroupID.x * (pc.n_obs + pc.d) + pc.n_obs + i] : real(0);
        nxv_leapfrog(pc.K, pc.eps);
    }
    """
  end

  defp validate!(%{dtype: dtype, params: params, push_fields: fields} = spec) do
    unless dtype in [:f32, :f64] do
      raise ArgumentError, "expected :dtype to be :f32 or :f64, got: #{inspect(dtype)}"
    end

    for {name, text} <- Map.take(spec, [:grad_block, :logp_block, :logp_final, :helpers]),
        not is_binary(text) do
      raise ArgumentError, "expected :#{name} to be GLSL, got: #{inspect(text)}"
    end

    for name <- Enum.map(params, &elem(&1, 0)) ++ fields do
      unless "#{name}" =~ ~r/^(?!gl_|nxv_)[a-zA-Z][a-zA-Z0-9_]*$/ and not ("#{name}" =~ "__") do
        raise ArgumentError, "expected names of GLSL, got: #{inspect(name)}"
      end
    end

    for {name, value} <- params, not is_number(value) do
      raise ArgumentError, "expected #{name} to be a number, got: #{inspect(value)}"
    end

    if length(fields) * @size[dtype] > @room[dtype] do
      raise ArgumentError,
            "expected at most #{div(@room[dtype], @size[dtype])} push fields, got: #{length(fields)}"
    end

    # A line break would end the comment with the name, and a backslash at its end would take the next line into it.
    %{spec | name: String.replace("#{spec.name}", ~r/[\s\\]+/, " ")}
  end

  defp literal(value, dtype) do
    "#{Float.to_string(value * 1.0)}#{if dtype == :f64, do: "lf"}"
  end
end
