defmodule Nx.Vulkan.Leapfrog do
  @moduledoc """
  Leapfrog steps of Hamiltonian Monte Carlo on the device, for nine families of distributions. It needs no Nx.

      iex> zeros = :binary.copy(<<0.0::float-64-little>>, 3)
      iex> ones = :binary.copy(<<1.0::float-64-little>>, 3)
      iex> {:ok, {q, p, grad, logp}} =
      ...>   Nx.Vulkan.Leapfrog.chain(:normal, [mu: 0.0, sigma: 2.0], zeros, ones, ones, 0.1, 32)
      iex> {byte_size(q), byte_size(p), byte_size(grad), byte_size(logp)}
      {768, 768, 768, 256}

  A step with step size ε is, with g the gradient of the log density at q,

      p½ = p + ½ ε g        q' = q + ε inv_mass p½        g' = ∇ log π(q')        p' = p½ + ½ ε g'

  q is unconstrained. What has the distribution is q itself for `:normal`, `:studentt` and `:cauchy`, its exponential
  for `:exponential`, `:halfnormal`, `:weibull`, `:gamma` and `:lognormal`, and 1/(1 + e^-q) for `:beta`. The log
  density includes the logarithm of that function's derivative and every constant. `docs/ops.md` has the formulas.

  | family | parameters |
  |---|---|
  | `:normal` | `mu`, `sigma` |
  | `:exponential` | `lambda` |
  | `:studentt` | `mu`, `sigma`, `nu` |
  | `:cauchy` | `loc`, `scale` |
  | `:halfnormal` | `sigma` |
  | `:weibull` | `k`, `lambda` |
  | `:beta` | `alpha`, `beta` |
  | `:gamma` | `alpha`, `beta` (the rate) |
  | `:lognormal` | `mu`, `sigma` |

  All of them but `mu` and `loc` must be above 0.
  """

  alias Nx.Vulkan.{Device, NativeV, Request}

  # Parameters in the order of the op's scalars; those of @anywhere may have any sign.
  @families %{
    normal: [:mu, :sigma],
    exponential: [:lambda],
    studentt: [:mu, :sigma, :nu],
    cauchy: [:loc, :scale],
    halfnormal: [:sigma],
    weibull: [:k, :lambda],
    beta: [:alpha, :beta],
    gamma: [:alpha, :beta],
    lognormal: [:mu, :sigma]
  }
  @anywhere [:mu, :loc]
  @largest %{f32: 3.4028234663852886e38, f64: 1.7976931348623157e308}
  @smallest %{f32: 1.401298464324817e-45, f64: 5.0e-324}

  @doc """
  Takes `k` steps of size `eps` from `q` and `p`.

  `params` is a keyword list or a map of the family's parameters. `q`, `p` and `inv_mass` (the diagonal of the inverse
  mass matrix) are binaries of little-endian floats, chain after chain, d of them for each chain. d is what their size
  says; all three have the same. `eps` may be negative, which walks back.

  ## Options

    * `:type` - `:f64` (default) or `:f32`, the type of all binaries and of the computation
    * `:chains` - number of chains in the binaries, 1 by default
    * `:device` - an index, a name or a UUID; by default that of the application

  Returns `{:ok, {q_chain, p_chain, grad_chain, logp_chain}}`: binaries of chains × k × d floats, and of chains × k for
  the last. Row i of each describes the state after step i + 1: position, momentum, gradient of the log density and the
  log density itself, summed over the coordinates. `{:error, kind, message}` is what a device or a pack cannot do, with
  the kinds of `Nx.Vulkan.Error`.

  Raises `ArgumentError` when an argument is not as described here.
  """
  def chain(family, params, q, p, inv_mass, eps, k, opts \\ []) do
    {type, chains, choice} = options!(opts)
    scalars = [float!(eps, :eps, type) | parameters!(family, params, type)]

    unless is_integer(k) and k >= 1 do
      raise ArgumentError, "expected k to be an integer of at least 1, got: #{inspect(k)}"
    end

    d = coordinates!(q, type, chains)

    for {name, binary} <- [p: p, inv_mass: inv_mass] do
      unless is_binary(binary) and byte_size(binary) == byte_size(q) do
        raise ArgumentError,
              "expected #{name} to be a binary of #{byte_size(q)} bytes like q, got: #{size(binary)}"
      end
    end

    scalars = for x <- scalars, into: <<>>, do: encode(x, type)
    state = {chains, d}
    rows = [{chains, k, d}, {chains, k, d}, {chains, k, d}, {chains, k}]

    operands = [
      {state, q},
      {state, p},
      {state, inv_mass},
      {{div(byte_size(scalars), bytes(type))}, scalars}
    ]

    with {:ok, device} <- Device.fetch(choice),
         {:ok, refs} <- upload(operands, device, type),
         outs = Enum.map(rows, &{nx_type(type), &1}),
         {:ok, results} <- Request.run("leapfrog_#{family}", refs, outs, []),
         {:ok, binaries} <- download(results, type) do
      {:ok, List.to_tuple(binaries)}
    end
  end

  @doc """
  The families and their parameters, in the order in which the ops take them.
  """
  def families, do: @families

  @doc false
  def anywhere, do: @anywhere

  defp options!(opts) do
    unless Keyword.keyword?(opts) do
      raise ArgumentError, "expected options to be a keyword list, got: #{inspect(opts)}"
    end

    known = [type: :f64, chains: 1, device: Device.default()]

    case Keyword.keys(opts) -- Keyword.keys(known) do
      [] ->
        :ok

      [name | _] ->
        raise ArgumentError,
              "unknown option #{inspect(name)}, expected one of #{inspect(Keyword.keys(known))}"
    end

    opts = Keyword.merge(known, opts)

    unless opts[:type] in [:f32, :f64] do
      raise ArgumentError, "expected :type to be :f32 or :f64, got: #{inspect(opts[:type])}"
    end

    unless is_integer(opts[:chains]) and opts[:chains] >= 1 do
      raise ArgumentError,
            "expected :chains to be an integer of at least 1, got: #{inspect(opts[:chains])}"
    end

    {opts[:type], opts[:chains], Device.validate!(opts[:device])}
  end

  defp parameters!(family, params, type) do
    names =
      Map.get(@families, family) ||
        raise ArgumentError,
              "expected a family among #{inspect(Map.keys(@families))}, got: #{inspect(family)}"

    given = if is_map(params) or Keyword.keyword?(params), do: Map.new(params), else: %{}

    unless Enum.sort(Map.keys(given)) == Enum.sort(names) do
      raise ArgumentError,
            "expected the parameters #{inspect(names)} of #{inspect(family)}, got: #{inspect(params)}"
    end

    for name <- names do
      value = float!(given[name], name, type)

      unless name in @anywhere or value >= @smallest[type] do
        raise ArgumentError,
              "expected #{name} of #{inspect(family)} to be above 0, got: #{inspect(given[name])}"
      end

      value
    end
  end

  # A number that is finite in the type: Erlang's floats are, and its integers need not be.
  defp float!(value, name, type) when is_number(value) do
    if abs(value) <= @largest[type] do
      value / 1
    else
      raise ArgumentError, "expected #{name} to be finite in #{type}, got: #{inspect(value)}"
    end
  end

  defp float!(value, name, _type) do
    raise ArgumentError, "expected #{name} to be a number, got: #{inspect(value)}"
  end

  defp coordinates!(q, type, chains) do
    row = chains * bytes(type)

    unless is_binary(q) and byte_size(q) > 0 and rem(byte_size(q), row) == 0 do
      raise ArgumentError,
            "expected q to be a binary of d #{type} for each of #{chains} chains, " <>
              "a multiple of #{row} bytes, got: #{size(q)}"
    end

    div(byte_size(q), row)
  end

  defp size(binary) when is_binary(binary), do: "#{byte_size(binary)} bytes"
  defp size(other), do: inspect(other)

  defp upload(operands, device, type) do
    collect(operands, fn {shape, binary} ->
      Request.upload(device, nx_type(type), shape, swapped(binary, type))
    end)
  end

  defp download(refs, type) do
    collect(refs, fn ref ->
      with {:ok, binary} <- NativeV.download(ref, nil), do: {:ok, swapped(binary, type)}
    end)
  end

  defp collect(list, fun) do
    done =
      Enum.reduce_while(list, [], fn element, done ->
        case fun.(element) do
          {:ok, value} -> {:cont, [value | done]}
          error -> {:halt, error}
        end
      end)

    if is_list(done), do: {:ok, Enum.reverse(done)}, else: done
  end

  # Devices take the byte order of the machine.
  if System.endianness() == :little do
    defp swapped(binary, _type), do: binary
  else
    defp swapped(binary, :f32), do: for(<<x::32-big <- binary>>, into: <<>>, do: <<x::32-little>>)
    defp swapped(binary, :f64), do: for(<<x::64-big <- binary>>, into: <<>>, do: <<x::64-little>>)
  end

  defp encode(x, :f32), do: <<x::float-32-little>>
  defp encode(x, :f64), do: <<x::float-64-little>>

  defp bytes(:f32), do: 4
  defp bytes(:f64), do: 8

  defp nx_type(:f32), do: {:f, 32}
  defp nx_type(:f64), do: {:f, 64}
end
