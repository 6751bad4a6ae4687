if Code.ensure_loaded?(Nx) do
  defmodule Nx.Vulkan.BadInputTest do
    # What is wrong with operands is said in Nx's own words: at once where the VM knows it, else when the result is read.
    use ExUnit.Case, async: true

    alias Nx.Vulkan.NativeV
    alias Nx.Vulkan.VulkanoBackend, as: V

    # What a call gives here and on Nx.BinaryBackend: numbers, or the error and whether it comes with the call.
    defp both(call),
      do:
        for(
          backend <- [V, Nx.BinaryBackend],
          do: Nx.with_default_backend(backend, fn -> outcome(call) end)
        )

    defp outcome(call) do
      result = call.()

      try do
        read(result)
      rescue
        error -> {:later, error.__struct__, Exception.message(error)}
      end
    rescue
      error -> {:at_once, error.__struct__, Exception.message(error)}
    end

    defp read(tuple) when is_tuple(tuple), do: tuple |> Tuple.to_list() |> Enum.map(&read/1)
    defp read(tensor), do: Nx.to_flat_list(tensor)

    defp same(call) do
      [ours, theirs] = both(call)
      assert ours == theirs
      ours
    end

    defp same_error(call, words) do
      assert {:at_once, ArgumentError, message} = same(call)
      assert message =~ words
    end

    defp later(call, words) do
      [ours, theirs] = both(call)
      assert {:at_once, ArgumentError, ^words} = theirs
      assert {:later, ArgumentError, message} = ours
      message
    end

    # The same numbers where only the device knows them.
    defp computed(rows) do
      t = Nx.tensor(rows)
      Nx.add(t, Nx.multiply(Nx.iota(Nx.shape(t), type: Nx.type(t)), 0))
    end

    test "matrices that are not square" do
      a = fn -> Nx.iota({2, 3}, type: :f32) end
      b = fn -> Nx.tensor([1.0, 2.0]) end

      for call <- [
            &Nx.LinAlg.cholesky/1,
            &Nx.LinAlg.lu/1,
            &Nx.LinAlg.eigh/1,
            &Nx.LinAlg.determinant/1,
            &Nx.LinAlg.invert/1,
            &Nx.LinAlg.matrix_power(&1, 2),
            &Nx.LinAlg.solve(&1, b.()),
            &Nx.LinAlg.triangular_solve(&1, b.())
          ],
          do: same_error(fn -> call.(a.()) end, "square")
    end

    test "matrices that are singular" do
      b = fn -> Nx.tensor([1.0, 2.0]) end
      words = "can't solve for singular matrix"

      for {call, op} <- [
            {fn -> Nx.LinAlg.solve(Nx.tensor([[1.0, 2.0], [2.0, 4.0]]), b.()) end, "Solve"},
            {fn -> Nx.LinAlg.triangular_solve(computed([[0.0, 0.0], [1.0, 1.0]]), b.()) end,
             "triangular_solve"}
          ] do
        message = later(call, words)
        assert message =~ words and message =~ op and message =~ "f32[2,2]"
      end

      known = fn -> Nx.tensor([[0.0, 0.0], [1.0, 1.0]]) end
      same_error(fn -> Nx.LinAlg.triangular_solve(known.(), b.()) end, words)

      for rows <- [[[1.0, 2.0], [2.0, 4.0]], [[0.0, 0.0], [0.0, 0.0]]] do
        assert same(fn -> Nx.LinAlg.invert(Nx.tensor(rows)) end) == [:nan, :nan, :nan, :nan]
        same(fn -> Nx.LinAlg.matrix_power(Nx.tensor(rows), -1) end)
      end
    end

    test "indices out of bounds, of operands on the device" do
      index = fn i -> computed([[i]]) end
      t = fn -> Nx.iota({5}) end

      for {op, i, call} <- [
            {"gather", 5, &Nx.gather(t.(), &1)},
            {"indexed_add", 5, &Nx.indexed_add(t.(), &1, Nx.tensor([1]))},
            {"indexed_put", -1, &Nx.indexed_put(t.(), &1, Nx.tensor([1]))},
            {"Take", 5, &Nx.take(t.(), Nx.flatten(&1))},
            {"TakeAlongAxis", -1, &Nx.take_along_axis(t.(), Nx.flatten(&1))}
          ] do
        words = "index #{i} is out of bounds for axis 0 in shape {5}"
        message = later(fn -> call.(index.(i)) end, words)
        assert message =~ op and message =~ "an index is out of bounds"

        # Those that the VM has in its hands, or has brought there.
        for backend <- [Nx.BinaryBackend, V] do
          known = Nx.tensor([[i]], backend: backend)
          assert {:at_once, ArgumentError, ^words} = hd(both(fn -> call.(known) end))
        end
      end
    end

    test "slices out of bounds move to where they fit, known or not" do
      t = fn -> Nx.iota({5}) end
      assert same(fn -> Nx.slice(t.(), [9], [2]) end) == [3, 4]
      assert same(fn -> Nx.slice(t.(), [Nx.tensor(9)], [2]) end) == [3, 4]
      assert same(fn -> Nx.slice(t.(), [Nx.tensor(-4)], [2]) end) == [0, 1]
      assert same(fn -> Nx.put_slice(t.(), [9], Nx.tensor([7, 8])) end) == [0, 1, 2, 7, 8]

      assert same(fn -> Nx.put_slice(t.(), [Nx.tensor(-9)], Nx.tensor([7])) end) == [
               7,
               1,
               2,
               3,
               4
             ]

      same_error(fn -> Nx.slice(t.(), [0], [6]) end, "less than axis size")
    end

    test "windows larger than the tensor" do
      t = fn -> Nx.tensor([1, 2]) end
      two = fn -> Nx.iota({2, 2}) end

      for call <- [
            fn -> Nx.window_sum(t.(), {5}) end,
            fn -> Nx.window_max(two.(), {1, 3}) end,
            fn -> Nx.window_mean(two.(), {1, 2}, window_dilations: [1, 2]) end,
            fn -> Nx.window_reduce(t.(), 0, {5}, &Nx.add/2) end,
            fn -> Nx.window_scatter_max(t.(), Nx.tensor([1]), 0, {5}) end,
            fn -> Nx.conv(Nx.iota({1, 1, 2}), Nx.iota({1, 1, 5})) end
          ],
          do: same_error(call, "would result in empty tensor")

      # What padding makes room for is none.
      assert same(fn -> Nx.window_max(two.(), {3, 1}, padding: :same) end) == [2, 3, 2, 3]
    end

    test "padding that takes more than there is" do
      t = Nx.tensor([[1, 2, 3]], backend: V)

      for pads <- [[{0, 0, 0}, {-5, 0, 0}], [{-1, -1, 0}, {0, 0, 0}], [{0, 0, 0}, {-3, -3, 1}]] do
        pad = &Nx.pad(&1, 0, pads)

        for call <- [pad, Nx.Defn.jit(pad, compiler: Nx.Vulkan.Compiler)] do
          error = assert_raise ArgumentError, fn -> call.(t) end

          assert error.message =~
                   "no more than a tensor of shape {1, 3} has, got: #{inspect(pads)}"
        end
      end

      assert Nx.shape(Nx.pad(t, 0, [{0, 0, 0}, {-3, -2, 1}])) == {1, 0}
    end

    # Nx.BinaryBackend gives numbers for parts of it.
    test "factorizations of what is not finite end, and are NaN" do
      for n <- [2, 40], bad <- [:nan, :infinity, :neg_infinity], type <- [:f32, :f64] do
        a =
          Nx.indexed_put(Nx.eye(n, type: type, backend: V), Nx.tensor([[0, 0]]), Nx.tensor([bad]))

        {values, vectors} = Nx.LinAlg.eigh(a)
        {u, s, vt} = Nx.LinAlg.svd(a)

        for part <- [values, vectors, u, s, vt],
            do: assert(Enum.all?(Nx.to_flat_list(part), &(&1 == :nan)), inspect({n, bad, part}))
      end
    end

    test "a matrix without a Cholesky factor" do
      indefinite = [[4.0, 2.0, 1.0], [2.0, 3.0, 5.0], [1.0, 5.0, 2.0]]

      for type <- [:f16, :f32, :f64], list <- [[[1.0, 2.0], [2.0, 1.0]], indefinite, [[-1.0]]] do
        t = fn -> Nx.tensor(list, type: type) end
        [ours, theirs] = both(fn -> Nx.LinAlg.cholesky(t.()) end)
        assert {:at_once, ArithmeticError, _} = theirs
        assert {:at_once, ArithmeticError, _} = ours

        # What only the device knows.
        made = fn -> Nx.LinAlg.cholesky(Nx.multiply(t.(), 2)) end
        [ours, theirs] = both(made)
        assert {:at_once, ArithmeticError, _} = theirs
        assert List.last(ours) == :nan
      end

      # Rounding alone makes a pivot negative, or none at all.
      for list <- [[[1.0, 1.0], [1.0, 1.0]], [[0.1, 0.3], [0.3, 0.9]], [[0.0]], [[:nan]]],
          type <- [:f32, :f64],
          do: Nx.to_binary(Nx.LinAlg.cholesky(Nx.tensor(list, type: type, backend: V)))
    end

    test "NaN and nothing but NaN in what is ordered" do
      for type <- [:f16, :bf16, :f32, :f64],
          list <- [[:nan, :nan, :nan], [1.0, :nan, :infinity, :nan]] do
        t = fn -> Nx.tensor(list, type: type) end

        for direction <- [:asc, :desc] do
          same(fn -> Nx.sort(t.(), direction: direction) end)
          same(fn -> Nx.argsort(t.(), direction: direction) end)
        end

        for tie_break <- [:low, :high],
            op <- [&Nx.argmax/2, &Nx.argmin/2],
            do: same(fn -> op.(t.(), tie_break: tie_break) end)

        for k <- [1, 2, 3], do: same(fn -> Nx.top_k(t.(), k: k) end)

        for op <- [&Nx.reduce_max/1, &Nx.reduce_min/1, &Nx.median/1],
            do: same(fn -> op.(t.()) end)
      end

      same_error(fn -> Nx.top_k(Nx.tensor([1.0, 2.0]), k: 3) end, "greater than or equal to k")
    end

    test "tensors that are gone, freed or given away" do
      freed = Nx.tensor([1.0, 2.0], backend: V)
      assert Nx.backend_deallocate(freed) == :ok
      given = Nx.tensor([1.0, 2.0], backend: V)
      assert %Nx.BinaryBackend{} = Nx.backend_transfer(given, Nx.BinaryBackend).data

      for gone <- [freed, given],
          call <- [
            &Nx.exp/1,
            &Nx.add(Nx.tensor([1.0, 1.0], backend: V), &1),
            &Nx.dot(&1, &1),
            &Nx.reshape(&1, {2, 1}),
            &Nx.slice(&1, [Nx.tensor(0)], [1]),
            &Nx.concatenate([&1, &1]),
            &Nx.cumulative_sum/1,
            &Nx.sort/1,
            &Nx.fft/1,
            &Nx.reduce(&1, 0.0, fn x, y -> Nx.subtract(x, y) end),
            &Nx.backend_copy(&1, V),
            &Nx.backend_transfer(&1, Nx.BinaryBackend),
            &Nx.to_pointer/1,
            &Nx.to_binary/1
          ] do
        assert_raise ArgumentError,
                     ~r/expected a live tensor, got: one that was deallocated/,
                     fn ->
                       call.(gone)
                     end
      end
    end

    @tag skip: match?([_], NativeV.list_devices() |> elem(1)) && "this machine has one device"
    test "operands of two devices" do
      [a, b] =
        for device <- Enum.take(Nx.Vulkan.devices(), 2),
            do: Nx.tensor([1], backend: {V, device: device.uuid})

      for call <- [&Nx.add/2, &Nx.dot/2, &Nx.concatenate([&1, &2])],
          do: assert_raise(ArgumentError, ~r/operands on one device/, fn -> call.(a, b) end)
    end

    test "integers of more than 64 bits" do
      t = Nx.iota({2, 2, 4}, type: :f32, backend: V)
      large = 9_223_372_036_854_775_808

      for call <- [
            fn -> Nx.conv(t, t, strides: [large]) end,
            fn -> Nx.window_sum(t, {1, 1, 1}, strides: [2 * large + 1, 1, 1]) end,
            fn -> Nx.pad(t, 0.0, [{0, large, 0}, {0, 0, 0}, {0, 0, 0}]) end
          ] do
        assert_raise ArgumentError, ~r/expected integers of 64 bits/, call
      end
    end

    test "functions that raise" do
      t = Nx.tensor([1.0, 2.0, 3.0], backend: V)
      no = fn _, _ -> raise "no" end

      for call <- [
            fn -> Nx.reduce(t, 0.0, no) end,
            fn -> Nx.window_reduce(t, 0.0, {2}, no) end,
            fn -> Nx.Defn.jit(&Nx.reduce(&1, 0.0, no), compiler: Nx.Vulkan.Compiler).(t) end
          ],
          do: assert_raise(RuntimeError, "no", call)

      assert Nx.to_flat_list(Nx.add(t, 1)) == [2.0, 3.0, 4.0]
    end
  end
end
