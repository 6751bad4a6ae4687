# The regime model (8 variables, 200 observations) in double precision, op by op: its log density, the gradient and 32
# leapfrog steps, here and on Nx.BinaryBackend. Usage: mix run examples/regime.exs. Ends with status 1 when they differ by
# more than 1e-12. The same model as one shader is timed by bench/regime.exs.

for file <- ~w(models/regime training/terminal workloads/regime),
    do: Code.require_file("#{file}.exs", __DIR__)

alias Training.Terminal
alias Workloads.Regime, as: Model

{steps, allowed} = {32, 1.0e-12}
IO.puts("device: #{Nx.Vulkan.device_info().name}")

[{values, gradient}, {others, theirs}] =
  for backend <- [Nx.Vulkan.VulkanoBackend, Nx.BinaryBackend] do
    Nx.with_default_backend(backend, fn ->
      Model.chain(1)
      {us, result} = :timer.tc(fn -> Model.chain(steps) end)
      IO.puts("#{inspect(backend)}: #{Terminal.time(us / (steps + 1))} a gradient")
      result
    end)
  end

IO.puts("log density at the start: #{hd(values)} (to 40 digits: #{Model.log_density()})")
IO.puts("after #{steps} steps: #{List.last(values)} (Nx.BinaryBackend: #{List.last(others)})")

gaps = [
  {"of the reference", Model.apart([hd(values)], [Model.log_density()])},
  {"log densities", Model.apart(values, others)},
  {"gradients", Model.apart(gradient, theirs)}
]

for {what, gap} <- gaps,
    do:
      IO.puts(
        "#{what}: #{:erlang.float_to_binary(gap, [{:scientific, 1}])} apart (allowed: #{allowed})"
      )

if Enum.any?(gaps, fn {_, gap} -> gap > allowed end), do: System.halt(1)
