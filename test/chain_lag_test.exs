defmodule Nx.Vulkan.ChainLagTest do
  use ExUnit.Case, async: true
  @moduletag :same_with_nx

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

    for which <- ~w(before after), into: %{}, do: {String.to_atom(which), file(device, which, "")}
  end

  # With a mark of its own it is a module of which nothing is known yet; what is known stays known once the file is not
  # quite new.
  defp file(device, which, mark) do
    {:ok, path} =
      NativeV.spirv_file(device, String.replace(@shader, "WHICH", which) <> "// #{mark}\n", false)

    Process.sleep(50)
    path
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
    path = file(Device.fetch!(Device.default()), "before", "at rest")

    zero = bin([0.0])
    one = bin([1.0])
    # At rest on the mode nothing moves, whatever the step size.
    assert {:ok, _} = NativeV.leapfrog_chain_synth_f64(zero, zero, one, push(2, 1, 0), 2, path)

    assert {:ok, {q, _, _, logp}} =
             NativeV.leapfrog_chain_synth_f64(one, one, one, push(2, 1, 0), 2, path)

    for {q, logp} <- Enum.zip(list(q), list(logp)),
        do: assert_in_delta(logp, -0.5 * q * q, 1.0e-14)
  end

  # Next to 1e9 no log density of this test's first call differs from that of the mode.
  test "a start at the mode with a short step brands nobody, and hides nobody" do
    device = Device.fetch!(Device.default())
    [zero, one] = [bin([0.0]), bin([1.0])]

    for {which, call} <- [{"after", 1}, {"before", 1}, {"after", 2}, {"before", 2}] do
      path = file(device, "#{which} + 1.0e9lf", "short #{call}")
      short = push(3, 1, 0, 1.0e-4)
      assert {:ok, _} = NativeV.leapfrog_chain_synth_f64(zero, one, one, short, 3, path)

      # With a momentum of 0 no step tells anything, and an empty step never does.
      if call == 2 do
        assert {:ok, _} = NativeV.leapfrog_chain_synth_f64(zero, zero, one, short, 3, path)
        still = push(3, 1, 0, 0.0)
        assert {:ok, _} = NativeV.leapfrog_chain_synth_f64(one, one, one, still, 3, path)
      end

      far = bin([2.0e3])

      assert {:ok, {q, _, _, logp}} =
               NativeV.leapfrog_chain_synth_f64(far, one, one, push(9, 1, 0), 9, path)

      for {q, logp} <- Enum.zip(list(q), list(logp)),
          do: assert_in_delta(logp, 1.0e9 - 0.5 * q * q, 1.0e-3, "#{which} #{call}")
    end
  end

  test "a chain at rest does not speak for the others" do
    device = Device.fetch!(Device.default())
    [q, p, ones] = [bin([0.0, 1.0]), bin([0.0, 1.0]), bin([1.0, 1.0])]

    for which <- ["before", "after"] do
      path = file(device, which, "one at rest")

      assert {:ok, {qs, _, _, logp}} =
               NativeV.leapfrog_chain_synth_batch_f64(q, p, ones, push(4, 1, 2), 4, path)

      for {q, logp} <- Enum.zip(list(qs), list(logp)),
          do: assert_in_delta(logp, -0.5 * q * q, 1.0e-14, which)
    end
  end

  test "a density that is not finite somewhere, or the same everywhere, decides nothing" do
    device = Device.fetch!(Device.default())
    one = bin([1.0])
    path = file(device, "0.0lf * after", "flat")

    for _ <- 1..40 do
      assert {:ok, {_, _, _, logp}} =
               NativeV.leapfrog_chain_synth_f64(one, one, one, push(2, 1, 0), 2, path)

      assert Enum.all?(list(logp), &(&1 == 0.0))
    end

    # Outside of [-1.5, 1.5] it is the logarithm of a negative number.
    for which <- ["before", "after"] do
      bounded = "log(float(2.25lf - #{which} * -2.0lf))"
      path = file(device, bounded, "bounded")

      assert {:ok, {q, _, _, logp}} =
               NativeV.leapfrog_chain_synth_f64(
                 bin([0.1]),
                 bin([0.5]),
                 one,
                 push(3, 1, 0),
                 3,
                 path
               )

      for {q, logp} <- Enum.zip(list(q), list(logp)),
          do: assert_in_delta(logp, :math.log(2.25 - q * q), 1.0e-5, which)
    end
  end

  defp push(k, d, chains, epsilon \\ 0.1),
    do: <<k::32-little, 0::32, d::32-little, chains::32-little, epsilon::float-64-little>>

  defp bin(list), do: for(x <- list, into: <<>>, do: <<x::float-64-little>>)
  defp list(binary), do: for(<<x::float-64-little <- binary>>, do: x)
end
