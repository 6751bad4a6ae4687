Code.require_file("support/leapfrog.exs", __DIR__)
Code.require_file("support/densities.exs", __DIR__)

defmodule Nx.Vulkan.HMC.ReportTest do
  use ExUnit.Case, async: true

  import Nx.Vulkan.HMC.Leapfrog, only: [sample!: 3]

  alias Nx.Vulkan.HMC.{Densities, Leapfrog, Picture, Progress, Result, Sampler}

  defp normal(dims), do: Densities.normal(List.duplicate(1.0, dims))

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
  end

  describe "a picture" do
    @describetag :same_with_nx

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

      for x <- [1.0e20, -1.0e90] do
        draws = for _ <- 1..20, into: <<>>, do: <<x::float-64-little>>
        large = Result.put_draws(result, result.names, draws)
        assert Picture.write(large, Path.join(folder, "large.svg")) == :ok
      end
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

    assert List.last(warnings) =~
             "effective sample size is below 100 for each chain for a, long name"

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
end

defmodule Nx.Vulkan.HMC.BarTest do
  # What is written to stderr meanwhile counts as the bar's, whoever writes it.
  use ExUnit.Case, async: false

  import ExUnit.CaptureIO

  alias Nx.Vulkan.HMC.{Densities, Leapfrog, Progress, Sampler}

  test "is written to a terminal, and nowhere else" do
    normal = Densities.normal([1.0, 1.0])
    opts = [warmup: 20, draws: 10, seed: 1]
    run = fn opts -> Sampler.run(Leapfrog.chain(normal), {:random, 2, 2}, opts) end
    bar = capture_io(:stderr, fn -> run.([progress: &Progress.bar/1] ++ opts) end)
    assert bar =~ "\r"
    assert bar =~ "30/30 x 2, "
    assert String.ends_with?(bar, "\n")
    assert length(String.split(bar, "\n", trim: true)) == 1
    refute capture_io(:stderr, fn -> run.([progress: false] ++ opts) end) =~ "x 2, "
  end
end
