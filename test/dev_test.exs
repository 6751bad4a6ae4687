defmodule Nx.Vulkan.DevTest do
  use ExUnit.Case, async: true
  @moduletag :same_with_nx
  # Its waits end earlier, with what they waited for.
  @moduletag timeout: 600_000

  # A device opens once in a VM, with one registry file, so this runs in a VM of its own.
  @script """
  alias Nx.Vulkan.{Dev, Device, NativeV, Request}
  [folder] = System.argv()
  Application.put_env(:nx_vulkan, :registry, Path.join(folder, "registry.toml"))
  raised = fn call ->
    try do
      call.()
    rescue
      error in ArgumentError -> error.message
    end
  end

  true = raised.(&Dev.subscribe/0) =~ "call Application.ensure_all_started(:nx_vulkan)"
  {:ok, _} = Application.ensure_all_started(:nx_vulkan)
  :ok = Dev.subscribe()

  for call <- [&Dev.versions/1, &Dev.rollback/1, &Dev.resume/1] do
    true = raised.(fn -> call.("nosuch") end) =~ ~r/expected a loaded pack.*, got: nosuch/
    "expected the id of a pack as a string, got: :elementwise" = raised.(fn -> call.(:elementwise) end)
  end

  device = Device.fetch!(Device.default())
  {:ok, x} = Request.upload(device, {:f, 32}, {4}, :binary.copy(<<1.5::float-32-native>>, 4))
  double = fn ->
    {:ok, [y]} = Request.run("add", [x, x], [{{:f, 32}, {4}}], [])
    {:ok, <<value::float-32-native, _::binary>>} = NativeV.download(y, nil)
    value
  end
  wait = fn kind ->
    receive do
      {:nx_vulkan, %{kind: ^kind} = event} -> event
    after
      60_000 -> exit({:no, kind, Process.info(self(), :messages)})
    end
  end

  3.0 = double.()
  %{op: "add", message: message} = wait.(:chosen)
  IO.puts(message)

  shader = Path.join(folder, "shaders/elementwise/contiguous.comp")
  source = File.read!("packs/elementwise/shaders/contiguous.comp")
  File.write!(shader, String.replace(source, "evaluate_at(places(i))", "2 * evaluate_at(places(i))"))
  %{pack: "elementwise", file: "contiguous.comp"} = wait.(:shader_replaced)
  6.0 = double.()

  File.write!(shader, String.replace(source, "void main", "void niam"))
  %{message: message} = wait.(:shader_rejected)
  IO.puts(message)
  6.0 = double.()

  [%{serves: false}, %{serves: true, edited: ["contiguous.comp"]}] = Dev.versions("elementwise")
  %{edited: []} = Dev.rollback("elementwise")
  %{pack: "elementwise"} = wait.(:rolled_back)
  3.0 = double.()

  File.rm!(shader)
  [] = for event <- Dev.resume("elementwise"), event.kind == :shader_rejected, do: event
  3.0 = double.()

  try do
    Dev.rollback("elementwise", 7)
  rescue
    error in ArgumentError -> IO.puts(error.message)
  end

  "expected steps to be an integer from 0 to 4294967295, got: -1" =
    try do
      Dev.rollback("elementwise", -1)
    rescue
      error in ArgumentError -> error.message
    end

  File.write!(Path.join(folder, "registry.toml"), "schema = 2")
  %{message: message} = wait.(:rejected)
  IO.puts(message)
  3.0 = double.()
  :ok = Dev.unsubscribe()
  IO.puts("all done")
  """

  test "what is edited serves, what is broken does not, and what served before can again" do
    folder = Path.join(System.tmp_dir!(), "nx_vulkan-dev-test-#{System.pid()}")
    File.mkdir_p!(Path.join(folder, "shaders/elementwise"))
    on_exit(fn -> File.rm_rf!(folder) end)

    File.write!(Path.join(folder, "registry.toml"), """
    schema = 1
    [dev]
    watch = ["shaders"]
    settle_ms = 50
    """)

    paths = Enum.flat_map(:code.get_path(), &["-pa", to_string(&1)])
    arguments = paths ++ ["-e", @script, "--", folder]
    {output, status} = System.cmd("elixir", arguments, stderr_to_stdout: true)
    assert status == 0, output
    # Whichever was faster; what is edited serves all the same.
    assert output =~ ~r{add\(f32\[4\], f32\[4\]\) -> f32\[4\] is served by (elementwise/add|host)}
    assert output =~ "pack elementwise serves the old shaders on"
    assert output =~ "steps back for pack elementwise, got: 7"
    assert output =~ "registry.toml:1:"
    assert output =~ "all done"
  end
end
