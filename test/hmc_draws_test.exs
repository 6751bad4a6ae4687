Code.require_file("support/leapfrog.exs", __DIR__)
Code.require_file("support/densities.exs", __DIR__)

defmodule Nx.Vulkan.HMC.DrawsTest do
  use ExUnit.Case, async: true

  @moduletag :synthesized
  @moduletag :same_with_nx

  import Nx.Vulkan.HMC.Leapfrog, only: [sample!: 3]

  alias Nx.Vulkan.HMC.{Densities, Diagnostics, Floats, Leapfrog, Result, Sampler, Single}

  defp normal(dims), do: Densities.normal(List.duplicate(1.0, dims))

  # The mean of a function of the draws lies within `errors` Monte Carlo errors of what it should be.
  defp assert_mean(chains, expected, errors \\ 3.0) do
    mean = chains |> Enum.concat() |> Diagnostics.mean()
    mcse = Diagnostics.mcse(chains)

    assert abs(mean - expected) <= errors * mcse,
           "expected a mean of #{expected}, got: #{mean} with a Monte Carlo error of #{mcse}"
  end

  # Kolmogorov and Smirnov's test at a level of 0.001.
  defp assert_distribution(values, cumulative) do
    n = length(values)

    distance =
      values
      |> Enum.sort()
      |> Enum.with_index()
      |> Enum.map(fn {x, i} ->
        max(abs(cumulative.(x) - i / n), abs(cumulative.(x) - (i + 1) / n))
      end)
      |> Enum.max()

    assert distance < 1.949 / :math.sqrt(n)
  end

  defp phi(x), do: 0.5 * :math.erfc(-x / :math.sqrt(2.0))

  describe "the draws" do
    test "of a correlated normal density have its moments and margins" do
      result = sample!(Densities.autoregressive(0.8), {:random, 4, 5}, seed: 3, draws: 1500)
      columns = Enum.map(result.names, &Result.fetch!(result, &1))

      for chains <- columns do
        assert_mean(chains, 0.0)
        assert_mean(Enum.map(chains, fn chain -> Enum.map(chain, &(&1 * &1)) end), 1.0)
        chains |> Enum.flat_map(&Enum.take_every(&1, 15)) |> assert_distribution(&phi/1)
      end

      for {lag, expected} <- [{1, 0.8}, {3, 0.512}] do
        products =
          Enum.zip_with(hd(columns), Enum.at(columns, lag), fn xs, ys ->
            Enum.zip_with(xs, ys, &(&1 * &2))
          end)

        assert_mean(products, expected)
      end

      assert Enum.all?(result.summary, &(&1.rhat < 1.01))
      assert result.warnings == []
    end

    test "have the scales of a density whose coordinates differ by 1 to 1000" do
      sds = [0.03, 1.0, 30.0]
      result = sample!(Densities.normal(sds), {:random, 4, 3}, seed: 2, warmup: 600, draws: 500)

      for {sd, summary} <- Enum.zip(sds, result.summary) do
        assert_in_delta summary.sd / sd, 1.0, 0.1
        assert summary.rhat < 1.01
      end

      # The metric has found them: a trajectory takes the few steps of a standard normal density.
      for inv_mass <- result.inv_mass, {variance, sd} <- Enum.zip(inv_mass, sds) do
        assert_in_delta variance / (sd * sd), 1.0, 0.5
      end

      assert result.depth |> Enum.concat() |> Enum.max() <= 4
    end

    # posteriordb, eight_schools-eight_schools_noncentered, means of the reference draws; the standard deviations are
    # the published Monte Carlo errors of 10,000 independent draws, times 100.
    test "of eight schools have the posterior that Stan publishes" do
      result = sample!(Densities.eight_schools(), {:random, 4, 10}, seed: 1, target_accept: 0.9)

      draws =
        for <<mu::float-64-little, log_tau::float-64-little, z::binary-size(64) <- result.draws>>,
          into: <<>> do
          tau = :math.exp(log_tau)
          thetas = for z <- Floats.decode!(z), do: mu + tau * z
          Floats.encode([mu, tau | thetas])
        end

      names = ["mu", "tau" | Enum.map(1..8, &"theta[#{&1}]")]
      result = Result.put_draws(result, names, draws)

      published = [
        {4.41051833695493, 0.0330374705950917},
        {3.60205952364059, 0.0318615135640706},
        {6.15050229334425, 0.0557375282295219},
        {4.9395811407422, 0.0462293788624847},
        {3.90590609001582, 0.0542313705632124},
        {4.79601675138494, 0.0474935816762281},
        {3.6144363246799, 0.0461450610244603},
        {4.0511475789675, 0.0485195392528031},
        {6.31716975886893, 0.0498766794075794},
        {4.88399694353288, 0.0542511606560972}
      ]

      for {{mean, mcse}, summary} <- Enum.zip(published, result.summary) do
        error = :math.sqrt(mcse * mcse + summary.mcse * summary.mcse)

        assert abs(summary.mean - mean) < 3 * error,
               "#{summary.name}: #{summary.mean}, not #{mean}"
      end

      assert [%{sd: mu_sd}, %{sd: tau_sd} | _] = result.summary
      assert_in_delta mu_sd, 3.30, 0.2
      assert_in_delta tau_sd, 3.19, 0.35
      assert Enum.all?(result.summary, &(&1.rhat < 1.01))
      assert Enum.all?(result.ebfmi, &(&1 > 0.6))
    end

    # 1500 chains start at independent draws and make three transitions with steps so long that the weights of the
    # trajectories matter. A sampler that breaks detailed balance moves them away from the density.
    test "keep the density that the chains start from" do
      chains = 1500

      {positions, _rng} =
        Enum.map_reduce(1..chains, :rand.seed_s(:exsss, 5), fn _, rng ->
          {x, rng} = :rand.normal_s(rng)
          {y, rng} = :rand.normal_s(rng)
          {[x, 3.0 * y], rng}
        end)

      opts = [warmup: 0, draws: 3, step_size: 1.5, seed: 8]
      result = sample!(Densities.normal([1.0, 3.0]), positions, opts)
      accepted = result.accept |> Enum.concat() |> Diagnostics.mean()
      assert accepted > 0.5 and accepted < 0.9

      for {name, sd} <- [{"x[0]", 1.0}, {"x[1]", 3.0}] do
        last = for chain <- Result.fetch!(result, name), do: List.last(chain)
        assert_distribution(last, &phi(&1 / sd))
      end

      radii =
        for [a, b] <-
              Enum.zip_with([Result.fetch!(result, "x[0]"), Result.fetch!(result, "x[1]")], & &1),
            do: List.last(a) ** 2 + (List.last(b) / 3.0) ** 2

      assert_distribution(radii, &(1.0 - :math.exp(-&1 / 2.0)))
    end

    # Dual averaging ends a little below the step size that would be accepted as often as asked for.
    test "are accepted about as often as asked for" do
      for target <- [0.7, 0.8, 0.95] do
        opts = [seed: 4, target_accept: target, draws: 300]
        result = sample!(Densities.autoregressive(0.5), {:random, 4, 5}, opts)
        accepted = result.accept |> Enum.concat() |> Diagnostics.mean()
        assert accepted > target - 0.03
        assert 1.0 - accepted > 0.4 * (1.0 - target)
      end
    end

    test "are right where the log density is not a number outside of the support" do
      exponential = fn [x] -> if x > 0.0, do: {-x, [-1.0]}, else: {:nan, [:nan]} end
      opts = [seed: 6, warmup: 500, draws: 1500]
      result = sample!(exponential, [[1.0], [0.5], [2.0], [3.0]], opts)
      chains = Result.fetch!(result, "x[0]")
      assert chains |> Enum.concat() |> Enum.all?(&(&1 > 0.0))
      assert_mean(chains, 1.0, 4.0)
      assert_mean(Enum.map(chains, fn chain -> Enum.map(chain, &(&1 * &1)) end), 2.0, 4.0)
    end
  end

  describe "a chain function in f32" do
    defp single(binary),
      do: for(<<x::float-32-little <- binary>>, into: <<>>, do: <<x::float-64-little>>)

    defp to_single(binary) do
      for <<word::binary-size(8) <- binary>>, into: <<>> do
        case word do
          <<x::float-64-little>> -> <<x::float-32-little>>
          _ -> <<0::16, 0xC0, 0x7F>>
        end
      end
    end

    # Rounds what goes in and what comes out.
    defp chain32(density) do
      chain = Leapfrog.chain(density)

      fn q, p, inv_mass, step_sizes, steps ->
        {:ok, parts} = chain.(single(q), single(p), single(inv_mass), step_sizes, steps)
        {:ok, parts |> Tuple.to_list() |> Enum.map(&to_single/1) |> List.to_tuple()}
      end
    end

    test "is sampled as well" do
      opts = [seed: 9, draws: 800, warmup: 500, progress: false]
      chain = Single.chain(chain32(Densities.autoregressive(0.6)))
      assert {:ok, result} = Sampler.run(chain, {:random, 4, 3}, opts)

      for name <- result.names do
        chains = Result.fetch!(result, name)
        assert_mean(chains, 0.0)
        assert_mean(Enum.map(chains, fn chain -> Enum.map(chain, &(&1 * &1)) end), 1.0)
        for x <- hd(chains), do: assert(<<^x::float-32>> = <<x::float-32>>)
      end
    end

    test "may give and get what f32 cannot hold" do
      chain = fn q, p, _inv_mass, _step_sizes, 1 ->
        {:ok, {q, p, q, <<0::16, 0x80, 0xFF>>}}
      end

      huge = <<1.0e39::float-64-little>>
      one = <<1.0::float-64-little>>
      assert {:ok, {q, p, nil, logp}} = Single.chain(chain).(huge, one, one, [0.1], 1)
      assert {Floats.read(q), Floats.read(p), Floats.read(logp)} == {[:nan], [1.0], [:nan]}
      failing = Single.chain(fn _, _, _, _, _ -> {:error, :lost} end)
      assert failing.(one, one, one, [0.1], 1) == {:error, :lost}
    end
  end

  describe "a seed" do
    test "gives the same draws, whoever else is sampled" do
      opts = [seed: 11, warmup: 120, draws: 40]

      [two, again, five] =
        for n <- [2, 2, 5], do: sample!(Densities.funnel(), {:random, n, 3}, opts)

      assert two.draws == again.draws
      assert two.draws == binary_part(five.draws, 0, byte_size(two.draws))
      assert two.step_size == Enum.take(five.step_size, 2)
      assert two.leapfrogs == Enum.take(five.leapfrogs, 2)
      [first, second] = Result.fetch!(two, "x[0]")
      assert first != second
    end

    test "that differs has no chain in common" do
      chains = fn seed ->
        result = sample!(normal(1), {:random, 3, 1}, seed: seed, warmup: 5, draws: 4)
        Result.fetch!(result, "x[0]")
      end

      all = Enum.flat_map([2 ** 64, 2 ** 200 | Enum.to_list(-3..20)], chains)
      assert length(Enum.uniq(all)) == length(all)
    end

    test "that differs gives other draws, and one that is not given is told" do
      opts = [warmup: 20, draws: 5]
      one = sample!(normal(2), [[0.1, 0.2]], [seed: 1] ++ opts)
      two = sample!(normal(2), [[0.1, 0.2]], [seed: 2] ++ opts)
      assert one.draws != two.draws
      assert sample!(normal(2), [[0.1, 0.2]], [seed: -(2 ** 70)] ++ opts).draws != one.draws
      drawn = sample!(normal(2), [[0.1, 0.2]], opts)
      assert sample!(normal(2), [[0.1, 0.2]], [seed: drawn.seed] ++ opts).draws == drawn.draws
    end
  end
end
