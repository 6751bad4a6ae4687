defmodule Workloads.Networks do
  @moduledoc """
  A dense network on flowers and a small convolutional one on drawn bars, trained by plain gradient descent. The numbers that
  come in are the same on every backend.
  """
  import Nx.Defn

  @doc """
  Name, parameters, batches `{inputs, targets}`, loss and learning rate of each network.
  """
  def all,
    do: [{"dense", dense(), &dense_loss/2, 0.01}, {"convolutional", cnn(), &cnn_loss/2, 0.1}]

  @doc """
  Trains on the default backend: the loss of each step, and the gradients of the first one.
  """
  def train({params, batches}, loss, rate, steps) do
    step = Nx.Defn.jit(fn params, batch -> value_and_grad(params, &loss.(&1, batch)) end)

    {losses, {_params, first}} =
      batches
      |> Stream.cycle()
      |> Enum.take(steps)
      |> Enum.map_reduce({here(params), nil}, fn batch, {params, first} ->
        {value, gradients} = step.(params, here(batch))

        stepped =
          Enum.zip_with(list(params), list(gradients), &Nx.subtract(&1, Nx.multiply(rate, &2)))

        {Nx.to_number(value), {List.to_tuple(stepped), first || gradients}}
      end)

    {losses, list(first)}
  end

  @doc """
  How far gradients are apart at most, as a part of the sum of their sizes.
  """
  def apart(gradients, others) do
    [ours, theirs] = for list <- [gradients, others], do: Enum.flat_map(list, &Nx.to_flat_list/1)
    most = ours |> Enum.zip_with(theirs, &abs(&1 - &2)) |> Enum.max()
    most / Enum.sum_by(theirs, &abs/1)
  end

  defp list(tuple), do: Tuple.to_list(tuple)
  defp here(tuple), do: tuple |> list() |> Enum.map(&copy/1) |> List.to_tuple()

  defp copy(tensor) do
    {backend, opts} = Nx.default_backend()
    Nx.backend_copy(tensor, {backend, opts})
  end

  # Dense(4 -> 32, tanh) -> Dense(1), mean squared error, as examples/training.exs has it.
  defp dense do
    alias Training.Problem
    {w1, b1, w2, b2} = Problem.weights(32)
    {flowers, _} = Problem.flowers()
    batches = for {rows, species} <- Problem.batches(flowers, 16), do: {host(rows), host(species)}
    {{host(w1), host(b1), host(w2), host(b2)}, batches}
  end

  defn dense_loss({w1, b1, w2, b2}, {rows, species}) do
    hidden = Nx.tanh(Nx.dot(rows, w1) + b1)
    Nx.mean((Nx.dot(hidden, w2) + b2 - species) ** 2)
  end

  # Conv(1 -> 4, 3x3, relu) -> max pool -> Conv(4 -> 8, 3x3, relu) -> mean -> Dense(2), cross entropy: do the bars lie or stand?
  defp cnn do
    weights =
      {noise({4, 1, 3, 3}, 1, 0.5), noise({8, 4, 3, 3}, 2, 0.3), noise({8, 2}, 3, 0.5),
       host([0.0, 0.0])}

    batches =
      for batch <- 1..4 do
        {images, kinds} = Enum.unzip(for image <- 1..8, do: drawn(8 * batch + image))
        {images |> Nx.stack() |> Nx.new_axis(1), host(kinds)}
      end

    {weights, batches}
  end

  defp drawn(seed) do
    place = rem(seed * 5, 7) + 1
    lying? = rem(seed, 2) == 0
    axis = if lying?, do: 0, else: 1
    bar = Nx.equal(Nx.iota({10, 10}, axis: axis, backend: Nx.BinaryBackend), place)
    {Nx.add(bar, noise({10, 10}, 100 + seed, 0.3)), if(lying?, do: [1.0, 0.0], else: [0.0, 1.0])}
  end

  defn cnn_loss({first, second, dense, bias}, {images, kinds}) do
    pooled =
      images
      |> Nx.conv(first, padding: :same)
      |> Nx.max(0)
      |> Nx.window_max({1, 1, 2, 2}, strides: [1, 1, 2, 2])

    seen = pooled |> Nx.conv(second, padding: :same) |> Nx.max(0) |> Nx.mean(axes: [2, 3])
    scores = Nx.dot(seen, dense) + bias
    logs = scores - Nx.logsumexp(scores, axes: [1], keep_axes: true)
    -Nx.mean(Nx.sum(logs * kinds, axes: [1]))
  end

  # Uniform in [-scale, scale), the same everywhere.
  defp noise(shape, seed, scale) do
    {list, _} =
      Enum.map_reduce(1..Tuple.product(shape), :rand.seed_s(:exsss, seed), fn _, state ->
        {x, state} = :rand.uniform_s(state)
        {scale * (2 * x - 1), state}
      end)

    list |> host() |> Nx.reshape(shape)
  end

  defp host(numbers), do: Nx.tensor(numbers, type: :f32, backend: Nx.BinaryBackend)
end
