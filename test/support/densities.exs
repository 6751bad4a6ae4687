defmodule Nx.Vulkan.HMC.Densities do
  @moduledoc false
  # Log densities with their gradients: each maps a list of coordinates to {log density, gradient}.

  @doc "Independent normal coordinates with these standard deviations."
  def normal(sds) do
    fn q ->
      z = Enum.zip_with(q, sds, &(&1 / &2))
      {-0.5 * squares(z), Enum.zip_with(z, sds, &(-&1 / &2))}
    end
  end

  @doc """
  The stationary AR(1) process with unit variances: the correlation of coordinates i and j is rho^|i-j|. Its precision
  is tridiagonal.
  """
  def autoregressive(rho) do
    scale = 1.0 / (1.0 - rho * rho)

    fn q ->
      inner = [0.0 | List.duplicate(rho * rho, length(q) - 2)] ++ [0.0]
      left = [0.0 | Enum.drop(q, -1)]
      right = tl(q) ++ [0.0]

      gradient =
        Enum.zip_with([q, inner, left, right], fn [x, more, left, right] ->
          -scale * ((1.0 + more) * x - rho * (left + right))
        end)

      {0.5 * dot(q, gradient), gradient}
    end
  end

  @doc "Neal's funnel: the first coordinate is normal with sd 3, the others normal with variance exp(first)."
  def funnel do
    fn [v | xs] ->
      precision = :math.exp(-v)
      sum = squares(xs)
      n = length(xs)
      logp = -v * v / 18.0 - 0.5 * precision * sum - 0.5 * n * v
      {logp, [-v / 9.0 + 0.5 * precision * sum - 0.5 * n | Enum.map(xs, &(-precision * &1))]}
    end
  end

  @effects [28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0]
  @errors [15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0]

  @doc """
  Eight schools (Rubin 1981), non-centred: mu ~ N(0, 5), tau ~ half-Cauchy(0, 5), theta = mu + tau * z. The coordinates
  are mu, log tau and the eight z.
  """
  def eight_schools do
    fn [mu, log_tau | z] ->
      tau = :math.exp(log_tau)

      pulls =
        Enum.zip_with([z, @effects, @errors], fn [z, effect, error] ->
          (effect - mu - tau * z) / (error * error)
        end)

      misfit = Enum.zip_with(pulls, @errors, fn pull, error -> (pull * error) ** 2 end)
      ratio = tau * tau / 25.0

      logp =
        -0.5 * (Enum.sum(misfit) + squares(z) + mu * mu / 25.0) - :math.log(1.0 + ratio) + log_tau

      d_log_tau = tau * dot(pulls, z) - 2.0 * ratio / (1.0 + ratio) + 1.0
      {logp, [Enum.sum(pulls) - mu / 25.0, d_log_tau | Enum.zip_with(pulls, z, &(&1 * tau - &2))]}
    end
  end

  defp squares(list), do: dot(list, list)
  defp dot(as, bs), do: as |> Enum.zip_with(bs, &(&1 * &2)) |> Enum.sum()
end
