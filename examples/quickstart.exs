# A tensor goes to a device, an op runs there, the result comes back: through Nx, or without it.

{:ok, _} = Application.ensure_all_started(:nx_vulkan)
alias Nx.Vulkan.{Device, NativeV, Request}

device = Nx.Vulkan.device_info()
IO.puts("device:  #{device.name} (#{device.kind}), #{device.driver}")

values =
  if Code.ensure_loaded?(Nx) do
    x = Nx.tensor([1.0, 2.0, 3.0, 4.0], type: :f32)
    x = Nx.backend_transfer(x, Nx.Vulkan.VulkanoBackend)
    x |> Nx.sigmoid() |> Nx.backend_transfer(Nx.BinaryBackend) |> Nx.to_list()
  else
    bytes = for x <- [1.0, 2.0, 3.0, 4.0], into: <<>>, do: <<x::float-32-native>>
    {:ok, x} = Request.upload(Device.fetch!(Device.default()), {:f, 32}, {4}, bytes)
    {:ok, [y]} = Request.run("sigmoid", [x], [{{:f, 32}, {4}}], [])
    {:ok, bytes} = NativeV.download(y, nil)
    for <<y::float-32-native <- bytes>>, do: y
  end

IO.puts("sigmoid: #{inspect(values)}")

expected = [0.7310585975646973, 0.8807970881462097, 0.9525741338729858, 0.9820137619972229]

# One unit in the last place of a float of 32 bits below 1.
unless Enum.zip_with(values, expected, &(abs(&1 - &2) <= 2 ** -24)) |> Enum.all?() do
  IO.puts("         #{inspect(expected)} was expected")
  System.halt(1)
end

for {op, kernel, runs} <- Nx.Vulkan.stats().served,
    do: IO.puts("served:  #{op} by #{kernel}, #{runs} time(s)")
