Code.require_file("support/leapfrog.exs", __DIR__)
Code.require_file("support/densities.exs", __DIR__)

defmodule Nx.Vulkan.HMC.SamplerTest do
  use ExUnit.Case, async: true

  import ExUnit.CaptureIO

  alias Nx.Vulkan.HMC.{Adaptation, Chain, Densities, Diagnostics, Dispatch, Error, Floats}
  alias Nx.Vulkan.HMC.{Leapfrog, Picture, Progress, Result, Sampler, Schedule, Tree}

  defp sample!(density, positions, opts) do
    {:ok, result} =
      density |> Leapfrog.chain() |> Sampler.run(positions, [progress: false] ++ opts)

    result
  end

  defp normal(dims), do: Densities.normal(List.duplicate(1.0, dims))

  # The mean of a function of the draws lies within `errors` Monte Carlo errors of what it should be.
  defp assert_mean(chains, expected, errors \\ 3.0) do
    mean = chains |> Enum.concat() |> Diagnostics.mean()
    mcse = Diagnostics.mcse(chains)

    assert abs(mean - expected) <= errors * mcse,
           "expected a mean of #{expected}, got: #{mean} with a Monte Carlo error of #{mcse}"
  end

  # Kolmogorov and Smirnov's test at a level of 0.001.
  defp assert_distribution(values, cumulative) do
    n = length(values)

    distance =
      values
      |> Enum.sort()
      |> Enum.with_index()
      |> Enum.map(fn {x, i} ->
        max(abs(cumulative.(x) - i / n), abs(cumulative.(x) - (i + 1) / n))
      end)
      |> Enum.max()

    assert distance < 1.949 / :math.sqrt(n)
  end

  defp phi(x), do: 0.5 * :math.erfc(-x / :math.sqrt(2.0))

  describe "the draws" do
    test "of a correlated normal density have its moments and margins" do
      result = sample!(Densities.autoregressive(0.8), {:random, 4, 5}, seed: 3, draws: 1500)
      columns = Enum.map(result.names, &Result.fetch!(result, &1))

      for chains <- columns do
        assert_mean(chains, 0.0)
        assert_mean(Enum.map(chains, fn chain -> Enum.map(chain, &(&1 * &1)) end), 1.0)
        chains |> Enum.flat_map(&Enum.take_every(&1, 15)) |> assert_distribution(&phi/1)
      end

      for {lag, expected} <- [{1, 0.8}, {3, 0.512}] do
        products =
          Enum.zip_with(hd(columns), Enum.at(columns, lag), fn xs, ys ->
            Enum.zip_with(xs, ys, &(&1 * &2))
          end)

        assert_mean(products, expected)
      end

      assert Enum.all?(result.summary, &(&1.rhat < 1.01))
      assert result.warnings == []
    end

    test "have the scales of a density whose coordinates differ by 1 to 1000" do
      sds = [0.03, 1.0, 30.0]
      result = sample!(Densities.normal(sds), {:random, 4, 3}, seed: 2, warmup: 600, draws: 500)

      for {sd, summary} <- Enum.zip(sds, result.summary) do
        assert_in_delta summary.sd / sd, 1.0, 0.1
        assert summary.rhat < 1.01
      end

      # The metric has found them: a trajectory takes the few steps of a standard normal density.
      for inv_mass <- result.inv_mass, {variance, sd} <- Enum.zip(inv_mass, sds) do
        assert_in_delta variance / (sd * sd), 1.0, 0.5
      end

      assert result.depth |> Enum.concat() |> Enum.max() <= 4
    end

    # posteriordb, eight_schools-eight_schools_noncentered, means of the reference draws; the standard deviations are
    # the published Monte Carlo errors of 10,000 independent draws, times 100.
    test "of eight schools have the posterior that Stan publishes" do
      result = sample!(Densities.eight_schools(), {:random, 4, 10}, seed: 1, target_accept: 0.9)

      draws =
        for <<mu::float-64-little, log_tau::float-64-little, z::binary-size(64) <- result.draws>>,
          into: <<>> do
          tau = :math.exp(log_tau)
          thetas = for z <- Floats.decode!(z), do: mu + tau * z
          Floats.encode([mu, tau | thetas])
        end

      names = ["mu", "tau" | Enum.map(1..8, &"theta[#{&1}]")]
      result = Result.put_draws(result, names, draws)

      published = [
        {4.41051833695493, 0.0330374705950917},
        {3.60205952364059, 0.0318615135640706},
        {6.15050229334425, 0.0557375282295219},
        {4.9395811407422, 0.0462293788624847},
        {3.90590609001582, 0.0542313705632124},
        {4.79601675138494, 0.0474935816762281},
        {3.6144363246799, 0.0461450610244603},
        {4.0511475789675, 0.0485195392528031},
        {6.31716975886893, 0.0498766794075794},
        {4.88399694353288, 0.0542511606560972}
      ]

      for {{mean, mcse}, summary} <- Enum.zip(published, result.summary) do
        error = :math.sqrt(mcse * mcse + summary.mcse * summary.mcse)

        assert abs(summary.mean - mean) < 3 * error,
               "#{summary.name}: #{summary.mean}, not #{mean}"
      end

      assert [%{sd: mu_sd}, %{sd: tau_sd} | _] = result.summary
      assert_in_delta mu_sd, 3.30, 0.2
      assert_in_delta tau_sd, 3.19, 0.35
      assert Enum.all?(result.summary, &(&1.rhat < 1.01))
      assert Enum.all?(result.ebfmi, &(&1 > 0.6))
    end

    # 1500 chains start at independent draws and make three transitions with steps so long that the weights of the
    # trajectories matter. A sampler that breaks detailed balance moves them away from the density.
    test "keep the density that the chains start from" do
      chains = 1500

      {positions, _rng} =
        Enum.map_reduce(1..chains, :rand.seed_s(:exsss, 5), fn _, rng ->
          {x, rng} = :rand.normal_s(rng)
          {y, rng} = :rand.normal_s(rng)
          {[x, 3.0 * y], rng}
        end)

      opts = [warmup: 0, draws: 3, step_size: 1.5, seed: 8]
      result = sample!(Densities.normal([1.0, 3.0]), positions, opts)
      accepted = result.accept |> Enum.concat() |> Diagnostics.mean()
      assert accepted > 0.5 and accepted < 0.9

      for {name, sd} <- [{"x[0]", 1.0}, {"x[1]", 3.0}] do
        last = for chain <- Result.fetch!(result, name), do: List.last(chain)
        assert_distribution(last, &phi(&1 / sd))
      end

      radii =
        for [a, b] <-
              Enum.zip_with([Result.fetch!(result, "x[0]"), Result.fetch!(result, "x[1]")], & &1),
            do: List.last(a) ** 2 + (List.last(b) / 3.0) ** 2

      assert_distribution(radii, &(1.0 - :math.exp(-&1 / 2.0)))
    end

    # Dual averaging ends a little below the step size that would be accepted as often as asked for.
    test "are accepted about as often as asked for" do
      for target <- [0.7, 0.8, 0.95] do
        opts = [seed: 4, target_accept: target, draws: 300]
        result = sample!(Densities.autoregressive(0.5), {:random, 4, 5}, opts)
        accepted = result.accept |> Enum.concat() |> Diagnostics.mean()
        assert accepted > target - 0.03
        assert 1.0 - accepted > 0.4 * (1.0 - target)
      end
    end

    test "are right where the log density is not a number outside of the support" do
      exponential = fn [x] -> if x > 0.0, do: {-x, [-1.0]}, else: {:nan, [:nan]} end
      opts = [seed: 6, warmup: 500, draws: 1500]
      result = sample!(exponential, [[1.0], [0.5], [2.0], [3.0]], opts)
      chains = Result.fetch!(result, "x[0]")
      assert chains |> Enum.concat() |> Enum.all?(&(&1 > 0.0))
      assert_mean(chains, 1.0, 4.0)
      assert_mean(Enum.map(chains, fn chain -> Enum.map(chain, &(&1 * &1)) end), 2.0, 4.0)
    end
  end

  describe "a seed" do
    test "gives the same draws, whoever else is sampled" do
      opts = [seed: 11, warmup: 120, draws: 40]

      [two, again, five] =
        for n <- [2, 2, 5], do: sample!(Densities.funnel(), {:random, n, 3}, opts)

      assert two.draws == again.draws
      assert two.draws == binary_part(five.draws, 0, byte_size(two.draws))
      assert two.step_size == Enum.take(five.step_size, 2)
      assert two.leapfrogs == Enum.take(five.leapfrogs, 2)
      [first, second] = Result.fetch!(two, "x[0]")
      assert first != second
    end

    test "that differs gives other draws, and one that is not given is told" do
      opts = [warmup: 20, draws: 5]
      one = sample!(normal(2), [[0.1, 0.2]], [seed: 1] ++ opts)
      two = sample!(normal(2), [[0.1, 0.2]], [seed: 2] ++ opts)
      assert one.draws != two.draws
      drawn = sample!(normal(2), [[0.1, 0.2]], opts)
      assert sample!(normal(2), [[0.1, 0.2]], [seed: drawn.seed] ++ opts).draws == drawn.draws
    end
  end

  describe "a tree" do
    defp finish(tree, chain, dispatch) do
      case tree.stop do
        nil ->
          {sides, requests} = chain |> Chain.requests(tree) |> Enum.unzip()
          {:ok, rows, dispatch} = Dispatch.run(dispatch, requests)
          finish(Tree.grow(tree, Map.new(Enum.zip(sides, rows))), chain, dispatch)

        _ ->
          {tree, dispatch}
      end
    end

    test "is the same however many doublings a dispatch runs, in fewer dispatches" do
      dispatch = %Dispatch{chain: Leapfrog.chain(Densities.autoregressive(0.7))}
      opts = [seed: 1, step_size: 0.15, target_accept: 0.8, inv_mass: [1.0, 1.0, 1.0]]

      for index <- 0..60 do
        chain = %{Chain.new(index, Floats.encode([0.3, -0.2, 0.9]), opts) | logp: -1.0}

        [{one, slow}, {ahead, fast}] =
          for plan <- [1, 5],
              do: %{chain | plan: plan} |> Tree.new(10, 1000.0) |> finish(chain, dispatch)

        assert %{one | plan: 0} == %{ahead | plan: 0}
        assert fast.calls <= slow.calls
        assert slow.calls in [one.depth, one.depth + 1]
        assert one.depth < 4 or fast.calls <= one.depth - 3
      end
    end

    # A tree from q = (1, 0) with momentum (0, p): an orbit in two dimensions under a normal density.
    defp orbit(step_size, p, seed) do
      dispatch = %Dispatch{chain: Leapfrog.chain(normal(2))}
      opts = [seed: seed, step_size: step_size, target_accept: 0.8, inv_mass: [1.0, 1.0]]
      chain = %{Chain.new(0, Floats.encode([1.0, 0.0]), opts) | logp: -0.5}
      start = {chain.q, Floats.encode([0.0, p]), [0.0, p]}
      tree = Tree.new(chain, 12, 1000.0)
      tree = %{tree | back: start, front: start, rho: [0.0, p], energy: 0.5 + p * p / 2}
      tree |> finish(chain, dispatch) |> elem(0)
    end

    test "of a circular orbit goes on for half a round" do
      for seed <- 0..10 do
        tree = orbit(0.01, 1.0, seed)
        # Half a round is 314 steps: 255 are fewer, 511 are more.
        assert {tree.stop, tree.depth, tree.leapfrogs} == {:turn, 9, 511}
        assert tree.accept / tree.leapfrogs > 0.999
        {_q, _logp, energy} = tree.proposal
        assert_in_delta energy, 1.0, 1.0e-4
      end
    end

    # Steps of one radian: 3 are less than half a round, and 7 are more than a whole one, which looks like no turn from
    # end to end. From the start of the first half to that of the second it is 4.
    test "turns where its halves meet" do
      step_size = 2.0 * :math.sin(0.5)

      for seed <- 0..10 do
        tree = orbit(step_size, :math.cos(0.5), seed)
        assert {tree.stop, tree.depth, tree.leapfrogs} == {:turn, 3, 7}
      end
    end

    # The momenta are such that each of the two checks across alone finds the turn.
    test "is checked from either half to the edge of the other" do
      across = [[1.0, 0.0], [1.0, 0.0], [-0.5, 0.5], [0.6, 0.8]]
      straight = List.duplicate([1.0, 0.0], 4)
      turn = [[1.0, 0.0], [1.0, 0.1], [0.1, 1.0], [-1.0, 0.2]]

      for {[first | rest], stop} <- [
            {straight, nil},
            {across, :turn},
            {Enum.reverse(across), :turn},
            {turn, :turn}
          ] do
        chain = Chain.new(0, Floats.encode([0.0, 0.0]), seed: 1, inv_mass: [1.0, 1.0])
        start = {chain.q, Floats.encode(first), first}
        tree = Tree.new(%{chain | logp: 0.0, plan: 2}, 10, 1000.0)
        tree = %{tree | directions: 0b11, back: start, front: start, rho: first, energy: 0.5}
        assert [{:front, ^start, 3}] = Tree.needs(tree)
        zeros = &:binary.copy(<<0.0::float-64-little>>, &1)
        rows = {zeros.(6), rest |> Enum.concat() |> Floats.encode(), zeros.(3)}
        tree = Tree.grow(tree, %{front: rows, back: nil})
        assert {tree.stop, tree.depth, tree.leapfrogs} == {stop, 2, 3}
      end
    end

    test "stops at the largest depth and leaves the rest of the rows alone" do
      result =
        sample!(normal(2), [[1.0, 1.0]],
          warmup: 0,
          step_size: 1.0e-3,
          draws: 5,
          max_tree_depth: 4
        )

      assert result.depth == [[4, 4, 4, 4, 4]]
      assert result.leapfrogs == [[15, 15, 15, 15, 15]]
      assert [%{kind: :max_tree_depth, count: 5, message: message} | _] = result.warnings
      assert message =~ "5 of 5 transitions reached the tree depth 4"
    end
  end

  describe "a run" do
    test "needs fewer dispatches than doublings" do
      opts = [seed: 1, warmup: 200, draws: 200]
      result = sample!(Densities.eight_schools(), {:random, 4, 10}, opts)
      doublings = result.depth |> Enum.zip_with(&Enum.max/1) |> Enum.sum()
      assert result.timings.sampling.calls < 0.6 * doublings
      assert result.timings.sampling.rows >= result.leapfrogs |> Enum.concat() |> Enum.sum()

      for timing <- [result.timings.warmup, result.timings.sampling],
          do: assert(timing.microseconds <= timing.total_microseconds)
    end

    test "makes the same draws where a call may run few steps" do
      opts = [seed: 1, warmup: 100, draws: 50]
      chain = Leapfrog.chain(Densities.funnel())

      watched = fn q, p, m, e, k ->
        assert k <= 3
        chain.(q, p, m, e, k)
      end

      {:ok, parts} =
        Sampler.run(watched, {:random, 2, 3}, [max_steps: 3, progress: false] ++ opts)

      whole = sample!(Densities.funnel(), {:random, 2, 3}, opts)
      assert parts.draws == whole.draws
      assert parts.timings.sampling.calls > whole.timings.sampling.calls
    end

    test "tells where a funnel diverges" do
      opts = [seed: 1, warmup: 0, step_size: 0.8, draws: 300]
      result = sample!(Densities.funnel(), {:random, 4, 5}, opts)
      assert [_ | _] = result.divergences

      for %{chain: chain, draw: draw, position: position} <- result.divergences do
        assert chain in 0..3 and draw in 0..299
        assert length(position) == 5
      end

      assert %{count: count, message: message} =
               Enum.find(result.warnings, &(&1.kind == :divergences))

      assert count == length(result.divergences)
      assert message =~ "#{count} of 1200 transitions diverged"
      assert inspect(result) =~ "4 chains x 300 draws x 5 coordinates"
      assert inspect(result) =~ "#{count} divergences"
    end

    test "ends where every step leaves the density, and says that the chain is stuck" do
      result = sample!(normal(2), [[1.0, 1.0]], warmup: 0, step_size: 1.0e4, draws: 20)
      assert length(result.divergences) == 20
      assert %{count: 1, message: message} = Enum.find(result.warnings, &(&1.kind == :stuck))
      assert message =~ "chains 0 never moved"
      assert inspect(result) =~ "R-hat <= ?"
    end

    test "takes values that floats cannot hold for divergences" do
      for bad <- [:nan, :infinity, :neg_infinity] do
        wall = fn [x] -> if abs(x) < 1.0, do: {0.0, [0.0]}, else: {bad, [0.0]} end
        result = sample!(wall, [[0.0]], warmup: 0, step_size: 0.3, draws: 50, seed: 1)
        assert [[_ | _] = draws] = Result.fetch!(result, "x[0]")
        assert Enum.all?(draws, &(abs(&1) < 1.0))
        assert result.divergences != []
      end

      huge = fn [x] -> {-1.0e120 * x * x, [-2.0e120 * x]} end
      assert %Result{} = sample!(huge, [[0.0]], warmup: 0, step_size: 1.0, draws: 3)
    end

    test "without warm-up finds a step size unless one is given" do
      found = sample!(Densities.normal([100.0]), [[1.0]], warmup: 0, draws: 5, seed: 1)
      assert [step_size] = found.step_size
      assert step_size > 20.0 and step_size < 500.0
      given = sample!(normal(1), [[1.0]], warmup: 0, draws: 5, step_size: 1, seed: 1)
      assert given.step_size == [1.0]
      assert given.timings.warmup.calls == 1
    end

    test "of any short length ends" do
      for warmup <- [1, 5, 19, 20, 30], draws <- [1, 2, 9] do
        result = sample!(normal(2), {:random, 2, 2}, warmup: warmup, draws: draws, seed: 1)
        assert byte_size(result.draws) == 2 * draws * 2 * 8
        assert inspect(result) =~ "2 chains"
      end
    end
  end

  describe "an error" do
    defp run(density, positions, opts \\ []) do
      opts = Keyword.merge([progress: false, warmup: 20, draws: 20, seed: 1], opts)
      density |> Leapfrog.chain() |> Sampler.run(positions, opts)
    end

    test "names the chain and the point that it cannot start from" do
      half = fn [x, _y] ->
        if x > 0.0, do: {-x, [-1.0, 0.0]}, else: {:neg_infinity, [0.0, 0.0]}
      end

      assert {:error, %Error{kind: :initial_point} = error} = run(half, [[1.0, 2.0], [-1.5, 2.0]])
      assert Exception.message(error) =~ "chain 1 cannot start at [-1.5, 2.0]"
      assert Exception.message(error) =~ "the log density is neg_infinity"

      nan = fn _ -> {:nan, [0.0]} end
      assert {:error, %Error{message: message}} = run(nan, [[0.5]])

      assert message =~
               "chain 0 cannot start at [0.5]: the log density or its gradient is nan there"

      kink = fn [x] -> {x, [:nan]} end
      assert {:error, %Error{message: message}} = run(kink, [[0.5]])
      assert message =~ "its gradient is nan there"
    end

    test "comes after 100 random positions, and not where one of them will do" do
      nowhere = fn [_x] -> {:neg_infinity, [0.0]} end
      {:ok, counter} = Agent.start_link(fn -> 0 end)

      counted = fn q, p, m, e, k ->
        Agent.update(counter, &(&1 + 1))
        Leapfrog.chain(nowhere).(q, p, m, e, k)
      end

      assert {:error, %Error{kind: :initial_point, message: message}} =
               Sampler.run(counted, {:random, 3, 1}, progress: false)

      assert message =~ "the last of 100 random positions"
      assert Agent.get(counter, & &1) == 100

      corner = fn [x, y] ->
        if x > 1.0 and y > 1.0, do: {-x - y, [-1.0, -1.0]}, else: {:nan, [:nan, :nan]}
      end

      assert {:ok, %Result{chains: 3}} = run(corner, {:random, 3, 2}, step_size: 0.1, warmup: 0)
    end

    test "says that no step size, or every one, is accepted" do
      point = fn [x] -> if x == 0.5, do: {0.0, [1.0]}, else: {:nan, [:nan]} end
      assert {:error, %Error{kind: :step_size, message: message}} = run(point, [[0.5]])
      assert message =~ "chain 0 at [0.5] accepts no step size"

      flat = fn [_x] -> {0.0, [0.0]} end
      assert {:error, %Error{kind: :step_size, message: message}} = run(flat, [[0.5]])
      assert message =~ "improper"
    end

    test "of the chain function comes back as it is, with the draws before it" do
      failing = fn calls ->
        {:ok, counter} = Agent.start_link(fn -> 0 end)
        chain = Leapfrog.chain(normal(2))

        fn q, p, m, e, k ->
          n = Agent.get_and_update(counter, &{&1, &1 + 1})
          if n < calls, do: chain.(q, p, m, e, k), else: {:error, {:device_lost, n}}
        end
      end

      opts = [progress: false, warmup: 10, draws: 1000, seed: 1]

      assert {:error, %Error{kind: :chain, reason: {:device_lost, 0}, partial: nil}} =
               Sampler.run(failing.(0), {:random, 2, 2}, opts)

      assert {:error, %Error{reason: {:device_lost, 15}, partial: nil} = error} =
               Sampler.run(failing.(15), {:random, 2, 2}, opts)

      assert Exception.message(error) =~ "{:device_lost, 15} (in warm-up, after"
      assert Exception.message(error) =~ "they are lost"

      assert {:error, %Error{reason: {:device_lost, 500}, partial: partial} = error} =
               Sampler.run(failing.(500), {:random, 2, 2}, opts)

      assert %Result{count: count} = partial
      assert count > 50
      assert Exception.message(error) =~ "(in sampling, after #{count} iterations of 2 chains"
    end

    test "says what the chain function answered instead" do
      for {answer, told} <- [
            {:ok, "got: :ok"},
            {{:ok, {<<0::64>>, <<0::64>>, <<>>, <<0::64>>}}, "\"0 bytes\""},
            {{:ok, {1, 2}}, "{1, 2}"}
          ] do
        assert {:error, %Error{kind: :chain, reason: ^answer, message: message}} =
                 Sampler.run(fn _, _, _, _, _ -> answer end, [[0.0]], progress: false)

        assert message =~ "expected {:ok, {q_chain, p_chain, grad_chain, logp_chain}}"
        assert message =~ told
      end
    end

    test "is raised for options and positions that do not fit" do
      for {opts, told} <- [
            {[draws: 0], "expected :draws to be a number of draws, 1 or more, got: 0"},
            {[warmup: -1], "expected :warmup"},
            {[target_accept: 1.0], "expected :target_accept to be a float between 0.0 and 1.0"},
            {[max_tree_depth: 0], "expected :max_tree_depth to be an integer from 1 to 20"},
            {[max_steps: 0], "expected :max_steps to be an integer, 1 or more, got: 0"},
            {[step_size: 0.0], "expected :step_size to be a positive number, got: 0.0"},
            {[inv_mass: [1.0, -1.0]], "expected :inv_mass to be a list of positive numbers"},
            {[inv_mass: [1.0]], "expected :inv_mass to have 2 entries"},
            {[names: ["a"]],
             "expected :names to have 2 entries, one for each coordinate, got: 1"},
            {[seed: 1.5], "expected :seed to be an integer, got: 1.5"},
            {[progress: 3], "expected :progress"},
            {[chains: 3], "unknown keys [:chains]"}
          ] do
        error = assert_raise ArgumentError, fn -> run(normal(2), [[0.0, 0.0]], opts) end
        assert Exception.message(error) =~ told
      end

      for positions <- [[], [[]], [[0.0], [0.0, 1.0]], [[:a]], {:random, 0, 1}, 3] do
        error = assert_raise ArgumentError, fn -> run(normal(1), positions) end

        assert Exception.message(error) =~
                 ~r/expected the (initial positions|position of chain \d)/
      end
    end
  end

  describe "a warm-up" do
    test "has Stan's windows" do
      assert Schedule.windows(1000) == [76..100, 101..150, 151..250, 251..450, 451..950]
      assert Schedule.windows(150) == [76..100]
      assert Schedule.windows(100) == [16..90]
      assert Schedule.windows(20) == [4..18]
      assert Schedule.windows(19) == []

      for n <- 20..1500 do
        windows = Schedule.windows(n)
        assert List.last(windows).last < n
        for [a, b] <- Enum.chunk_every(windows, 2, 1, :discard), do: assert(b.first == a.last + 1)
      end
    end

    test "shrinks the variance of its positions" do
      positions = for x <- [1.0, 2.0, 4.0, 9.0], do: [x, 5.0]
      adaptation = Enum.reduce(positions, Adaptation.new(0.8), &Adaptation.observe(&2, &1))
      assert {[first, second], %{n: 0}} = Adaptation.inv_mass(adaptation)
      # The variance of 1, 2, 4 and 9 is 38 / 3.
      assert_in_delta first, 38 / 3 * 4 / 9 + 1.0e-3 * 5 / 9, 1.0e-12
      assert_in_delta second, 1.0e-3 * 5 / 9, 1.0e-15
    end

    test "averages towards the step size with the acceptance asked for" do
      start = Adaptation.restart(Adaptation.new(0.8), 0.01)

      {_, adaptation} =
        Enum.reduce(1..1000, {0.01, start}, fn _, {step_size, adaptation} ->
          Adaptation.step_size(adaptation, :math.exp(-step_size))
        end)

      assert_in_delta Adaptation.final_step_size(adaptation), -:math.log(0.8), 0.01
    end

    test "keeps step sizes in range where all or nothing is accepted" do
      for accept <- [0.0, 1.0] do
        start = Adaptation.restart(Adaptation.new(0.8), 1.0)

        {step_size, _} =
          Enum.reduce(1..5000, {1.0, start}, fn _, {_, a} -> Adaptation.step_size(a, accept) end)

        {smallest, largest} = Adaptation.range()
        assert step_size >= smallest * 0.99 and step_size <= largest * 1.01
      end
    end
  end

  describe "progress" do
    test "is told to a function" do
      parent = self()
      opts = [warmup: 30, draws: 20, seed: 1, progress: &send(parent, {:progress, &1})]
      {:ok, _} = Sampler.run(Leapfrog.chain(normal(2)), {:random, 3, 2}, opts)

      assert_received {:progress,
                       %{phase: :warmup, iteration: 1, iterations: 30, done: 1} = event}

      assert %{total: 50, chains: 3, divergences: _, leapfrogs: _, elapsed_ms: _} = event
      assert_received {:progress, %{phase: :warmup, iteration: 30}}
      assert_received {:progress, %{phase: :sampling, iteration: 1, done: 31, divergences: 0}}
      assert_received {:progress, %{phase: :sampling, iteration: 20, done: 50}}
    end

    test "is one short line with rate, divergences and the time left" do
      event = %{
        phase: :sampling,
        done: 1500,
        total: 2000,
        chains: 4,
        divergences: 3,
        elapsed_ms: 3000
      }

      line = Progress.line(event)
      assert line =~ "sampling"
      assert String.length(line) < 80
      assert line =~ "1500/2000 x 4, 500/s, 3 divergent, 0:00:01 left"
      assert line =~ String.duplicate("█", 12) <> String.duplicate("░", 4)

      assert Progress.line(%{event | done: 1, elapsed_ms: 8000}) =~
               ", 0.1/s, 3 divergent, 4:26:32 left"

      assert Progress.line(%{event | done: 1, elapsed_ms: 3_000_000}) =~ "days left"
    end

    test "is written to a terminal, and nowhere else" do
      opts = [warmup: 20, draws: 10, seed: 1]
      run = fn opts -> Sampler.run(Leapfrog.chain(normal(2)), {:random, 2, 2}, opts) end
      bar = capture_io(:stderr, fn -> run.([progress: &Progress.bar/1] ++ opts) end)
      assert bar =~ "\r"
      assert bar =~ "30/30 x 2, "
      assert String.ends_with?(bar, "\n")
      assert length(String.split(bar, "\n", trim: true)) == 1
      assert capture_io(:stderr, fn -> run.([progress: false] ++ opts) end) == ""
    end
  end

  describe "a picture" do
    @tag :tmp_dir
    test "shows each coordinate of each chain", %{tmp_dir: folder} do
      opts = [warmup: 50, draws: 80, seed: 1, names: ["a < b", :c, "d"]]
      result = sample!(Densities.funnel(), {:random, 2, 3}, opts)
      path = Path.join(folder, "picture.svg")
      assert Picture.write(result, path) == :ok
      svg = File.read!(path)
      assert svg =~ "a &lt; b  mean"
      assert length(String.split(svg, "<polyline")) - 1 == 3 * 2 * 2
      assert length(String.split(svg, "v7")) - 1 == 3 * length(result.divergences)
      assert svg =~ ~r{\A<svg [^<>]+>\n(<(\w+) [^<>]+(/>|>[^<>]+</\2>)\n)+</svg>\n\z}

      Picture.write(result, path, names: ["d"])
      assert length(String.split(File.read!(path), "<polyline")) - 1 == 4

      assert_raise ArgumentError, ~r/expected one of the names/, fn ->
        Picture.write(result, path, names: ["e"])
      end
    end

    @tag :tmp_dir
    test "of draws that are all equal is drawn", %{tmp_dir: folder} do
      result = sample!(normal(1), [[1.0]], warmup: 0, step_size: 1.0e4, draws: 20)
      assert Picture.write(result, Path.join(folder, "stuck.svg")) == :ok
    end
  end

  test "a table has a line for each coordinate, and the warnings" do
    result =
      sample!(normal(2), {:random, 2, 2},
        seed: 1,
        warmup: 50,
        draws: 60,
        names: ["a", "long name"]
      )

    assert [titles, a, long | warnings] =
             result |> Result.table() |> String.split("\n", trim: true)

    assert titles =~ ~r/^ +mean +mcse +sd +5% +50% +95% +ess bulk +ess tail +R-hat$/
    assert a =~ ~r/^a         ( +-?\d+\.\d{3}){6}( +\d+){2} +\d\.\d{3}$/
    assert long =~ ~r/^long name /
    assert String.length(titles) == String.length(a) and String.length(a) == String.length(long)
    assert warnings == Enum.map(result.warnings, & &1.message)
    assert List.last(warnings) =~ "effective sample size is below 100 for each chain for a, long name"
    short = sample!(normal(1), [[0.0]], warmup: 0, draws: 1, step_size: 0.1)
    assert Result.table(short) =~ ~r/x\[0\].* -  .* -$/m
  end

  test "draws that are put must fit" do
    result = sample!(normal(2), [[0.0, 0.0]], warmup: 0, draws: 10, step_size: 0.5)

    assert_raise ArgumentError, ~r/expected 1 x 10 x 1 f64/, fn ->
      Result.put_draws(result, ["a"], <<>>)
    end

    nan = :binary.copy(<<0::48, 0xF8, 0x7F>>, 10)

    assert_raise ArgumentError, ~r/finite draws of a/, fn ->
      Result.put_draws(result, ["a"], nan)
    end
  end

  test "values that are no floats are read" do
    values = [1.5, :nan, :infinity, :neg_infinity]
    bytes = <<1.5::float-64-little, 0::48, 0xF8, 0x7F, 0::48, 0xF0, 0x7F, 0::48, 0xF0, 0xFF>>
    assert Floats.read(bytes) == values
    assert Floats.decode(bytes) == :error
    assert Floats.decode(<<1.0e101::float-64-little>>) == :error
    refute Floats.finite?(bytes)
  end
end
