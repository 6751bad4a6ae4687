# Trains a dense and a small convolutional network through this backend and through Nx.BinaryBackend, and compares them step
# by step, and where Axon is found also as Axon builds and trains them. Usage: mix run examples/networks.exs, in a project that
# depends on Axon and on nx_vulkan for that. Ends with status 1 when they differ.

for file <- ~w(training/problem training/terminal workloads/networks),
    do: Code.require_file("#{file}.exs", __DIR__)

alias Training.Terminal
alias Workloads.Networks

{most_loss, most_gradient, steps} = {2.0e-6, 1.0e-8, 40}
axon? = Code.ensure_loaded?(Axon)
if axon?, do: Code.require_file("workloads/axon.exs", __DIR__)
{:ok, _} = Application.ensure_all_started([:nx, :nx_vulkan])
IO.puts("device: #{Nx.Vulkan.device_info().name}")

differing =
  for {name, data, loss, rate} <- Networks.all() do
    Terminal.title("#{name} network, #{steps} steps of gradient descent")

    [{ours, gradients}, {theirs, others}] =
      for backend <- [Nx.Vulkan.VulkanoBackend, Nx.BinaryBackend] do
        Nx.with_default_backend(backend, fn ->
          {us, result} = :timer.tc(fn -> Networks.train(data, loss, rate, steps) end)
          IO.puts("  #{inspect(backend)}: #{Terminal.time(us / steps)} a step")
          result
        end)
      end

    rows =
      for {{x, y}, step} <- ours |> Enum.zip(theirs) |> Enum.with_index(1),
          step == 1 or rem(step, 10) == 0 do
        [
          "#{step}",
          :erlang.float_to_binary(x, decimals: 8),
          :erlang.float_to_binary(y, decimals: 8),
          :erlang.float_to_binary(abs(x - y), [{:scientific, 1}])
        ]
      end

    Terminal.table([["step", "here", "Nx.BinaryBackend", "apart"] | rows])
    loss = ours |> Enum.zip_with(theirs, &abs(&1 - &2)) |> Enum.max()
    gradient = Networks.apart(gradients, others)
    show = &:erlang.float_to_binary(&1, [{:scientific, 1}])
    IO.puts("  losses at most #{show.(loss)} apart (allowed: #{show.(most_loss)})")

    IO.puts(
      "  gradients at most #{show.(gradient)} of their sum apart (allowed: #{show.(most_gradient)})"
    )

    by_axon =
      if axon? do
        [ours, theirs] =
          for backend <- [Nx.Vulkan.VulkanoBackend, Nx.BinaryBackend] do
            Nx.with_default_backend(backend, fn ->
              Workloads.Axon.train(name, elem(data, 1), rate, steps)
            end)
          end

        apart = ours |> Enum.zip_with(theirs, &abs(&1 - &2)) |> Enum.max()

        IO.puts(
          "  by Axon, from #{hd(ours)} to #{List.last(ours)}: at most #{show.(apart)} apart"
        )

        apart
      else
        IO.puts("  Axon was not found")
        0.0
      end

    max(loss, by_axon) > most_loss or gradient > most_gradient
  end

if true in differing, do: System.halt(1)
