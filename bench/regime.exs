# Chains of the regime model in double precision, host to host: what a sampler waits for.
# Usage: mix run bench/regime.exs [--json FILE]; beside it, on the same card, runs any other implementation.
Code.require_file("../examples/models/regime.exs", __DIR__)
Nx.default_backend(Nx.BinaryBackend)

median = fn times -> times |> Enum.sort() |> Enum.at(div(length(times), 2)) end
bin = fn list -> for x <- list, into: <<>>, do: <<x::float-64-little>> end
returns = Regime.returns()

{:ok, density} = Nx.Vulkan.Density.new(&Regime.log_density/2, 8, data: returns)
IO.puts("device: #{Nx.Vulkan.device_info().name}, #{Nx.Vulkan.device_info().driver}")

q = bin.(List.duplicate(0.05, 8))
p = bin.(for i <- 0..7, do: -1 + 2 * i / 7)
masses = bin.(List.duplicate(1.0, 8))

{:ok, {_, _, _, logp}} = Nx.Vulkan.Density.chain(density, q, p, masses, [0.0], 1)
IO.puts("log density at 0.05: #{inspect(for <<x::float-64-little <- logp>>, do: x)}")

time = fn density, chains, k, times ->
  [q, p, masses] = Enum.map([q, p, masses], &String.duplicate(&1, chains))
  steps = List.duplicate(1.0e-3, chains)
  run = fn -> {:ok, _} = Nx.Vulkan.Density.chain(density, q, p, masses, steps, k) end
  start = System.monotonic_time(:millisecond)
  # A GPU at rest takes half a second to clock up.
  Stream.repeatedly(run)
  |> Enum.find(fn _ -> System.monotonic_time(:millisecond) - start > 700 end)

  median.(for _ <- 1..times, do: elem(:timer.tc(run), 0))
end

for {chains, k, times} <- [{1, 1, 30}, {1, 32, 30}, {1, 1024, 30}, {256, 32, 10}] do
  IO.puts(
    "regime chain f64 K=#{k} x #{chains}: #{time.(density, chains, k, times)} us with download"
  )
end

{:ok, {_, _, _, logp}} = Nx.Vulkan.Density.chain(density, q, p, masses, [1.0e-3], 32)
IO.puts("row 31 log density: #{inspect(List.last(for <<x::float-64-little <- logp>>, do: x))}")

for size <- [8, 32, 64, 128, 256] do
  us = time.(%{density | workgroup: size}, 1, 32, 15)
  IO.puts("K=32 in workgroups of #{size}: #{us} us")
end
