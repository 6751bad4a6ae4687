# Trains a small network in several ways and compares what they learn and how long they take.
# Usage: mix run examples/training.exs [PICTURE]. Ends with status 1 when the losses differ.

for file <- ~w(problem lists terminal picture contest),
    do: Code.require_file("training/#{file}.exs", __DIR__)

alias Training.{Contest, Lists, Picture, Problem, Terminal}

picture =
  List.first(System.argv()) || Path.join(Path.dirname(Mix.Project.build_path()), "loss.png")

{hidden, batch, steps} = {32, 16, 100}
{wide, whole, few} = {4096, 128, 10}
tolerance = 2.0e-6

{flowers, held_out} = Problem.flowers()
ways = Contest.ways(Code.ensure_loaded?(Nx))

Terminal.title("Training: iris, Dense(4 -> 32, tanh) -> Dense(1), 100 steps of gradient descent")
results = for way <- ways, do: Contest.train(way, hidden, batch, steps)
[first | _] = results

{plain, _weights} =
  Lists.train(Problem.weights(hidden), Problem.batches(flowers, batch), steps, fn _, _ -> :ok end)

Terminal.title("Losses")
labels = for {label, _, _} <- ways, do: label
columns = Enum.map(results, & &1.losses) ++ [plain]

rows =
  for {losses, step} <- columns |> Enum.zip() |> Enum.with_index(1),
      step == 1 or rem(step, 10) == 0 do
    [
      "#{step}"
      | for(loss <- Tuple.to_list(losses), do: :erlang.float_to_binary(loss, decimals: 7))
    ]
  end

Terminal.table([["step" | labels] ++ ["plain Elixir"] | rows])

gap =
  columns |> Enum.zip_with(&(Enum.max(&1) - Enum.min(&1))) |> Enum.max()

verdict = "largest difference in any step: #{:erlang.float_to_binary(gap, [{:scientific, 1}])}"
agree? = gap <= tolerance

IO.puts([
  "  ",
  if(agree?, do: Terminal.good(verdict), else: Terminal.bad(verdict)),
  " (allowed: #{:erlang.float_to_binary(tolerance, [{:scientific, 0}])})"
])

Terminal.title("Loss curve")
first.losses |> Enum.chunk_every(2) |> Enum.map(&(Enum.sum(&1) / 2)) |> Terminal.chart(8)

Picture.write(picture, [
  {"KERNEL PACKS", first.losses},
  {"HOST KERNELS", List.last(results).losses},
  {"PLAIN ELIXIR", plain}
])

IO.puts("  picture: #{Path.relative_to_cwd(picture)}")

Terminal.title("What it learned")

{right, all} =
  for {row, species} <- held_out, reduce: {0, 0} do
    {right, all} ->
      {_hidden, [answer]} = Lists.predict(first.weights, [row])
      {if(round(answer) == round(species), do: right + 1, else: right), all + 1}
  end

IO.puts("  #{right} of #{all} flowers that it never saw get the right species")

Terminal.title("Who ran what (#{hd(labels)})")

served =
  for {op, kernel, count} <- first.stats.served, do: [op, kernel, "#{count}"]

Terminal.table([["op", "served by", "runs"] | served])

Terminal.title("Speed on #{first.device.name}")
widely = for way <- ways, do: Contest.train(way, wide, whole, few)

rows =
  for {label, small, large} <- Enum.zip([labels, results, widely]) do
    [
      label,
      Terminal.time(small.first),
      Terminal.time(small.took / steps),
      Terminal.time(large.took / few)
    ]
  end

Terminal.table([
  ["", "first step", "a step, 32 wide, batch 16", "a step, #{wide} wide, batch #{whole}"] | rows
])

ratio = fn list -> Float.round(List.last(list).took / hd(list).took, 1) end
where = if first.device.kind == "cpu", do: ", where both share the same cores", else: ""

IO.puts(
  "  packs are #{ratio.(results)} times as fast as the host's kernels at 32 wide, " <>
    "#{ratio.(widely)} times at #{wide} wide#{where}"
)

unless agree?, do: System.halt(1)
