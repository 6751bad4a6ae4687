if Code.ensure_loaded?(Nx) do
  defmodule Nx.Vulkan.HMCTest do
    use ExUnit.Case, async: true

    @moduletag :synthesized

    alias Nx.Vulkan.HMC
    alias Nx.Vulkan.HMC.{Error, Parameters, Result}

    setup do
      Nx.default_backend(Nx.BinaryBackend)
      :ok
    end

    defp normal(x, mean, sd) do
      z = Nx.divide(Nx.subtract(x, mean), sd)
      Nx.sum(Nx.subtract(Nx.multiply(-0.5, Nx.pow(z, 2)), Nx.log(sd)))
    end

    defp row(result, name), do: Enum.find(result.summary, &(&1.name == name))

    test "eight schools has its published posterior" do
      schools = %{
        y: Nx.tensor([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0]),
        sigma: Nx.tensor([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])
      }

      log_density = fn %{mu: mu, tau: tau, eta: eta}, %{y: y, sigma: sigma} ->
        normal(y, Nx.add(mu, Nx.multiply(tau, eta)), sigma)
        |> Nx.add(normal(eta, 0, 1))
        |> Nx.add(normal(mu, 0, 5))
        |> Nx.subtract(Nx.log1p(Nx.pow(Nx.divide(tau, 5), 2)))
      end

      parameters = [mu: {}, tau: {:positive, {}}, eta: {8}]

      {:ok, result} =
        HMC.sample(log_density, parameters,
          data: schools,
          seed: 7,
          draws: 1000,
          target_accept: 0.9,
          progress: false
        )

      assert result.names == ["mu", "tau" | for(i <- 0..7, do: "eta[#{i}]")]

      # posteriordb, eight_schools-eight_schools_noncentered: means and their Monte Carlo errors.
      for {name, mean, mcse} <- [{"mu", 4.410518, 0.03301}, {"tau", 3.602091, 0.03193}] do
        row = row(result, name)
        error = :math.sqrt(row.mcse ** 2 + mcse ** 2)

        assert abs(row.mean - mean) < 3 * error,
               "#{name}: #{row.mean} is not #{mean} within #{3 * error}"

        assert row.rhat < 1.02
      end

      assert row(result, "tau").sd > 2.5 and row(result, "tau").sd < 4.0
    end

    test "positive numbers and those between 0 and 1 have the density they were given" do
      # A gamma of shape 3 and rate 2, a beta of 2 and 5.
      log_density = fn %{rate: x, chance: p} ->
        gamma = Nx.subtract(Nx.multiply(2, Nx.log(x)), Nx.multiply(2, x))
        Nx.add(gamma, Nx.add(Nx.log(p), Nx.multiply(4, Nx.log1p(Nx.negate(p)))))
      end

      {:ok, result} =
        HMC.sample(log_density, [rate: {:positive, {}}, chance: {:unit, {}}],
          seed: 3,
          draws: 2000,
          progress: false
        )

      for {name, mean, sd} <- [
            {"rate", 1.5, :math.sqrt(0.75)},
            {"chance", 2 / 7, :math.sqrt(10 / (49 * 8))}
          ] do
        row = row(result, name)
        assert abs(row.mean - mean) < 4 * row.mcse
        assert abs(row.sd - sd) / sd < 0.08
      end
    end

    test "op by op gives the same draws as the shader while rounding allows" do
      fun = fn q -> Nx.negate(Nx.sum(Nx.pow(q, 2))) end
      opts = [seed: 5, chains: 2, warmup: 0, draws: 5, step_size: 0.3, progress: false]
      {:ok, chain} = HMC.sample(fun, 3, opts)
      {:ok, per_op} = HMC.sample(fun, 3, [method: :per_op] ++ opts)

      for {a, b} <- Enum.zip(floats(chain.draws), floats(per_op.draws)),
          do: assert_in_delta(a, b, 1.0e-10)
    end

    test "what no shader computes is named, with the way out, which works" do
      fun = fn q -> q |> Nx.sort() |> Nx.pow(2) |> Nx.sum() |> Nx.negate() end
      assert {:error, %ArgumentError{message: message}} = HMC.sample(fun, 3, progress: false)
      assert message =~ "no shader computes sort (f64[3])"
      assert message =~ "method: :per_op"
      opts = [method: :per_op, chains: 1, warmup: 20, draws: 10, seed: 1, progress: false]
      assert {:ok, %HMC.Result{count: 10}} = HMC.sample(fun, 3, opts)
    end

    test "single precision samples too" do
      fun = fn q -> Nx.multiply(-0.5, Nx.sum(Nx.pow(q, 2))) end
      {:ok, result} = HMC.sample(fun, 2, type: :f32, seed: 1, draws: 1000, progress: false)

      for row <- result.summary,
          do: assert(abs(row.mean) < 4 * row.mcse and abs(row.sd - 1) < 0.1)
    end

    test "a density without a value to start from says so" do
      assert {:error, %HMC.Error{kind: :initial_point, message: message}} =
               HMC.sample(fn q -> Nx.log(Nx.subtract(-1, Nx.abs(q[0]))) end, 1,
                 progress: false,
                 chains: 1,
                 seed: 1
               )

      assert message =~ "density"
    end

    test "a density that gives a vector is an error" do
      for method <- [:chain, :per_op] do
        result =
          try do
            HMC.sample(fn q -> q end, 2, method: method, progress: false)
          rescue
            error in ArgumentError -> {:error, error}
          end

        assert {:error, %ArgumentError{message: message}} = result
        assert message =~ "scalar, got: one of shape {2}"
      end
    end

    test "data has its names, and no vectorized axes" do
      data = Nx.iota({2, 3}, type: :f64, names: [:a, :b])
      sums = fn q, x -> Nx.negate(Nx.sum(Nx.pow(Nx.subtract(q[0], Nx.sum(x, axes: [:b])), 2))) end
      opts = [data: data, chains: 1, seed: 3, warmup: 60, draws: 60, progress: false]

      [chain, per_op] =
        for method <- [:chain, :per_op], do: HMC.sample!(sums, 1, [method: method] ++ opts)

      for {x, y} <- Enum.zip(floats(chain.draws), floats(per_op.draws)),
          do: assert_in_delta(x, y, 1.0e-6)

      vectors = Nx.vectorize(data, :rows)

      devectorized = fn q, x -> Nx.sum(Nx.multiply(q, Nx.sum(Nx.devectorize(x)))) end
      opts = Keyword.put(opts, :data, vectors)
      assert {:error, %ArgumentError{message: message}} = HMC.sample(devectorized, 1, opts)
      assert message =~ "expected :data without vectorized axes"

      parts = fn q, x -> Nx.sum(Nx.multiply(q, Nx.imag(x))) end
      opts = Keyword.put(opts, :data, Nx.Constants.i())
      assert {:error, %ArgumentError{message: message}} = HMC.sample(parts, 1, opts)
      assert message =~ "expected :data that is real, got:" and message =~ "c64"
    end

    test "a broadcast along axes of other extents is an error" do
      x = Nx.iota({2}, type: :f32) |> Nx.broadcast({5, 2}) |> Nx.broadcast({2, 5, 2})
      assert Nx.shape(x) == {2, 5, 2}

      twice = fn q, x ->
        x |> Nx.broadcast({5, 2}) |> Nx.broadcast({2, 5, 2}) |> Nx.multiply(q) |> Nx.sum()
      end

      assert {:error, %ArgumentError{message: message}} =
               Nx.Vulkan.Density.new(twice, 1, data: Nx.iota({2}, type: :f32))

      assert message =~ "broadcast: the shape {2} does not fit {2, 5, 2} along axes [1]"
    end

    test "the search for a step size comes back from far away" do
      normal = fn q -> Nx.multiply(-0.5, Nx.sum(Nx.multiply(q, q))) end
      opts = [chains: 1, warmup: 20, draws: 5, seed: 1, progress: false]

      for step_size <- [1.0e9, 1.0e-10] do
        assert {:ok, result} = HMC.sample(normal, 2, [step_size: step_size] ++ opts)
        assert [step] = result.step_size
        assert step > 0.01 and step < 10
      end
    end

    test "the draws until an error are of the parameters" do
      parameters = [x: {:positive, {}}]
      log_density = fn %{x: x} -> Nx.subtract(Nx.log(x), x) end
      opts = [seed: 1, chains: 2, warmup: 50, draws: 100, progress: false]
      {:ok, result} = HMC.sample(log_density, parameters, opts)
      logs = for x <- floats(result.draws), into: <<>>, do: <<:math.log(x)::float-64-little>>
      error = %Error{kind: :chain, message: "", partial: Result.put_draws(result, ["x"], logs)}
      {:error, told} = Parameters.constrained({:error, error}, Parameters.new!(parameters))
      pairs = Enum.zip(floats(told.partial.draws), floats(result.draws))
      for {x, y} <- pairs, do: assert_in_delta(x, y, 1.0e-12 * y)
      assert [%{name: "x"}] = told.partial.summary
      other = {:error, %{error | partial: nil}}
      assert Parameters.constrained(other, Parameters.new!(parameters)) == other
    end

    test "misuse names what was expected" do
      fun = fn %{a: a} -> Nx.sum(a) end

      for {parameters, opts, message} <- [
            {0, [], "positive number of coordinates or a list of names with shapes, got: 0"},
            {[a: {0}], [], "shape of a to be of positive integers, got: {0}"},
            {[a: {1}, a: {}], [], "each parameter once, got: :a twice"},
            {[a: 3], [], "a name with a shape"},
            {[a: {1}], [method: :metropolis],
             ":method to be :chain or :per_op, got: :metropolis"},
            {[a: {1}], [chains: 0], ":chains to be a positive integer, got: 0"},
            {[a: {1}], [init: :zero], ":init to be :random or a list of positions, got: :zero"},
            {[a: {1}], [chains: 3, init: [[0.0], [1.0]]],
             ":init to have a position for each of 3 chains, got: 2"},
            {[a: {1}], [init: [[0.0, 1.0]]], ":init to be lists of 1 numbers, got: [0.0, 1.0]"},
            {[a: {1}], [type: :s32, method: :per_op], ":type to be :f32 or :f64, got: :s32"},
            {[{:a, {1}}, {:"a[0]", {}}], [], "each name once, got: \"a[0]\" twice"},
            {[a: {1}], [data: Nx.tensor(1)], "log density of 2 argument(s)"},
            {[a: {1}], [draws: 0], ":draws"},
            {[a: {1}], [drafts: 3], "drafts"},
            {[a: {1}], [chain: 2], ":chains"}
          ] do
        error =
          assert_raise ArgumentError, fn ->
            HMC.sample(fun, parameters, opts ++ [progress: false])
          end

        assert error.message =~ message
      end

      # The options of the sampler alone were allowed, and two shown that nobody had written.
      unknown = catch_error(HMC.sample(fun, [a: {1}], chain: 2)).message
      assert unknown =~ "unknown keys [:chain] in [chain: 2], the allowed keys are: ["

      for key <- ~w(data chains type init device method warmup)a,
          do: assert(unknown =~ inspect(key))
    end

    defp floats(binary), do: for(<<x::float-64-little <- binary>>, do: x)
  end
end
