if Code.ensure_loaded?(Nx) do
  defmodule Nx.Vulkan.CompilerTest do
    use ExUnit.Case, async: true

    import Nx.Defn

    alias Nx.Vulkan.{Compiler, VulkanoBackend}

    setup do
      Nx.default_backend(Nx.BinaryBackend)
      :ok
    end

    defp on_device?(tensor), do: is_struct(tensor.data, VulkanoBackend)

    defn(layer(x, w, b), do: Nx.sigmoid(Nx.dot(x, w) + b))

    defn count_down(x) do
      while x, Nx.greater(Nx.sum(x), 1) do
        x / 2
      end
    end

    defn branch(x) do
      if Nx.sum(x) > 0, do: {x, %{twice: x * 2}}, else: {-x, %{twice: x}}
    end

    defp inputs do
      x = Nx.tensor([[0.5, -1.0], [2.0, 0.25], [1.0, 1.0]])
      {x, Nx.tensor([[1.0, 2.0, 0.5], [0.5, -1.0, 1.5]]), Nx.tensor([0.1, 0.2, 0.3])}
    end

    defp close(got, want), do: assert(Nx.to_number(Nx.all_close(Nx.backend_copy(got), want)) == 1)

    test "computes on the device what the evaluator computes" do
      {x, w, b} = inputs()
      want = layer(x, w, b)

      for jitted <- [
            Nx.Vulkan.jit(&layer/3),
            Nx.Vulkan.jit(&layer/3, device: Nx.Vulkan.device_name()),
            Nx.Defn.jit(&layer/3, compiler: Compiler),
            Nx.Defn.compile(&layer/3, [x, w, b], compiler: Compiler)
          ] do
        got = jitted.(x, w, b)
        assert on_device?(got) and got.type == want.type and got.shape == want.shape
        close(got, want)
      end

      close(Nx.Defn.jit_apply(&layer/3, [x, w, b], compiler: Compiler), want)
      # Arguments that are there already.
      there = for t <- [x, w, b], do: Nx.backend_copy(t, VulkanoBackend)
      close(apply(Nx.Vulkan.jit(&layer/3), there), want)
      assert Nx.default_backend() == {Nx.BinaryBackend, []}
    end

    test "runs loops, branches, containers and gradients" do
      x = Nx.tensor([3.0, 5.0])
      close(Nx.Vulkan.jit(&count_down/1).(x), count_down(x))

      for x <- [x, Nx.negate(x)] do
        {a, %{twice: b}} = Nx.Vulkan.jit(&branch/1).(x)
        {want_a, %{twice: want_b}} = branch(x)
        close(a, want_a)
        close(b, want_b)
      end

      {value, gradient} =
        Nx.Vulkan.jit(fn x -> value_and_grad(x, &Nx.sum(Nx.exp(&1))) end).(Nx.tensor([0.5, 1.0]))

      close(value, Nx.sum(Nx.exp(Nx.tensor([0.5, 1.0]))))
      close(gradient, Nx.exp(Nx.tensor([0.5, 1.0])))
    end

    test "makes new tensors on the device, and takes numbers and vectorized tensors" do
      assert on_device?(Nx.Vulkan.jit(fn -> Nx.iota({4}) end).())
      close(Nx.Vulkan.jit(&Nx.add/2).(1, 2), Nx.tensor(3))
      x = Nx.vectorize(Nx.tensor([[1.0, 2.0], [3.0, 4.0]]), :rows)
      sums = Nx.Vulkan.jit(&Nx.sum/1).(x)
      assert sums.vectorized_axes == [rows: 2]
      close(Nx.devectorize(sums, keep_names: false), Nx.tensor([3.0, 7.0]))
    end

    test "runs hooks, and raises what the function raises" do
      parent = self()
      hooks = %{seen: &send(parent, {:seen, &1})}
      fun = fn x -> Nx.add(Nx.Defn.Kernel.hook(Nx.multiply(x, 2), :seen), 1) end
      Nx.Vulkan.jit(fun, hooks: hooks).(Nx.tensor(1.5))
      assert_receive {:seen, tensor}
      assert Nx.to_number(tensor) == 3.0

      assert_raise ArgumentError, ~r/compatible/, fn ->
        Nx.Vulkan.jit(&Nx.dot/2).(Nx.tensor([1, 2]), Nx.tensor([1, 2, 3]))
      end

      assert Nx.default_backend() == {Nx.BinaryBackend, []}

      assert_raise ArgumentError, ~r/expected :device/, fn ->
        Nx.Vulkan.jit(&Nx.exp/1, device: -1).(1)
      end

      assert_raise Nx.Vulkan.Error, ~r/no such device/, fn ->
        Nx.Vulkan.jit(&Nx.exp/1, device: "no such device").(Nx.tensor(1))
      end
    end

    test "tells its backend and its partitions" do
      assert Compiler.__to_backend__([]) == {VulkanoBackend, []}
      assert Compiler.__to_backend__(device: 0, hooks: %{}) == {VulkanoBackend, [device: 0]}
      assert Nx.Defn.to_backend(compiler: Compiler, device: 0) == {VulkanoBackend, [device: 0]}
      assert Compiler.__partitions_options__(max_concurrency: 3) |> length() == 3

      assert_raise ArgumentError, ~r/one device/, fn ->
        Compiler.__shard_jit__(nil, nil, [], & &1, [], [])
      end
    end

    test "refuses options that it does not know and lets those of others pass" do
      message =
        "expected options of Nx.Vulkan.Compiler among [:device, :precision, :hooks, :garbage_collect, " <>
          ":max_concurrency, :on_conflict, :batch_keys, :debug, :debug_options, :mode, :print_values, " <>
          ":global_layer_options, :raise_on_none], got: :foo"

      x = Nx.tensor([1.0, 2.0])

      for run <- [
            &Nx.Defn.compile(fn x -> Nx.exp(x) end, [x], &1),
            &Nx.Defn.jit(fn x -> Nx.exp(x) end, &1).(x),
            &Nx.Defn.to_backend/1
          ] do
        assert_raise ArgumentError, message, fn -> run.(compiler: Compiler, foo: 1) end
      end

      others = [
        hooks: %{},
        garbage_collect: true,
        max_concurrency: 2,
        on_conflict: :reuse,
        batch_keys: [:default],
        debug: false,
        debug_options: []
      ]

      options =
        [compiler: Compiler, device: Nx.Vulkan.device_name(), precision: :highest] ++ others

      for exp <- [Nx.Defn.compile(&Nx.exp/1, [x], options), Nx.Defn.jit(&Nx.exp/1, options)] do
        close(exp.(x), Nx.exp(x))
      end

      serving = Nx.Serving.jit(&Nx.multiply(&1, 2), options)
      start_supervised!({Nx.Serving, serving: serving, name: __MODULE__, partitions: true})
      batch = Nx.Batch.stack([Nx.tensor([1.0, 2.0])])
      close(Nx.Serving.batched_run(__MODULE__, batch), Nx.tensor([[2.0, 4.0]]))
    end

    # Axon.build/2 hands all of its options to Nx.Defn.jit/2.
    test "the options of Axon.build were refused" do
      x = Nx.tensor([1.0, 2.0])

      for option <- [
            mode: :train,
            print_values: false,
            global_layer_options: [output_hidden_states: true],
            raise_on_none: true
          ] do
        options = [option, on_conflict: :reuse, compiler: Compiler]
        assert on_device?(Nx.Defn.jit(&Nx.exp/1, options).(x))
        assert on_device?(Nx.Defn.compile(&Nx.exp/1, [x], options).(x))
      end
    end

    test "serves as the default compiler" do
      previous = Nx.Defn.default_options(compiler: Compiler)
      on_exit(fn -> Nx.Defn.default_options(previous) end)
      {x, w, b} = inputs()
      assert on_device?(layer(x, w, b))

      serving = Nx.Serving.jit(&Nx.multiply(&1, 2))
      batch = Nx.Batch.stack([Nx.tensor([1.0, 2.0])])
      close(Nx.Serving.run(serving, batch), Nx.tensor([[2.0, 4.0]]))
    end
  end
end
