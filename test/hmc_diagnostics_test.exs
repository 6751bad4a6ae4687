defmodule Nx.Vulkan.HMC.DiagnosticsTest do
  use ExUnit.Case, async: true

  alias Nx.Vulkan.HMC.Diagnostics

  # Computed by arviz 0.20.0 with numpy 2.1.3 (az.rhat, az.ess with method="bulk", "tail" and "mean", az.mcse,
  # numpy.quantile) on the same series, which a Lehmer generator makes on both sides.
  @arviz [
    independent: %{
      mean: 0.0045783116578,
      sd: 0.288223693842,
      mcse: 0.00890763627633,
      q5: -0.447272722003,
      q50: 0.0182387449398,
      q95: 0.448315576091,
      ess_bulk: 959.700192524,
      ess_tail: 974.089129778,
      rhat: 0.998259944086
    },
    correlated: %{
      mean: 0.0542684309058,
      sd: 0.629273726555,
      mcse: 0.0711843698448,
      q5: -0.960539432718,
      q50: 0.0559949328085,
      q95: 1.04778223726,
      ess_bulk: 78.4025928881,
      ess_tail: 144.134190782,
      rhat: 1.03828423382
    },
    shifted: %{
      mean: 0.306576623855,
      sd: 0.369516646498,
      mcse: 0.106669040538,
      q5: -0.316172440452,
      q50: 0.295296816581,
      q95: 0.913406523105,
      ess_bulk: 11.9308454517,
      ess_tail: 59.223472511,
      rhat: 1.26257052894
    },
    antithetic: %{
      mean: 0.00715537096313,
      sd: 0.377035683928,
      mcse: 0.00923482961326,
      q5: -0.620189840205,
      q50: 0.012750835316,
      q95: 0.624821640098,
      ess_bulk: 1666.89075023,
      ess_tail: 521.874997614,
      rhat: 0.997385902681
    },
    heavy: %{
      mean: 0.00563469820742,
      sd: 0.0883767384964,
      mcse: 0.00573004339865,
      q5: -0.122791991957,
      q50: 2.93276470225e-05,
      q95: 0.161955050076,
      ess_bulk: 248.863370926,
      ess_tail: 301.205234952,
      rhat: 1.00382944478
    },
    ties: %{
      mean: 0.09,
      sd: 0.971730750583,
      mcse: 0.0702983374715,
      q5: -1.0,
      q50: 0.0,
      q95: 2.0,
      ess_bulk: 187.615829418,
      ess_tail: 267.508023257,
      rhat: 0.999673053193
    }
  ]

  @ess_mean [
    independent: 1046.9704132597997,
    correlated: 78.14656792905646,
    shifted: 12.00027609852526,
    antithetic: 1666.890750230186,
    heavy: 237.88119833898847,
    ties: 191.07408302061785
  ]

  # az.bfmi of the first chain, taken for energies.
  @ebfmi [
    independent: 2.1649095090127712,
    correlated: 0.303880024535117,
    shifted: 1.5527753456438522,
    antithetic: 3.355473148019385,
    heavy: 0.9166260850364859,
    ties: 0.960195530726257
  ]

  defp series(:independent), do: series(4, 250, 0.0, 0.0)
  defp series(:correlated), do: series(4, 250, 0.9, 0.0)
  defp series(:shifted), do: series(4, 250, 0.3, 0.2)
  defp series(:antithetic), do: series(2, 301, -0.6, 0.0)
  defp series(:heavy), do: 3 |> series(200, 0.5, 0.0) |> each(&(&1 ** 3))
  defp series(:ties), do: 4 |> series(100, 0.5, 0.0) |> each(&(round(&1 * 3) / 1))

  defp each(chains, fun), do: for(chain <- chains, do: Enum.map(chain, fun))

  # An autoregressive series over uniform numbers; chain i is shifted by i times `shift`.
  defp series(chains, draws, rho, shift) do
    {chains, _state} =
      Enum.map_reduce(0..(chains - 1), 12_345, fn index, state ->
        {values, {state, _x}} =
          Enum.map_reduce(1..draws, {state, 0.0}, fn _, {state, x} ->
            state = rem(state * 48_271, 2_147_483_647)
            x = rho * x + (state / 2_147_483_647 - 0.5)
            {x + shift * index, {state, x}}
          end)

        {values, state}
      end)

    chains
  end

  defp assert_near(value, expected, what) do
    assert abs(value - expected) <= 1.0e-9 * max(abs(expected), 1.0e-3),
           "#{what}: expected #{expected}, got: #{value}"
  end

  for {name, expected} <- @arviz do
    test "agrees with arviz on the #{name} series" do
      chains = series(unquote(name))
      summary = Diagnostics.summary(chains)

      for {key, value} <- unquote(Macro.escape(expected)),
          do: assert_near(summary[key], value, "#{unquote(name)} #{key}")

      assert_near(Diagnostics.ess_mean(chains), @ess_mean[unquote(name)], "ess_mean")
      assert_near(chains |> hd() |> Diagnostics.ebfmi(), @ebfmi[unquote(name)], "ebfmi")
    end
  end

  test "each function gives what the summary has" do
    chains = series(:correlated)
    summary = Diagnostics.summary(chains)
    assert summary.rhat == Diagnostics.rhat(chains)
    assert summary.ess_bulk == Diagnostics.ess_bulk(chains)
    assert summary.ess_tail == Diagnostics.ess_tail(chains)
    assert summary.mcse == Diagnostics.mcse(chains)
    assert summary.q95 == Diagnostics.quantile(chains, 0.95)
  end

  # The effective size of n draws of an AR(1) process is n (1 - rho) / (1 + rho).
  test "the effective size of AR(1) series is the analytic one" do
    for rho <- [0.0, 0.3, 0.7, 0.9] do
      {chains, _rng} =
        Enum.map_reduce(1..4, :rand.seed_s(:exsss, 7), fn _, rng ->
          {x, rng} = :rand.normal_s(rng)

          {chain, {_x, rng}} =
            Enum.map_reduce(1..4000, {x, rng}, fn _, {x, rng} ->
              {z, rng} = :rand.normal_s(rng)
              x = rho * x + :math.sqrt(1.0 - rho * rho) * z
              {x, {x, rng}}
            end)

          {chain, rng}
        end)

      analytic = 16_000 * (1.0 - rho) / (1.0 + rho)
      assert_in_delta Diagnostics.ess_mean(chains) / analytic, 1.0, 0.1
      assert_in_delta Diagnostics.ess_bulk(chains) / analytic, 1.0, 0.1
      assert Diagnostics.rhat(chains) < 1.01
    end
  end

  test "R-hat sees chains that differ in scale alone" do
    [a, b, c, d] = series(:independent)
    wide = Enum.map(d, &(&1 * 3.0))
    assert Diagnostics.rhat([a, b, c, d]) < 1.01
    assert Diagnostics.rhat([a, b, c, wide]) > 1.05
  end

  test "zeros of both signs are equal" do
    zeros =
      for sign <- [0.0, -0.0], do: for(i <- 1..40, do: if(rem(i, 3) == 0, do: i / 8, else: sign))

    mixed =
      for chain <- zeros,
          do:
            for(
              {x, i} <- Enum.with_index(chain),
              do: if(x == 0.0 and rem(i, 2) == 0, do: -x, else: x)
            )

    assert Diagnostics.summary(mixed) ==
             Diagnostics.summary(for chain <- zeros, do: Enum.map(chain, &(&1 + 0.0)))
  end

  test "constant and short chains have no R-hat, and draws too few no effective size" do
    constant = List.duplicate(List.duplicate(2.5, 100), 4)
    assert %{rhat: nil, ess_bulk: 400.0, sd: +0.0, mcse: +0.0} = Diagnostics.summary(constant)
    assert Diagnostics.ebfmi(hd(constant)) == nil

    for n <- 1..9 do
      summary = Diagnostics.summary([Enum.map(1..n, &(&1 / 1)), Enum.map(1..n, &(&1 * 2.0))])
      assert is_nil(summary.rhat) == n < 4
      assert is_nil(summary.ess_bulk) == n < 8
    end
  end
end
