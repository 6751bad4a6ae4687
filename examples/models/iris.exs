defmodule Iris do
  @moduledoc """
  How wide an iris's petal is for its length, by species: a line for each, whose intercepts and slopes come from a common
  population. Lengths and widths in centimetres; lengths are counted from their mean, 3.758.
  """
  import Nx.Defn

  @species %{"setosa" => 0, "versicolor" => 1, "virginica" => 2}

  @doc """
  The parameters, as `Nx.Vulkan.HMC.sample/3` takes them. `intercept` and `slope` are in units of their populations'
  deviations, so that the sampler meets no funnel.
  """
  def parameters do
    [
      mean_intercept: {},
      mean_slope: {},
      sd_intercept: {:positive, {}},
      sd_slope: {:positive, {}},
      intercept: {3},
      slope: {3},
      noise: {:positive, {}}
    ]
  end

  @doc """
  150 flowers: length, width, and species 0, 1 or 2.
  """
  def flowers do
    [_header | lines] =
      __DIR__ |> Path.join("../iris.csv") |> File.read!() |> String.split("\n", trim: true)

    rows = for line <- lines, do: String.split(line, ",")
    column = fn at -> for row <- rows, do: row |> Enum.at(at) |> String.to_float() end
    tensor = &Nx.tensor(&1, type: &2, backend: Nx.BinaryBackend)

    %{
      length: tensor.(for(x <- column.(2), do: x - 3.758), :f64),
      width: tensor.(column.(3), :f64),
      species: tensor.(for(row <- rows, do: @species[List.last(row)]), :s32)
    }
  end

  defn log_density(parameters, flowers) do
    intercepts = parameters.mean_intercept + parameters.sd_intercept * parameters.intercept
    slopes = parameters.mean_slope + parameters.sd_slope * parameters.slope

    width =
      Nx.take(intercepts, flowers.species) + Nx.take(slopes, flowers.species) * flowers.length

    normal(flowers.width, width, parameters.noise) + normal(parameters.intercept, 0, 1) +
      normal(parameters.slope, 0, 1) +
      normal(parameters.mean_intercept, 1, 1) + normal(parameters.mean_slope, 0, 1) +
      half_normal(2 * parameters.sd_intercept) + half_normal(4 * parameters.sd_slope) +
      half_normal(parameters.noise)
  end

  # Both up to a constant. Before the data, intercepts differ by about 0.5 cm and slopes by about 0.25.
  defnp(normal(x, mean, sd), do: Nx.sum(-0.5 * ((x - mean) / sd) ** 2 - Nx.log(sd * 1.0)))
  defnp(half_normal(x), do: -0.5 * x ** 2)
end
