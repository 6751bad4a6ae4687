# One training in a VM of its own: worker.exs WAY HIDDEN BATCH STEPS, where WAY is nx or native.
# Prints a line for each step and a last line with everything the caller wants to know.
alias Training.Problem

[way, hidden, batch, steps] = System.argv()
[hidden, batch, steps] = Enum.map([hidden, batch, steps], &String.to_integer/1)

for file <- ["problem", %{"nx" => "with_nx", "native" => "without_nx"}[way]],
    do: Code.require_file("#{file}.exs", __DIR__)

{:ok, _} = Application.ensure_all_started(:nx_vulkan)

trainer =
  case way do
    "nx" ->
      {:ok, _} = Application.ensure_all_started(:nx)
      Nx.global_default_backend(Nx.Vulkan.VulkanoBackend)
      Training.WithNx

    "native" ->
      Training.WithoutNx
  end

{flowers, _held_out} = Problem.flowers()
weights = Problem.weights(hidden)
batches = Problem.batches(flowers, batch)
now = fn -> System.monotonic_time(:microsecond) end

# The first step compiles the shaders and is timed alone.
started = now.()
apply(trainer, :train, [weights, batches, 1, fn _step, _loss -> :ok end])
first = now.() - started

started = now.()
report = fn step, loss -> IO.puts("step #{step} #{loss}") end
{losses, weights} = apply(trainer, :train, [weights, batches, steps, report])
took = now.() - started

# Empty unless NX_VULKAN_VALIDATION=1 turns the layers on.
case Nx.Vulkan.NativeV.validation_messages() do
  [] -> :ok
  messages -> raise "the validation layers complained:\n" <> Enum.join(messages, "\n")
end

device = Nx.Vulkan.Device.default()

result = %{
  losses: losses,
  weights: weights,
  first: first,
  took: took,
  device: Nx.Vulkan.device_info(device),
  stats: Nx.Vulkan.stats(device)
}

IO.puts("result " <> Base.encode64(:erlang.term_to_binary(result)))
