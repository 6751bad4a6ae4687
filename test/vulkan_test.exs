Code.require_file("support/spirv.exs", __DIR__)
Code.require_file("support/vm.exs", __DIR__)

defmodule Nx.VulkanTest do
  use ExUnit.Case, async: true

  alias Nx.Vulkan.{Spirv, VM}

  test "the default device has a name and features" do
    assert Nx.Vulkan.init() == :ok
    assert Nx.Vulkan.init() == :ok
    info = Nx.Vulkan.device_info()
    assert Nx.Vulkan.device_name() == info.name
    assert Nx.Vulkan.device_name() in Enum.map(Nx.Vulkan.devices(), & &1.name)
    assert Nx.Vulkan.has_f64?() == "fp64" in info.features
  end

  test "without a device, or with a wrong registry file, there is an error" do
    VM.run!(
      """
      Application.put_env(:nx_vulkan, :device, "no such device")
      {:error, message} = Nx.Vulkan.init()
      true = message =~ "no such device"
      for name <- [:device_name, :has_f64?] do
        %Nx.Vulkan.Error{kind: :no_device} = try do apply(Nx.Vulkan, name, []) rescue e -> e end
      end

      Application.put_env(:nx_vulkan, :device, :auto)
      Application.put_env(:nx_vulkan, :registry, "/dev/null/registry.toml")
      {:error, message} = Nx.Vulkan.init()
      true = message =~ "registry.toml"
      """,
      Spirv.folder!(),
      [{"NX_VULKAN_REGISTRY", nil}]
    )
  end
end
