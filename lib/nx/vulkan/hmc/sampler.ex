defmodule Nx.Vulkan.HMC.Sampler do
  @moduledoc """
  The No-U-Turn sampler over a function that runs leapfrog steps for several chains at once.

  `run/3` needs no Nx. The function it is given, the *chain function*, takes

      chain.(q, p, inv_mass, step_sizes, steps)

  where `q`, `p` and `inv_mass` are binaries of chains x d little-endian f64 values, `step_sizes` is a list of one
  signed step size for each chain and `steps` is how many to take. It returns `{:ok, {qs, ps, gradients, logps}}`:
  binaries of chains x steps x d values, and of chains x steps for the last, where row j is the state after step j + 1;
  or `{:error, reason}`. Values may be NaN or infinite. With step size 0.0 the row is the state itself.
  Gradients are not read: anything may stand in their place. `Nx.Vulkan.HMC.Single` is for f32.

  All chains advance together and share calls. Each has its own random numbers, step size and metric, so a chain makes
  the same draws whoever runs beside it.
  """

  alias Nx.Vulkan.HMC.{Adaptation, Chain, Dispatch, Error, Floats}
  alias Nx.Vulkan.HMC.{Options, Progress, Result, Schedule, Start, StepSize, Tree}

  defstruct [:chains, :dispatch, :opts, :progress, :windows]

  @doc """
  Draws from the density of `chain`.

  `positions` is where the chains start: a list of lists of d numbers, one for each chain, or `{:random, chains, d}`
  for positions drawn from [-2, 2] in each coordinate, up to 100 times until the density is finite.

  ## Options

    * `:warmup` - iterations that adapt step size and metric and are thrown away; 1000
    * `:draws` - draws of each chain; 1000
    * `:seed` - an integer; without it another one each time, which the result tells
    * `:target_accept` - the acceptance to adapt to; 0.8. Nearer to 1.0 means smaller steps and fewer divergences
    * `:max_tree_depth` - a trajectory is at most 2^depth - 1 steps long; 10
    * `:max_energy_error` - a larger error of the energy is a divergence; 1000.0
    * `:max_steps` - the most steps that one call of the chain function may run; any number
    * `:step_size` - where the adaptation starts, or, without warm-up, the one to use; found by a search otherwise
    * `:inv_mass` - the diagonal of the inverse metric to start with, d numbers; ones
    * `:names` - of the d coordinates; `x[0]`, `x[1]`, …
    * `:progress` - `true` for a bar on standard error where that is a terminal, `false` for none, or a function that
      gets a map of `:phase`, `:iteration`, `:iterations`, `:done`, `:total`, `:chains`, `:divergences`,
      `:leapfrogs` and `:elapsed_ms`, about ten times a second

  Returns `{:ok, result}`, a `Nx.Vulkan.HMC.Result`, or `{:error, error}`, a `Nx.Vulkan.HMC.Error`. Raises an
  `ArgumentError` for positions and options that do not fit.
  """
  def run(chain, positions, opts \\ []) when is_function(chain, 5) do
    {chains, opts} = Start.chains!(positions, Options.validate!(opts))
    dispatch = %Dispatch{chain: chain, max_steps: opts[:max_steps]}
    unused = dispatch
    started = now()

    with {:ok, chains, dispatch} <- Start.locate(chains, dispatch),
         {:ok, chains, dispatch} <- first_step_sizes(chains, dispatch, opts),
         run = begin(chains, dispatch, opts),
         {:ok, run} <- warm_up(run, 1),
         warmup = timing(started, run.dispatch, unused),
         run = settle(run),
         warmed = {now(), run.dispatch, warmup},
         {:ok, run} <- sample(run, 1, warmed) do
      {:ok, result(run, warmed)}
    end
  end

  defp begin(chains, dispatch, opts) do
    %__MODULE__{
      chains: chains,
      dispatch: dispatch,
      opts: opts,
      progress: Progress.new(opts),
      windows: Schedule.windows(opts[:warmup])
    }
  end

  defp first_step_sizes(chains, dispatch, opts) do
    if opts[:step_size] && opts[:warmup] == 0,
      do: {:ok, chains, dispatch},
      else: StepSize.search(chains, dispatch)
  end

  defp warm_up(run, iteration) do
    if iteration > run.opts[:warmup] do
      {:ok, run}
    else
      with {:ok, records, run} <- transition(run),
           {:ok, run} <- adapt(run, records, iteration) do
        run |> report(:warmup, iteration, records) |> warm_up(iteration + 1)
      else
        {:error, error} -> {:error, lost(error, "warm-up", iteration, run)}
      end
    end
  end

  defp sample(run, iteration, warmed) do
    if iteration > run.opts[:draws] do
      {:ok, run}
    else
      case transition(run) do
        {:ok, records, run} ->
          run
          |> keep(records)
          |> report(:sampling, iteration, records)
          |> sample(iteration + 1, warmed)

        {:error, error} ->
          partial = if iteration > 1, do: result(run, warmed)
          {:error, %{lost(error, "sampling", iteration, run) | partial: partial}}
      end
    end
  end

  defp lost(%Error{} = error, phase, iteration, run) do
    Progress.abort(run.progress)
    done = "#{iteration - 1} iterations of #{length(run.chains)} chains"

    fate =
      if phase == "sampling" and iteration > 1,
        do: "their draws are in :partial",
        else: "all of it is lost"

    %{error | message: "#{error.message} (in #{phase}, after #{done}: #{fate})"}
  end

  ## One iteration of all chains

  defp transition(run) do
    {depth, error} = {run.opts[:max_tree_depth], run.opts[:max_energy_error]}
    trees = for chain <- run.chains, do: {chain, Tree.new(chain, depth, error)}

    with {:ok, trees, dispatch} <- grow(trees, run.dispatch) do
      {records, chains} = Enum.unzip(for {chain, tree} <- trees, do: Chain.move(chain, tree))
      {:ok, records, %{run | chains: chains, dispatch: dispatch}}
    end
  end

  # Until all trees have stopped: what the others need next, in one dispatch.
  defp grow(trees, dispatch) do
    requests =
      for {chain, %Tree{stop: nil} = tree} <- trees,
          {side, request} <- Chain.requests(chain, tree),
          do: {{chain.index, side}, request}

    {keys, requests} = Enum.unzip(requests)

    with [_ | _] <- requests, {:ok, rows, dispatch} <- Dispatch.run(dispatch, requests) do
      rows = Map.new(Enum.zip(keys, rows))
      trees |> Enum.map(&grown(&1, rows)) |> grow(dispatch)
    else
      [] -> {:ok, trees, dispatch}
      {:error, error} -> {:error, error}
    end
  end

  defp grown({chain, %Tree{stop: nil} = tree}, rows) do
    sides = Map.new([:back, :front], &{&1, rows[{chain.index, &1}]})
    {chain, Tree.grow(tree, sides)}
  end

  defp grown(stopped, _rows), do: stopped

  ## Warm-up

  defp adapt(run, records, iteration) do
    window = Enum.find(run.windows, &(iteration in &1))

    chains =
      for {chain, record} <- Enum.zip(run.chains, records) do
        {step_size, adaptation} = Adaptation.step_size(chain.adaptation, record.accept)
        chain = %{chain | step_size: step_size, adaptation: adaptation}
        if window, do: observe(chain, record, iteration == window.last), else: chain
      end

    # Another metric needs another step size.
    if window && iteration == window.last do
      with {:ok, chains, dispatch} <- StepSize.search(chains, run.dispatch),
           do: {:ok, %{run | chains: chains, dispatch: dispatch}}
    else
      {:ok, %{run | chains: chains}}
    end
  end

  defp observe(chain, record, last?) do
    adaptation = Adaptation.observe(chain.adaptation, Floats.decode!(record.q))

    if last? do
      {inv_mass, adaptation} = Adaptation.inv_mass(adaptation)
      Chain.put_inv_mass(%{chain | adaptation: adaptation}, inv_mass)
    else
      %{chain | adaptation: adaptation}
    end
  end

  defp settle(%{opts: opts} = run) do
    if opts[:warmup] == 0 do
      run
    else
      chains = for c <- run.chains, do: %{c | step_size: Adaptation.final_step_size(c.adaptation)}
      %{run | chains: chains}
    end
  end

  ## Records

  defp keep(run, records) do
    chains =
      for {chain, record} <- Enum.zip(run.chains, records),
          do: %{chain | records: [record | chain.records]}

    %{run | chains: chains}
  end

  defp report(run, phase, iteration, records) do
    divergent = Enum.count(records, & &1.divergence)
    leapfrogs = records |> Enum.map(& &1.leapfrogs) |> Enum.sum()
    facts = %{chains: length(records), leapfrogs: leapfrogs}
    %{run | progress: Progress.tick(run.progress, phase, iteration, divergent, facts)}
  end

  defp result(run, {started, dispatch, warmup}) do
    Result.new(run.chains, run.opts, %{
      warmup: warmup,
      sampling: timing(started, run.dispatch, dispatch)
    })
  end

  defp timing(started, dispatch, earlier),
    do: dispatch |> Dispatch.since(earlier) |> Map.put(:total_microseconds, now() - started)

  defp now, do: System.monotonic_time(:microsecond)
end
