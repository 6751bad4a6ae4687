Code.require_file("support/spirv.exs", __DIR__)

defmodule Nx.Vulkan.HaltTest do
  # Keeps every core busy, with shaders that never end.
  use ExUnit.Case, async: false
  @moduletag :same_with_nx

  alias Nx.Vulkan.Spirv

  # Counts down as many rounds as `a` says, in millions; for 0 there is no end.
  @spin """
  #version 450
  layout(local_size_x = 1) in;
  layout(set = 0, binding = 0) readonly buffer A { uint a[]; };
  layout(set = 0, binding = 1) buffer Out { uint x[]; };
  layout(push_constant) uniform Push { uint n; };
  void main() {
    uint state = n | 1u;
    uint count = a[0] * 1000000u;
    for (uint i = 0u; count == 0u ? state != 0u : i < count; i++) {
      state ^= state << SHIFT;
      state ^= state >> 17;
      state ^= state << 5;
    }
    x[0] = state;
  }
  """

  # `spin.(rounds)` starts a shader; `other.()` makes another pipeline first.
  @prelude """
  alias Nx.Vulkan.{Device, NativeV, Request}
  device = Device.fetch!(Device.default())
  glsl = #{inspect(@spin)}
  [path, second] = for shift <- ["13", "11"] do
    {:ok, path} = NativeV.spirv_file(device, String.replace(glsl, "SHIFT", shift), false)
    path
  end
  {:ok, x} = NativeV.buf_alloc(4)
  start = fn rounds, path ->
    {:ok, a} = NativeV.buf_upload(<<rounds::32-native>>)
    NativeV.apply_unary(x, a, 1, 0, path)
  end
  spin = fn rounds -> start.(rounds, path) end
  other = fn -> start.(1, second) end
  leave = fn -> IO.puts("left at \#{System.os_time(:millisecond)}") end
  """

  # Status, output, and milliseconds from the last `leave.()` to the end of a VM that ran `script`.
  defp vm(script, env) do
    env =
      [validation: Application.get_env(:nx_vulkan, :validation), cache_dir: Spirv.folder!()] ++
        env

    settings =
      for {key, value} <- env, do: "Application.put_env(:nx_vulkan, :#{key}, #{inspect(value)})\n"

    paths = Enum.flat_map(:code.get_path(), &["-pa", to_string(&1)])
    script = "#{settings}#{@prelude}#{script}"
    {printed, status} = System.cmd("elixir", paths ++ ["-e", script], stderr_to_stdout: true)
    ended = System.os_time(:millisecond)

    case Regex.run(~r/left at (\d+)/, printed) do
      [_, left] -> {status, printed, ended - String.to_integer(left)}
      nil -> flunk("the VM ended with status #{status}:\n#{printed}")
    end
  end

  for {name, halt} <- [
        {"System.halt", "System.halt(3)"},
        {"a halt that flushes nothing", ":erlang.halt(3, flush: false)"},
        {"init:stop", ":init.stop(3)"}
      ] do
    test "#{name} ends the VM while a shader runs that never ends and a process waits for it" do
      {status, printed, took} =
        vm(
          """
          :ok = spin.(0)
          spawn(fn -> NativeV.buf_download(x) end)
          spawn(fn -> NativeV.sync_device(device) end)
          spawn(fn -> other.() end)
          Process.sleep(300)
          leave.()
          #{unquote(halt)}
          Process.sleep(:infinity)
          """,
          timeout_ms: 120_000
        )

      assert status == 3, printed
      assert took < 30_000, "#{took} ms\n#{printed}"
    end
  end

  test "after a lost device every call says so at once, and the VM halts" do
    {status, printed, took} =
      vm(
        """
        :ok = NativeV.sync_device(device)
        submissions = fn -> NativeV.device_stats(device).submissions end
        before = submissions.()
        :ok = spin.(0)
        # On its own: what is recorded before a busy machine submits it would share its batch.
        true = submissions |> Stream.repeatedly() |> Stream.take(1_000_000) |> Enum.any?(&(&1 > before))
        waiting = Task.async(fn -> other.() end)
        {:error, :download_failed, message} = NativeV.buf_download(x)
        true = message =~ "did not finish within 0.6 s"
        true = message =~ "until the process (the VM) starts anew, other devices work on"
        {:error, :dispatch_failed, _} = Task.await(waiting, 60_000)
        calls = [
          upload: fn -> Request.upload(device, {:u, 8}, {1}, "a") end,
          constant: fn -> Request.constant(device, {:u, 8}, {5}, "a") end,
          run: fn -> Request.run("negate", [x], [{{:u, 8}, {4}}], []) end,
          sync: fn -> NativeV.sync_device(device) end,
          module: fn -> NativeV.module_of(device, String.replace(glsl, "SHIFT", "7"), false) end
        ]
        # The shader still runs, on all cores of a machine that may be busy besides: one of several calls is soon over.
        for {name, call} <- calls do
          times =
            for _ <- 1..5 do
              {took, answer} = :timer.tc(call)
              {:error, :device_lost, _} = answer
              took
            end

          true = Enum.min(times) < 300_000 || raise "\#{name} took \#{inspect(times)} us"
        end
        {:error, :device_lost, _} = Device.fetch(0)
        {:error, :upload_failed, _} = NativeV.buf_upload("a")
        {:error, :dispatch_failed, _} = NativeV.apply_unary(x, x, 1, 0, path)
        leave.()
        System.halt(4)
        """,
        timeout_ms: 600
      )

    assert status == 4, printed
    assert took < 30_000, "#{took} ms\n#{printed}"
  end

  test "what idle processes hold without need is collected where memory runs out" do
    {status, printed, _} =
      vm(
        """
        test = self()
        mib = :binary.copy(<<1>>, 1_048_576)
        upload = fn -> Request.upload(device, {:u, 8}, {1_048_576}, mib) end

        idle =
          for _ <- 1..50 do
            spawn(fn ->
              {:ok, _} = upload.()
              send(test, {:done, self()})
              Process.sleep(:infinity)
            end)
          end

        for pid <- idle, do: receive(do: ({:done, ^pid} -> :ok))
        kept = for _ <- 1..50, do: upload.()
        true = Enum.all?(kept, &match?({:ok, _}, &1))
        # What somebody holds stays with them.
        more = for _ <- 1..50, do: upload.()
        true = Enum.any?(more, &match?({:error, :out_of_memory, _}, &1))
        true = Enum.all?(kept, fn {:ok, ref} -> NativeV.download(ref, 1) == {:ok, <<1>>} end)
        leave.()
        """,
        memory: 80_000_000
      )

    assert status == 0, printed
  end

  test "no scheduler waits for memory or for a device that is far behind" do
    {status, printed, _} =
      vm(
        """
        # Seconds of work on any machine, and memory for 60 of the tensors below.
        :ok = spin.(1)
        :ok = NativeV.sync_device(device)
        {us, _} = :timer.tc(fn -> spin.(100); NativeV.sync_device(device) end)
        work = fn seconds -> :ok = spin.(div(trunc(seconds * 1.0e8), us)) end
        {:ok, a} = Request.upload(device, {:f, 32}, {16}, :binary.copy(<<0>>, 64))
        add = fn -> Request.run("add", [a, a], [{{:f, 32}, {16}}], []) end
        {:ok, _} = add.()
        :erlang.system_monitor(self(), [{:long_schedule, 1_000}])

        work.(4)
        mib = :binary.copy(<<1>>, 1_048_576)
        kept = for _ <- 1..80, do: Request.upload(device, {:u, 8}, {1_048_576}, mib)
        true = Enum.any?(kept, &match?({:error, :out_of_memory, _}, &1))
        work.(4)
        for _ <- 1..6_000, do: {:ok, _} = add.()
        :ok = NativeV.sync_device(device)

        receive do
          {:monitor, pid, :long_schedule, info} -> raise "\#{inspect(pid)}: \#{inspect(info)}"
        after
          0 -> leave.()
        end
        """,
        memory: 80_000_000
      )

    assert status == 0, printed
  end

  test "settings of another kind are refused by name" do
    wrong = [
      memory: 1.5,
      memory: 0,
      memory: "half",
      kept_memory: 1.5,
      kept_memory: -1,
      kept_memory: "half",
      timeout_ms: 0,
      timeout_ms: 1.5,
      replays: 1,
      lazy: 1,
      measure: "no",
      validation: :yes,
      shader_timeout: 0,
      registry: 5,
      registry: ~c"registry.toml",
      packs: "/tmp",
      packs: [nil],
      packs: [""],
      packs: ["a" | "b"],
      cache_dir: :tmp,
      device: false,
      device: ~c"lavapipe",
      cache_dir: <<255>>
    ]

    for {key, value} <- wrong do
      before = Application.fetch_env(:nx_vulkan, key)

      restore = fn ->
        case before do
          {:ok, own} -> Application.put_env(:nx_vulkan, key, own)
          :error -> Application.delete_env(:nx_vulkan, key)
        end
      end

      on_exit(restore)
      Application.put_env(:nx_vulkan, key, value)

      assert_raise ArgumentError, ~r/expected :#{key} to be/, fn ->
        if key == :device,
          do: Nx.Vulkan.init(),
          else: Nx.Vulkan.Device.fetch("a device that is not open")
      end

      restore.()
    end
  end
end
