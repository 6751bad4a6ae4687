# Times ops and programs on every backend that Nx can find, and says where results differ.
# Usage: mix run examples/full_bench.exs [--quick]. Tensors are on the device before the clock starts; each run ends when one
# number of the result was read. Medians, after a first run that does not count. Other backends count in a project that depends on them and on nx_vulkan.

for file <-
      ~w(training/problem training/terminal models/regime workloads/networks workloads/regime),
    do: Code.require_file("#{file}.exs", __DIR__)

alias Training.Terminal
alias Workloads.{Networks, Regime}

{:ok, _} = Application.ensure_all_started([:nx, :nx_vulkan])
quick? = "--quick" in System.argv()
# No case goes on for longer on one backend.
patience = if quick?, do: 0.2, else: 2.0

backends =
  for backend <- [
        Nx.Vulkan.VulkanoBackend,
        Nx.BinaryBackend,
        EXLA.Backend,
        Torchx.Backend,
        EMLX.Backend,
        Candlex.Backend
      ],
      Code.ensure_loaded?(backend),
      do: backend

uniform = fn shape ->
  {x, _} = Nx.Random.uniform(Nx.Random.key(7), 0.1, 1.0, shape: shape)
  x
end

steps = fn name ->
  {_, data, loss, rate} = List.keyfind(Networks.all(), name, 0)
  fn -> data |> Networks.train(loss, rate, 2) |> elem(0) |> List.last() |> Nx.tensor() end
end

# Name, the most work for Nx.BinaryBackend to be asked too, and what makes a run of it.
cases =
  [
    for n <- if(quick?, do: [16, 64], else: [16, 64, 256, 1024]) do
      {"matmul #{n}", n <= 256,
       fn ->
         {a, b} = {uniform.({n, n}), uniform.({n, n})}
         fn -> Nx.dot(a, b) end
       end}
    end,
    for {name, fun} <- [
          add: &Nx.add(&1, &1),
          sigmoid: &Nx.sigmoid/1,
          sum: &Nx.sum/1,
          sort: &Nx.sort/1,
          cumulative_sum: &Nx.cumulative_sum/1
        ] do
      size = if quick?, do: 10_000, else: 100_000

      {"#{name} #{size}", true,
       fn ->
         x = uniform.({size})
         fn -> fun.(x) end
       end}
    end,
    [
      {"softmax 128x256", true,
       fn ->
         x = uniform.({128, 256})
         fn -> Nx.divide(Nx.exp(x), Nx.sum(Nx.exp(x), axes: [1], keep_axes: true)) end
       end},
      {"conv 4x3x16x16, 8 of 3x3", true,
       fn ->
         {x, kernel} = {uniform.({4, 3, 16, 16}), uniform.({8, 3, 3, 3})}
         fn -> Nx.conv(x, kernel, padding: :same) end
       end},
      {"solve 32", true,
       fn ->
         {a, b} = {Nx.add(uniform.({32, 32}), Nx.multiply(8, Nx.eye(32))), uniform.({32})}
         fn -> Nx.LinAlg.solve(a, b) end
       end},
      {"two steps, dense network", true, fn -> steps.("dense") end},
      {"two steps, convolutional network", true, fn -> steps.("convolutional") end},
      {"regime model, gradient in f64", true,
       fn -> fn -> Nx.tensor(hd(elem(Regime.chain(0), 0)), type: :f64) end end},
      {"100 times dot, sigmoid, divide at 128", false,
       fn ->
         x = uniform.({128, 128})

         fn ->
           Enum.reduce(1..100, x, fn _, y -> Nx.divide(Nx.sigmoid(Nx.dot(y, x)), 2.0) end)
         end
       end}
    ]
  ]
  |> Enum.concat()

read = fn tensor -> tensor |> Nx.flatten() |> Nx.slice([0], [1]) |> Nx.to_flat_list() |> hd() end

time = fn run ->
  read.(run.())
  {first, number} = :timer.tc(fn -> read.(run.()) end)
  runs = min(50, trunc(patience * 1.0e6 / max(first, 1)))
  times = [first | for(_ <- 1..runs//1, do: elem(:timer.tc(fn -> read.(run.()) end), 0))]
  {times |> Enum.sort() |> Enum.at(div(length(times), 2)), number}
end

device = Nx.Vulkan.device_info()
IO.puts("device: #{device.name}, #{device.driver}; #{length(backends)} backends found")

{rows, differing} =
  Enum.map_reduce(cases, [], fn {name, small?, make}, differing ->
    results =
      for backend <- backends, backend != Nx.BinaryBackend or small? do
        {backend, Nx.with_default_backend(backend, fn -> time.(make.()) end)}
      end

    numbers = for {_, {_, number}} <- results, do: number
    apart? = Enum.any?(numbers, &(abs(&1 - hd(numbers)) > 1.0e-4 * max(1, abs(hd(numbers)))))

    cells =
      for backend <- backends do
        case List.keyfind(results, backend, 0) do
          {_, {us, _}} -> Terminal.time(us)
          nil -> "-"
        end
      end

    {[name | cells], if(apart?, do: [name | differing], else: differing)}
  end)

Terminal.table([["median" | Enum.map(backends, &inspect/1)] | rows])

if differing != [] do
  IO.puts("different results: #{Enum.join(differing, ", ")}")
  System.halt(1)
end
