defmodule Nx.Vulkan.HMC.Result do
  @moduledoc """
  The draws of a run, and what there is to know about them.

    * `:draws` - a binary of {chains, draws, d} little-endian f64 values
    * `:chains`, `:count`, `:names` - how many chains, draws of each, and the d names
    * `:logp`, `:energy`, `:accept`, `:depth`, `:leapfrogs` - for each chain the list of its log densities, energies,
      acceptance statistics, tree depths and leapfrog steps, one for each draw
    * `:divergences` - `%{chain: …, draw: …, position: [float]}` for each transition that diverged: the draw it ended
      in, and where the energy was lost; values that are no floats are `:nan`, `:infinity`, `:neg_infinity`
    * `:step_size`, `:inv_mass` - what each chain adapted to
    * `:ebfmi` - the fraction of missing information of each chain
    * `:summary` - a map for each coordinate, as from `Nx.Vulkan.HMC.Diagnostics.summary/1`, with its `:name`
    * `:timings` - for `:warmup` and `:sampling`: `:total_microseconds`; `:microseconds`, `:calls`, `:steps` and `:rows`
      of the chain function: the time in it, how often it was called, for how many steps, and steps times chains
    * `:warnings` - `%{kind: …, count: …, message: …}`, where the kind is `:divergences`, `:max_tree_depth`, `:ebfmi`,
      `:stuck`, `:rhat` or `:ess`
    * `:seed`, `:opts` - the seed and the other options
  """

  alias Nx.Vulkan.HMC.{Diagnostics, Floats}

  defstruct [
    :draws,
    :chains,
    :count,
    :names,
    :logp,
    :energy,
    :accept,
    :depth,
    :leapfrogs,
    :divergences,
    :step_size,
    :inv_mass,
    :ebfmi,
    :summary,
    :timings,
    :warnings,
    :seed,
    :opts
  ]

  @type t :: %__MODULE__{}

  @rhat 1.01
  @ess 100
  @ebfmi 0.3

  @doc false
  def new(chains, opts, timings) do
    records = for chain <- chains, do: Enum.reverse(chain.records)
    series = fn key -> for chain <- records, do: Enum.map(chain, &Map.fetch!(&1, key)) end
    {names, opts} = Keyword.pop!(opts, :names)
    {seed, opts} = Keyword.pop!(opts, :seed)
    energy = series.(:energy)

    result = %__MODULE__{
      chains: length(chains),
      count: length(hd(records)),
      logp: series.(:logp),
      energy: energy,
      accept: series.(:accept),
      depth: series.(:depth),
      leapfrogs: series.(:leapfrogs),
      divergences: divergences(records),
      step_size: Enum.map(chains, & &1.step_size),
      inv_mass: Enum.map(chains, & &1.inv_mass),
      ebfmi: Enum.map(energy, &Diagnostics.ebfmi/1),
      timings: timings,
      seed: seed,
      opts: opts
    }

    put_draws(result, names, :q |> series.() |> IO.iodata_to_binary())
  end

  @doc """
  The result with other draws: the quantities `names`, computed from those of the run. `draws` is a binary of {chains,
  draws, quantities} little-endian f64 values. Summary and warnings are those of the new quantities.
  """
  def put_draws(%__MODULE__{} = result, names, draws) do
    if byte_size(draws) != 8 * result.chains * result.count * length(names) do
      raise ArgumentError,
            "expected #{result.chains} x #{result.count} x #{length(names)} f64 values, got: " <>
              "#{byte_size(draws)} bytes"
    end

    unless Floats.finite?(draws) do
      raise ArgumentError,
            "expected finite draws of #{Enum.join(names, ", ")}, got a NaN or an infinity"
    end

    result = %{result | names: names, draws: draws}

    # About 10 ms a coordinate for 4 x 1000 draws. The tasks get no more of the result than they read.
    {count, columns} = {result.count, length(names)}
    summary = &(draws |> column(&1, columns, count) |> Diagnostics.summary())
    places = Enum.to_list(0..(columns - 1)//1)
    summaries = Task.async_stream(places, summary, timeout: :infinity)

    summary =
      for {name, {:ok, summary}} <- Enum.zip(names, summaries), do: Map.put(summary, :name, name)

    result = %{result | summary: summary}
    %{result | warnings: warnings(result)}
  end

  @columns [
    mean: "mean",
    mcse: "mcse",
    sd: "sd",
    q5: "5%",
    q50: "50%",
    q95: "95%",
    ess_bulk: "ess bulk",
    ess_tail: "ess tail",
    rhat: "R-hat"
  ]

  @doc "The summary as text: a line for each coordinate, and the warnings below."
  def table(%__MODULE__{} = result) do
    titles = ["" | Keyword.values(@columns)]

    rows =
      for summary <- result.summary,
          do: [summary.name | for({key, _} <- @columns, do: cell(key, summary[key]))]

    widths =
      Enum.zip_with([titles | rows], fn column ->
        column |> Enum.map(&String.length/1) |> Enum.max()
      end)

    lines =
      for [name | cells] <- [titles | rows] do
        [width | widths] = widths
        cells = Enum.zip_with(cells, widths, &["  ", String.pad_leading(&1, &2)])
        [String.pad_trailing(name, width), cells, "\n"]
      end

    IO.iodata_to_binary([lines, for(warning <- result.warnings, do: [warning.message, "\n"])])
  end

  defp cell(_key, nil), do: "-"
  defp cell(key, x) when key in [:ess_bulk, :ess_tail], do: x |> round() |> Integer.to_string()
  defp cell(:rhat, x), do: :erlang.float_to_binary(x, decimals: 3)

  defp cell(_key, x) when abs(x) >= 1.0e6 or (abs(x) < 1.0e-3 and x != 0.0),
    do: :erlang.float_to_binary(x, scientific: 2)

  defp cell(_key, x), do: :erlang.float_to_binary(x, decimals: 3)

  @doc "The draws of the coordinate with this name: a list of floats for each chain."
  def fetch!(%__MODULE__{} = result, name) do
    index =
      Enum.find_index(result.names, &(&1 == to_string(name))) ||
        raise ArgumentError,
              "expected one of the names #{inspect(result.names)}, got: #{inspect(name)}"

    column(result.draws, index, length(result.names), result.count)
  end

  defp column(draws, index, columns, count) do
    {before, rest} = {index * 8, (columns - index - 1) * 8}

    values =
      for <<_::binary-size(before), x::float-64-little, _::binary-size(rest) <- draws>>, do: x

    Enum.chunk_every(values, count)
  end

  defp divergences(records) do
    for {chain, index} <- Enum.with_index(records),
        {%{divergence: <<_, _::binary>> = at}, draw} <- Enum.with_index(chain),
        do: %{chain: index, draw: draw, position: Floats.read(at)}
  end

  ## Warnings

  defp warnings(result) do
    for {kind, [_ | _] = found} <- findings(result),
        do: %{kind: kind, count: length(found), message: message(kind, found, result)}
  end

  defp findings(result) do
    [
      divergences: result.divergences,
      max_tree_depth:
        result.depth |> Enum.concat() |> Enum.filter(&(&1 >= result.opts[:max_tree_depth])),
      ebfmi: for({x, chain} <- Enum.with_index(result.ebfmi), x && x < @ebfmi, do: chain),
      stuck: for({logp, chain} <- Enum.with_index(result.logp), stuck?(logp), do: chain),
      rhat: for(%{rhat: x, name: name} <- result.summary, x && x > @rhat, do: name),
      ess:
        for(
          %{ess_bulk: bulk, ess_tail: tail, name: name} <- result.summary,
          min(bulk, tail) < @ess * result.chains,
          do: name
        )
    ]
  end

  defp stuck?([first | rest]), do: rest != [] and Enum.all?(rest, &(&1 == first))

  defp message(:divergences, found, result) do
    "#{length(found)} of #{result.chains * result.count} transitions diverged, so the draws miss a part of the " <>
      "density: raise :target_accept, or write the model in other coordinates"
  end

  defp message(:max_tree_depth, found, result) do
    "#{length(found)} of #{result.chains * result.count} transitions reached the tree depth " <>
      "#{result.opts[:max_tree_depth]}: rescale the coordinates, or raise :max_tree_depth"
  end

  defp message(:ebfmi, found, _result) do
    "E-BFMI is below #{@ebfmi} in chains #{list(found)}, which explore the tails slowly: write the model in " <>
      "other coordinates"
  end

  defp message(:stuck, found, _result) do
    "chains #{list(found)} never moved: look at the gradient, and at where they started"
  end

  defp message(:rhat, found, _result) do
    "R-hat is above #{@rhat} for #{list(found)}, so the chains have not mixed: run longer, and look at the traces"
  end

  defp message(:ess, found, _result) do
    "the effective sample size is below #{@ess} for each chain for #{list(found)}: run longer"
  end

  defp list(items) when length(items) <= 5, do: Enum.join(items, ", ")
  defp list(items), do: Enum.join(Enum.take(items, 5), ", ") <> " and #{length(items) - 5} more"

  defimpl Inspect do
    import Inspect.Algebra

    def inspect(result, _opts) do
      worst = fn key, pick ->
        result.summary |> Enum.map(& &1[key]) |> Enum.reject(&is_nil/1) |> pick.(fn -> nil end)
      end

      facts = [
        "#{result.chains} chains x #{result.count} draws x #{length(result.names)} coordinates",
        "R-hat <= #{round_to(worst.(:rhat, &Enum.max/2), 3)}",
        "ESS >= #{round_to(min(worst.(:ess_bulk, &Enum.min/2), worst.(:ess_tail, &Enum.min/2)), 0)}",
        "#{length(result.divergences)} divergences",
        "#{length(result.warnings)} warnings"
      ]

      concat(["#Nx.Vulkan.HMC.Result<", Enum.join(facts, ", "), ">"])
    end

    defp round_to(nil, _digits), do: "?"
    defp round_to(x, 0), do: round(x)
    defp round_to(x, digits), do: Float.round(x, digits)
  end
end
