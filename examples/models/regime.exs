defmodule Regime do
  @moduledoc """
  A three-regime model of daily returns: a mixture of a trend, a mean-reverting and a volatile regime, 8 variables on the
  whole real line, 200 synthetic returns. It is a reconstruction of a model that was described in public but never
  published; `mu_mr` and `theta_mr` have priors and nothing else.

  Order of the variables: logit_w1, logit_w2, mu_mr, mu_trend, sigma_mr, sigma_trend, sigma_vol, theta_mr; the sigmas and
  theta are on the log scale.
  """
  import Nx.Defn

  @half_log_two_pi 0.9189385332046727
  @pi :math.pi()

  @doc """
  The returns: 0.0005 + 0.01 z, z standard normal, from a fixed seed.
  """
  def returns do
    {z, _} =
      Enum.map_reduce(1..200, :rand.seed_s(:exsss, 123), fn _, state -> :rand.normal_s(state) end)

    z |> Enum.map(&(0.0005 + 0.01 * &1)) |> Nx.tensor(type: :f64, backend: Nx.BinaryBackend)
  end

  defn log_density(q, returns) do
    {w1, w2} = {q[0], q[1]}

    prior =
      normal(w1, 0.0, 1.0) + normal(w2, 0.0, 1.0) + normal(q[2], 0.0, 0.5) +
        normal(q[3], 0.001, 0.01) +
        half_cauchy(q[4], 0.02) + half_cauchy(q[5], 0.02) + half_cauchy(q[6], 0.05) +
        half_cauchy(q[7], 1.0)

    [mean_reverting, trend, volatile] = [
      Nx.max(Nx.exp(q[4]), 1.0e-8),
      Nx.max(Nx.exp(q[5]), 1.0e-8),
      Nx.max(Nx.exp(q[6]), 1.0e-8)
    ]

    log_total = Nx.log(1 + Nx.exp(Nx.min(w1, 10.0)) + Nx.exp(Nx.min(w2, 10.0)))
    a = normal(returns, q[3], trend) - log_total
    b = normal(returns, 0.0, mean_reverting) + w1 - log_total
    c = normal(returns, 0.0, volatile) + w2 - log_total
    prior + Nx.sum(Nx.logsumexp(Nx.stack([a, b, c]), axes: [0]))
  end

  defnp(normal(x, mean, scale),
    do: -0.5 * ((x - mean) / scale) ** 2 - Nx.log(wide(scale)) - @half_log_two_pi
  )

  # Of e^z, with the Jacobian.
  defnp half_cauchy(z, scale) do
    scale = wide(scale)
    Nx.log(wide(2.0) / wide(@pi)) - Nx.log(scale) - Nx.log1p((Nx.exp(z) / scale) ** 2) + z
  end

  # A number of the source as a double: Nx would take its logarithm in single precision.
  deftransformp(wide(number) when is_number(number),
    do: Nx.tensor(number, type: :f64, backend: Nx.BinaryBackend)
  )

  deftransformp(wide(tensor), do: tensor)
end
