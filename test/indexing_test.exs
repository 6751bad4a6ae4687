if Code.ensure_loaded?(Nx) do
  defmodule Nx.Vulkan.IndexingTest do
    # Movement and indexing on the device: what each op gives by its definition, what is out of bounds, and that nothing
    # runs elsewhere.
    use ExUnit.Case, async: false
    import Bitwise

    alias Nx.Vulkan.VulkanoBackend, as: V

    setup do
      Nx.default_backend(V)
      # What the device does not run raises.
      Application.put_env(:nx_vulkan, :fallback, :error)
      on_exit(fn -> Application.delete_env(:nx_vulkan, :fallback) end)
      :ok
    end

    defp device(tensor), do: Nx.backend_copy(tensor, V)

    defp assert_equal(left, right) do
      assert left.type == right.type
      assert Nx.to_binary(left) == Nx.to_binary(right)
    end

    describe "gather" do
      test "reads parts by their indices" do
        t = Nx.iota({3, 4, 5})
        index = Nx.tensor([[2, 1], [0, 4]])
        expected = for [i, k] <- [[2, 1], [0, 4]], do: for(j <- 0..3, do: i * 20 + j * 5 + k)
        assert Nx.to_list(Nx.gather(t, index, axes: [0, 2])) == expected
      end

      test "takes indices of any integer type" do
        t = Nx.tensor([10, 11, 12], type: :u8)

        for type <- [:u8, :u16, :u32, :u64, :s8, :s16, :s32, :s64] do
          index = Nx.tensor([[2], [0]], type: type)
          assert Nx.to_list(Nx.gather(t, index)) == [12, 10]
          assert Nx.to_list(Nx.take(t, Nx.tensor([[1, 2]], type: type))) == [[11, 12]]
          assert Nx.to_list(Nx.take_along_axis(t, Nx.tensor([1], type: type))) == [11]
        end
      end

      test "raises for indices that the VM knows, in Nx's words" do
        t = Nx.iota({2, 3})
        index = Nx.tensor([[0], [3]], backend: Nx.BinaryBackend)
        words = "index 3 is out of bounds for axis 0 in shape {3, 2}"
        assert_raise ArgumentError, words, fn -> Nx.gather(t, index, axes: [1]) end
        assert_raise ArgumentError, words, fn -> Nx.take(t, Nx.squeeze(index), axis: 1) end
        words = "index -1 is out of bounds for axis 1 in shape {2, 3}"

        assert_raise ArgumentError, words, fn ->
          Nx.take_along_axis(t, Nx.tensor([[0], [-1]], backend: Nx.BinaryBackend), axis: 1)
        end
      end

      test "raises for others when the result is read" do
        t = Nx.iota({2, 3})

        for {index, type} <- [{2, :s32}, {-1, :s64}, {1 <<< 40, :u64}, {200, :u8}] do
          index = device(Nx.tensor([[0], [index]], type: type))
          parts = Nx.gather(t, index)
          assert parts.shape == {2, 3}

          assert_raise ArgumentError, ~r/gather.*an index is out of bounds/, fn ->
            Nx.to_binary(parts)
          end

          sum = Nx.sum(Nx.take(t, Nx.squeeze(index)))

          assert_raise ArgumentError, ~r/Take.*an index is out of bounds/, fn ->
            Nx.to_number(sum)
          end
        end
      end
    end

    describe "concatenate and stack" do
      test "join any number of tensors" do
        for count <- [1, 2, 63, 64, 65, 200] do
          tensors = for i <- 1..count, do: Nx.tensor([[i, -i]])
          list = for i <- 1..count, do: [i, -i]
          assert Nx.to_list(Nx.concatenate(tensors)) == list
          assert Nx.to_list(Nx.concatenate(tensors, axis: 1)) == [Enum.concat(list)]
          assert Nx.to_list(Nx.stack(tensors, axis: 1)) == [list]
          scalars = for t <- tensors, do: t[0][0]
          assert Nx.to_list(Nx.stack(scalars)) == Enum.to_list(1..count)
        end
      end

      test "promote mixed types" do
        parts = [Nx.tensor([1, 2], type: :u8), Nx.tensor([-1.5]), Nx.tensor([7], type: :s64)]
        assert_equal(Nx.concatenate(parts), Nx.tensor([1.0, 2.0, -1.5, 7.0]))
        parts = [Nx.tensor([1, 2], type: :u8), Nx.tensor([3, 4], type: :s16)]
        assert_equal(Nx.stack(parts), Nx.tensor([[1, 2], [3, 4]], type: :s16))
      end

      test "take views" do
        t = Nx.iota({3, 4})

        parts = [
          Nx.transpose(t),
          Nx.reverse(Nx.transpose(t)),
          Nx.broadcast(Nx.tensor([9]), {1, 3})
        ]

        assert Nx.to_list(Nx.concatenate(parts)) ==
                 [[0, 4, 8], [1, 5, 9], [2, 6, 10], [3, 7, 11]] ++
                   [[11, 7, 3], [10, 6, 2], [9, 5, 1], [8, 4, 0]] ++ [[9, 9, 9]]
      end
    end

    describe "slice" do
      test "reads starts on the device, which move to where the slice fits" do
        t = Nx.iota({10, 3})

        for {start, first} <- [{-7, 0}, {2, 2}, {6, 6}, {9, 6}, {2_000_000_000, 6}],
            type <- [:s32, :s64] do
          start = device(Nx.tensor([start], type: type))[0]
          part = Nx.slice(t, [start, 1], [4, 2], strides: [3, 1])
          assert Nx.to_list(part) == for(i <- [first, first + 3], do: [i * 3 + 1, i * 3 + 2])
        end

        huge = device(Nx.tensor([(1 <<< 64) - 1], type: :u64))[0]
        assert Nx.to_list(Nx.slice(t, [huge, huge], [1, 1])) == [[29]]
        small = device(Nx.tensor([-2], type: :s8))[0]
        assert Nx.to_list(Nx.slice(t, [small, small], [1, 2])) == [[0, 1]]
        assert Nx.to_list(Nx.slice(t, [-1, 2], [1, 2])) == [[1, 2]]
        compiled = Nx.Defn.jit(&Nx.slice(&1, [-1, 2], [1, 2]), compiler: Nx.Vulkan.Compiler)
        assert Nx.to_list(compiled.(t)) == [[1, 2]]
      end

      test "is a view where the VM knows the starts" do
        t = Nx.iota({10, 3})
        served = fn -> for {"dynamic_slice", _, n} <- Nx.Vulkan.stats().served, do: n end
        before = served.()
        part = Nx.slice(t, [Nx.tensor(20), Nx.tensor(-1)], [2, 3])
        assert served.() == before
        assert Nx.to_list(part) == [[24, 25, 26], [27, 28, 29]]
      end
    end

    describe "put_slice" do
      test "replaces the part at the starts" do
        for {start, first} <- [{-7, 0}, {2, 2}, {9, 3}] do
          part = Nx.tensor([[100, 101], [102, 103]])
          start = device(Nx.tensor([start]))[0]

          expected =
            for i <- 0..4 do
              for j <- 0..3 do
                if i in first..(first + 1) and j in 2..3,
                  do: 100 + (i - first) * 2 + (j - 2),
                  else: i * 4 + j
              end
            end

          assert Nx.to_list(Nx.put_slice(Nx.iota({5, 4}), [start, 9], part)) == expected
        end
      end

      test "merges types" do
        result = Nx.put_slice(Nx.tensor([1, 2, 3]), [1], Nx.tensor([0.5]))
        assert_equal(result, Nx.tensor([1.0, 0.5, 3.0]))
      end
    end

    describe "pad" do
      test "puts the value around and between, and crops" do
        # By definition: element i of the result is element (i - low) / (interior + 1), where there is one.
        for n <- [1, 2, 5], low <- [-2, 0, 3], high <- [-1, 0, 2], interior <- [0, 2] do
          size = low + n + interior * (n - 1) + high

          if size > 0 do
            expected =
              for i <- 0..(size - 1) do
                {at, rest} =
                  {Integer.floor_div(i - low, interior + 1), Integer.mod(i - low, interior + 1)}

                if rest == 0 and at in 0..(n - 1), do: at + 1, else: -9
              end

            t = Nx.iota({n}) |> Nx.add(1)
            assert Nx.to_list(Nx.pad(t, -9, [{low, high, interior}])) == expected
            # The same along the outer and the inner axis.
            both = Nx.pad(Nx.stack([t, t], axis: 1), -9, [{low, high, interior}, {1, 0, 0}])
            assert Nx.to_list(both) == Enum.map(expected, &[-9, &1, &1])
          end
        end
      end

      test "crops each of several rows" do
        for type <- [:u8, :s16, :f32, :f64, :c64],
            columns <- [5, 41, 64],
            {low, high} <- [{0, -2}, {1, -1}, {-3, -1}, {2, -3}, {0, -4}] do
          size = columns + low + high

          rows =
            for row <- 0..2 do
              for at <- -low..(size - 1 - low),
                  do: if(at in 0..(columns - 1), do: row * columns + at, else: 7)
            end

          outer = List.duplicate(7, size)
          t = Nx.iota({3, columns}, type: type)
          padded = Nx.pad(t, 7, [{1, 1, 0}, {low, high, 0}])
          assert_equal(padded, Nx.tensor([outer] ++ rows ++ [outer], type: type))
        end
      end

      test "merges types and takes a value that the device computed" do
        assert_equal(Nx.pad(Nx.tensor([1, 2]), 0.5, [{1, 0, 0}]), Nx.tensor([0.5, 1.0, 2.0]))
        value = Nx.sum(Nx.tensor([1.5, 2.0]))
        assert_equal(Nx.pad(Nx.tensor([1.0]), value, [{0, 1, 0}]), Nx.tensor([1.0, 3.5]))
      end
    end

    describe "indexed_add and indexed_put" do
      test "add every update, and keep the last one of a place" do
        :rand.seed(:exsss, 7)

        for count <- [1, 5, 64, 65, 130, 300, 5000], places <- [1, 3, 500, 70_000] do
          rows = for i <- 1..count, do: {:rand.uniform(places) - 1, i}
          {at, updates} = Enum.unzip(rows)
          {at, updates} = {Nx.tensor(at) |> Nx.new_axis(1), Nx.tensor(updates)}
          t = Nx.iota({places})
          list = Enum.to_list(0..(places - 1))
          assert Nx.to_list(Nx.indexed_add(t, at, updates)) == updated(list, rows, &+/2)

          assert Nx.to_list(Nx.indexed_put(t, at, updates)) ==
                   updated(list, rows, fn _, x -> x end)
        end
      end

      # The list after one update after the other.
      defp updated(list, rows, fun) do
        map = list |> Enum.with_index() |> Map.new(fn {x, i} -> {i, x} end)

        map =
          Enum.reduce(rows, map, fn {at, update}, map ->
            Map.update!(map, at, &fun.(&1, update))
          end)

        for i <- 0..(length(list) - 1), do: map[i]
      end

      test "take parts, along any axes" do
        t = Nx.broadcast(0, {3, 2, 4})
        updates = Nx.tensor([[1, 2], [10, 20], [100, 200]])
        index = Nx.tensor([[2, 3], [0, 0], [2, 3]], type: :u8)
        added = Nx.indexed_add(t, index, updates, axes: [0, 2])
        assert Nx.to_list(added[[2, .., 3]]) == [101, 202]
        assert Nx.to_list(added[[0, .., 0]]) == [10, 20]
        assert Nx.to_number(Nx.sum(added)) == 333
        put = Nx.indexed_put(t, index, updates, axes: [0, 2])
        assert Nx.to_list(put[[2, .., 3]]) == [100, 200]
      end

      test "take parts of each vector, which Nx flattens" do
        flat = Nx.iota({2, 3, 2, 2})
        apart = Nx.vectorize(flat, :v)
        parts = Nx.iota({2, 2, 2, 2}) |> Nx.add(100)
        shared = Nx.tensor([[2], [0]])
        own = Nx.tensor([[[0], [1]], [[2], [2]]])

        for op <- [:indexed_add, :indexed_put],
            compiler <- [Nx.Defn.Evaluator, Nx.Vulkan.Compiler] do
          update = &apply(Nx, op, [&1, &2, &3])
          run = &Nx.Defn.jit_apply(update, [&1, &2, &3], compiler: compiler)
          one = for v <- 0..1, do: Nx.to_list(run.(flat[v], shared, parts[v]))
          updates = Nx.vectorize(parts, :v)
          assert Nx.to_list(Nx.devectorize(run.(apart, shared, updates))) == one
          # Indices of each vector, and updates that all of them share.
          other = for v <- 0..1, do: Nx.to_list(run.(flat[v], own[v], parts[1]))
          result = run.(apart, Nx.vectorize(own, :v), parts[1])
          assert Nx.to_list(Nx.devectorize(result)) == other
        end
      end

      test "give the same bits each time" do
        key = Nx.Random.key(3)
        {updates, key} = Nx.Random.normal(key, shape: {20_000, 3})
        {index, _} = Nx.Random.randint(key, 0, 7, shape: {20_000, 1})
        add = fn -> Nx.to_binary(Nx.indexed_add(Nx.broadcast(0.0, {7, 3}), index, updates)) end
        first = add.()
        for _ <- 1..5, do: assert(add.() == first)
        # The sum in f64 is exact to within f32's roundings of 3000 terms.
        wide = Nx.indexed_add(Nx.broadcast(Nx.f64(0), {7, 3}), index, Nx.as_type(updates, :f64))
        apart = Nx.subtract(wide, Nx.from_binary(first, :f32) |> Nx.reshape({7, 3}))
        assert Nx.to_number(Nx.reduce_max(Nx.abs(apart))) < 1.0e-3
      end

      test "raise for an index that is out of bounds" do
        t = Nx.iota({2, 3})
        words = "index 2 is out of bounds for axis 0 in shape {2, 3}"
        known = Nx.tensor([[0], [2]], backend: Nx.BinaryBackend)
        updates = Nx.iota({2, 3})

        for op <- [:indexed_add, :indexed_put] do
          assert_raise ArgumentError, words, fn -> apply(Nx, op, [t, known, updates]) end
          assert_raise ArgumentError, words, fn -> apply(Nx, op, [t, device(known), updates]) end
          computed = Nx.multiply(Nx.iota({2, 1}), 2)
          result = apply(Nx, op, [t, computed, updates])
          words = ~r/#{op}.*an index is out of bounds/
          assert_raise ArgumentError, words, fn -> Nx.to_number(Nx.sum(result)) end
        end
      end
    end

    describe "to_batched" do
      test "reads nothing back" do
        t = Nx.iota({7, 2})
        batches = Enum.to_list(Nx.to_batched(t, 3))
        assert Enum.map(batches, &Nx.to_list(&1[[.., 0]])) == [[0, 2, 4], [6, 8, 10], [12, 0, 2]]
        assert length(Enum.to_list(Nx.to_batched(t, 3, leftover: :discard))) == 2
      end
    end

    describe "gradients" do
      import Nx.Defn

      defn(picked(t, index), do: t |> Nx.gather(index) |> Nx.pow(2) |> Nx.sum())
      defn(taken(t, index), do: t |> Nx.take(index, axis: 1) |> Nx.pow(2) |> Nx.sum())

      defn(along(t, index),
        do: t |> Nx.take_along_axis(index, axis: 1) |> Nx.pow(2) |> Nx.sum()
      )

      defn(sliced(t, start), do: t |> Nx.slice([start, 1], [2, 2]) |> Nx.pow(2) |> Nx.sum())

      defn(put(t, start, part),
        do: t |> Nx.put_slice([start, 0], part) |> Nx.pow(2) |> Nx.sum()
      )

      defn(joined(a, b), do: [a, b] |> Nx.concatenate() |> Nx.pow(2) |> Nx.sum())
      defn(stacked(a, b), do: [a, b] |> Nx.stack() |> Nx.pow(2) |> Nx.sum())

      defn weighed(t) do
        wide = Nx.pad(t, 0.0, [{0, 0, 0}, {0, 2, 0}])
        Nx.sum(wide * Nx.iota({2, 5}))
      end

      defn(padded(t, value),
        do: t |> Nx.pad(value, [{1, -1, 1}, {0, 2, 0}]) |> Nx.pow(2) |> Nx.sum()
      )

      defn(added(t, index, u), do: t |> Nx.indexed_add(index, u) |> Nx.pow(2) |> Nx.sum())
      defn(replaced(t, index, u), do: t |> Nx.indexed_put(index, u) |> Nx.pow(2) |> Nx.sum())

      # By the first argument.
      defp gradient(fun, [t | rest]) do
        grad = fn t, rest -> Nx.Defn.grad(t, &apply(fun, [&1 | Tuple.to_list(rest)])) end
        Nx.to_list(Nx.Defn.jit_apply(grad, [t, List.to_tuple(rest)]))
      end

      test "of every op run on the device" do
        t = Nx.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        index = device(Nx.tensor([[1, 2], [0, 0], [1, 2]]))
        one = device(Nx.tensor([1]))
        before = Nx.Vulkan.stats()
        # Twice an element for each time that it is read.
        assert gradient(&picked/2, [t, index]) == [[2.0, 0.0, 0.0], [0.0, 0.0, 24.0]]
        assert gradient(&taken/2, [t, one]) == [[0.0, 4.0, 0.0], [0.0, 10.0, 0.0]]
        column = device(Nx.tensor([[2], [0]]))
        assert gradient(&along/2, [t, column]) == [[0.0, 0.0, 6.0], [8.0, 0.0, 0.0]]
        assert gradient(&sliced/2, [t, one[0]]) == [[0.0, 4.0, 6.0], [0.0, 10.0, 12.0]]
        part = Nx.tensor([[7.0, 8.0, 9.0]])
        assert gradient(&put/3, [t, one[0], part]) == [[2.0, 4.0, 6.0], [0.0, 0.0, 0.0]]
        replacing = fn part, t, start -> put(t, start, part) end
        assert gradient(replacing, [part, t, one[0]]) == [[14.0, 16.0, 18.0]]
        assert gradient(&joined/2, [part, t]) == [[14.0, 16.0, 18.0]]
        assert gradient(&stacked/2, [part, part]) == [[14.0, 16.0, 18.0]]
        zero = Nx.tensor(0.0)
        assert gradient(&padded/2, [t, zero]) == [[2.0, 4.0, 6.0], [0.0, 0.0, 0.0]]
        assert gradient(&weighed/1, [t]) == [[0.0, 1.0, 2.0], [5.0, 6.0, 7.0]]
        rows = device(Nx.tensor([[1], [1]]))
        u = Nx.broadcast(1.0, {2, 3})
        assert gradient(&added/3, [t, rows, u]) == [[2.0, 4.0, 6.0], [12.0, 14.0, 16.0]]
        adding = fn u, t, rows -> added(t, rows, u) end
        assert gradient(adding, [u, t, rows]) == [[12.0, 14.0, 16.0], [12.0, 14.0, 16.0]]
        row = {rows[0..0], u[0..0]}

        assert gradient(&replaced/3, [t | Tuple.to_list(row)]) == [
                 [2.0, 4.0, 6.0],
                 [0.0, 0.0, 0.0]
               ]

        assert Nx.Vulkan.stats().fallbacks == before.fallbacks
      end
    end
  end
end
