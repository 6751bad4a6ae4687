defmodule Nx.Vulkan.NativeVTest do
  use ExUnit.Case, async: true

  alias Nx.Vulkan.{Device, NativeV, Request}

  @f32 {:f, 32}

  setup_all do
    %{device: Device.fetch!(Device.default())}
  end

  defp tensor(device, values) do
    bytes = for x <- values, into: <<>>, do: <<x::float-32-native>>
    {:ok, ref} = Request.upload(device, @f32, {length(values)}, bytes)
    ref
  end

  defp floats(ref) do
    {:ok, bytes} = NativeV.download(ref, nil)
    for <<x::float-32-native <- bytes>>, do: x
  end

  describe "buffers" do
    test "a binary comes back as it went" do
      for size <- [1, 3, 4, 255, 4096, 70_001, 3_000_000] do
        bytes = :rand.bytes(size)
        assert {:ok, ref} = NativeV.buf_upload(bytes)
        assert NativeV.buf_download(ref) == {:ok, bytes}
        assert NativeV.buf_byte_size(ref) == size
      end
    end

    test "a new buffer is zeros, also where used memory is handed out again" do
      for _ <- 1..50, size <- [4, 1000, 65_536] do
        {:ok, used} = NativeV.buf_upload(:binary.copy(<<255>>, size))
        NativeV.deallocate(used)
        assert {:ok, ref} = NativeV.buf_alloc(size)
        assert NativeV.buf_download(ref) == {:ok, :binary.copy(<<0>>, size)}
      end
    end

    test "an empty buffer is a buffer" do
      for {:ok, ref} <- [NativeV.buf_upload(""), NativeV.buf_alloc(0)] do
        assert NativeV.buf_download(ref) == {:ok, ""}
        assert NativeV.buf_byte_size(ref) == 0
        assert NativeV.buf_upload_into(ref, "") == :ok
      end
    end

    test "upload_into overwrites, and refuses another size" do
      {:ok, ref} = NativeV.buf_upload("abcd")
      assert NativeV.buf_upload_into(ref, "efgh") == :ok
      assert NativeV.buf_download(ref) == {:ok, "efgh"}
      assert NativeV.buf_upload_into(ref, "abc") == {:error, :size_mismatch}
      assert NativeV.buf_upload_into(ref, "abcde") == {:error, :size_mismatch}
      assert NativeV.buf_download(ref) == {:ok, "efgh"}
    end

    test "wrong terms are errors" do
      assert NativeV.buf_upload(:atom) == {:error, :bad_input}
      assert NativeV.buf_upload(<<1::3>>) == {:error, :bad_input}
      assert NativeV.buf_alloc(-1) == {:error, :bad_input}
      assert NativeV.buf_alloc(1.5) == {:error, :bad_input}
      assert NativeV.buf_download(make_ref()) == {:error, :bad_input}
      assert NativeV.buf_download(nil) == {:error, :bad_input}
      assert NativeV.buf_upload_into(make_ref(), "a") == {:error, :bad_input}
      assert_raise ArgumentError, fn -> NativeV.buf_byte_size(make_ref()) end
    end

    test "a freed buffer keeps its size and gives an error" do
      {:ok, ref} = NativeV.buf_upload("abcd")
      assert NativeV.deallocate(ref) == :ok
      assert NativeV.deallocate(ref) == :already_deallocated
      assert NativeV.buf_download(ref) == {:error, :bad_input}
      assert NativeV.buf_upload_into(ref, "efgh") == {:error, :bad_input}
      assert NativeV.buf_byte_size(ref) == 4
    end

    test "a buffer no memory can hold is an error, and everything still works" do
      assert {:error, :upload_failed, message} = NativeV.buf_alloc(Bitwise.bsl(1, 46))
      assert message =~ ~r/memory|limit|large/
      assert {:error, _, _} = NativeV.buf_alloc(Bitwise.bsl(1, 63) - 1)
      assert {:ok, ref} = NativeV.buf_upload("still here")
      assert NativeV.buf_download(ref) == {:ok, "still here"}
    end
  end

  describe "devices" do
    test "the best device is in the list", %{device: device} do
      {:ok, [_ | _] = all} = NativeV.list_devices()
      assert NativeV.device_info(device).uuid in Enum.map(all, & &1.uuid)
    end

    test "a device opens once, whatever it is called", %{device: device} do
      %{index: index, uuid: uuid, name: name} = NativeV.device_info(device)
      {:ok, ref} = NativeV.buf_upload("x")

      for choice <- [index, uuid, name, String.upcase(uuid)] do
        assert NativeV.same_device(ref, Device.fetch!(choice))
      end
    end

    test "a device that is not there is an error" do
      assert {:error, :no_device, _} = Device.fetch(9_999)
      assert {:error, :no_device, _} = Device.fetch("no such device")
      assert {:error, :no_device, _} = Device.fetch("00000000-0000-0000-0000-000000000000")
      assert_raise ArgumentError, ~r/expected :device/, fn -> Device.validate!(-1) end
      assert_raise ArgumentError, ~r/expected :device/, fn -> Device.validate!(:gpu) end
    end
  end

  describe "run" do
    test "computes without Nx", %{device: device} do
      a = tensor(device, [1.0, 2.0, 3.0])
      b = tensor(device, [10.0, 20.0, 30.0])
      assert {:ok, [sum]} = Request.run("add", [a, b], [{@f32, {3}}], [])
      assert floats(sum) == [11.0, 22.0, 33.0]
      assert {:ok, [total]} = Request.run("sum", [sum], [{@f32, {}}], axes: [0])
      assert floats(total) == [66.0]
    end

    test "ops without operands take the device", %{device: device} do
      assert {:ok, [ref]} = Request.run("iota", device, [{@f32, {2, 3}}], axis: [])
      assert floats(ref) == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    end

    test "shapes that do not fit are errors", %{device: device} do
      [a, b] = [tensor(device, [1.0, 2.0]), tensor(device, [1.0, 2.0, 3.0])]
      assert {:error, :bad_input, _} = Request.run("add", [a, b], [{@f32, {3}}], [])
      assert {:error, :bad_input, _} = Request.run("add", [a, a], [{@f32, {3}}], [])
      assert {:error, :bad_input, _} = Request.run("add", [a], [{@f32, {2}}], [])
      assert {:error, :bad_input, _} = Request.run("sum", [a], [{@f32, {}}], axes: [7])
      assert {:error, :bad_input, _} = Request.run("add", [a, a], [], [])
      assert {:error, kind, message} = Request.run("frobnicate", [a], [{@f32, {2}}], [])
      assert kind in [:bad_input, :unsupported] and message =~ "frobnicate"
    end

    test "wrong terms are errors", %{device: device} do
      a = tensor(device, [1.0, 2.0])
      assert_raise ArgumentError, fn -> NativeV.run("add", [a, make_ref()], [{@f32, {2}}], []) end
      assert_raise ArgumentError, fn -> NativeV.run("add", [], [{@f32, {2}}], []) end
      assert_raise ArgumentError, fn -> NativeV.run(:add, [a, a], [{@f32, {2}}], []) end
      assert_raise ArgumentError, fn -> NativeV.run("add", [a, a], [{{:f, 33}, {2}}], []) end
      assert_raise ArgumentError, fn -> NativeV.run("add", [a, a], [{@f32, {-2}}], []) end
      assert_raise ArgumentError, fn -> NativeV.run("add", [a, device], [{@f32, {2}}], []) end
      assert_raise ArgumentError, fn -> NativeV.download(device, nil) end
    end

    test "a freed operand is an error", %{device: device} do
      [a, b] = [tensor(device, [1.0]), tensor(device, [1.0])]
      :ok = NativeV.deallocate(a)
      assert {:error, :deallocated, message} = Request.run("add", [b, a], [{@f32, {1}}], [])
      assert message =~ "deallocated"
      assert {:error, :deallocated, _} = NativeV.download(a, nil)
      assert {:error, :deallocated, _} = NativeV.transpose(a, [0])
      assert {:error, :deallocated, _} = NativeV.reshape(a, {1, 1})
    end

    test "tensors without elements", %{device: device} do
      {:ok, empty} = Request.upload(device, @f32, {0, 3}, "")
      assert {:ok, [negated]} = Request.run("negate", [empty], [{@f32, {0, 3}}], [])
      assert NativeV.download(negated, nil) == {:ok, ""}
      assert {:ok, [sum]} = Request.run("sum", [empty], [{@f32, {3}}], axes: [0])
      assert floats(sum) == [0.0, 0.0, 0.0]
    end

    test "a result no memory can hold is an error, and everything still works", %{device: device} do
      a = tensor(device, [1.0])
      {:ok, wide} = NativeV.broadcast(a, {8_388_608, 8_388_608}, [1])
      assert {:error, kind, _} = Request.run("exp", [wide], [{@f32, {8_388_608, 8_388_608}}], [])
      assert kind in [:out_of_memory, :bad_input]
      assert {:ok, [ref]} = Request.run("negate", [a], [{@f32, {1}}], [])
      assert floats(ref) == [-1.0]
    end
  end

  describe "views" do
    test "are read in row-major order", %{device: device} do
      {:ok, [m]} = Request.run("iota", device, [{@f32, {2, 3}}], axis: [])
      {:ok, t} = NativeV.transpose(m, [1, 0])
      assert floats(t) == [0.0, 3.0, 1.0, 4.0, 2.0, 5.0]
      assert NativeV.reshape(t, {6}) == :copy
      {:ok, r} = NativeV.reverse(m, [1])
      assert floats(r) == [2.0, 1.0, 0.0, 5.0, 4.0, 3.0]
      {:ok, s} = NativeV.slice(m, [0, 1], [2, 1], [1, 1])
      assert floats(s) == [1.0, 4.0]
      {:ok, b} = NativeV.broadcast(s, {2, 2}, [0, 1])
      assert floats(b) == [1.0, 1.0, 4.0, 4.0]
      assert {:ok, <<1.0::float-32-native>>} = NativeV.download(s, 1)
    end

    test "outlive the tensor they were made from", %{device: device} do
      {:ok, [m]} = Request.run("iota", device, [{@f32, {4}}], axis: [])
      {:ok, r} = NativeV.reverse(m, [0])
      NativeV.deallocate(m)
      assert floats(r) == [3.0, 2.0, 1.0, 0.0]
    end

    test "that do not fit are errors", %{device: device} do
      a = tensor(device, [1.0, 2.0])
      assert {:error, :bad_input, _} = NativeV.reshape(a, {3})
      assert {:error, :bad_input, _} = NativeV.transpose(a, [1])
      assert {:error, :bad_input, _} = NativeV.transpose(a, [0, 0])
      assert {:error, :bad_input, _} = NativeV.squeeze(a, [0])
      assert {:error, :bad_input, _} = NativeV.broadcast(a, {3}, [0])
      assert {:error, :bad_input, _} = NativeV.slice(a, [1], [2], [1])
      assert {:error, :bad_input, _} = NativeV.slice(a, [0], [1], [0])
      assert {:error, :bad_input, _} = NativeV.reverse(a, [5])
      assert {:error, :bad_input, _} = NativeV.bitcast(a, {:f, 64})
    end
  end
end
