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
  are no numbers, not positive where they have to be, or beyond what the type holds.

  `beta/0`, `gamma/0` and `lognormal/0` are in single precision, for any parameters: those follow the header in the push
  block, as `beta_push/6`, `gamma_push/6` and `lognormal_push/5` write it.
  """

  alias Nx.Vulkan.{Leapfrog, LeapfrogGLSL}
  alias Nx.Vulkan.ShaderTemplate.FamilySpec

  for {family, names} <- Leapfrog.families() do
    arguments = Enum.map(names, &Macro.var(&1, __MODULE__))

    @doc """
    The #{family} family with these parameters.
    """
    def unquote(family)(unquote_splicing(arguments), dtype \\ :f64) do
      params = Enum.zip(unquote(names), unquote(arguments))
      Enum.each(params, &validate!(unquote(family), dtype, &1))
      spec(unquote(family), dtype, params, [], nil)
    end
  end

  # A constant that the caller computes, in place of the family's own.
  for {family, constant} <- [
        beta: "family.constant = logp_const;",
        gamma: "family.constant = logp_const + alpha * (family.centre - REAL(1));",
        lognormal: nil
      ] do
    @doc """
    The #{family} family in single precision, with its parameters in the push block.
    """
    def unquote(family)() do
      fields =
        Leapfrog.families()[unquote(family)] ++ unquote(if constant, do: [:logp_const], else: [])

      spec(unquote(family), :f32, [], fields, unquote(constant))
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

  defp spec(family, dtype, params, fields, constant) do
    %FamilySpec{
      name: family,
      dtype: dtype,
      params: params,
      push_fields: fields,
      helpers: """
      #{LeapfrogGLSL.families()}
      FORM_#{family} made() {
          FORM_#{family} family = new_#{family}(#{Enum.join(Leapfrog.families()[family], ", ")});
          #{constant}
          return family;
      }
      FORM_#{family} family = made();
      """,
      grad_block: "real grad_q = gradient(family, q);",
      logp_block: "real lp_i = log_density(family, q);"
    }
  end

  # The least and the largest normal number.
  @bounds %{
    f32: {1.1754943508222875e-38, 3.4028234663852886e38},
    f64: {2.2250738585072014e-308, 1.7976931348623157e308}
  }

  defp validate!(family, dtype, {name, value}) do
    any? = name in Leapfrog.anywhere()
    # Another type is refused where it is compiled.
    {least, most} = Map.get(@bounds, dtype, @bounds.f64)
    holds? = is_number(value) and abs(value) <= most and (value == 0 or abs(value) >= least)

    unless holds? and (any? or value > 0) do
      wanted = if any?, do: "a number", else: "a positive number"

      raise ArgumentError,
            "expected #{name} of #{family} to be #{wanted} of #{inspect(dtype)}, got: #{inspect(value)}"
    end
  end
end
