defmodule Training.Lists do
  @moduledoc false
  # The same training on lists of Elixir floats: what the others are compared with.

  alias Training.Problem

  def train(weights, batches, steps, report) do
    Enum.map_reduce(1..steps, weights, fn step, weights ->
      {x, y} = Enum.at(batches, rem(step - 1, length(batches)))
      {loss, weights} = step(weights, x, y)
      report.(step, loss)
      {loss, weights}
    end)
  end

  @doc """
  What the network says about each row.
  """
  def predict({w1, b1, w2, [b2]}, x) do
    hidden = for row <- dot(x, w1), do: Enum.zip_with(row, b1, &:math.tanh(&1 + &2))
    {hidden, for([p] <- dot(hidden, w2), do: p + b2)}
  end

  defp step({w1, b1, w2, b2} = weights, x, y) do
    {hidden, predictions} = predict(weights, x)
    errors = Enum.zip_with(predictions, y, fn p, [y] -> p - y end)
    loss = Enum.sum(for e <- errors, do: e * e) / length(errors)

    slopes = for e <- errors, do: [2 * e / length(errors)]

    back =
      Enum.zip_with(dot(slopes, transpose(w2)), hidden, fn slopes, row ->
        Enum.zip_with(slopes, row, &(&1 * (1 - &2 * &2)))
      end)

    {loss,
     {descend(w1, dot(transpose(x), back)), descend(b1, sum(back)),
      descend(w2, dot(transpose(hidden), slopes)), descend(b2, sum(slopes))}}
  end

  defp descend(weights, slopes) when is_list(weights),
    do: Enum.zip_with(weights, slopes, &descend/2)

  defp descend(weight, slope), do: weight - Problem.rate() * slope

  defp dot(a, b) do
    columns = transpose(b)
    for row <- a, do: for(column <- columns, do: Enum.sum(Enum.zip_with(row, column, &*/2)))
  end

  defp sum(rows), do: Enum.zip_with(rows, &Enum.sum/1)
  defp transpose(rows), do: Enum.zip_with(rows, & &1)
end
