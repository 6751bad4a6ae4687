if Code.ensure_loaded?(Nx) do
  defmodule Nx.Vulkan.WindowTest do
    # Windows, their scatters and convolution, against Nx.BinaryBackend, eager and under gradients.
    use ExUnit.Case, async: true

    import Nx.Vulkan.Reference, only: [agree: 2, same: 2]

    alias Nx.Vulkan.VulkanoBackend, as: V

    # Small integers: every sum is exact, in whichever order.
    defp numbers(shape, type \\ :f32) do
      size = Tuple.product(shape)
      list = for i <- 1..size//1, do: rem(i * 7919, 23) - 11
      Nx.tensor(list, type: type, backend: Nx.BinaryBackend) |> Nx.reshape(shape)
    end

    # None of these ops may need another backend.
    setup do
      test = self()
      :telemetry.attach({__MODULE__, test}, [:nx_vulkan, :fallback], &__MODULE__.tell/4, test)
      on_exit(fn -> :telemetry.detach({__MODULE__, test}) end)
    end

    def tell(_event, _measured, meta, test),
      do: if(self() == test, do: send(test, {:fallback, meta}))

    describe "windows" do
      test "of every option" do
        for op <- [:window_sum, :window_product, :window_max, :window_min],
            type <- [:f32, :s32, :u8],
            opts <- [
              [],
              [padding: :same, strides: [1, 2]],
              [padding: [{2, 0}, {0, 3}], window_dilations: [2, 1]]
            ] do
          same([numbers({5, 7}, type)], &apply(Nx, op, [&1, {2, 3}, opts]))
        end

        refute_received {:fallback, _}
      end

      test "of any rank, of views, and of vectorized tensors" do
        # Nx.BinaryBackend has no windows of scalars.
        assert 3 |> Nx.tensor(backend: V) |> Nx.window_max({}) |> Nx.to_number() == 3
        same([numbers({3, 4, 5, 6})], &Nx.window_sum(Nx.transpose(&1), {2, 1, 3, 1}, strides: 2))
        same([numbers({6, 8})], &Nx.window_min(Nx.reverse(&1), {3, 3}, padding: :same))

        same([numbers({3, 4, 5})], fn x ->
          x |> Nx.vectorize(:batch) |> Nx.window_max({2, 2}) |> Nx.devectorize()
        end)
      end

      test "scatters choose the last of equal elements, and padding takes part" do
        for op <- [:window_scatter_max, :window_scatter_min],
            opts <- [[strides: [2, 3]], [padding: [{1, 1}, {0, 2}], strides: [1, 2]]] do
          x = Nx.remainder(numbers({4, 6}, :s32), 4)
          shape = Nx.window_sum(x, {2, 3}, opts) |> Nx.shape()
          same([x, numbers(shape, :s32)], &apply(Nx, op, [&1, &2, -1, {2, 3}, opts]))
        end

        refute_received {:fallback, _}
      end
    end

    describe "conv" do
      @options [
        {{2, 4, 6, 5}, {6, 4, 3, 2}, [padding: :same, strides: [2, 1]]},
        {{2, 4, 6, 5}, {6, 4, 3, 2}, [padding: [{-1, 2}, {1, 0}], kernel_dilation: [1, 2]]},
        {{2, 4, 6, 5}, {4, 4, 2, 2}, [input_dilation: [2, 3], padding: [{2, 1}, {0, 2}]]},
        {{2, 6, 5, 5}, {6, 1, 3, 3}, [feature_group_size: 6]},
        {{4, 3, 5, 5}, {6, 3, 2, 2}, [batch_group_size: 2]},
        {{2, 6, 5, 4}, {3, 2, 4, 8},
         [
           input_permutation: [0, 3, 1, 2],
           kernel_permutation: [3, 2, 0, 1],
           output_permutation: [0, 3, 1, 2]
         ]},
        {{2, 3, 9}, {4, 3, 3}, []},
        {{1, 2, 4, 4, 4}, {3, 2, 2, 2, 2}, [strides: [1, 2, 1]]}
      ]

      test "with every option" do
        for {x, kernel, opts} <- @options do
          agree([numbers(x), numbers(kernel)], &Nx.conv(&1, &2, opts))
        end

        refute_received {:fallback, _}
      end

      test "of mixed, narrow, wide and complex types" do
        for {a, b} <- [{:s32, :f32}, {:u8, :s8}, {:bf16, :bf16}, {:f64, :f32}, {:c64, :f32}] do
          agree([numbers({1, 2, 5}, a), numbers({2, 2, 2}, b)], &Nx.conv/2)
        end
      end

      test "of vectorized tensors" do
        agree([numbers({3, 1, 2, 6}), numbers({3, 4, 2, 3})], fn x, kernel ->
          Nx.devectorize(Nx.conv(Nx.vectorize(x, :batch), Nx.vectorize(kernel, :batch)))
        end)
      end

      test "has the errors of Nx" do
        x = Nx.iota({1, 3, 4, 4}, backend: V)
        kernel = Nx.iota({1, 2, 2, 2}, backend: V)

        assert_raise ArgumentError, ~r/size of input channels divided by feature groups/, fn ->
          Nx.conv(x, kernel)
        end
      end
    end

    # A layer as Axon has it: channels last, bias, rectifier, pooling.
    defp layer(x, kernel, bias, pool) do
      x
      |> Nx.conv(kernel,
        padding: :same,
        strides: 1,
        input_permutation: [0, 3, 1, 2],
        kernel_permutation: [3, 2, 0, 1],
        output_permutation: [0, 3, 1, 2]
      )
      |> Nx.add(bias)
      |> Nx.max(0)
      |> pool.()
    end

    defp pools do
      window = {1, 2, 2, 1}

      [
        &Nx.window_max(&1, window, strides: [1, 2, 2, 1]),
        &Nx.window_min(&1, window, strides: [1, 2, 2, 1]),
        &Nx.divide(Nx.window_sum(&1, window, strides: [1, 1, 2, 1]), 4)
      ]
    end

    test "a layer and its gradients" do
      x = Nx.divide(numbers({2, 6, 6, 3}), 8)
      kernel = Nx.divide(numbers({3, 3, 3, 5}), 16)
      bias = Nx.divide(numbers({5}), 32)

      for pool <- pools() do
        agree([x, kernel, bias], &layer(&1, &2, &3, pool))

        for index <- 0..2 do
          agree([x, kernel, bias], fn x, kernel, bias ->
            loss = fn {x, kernel, bias} ->
              layer(x, kernel, bias, pool) |> Nx.multiply(0.125) |> Nx.sum()
            end

            {x, kernel, bias} |> Nx.Defn.grad(loss) |> elem(index)
          end)
        end
      end
    end

    test "gradients of strided, dilated and grouped convolutions" do
      for {x, kernel, opts} <- [
            {{2, 4, 7, 6}, {6, 4, 3, 2}, [strides: 2, padding: [{1, 1}, {0, 1}]]},
            {{2, 4, 7, 6}, {6, 2, 2, 2}, [feature_group_size: 2, kernel_dilation: 2]},
            {{4, 3, 6}, {6, 3, 2}, [batch_group_size: 2]}
          ],
          index <- 0..1 do
        agree([Nx.divide(numbers(x), 16), Nx.divide(numbers(kernel), 16)], fn x, kernel ->
          loss = fn {x, kernel} -> Nx.sum(Nx.multiply(Nx.conv(x, kernel, opts), 0.25)) end
          {x, kernel} |> Nx.Defn.grad(loss) |> elem(index)
        end)
      end
    end
  end
end
