defmodule Workloads.Axon do
  @moduledoc """
  The networks of `Workloads.Networks` as Axon builds and trains them, for those who have Axon.
  """

  @doc """
  Losses of `steps` steps of Axon's own training loop on the default backend, averaged up to each.
  """
  def train(name, batches, rate, steps) do
    {model, loss} = model(name)
    start = Nx.with_default_backend(Nx.BinaryBackend, fn -> start(model, hd(batches)) end)
    {init, step} = Axon.Loop.train_step(model, loss, Polaris.Optimizers.sgd(learning_rate: rate))

    {backend, _opts} = Nx.default_backend()

    {losses, _} =
      batches
      |> Stream.cycle()
      |> Enum.take(steps)
      |> Enum.map_reduce(nil, fn {x, y}, state ->
        batch = {here(x), here(y)}
        state = step.(batch, state || init.(batch, here(start)))
        %Nx.Tensor{data: %^backend{}} = state.loss
        {Nx.to_number(state.loss), state}
      end)

    losses
  end

  defp model("dense"), do: {dense(), :mean_squared_error}
  defp model("convolutional"), do: {cnn(), :categorical_cross_entropy}

  defp dense do
    Axon.input("x", shape: {nil, 4}) |> Axon.dense(32, activation: :tanh) |> Axon.dense(1)
  end

  defp cnn do
    Axon.input("x", shape: {nil, 1, 10, 10})
    |> Axon.conv(4, kernel_size: 3, padding: :same, activation: :relu, channels: :first)
    |> Axon.max_pool(kernel_size: 2, channels: :first)
    |> Axon.conv(8, kernel_size: 3, padding: :same, activation: :relu, channels: :first)
    |> Axon.flatten()
    |> Axon.dense(2, activation: :softmax)
  end

  # The same parameters on every backend.
  defp start(model, {x, _}) do
    {init, _} = Axon.build(model, seed: 7)
    init.(x, Axon.ModelState.empty())
  end

  defp here(container) do
    {backend, opts} = Nx.default_backend()
    Nx.backend_copy(container, {backend, opts})
  end
end
