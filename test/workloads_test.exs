if Code.ensure_loaded?(Nx) do
  for file <-
        ~w(training/problem models/regime workloads/networks workloads/regime workloads/statistics),
      do: Code.require_file("../examples/#{file}.exs", __DIR__)

  defmodule Nx.Vulkan.WorkloadsTest do
    # What the examples compute, here and on Nx.BinaryBackend.
    use ExUnit.Case, async: true

    alias Workloads.{Networks, Regime, Statistics}

    defp both(fun) do
      for backend <- [Nx.Vulkan.VulkanoBackend, Nx.BinaryBackend],
          do: Nx.with_default_backend(backend, fun)
    end

    defp apart(ours, theirs),
      do: Regime.apart(Nx.to_flat_list(ours), Nx.to_flat_list(theirs))

    for {name, _, _, _} <- Networks.all() do
      test "a #{name} network learns the same in every step" do
        {_, data, loss, rate} = List.keyfind(Networks.all(), unquote(name), 0)

        [{ours, gradients}, {theirs, others}] =
          both(fn -> Networks.train(data, loss, rate, 10) end)

        assert length(ours) == 10 and List.last(ours) < hd(ours)
        for {x, y} <- Enum.zip(ours, theirs), do: assert_in_delta(x, y, 2.0e-6)
        assert Networks.apart(gradients, others) <= 1.0e-8
      end
    end

    test "the regime model in double precision" do
      [{ours, gradient}, {theirs, other}] = both(fn -> Regime.chain(4) end)
      assert length(ours) == 5
      assert Regime.apart([hd(ours)], [Regime.log_density()]) <= 1.0e-12
      assert Regime.apart(ours, theirs) <= 1.0e-12
      assert Regime.apart(gradient, other) <= 1.0e-12
    end

    test "a linear regression" do
      [ours, theirs] = both(fn -> Statistics.regression(Statistics.flowers(), false) end)
      assert Nx.shape(ours) == {4}
      assert apart(ours, theirs) <= 2.0e-6
      # numpy.linalg.lstsq of numpy 2.4.6, in f64.
      expected = [-0.207266073757, 0.222828543861, 0.524083114778, -0.240307389112]
      assert Regime.apart(Nx.to_flat_list(ours), expected) <= 2.0e-6
    end

    test "k-means" do
      [{ours, distances}, {theirs, others}] =
        both(fn -> Statistics.clusters(Statistics.flowers(), false) end)

      assert Nx.shape(ours) == {3, 4}
      assert apart(ours, theirs) <= 2.0e-6
      assert apart(distances, others) <= 2.0e-6
    end

    test "a principal component analysis" do
      # numpy.linalg.svd of numpy 2.4.6, in f64. Nx.BinaryBackend stops rotating earlier, and is 6e-6 off.
      expected = [
        [0.3613865917853687, -0.08452251406456868, 0.8566706059498351, 0.3582891971515508],
        [0.6565887712868422, 0.7301614347850266, -0.17337266279585684, -0.0754810199174632]
      ]

      for {type, allowed} <- [f32: 5.0e-7, f64: 1.0e-13] do
        [{ours, variances}, {theirs, others}] =
          both(fn -> Statistics.components(Statistics.flowers(type), false) end)

        assert Regime.apart(Nx.to_flat_list(ours), List.flatten(expected)) <= allowed
        assert apart(ours, theirs) <= 1.0e-5
        assert apart(variances, others) <= 2.0e-6
      end
    end
  end
end
