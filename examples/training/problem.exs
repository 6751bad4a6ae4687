defmodule Training.Problem do
  @moduledoc false
  # What is learned: the species of an iris as a number (0, 1, 2) from four measurements, by
  # Dense(4 -> hidden, tanh) -> Dense(1), mean squared error and plain gradient descent.

  # 8 batches of 16; the other 22 flowers are kept to look at the result.
  @training_rows 128
  @species %{"setosa" => 0.0, "versicolor" => 1.0, "virginica" => 2.0}

  def rate, do: 0.01

  @doc """
  The flowers in a fixed random order, each measurement scaled to mean 0 and deviation 1: `{training, held_out}`,
  both lists of `{measurements, species}`.
  """
  def flowers do
    [_header | lines] =
      __DIR__ |> Path.join("../iris.csv") |> File.read!() |> String.split("\n", trim: true)

    {rows, species} = lines |> Enum.map(&parse/1) |> Enum.unzip()

    rows
    |> Enum.zip_with(&standardize/1)
    |> Enum.zip_with(& &1)
    |> Enum.zip(species)
    |> Enum.zip(random(150, 7))
    |> Enum.sort_by(fn {_flower, order} -> order end)
    |> Enum.map(fn {flower, _order} -> flower end)
    |> Enum.split(@training_rows)
  end

  defp parse(line) do
    {measurements, [species]} = line |> String.split(",") |> Enum.split(4)
    {Enum.map(measurements, &String.to_float/1), Map.fetch!(@species, species)}
  end

  defp standardize(column) do
    mean = Enum.sum(column) / length(column)
    deviation = :math.sqrt(Enum.sum(for x <- column, do: (x - mean) ** 2) / length(column))
    Enum.map(column, &f32((&1 - mean) / deviation))
  end

  @doc """
  Initial weights `{w1, b1, w2, b2}`: uniform by Glorot's rule, biases 0. The same on every machine.
  """
  def weights(hidden) do
    {first, second} = (5 * hidden) |> random(1) |> Enum.split(4 * hidden)
    w1 = first |> scale(4 + hidden) |> Enum.chunk_every(hidden)
    w2 = second |> scale(hidden + 1) |> Enum.map(&[&1])
    {w1, List.duplicate(0.0, hidden), w2, [0.0]}
  end

  defp scale(numbers, fans) do
    limit = :math.sqrt(6 / fans)
    Enum.map(numbers, &f32(&1 * limit))
  end

  # Uniform in [-1, 1), by Knuth's 64-bit linear congruential generator; the upper bits are the random ones.
  defp random(count, seed) do
    seed
    |> Stream.iterate(&rem(&1 * 6_364_136_223_846_793_005 + 1_442_695_040_888_963_407, 2 ** 64))
    |> Stream.drop(1)
    |> Enum.take(count)
    |> Enum.map(&(Bitwise.bsr(&1, 33) / 2 ** 30 - 1))
  end

  defp f32(x) do
    <<rounded::float-32>> = <<x::float-32>>
    rounded
  end

  @doc """
  Numbers in nested lists as the bytes of an f32 tensor, and back.
  """
  def to_f32(numbers),
    do: for(x <- List.flatten([numbers]), into: <<>>, do: <<x::float-32-native>>)

  def from_f32(bytes), do: for(<<x::float-32-native <- bytes>>, do: x)

  @doc """
  Flowers as `{measurements, species}` matrices of `size` rows.
  """
  def batches(flowers, size) do
    for batch <- Enum.chunk_every(flowers, size, size, :discard) do
      {rows, species} = Enum.unzip(batch)
      {rows, Enum.map(species, &[&1])}
    end
  end
end
