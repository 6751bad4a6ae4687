Code.require_file("support/leapfrog.exs", __DIR__)
Code.require_file("support/densities.exs", __DIR__)

defmodule Nx.Vulkan.HMC.SamplerTest do
  use ExUnit.Case, async: true

  @moduletag :synthesized
  @moduletag :same_with_nx

  import Nx.Vulkan.HMC.Leapfrog, only: [sample!: 3]

  alias Nx.Vulkan.HMC.{Densities, Error, Leapfrog, Result, Sampler}

  defp normal(dims), do: Densities.normal(List.duplicate(1.0, dims))

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
      assert Exception.message(error) =~ "all of it is lost"

      assert {:error, %Error{reason: {:device_lost, 500}, partial: partial} = error} =
               Sampler.run(failing.(500), {:random, 2, 2}, opts)

      assert %Result{count: count} = partial
      assert count > 50
      assert Exception.message(error) =~ "(in sampling, after #{count} iterations of 2 chains"
    end

    test "says what the chain function answered instead" do
      for {answer, told} <- [
            {:ok, "got: :ok"},
            {{:ok, {<<0::64>>, <<0::64>>, nil, <<>>}}, "{:ok, {8 bytes, 8 bytes, nil, 0 bytes}}"},
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
            {[step_size: 0.0],
             "expected :step_size to be a positive number below 1.0e100, got: 0.0"},
            {[step_size: 10 ** 400], "expected :step_size to be a positive number"},
            {[inv_mass: [1.0, -1.0]], "expected :inv_mass to be a list of numbers between"},
            {[inv_mass: [1.0, 10 ** 400]], "expected :inv_mass to be a list of numbers between"},
            {[inv_mass: [1.0e-320, 1.0]], "expected :inv_mass to be a list of numbers between"},
            {[names: [:a, "a"]], "expected each name once, got: \"a\" twice"},
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
end
