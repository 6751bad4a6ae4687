Code.require_file("support/leapfrog.exs", __DIR__)
Code.require_file("support/densities.exs", __DIR__)

defmodule Nx.Vulkan.HMC.TreeTest do
  use ExUnit.Case, async: true

  @moduletag :synthesized
  @moduletag :same_with_nx

  import Nx.Vulkan.HMC.Leapfrog, only: [sample!: 3]

  alias Nx.Vulkan.HMC.{Adaptation, Chain, Densities, Dispatch, Floats, Leapfrog, Schedule, Tree}

  defp normal(dims), do: Densities.normal(List.duplicate(1.0, dims))

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

  test "values that are no floats are read" do
    values = [1.5, :nan, :infinity, :neg_infinity]
    bytes = <<1.5::float-64-little, 0::48, 0xF8, 0x7F, 0::48, 0xF0, 0x7F, 0::48, 0xF0, 0xFF>>
    assert Floats.read(bytes) == values
    assert Floats.decode(bytes) == :error
    assert Floats.decode(<<1.0e101::float-64-little>>) == :error
    refute Floats.finite?(bytes)
  end
end
