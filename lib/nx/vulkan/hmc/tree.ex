defmodule Nx.Vulkan.HMC.Tree do
  @moduledoc false
  # The trajectory of one NUTS transition: multinomial sampling (Betancourt 2017, arXiv:1701.02434, appendix A.3) with
  # Stan's generalised U-turn criterion, checked within subtrees and across where they meet.
  #
  # The directions of all doublings are drawn first, which changes nothing in law. It is then known how many steps the
  # next few doublings need at either end, and one dispatch runs them all: `plan` says for how many doublings.

  import Bitwise
  alias Nx.Vulkan.HMC.Floats

  # A point is {q, p, momentum}: its binaries, and the momentum as a list.
  # A subtree is {first, last, rho, log_weight, proposal}, in the direction it grew; a proposal is {q, logp, energy}.
  @enforce_keys [:inv_mass, :energy, :max_depth, :max_energy_error, :directions, :plan]
  defstruct [
    :inv_mass,
    :energy,
    :max_depth,
    :max_energy_error,
    :directions,
    :plan,
    :back,
    :front,
    :rho,
    :proposal,
    :rng,
    log_weight: 0.0,
    depth: 0,
    leapfrogs: 0,
    accept: 0.0,
    stop: nil
  ]

  # Beyond this many steps a call's own cost is small against that of its steps.
  @longest_plan 6

  @doc """
  A tree of one point with a fresh momentum. `point` has `:q`, `:logp`, `:inv_mass` (a list), `:rng` and `:plan`, about
  how many doublings to run in the first dispatch.
  """
  def new(point, max_depth, max_energy_error) do
    {momentum, rng} = momentum(point.inv_mass, point.rng)
    {directions, rng} = :rand.uniform_s(1 <<< max_depth, rng)
    start = {point.q, Floats.encode(momentum), momentum}
    energy = kinetic(momentum, point.inv_mass, 0.0) - point.logp

    %__MODULE__{
      inv_mass: point.inv_mass,
      energy: energy,
      max_depth: max_depth,
      max_energy_error: max_energy_error,
      directions: directions - 1,
      plan: point.plan |> round() |> min(@longest_plan) |> min(max_depth) |> max(1),
      back: start,
      front: start,
      rho: momentum,
      proposal: {point.q, point.logp, energy},
      rng: rng
    }
  end

  @doc "A momentum from the normal distribution whose precision is `inv_mass`."
  def momentum(inv_mass, rng) do
    Enum.map_reduce(inv_mass, rng, fn inverse, rng ->
      {z, rng} = :rand.normal_s(rng)
      {z / :math.sqrt(inverse), rng}
    end)
  end

  def kinetic([p | ps], [m | ms], sum), do: kinetic(ps, ms, sum + p * p * m)
  def kinetic([], [], sum), do: 0.5 * sum

  @doc "The steps that the planned doublings need: `[{:back | :front, point, count}]`, without ends that need none."
  def needs(%__MODULE__{stop: nil} = tree) do
    depths = tree.depth..(tree.depth + tree.plan - 1)
    {front, back} = Enum.split_with(depths, &forward?(tree, &1))

    for {side, depths} <- [front: front, back: back], depths != [] do
      {side, Map.fetch!(tree, side), depths |> Enum.map(&(1 <<< &1)) |> Enum.sum()}
    end
  end

  @doc "Grows the tree by the planned doublings, or until it stops. `rows` maps `:back` and `:front` to their rows."
  def grow(%__MODULE__{plan: 0} = tree, _rows), do: %{tree | plan: 1}

  def grow(%__MODULE__{depth: depth} = tree, rows) do
    side = if forward?(tree, depth), do: :front, else: :back

    case build(depth, Map.fetch!(rows, side), tree, {tree.rng, tree.leapfrogs, tree.accept}) do
      {:ok, subtree, rest, walk} ->
        tree = tree |> walked(walk) |> join(side, subtree)
        if tree.stop, do: tree, else: grow(tree, Map.put(rows, side, rest))

      {:stop, stop, walk} ->
        %{walked(tree, walk) | stop: stop}
    end
  end

  defp forward?(tree, depth), do: (tree.directions >>> depth &&& 1) == 1

  defp walked(tree, {rng, leapfrogs, accept}),
    do: %{tree | rng: rng, leapfrogs: leapfrogs, accept: accept}

  # Biased towards the new subtree, unlike the choice within a subtree.
  defp join(tree, side, {first, last, rho, log_weight, proposal}) do
    {near, far} = if side == :front, do: {tree.front, tree.back}, else: {tree.back, tree.front}
    {taken?, rng} = chance(log_weight - tree.log_weight, tree.rng)
    sum = add(tree.rho, rho)

    straight? =
      straight?(tree.depth, {far, near, tree.rho}, {first, last, rho}, sum, tree.inv_mass)

    depth = tree.depth + 1

    tree = %{
      tree
      | depth: depth,
        plan: tree.plan - 1,
        rng: rng,
        rho: sum,
        log_weight: log_add(tree.log_weight, log_weight),
        proposal: if(taken?, do: proposal, else: tree.proposal),
        stop: if(not straight?, do: :turn, else: if(depth == tree.max_depth, do: :depth))
    }

    Map.put(tree, side, last)
  end

  defp build(0, {qs, ps, logps}, tree, {rng, leapfrogs, accept}) do
    bytes = byte_size(elem(tree.back, 0))
    <<q::binary-size(bytes), qs::binary>> = qs
    <<p::binary-size(bytes), ps::binary>> = ps
    <<logp::binary-size(8), logps::binary>> = logps

    with {:ok, [logp]} <- Floats.decode(logp),
         {:ok, momentum} <- Floats.decode(p),
         true <- Floats.finite?(q) do
      energy = kinetic(momentum, tree.inv_mass, 0.0) - logp
      gain = tree.energy - energy
      walk = {rng, leapfrogs + 1, accept + if(gain > 0.0, do: 1.0, else: :math.exp(gain))}

      if -gain > tree.max_energy_error do
        {:stop, {:divergence, q}, walk}
      else
        point = {q, p, momentum}
        {:ok, {point, point, momentum, gain, {q, logp, energy}}, {qs, ps, logps}, walk}
      end
    else
      _not_finite -> {:stop, {:divergence, q}, {rng, leapfrogs + 1, accept}}
    end
  end

  defp build(depth, rows, tree, walk) do
    with {:ok, {first, middle, rho, log_weight, proposal}, rows, walk} <-
           build(depth - 1, rows, tree, walk),
         {:ok, {middle2, last, rho2, log_weight2, proposal2}, rows, walk} <-
           build(depth - 1, rows, tree, walk) do
      {rng, leapfrogs, accept} = walk
      both = log_add(log_weight, log_weight2)
      {taken?, rng} = chance(log_weight2 - both, rng)
      sum = add(rho, rho2)
      walk = {rng, leapfrogs, accept}

      if straight?(depth - 1, {first, middle, rho}, {middle2, last, rho2}, sum, tree.inv_mass) do
        {:ok, {first, last, sum, both, if(taken?, do: proposal2, else: proposal)}, rows, walk}
      else
        {:stop, :turn, walk}
      end
    end
  end

  # Where both halves are single points the checks across are the check along.
  defp straight?(0, {{_, _, first}, _, _}, {_, {_, _, last}, _}, sum, inv_mass),
    do: along?(inv_mass, first, last, sum, 0.0, 0.0)

  defp straight?(_depth, {first, middle, rho}, {middle2, last, rho2}, sum, inv_mass) do
    {_, _, first} = first
    {_, _, middle} = middle
    {_, _, middle2} = middle2
    {_, _, last} = last

    along?(inv_mass, first, last, sum, 0.0, 0.0) and
      across?(inv_mass, first, middle2, rho, middle2, 0.0, 0.0) and
      across?(inv_mass, middle, last, rho2, middle, 0.0, 0.0)
  end

  defp along?([m | ms], [a | as], [b | bs], [r | rs], sum_a, sum_b) do
    v = m * r
    along?(ms, as, bs, rs, sum_a + a * v, sum_b + b * v)
  end

  defp along?([], [], [], [], sum_a, sum_b), do: sum_a > 0.0 and sum_b > 0.0

  defp across?([m | ms], [a | as], [b | bs], [r | rs], [x | xs], sum_a, sum_b) do
    v = m * (r + x)
    across?(ms, as, bs, rs, xs, sum_a + a * v, sum_b + b * v)
  end

  defp across?([], [], [], [], [], sum_a, sum_b), do: sum_a > 0.0 and sum_b > 0.0

  defp add([a | as], [b | bs]), do: [a + b | add(as, bs)]
  defp add([], []), do: []

  defp chance(log_odds, rng) do
    {u, rng} = :rand.uniform_s(rng)
    {log_odds >= 0.0 or u < :math.exp(log_odds), rng}
  end

  defp log_add(a, b) when a < b, do: log_add(b, a)
  defp log_add(a, b), do: a + :math.log(1.0 + :math.exp(b - a))
end
