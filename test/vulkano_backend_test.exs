if Code.ensure_loaded?(Nx) do
  defmodule Nx.Vulkan.VulkanoBackendTest do
    use ExUnit.Case, async: false

    # The first run after a change of a shader compiles every variant.
    @moduletag timeout: 300_000

    alias Nx.Vulkan.VulkanoBackend, as: V

    @integers [{:u, 8}, {:u, 16}, {:u, 32}, {:u, 64}, {:s, 8}, {:s, 16}, {:s, 32}, {:s, 64}]
    @floats [{:f, 16}, {:bf, 16}, {:f, 32}, {:f, 64}]

    setup do
      Nx.default_backend(V)
      :ok
    end

    def forward(_event, count, metadata, parent), do: send(parent, {:fallback, count, metadata})

    # Runs `fun` here and on Nx.BinaryBackend.
    defp agree(tensors, fun) do
      ours = apply(fun, tensors)

      theirs =
        Nx.with_default_backend(Nx.BinaryBackend, fn ->
          apply(fun, Enum.map(tensors, &Nx.backend_copy/1))
        end)

      assert %V{} = ours.data
      assert {ours.type, ours.shape, ours.names} == {theirs.type, theirs.shape, theirs.names}

      assert close?(Nx.to_flat_list(ours), Nx.to_flat_list(theirs), ours.type),
             "#{inspect(ours)}\n#{inspect(theirs)}"
    end

    defp close?(ours, theirs, type) do
      tolerance =
        %{{:f, 64} => 1.0e-14, {:f, 32} => 1.0e-6, {:f, 16} => 1.0e-3, {:bf, 16} => 1.0e-2}[type] ||
          0

      Enum.zip_with(ours, theirs, fn
        x, x -> true
        x, y when is_number(x) and is_number(y) -> abs(x - y) <= tolerance * max(1.0, abs(y))
        _, _ -> false
      end)
      |> Enum.all?()
    end

    describe "storage" do
      test "every type round-trips" do
        for type <-
              @integers ++
                @floats ++
                [
                  {:f, 8},
                  {:f8_e4m3fn, 8},
                  {:c, 64},
                  {:c, 128},
                  {:u, 2},
                  {:u, 4},
                  {:s, 2},
                  {:s, 4}
                ] do
          t = Nx.tensor([0, 1, 1, 0, 1, 1, 0, 1], type: type)
          assert %V{type: ^type, shape: {8}} = t.data

          binary =
            Nx.with_default_backend(Nx.BinaryBackend, fn ->
              Nx.tensor([0, 1, 1, 0, 1, 1, 0, 1], type: type)
            end)

          assert Nx.to_binary(t) == Nx.to_binary(binary)
          assert Nx.to_binary(Nx.backend_copy(t)) == Nx.to_binary(binary)
        end
      end

      test "negative values of packed types" do
        assert Nx.to_flat_list(Nx.tensor([-8, 7, -1, 0], type: :s4)) == [-8, 7, -1, 0]
        assert Nx.to_flat_list(Nx.tensor([-2, 1, -1, 0], type: :s2)) == [-2, 1, -1, 0]
      end

      test "to_binary reads no more than the limit" do
        t = Nx.iota({10}, type: :s32)
        assert Nx.to_binary(t, limit: 2) == <<0::32-native, 1::32-native>>
        assert Nx.to_binary(Nx.reverse(t), limit: 1) == <<9::32-native>>
        assert Nx.to_binary(Nx.tensor([1, 2, 3], type: :u4), limit: 2) == <<1::4, 2::4>>
      end

      test "constants, finite or not" do
        assert Nx.to_flat_list(Nx.broadcast(7, {2, 2})) == [7, 7, 7, 7]

        for type <- @floats ++ [{:c, 64}], value <- [:nan, :infinity, :neg_infinity] do
          out = Nx.template({3}, type)
          ours = V.constant(out, value, [])
          theirs = Nx.BinaryBackend.constant(out, value, [])
          assert Nx.to_binary(ours) == Nx.to_binary(theirs)
        end
      end

      test "a copy is a buffer of its own" do
        t = Nx.tensor([1, 2, 3])
        copy = Nx.backend_copy(t, V)
        assert copy.data.ref != t.data.ref
        assert Nx.backend_deallocate(t) == :ok
        assert Nx.to_flat_list(copy) == [1, 2, 3]
      end

      test "a transfer to the same device is nothing, to elsewhere it frees" do
        t = Nx.tensor([1, 2, 3])
        assert Nx.backend_transfer(t, V).data.ref == t.data.ref
        assert Nx.to_flat_list(t) == [1, 2, 3]
        assert %Nx.BinaryBackend{} = Nx.backend_transfer(t, Nx.BinaryBackend).data
        assert_raise ArgumentError, ~r/deallocated/, fn -> Nx.to_binary(t) end
      end

      test "a freed tensor gives an error wherever it is used" do
        t = Nx.tensor([1.0, 2.0])
        assert Nx.backend_deallocate(t) == :ok
        assert Nx.backend_deallocate(t) == :already_deallocated

        for use <- [
              &Nx.exp/1,
              &Nx.add(&1, 1),
              &Nx.reshape(&1, {2, 1}),
              &Nx.sum/1,
              &Nx.sort/1,
              &Nx.to_binary/1
            ] do
          error = assert_raise_any(fn -> use.(t) end)
          assert Exception.message(error) =~ "deallocated"
        end

        assert inspect(t) =~ "deallocated"
      end

      defp assert_raise_any(fun) do
        fun.()
        flunk("expected an error")
      rescue
        error in ExUnit.AssertionError -> reraise error, __STACKTRACE__
        error -> error
      end

      test "batches" do
        t = Nx.iota({5, 2})
        assert [a, b] = t |> Nx.to_batched(2, leftover: :discard) |> Enum.to_list()
        assert Nx.to_flat_list(a) == [0, 1, 2, 3] and Nx.to_flat_list(b) == [4, 5, 6, 7]
        assert [_, _, c] = t |> Nx.to_batched(2, leftover: :repeat) |> Enum.to_list()
        assert Nx.to_flat_list(c) == [8, 9, 0, 1]
      end

      test "inspect shows the device when asked" do
        t = Nx.tensor([1, 2])
        assert inspect(t) == "#Nx.Tensor<\n  s32[2]\n  [1, 2]\n>"
        Application.put_env(:nx_vulkan, :add_backend_on_inspect, true)
        assert inspect(t) =~ "Nx.Vulkan.VulkanoBackend<"
      after
        Application.delete_env(:nx_vulkan, :add_backend_on_inspect)
      end

      test "views share no surprises" do
        t = Nx.iota({2, 3, 4}, type: :f32)
        u = t |> Nx.transpose(axes: [2, 0, 1]) |> Nx.reverse(axes: [0])
        agree([u], &Nx.reshape(&1, {6, 4}))
        agree([u], &Nx.sum(&1, axes: [1]))
        agree([u], &Nx.slice(&1, [1, 0, 1], [3, 2, 2], strides: [2, 1, 1]))
        agree([u], &Nx.add(&1, Nx.squeeze(&1[[0..0, .., ..]])))
        agree([Nx.new_axis(u, 1)], &Nx.broadcast(&1, {4, 5, 2, 3}))
        agree([Nx.as_type(u, :s32)], &Nx.bitcast(&1, :f32))
      end

      test "starts of a slice may be tensors, and are clamped" do
        t = Nx.iota({4, 4})
        assert Nx.to_flat_list(Nx.slice(t, [Nx.tensor(9), Nx.tensor(-3)], [2, 1])) == [8, 12]
      end
    end

    describe "ops" do
      test "unary" do
        for type <- @floats,
            op <-
              ~w(exp expm1 log1p sigmoid cos sin tan cosh sinh tanh asinh atan sqrt cbrt erf erfc abs negate sign round ceil floor)a do
          agree([Nx.tensor([0.0, 0.25, 0.5, 1.0, 2.5], type: type)], &apply(Nx, op, [&1]))
        end

        for type <- @integers,
            op <- ~w(negate abs sign bitwise_not count_leading_zeros population_count)a do
          agree([Nx.tensor([0, 1, 5, 100], type: type)], &apply(Nx, op, [&1]))
        end
      end

      test "binary, mixed types and broadcasting" do
        for left <- [{:u, 8}, {:s, 32}, {:f, 32}, {:f, 64}, {:bf, 16}],
            right <- [{:u, 16}, {:s, 64}, {:f, 32}, {:f, 16}] do
          a = Nx.tensor([[1], [2], [3]], type: left)
          b = Nx.tensor([1, 2, 4, 5], type: right)

          for op <-
                ~w(add subtract multiply divide pow min max equal less greater_equal logical_and)a,
              do: agree([a, b], &apply(Nx, op, [&1, &2]))
        end
      end

      test "operands of Nx.BinaryBackend are brought along" do
        host = Nx.tensor([1, 2, 3], backend: Nx.BinaryBackend)
        assert %V{} = Nx.add(Nx.tensor([1.0, 1.0, 1.0]), host).data
        assert Nx.to_flat_list(Nx.add(host, Nx.tensor([1.0, 1.0, 1.0]))) == [2.0, 3.0, 4.0]
      end

      test "reductions" do
        t = Nx.tensor([[1, 5, 2], [7, 0, 3]])

        for type <- [{:s, 32}, {:u, 8}, {:f, 32}, {:f, 64}, {:bf, 16}],
            opts <- [[], [axes: [0]], [axes: [1], keep_axes: true], [axes: [1, 0]]] do
          for op <- ~w(sum product reduce_max reduce_min all any)a,
              do: agree([Nx.as_type(t, type)], &apply(Nx, op, [&1, opts]))
        end

        for opts <- [[], [axis: 0], [axis: 1, tie_break: :high], [axis: 1, keep_axis: true]],
            op <- [:argmax, :argmin] do
          agree([t], &apply(Nx, op, [&1, opts]))
        end

        agree([Nx.tensor(3)], &Nx.sum/1)
      end

      test "dot" do
        a = Nx.iota({3, 4}, type: :f32)
        agree([a, Nx.iota({4, 2}, type: :f32)], &Nx.dot/2)
        agree([a, Nx.iota({4, 2}, type: :s32)], &Nx.dot/2)
        agree([a, Nx.transpose(a)], &Nx.dot/2)
        agree([Nx.iota({2, 3, 4}), Nx.iota({2, 4, 5})], &Nx.dot(&1, [2], [0], &2, [1], [0]))
      end

      test "what no kernel has falls back, counted and reported" do
        handler = {__MODULE__, make_ref()}
        :telemetry.attach(handler, [:nx_vulkan, :fallback], &__MODULE__.forward/4, self())
        before = Map.get(Nx.Vulkan.stats().fallbacks, "fft", 0)
        agree([Nx.tensor([1.0, 2.0, 3.0, 4.0])], &Nx.fft/1)
        :telemetry.detach(handler)

        assert_received {:fallback, %{count: 1},
                         %{op: "fft", to: Nx.BinaryBackend, types: [{:f, 32}], shapes: [{4}]}}

        assert Nx.Vulkan.stats().fallbacks["fft"] == before + 1
      end

      test "fallback: :error forbids it" do
        t = Nx.tensor([3.0, 1.0])
        Application.put_env(:nx_vulkan, :fallback, :error)
        error = assert_raise Nx.Vulkan.Error, fn -> Nx.fft(t) end
        assert error.kind == :fallback_forbidden
        assert error.message =~ "fft" and error.message =~ "f32{2}"
        assert Nx.to_flat_list(Nx.add(t, 1)) == [4.0, 2.0]
      after
        Application.delete_env(:nx_vulkan, :fallback)
      end

      test "closures see this backend's tensors and give them back" do
        one = Nx.tensor(1)

        assert Nx.to_number(
                 Nx.reduce(Nx.tensor([1, 2, 3]), 0, fn x, acc -> Nx.add(Nx.add(x, acc), one) end)
               ) == 9
      end

      test "blocks run with literals on this backend" do
        t = Nx.tensor([[4.0, 1.0], [1.0, 3.0]])
        {q, r} = Nx.LinAlg.qr(t)
        assert %V{} = q.data
        assert Nx.to_number(Nx.all_close(Nx.dot(q, r), t, atol: 1.0e-5)) == 1
        Nx.default_backend(Nx.BinaryBackend)
        assert %V{} = Nx.LinAlg.cholesky(t).data
        assert Nx.default_backend() == {Nx.BinaryBackend, []}
      end

      test "defn and gradients" do
        grad = Nx.Defn.grad(Nx.tensor([0.5, -1.0]), fn x -> Nx.sum(Nx.multiply(Nx.sin(x), x)) end)
        expected = for x <- [0.5, -1.0], do: :math.sin(x) + x * :math.cos(x)
        assert close?(Nx.to_flat_list(grad), expected, {:f, 32})
      end
    end

    describe "misuse" do
      test "options" do
        assert_raise ArgumentError, ~r/unknown keys/, fn -> Nx.default_backend({V, devise: 0}) end

        assert_raise ArgumentError, ~r/expected :device/, fn ->
          Nx.default_backend({V, device: -1})
        end

        assert_raise Nx.Vulkan.Error, fn -> Nx.tensor(1, backend: {V, device: 9_999}) end
      end

      test "a binary of the wrong size" do
        out = Nx.template({3}, :f32)

        assert_raise ArgumentError, ~r/expected 96 bits for f32\{3\}, got: 64 bits/, fn ->
          V.from_binary(out, <<0::64>>, [])
        end
      end

      test "literals for which an op is not defined" do
        t = Nx.tensor([1, 2])
        assert_raise ArgumentError, "cannot left shift by -1", fn -> Nx.left_shift(t, -1) end
        assert_raise ArgumentError, "cannot right shift by -3", fn -> Nx.right_shift(t, -3) end
        assert_raise ArithmeticError, fn -> Nx.quotient(t, 0) end
        assert Nx.to_flat_list(Nx.left_shift(t, 3)) == [8, 16]

        infinity = Nx.tensor(:infinity)

        error =
          assert_raise ArgumentError, fn -> Nx.remainder(Nx.tensor(:neg_infinity), infinity) end

        assert error.message =~ "1st argument: not a number"
        assert_raise ArgumentError, fn -> Nx.remainder(infinity, 2) end
        assert Nx.to_number(Nx.remainder(Nx.tensor(7.5), 2)) == 1.5
        assert Nx.to_flat_list(Nx.remainder(Nx.tensor([7.5, :infinity]), 2)) == [1.5, :nan]
      end

      test "pointers" do
        assert_raise ArgumentError, ~r/none yet/, fn -> Nx.to_pointer(Nx.tensor([1])) end

        assert_raise ArgumentError, ~r/none yet/, fn ->
          Nx.from_pointer(V, %Nx.Pointer{kind: :local, address: 1, data_size: 4}, :s32, {1})
        end
      end

      test "a tensor no memory can hold, then everything still works" do
        error = assert_raise Nx.Vulkan.Error, fn -> Nx.iota({1_048_576, 1_048_576, 16}) end
        assert error.kind == :out_of_memory
        assert error.message =~ "no room"
        assert Nx.to_number(Nx.sum(Nx.iota({100}))) == 4950
      end
    end

    describe "Nx.Vulkan" do
      test "devices, stats, sync" do
        assert [%{index: 0, name: name} | _] = Nx.Vulkan.devices()
        assert is_binary(name)
        assert Nx.Vulkan.device_info(0).index == 0
        assert %{memory: %{in_use: in_use}, served: [_ | _]} = Nx.Vulkan.stats()
        assert is_integer(in_use)
        assert Nx.Vulkan.sync() == :ok
      end

      test "explain names the kernel" do
        answer = Nx.Vulkan.explain(:add, [Nx.template({2, 3}, :f32), 1])
        assert answer.request =~ "add"
        assert answer.picked =~ "/"
        assert answer.text =~ "PICKED"
        assert Nx.Vulkan.explain(:sum, [Nx.template({2, 3}, :f32), [axes: [0]]]).picked
      end
    end

    test "a hundred processes compute at once" do
      results =
        1..100
        |> Task.async_stream(
          fn i -> Nx.iota({50}) |> Nx.multiply(i) |> Nx.sum() |> Nx.to_number() end,
          max_concurrency: 100,
          timeout: 60_000
        )
        |> Enum.map(fn {:ok, n} -> n end)

      assert results == for(i <- 1..100, do: 1225 * i)
    end
  end
end
