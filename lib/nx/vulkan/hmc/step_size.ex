defmodule Nx.Vulkan.HMC.StepSize do
  @moduledoc false
  # The search for a step size of the right order.

  alias Nx.Vulkan.HMC.{Adaptation, Dispatch, Error, Floats, Tree}

  @log_accept :math.log(0.8)

  @doc """
  Doubles or halves the step size of each chain until the acceptance of one step crosses 0.8, each time with a fresh
  momentum (as Stan does). Starts dual averaging there.
  """
  def search(chains, dispatch), do: search(Enum.map(chains, &{&1, nil}), [], dispatch)

  # `open` holds {chain, factor}, where the factor is nil before the first trial and 2.0 or 0.5 after it.
  defp search([], done, dispatch), do: {:ok, Enum.sort_by(done, & &1.index), dispatch}

  defp search(open, done, dispatch) do
    {trials, open} = open |> Enum.map(&trial/1) |> Enum.unzip()
    {energies, requests} = Enum.unzip(trials)

    with {:ok, rows, dispatch} <- Dispatch.run(dispatch, requests),
         judged = Enum.zip_with([open, energies, rows], &judge/1),
         nil <- Enum.find_value(judged, &out_of_range/1) do
      {found, open} = Enum.split_with(judged, &(elem(&1, 1) == :found))
      search(open, Enum.map(found, &begin/1) ++ done, dispatch)
    else
      %Error{} = error -> {:error, error}
      {:error, error} -> {:error, error}
    end
  end

  defp trial({chain, factor}) do
    {momentum, rng} = Tree.momentum(chain.inv_mass, chain.rng)
    energy = Tree.kinetic(momentum, chain.inv_mass, 0.0) - chain.logp
    p = Floats.encode(momentum)
    request = {chain.q, p, chain.inv_mass_bytes, chain.step_size, 1}
    {{energy, request}, {%{chain | rng: rng}, factor}}
  end

  defp judge([{chain, factor}, energy, rows]) do
    wanted = if accepted?(energy, chain, rows), do: 2.0, else: 0.5

    if factor in [nil, wanted],
      do: {%{chain | step_size: chain.step_size * wanted}, wanted},
      else: {chain, :found}
  end

  # A step too small to move is no step.
  defp accepted?(energy, chain, {q, p, logp}) do
    with true <- q != chain.q and Floats.finite?(q),
         {:ok, [logp]} <- Floats.decode(logp),
         {:ok, p} <- Floats.decode(p) do
      energy - (Tree.kinetic(p, chain.inv_mass, 0.0) - logp) > @log_accept
    else
      _not_accepted -> false
    end
  end

  defp begin({chain, :found}),
    do: %{chain | adaptation: Adaptation.restart(chain.adaptation, chain.step_size)}

  # A search that begins out of the range may lead into it.
  defp out_of_range({chain, factor}) do
    {smallest, largest} = Adaptation.range()
    at = "chain #{chain.index} at #{inspect(Floats.decode!(chain.q), limit: 50)}"

    cond do
      factor == 0.5 and chain.step_size < smallest ->
        %Error{
          kind: :step_size,
          message:
            "#{at} accepts no step size down to #{smallest}: the log density jumps or is not finite around " <>
              "it, or its gradient is wrong"
        }

      factor == 2.0 and chain.step_size > largest ->
        %Error{
          kind: :step_size,
          message:
            "#{at} accepts every step size up to #{largest}: the density is flat (improper), or its gradient " <>
              "is wrong"
        }

      true ->
        nil
    end
  end
end
