Code.require_file("support/vm.exs", __DIR__)

defmodule Nx.Vulkan.LogTest do
  use ExUnit.Case, async: true
  @moduletag :same_with_nx

  alias Nx.Vulkan.VM

  # A device opens once in a VM, with one registry file, so these run in VMs of their own.
  @open """
  folder = System.fetch_env!("LOG_TEST")
  Application.put_env(:nx_vulkan, :registry, Path.join(folder, "registry.toml"))
  """

  @script @open <>
            """
            defmodule Handler do
              def log(%{level: level, msg: msg, meta: meta}, %{config: pid}), do: send(pid, {level, msg, meta})
            end

            {:ok, _} = Application.ensure_all_started(:nx_vulkan)
            :ok = :logger.add_handler(:test, Handler, %{config: self()})

            heard = fn level, start ->
              receive do
                {^level, {:string, <<^start::binary-size(byte_size(start)), _::binary>>}, meta} -> meta
              after
                60_000 -> exit({:not_heard, level, start, Process.info(self(), :messages)})
              end
            end

            Nx.Vulkan.Device.fetch!(:auto)
            %{target: "nx_vulkan", domain: [:elixir, :nx_vulkan]} = heard.(:error, "nx_vulkan: the pack ")
            heard.(:warning, "nx_vulkan: ")

            # What is said while nobody is there is told to who comes.
            old = Process.whereis(Nx.Vulkan.Events)
            :sys.suspend(old)
            File.write!(Path.join(folder, "registry.toml"), "schema = 2")
            Nx.Vulkan.Dev.reload()
            wait = fn wait ->
              {:messages, messages} = Process.info(old, :messages)
              :nx_vulkan_log in messages or wait.(wait)
            end
            wait.(wait)
            true = Process.exit(old, :kill)
            heard.(:error, "nx_vulkan: ")

            File.write!(Path.join(folder, "registry.toml"), "schema = 1")
            Nx.Vulkan.Dev.reload()
            heard.(:info, "nx_vulkan: ")
            IO.puts("all heard")
            """

  setup do
    folder =
      Path.join(
        System.tmp_dir!(),
        "nx_vulkan-log-test-#{System.pid()}-#{System.unique_integer()}"
      )

    File.mkdir_p!(Path.join(folder, "packs"))
    on_exit(fn -> File.rm_rf!(folder) end)
    File.write!(Path.join(folder, "packs/libbroken.so"), "no library")

    File.write!(Path.join(folder, "registry.toml"), """
    schema = 1
    [search]
    paths = ["packs"]
    [[deny]]
    pack = "elementwise"
    op = "zzzzzzzz"
    reason = "a name that is none"
    """)

    {:ok, folder: folder}
  end

  test "what the host says reaches Logger with its level", %{folder: folder} do
    printed = VM.run!(@script, folder, [{"LOG_TEST", folder}])
    assert printed =~ "all heard"
    refute printed =~ "[nx_vulkan]"
  end

  test "without the application it goes to standard error", %{folder: folder} do
    script = @open <> "Nx.Vulkan.Device.fetch!(:auto); Process.sleep(200)"
    assert VM.run!(script, folder, [{"LOG_TEST", folder}]) =~ "[nx_vulkan] error: the pack "
  end
end
