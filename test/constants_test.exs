if Code.ensure_loaded?(Nx) do
  defmodule Nx.Vulkan.ConstantsTest do
    use ExUnit.Case, async: false

    import Nx.Defn

    alias Nx.Vulkan.{NativeV, Request, VulkanoBackend}

    setup do
      Nx.default_backend(VulkanoBackend)
      :ok
    end

    defp known(%Nx.Tensor{data: %VulkanoBackend{ref: ref}}), do: NativeV.constant_of(ref)

    test "what an elementwise op makes of constants is known, and of others is not" do
      two = Nx.broadcast(Nx.tensor(2.0), {3, 4})
      assert known(Nx.multiply(two, Nx.tensor(21.0))) == <<42.0::float-32-native>>
      assert known(Nx.less(two, 3)) == <<1>>
      assert known(Nx.as_type(two, {:s, 64})) == <<2::64-native>>
      assert known(Nx.select(Nx.tensor(0), two, 7.0)) == <<7.0::float-32-native>>
      assert known(Nx.transpose(Nx.negate(two))) == <<-2.0::float-32-native>>
      refute known(Nx.sum(two))
      refute known(Nx.add(two, Nx.iota({3, 4})))
      assert Nx.to_flat_list(Nx.add(two, two)) == List.duplicate(4.0, 12)
    end

    test "each elementwise op gives for constants what it gives for elements" do
      for type <- [u: 8, s: 32, f: 16, f: 32, f: 64],
          op <- [:add, :subtract, :multiply, :divide, :pow, :max, :atan2, :equal, :logical_xor] do
        [a, b] = for n <- [5, 3], do: Nx.tensor(n, type: type)
        folded = apply(Nx, op, [a, b])
        assert known(folded), "#{op}"
        computed = apply(Nx, op, [Nx.tensor([5, 5], type: type), b])
        assert folded.type == computed.type
        [folded, computed] = for t <- [folded, computed], do: Nx.to_number(Nx.reduce_max(t))
        assert_in_delta folded, computed, 1.0e-3 * abs(folded)
      end
    end

    test "operands without a result raise at once" do
      zero = Nx.subtract(Nx.tensor(1), 1)
      assert_raise ArithmeticError, fn -> Nx.quotient(7, zero) end
      assert_raise ArgumentError, fn -> Nx.left_shift(7, Nx.subtract(zero, 1)) end
    end

    test "few elements that came from the VM are known, and raise at once where they have no result" do
      indices = Nx.tensor([[0, 3], [1, 1]])
      assert NativeV.known(indices.data.ref) == Nx.to_binary(indices)
      assert NativeV.known(Nx.reshape(indices, {4}).data.ref) == Nx.to_binary(indices)
      refute NativeV.known(Nx.transpose(indices).data.ref)
      refute NativeV.known(Nx.add(indices, indices).data.ref)
      refute NativeV.known(Nx.tensor(List.duplicate(1.0, 4096)).data.ref)

      t = Nx.iota({2, 3})
      outside = ~r/index 3 is out of bounds for axis 1 in shape {2, 3}/
      assert_raise ArgumentError, outside, fn -> Nx.gather(t, indices) end
      updates = Nx.tensor([1, 2])
      assert_raise ArgumentError, outside, fn -> Nx.indexed_add(t, indices, updates) end
      assert_raise ArgumentError, outside, fn -> Nx.indexed_put(t, indices, updates) end

      singular = Nx.tensor([[2.0, 0.0], [1.0, 0.0]])
      b = Nx.tensor([1.0, 1.0])
      solve = fn -> Nx.LinAlg.triangular_solve(singular, b) end
      assert_raise ArgumentError, "can't solve for singular matrix", solve

      assert NativeV.buf_upload_into(indices.data.ref, <<0::128>>) == :ok
      refute NativeV.known(indices.data.ref)
      assert Nx.to_flat_list(Nx.gather(t, indices)) == [0, 0]
    end

    test "what was written over a constant is no longer known" do
      device = NativeV.device_of(Nx.tensor(1.0).data.ref)
      {:ok, ref} = Request.constant(device, {:f, 32}, {2}, <<1.0::float-32-native>>)
      nines = for _ <- 1..2, into: <<>>, do: <<9.0::float-32-native>>
      assert NativeV.constant_of(ref)
      assert NativeV.buf_upload_into(ref, nines) == :ok
      refute NativeV.constant_of(ref)
      assert NativeV.download(ref, nil) == {:ok, nines}
    end

    defn steps(x) do
      {_, x} =
        while {i = 0, x}, i < 50 do
          {i + 1, x + 1}
        end

      x
    end

    test "a loop counter is no command" do
      x = Nx.iota({4}, type: :f32)
      compared = fn -> for {"less", _by, count} <- Nx.Vulkan.stats().served, do: count end
      before = compared.()
      assert Nx.to_flat_list(steps(x)) == [50.0, 51.0, 52.0, 53.0]
      assert compared.() == before
    end
  end
end
