defmodule Nx.Vulkan.HMC.FamiliesTest do
  use ExUnit.Case, async: true

  @moduletag :synthesized
  @moduletag :same_with_nx

  alias Nx.Vulkan.HMC.{Diagnostics, Result, Sampler}
  alias Nx.Vulkan.Leapfrog

  @dims 4

  # Parameters, what x is of the coordinate, mean and variance of x, and its distribution function.
  @families [
    normal: [[mu: 1.5, sigma: 2.0], :same, {1.5, 4.0}],
    exponential: [[lambda: 2.0], :exp, {0.5, 0.25}],
    studentt: [[mu: -1.0, sigma: 2.0, nu: 5.0], :same, {-1.0, 4.0 * 5 / 3}],
    cauchy: [[loc: 1.0, scale: 0.5], :same, nil],
    halfnormal: [
      [sigma: 2.0],
      :exp,
      {2.0 * :math.sqrt(2 / :math.pi()), 4.0 * (1 - 2 / :math.pi())}
    ],
    weibull: [
      [k: 2.0, lambda: 3.0],
      :exp,
      {3.0 * :math.sqrt(:math.pi()) / 2, 9.0 * (1 - :math.pi() / 4)}
    ],
    beta: [[alpha: 2.0, beta: 3.0], :sigmoid, {0.4, 0.04}],
    gamma: [[alpha: 3.0, beta: 2.0], :exp, {1.5, 0.75}],
    lognormal: [
      [mu: 0.5, sigma: 0.4],
      :exp,
      {:math.exp(0.58), (:math.exp(0.16) - 1) * :math.exp(1.16)}
    ]
  ]

  for {family, [_, _, _]} <- @families, type <- [:f64, :f32] do
    @tag family: family, type: type
    test "#{family} in #{type} is sampled with its moments and its distribution function", %{
      family: family,
      type: type
    } do
      [params, transform, moments] = @families[family]
      seed = :erlang.phash2({family, type})
      chain = chain(family, params, type)
      # The tails of a Cauchy are visited seldom.
      count = if family == :cauchy, do: 2000, else: 500
      opts = [seed: seed, warmup: 500, draws: count, target_accept: 0.9, progress: false]
      {:ok, result} = Sampler.run(chain, {:random, 4, @dims}, opts)

      draws =
        for name <- result.names do
          for values <- Result.fetch!(result, name),
              do: Enum.map(values, &constrained(transform, &1))
        end

      # The coordinates are independent of each other: they are as many chains.
      with {mean, variance} <- moments do
        all = Enum.concat(draws)
        assert_mean(all, mean)
        assert_mean(for(values <- all, do: Enum.map(values, &((&1 - mean) ** 2))), variance)
      end

      thinned = Enum.flat_map(draws, &thinned/1)
      assert_distribution(thinned, &cumulative(family, Map.new(params), &1))
    end
  end

  # The pack's op has one step size for all chains. Steps of size 1 with momenta p / ε and inverse masses ε² m are the same
  # steps.
  defp chain(family, params, type) do
    run = fn q, p, masses, step_sizes, k ->
      chains = length(step_sizes)
      epsilons = Enum.flat_map(step_sizes, &List.duplicate(&1, @dims))
      still? = Enum.all?(step_sizes, &(&1 == 0.0))
      momenta = if still?, do: p, else: map(p, epsilons, &(&1 / &2))
      inverse = map(masses, epsilons, &(&1 * &2 * &2))
      size = if still?, do: 0.0, else: 1.0
      opts = [chains: chains, type: type]
      [q, momenta, inverse] = for binary <- [q, momenta, inverse], do: narrow(binary, type)

      {:ok, {qs, ps, gs, logps}} =
        Leapfrog.chain(family, params, q, momenta, inverse, size, k, opts)

      [qs, ps, gs, logps] = for binary <- [qs, ps, gs, logps], do: widen(binary, type)

      rows =
        for epsilon <- step_sizes, _ <- 1..(k * @dims), do: if(still?, do: 1.0, else: epsilon)

      {:ok, {qs, map(ps, rows, &(&1 * &2)), gs, logps}}
    end

    run
  end

  defp map(binary, factors, fun) do
    values = for <<bits::binary-size(8) <- binary>>, do: bits

    for {bits, factor} <- Enum.zip(values, factors), into: <<>> do
      case bits do
        <<x::float-64-little>> -> <<fun.(x, factor)::float-64-little>>
        other -> other
      end
    end
  end

  defp narrow(binary, :f64), do: binary

  defp narrow(binary, :f32),
    do: for(<<x::float-64-little <- binary>>, into: <<>>, do: <<x::float-32-little>>)

  defp widen(binary, :f64), do: binary

  defp widen(binary, :f32) do
    for <<bits::binary-size(4) <- binary>>, into: <<>> do
      case bits do
        <<x::float-32-little>> -> <<x::float-64-little>>
        _ -> <<0::48, 0xF8, 0x7F>>
      end
    end
  end

  defp constrained(:same, z), do: z
  defp constrained(:exp, z), do: :math.exp(z)
  defp constrained(:sigmoid, z), do: 1 / (1 + :math.exp(-z))

  # The standard error from the draws' autocorrelation, or from how far the chains' means lie apart where that is more:
  # squares of a skewed distribution are too seldom large to tell by the first alone.
  defp assert_mean(draws, expected) do
    mean = draws |> Enum.concat() |> Diagnostics.mean()
    apart = draws |> Enum.map(&Diagnostics.mean/1) |> Diagnostics.sd()
    error = max(Diagnostics.mcse(draws), apart / :math.sqrt(length(draws)))
    assert abs(mean - expected) < 3 * error, "#{mean} is not #{expected} within #{3 * error}"
  end

  # Draws so far apart that they are as good as independent.
  defp thinned(chains) do
    total = chains |> Enum.map(&length/1) |> Enum.sum()
    effective = min(Diagnostics.ess_bulk(chains), Diagnostics.ess_tail(chains))
    Enum.flat_map(chains, &Enum.take_every(&1, max(1, ceil(2 * total / effective))))
  end

  # Kolmogorov and Smirnov at a level of 0.001.
  defp assert_distribution(values, cumulative) do
    n = length(values)

    distance =
      for {x, i} <- values |> Enum.sort() |> Enum.with_index(), reduce: 0.0 do
        most -> Enum.max([most, abs(cumulative.(x) - i / n), abs(cumulative.(x) - (i + 1) / n)])
      end

    assert distance < 1.949 / :math.sqrt(n), "distance #{distance} of #{n} draws"
  end

  defp cumulative(:normal, %{mu: mu, sigma: sigma}, x), do: phi((x - mu) / sigma)
  defp cumulative(:exponential, %{lambda: lambda}, x), do: 1 - :math.exp(-lambda * x)

  defp cumulative(:cauchy, %{loc: loc, scale: scale}, x),
    do: 0.5 + :math.atan((x - loc) / scale) / :math.pi()

  defp cumulative(:halfnormal, %{sigma: sigma}, x), do: :math.erf(x / sigma / :math.sqrt(2))
  defp cumulative(:weibull, %{k: k, lambda: lambda}, x), do: 1 - :math.exp(-((x / lambda) ** k))
  defp cumulative(:beta, %{alpha: 2.0, beta: 3.0}, x), do: x * x * (6 - 8 * x + 3 * x * x)
  defp cumulative(:lognormal, %{mu: mu, sigma: sigma}, x), do: phi((:math.log(x) - mu) / sigma)

  defp cumulative(:gamma, %{alpha: 3.0, beta: beta}, x) do
    t = beta * x
    1 - :math.exp(-t) * (1 + t + t * t / 2)
  end

  # For five degrees of freedom (Abramowitz and Stegun 26.7.3).
  defp cumulative(:studentt, %{mu: mu, sigma: sigma, nu: 5.0}, x) do
    theta = :math.atan((x - mu) / sigma / :math.sqrt(5))
    c = :math.cos(theta)
    0.5 + (theta + :math.sin(theta) * c * (1 + 2 / 3 * c * c)) / :math.pi()
  end

  defp phi(z), do: 0.5 * (1 + :math.erf(z / :math.sqrt(2)))
end
