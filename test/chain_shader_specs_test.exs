Code.require_file("support/spirv.exs", __DIR__)

defmodule Nx.Vulkan.ChainShaderSpecsTest do
  use ExUnit.Case, async: true

  @moduletag :synthesized

  alias Nx.Vulkan.{ChainShaderSpecs, NativeV, ShaderTemplate, Spirv, Synthesis}
  alias Nx.Vulkan.ShaderTemplate.FamilySpec

  @tolerance %{f32: 3.0e-6, f64: 2.0e-14}

  # Family, parameters, log density of the coordinate and its derivative; constants are those of tables.
  defp families do
    ln = &:math.log/1
    half_log_2pi = 0.5 * ln.(2 * :math.pi())
    e = &:math.exp/1

    [
      {:normal, [0.5, 1.75],
       fn q ->
         {-0.5 * ((q - 0.5) / 1.75) ** 2 - ln.(1.75) - half_log_2pi, -(q - 0.5) / 1.75 ** 2}
       end},
      {:exponential, [1.5], fn q -> {ln.(1.5) + q - 1.5 * e.(q), 1 - 1.5 * e.(q)} end},
      # Of 4 degrees of freedom: Gamma(5/2) / (Gamma(2) sqrt(4 pi)) = 3/8.
      {:studentt, [0.25, 2.0, 4.0],
       fn q ->
         s = 1 + ((q - 0.25) / 2) ** 2 / 4
         {ln.(3 / 8) - ln.(2.0) - 2.5 * ln.(s), -5 * (q - 0.25) / (4 * 4 * s)}
       end},
      {:cauchy, [-0.5, 1.25],
       fn q ->
         t = (q + 0.5) / 1.25
         {-ln.(:math.pi() * 1.25) - ln.(1 + t * t), -2 * t / (1.25 * (1 + t * t))}
       end},
      {:halfnormal, [1.5],
       fn q ->
         {0.5 * ln.(2 / :math.pi()) - ln.(1.5) - e.(2 * q) / 4.5 + q, 1 - e.(2 * q) / 2.25}
       end},
      {:weibull, [1.75, 2.5],
       fn q ->
         r = (e.(q) / 2.5) ** 1.75
         {ln.(1.75) - 1.75 * ln.(2.5) + 1.75 * q - r, 1.75 * (1 - r)}
       end},
      # 1 / B(2, 3) = 12.
      {:beta, [2, 3],
       fn q ->
         x = 1 / (1 + e.(-q))
         {ln.(12.0) + 2 * ln.(x) + 3 * ln.(1 - x), 2 - 5 * x}
       end},
      # Gamma(3) = 2.
      {:gamma, [3.0, 1.5],
       fn q -> {3 * ln.(1.5) - ln.(2.0) + 3 * q - 1.5 * e.(q), 3 - 1.5 * e.(q)} end},
      {:lognormal, [0.25, 0.5],
       fn q -> {-0.5 * ((q - 0.25) / 0.5) ** 2 - ln.(0.5) - half_log_2pi, -(q - 0.25) / 0.25} end}
    ]
  end

  defp joint(one) do
    fn q ->
      {logps, gradient} = q |> Enum.map(one) |> Enum.unzip()
      {Enum.sum(logps), gradient}
    end
  end

  defp types, do: if(Spirv.f64?(), do: [:f32, :f64], else: [:f32])
  defp bits(:f32), do: 32
  defp bits(:f64), do: 64

  defp chain(:f32), do: &NativeV.leapfrog_chain_synth/6
  defp chain(:f64), do: &NativeV.leapfrog_chain_synth_f64/6
  defp batch(:f32), do: &NativeV.leapfrog_chain_synth_batch/6
  defp batch(:f64), do: &NativeV.leapfrog_chain_synth_batch_f64/6

  # Multiples of 1/8 in [-1, 1], and masses of 1/2 to 1, which f32 has too.
  defp numbers(count, seed), do: for(i <- 1..count, do: (rem(i * 7 + seed * 5, 17) - 8) / 8)
  defp masses(d), do: for(i <- 1..d, do: 0.5 + rem(i, 5) / 8)

  for {name, index} <-
        Enum.with_index(
          ~w(normal exponential studentt cauchy halfnormal weibull beta gamma lognormal)
        ) do
    test "#{name} gives the rows of a leapfrog on the host" do
      {family, parameters, one} = Enum.at(families(), unquote(index))

      for type <- types(), d <- [1, 5, 256] do
        {:ok, path} = apply(ChainShaderSpecs, family, parameters ++ [type]) |> Synthesis.compile()
        [q, p, masses] = [numbers(d, 1), numbers(d, 2), masses(d)]

        [q_bytes, p_bytes, extras] =
          for part <- [q, p, masses], do: Spirv.encode(part, bits(type))

        push = ChainShaderSpecs.push(8, 0, d, 0.0625, type)
        assert {:ok, outputs} = chain(type).(q_bytes, p_bytes, extras, push, 8, path)
        want = Spirv.leapfrog(joint(one), q, p, masses, 0.0625, 8)

        # Row by row and part by part, so that no large number hides the others.
        for {got, want} <- Enum.zip(Spirv.rows(outputs, d, bits(type)), want), part <- 0..3 do
          [got, want] = for row <- [got, want], do: [{List.wrap(elem(row, part))}]
          assert Spirv.distance(got, want) <= @tolerance[type]
        end
      end
    end

    test "#{name} is a density: it sums to one" do
      {family, parameters, _} = Enum.at(families(), unquote(index))
      # Parameters without a closed form.
      parameters = Enum.map(parameters, &(&1 * 1.1))
      type = List.last(types())
      {:ok, path} = apply(ChainShaderSpecs, family, parameters ++ [type]) |> Synthesis.compile()

      {step, points} = if family == :cauchy, do: {0.5, 8_000}, else: {0.1, 1_200}
      chains = points + 1
      q = for i <- 0..points, do: (i - points / 2) * step
      ones = List.duplicate(1.0, chains)
      push = ChainShaderSpecs.push(1, 0, 1, 0.0, type, chains)
      [q, ones] = for list <- [q, ones], do: Spirv.encode(list, bits(type))
      assert {:ok, {^q, ^ones, _, logp}} = batch(type).(q, ones, ones, push, 1, path)
      total = step * (logp |> Spirv.decode(bits(type)) |> Enum.map(&:math.exp/1) |> Enum.sum())
      # Beyond the last point there are 5e-4 of a Cauchy and 5e-6 of a Student variable.
      delta = Keyword.get([cauchy: 1.0e-3, studentt: 1.0e-5], family, 1.0e-6)
      assert_in_delta total, 1.0, delta
    end
  end

  test "parameters in the push block give the same bits" do
    [q, p, masses] =
      for list <- [numbers(3, 1), numbers(3, 2), masses(3)], do: Spirv.encode(list, 32)

    for {push, without, baked} <- [
          {ChainShaderSpecs.beta_push(3, 4, 0.0625, 2.0, 3.0, :math.log(12)),
           ChainShaderSpecs.beta(), ChainShaderSpecs.beta(2.0, 3.0, :f32)},
          {ChainShaderSpecs.gamma_push(3, 4, 0.0625, 3.0, 1.0, -:math.log(2)),
           ChainShaderSpecs.gamma(), ChainShaderSpecs.gamma(3.0, 1.0, :f32)},
          {ChainShaderSpecs.lognormal_push(3, 4, 0.0625, 0.25, 0.5), ChainShaderSpecs.lognormal(),
           ChainShaderSpecs.lognormal(0.25, 0.5, :f32)}
        ] do
      assert byte_size(push) in [28, 32]
      [{:ok, without}, {:ok, baked}] = for spec <- [without, baked], do: Synthesis.compile(spec)
      {:ok, want} = chain(:f32).(q, p, masses, binary_part(push, 0, 20), 4, baked)
      {:ok, got} = chain(:f32).(q, p, masses, push, 4, without)
      assert Spirv.distance(Spirv.rows(got, 3, 32), Spirv.rows(want, 3, 32)) <= 1.0e-6
      # Without its parameters the shader would read what is not there.
      assert {:error, :dispatch_failed, message} =
               chain(:f32).(q, p, masses, binary_part(push, 0, 20), 4, without)

      assert message =~ "push constants"
    end
  end

  test "chains of a batch are those that run alone" do
    {:ok, path} = Synthesis.compile(ChainShaderSpecs.gamma(2.5, 1.5, :f32))
    parts = for seed <- 1..3, do: {numbers(4, seed), numbers(4, seed + 1), masses(4)}
    join = fn at -> parts |> Enum.flat_map(&elem(&1, at)) |> Spirv.encode(32) end
    push = ChainShaderSpecs.push(5, 0, 4, 0.0625, :f32, 3)
    {:ok, {q, _, _, logp}} = batch(:f32).(join.(0), join.(1), join.(2), push, 5, path)

    alone =
      for {q, p, masses} <- parts do
        [q, p, masses] = for list <- [q, p, masses], do: Spirv.encode(list, 32)

        {:ok, outputs} =
          chain(:f32).(q, p, masses, ChainShaderSpecs.push(5, 0, 4, 0.0625, :f32), 5, path)

        outputs
      end

    assert q == Enum.map_join(alone, &elem(&1, 0))
    assert logp == Enum.map_join(alone, &elem(&1, 3))
  end

  test "a spec of one's own may use observations, helpers and a final expression" do
    # q ~ N(0, 1) and obs ~ N(q, 1) for each coordinate, plus 10.
    spec = %FamilySpec{
      name: "mine",
      dtype: :f32,
      params: [shift: 10],
      helpers:
        "real pull(real q) { real s = 0; for (uint j = 0; j < pc.n_obs; j++) s += obs(j) - q; return s; }",
      grad_block: "real grad_q = pull(q) - q;",
      logp_block: """
      real lp_i = -q * q / 2;
      for (uint j = 0; j < pc.n_obs; j++) lp_i -= (obs(j) - q) * (obs(j) - q) / 2;
      """,
      logp_final: "partial[0] + shift"
    }

    obs = numbers(6, 3)

    one = fn q ->
      misfit = Enum.map(obs, &(&1 - q))
      {-0.5 * (q * q + Enum.sum(Enum.map(misfit, &(&1 * &1)))), Enum.sum(misfit) - q}
    end

    density = fn q ->
      q |> joint(one).() |> then(fn {logp, gradient} -> {logp + 10, gradient} end)
    end

    {:ok, path} = Synthesis.compile(spec)
    [q, p, masses] = [numbers(3, 1), numbers(3, 2), masses(3)]
    [q_bytes, p_bytes, extras] = for list <- [q, p, obs ++ masses], do: Spirv.encode(list, 32)

    {:ok, got} =
      chain(:f32).(
        q_bytes,
        p_bytes,
        extras,
        ChainShaderSpecs.push(4, 6, 3, 0.0625, :f32),
        4,
        path
      )

    assert Spirv.distance(
             Spirv.rows(got, 3, 32),
             Spirv.leapfrog(density, q, p, masses, 0.0625, 4)
           ) <= 1.0e-6
  end

  test "wrong parameters and specs are errors" do
    for call <- [
          fn -> ChainShaderSpecs.beta(0, 1) end,
          fn -> ChainShaderSpecs.beta(1, -1.0) end,
          fn -> ChainShaderSpecs.gamma(:a, 1) end,
          fn -> ChainShaderSpecs.normal(nil, 1) end,
          fn -> ChainShaderSpecs.normal(0, 0.0) end,
          fn -> ChainShaderSpecs.normal(10 ** 400, 1) end,
          fn -> ChainShaderSpecs.normal(0, 1.0e300, :f32) end,
          fn -> ChainShaderSpecs.normal(0, 1.0e-300, :f32) end,
          fn -> Synthesis.compile(ChainShaderSpecs.normal(0, 1, :f16)) end
        ] do
      assert_raise ArgumentError, ~r/expected/, call
    end

    spec = %FamilySpec{name: "s", grad_block: "real grad_q = 0;", logp_block: "real lp_i = 0;"}
    fields = for i <- 1..14, do: "f#{i}"

    for change <- [
          [params: [{"a b", 1}]],
          [params: [gl_a: 1]],
          [params: [a: "1"]],
          [push_fields: fields],
          [push_fields: ["1a"]],
          [grad_block: nil],
          [helpers: :none],
          [dtype: :f16]
        ] do
      assert_raise ArgumentError, ~r/expected/, fn ->
        ShaderTemplate.render(struct!(spec, change))
      end
    end

    thirteen = struct!(spec, push_fields: Enum.take(fields, 13), name: "two\nlines")
    assert {:ok, _} = Synthesis.compile(struct!(thirteen, dtype: :f32))
    assert ShaderTemplate.render(thirteen) == ShaderTemplate.render(thirteen)
    refute ShaderTemplate.render(struct!(thirteen, name: "two\\")) =~ "\\"
  end
end
