Code.require_file("support/spirv.exs", __DIR__)
Code.require_file("support/vm.exs", __DIR__)

defmodule Nx.Vulkan.UpgradeTest do
  use ExUnit.Case, async: true
  @moduletag :same_with_nx

  alias Nx.Vulkan.{Spirv, VM}

  # `load` loads the module as an upgrade does, once no process runs its old code any more; `read` and `double` use a tensor.
  @prelude """
  alias Nx.Vulkan.{Dev, Device, NativeV, Request}
  {:ok, _} = Application.ensure_all_started(:nx_vulkan)
  f32 = {:f, 32}
  encode = fn list -> for x <- list, into: <<>>, do: <<x::float-32-native>> end
  read = fn ref -> with {:ok, bytes} <- NativeV.download(ref, nil), do: for(<<x::float-32-native <- bytes>>, do: x) end
  upload = fn list -> {:ok, ref} = Request.upload(Device.fetch!(:auto), f32, {length(list)}, encode.(list)); ref end

  double = fn ref ->
    %{shape: shape} = NativeV.tensor_info(ref)
    {:ok, [sum]} = Request.run("add", [ref, ref], [{f32, shape}], [])
    sum
  end

  purge = fn purge ->
    unless :code.soft_purge(NativeV) do
      Process.sleep(1)
      purge.(purge)
    end
  end

  load = fn ->
    purge.(purge)
    :code.load_file(NativeV)
  end
  """

  test "tensors and devices outlive the code of the module" do
    VM.run!(
      @prelude <>
        """
        mine = upload.([1.0, 2.0])
        {:ok, view} = NativeV.reverse(mine, [0])

        {holder, monitor} = spawn_monitor(fn ->
          theirs = upload.([3.0])
          for _ <- 1..12 do
            receive do from -> send(from, {read.(theirs), read.(double.(theirs))}) end
          end
        end)

        before = NativeV.device_stats(Device.fetch!(:auto)).memory.buffers

        for round <- 1..12 do
          {:module, NativeV} = load.()
          [1.0, 2.0] = read.(mine)
          [2.0, 1.0] = read.(view)
          [2.0, 4.0] = read.(double.(mine))
          if rem(round, 2) == 0, do: :code.purge(NativeV)
          [4.0, 8.0] = read.(double.(double.(mine)))
          send(holder, self())
          receive do
            {[3.0], [6.0]} -> :ok
            {:DOWN, ^monitor, _, _, reason} -> exit(reason)
          end
        end

        receive do {:DOWN, ^monitor, _, _, :normal} -> :ok end

        # What was made by each version is freed by the last, soon after its process has ended.
        freed = fn freed, tries ->
          :erlang.garbage_collect()
          :ok = NativeV.sync_device(Device.fetch!(:auto))
          buffers = NativeV.device_stats(Device.fetch!(:auto)).memory.buffers

          cond do
            buffers <= before + 4 -> :ok
            tries == 0 -> exit({buffers, before})
            true -> Process.sleep(20) && freed.(freed, tries - 1)
          end
        end

        :ok = freed.(freed, 1_000)
        :ok = NativeV.deallocate(mine)
        {:error, :deallocated, _} = NativeV.download(mine, nil)
        """,
      Spirv.folder!()
    )
  end

  test "other processes compute all the while" do
    VM.run!(
      @prelude <>
        """
        parent = self()

        work = fn work, x, kept, count ->
          receive do
            :stop -> send(parent, {:done, count, Enum.all?(kept, fn {ref, x} -> read.(ref) == [x, -x] end)})
          after
            0 ->
              ref = upload.([x, -x])
              [y, z] = read.(double.(ref))
              true = y == 2 * x and z == -2 * x
              if count == 0, do: send(parent, :begun)
              work.(work, x + 1, Enum.take([{ref, x} | kept], 20), count + 1)
          end
        end

        workers = for i <- 1..6, do: spawn_link(fn -> work.(work, i * 1000.0, [], 0) end)
        for _ <- workers, do: (receive do :begun -> :ok end)
        for _ <- 1..40, do: {:module, NativeV} = load.()
        for worker <- workers, do: send(worker, :stop)
        for _ <- workers, do: (receive do {:done, count, true} when count > 0 -> :ok end)
        """,
      Spirv.folder!()
    )
  end

  test "a purge that kills who is inside the library harms nobody else" do
    VM.run!(
      @prelude <>
        """
        mine = upload.([1.0, 2.0])
        {:ok, large} = Request.constant(Device.fetch!(:auto), f32, {400, 400}, encode.([1.0]))
        outs = [{f32, {400, 400}}]
        dot = [batch_a: [], batch_b: [], contract_a: [1], contract_b: [0]]

        work = fn work ->
          {:ok, [product]} = NativeV.run("dot", [large, large], outs, dot)
          {:ok, _} = NativeV.download(product, nil)
          work.(work)
        end

        for _ <- 1..15 do
          workers = for _ <- 1..4, do: spawn(fn -> work.(work) end)
          Process.sleep(5)
          :code.purge(NativeV)
          {:module, NativeV} = :code.load_file(NativeV)
          :code.purge(NativeV)
          [2.0, 4.0] = read.(double.(mine))
          for worker <- workers, do: Process.exit(worker, :kill)
        end

        {:ok, [product]} = NativeV.run("dot", [large, large], outs, dot)
        [400.0] = Enum.uniq(read.(product))
        """,
      Spirv.folder!()
    )
  end

  test "another build of the library is refused, and what runs goes on" do
    printed =
      VM.run!(
        @prelude <>
          """
          file = Path.join(:code.priv_dir(:nx_vulkan), "libnx_vulkan_nif.so")
          good = File.read!(file)
          # A file that is mapped is replaced, never written over.
          put = fn content -> File.write!(file <> ".new", content); File.rename!(file <> ".new", file) end
          true = String.contains?(good, "expected a live tensor")
          other = String.replace(good, "expected a live tensor", "expected a dead tensor")

          mine = upload.([1.0, 2.0])
          for {content, loads} <- [{good, true}, {other, false}, {"", false}, {binary_part(good, 0, 5000), false}, {good, true}] do
            put.(content)
            if loads, do: {:module, NativeV} = load.(), else: {:error, :on_load_failure} = load.()
            [2.0, 4.0] = read.(double.(mine))
          end

          File.rm!(file)
          {:error, :on_load_failure} = load.()
          [2.0, 4.0] = read.(double.(mine))
          put.(other)
          """,
        Spirv.folder!(),
        [],
        copy_of_app()
      )

    assert printed =~ "libnx_vulkan_nif is not the library that runs: restart the VM"
  end

  test "the same build at another path serves on from the first" do
    [first | others] = copy_of_app()
    [second | _] = copy_of_app()

    VM.run!(
      @prelude <>
        """
        mine = upload.([1.0, 2.0])
        true = :code.replace_path(:nx_vulkan, ~c"#{second}")
        {:module, NativeV} = load.()
        true = String.starts_with?("\#{:code.which(NativeV)}", "#{Path.dirname(second)}")
        [2.0, 4.0] = read.(double.(mine))
        maps = File.read!("/proc/self/maps") |> String.split("\\n") |> Enum.filter(&(&1 =~ "nx_vulkan_nif"))
        false = Enum.any?(maps, &(&1 =~ "#{Path.dirname(second)}"))
        """,
      Spirv.folder!(),
      [],
      [first | others]
    )
  end

  test "where the module was gone, its references are unknown, and all else works" do
    VM.run!(
      @prelude <>
        """
        mine = upload.([1.0, 2.0])
        for _ <- 1..3 do
          :code.purge(NativeV)
          true = :code.delete(NativeV)
          :code.purge(NativeV)
          false = :code.is_loaded(NativeV)
          %ArgumentError{} = try do NativeV.download(mine, nil) rescue e -> e end
          [4.0, 6.0] = read.(double.(upload.([2.0, 3.0])))
        end
        """,
      Spirv.folder!()
    )
  end

  test "events are heard after the application was stopped and started" do
    VM.run!(
      @prelude <>
        """
        mine = upload.([1.0, 2.0])
        :ok = Application.stop(:nx_vulkan)
        [2.0, 4.0] = read.(double.(mine))
        :ok = Application.start(:nx_vulkan)
        :ok = Dev.subscribe()
        [2.0, 4.0, 6.0] = read.(double.(upload.([1.0, 2.0, 3.0])))
        receive do {:nx_vulkan, %{kind: :chosen, op: "add"}} -> :ok after 60_000 -> exit(:nothing) end
        """,
      Spirv.folder!()
    )
  end

  # Code paths with a copy of this application first, for libraries to be replaced in.
  defp copy_of_app do
    root = Path.join(Spirv.folder!(), "nx_vulkan")

    for part <- ["ebin", "priv"] do
      from = Path.join(:code.lib_dir(:nx_vulkan), part)
      File.mkdir_p!(root)
      {_, 0} = System.cmd("cp", ["-rL", from, Path.join(root, part)])
    end

    own = Path.join(:code.lib_dir(:nx_vulkan), "ebin")
    [Path.join(root, "ebin") | Enum.reject(:code.get_path(), &(Path.expand(&1) == own))]
  end
end
