defmodule Nx.Vulkan.HMC.Diagnostics do
  @moduledoc """
  What tells whether chains have converged, and how much their draws are worth.

  Rank-normalised split R-hat, bulk and tail effective sample sizes as in Vehtari, Gelman, Simpson, Carpenter and
  Bürkner (2021), "Rank-normalization, folding, and localization", doi:10.1214/20-BA1221. `chains` is a list of chains
  of the same length, each a list of floats: the draws of one quantity. R-hat should be below 1.01, each effective
  sample size above 100 for each chain.
  """

  @doc """
  Mean, standard deviation, Monte Carlo error of the mean, quantiles, effective sample sizes and R-hat.

  R-hat is `nil` where a half of a chain has fewer than two draws or no half has two that differ; the others are `nil`
  where a half has fewer than four.
  """
  def summary(chains) do
    all = Enum.concat(chains)
    sorted = all |> Enum.sort() |> List.to_tuple()
    halves = split(chains)
    bulk = rank_normal(halves)

    %{
      mean: mean(all),
      sd: sd(all),
      mcse: mcse(chains),
      q5: at(sorted, 0.05),
      q50: at(sorted, 0.5),
      q95: at(sorted, 0.95),
      ess_bulk: effective(bulk),
      ess_tail: tail(chains, sorted),
      rhat: ratios(halves, bulk)
    }
  end

  @doc "The larger of the R-hats of the rank-normalised draws, split in halves, and of their folded values."
  def rhat(chains) do
    halves = split(chains)
    ratios(halves, rank_normal(halves))
  end

  @doc "The effective sample size for the bulk of the distribution."
  def ess_bulk(chains), do: chains |> split() |> rank_normal() |> effective()

  @doc "The effective sample size for the 5% and 95% quantiles: the smaller of the two."
  def ess_tail(chains),
    do: tail(chains, chains |> Enum.concat() |> Enum.sort() |> List.to_tuple())

  @doc "The effective sample size for the mean."
  def ess_mean(chains), do: chains |> split() |> effective()

  @doc "The Monte Carlo standard error of the mean."
  def mcse(chains) do
    ess = ess_mean(chains)
    ess && sd(Enum.concat(chains)) / :math.sqrt(ess)
  end

  @doc "The quantile of all draws together, interpolated linearly."
  def quantile(chains, probability) when probability >= 0 and probability <= 1,
    do: chains |> Enum.concat() |> Enum.sort() |> List.to_tuple() |> at(probability)

  @doc """
  The Bayesian fraction of missing information of one chain, from its energies (Betancourt 2016, arXiv:1604.00695).
  Below 0.3 the momenta move the chain too slowly between energies. `nil` where the energy never changes.
  """
  def ebfmi(energies) do
    mean = mean(energies)
    spread = energies |> Enum.map(&((&1 - mean) ** 2)) |> Enum.sum()
    moves = energies |> Enum.zip_with(tl(energies), &((&2 - &1) ** 2)) |> Enum.sum()
    if spread > 0.0, do: moves / spread
  end

  @doc "The mean of a list."
  def mean(list), do: Enum.sum(list) / length(list)

  @doc "The standard deviation of a list, with n - 1."
  def sd([_]), do: 0.0
  def sd(list), do: list |> variance() |> :math.sqrt()

  defp variance(list) do
    mean = mean(list)
    Enum.reduce(list, 0.0, fn x, sum -> sum + (x - mean) * (x - mean) end) / (length(list) - 1)
  end

  defp at(sorted, probability) do
    place = probability * (tuple_size(sorted) - 1)
    below = trunc(place)
    low = elem(sorted, below)
    high = elem(sorted, min(below + 1, tuple_size(sorted) - 1))
    low + (place - below) * (high - low)
  end

  ## R-hat

  # The middle draw of an odd number is left out.
  defp split(chains) do
    half = chains |> hd() |> length() |> div(2)
    Enum.flat_map(chains, &[Enum.take(&1, half), Enum.take(&1, -half)])
  end

  defp ratios([[_, _ | _] | _] = halves, bulk) do
    median = quantile(halves, 0.5)
    folded = for half <- halves, do: Enum.map(half, &abs(&1 - median))
    greater(ratio(bulk), folded |> rank_normal() |> ratio())
  end

  defp ratios(_too_short, _bulk), do: nil

  defp ratio(chains) do
    draws = length(hd(chains))
    within = chains |> Enum.map(&variance/1) |> mean()
    between = chains |> Enum.map(&mean/1) |> variance()
    if within > 0.0, do: :math.sqrt((draws - 1) / draws + between / within)
  end

  defp greater(nil, other), do: other
  defp greater(one, nil), do: one
  defp greater(one, other), do: max(one, other)

  # Each draw becomes the normal quantile of its rank among all; equal draws share the mean of their ranks.
  defp rank_normal(chains) do
    total = chains |> Enum.map(&length/1) |> Enum.sum()

    chains
    |> Enum.concat()
    |> Enum.with_index()
    |> Enum.sort()
    # -0.0 is equal to 0.0, and no other term than itself.
    |> Enum.chunk_by(&(elem(&1, 0) + 0.0))
    |> Enum.flat_map_reduce(0, fn ties, below ->
      count = length(ties)
      z = normal_quantile((below + (count + 1) / 2 - 0.375) / (total + 0.25))
      {for({_, index} <- ties, do: {index, z}), below + count}
    end)
    |> elem(0)
    |> Enum.sort()
    |> Enum.map(&elem(&1, 1))
    |> Enum.chunk_every(max(length(hd(chains)), 1))
  end

  # Abramowitz and Stegun 26.2.23 (error below 4.5e-4), refined by Halley's method, which triples the digits each time.
  defp normal_quantile(p) when p > 0.5, do: -normal_quantile(1.0 - p)

  defp normal_quantile(p) do
    t = :math.sqrt(-2.0 * :math.log(p))

    guess =
      -(t -
          (2.515517 + t * (0.802853 + t * 0.010328)) /
            (1.0 + t * (1.432788 + t * (0.189269 + t * 0.001308))))

    guess |> refine(p) |> refine(p)
  end

  defp refine(x, p) do
    error = 0.5 * :math.erfc(-x / :math.sqrt(2.0)) - p
    step = error * :math.sqrt(2.0 * :math.pi()) * :math.exp(x * x / 2.0)
    x - step / (1.0 + x * step / 2.0)
  end

  ## Effective sample size

  defp tail(chains, sorted) do
    [low, high] =
      for probability <- [0.05, 0.95] do
        cut = at(sorted, probability)

        chains
        |> split()
        |> Enum.map(fn chain -> Enum.map(chain, &if(&1 <= cut, do: 1.0, else: 0.0)) end)
        |> effective()
      end

    min(low, high)
  end

  # Geyer's initial monotone sequence over the autocorrelations of all chains together (Vehtari et al., section 3.2).
  defp effective([[_, _, _, _ | _] = first | _] = chains) do
    draws = length(first)
    total = draws * length(chains)
    {low, high} = chains |> Enum.concat() |> Enum.min_max()
    means = Enum.map(chains, &mean/1)
    centred = Enum.zip_with(chains, means, fn chain, mean -> Enum.map(chain, &(&1 - mean)) end)
    within = autocovariance(centred, centred, draws) * draws / (draws - 1)
    pooled = within * (draws - 1) / draws + variance(means)

    if low == high do
      total / 1
    else
      correlation = fn lagged ->
        1.0 - (within - autocovariance(centred, lagged, draws)) / pooled
      end

      lagged = Enum.map(centred, &tl/1)
      pairs = geyer(lagged, 1.0 + correlation.(lagged), 0.0, 1, draws, correlation)
      total / max(pairs - 1.0, 1.0 / :math.log10(total))
    end
  end

  defp effective(_too_short), do: nil

  # Sums the correlations in pairs, each no larger than the one before, until a pair is negative or the draws end; of
  # that last pair only the first counts, where it is positive. `lag` is that of the pair's second.
  defp geyer(_lagged, pair, _sum, 1 = lag, draws, _correlation)
       when pair <= 0.0 or lag >= draws - 3,
       do: 1.0

  defp geyer(lagged, pair, sum, lag, draws, correlation) do
    even_lagged = Enum.map(lagged, &tl/1)
    odd_lagged = Enum.map(even_lagged, &tl/1)
    even = correlation.(even_lagged)
    next = even + correlation.(odd_lagged)
    sum = sum + 2.0 * pair

    if next <= 0.0 or lag + 2 >= draws - 3,
      do: sum + max(even, 0.0),
      else: geyer(odd_lagged, min(next, pair), sum, lag + 2, draws, correlation)
  end

  defp autocovariance(chains, lagged, draws) do
    sum = chains |> Enum.zip_with(lagged, &dot(&1, &2, 0.0)) |> Enum.sum()
    sum / draws / length(chains)
  end

  defp dot([x | xs], [y | ys], sum), do: dot(xs, ys, sum + x * y)
  defp dot(_xs, [], sum), do: sum
end
