# A linear regression, k-means and a principal component analysis of 150 flowers, here and on Nx.BinaryBackend.
# Usage: mix run examples/scholar.exs, by Scholar's formulas in Nx, or by Scholar in a project that depends on it and on
# nx_vulkan. Ends with status 1 when they differ.

for file <- ~w(training/terminal workloads/statistics),
    do: Code.require_file("#{file}.exs", __DIR__)

alias Training.Terminal
alias Workloads.Statistics

{:ok, _} = Application.ensure_all_started([:nx, :nx_vulkan])
scholar? = Statistics.scholar?()
IO.puts("device: #{Nx.Vulkan.device_info().name}")
IO.puts(if scholar?, do: "by Scholar", else: "Scholar was not found: by its formulas in Nx")

differing =
  for {name, allowed, fun} <- [
        {"linear regression: coefficients and intercept", 2.0e-6,
         &{Statistics.regression(&1, scholar?)}},
        {"k-means: middles, distances", 2.0e-6, &Statistics.clusters(&1, scholar?)},
        # Of Nx.BinaryBackend's, whose rotations stop earlier, U is orthogonal to 2e-5.
        {"principal components, variances", 1.0e-5, &Statistics.components(&1, scholar?)}
      ] do
    Terminal.title(name)

    [ours, theirs] =
      for backend <- [Nx.Vulkan.VulkanoBackend, Nx.BinaryBackend] do
        Nx.with_default_backend(backend, fn ->
          flowers = Statistics.flowers()

          {us, numbers} =
            :timer.tc(fn -> fun.(flowers) |> Tuple.to_list() |> Enum.map(&Nx.to_flat_list/1) end)

          IO.puts("  #{inspect(backend)}: #{Terminal.time(us)}")
          numbers
        end)
      end

    numbers = for x <- hd(ours), do: "#{Float.round(x, 6)}"
    IO.puts("  #{Enum.join(numbers, "  ")}")

    apart =
      Enum.zip_with(Enum.concat(ours), Enum.concat(theirs), &(abs(&1 - &2) / max(1, abs(&2))))

    IO.puts(
      "  at most #{:erlang.float_to_binary(Enum.max(apart), [{:scientific, 1}])} apart (allowed: #{allowed})"
    )

    Enum.max(apart) > allowed
  end

if true in differing, do: System.halt(1)
