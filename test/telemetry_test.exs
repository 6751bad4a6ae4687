if Code.ensure_loaded?(:telemetry) do
  defmodule Nx.Vulkan.TelemetryTest do
    use ExUnit.Case, async: true

    # A device opens once in a VM, with one registry file, so this runs in a VM of its own. It writes what each step
    # emitted. The CPU's or a pack's first run of a new shape is a choice: it ends a step.
    @script """
    defmodule Forward do
      def event(name, measurements, metadata, pid), do: send(pid, {:telemetry, name, measurements, metadata})
    end

    alias Nx.Vulkan.{Dev, Device, NativeV, Request}
    [folder, out] = System.argv()
    path = Path.join(folder, "registry.toml")
    head = File.read!(path)
    Application.put_env(:nx_vulkan, :registry, path)
    Application.put_env(:nx_vulkan, :measure, false)
    {:ok, _} = Application.ensure_all_started(:telemetry)
    names = [[:nx_vulkan, :reload], [:nx_vulkan, :choice]]
    :ok = :telemetry.attach_many("test", names, &Forward.event/4, self())
    {:ok, _} = Application.ensure_all_started(:nx_vulkan)
    device = Device.fetch!(Device.default())

    run = fn op, operands, count ->
      {:ok, x} = Request.upload(device, {:f, 32}, {count}, :binary.copy(<<1.5::float-32-native>>, count))
      {:ok, [y]} = Request.run(op, List.duplicate(x, operands), [{{:f, 32}, {count}}], [])
      {:ok, <<value::float-32-native, _::binary>>} = NativeV.download(y, nil)
      value
    end

    add = fn -> 3.0 = run.("add", 2, 4) end
    multiply = fn -> 2.25 = run.("multiply", 2, 4) end

    collect = fn collect, shape, events ->
      receive do
        {:telemetry, _, _, %{op: "negate", message: "negate(f32[" <> rest} = event} ->
          if String.starts_with?(rest, "\#{shape}]"),
            do: Enum.reverse(events),
            else: exit({:unexpected, event})

        {:telemetry, name, measurements, metadata} ->
          collect.(collect, shape, [{name, measurements, metadata} | events])
      after
        60_000 -> exit({:nothing_after, Enum.reverse(events)})
      end
    end

    step = fn name, work ->
      returned = work.()
      shape = System.unique_integer([:positive]) + 10
      -1.5 = run.("negate", 1, shape)
      {name, {returned, collect.(collect, shape, [])}}
    end

    registry = fn rules -> File.write!(path, head <> rules) end
    deny = "[[deny]]\\npack = \\"elementwise\\"\\nop = \\"add\\"\\nreason = \\"a test\\"\\n"
    pack = Path.join(folder, "packs/swish")
    edit = fn from, to ->
      path = Path.join(pack, "pack.toml")
      File.write!(path, String.replace(File.read!(path), from, to))
    end

    steps = [
      step.(:first, fn -> add.() end),
      step.(:again, fn -> add.() end),
      step.(:other_shape, fn -> 3.0 = run.("add", 2, 5) end),
      step.(:other_op, fn -> multiply.() end),
      step.(:nothing_changed, fn -> Dev.reload() end),
      step.(:rule, fn -> registry.(deny); Dev.reload() end),
      step.(:denied, fn -> add.(); add.(); multiply.() end),
      step.(:bad_rule, fn -> registry.("[[op]]\\nname = 7\\n"); Dev.reload() end),
      step.(:denied_still, fn -> add.() end),
      step.(:no_rule, fn -> registry.(""); Dev.reload() end),
      step.(:allowed, fn -> add.(); multiply.() end),
      step.(:new_pack, fn -> File.cp_r!("examples/packs/swish", pack); Dev.reload() end),
      step.(:served_by_new, fn -> add.(); add.() end),
      step.(:changed_pack, fn -> edit.("0.1.0", "0.1.1"); Dev.reload() end),
      step.(:bad_pack, fn -> edit.("[pack]", "[pack"); Dev.reload() end),
      step.(:served_still, fn -> add.() end),
      step.(:gone_pack, fn -> File.rm_rf!(pack); Dev.reload() end),
      step.(:served_again, fn -> add.() end)
    ]

    File.write!(out, :erlang.term_to_binary(steps))
    """

    @kinds ~w(pack_added pack_replaced pack_removed rejected registry_replaced chosen)a

    setup_all do
      folder = Path.join(System.tmp_dir!(), "nx_vulkan-telemetry-test-#{System.pid()}")
      File.mkdir_p!(Path.join(folder, "packs"))
      on_exit(fn -> File.rm_rf!(folder) end)

      File.write!(
        Path.join(folder, "registry.toml"),
        # The watcher looks once at the start; after that only a reload does.
        "schema = 1\n[search]\npaths = [\"packs\"]\n[dev]\nsettle_ms = 0\npoll_ms = 3600000\n"
      )

      out = Path.join(folder, "events")
      paths = Enum.flat_map(:code.get_path(), &["-pa", to_string(&1)])
      arguments = paths ++ ["-e", @script, "--", folder, out]
      {output, status} = System.cmd("elixir", arguments, stderr_to_stdout: true)
      assert status == 0, output
      {:ok, steps: out |> File.read!() |> :erlang.binary_to_term()}
    end

    test "a request is told once, with who serves it", %{steps: steps} do
      assert [choice] = choices(steps[:first])
      assert choice.op == "add" and choice.pack == "elementwise/add" and choice.file == nil
      assert choice.message == "add(f32[4], f32[4]) -> f32[4] is served by elementwise/add"
      assert choices(steps[:again]) == []

      assert [%{message: "add(f32[5], f32[5]) -> f32[5] is served by elementwise/add"}] =
               choices(steps[:other_shape])

      assert [%{op: "multiply", pack: "elementwise/multiply"}] = choices(steps[:other_op])
    end

    test "a request is told again when another kernel serves it", %{steps: steps} do
      # Only add was denied, and it was called twice.
      assert [choice] = choices(steps[:denied])
      assert choice.op == "add" and choice.pack == "host"
      assert choice.message =~ "is served by host, and was by elementwise/add"
      assert choices(steps[:denied_still]) == []
      assert [%{op: "add", pack: "elementwise/add"} = choice] = choices(steps[:allowed])
      assert choice.message =~ "is served by elementwise/add, and was by host"
      [before] = choices(steps[:denied])
      assert choice.generation > before.generation

      # The pack that came claims a higher rank.
      assert [%{pack: "swish/add"} = choice] = choices(steps[:served_by_new])
      assert choice.message =~ "is served by swish/add, and was by elementwise/add"
      assert choices(steps[:served_still]) == []
      assert [%{pack: "elementwise/add"}] = choices(steps[:served_again])
    end

    test "each change of the registry file and of a pack is told", %{steps: steps} do
      assert reloads(steps[:nothing_changed]) == []
      assert [%{kind: :registry_replaced, pack: nil}] = reloads(steps[:rule])
      assert [%{kind: :registry_replaced}] = reloads(steps[:no_rule])
      assert [%{kind: :pack_added, pack: "swish"} = added] = reloads(steps[:new_pack])
      assert [%{kind: :pack_replaced, pack: "swish"} = replaced] = reloads(steps[:changed_pack])
      assert replaced.generation > added.generation
      assert added.message =~ ~r/^pack swish 0\.1\.0 \([0-9a-f]{12}\) serves$/

      assert replaced.message =~
               ~r/^pack swish 0\.1\.1 \([0-9a-f]{12}\) serves in place of the one/

      assert [%{kind: :pack_removed, pack: "swish"}] = reloads(steps[:gone_pack])
    end

    test "what cannot be used is told with the reason, and no other table is in force", %{
      steps: steps
    } do
      assert [%{kind: :rejected} = event] = reloads(steps[:bad_rule])
      assert event.message =~ "registry.toml:8:"
      assert [%{generation: generation}] = reloads(steps[:rule])
      assert event.generation == generation

      assert [%{kind: :rejected, pack: "swish"} = event] = reloads(steps[:bad_pack])
      assert event.message =~ "the old one serves on"
      assert [%{generation: generation}] = reloads(steps[:changed_pack])
      assert event.generation == generation
    end

    test "reload returns what it emits", %{steps: steps} do
      for {name, {returned, events}} <- steps,
          is_list(returned),
          {_, counts, metadata} <- events do
        assert Map.put(metadata, :took_us, counts.duration_us) in returned, "#{name}"
        assert length(returned) == length(events)
      end
    end

    test "measurements and metadata are what is documented", %{steps: steps} do
      for {_, {_, events}} <- steps, {name, measurements, metadata} <- events do
        assert %{count: 1, duration_us: duration} = measurements
        assert is_integer(duration) and duration >= 0 and map_size(measurements) == 2
        assert Enum.sort(Map.keys(metadata)) == ~w(file generation kind message op pack)a
        assert metadata.kind in @kinds
        assert is_binary(metadata.message) and is_integer(metadata.generation)
        assert name == [:nx_vulkan, if(metadata.kind == :chosen, do: :choice, else: :reload)]
      end

      took = for {_, {_, events}} <- steps, {[_, :reload], counts, _} <- events, do: counts
      assert Enum.all?(took, &(&1.duration_us > 0))
    end

    defp choices(step), do: named(step, :choice)
    defp reloads(step), do: named(step, :reload)

    defp named({_, events}, last),
      do: for({[:nx_vulkan, ^last], _, metadata} <- events, do: metadata)
  end
end
