defmodule Nx.Vulkan.LeapfrogTest do
  use ExUnit.Case, async: true

  alias Nx.Vulkan.{Device, Leapfrog, NativeV}

  doctest Nx.Vulkan.Leapfrog

  @params %{
    normal: [mu: 0.5, sigma: 2.0],
    exponential: [lambda: 1.5],
    studentt: [mu: -0.5, sigma: 1.5, nu: 3],
    cauchy: [loc: 0.25, scale: 1.25],
    halfnormal: [sigma: 1.75],
    weibull: [k: 1.5, lambda: 2.0],
    beta: [alpha: 2.5, beta: 1.5],
    gamma: [alpha: 3.5, beta: 2.0],
    lognormal: [mu: -0.25, sigma: 0.75]
  }

  defp f64(values), do: for(x <- values, into: <<>>, do: <<x::float-64-little>>)
  defp f32(values), do: for(x <- values, into: <<>>, do: <<x::float-32-little>>)
  defp from_f64(binary), do: for(<<x::float-64-little <- binary>>, do: x)
  defp from_f32(binary), do: for(<<x::float-32-little <- binary>>, do: x)

  # One step of a normal chain by the formula.
  defp step({q, p}, {mu, sigma}, inv_mass, eps) do
    gradient = fn q -> -(q - mu) / (sigma * sigma) end
    half = p + 0.5 * eps * gradient.(q)
    next = q + eps * inv_mass * half
    {next, half + 0.5 * eps * gradient.(next), gradient.(next)}
  end

  test "every row of a normal chain is what the formula says" do
    [q, p, m] = [[0.3, -2.0, 4.0], [1.0, -0.5, 0.2], [0.5, 1.0, 2.0]]
    {mu, sigma, eps, k} = {0.5, 2.0, 0.2, 10}

    assert {:ok, {qs, ps, gradients, logps}} =
             Leapfrog.chain(:normal, [mu: mu, sigma: sigma], f64(q), f64(p), f64(m), eps, k)

    rows = Enum.zip([from_f64(qs), from_f64(ps), from_f64(gradients)]) |> Enum.chunk_every(3)
    assert length(rows) == k

    Enum.reduce(Enum.zip(rows, from_f64(logps)), Enum.zip(q, p), fn {row, logp}, state ->
      expected = for {state, m} <- Enum.zip(state, m), do: step(state, {mu, sigma}, m, eps)

      for {got, expected} <- Enum.zip(row, expected), i <- 0..2 do
        assert_in_delta elem(got, i), elem(expected, i), 1.0e-13
      end

      density = fn {q, _, _} ->
        -0.5 * :math.pow((q - mu) / sigma, 2) - :math.log(sigma) - 0.5 * :math.log(2 * :math.pi())
      end

      assert_in_delta logp, expected |> Enum.map(density) |> Enum.sum(), 1.0e-13
      for {q, p, _} <- expected, do: {q, p}
    end)
  end

  for {family, _} <- @params do
    test "#{family}: the gradient is the derivative of the log density, and f32 agrees with f64" do
      family = unquote(family)
      params = @params[family]
      [q, p, m] = [[0.4, -0.9], [0.3, -0.6], [0.5, 1.0]]

      # With a step of length 0 the state stays: the log density at any q.
      at = fn q ->
        {:ok, {_, _, gradient, logp}} =
          Leapfrog.chain(family, params, f64([q]), f64([0.0]), f64([1.0]), 0.0, 1)

        {hd(from_f64(gradient)), hd(from_f64(logp))}
      end

      for q <- q do
        {gradient, _} = at.(q)
        {{_, above}, {_, below}} = {at.(q + 1.0e-5), at.(q - 1.0e-5)}
        assert_in_delta gradient, (above - below) / 2.0e-5, 1.0e-7
      end

      {:ok, wide} = Leapfrog.chain(family, params, f64(q), f64(p), f64(m), 0.1, 8)
      opts = [type: :f32]

      {:ok, narrow} =
        Leapfrog.chain(family, Map.new(params), f32(q), f32(p), f32(m), 0.1, 8, opts)

      for i <- 0..3 do
        for {a, b} <- Enum.zip(from_f64(elem(wide, i)), from_f32(elem(narrow, i))) do
          assert_in_delta a, b, 1.0e-4
        end
      end
    end
  end

  test "the pack runs every family, in both types" do
    device = Device.fetch!(Device.default())

    for {family, params} <- @params, type <- [{:f, 32}, {:f, 64}] do
      shapes = [{2, 3}, {2, 3}, {2, 3}, {1 + length(params)}]
      inputs = for shape <- shapes, do: {type, shape}
      outputs = for shape <- [{2, 5, 3}, {2, 5, 3}, {2, 5, 3}, {2, 5}], do: {type, shape}
      op = "leapfrog_#{family}"
      assert {:ok, {text, _map}} = NativeV.explain(device, op, inputs, outputs, [])
      assert text =~ ~r"leapfrog/#{op} +PICKED"
      assert Leapfrog.families()[family] == Keyword.keys(params)
    end
  end

  test "chains in one call are those of calls of their own" do
    [a, b] = [[f64([0.1, 0.2]), f64([1.0, -1.0])], [f64([2.0, -3.0]), f64([0.5, 0.25])]]
    mass = f64([1.0, 2.0])

    run = fn [q, p], m, opts ->
      Leapfrog.chain(:cauchy, @params[:cauchy], q, p, m, 0.1, 5, opts)
    end

    {:ok, one} = run.(a, mass, [])
    {:ok, other} = run.(b, mass, [])
    both = Enum.zip_with(a, b, &(&1 <> &2))
    assert {:ok, all} = run.(both, mass <> mass, chains: 2)
    for i <- 0..3, do: assert(elem(all, i) == elem(one, i) <> elem(other, i))
  end

  test "the first rows do not depend on how many there are" do
    run = fn k ->
      {:ok, chain} =
        Leapfrog.chain(:gamma, @params[:gamma], f64([0.2]), f64([0.7]), f64([1.5]), 0.1, k)

      chain
    end

    {long, short} = {run.(40), run.(3)}
    for i <- 0..3, do: assert(binary_part(elem(long, i), 0, 24) == elem(short, i))
  end

  test "wrong arguments raise, and say what was expected" do
    x = f64([1.0, 2.0])

    good = [:normal, [mu: 0.0, sigma: 1.0], x, x, x, 0.1, 2, []]

    for {index, bad, message} <- [
          {0, :poisson, ~r/expected a family among .*:normal.*got: :poisson/},
          {1, [mu: 0.0], ~r/parameters \[:mu, :sigma\] of :normal, got: \[mu: 0.0\]/},
          {1, [mu: 0.0, sigma: 1.0, nu: 2.0], ~r/parameters/},
          {1, [1.0, 2.0], ~r/parameters/},
          {1, [mu: 0.0, sigma: 0.0], ~r/sigma of :normal to be above 0, got: 0.0/},
          {1, [mu: 0.0, sigma: -1], ~r/sigma of :normal to be above 0, got: -1/},
          {1, [mu: nil, sigma: 1.0], ~r/mu to be a number, got: nil/},
          {1, [mu: Integer.pow(10, 400), sigma: 1.0], ~r/mu to be finite in f64/},
          {2, f64([]), ~r/q to be a binary of d f64/},
          {2, "abc", ~r/multiple of 8 bytes, got: 3 bytes/},
          {2, [1.0, 2.0], ~r/got: \[1.0, 2.0\]/},
          {3, f64([1.0]), ~r/p to be a binary of 16 bytes like q, got: 8 bytes/},
          {4, nil, ~r/inv_mass to be a binary of 16 bytes like q, got: nil/},
          {5, :nan, ~r/eps to be a number, got: :nan/},
          {6, 0, ~r/k to be an integer of at least 1, got: 0/},
          {6, 1.5, ~r/k to be an integer/},
          {7, [type: :bf16], ~r/:type to be :f32 or :f64, got: :bf16/},
          {7, [chains: 0], ~r/:chains to be an integer of at least 1, got: 0/},
          {7, [chains: 3], ~r/each of 3 chains/},
          {7, [type: :f32, chains: 3], ~r/multiple of 12 bytes/},
          {7, [steps: 3], ~r/unknown option :steps/},
          {7, :f32, ~r/keyword list, got: :f32/},
          {7, [device: -1], ~r/expected :device/}
        ] do
      arguments = List.replace_at(good, index, bad)
      assert_raise ArgumentError, message, fn -> apply(Leapfrog, :chain, arguments) end
    end

    assert_raise ArgumentError, ~r/finite in f32/, fn ->
      Leapfrog.chain(:normal, [mu: 1.0e39, sigma: 1.0], x, x, x, 0.1, 2, type: :f32)
    end

    assert_raise ArgumentError, ~r/above 0/, fn ->
      Leapfrog.chain(:normal, [mu: 0.0, sigma: 1.0e-60], x, x, x, 0.1, 2, type: :f32)
    end

    assert {:error, :no_device, _} =
             Leapfrog.chain(:normal, [mu: 0, sigma: 1], x, x, x, 0.1, 2, device: "no such device")

    assert {:ok, _} = apply(Leapfrog, :chain, good)
  end
end
