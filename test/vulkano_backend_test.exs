if Code.ensure_loaded?(Nx) do
  defmodule Nx.Vulkan.VulkanoBackendTest do
    use ExUnit.Case, async: false

    # The first run after a change of a shader compiles every variant.

    import Nx.Vulkan.Reference, only: [agree: 2]

    alias Nx.Vulkan.VulkanoBackend, as: V

    setup do
      Nx.default_backend(V)
      :ok
    end

    def forward(_event, count, metadata, parent), do: send(parent, {:fallback, count, metadata})

    describe "storage" do
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

      test "of a view no more is copied than what is read" do
        wide = Nx.broadcast(Nx.tensor([1.0, 2.0]), {1_000_000_000, 2})
        assert inspect(wide) =~ "[1.0, 2.0],"

        assert Nx.to_binary(wide, limit: 3) ==
                 <<1.0::float-32-native, 2.0::float-32-native, 1.0::float-32-native>>

        t = Nx.iota({3, 4, 5}, type: :s16)

        for axes <- [[0, 2, 1], [2, 1, 0], [1, 0, 2]],
            view = Nx.transpose(t, axes: axes),
            other = view |> Nx.backend_copy(Nx.BinaryBackend),
            limit <- 0..61 do
          assert Nx.to_binary(view, limit: limit) == Nx.to_binary(other, limit: limit)
        end

        assert Nx.to_binary(Nx.transpose(t[[0..-1//1, 0..0, 4..4]]), limit: 2) ==
                 <<4::16-native, 24::16-native>>
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
    end

    describe "ops" do
      test "operands of Nx.BinaryBackend are brought along" do
        host = Nx.tensor([1, 2, 3], backend: Nx.BinaryBackend)
        assert %V{} = Nx.add(Nx.tensor([1.0, 1.0, 1.0]), host).data
        assert Nx.to_flat_list(Nx.add(host, Nx.tensor([1.0, 1.0, 1.0]))) == [2.0, 3.0, 4.0]
      end

      test "what no kernel has falls back, counted and reported" do
        handler = {__MODULE__, make_ref()}
        :telemetry.attach(handler, [:nx_vulkan, :fallback], &__MODULE__.forward/4, self())
        before = Map.get(Nx.Vulkan.stats().fallbacks, "reduce", 0)
        last = &Nx.reduce(&1, 0.0, fn x, _ -> x end)
        agree([Nx.tensor([1.0, 2.0, 3.0, 4.0])], last)
        :telemetry.detach(handler)

        assert_received {:fallback, %{count: 1},
                         %{
                           op: "reduce",
                           to: Nx.BinaryBackend,
                           types: [{:f, 32} | _],
                           shapes: [{4} | _]
                         }}

        assert Nx.Vulkan.stats().fallbacks["reduce"] == before + 1
      end

      test "fallback: :error forbids it" do
        t = Nx.tensor([3.0, 1.0])
        Application.put_env(:nx_vulkan, :fallback, :error)
        error = assert_raise Nx.Vulkan.Error, fn -> Nx.reduce(t, 0.0, fn x, _ -> x end) end
        assert error.kind == :fallback_forbidden
        assert error.message =~ "reduce" and error.message =~ "f32{2}"
        assert Nx.to_flat_list(Nx.add(t, 1)) == [4.0, 2.0]

        Application.put_env(:nx_vulkan, :fallback, :eror)
        wrong = ~r/expected :fallback to be :binary or :error, got: :eror/
        assert_raise ArgumentError, wrong, fn -> Nx.reduce(t, 0.0, fn x, _ -> x end) end
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

        for {x, y} <- Enum.zip(Nx.to_flat_list(grad), expected), do: assert_in_delta(x, y, 1.0e-6)
      end
    end

    describe "misuse" do
      test "options" do
        assert_raise ArgumentError, ~r/unknown keys/, fn -> Nx.default_backend({V, devise: 0}) end

        assert_raise ArgumentError, ~r/expected :device/, fn ->
          Nx.default_backend({V, device: -1})
        end

        assert_raise ArgumentError, ~r/unknown keys/, fn ->
          Nx.tensor(1, backend: {V, devise: 0})
        end

        assert_raise Nx.Vulkan.Error, fn -> Nx.tensor(1, backend: {V, device: 9_999}) end
      end

      test "tensors of another VM, and extents beyond all numbers" do
        stranger = %{
          Nx.tensor([1.0, 2.0])
          | data: %V{ref: make_ref(), shape: {2}, type: {:f, 32}}
        }

        wrong = ~r/expected a tensor of this VM that was not collected, got: #Ref</

        for call <- [&Nx.to_binary/1, &Nx.add(&1, 1), &Nx.backend_transfer/1],
            do: assert_raise(ArgumentError, wrong, fn -> call.(stranger) end)

        wrong = ~r/expected a shape of extents below 2\^64, got: /
        assert_raise ArgumentError, wrong, fn -> Nx.iota({2 ** 64}) end
        assert_raise ArgumentError, wrong, fn -> Nx.broadcast(1, {2 ** 70}) end
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
        Nx.add(Nx.iota({100}), 1)
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

      test "explain takes lists of tensors, and blocks" do
        x = Nx.iota({4, 3}, type: :f32)
        assert Nx.Vulkan.explain(:concatenate, [[x, x], [axis: 1]]).request =~ "concatenate"
        assert Nx.Vulkan.explain(:stack, [[x, Nx.template({4, 3}, :f32)]]).picked
        assert Nx.Vulkan.explain(:cumulative_sum, [x]).request =~ "Nx.Block.CumulativeSum"
        assert Nx.Vulkan.explain(:top_k, [x, [k: 2]]).request =~ "Nx.Block.TopK"
      end
    end

    test "a hundred processes compute at once" do
      results =
        1..100
        |> Task.async_stream(
          fn i -> Nx.iota({50}) |> Nx.multiply(i) |> Nx.sum() |> Nx.to_number() end,
          max_concurrency: 100,
          timeout: :infinity
        )
        |> Enum.map(fn {:ok, n} -> n end)

      assert results == for(i <- 1..100, do: 1225 * i)
    end
  end
end
