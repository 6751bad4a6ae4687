defmodule Training.WithNx do
  @moduledoc false
  # The training through Nx: the gradient comes from Nx.Defn.value_and_grad.

  import Nx.Defn

  alias Training.Problem

  @read_every 10
  @rate Problem.rate()

  def train(weights, batches, steps, report) do
    weights = weights |> Tuple.to_list() |> Enum.map(&tensor/1) |> List.to_tuple()
    batches = for {x, y} <- batches, do: {tensor(x), tensor(y)}
    {x, y} = hd(batches)
    step = Nx.Defn.compile(&step/3, [weights, x, y])

    {losses, weights} =
      Enum.map_reduce(1..steps, weights, fn i, weights ->
        {x, y} = Enum.at(batches, rem(i - 1, length(batches)))
        {loss, weights} = step.(weights, x, y)
        report.(i, if(rem(i, @read_every) == 0, do: Nx.to_number(loss)))
        {loss, weights}
      end)

    {Enum.map(losses, &Nx.to_number/1),
     weights |> Tuple.to_list() |> Enum.map(&Nx.to_list/1) |> List.to_tuple()}
  end

  defp tensor(numbers), do: Nx.tensor(numbers, type: :f32)

  defn step(weights, x, y) do
    {loss, {dw1, db1, dw2, db2}} = value_and_grad(weights, &loss(&1, x, y))
    {w1, b1, w2, b2} = weights
    {loss, {w1 - @rate * dw1, b1 - @rate * db1, w2 - @rate * dw2, b2 - @rate * db2}}
  end

  defnp loss({w1, b1, w2, b2}, x, y) do
    hidden = x |> Nx.dot(w1) |> Nx.add(b1) |> Nx.tanh()
    errors = hidden |> Nx.dot(w2) |> Nx.add(b2) |> Nx.subtract(y)
    Nx.mean(errors * errors)
  end
end
