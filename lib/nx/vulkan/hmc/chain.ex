defmodule Nx.Vulkan.HMC.Chain do
  @moduledoc false
  # One chain: where it is, its random numbers, its step size and metric, and what it recorded.

  alias Nx.Vulkan.HMC.{Adaptation, Floats, Tree}

  # The first dispatch of a transition runs as many doublings as the most of the last few transitions, which the chain
  # forgets this fast. On eight schools with 4 chains that makes 1.2 dispatches of 21 steps in all for a draw; one
  # dispatch for each doubling makes 4.1 of 17.
  @fade 0.125

  defstruct [
    :index,
    :rng,
    :q,
    :logp,
    :inv_mass,
    :inv_mass_bytes,
    :step_size,
    :adaptation,
    plan: 1.0,
    records: []
  ]

  @doc "Chain `index` of a run. Its random numbers depend on the seed and `index` alone."
  def new(index, q, opts) do
    chain = %__MODULE__{
      index: index,
      rng: random(opts[:seed], index),
      q: q,
      step_size: (opts[:step_size] || 1.0) / 1,
      adaptation: Adaptation.new(opts[:target_accept])
    }

    put_inv_mass(chain, opts[:inv_mass])
  end

  # The numbers of a tuple are added up as it becomes a state, so that chain 1 of one seed would be chain 0 of the next.
  defp random(seed, index) do
    <<one::58, other::58, _::bitstring>> = :crypto.hash(:sha256, "#{seed}/#{index}")
    :rand.seed_s(:exsss, [one, other])
  end

  def put_inv_mass(chain, inv_mass),
    do: %{chain | inv_mass: inv_mass, inv_mass_bytes: Floats.encode(inv_mass)}

  @doc "The requests that `tree` of this chain has for the next dispatch."
  def requests(chain, tree) do
    for {side, {q, p, _momentum}, steps} <- Tree.needs(tree) do
      step_size = if side == :front, do: chain.step_size, else: -chain.step_size
      {side, {q, p, chain.inv_mass_bytes, step_size, steps}}
    end
  end

  @doc "Moves the chain to what a finished tree chose."
  def move(chain, %Tree{proposal: {q, logp, energy}} = tree) do
    # Doublings that were begun: d of them are 2^d - 1 steps.
    doublings = tree.leapfrogs |> Integer.digits(2) |> length()

    divergence =
      case tree.stop do
        {:divergence, at} -> :binary.copy(at)
        _ -> nil
      end

    record = %{
      q: :binary.copy(q),
      logp: logp,
      energy: energy,
      accept: tree.accept / tree.leapfrogs,
      depth: tree.depth,
      leapfrogs: tree.leapfrogs,
      divergence: divergence
    }

    {record,
     %{
       chain
       | q: record.q,
         logp: logp,
         rng: tree.rng,
         plan: max(1.0 * doublings, chain.plan - @fade)
     }}
  end
end
