defmodule Nx.Vulkan.ChainLagTest do
  use ExUnit.Case, async: true

  alias Nx.Vulkan.{Device, NativeV}

  # A standard normal; before or after the step is where the log density is taken.
  @shader """
  #version 450
  layout(local_size_x = 32) in;
  layout(push_constant) uniform Push { uint K, n_obs, d, chains; double epsilon; } push;
  layout(set = 0, binding = 0) readonly buffer B0 { double q_init[]; };
  layout(set = 0, binding = 1) readonly buffer B1 { double p_init[]; };
  layout(set = 0, binding = 2) readonly buffer B2 { double extras[]; };
  layout(set = 0, binding = 3) writeonly buffer B3 { double q_chain[]; };
  layout(set = 0, binding = 4) writeonly buffer B4 { double p_chain[]; };
  layout(set = 0, binding = 5) writeonly buffer B5 { double grad_chain[]; };
  layout(set = 0, binding = 6) writeonly buffer B6 { double logp_chain[]; };
  void main() {
      if (gl_LocalInvocationIndex > 0) return;
      uint chain = gl_WorkGroupID.x;
      uint d = push.d, stride = push.n_obs + d;
      double q[8], p[8];
      for (uint i = 0; i < d; ++i) { q[i] = q_init[chain * d + i]; p[i] = p_init[chain * d + i]; }
      for (uint k = 0; k < push.K; ++k) {
          double logp = 0.0lf;
          for (uint i = 0; i < d; ++i) {
              double before = -0.5lf * q[i] * q[i];
              p[i] -= 0.5lf * push.epsilon * q[i];
              q[i] += push.epsilon * extras[chain * stride + push.n_obs + i] * p[i];
              p[i] -= 0.5lf * push.epsilon * q[i];
              double after = -0.5lf * q[i] * q[i];
              logp += WHICH;
              uint at = (chain * push.K + k) * d + i;
              q_chain[at] = q[i]; p_chain[at] = p[i]; grad_chain[at] = -q[i];
          }
          logp_chain[chain * push.K + k] = logp;
      }
  }
  """

  setup_all do
    device = Device.fetch!(Device.default())

    for which <- ~w(before after), into: %{} do
      {:ok, path} = NativeV.spirv_file(device, String.replace(@shader, "WHICH", which))
      {String.to_atom(which), path}
    end
  end

  test "a shader whose log density lags a step gives the same rows as one whose does not",
       paths do
    q = bin([0.5, -1.0, 2.0])
    p = bin([1.0, 0.3, -0.2])
    ones = bin([1.0, 1.0, 1.0])

    for k <- [1, 2, 17] do
      want = NativeV.leapfrog_chain_synth_f64(q, p, ones, push(k, 3, 0), k, paths.after)
      assert {:ok, {qs, _, _, logp}} = want
      assert byte_size(logp) == 8 * k
      assert want == NativeV.leapfrog_chain_synth_f64(q, p, ones, push(k, 3, 0), k, paths.before)

      expected =
        for row <- Enum.chunk_every(list(qs), 3),
            do: row |> Enum.map(&(-0.5 * &1 * &1)) |> Enum.sum()

      for {a, b} <- Enum.zip(list(logp), expected), do: assert_in_delta(a, b, 1.0e-14)
    end
  end

  test "so do batches", paths do
    q = bin([0.5, -1.0, 2.0, 0.1, 0.2, 0.3])
    p = bin([1.0, 0.3, -0.2, 0.4, 0.5, 0.6])
    ones = bin(List.duplicate(1.0, 6))
    want = NativeV.leapfrog_chain_synth_batch_f64(q, p, ones, push(5, 3, 2), 5, paths.after)
    assert {:ok, {qs, _, _, _}} = want
    assert byte_size(qs) == 2 * 5 * 3 * 8

    assert want ==
             NativeV.leapfrog_chain_synth_batch_f64(q, p, ones, push(5, 3, 2), 5, paths.before)
  end

  test "a start that tells nothing does not decide", _ do
    device = Device.fetch!(Device.default())
    # Of its own, so that nothing is known of it yet.
    {:ok, path} =
      NativeV.spirv_file(device, String.replace(@shader, "WHICH", "before") <> "// once\n")

    zero = bin([0.0])
    one = bin([1.0])
    # At rest on the mode nothing moves, whatever the step size.
    assert {:ok, _} = NativeV.leapfrog_chain_synth_f64(zero, zero, one, push(2, 1, 0), 2, path)

    assert {:ok, {q, _, _, logp}} =
             NativeV.leapfrog_chain_synth_f64(one, one, one, push(2, 1, 0), 2, path)

    for {q, logp} <- Enum.zip(list(q), list(logp)),
        do: assert_in_delta(logp, -0.5 * q * q, 1.0e-14)
  end

  defp push(k, d, chains),
    do: <<k::32-little, 0::32, d::32-little, chains::32-little, 0.1::float-64-little>>

  defp bin(list), do: for(x <- list, into: <<>>, do: <<x::float-64-little>>)
  defp list(binary), do: for(<<x::float-64-little <- binary>>, do: x)
end
