defmodule Nx.Vulkan.NativeMapsTest do
  use ExUnit.Case, async: true

  alias Nx.Vulkan.{Device, NativeV, Request}

  # What is fixed is an atom, whatever the VM knows; what is data is a text.
  setup_all do
    {:ok, device: Device.fetch!(Device.default())}
  end

  test "a device", %{device: device} do
    info = NativeV.device_info(device)
    assert keys(info) == ~w(api driver features index kind matrices memory name unusable uuid)a
    assert is_binary(info.kind) and Enum.all?(info.features, &is_binary/1)
    assert {:ok, [_ | _] = all} = NativeV.list_devices()
    for other <- all, do: assert(keys(other) == keys(info))
  end

  test "counters", %{device: device} do
    {:ok, x} = Request.upload(device, {:u, 8}, {2}, "ab")
    {:ok, _} = Request.run("add", [x, x], [{{:u, 8}, {2}}], [])
    NativeV.count_fallback("a made-up op")
    stats = Nx.Vulkan.stats()

    assert keys(stats) ==
             ~w(ahead budget cache_trouble fallbacks kept memory pipelines plans replays served submissions)a

    assert keys(stats.memory) == ~w(allocated buffers in_use peak)a
    assert keys(stats.kept) == ~w(buffers bytes limit reused)a
    assert keys(stats.replays) == ~w(bytes programs runs)a
    assert keys(stats.budget) == ~w(limit readback taken upload)a
    assert [_ | _] = stats.served

    for {op, by, count} <- stats.served,
        do: assert(is_binary(op) and is_binary(by) and is_integer(count))

    assert %{"a made-up op" => 1} = stats.fallbacks
  end

  test "an explanation", %{device: device} do
    spec = {{:f, 32}, {2}}
    assert {:ok, {text, map}} = NativeV.explain(device, "add", [spec, spec], [spec], [])
    assert keys(map) == ~w(candidates device generation picked request rules)a
    assert [%{outcome: "picked"} = picked | _] = map.candidates
    assert keys(picked) == ~w(kernel line measured_us outcome reason)a
    assert is_binary(text) and is_binary(map.picked)
  end

  test "versions of a pack", %{device: device} do
    assert [version | _] = NativeV.pack_versions(device, "elementwise")
    assert keys(version) == ~w(edited serves sha256 version)a
    assert NativeV.pack_versions(device, "no pack") == []
  end

  test "a tensor", %{device: device} do
    {:ok, x} = Request.upload(device, {:u, 8}, {1, 2}, "ab")
    info = NativeV.tensor_info(x)
    assert %{type: {:u, 8}, shape: {1, 2}, strides: [2, 1], live: true} = info
    assert keys(info) == ~w(device live shape strides type)a
    :ok = NativeV.deallocate(x)
    assert %{strides: nil, live: false} = NativeV.tensor_info(x)
  end

  defp keys(map), do: map |> Map.keys() |> Enum.sort()
end
