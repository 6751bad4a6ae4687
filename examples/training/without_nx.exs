defmodule Training.WithoutNx do
  @moduledoc false
  # The training without Nx: the same ops, forward and backward, asked of the host one by one.

  alias Nx.Vulkan.{Device, NativeV, Request}
  alias Training.Problem

  @f32 {:f, 32}
  @read_every 10

  def train({w1, b1, w2, b2}, batches, steps, report) do
    device = Device.fetch!(Device.default())
    hidden = length(b1)
    size = batches |> hd() |> elem(0) |> length()
    sizes = %{device: device, batch: size, hidden: hidden}

    weights =
      {tensor(device, w1, {4, hidden}), tensor(device, b1, {hidden}),
       tensor(device, w2, {hidden, 1}), tensor(device, b2, {1})}

    batches =
      for {x, y} <- batches, do: {tensor(device, x, {size, 4}), tensor(device, y, {size, 1})}

    {losses, weights} =
      Enum.map_reduce(1..steps, weights, fn i, weights ->
        {x, y} = Enum.at(batches, rem(i - 1, length(batches)))
        {loss, weights} = step(sizes, weights, x, y)
        report.(i, if(rem(i, @read_every) == 0, do: number(loss)))
        {loss, weights}
      end)

    {Enum.map(losses, &number/1), read(weights, hidden)}
  end

  defp step(%{batch: batch, hidden: hidden, device: device}, {w1, b1, w2, b2}, x, y) do
    wide = {batch, hidden}

    activations = run("tanh", [run("add", [dot(x, 1, w1, 0, wide), b1], wide)], wide)
    outputs = run("add", [dot(activations, 1, w2, 0, {batch, 1}), b2], {batch, 1})
    errors = run("subtract", [outputs, y], {batch, 1})
    squares = run("multiply", [errors, errors], {batch, 1})
    loss = run("divide", [sum(squares, [0, 1], {}), constant(device, batch)], {})

    slopes = run("multiply", [errors, constant(device, 2 / batch)], {batch, 1})
    bent = run("multiply", [activations, activations], wide)
    bent = run("subtract", [constant(device, 1), bent], wide)
    back = run("multiply", [dot(slopes, 1, w2, 1, wide), bent], wide)

    {loss,
     {descend(device, w1, dot(x, 0, back, 0, {4, hidden}), {4, hidden}),
      descend(device, b1, sum(back, [0], {hidden}), {hidden}),
      descend(device, w2, dot(activations, 0, slopes, 0, {hidden, 1}), {hidden, 1}),
      descend(device, b2, sum(slopes, [0], {1}), {1})}}
  end

  defp descend(device, weights, slopes, shape) do
    change = run("multiply", [slopes, constant(device, Problem.rate())], shape)
    run("subtract", [weights, change], shape)
  end

  defp dot(a, axis_a, b, axis_b, shape) do
    attrs = [contract_a: [axis_a], batch_a: [], contract_b: [axis_b], batch_b: []]
    run("dot", [a, b], shape, attrs)
  end

  defp sum(tensor, axes, shape), do: run("sum", [tensor], shape, axes: axes)

  defp run(op, operands, shape, attrs \\ []) do
    [result] = ok!(Request.run(op, operands, [{@f32, shape}], attrs))
    result
  end

  defp tensor(device, numbers, shape),
    do: ok!(Request.upload(device, @f32, shape, Problem.to_f32(numbers)))

  defp constant(device, number),
    do: ok!(Request.constant(device, @f32, {}, Problem.to_f32(number)))

  defp read({w1, b1, w2, b2}, hidden) do
    {Enum.chunk_every(numbers(w1), hidden), numbers(b1), Enum.chunk_every(numbers(w2), 1),
     numbers(b2)}
  end

  defp number(tensor), do: tensor |> numbers() |> hd()
  defp numbers(tensor), do: tensor |> NativeV.download(nil) |> ok!() |> Problem.from_f32()

  defp ok!({:ok, value}), do: value
  defp ok!({:error, kind, message}), do: Nx.Vulkan.Error.raise!(kind, message)
end
