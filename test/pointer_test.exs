if Code.ensure_loaded?(Nx) do
  Code.require_file("support/vm.exs", __DIR__)

  defmodule Nx.Vulkan.PointerTest do
    # Nx.to_pointer/2 and Nx.from_pointer/5. The system tells what lies in memory: /proc/self/mem.
    use ExUnit.Case, async: true

    alias Nx.Vulkan.VulkanoBackend, as: V

    @proc File.exists?("/proc/self/mem") && File.dir?("/dev/shm")

    setup do
      Nx.default_backend(V)
      :ok
    end

    defp memory(fun) do
      {:ok, file} = :file.open("/proc/self/mem", [:read, :write, :raw, :binary])
      result = fun.(file)
      :ok = :file.close(file)
      result
    end

    defp peek(%Nx.Pointer{address: address, data_size: size}) do
      {:ok, bytes} = memory(&:file.pread(&1, address, size))
      bytes
    end

    defp poke(%Nx.Pointer{address: address}, bytes),
      do: :ok = memory(&:file.pwrite(&1, address, bytes))

    defp refused(pointer, type \\ :s32, shape \\ {3}) do
      assert_raise(ArgumentError, fn -> Nx.from_pointer(V, pointer, type, shape) end).message
    end

    # What is left of a process is collected a moment after it has ended.
    defp collected(fun), do: fun |> Task.async() |> Task.await(60_000)

    defp eventually(fun, times \\ 6_000) do
      Process.sleep(10)

      try do
        assert fun.()
      rescue
        error in ExUnit.AssertionError ->
          if times == 0, do: reraise(error, __STACKTRACE__), else: eventually(fun, times - 1)
      end
    end

    defp segment(%Nx.Pointer{handle: name}), do: Path.join("/dev/shm", name)

    describe "local" do
      @describetag skip: !@proc && "this system does not show its memory"

      test "the elements of every type lie there in row-major order" do
        for type <- ~w(u8 s16 u32 s64 f16 bf16 f32 f64 f8 f8_e4m3fn c64 c128)a do
          t = Nx.iota({2, 3}, type: type)
          {_, bits} = t.type
          pointer = Nx.to_pointer(t)
          assert %Nx.Pointer{kind: :local, handle: nil} = pointer
          assert pointer.data_size == 6 * div(bits, 8)
          assert peek(pointer) == Nx.to_binary(t)
          assert Nx.to_binary(Nx.from_pointer(V, pointer, type, {2, 3})) == Nx.to_binary(t)
        end
      end

      test "of views, constants and vectors too" do
        t = Nx.iota({4, 3})

        for view <- [
              t[1..2],
              Nx.transpose(t),
              Nx.reverse(t),
              Nx.broadcast(t[0], {2, 3}),
              Nx.tensor(7),
              Nx.broadcast(7, {2, 2}),
              Nx.vectorize(t, :x)
            ] do
          pointer = Nx.to_pointer(view)
          assert peek(pointer) == Nx.to_binary(view)
          assert Nx.to_pointer(view) == pointer
        end
      end

      test "the result of work that is under way is complete" do
        x = Nx.iota({256, 256}, type: :f32) |> Nx.divide(65_536)
        product = Enum.reduce(1..8, x, fn _, acc -> Nx.dot(acc, x) |> Nx.divide(64) end)
        assert peek(Nx.to_pointer(product)) == Nx.to_binary(product)
      end

      test "a tensor made of it shares the memory" do
        t = Nx.tensor([1, 2, 3])
        pointer = Nx.to_pointer(t)
        same = Nx.from_pointer(V, pointer, :s32, {3}, names: [:x])
        assert same.names == [:x]
        last = %{pointer | address: pointer.address + 8, data_size: 4}
        last = Nx.from_pointer({V, []}, last, :u32, {})
        poke(pointer, <<7::32-native, 8::32-native, 9::32-native>>)
        assert Nx.to_flat_list(t) == [7, 8, 9]
        assert Nx.to_flat_list(Nx.multiply(same, 2)) == [14, 16, 18]
        assert Nx.to_number(last) == 9
      end

      test "what is written into a constant stays there" do
        seven = Nx.tensor(7)
        poke(Nx.to_pointer(seven), <<8::32-native>>)
        assert Nx.to_number(seven) == 8
        assert Nx.to_number(Nx.add(seven, 1)) == 9
        assert Nx.to_number(Nx.tensor(7)) == 7
      end

      test "it lives as long as one of them" do
        t = Nx.tensor([1, 2, 3])
        pointer = Nx.to_pointer(t)
        same = Nx.from_pointer(V, pointer, :s32, {3})
        assert Nx.backend_deallocate(t) == :ok
        assert Nx.to_flat_list(Nx.from_pointer(V, pointer, :s32, {3})) == [1, 2, 3]
        assert Nx.to_flat_list(same) == [1, 2, 3]
      end

      test "of tensors that are gone it is refused" do
        freed = Nx.tensor([1, 2, 3])
        pointer = Nx.to_pointer(freed)
        Nx.backend_deallocate(freed)
        assert refused(pointer) =~ "where no tensor lies whose pointer was asked for"

        # Given away to another backend.
        given = Nx.tensor([1, 2, 3])
        pointer = Nx.to_pointer(given)
        assert Nx.to_flat_list(Nx.backend_transfer(given, Nx.BinaryBackend)) == [1, 2, 3]
        assert refused(pointer) =~ "where no tensor lies"

        pointer = collected(fn -> Nx.to_pointer(Nx.tensor([1, 2, 3], backend: V)) end)
        eventually(fn -> refused(pointer) =~ "where no tensor lies" end)

        for mode <- [:local, :ipc], gone <- [freed, given] do
          assert_raise ArgumentError, ~r/deallocated/, fn -> Nx.to_pointer(gone, mode: mode) end
        end
      end

      test "memory of others is copied" do
        line =
          "/proc/self/maps"
          |> File.read!()
          |> String.split("\n")
          |> Enum.find(&(&1 =~ ~r/ r..p 00000000 .*beam/))

        [_, first] = Regex.run(~r/^([0-9a-f]+)-/, line)
        pointer = %Nx.Pointer{kind: :local, address: String.to_integer(first, 16)}
        assert Nx.to_binary(Nx.from_pointer(V, pointer, :u8, {4})) == <<127, "ELF">>
      end

      test "a hundred processes ask for the same constant's" do
        t = Nx.broadcast(3, {5})

        pointers =
          1..100
          |> Task.async_stream(fn _ -> Nx.to_pointer(t) end,
            max_concurrency: 100,
            timeout: :infinity
          )
          |> Enum.map(fn {:ok, pointer} -> pointer end)

        assert [pointer] = Enum.uniq(pointers)
        assert peek(pointer) == Nx.to_binary(t)
      end
    end

    describe "local misuse" do
      test "addresses where nothing can be read" do
        size = %{kind: :local, data_size: 12}

        for address <- [4096, 2 ** 46, 2 ** 63, 2 ** 64 - 4],
            do:
              assert(refused(struct(Nx.Pointer, Map.put(size, :address, address))) =~ "can read")

        for address <- [nil, 0, -1, 2 ** 64, 1.0, "1"],
            do: assert(refused(struct(Nx.Pointer, Map.put(size, :address, address))) =~ "above 0")

        assert refused(%Nx.Pointer{kind: :neither, address: 4096, data_size: 12}) =~ "of kind"
        assert refused({:address, 4096}) =~ "expected an Nx.Pointer"
      end

      test "sizes that are not the shape's" do
        t = Nx.tensor([1, 2, 3])
        pointer = Nx.to_pointer(t)

        for size <- [0, 8, 11, 13, -12, 12.0, :all] do
          message = refused(%{pointer | data_size: size})

          assert message =~
                   "expected a pointer to 12 bytes for s32{3}, got: one to #{inspect(size)}"
        end

        assert refused(%{pointer | data_size: 16}, :s32, {4}) =~ "no tensor lies"
        beside = %{pointer | address: pointer.address + 2, data_size: 8}
        assert refused(beside, :s32, {2}) =~ "between two of its elements"
        huge = %{pointer | data_size: nil}
        assert refused(huge, :f64, {2 ** 40, 2 ** 40}) =~ "too many elements"
        assert Nx.to_flat_list(t) == [1, 2, 3]
      end

      test "types narrower than a byte, and options" do
        assert_raise ArgumentError, ~r/whole bytes, got: u4/, fn ->
          Nx.to_pointer(Nx.tensor([1], type: :u4))
        end

        assert refused(%Nx.Pointer{kind: :local, address: 4096}, :s2) =~ "whole bytes, got: s2"
        t = Nx.tensor([1])
        assert_raise ArgumentError, ~r/:local or :ipc/, fn -> Nx.to_pointer(t, mode: :remote) end
        assert_raise ArgumentError, ~r/unknown keys/, fn -> Nx.to_pointer(t, shared: true) end

        for opts <- [[shared: true], [name: :x]] do
          assert_raise ArgumentError, ~r/unknown keys/, fn ->
            Nx.from_pointer(V, Nx.to_pointer(t), :s32, {1}, opts)
          end
        end

        assert_raise ArgumentError, ~r/unknown keys/, fn ->
          Nx.from_pointer({V, client: :host}, Nx.to_pointer(t), :s32, {1})
        end
      end
    end

    describe "ipc" do
      @describetag skip: !@proc && "this system does not show its shared memory"

      test "another process of the system reads it by its name" do
        t = Nx.tensor([[1.5, -2.0], [3.25, 4.0]])
        pointer = Nx.to_pointer(t, mode: :ipc)
        assert %Nx.Pointer{kind: :ipc, address: nil, data_size: 16} = pointer
        assert {od, 0} = System.cmd("od", ["-An", "-tf4", segment(pointer)])
        assert String.split(od) == ["1.5", "-2", "3.25", "4"]
        assert Nx.to_binary(Nx.from_pointer(V, pointer, :f32, {2, 2})) == Nx.to_binary(t)
      end

      test "another VM makes a tensor of it, and gives one back" do
        t = Nx.iota({3, 2}, type: :f64)
        pointer = Nx.to_pointer(t, mode: :ipc)
        cache = System.get_env("NX_VULKAN_CACHE", "")

        script = """
        {:ok, _} = Application.ensure_all_started([:nx, :nx_vulkan])
        Nx.default_backend(Nx.Vulkan.VulkanoBackend)
        pointer = %Nx.Pointer{kind: :ipc, handle: #{inspect(pointer.handle)}, data_size: 48}
        t = Nx.from_pointer(Nx.Vulkan.VulkanoBackend, pointer, :f64, {3, 2})
        sum = Nx.add(t, 1)
        IO.puts("HANDLE " <> Nx.to_pointer(sum, mode: :ipc).handle)
        IO.puts("SUM " <> inspect(Nx.to_flat_list(sum)))
        """

        printed = Nx.Vulkan.VM.run!(script, cache)
        assert printed =~ "SUM [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]"
        [_, handle] = Regex.run(~r/HANDLE (\S+)/, printed)
        # Its own went with it, ours did not.
        refute File.exists?(Path.join("/dev/shm", handle))
        assert refused(%{pointer | handle: handle}, :f64, {3, 2}) =~ "No such file"
        assert File.read!(segment(pointer)) == Nx.to_binary(t)
      end

      test "the segment is there as long as the tensor, with the permissions that were asked for" do
        t = Nx.tensor([1, 2, 3])
        pointer = Nx.to_pointer(t, mode: :ipc)
        assert Bitwise.band(File.stat!(segment(pointer)).mode, 0o7777) == 0o400
        assert Nx.to_pointer(t, mode: :ipc) == pointer
        writable = Nx.to_pointer(t, mode: :ipc, permissions: 0o620)
        assert Bitwise.band(File.stat!(segment(writable)).mode, 0o7777) == 0o620
        assert writable.handle != pointer.handle
        copy = Nx.from_pointer(V, pointer, :s32, {3})
        Nx.backend_deallocate(t)
        refute File.exists?(segment(pointer)) or File.exists?(segment(writable))
        assert refused(pointer) =~ "No such file"
        assert Nx.to_flat_list(copy) == [1, 2, 3]

        pointer = collected(fn -> Nx.to_pointer(Nx.tensor([4], backend: V), mode: :ipc) end)
        eventually(fn -> not File.exists?(segment(pointer)) end)
      end

      test "a segment of others, by its name with a slash and without" do
        path =
          Path.join("/dev/shm", "nxv-test-#{System.pid()}-#{System.unique_integer([:positive])}")

        File.write!(path, <<1::16-native, 2::16-native>>)
        on_exit(fn -> File.rm(path) end)
        pointer = %Nx.Pointer{kind: :ipc, handle: Path.basename(path), data_size: 4}

        for handle <- [pointer.handle, "/" <> pointer.handle] do
          t = Nx.from_pointer(V, %{pointer | handle: handle}, :u16, {2})
          assert Nx.to_flat_list(t) == [1, 2]
        end

        assert refused(%{pointer | data_size: 6}, :u16, {3}) =~ "it has 4 bytes"
      end

      test "handles and permissions that are none" do
        pointer = %Nx.Pointer{kind: :ipc, handle: "nobody", data_size: 12}
        assert refused(pointer) =~ ~s(got: "nobody": No such file)
        assert refused(%{pointer | data_size: 11}) =~ "expected a pointer to 12 bytes"

        for handle <- ["../../etc/passwd", "a\0b", String.duplicate("x", 300), "/"],
            do: assert(refused(%{pointer | handle: handle}) =~ "expected the name of 12 bytes")

        for handle <- [nil, "", 7, <<255, 254>>],
            do: assert(refused(%{pointer | handle: handle}) =~ "name of shared memory")

        for permissions <- [-1, 0o10000, nil, "0400"] do
          assert_raise ArgumentError, ~r/a file's mode/, fn ->
            Nx.to_pointer(Nx.tensor([1]), mode: :ipc, permissions: permissions)
          end
        end
      end
    end
  end
end
