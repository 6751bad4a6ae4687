# Draws from the posterior of a hierarchical model of real data, on the device, and draws pictures of it.
# Usage: mix run examples/sampling.exs [PICTURE]. Needs Nx.

Code.require_file("training/terminal.exs", __DIR__)
Code.require_file("models/iris.exs", __DIR__)
alias Nx.Vulkan.HMC
alias Training.Terminal

picture =
  List.first(System.argv()) || Path.join(Path.dirname(Mix.Project.build_path()), "posterior.svg")

flowers = Iris.flowers()
device = Nx.Vulkan.device_info()

Terminal.title(
  "Sampling: width of an iris's petal for its length, three species, 11 parameters, 150 flowers"
)

IO.puts("  device: #{device.name}")

result =
  HMC.sample!(&Iris.log_density/2, Iris.parameters(),
    data: flowers,
    seed: 1936,
    warmup: 600,
    draws: 600,
    target_accept: 0.98
  )

IO.puts(["\n", result |> HMC.Result.table() |> String.replace(~r/^/m, "  ")])

seconds = fn phase -> result.timings[phase].total_microseconds / 1.0e6 end
steps = result.timings.sampling.rows
rate = steps / (result.timings.sampling.microseconds / 1.0e6)

IO.puts(
  "  #{result.chains} chains of #{result.count} draws in #{Float.round(seconds.(:sampling), 1)} s after " <>
    "#{Float.round(seconds.(:warmup), 1)} s of warm-up; #{round(rate)} leapfrog steps a second in " <>
    "#{result.timings.sampling.calls} dispatches"
)

# The slopes of the species, in cm of width for a cm of length.
[mean, sd | slopes] =
  for name <- ["mean_slope", "sd_slope", "slope[0]", "slope[1]", "slope[2]"],
      do: result |> HMC.Result.fetch!(name) |> Enum.concat()

species = ["setosa", "versicolor", "virginica"]

draws = for slope <- slopes, do: Enum.zip_with([mean, sd, slope], fn [m, s, z] -> m + s * z end)

Terminal.table([
  ["slope of", "mean", "5%", "95%"]
  | for {name, values} <- Enum.zip(species, draws) do
      number = &:erlang.float_to_binary(&1, decimals: 3)
      quantile = &HMC.Diagnostics.quantile([values], &1)

      [
        name,
        number.(HMC.Diagnostics.mean(values)),
        number.(quantile.(0.05)),
        number.(quantile.(0.95))
      ]
    end
])

HMC.Picture.write(result, picture)
IO.puts("  distributions and traces: #{Path.relative_to_cwd(picture)}")

# The same by least squares, for each species by itself: partial pooling pulls the slopes together, no further than this.
alone =
  for {_, at} <- Enum.with_index(species) do
    rows =
      [flowers.length, flowers.width, flowers.species]
      |> Enum.map(&Nx.to_flat_list/1)
      |> Enum.zip()

    own = for {x, y, ^at} <- rows, do: {x, y}

    {mx, my} =
      {HMC.Diagnostics.mean(for({x, _} <- own, do: x)),
       HMC.Diagnostics.mean(for({_, y} <- own, do: y))}

    Enum.sum(for {x, y} <- own, do: (x - mx) * (y - my)) /
      Enum.sum(for {x, _} <- own, do: (x - mx) ** 2)
  end

within? =
  Enum.zip(draws, alone)
  |> Enum.all?(fn {values, slope} ->
    HMC.Diagnostics.quantile([values], 0.005) < slope and
      slope < HMC.Diagnostics.quantile([values], 0.995)
  end)

worst = result.summary |> Enum.map(& &1.rhat) |> Enum.max()
IO.puts("  least squares, species by species: #{Enum.map_join(alone, ", ", &Float.round(&1, 3))}")

if within? and worst < 1.05 do
  IO.puts(["  ", Terminal.good("the chains agree, and with least squares")])
else
  IO.puts([
    "  ",
    Terminal.bad("the chains do not agree (R-hat #{worst}), or not with least squares")
  ])

  System.halt(1)
end
