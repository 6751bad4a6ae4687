alias Nx.Vulkan.NativeV

# Every test runs under the validation layers, and none may draw a message from them.
Application.put_env(:nx_vulkan, :validation, System.get_env("NX_VULKAN_VALIDATION", "1") == "1")

# What compiles a stranger's shader shares the machine with other suites.
Application.put_env(:nx_vulkan, :shader_timeout, 600_000)

# Which kernel runs must not depend on how busy the machine is.
Application.put_env(:nx_vulkan, :measure, false)

if Code.ensure_loaded?(Nx) do
  Code.require_file("support/reference.exs", __DIR__)
  Code.require_file("support/trace.exs", __DIR__)
  Code.require_file("support/routines.exs", __DIR__)
else
  IO.puts(:stderr, """

  ** Nx is not here: only the NIF layer is tested. Set NX_PATH to a checkout of Nx to run the backend's tests. **
  """)
end

System.at_exit(fn _status ->
  with [_ | _] = messages <- NativeV.validation_messages() do
    IO.puts(:stderr, ["\nthe validation layers complained:\n", Enum.intersperse(messages, "\n")])
    exit({:shutdown, 1})
  end
end)

# A slow machine that has compiled no shader yet takes minutes for some tests, since lavapipe compiles as it runs; seconds later.
ExUnit.start(timeout: 900_000, assert_receive_timeout: 60_000)
