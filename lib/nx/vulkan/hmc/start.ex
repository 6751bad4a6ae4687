defmodule Nx.Vulkan.HMC.Start do
  @moduledoc false
  # Where chains start: positions with a finite log density and gradient.

  alias Nx.Vulkan.HMC.{Chain, Dispatch, Error, Floats, Options}

  @tries 100

  @doc """
  The chains of a run at `positions`: a list of lists of d numbers, one for each chain, or `{:random, chains, d}`.
  Returns them with the options that fit d.
  """
  def chains!({:random, count, dims}, opts)
      when is_integer(count) and count > 0 and is_integer(dims) and dims > 0 do
    opts = Options.fit!(opts, dims)
    {for(index <- 0..(count - 1), do: Chain.new(index, nil, opts)), opts}
  end

  def chains!([[_ | _] = first | _] = positions, opts) do
    opts = Options.fit!(opts, length(first))

    chains =
      for {position, index} <- Enum.with_index(positions) do
        position!(position, index, length(first))
        Chain.new(index, Floats.encode(position), opts)
      end

    {chains, opts}
  end

  def chains!(positions, _opts) do
    raise ArgumentError,
          "expected the initial positions to be a list of lists of numbers, one for each chain, or " <>
            "{:random, chains, dims}, got: #{inspect(positions)}"
  end

  defp position!(position, index, dims) do
    unless is_list(position) and length(position) == dims and Enum.all?(position, &float?/1) do
      raise ArgumentError,
            "expected the position of chain #{index} to be a list of #{dims} numbers, got: #{inspect(position)}"
    end
  end

  # An integer may be more than any float.
  defp float?(x), do: is_number(x) and abs(x) <= 1.7976931348623157e308

  @doc """
  Gives every chain its log density. Chains without a position get one from [-2, 2] in each coordinate, drawn anew
  up to #{@tries} times.
  """
  def locate([%Chain{q: nil} | _] = chains, dispatch), do: locate(chains, dispatch, true, @tries)
  def locate(chains, dispatch), do: locate(chains, dispatch, false, 1)

  defp locate(chains, dispatch, draw?, tries) do
    chains = if draw?, do: Enum.map(chains, &draw/1), else: chains

    with {:ok, rows, dispatch} <- Dispatch.run(dispatch, Enum.map(chains, &still/1)) do
      {bad, good} = chains |> Enum.zip_with(rows, &value/2) |> Enum.split_with(&is_tuple/1)

      cond do
        bad == [] ->
          {:ok, good, dispatch}

        tries > 1 ->
          again = for {chain, _logp} <- bad, do: chain

          with {:ok, others, dispatch} <- locate(again, dispatch, draw?, tries - 1),
               do: {:ok, Enum.sort_by(good ++ others, & &1.index), dispatch}

        true ->
          {:error, refuse(hd(bad), draw?)}
      end
    end
  end

  defp draw(chain) do
    {position, rng} =
      Enum.map_reduce(chain.inv_mass, chain.rng, fn _, rng ->
        {u, rng} = :rand.uniform_s(rng)
        {4.0 * u - 2.0, rng}
      end)

    %{chain | q: Floats.encode(position), rng: rng}
  end

  # A step of size zero without a momentum is the state itself, unless its gradient is not finite.
  defp still(chain),
    do: {chain.q, <<0::size(byte_size(chain.q) * 8)>>, chain.inv_mass_bytes, 0.0, 1}

  defp value(chain, {q, p, bytes}) do
    with {:ok, [logp]} <- Floats.decode(bytes), true <- Floats.finite?(q) and Floats.finite?(p) do
      %{chain | logp: logp}
    else
      _ -> {chain, hd(Floats.read(bytes))}
    end
  end

  defp refuse({chain, logp}, drawn?) do
    # A gradient that is no number makes everything else in the row the same.
    what =
      if logp == :nan,
        do: "the log density or its gradient is nan",
        else: "the log density is #{logp}"

    position = inspect(Floats.read(chain.q), limit: 50)
    tried = if drawn?, do: ", the last of #{@tries} random positions", else: ""

    %Error{
      kind: :initial_point,
      message:
        "chain #{chain.index} cannot start at #{position}#{tried}: #{what} there; " <>
          "pass a position where the density is positive and smooth"
    }
  end
end
