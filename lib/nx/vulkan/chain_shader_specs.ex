defmodule Nx.Vulkan.ChainShaderSpecs do
  @moduledoc """
  Families of distributions as `Nx.Vulkan.ShaderTemplate.FamilySpec`s, for `Nx.Vulkan.Synthesis.compile/1`.

  Each coordinate q of a chain is unconstrained. The variable x follows the family, and the log density is that of q:
  that of x plus log |dx/dq|, with all constants.

  | family | x |
  |---|---|
  | `normal(mu, sigma)`, `studentt(mu, sigma, nu)`, `cauchy(loc, scale)` | q |
  | `exponential(lambda)`, `halfnormal(sigma)`, `weibull(k, lambda)`, `gamma(alpha, beta)` with rate beta, `lognormal(mu, sigma)` | e^q |
  | `beta(alpha, beta)` | 1 / (1 + e^-q) |

  Parameters become constants of the shader, so each has a file of its own, and the push block is `push/5`, the header alone.
  A last argument `:f32` in place of `:f64` gives the single-precision shader. All raise `ArgumentError` for parameters that
  are no numbers, or not positive where they have to be.

  `beta/0`, `gamma/0` and `lognormal/0` are in single precision, for any parameters: those follow the header in the push
  block, as `beta_push/6`, `gamma_push/6` and `lognormal_push/5` write it.
  """

  alias Nx.Vulkan.ShaderTemplate.FamilySpec

  @half_log_2pi [half_log_2pi: 0.91893853320467274178]

  # Name, parameters, constants, what both blocks start with, gradient, log density. logp_const is one more parameter,
  # which the host computes.
  @families [
    {:normal, [mu: :any, sigma: :positive], @half_log_2pi, "real z = (q - mu) / sigma;",
     "-z / sigma", "-z * z / 2 - nxv_log(sigma) - half_log_2pi"},
    {:exponential, [lambda: :positive], [], "real e = lambda * nxv_exp(q);", "1 - e",
     "nxv_log(lambda) + q - e"},
    {:studentt, [mu: :any, sigma: :positive, nu: :positive], [], "real z = (q - mu) / sigma;",
     "-(nu + 1) * z / (sigma * (nu + z * z))",
     "logp_const - (nu + 1) / 2 * nxv_log1p(z * z / nu)"},
    {:cauchy, [loc: :any, scale: :positive], [pi: 3.14159265358979323846],
     "real z = (q - loc) / scale;", "-2 * z / (scale * (1 + z * z))",
     "-nxv_log(pi * scale) - nxv_log1p(z * z)"},
    {:halfnormal, [sigma: :positive], [half_log_pi_2: 0.22579135264472743236],
     "real x = nxv_exp(q) / sigma, e = x * x;", "1 - e",
     "q - e / 2 - nxv_log(sigma) - half_log_pi_2"},
    {:weibull, [k: :positive, lambda: :positive], [],
     "real z = k * (q - nxv_log(lambda)), e = nxv_exp(z);", "k * (1 - e)", "nxv_log(k) + z - e"},
    {:beta, [alpha: :positive, beta: :positive], [], "real tail = nxv_exp(-abs(q));",
     "alpha - (alpha + beta) * nxv_sigmoid(q)",
     "logp_const - alpha * max(-q, real(0)) - beta * max(q, real(0)) - (alpha + beta) * nxv_log1p(tail)"},
    {:gamma, [alpha: :positive, beta: :positive], [], "real e = beta * nxv_exp(q);", "alpha - e",
     "logp_const + alpha * q - e"},
    {:lognormal, [mu: :any, sigma: :positive], @half_log_2pi, "real z = (q - mu) / sigma;",
     "-z / sigma", "-z * z / 2 - nxv_log(sigma) - half_log_2pi"}
  ]

  for {family, parameters, _, _, _, _} <- @families do
    names = Keyword.keys(parameters)
    arguments = Enum.map(names, &Macro.var(&1, __MODULE__))

    @doc """
    The #{family} family with these parameters.
    """
    def unquote(family)(unquote_splicing(arguments), dtype \\ :f64) do
      params = validate!(unquote(family), Enum.zip(unquote(names), unquote(arguments)))
      constant = constant(unquote(family), params)
      spec(unquote(family), dtype, params ++ constant, [])
    end
  end

  for family <- [:beta, :gamma, :lognormal] do
    @doc """
    The #{family} family in single precision, with its parameters in the push block.
    """
    def unquote(family)() do
      {_, parameters, _, _, _, _} = List.keyfind(@families, unquote(family), 0)
      constant = if unquote(family) == :lognormal, do: [], else: [:logp_const]
      spec(unquote(family), :f32, [], Keyword.keys(parameters) ++ constant)
    end
  end

  @doc """
  The push block of a chain of `k` steps of size `eps` over `d` coordinates with `n_obs` observations: the header alone, 24
  bytes for `:f64` and 20 for `:f32`. `n_instances` is the number of chains of a batch.
  """
  def push(k, n_obs, d, eps, dtype \\ :f64, n_instances \\ 0) do
    <<k::32-little, n_obs::32-little, d::32-little, n_instances::32-little>> <>
      if dtype == :f64, do: <<eps::float-64-little>>, else: <<eps::float-32-little>>
  end

  @doc """
  The push block of `beta/0` for `n` coordinates and `k` steps. `logp_const` is -log B(alpha, beta).
  """
  def beta_push(n, k, eps, alpha, beta, logp_const),
    do: push(k, 0, n, eps, :f32) <> floats([alpha, beta, logp_const])

  @doc """
  The push block of `gamma/0`. `logp_const` is alpha log(beta) - log Gamma(alpha).
  """
  def gamma_push(n, k, eps, alpha, beta, logp_const),
    do: push(k, 0, n, eps, :f32) <> floats([alpha, beta, logp_const])

  @doc """
  The push block of `lognormal/0`.
  """
  def lognormal_push(n, k, eps, mu, sigma),
    do: push(k, 0, n, eps, :f32) <> floats([mu, sigma])

  defp floats(list), do: for(x <- list, into: <<>>, do: <<x::float-32-little>>)

  defp spec(family, dtype, params, fields) do
    {_, _, constants, start, gradient, density} = List.keyfind(@families, family, 0)

    %FamilySpec{
      name: family,
      dtype: dtype,
      params: params ++ constants,
      push_fields: fields,
      grad_block: "#{start} real grad_q = #{gradient};",
      logp_block: "#{start} real lp_i = #{density};"
    }
  end

  defp validate!(family, params) do
    {_, parameters, _, _, _, _} = List.keyfind(@families, family, 0)

    for {name, value} <- params do
      unless is_number(value) and (parameters[name] == :any or value > 0) do
        wanted = if parameters[name] == :any, do: "a number", else: "a positive number"

        raise ArgumentError,
              "expected #{name} of #{family} to be #{wanted}, got: #{inspect(value)}"
      end
    end

    params
  end

  defp constant(:studentt, mu: _, sigma: sigma, nu: nu) do
    scale = 0.5 * :math.log(:math.pi() * nu) + :math.log(sigma)
    [logp_const: log_gamma((nu + 1) / 2) - log_gamma(nu / 2) - scale]
  end

  defp constant(:beta, alpha: a, beta: b),
    do: [logp_const: log_gamma(a + b) - log_gamma(a) - log_gamma(b)]

  defp constant(:gamma, alpha: a, beta: b),
    do: [logp_const: a * :math.log(b) - log_gamma(a)]

  defp constant(_family, _params), do: []

  # Stirling's series from 15 up (Abramowitz and Stegun 6.1.41), below it by the recurrence.
  defp log_gamma(x) when x < 15 do
    steps = ceil(15 - x)
    product = Enum.reduce(0..(steps - 1), 1.0, &(&2 * (x + &1)))
    log_gamma(x + steps) - :math.log(product)
  end

  defp log_gamma(x) do
    x2 = x * x
    series = (1 / 12 - (1 / 360 - (1 / 1260 - (1 / 1680 - 1 / 1188 / x2) / x2) / x2) / x2) / x
    (x - 0.5) * :math.log(x) - x + 0.91893853320467274178 + series
  end
end
