defmodule Workloads.Statistics do
  @moduledoc """
  What Scholar does for statisticians, on 150 flowers: a linear regression, k-means and a principal component analysis. By
  Scholar where it can be found, else by the same formulas in Nx.
  """

  @doc "Whether Scholar is here."
  def scholar?, do: Code.ensure_loaded?(Scholar.Linear.LinearRegression)

  @doc "Measurements of 150 flowers on the default backend."
  def flowers(type \\ :f32) do
    [_header | lines] =
      __DIR__ |> Path.join("../iris.csv") |> File.read!() |> String.split("\n", trim: true)

    rows =
      for line <- lines,
          do: line |> String.split(",") |> Enum.take(4) |> Enum.map(&String.to_float/1)

    Nx.tensor(rows, type: type)
  end

  @doc "The width of a petal by the other measurements: three coefficients and the intercept."
  def regression(flowers, scholar?) do
    {x, y} = {flowers[[.., 0..2]], flowers[[.., 3]]}

    if scholar? do
      model = apply(Scholar.Linear.LinearRegression, :fit, [x, y])
      Nx.concatenate([model.coefficients, Nx.reshape(model.intercept, {1})])
    else
      means = Nx.mean(x, axes: [0])
      {u, s, vt} = Nx.LinAlg.svd(Nx.subtract(x, means), full_matrices?: false)
      onto = Nx.dot(Nx.transpose(u), Nx.subtract(y, Nx.mean(y)))
      coefficients = Nx.dot(Nx.transpose(vt), Nx.divide(onto, s))
      intercept = Nx.subtract(Nx.mean(y), Nx.dot(coefficients, means))
      Nx.concatenate([coefficients, Nx.reshape(intercept, {1})])
    end
  end

  @doc "The middles of three clusters, ordered, and each flower's distance to its own."
  def clusters(flowers, scholar?) do
    middles =
      if scholar? do
        opts = [num_clusters: 3, num_runs: 1, key: Nx.Random.key(7)]
        apply(Scholar.Cluster.KMeans, :fit, [flowers, opts]).clusters
      else
        Enum.reduce(
          1..10,
          Nx.stack([flowers[0], flowers[50], flowers[100]]),
          &lloyd(&1, &2, flowers)
        )
      end

    middles = Nx.take(middles, Nx.argsort(middles[[.., 0]]))
    {middles, flowers |> distances(middles) |> Nx.reduce_min(axes: [1])}
  end

  defp lloyd(_turn, middles, flowers) do
    nearest = flowers |> distances(middles) |> Nx.argmin(axis: 1) |> Nx.new_axis(1)
    mine = Nx.as_type(Nx.equal(nearest, Nx.iota({1, 3})), flowers.type)
    Nx.divide(Nx.dot(Nx.transpose(mine), flowers), Nx.new_axis(Nx.sum(mine, axes: [0]), 1))
  end

  defp distances(flowers, middles) do
    Nx.subtract(Nx.new_axis(flowers, 1), middles) |> Nx.pow(2) |> Nx.sum(axes: [2])
  end

  @doc "Two principal components, each with its largest part positive, and the variances along them."
  def components(flowers, scholar?) do
    {components, variances} =
      if scholar? do
        model = apply(Scholar.Decomposition.PCA, :fit, [flowers, [num_components: 2]])
        {model.components, model.explained_variance}
      else
        {_, s, vt} =
          Nx.LinAlg.svd(Nx.subtract(flowers, Nx.mean(flowers, axes: [0])), full_matrices?: false)

        {vt[0..1], Nx.divide(Nx.pow(s[0..1], 2), Nx.axis_size(flowers, 0) - 1)}
      end

    largest = Nx.argmax(Nx.abs(components), axis: 1, keep_axis: true)

    {Nx.multiply(components, Nx.sign(Nx.take_along_axis(components, largest, axis: 1))),
     variances}
  end
end
