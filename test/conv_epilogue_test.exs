if Code.ensure_loaded?(Nx) do
  defmodule Nx.Vulkan.ConvEpilogueTest do
    use ExUnit.Case, async: true

    import Nx.Defn

    alias Nx.Vulkan.{NativeV, VulkanoBackend}

    setup context do
      if context.test_type == :doctest, do: Nx.default_backend(VulkanoBackend)
      :ok
    end

    doctest Nx.Vulkan, only: [conv: 5]

    defp random(shape, type, seed) do
      {t, _} = Nx.Random.normal(Nx.Random.key(seed), shape: shape, type: :f32)
      Nx.as_type(t, type)
    end

    defp on(t), do: Nx.backend_copy(t, VulkanoBackend)
    defp off(t), do: Nx.backend_copy(t, Nx.BinaryBackend)

    defp relu(t, bias), do: t |> Nx.add(bias) |> Nx.max(0)

    defp assert_all_close(a, b) do
      assert Nx.to_number(Nx.all_close(off(a), off(b), atol: 1.0e-4)) == 1
    end

    @last [
      input_permutation: [0, 3, 1, 2],
      kernel_permutation: [3, 2, 0, 1],
      output_permutation: [0, 3, 1, 2]
    ]
    @convs [
      {{2, 3, 9, 8}, {5, 3, 3, 3}, {5, 1, 1}, [padding: :same, strides: [2, 1]]},
      {{2, 9, 8, 12}, {3, 3, 12, 16}, {16}, @last},
      {{2, 8, 9, 9}, {8, 1, 3, 3}, {8, 1, 1}, [feature_group_size: 8, padding: [{1, 0}, {0, 2}]]},
      {{4, 3, 12}, {6, 3, 2}, {1, 6, 1}, [batch_group_size: 2, kernel_dilation: 2]},
      {{2, 16, 17, 9}, {33, 16, 1, 1}, {33, 1, 1}, []},
      {{2, 3, 5}, {4, 3, 2}, {}, [input_dilation: [2]]}
    ]

    test "one request gives the bits of a convolution and the ops that follow" do
      for {x, kernel, bias, opts} <- @convs do
        [x, kernel, bias] =
          for {shape, seed} <- [{x, 1}, {kernel, 2}, {bias, 3}], do: on(random(shape, :f32, seed))

        apart = x |> Nx.conv(kernel, opts) |> relu(bias)
        whole = Nx.Vulkan.conv(x, kernel, [bias], &relu/2, opts)
        assert %VulkanoBackend{} = whole.data
        assert off(whole) == off(apart), inspect(opts)
      end
    end

    for {type, bound} <- [f16: 0.00048828125, bf16: 0.00390625, f64: 1.0e-12] do
      test "bias, activation and residual of #{type}, rounded once" do
        {type, bound} = {unquote(type), unquote(bound)}
        shapes = [{2, 12, 9, 9}, {16, 12, 3, 3}, {16, 1, 1}, {2, 16, 9, 9}]
        all = for {shape, seed} <- Enum.with_index(shapes), do: random(shape, type, seed)
        fun = fn y, bias, rest -> y |> relu(bias) |> Nx.add(rest) end

        [x, kernel | rest] = Enum.map(all, &Nx.as_type(&1, :f64))
        expected = apply(fun, [Nx.conv(x, kernel, padding: :same) | rest])
        [x, kernel | rest] = Enum.map(all, &on/1)
        got = Nx.Vulkan.conv(x, kernel, rest, fun, padding: :same)
        assert got.type == x.type
        error = got |> off() |> Nx.as_type(:f64) |> Nx.subtract(expected) |> Nx.abs()
        # Next to what f32 loses of the sums a result is off by half a unit in its last place.
        error = Nx.divide(error, Nx.max(Nx.abs(expected), 1))
        assert Nx.to_number(Nx.reduce_max(error)) < bound * 1.01
      end
    end

    test "kernels take it where operands lie along filters, or on either side of them" do
      f32 = {:f, 32}
      device = Nx.Vulkan.Device.fetch!(Nx.Vulkan.Device.default())
      ordered = for of <- [:input, :kernel, :output], do: {:"#{of}_permutation", [0, 1, 2, 3]}
      ones = for name <- [:strides, :input_dilation, :kernel_dilation], do: {name, [1, 1]}
      groups = [batch_group_size: [1], feature_group_size: [1]]
      attrs = [padding: [0, 0, 0, 0]] ++ ordered ++ ones ++ groups

      explain = fn operands, epilogue ->
        inputs = for shape <- [{2, 8, 9, 9}, {16, 8, 3, 3} | operands], do: {f32, shape}

        NativeV.explain(
          device,
          "conv",
          inputs,
          [{f32, {2, 16, 7, 7}}],
          [epilogue: epilogue] ++ attrs
        )
      end

      for shape <- [{16, 1, 1}, {2, 16, 7, 7}, {2, 1, 1, 1}, {7, 7}, {16, 1, 7}, {}] do
        assert {:ok, {_, %{picked: "window/" <> _}}} = explain.([shape], "add(x, i2); exp(%0)")
      end

      four = "add(x, i2); add(%0, i3); add(%1, i4); add(%2, i5)"
      columns = List.duplicate({16, 1, 7}, 4)
      assert {:ok, {text, %{picked: "split"}}} = explain.(columns, four)
      assert text =~ "24 words of push constants"
      assert {:error, :bad_input, why} = explain.([{16}], "add(x, i2)")
      assert why =~ "i2, f32[16], does not broadcast to the result"
    end

    defn layer(x, kernel, bias) do
      Nx.Vulkan.conv(x, kernel, [bias], fn y, b -> Nx.max(y + b, 0) end, padding: :same)
    end

    defn plain(x, kernel, bias) do
      Nx.max(Nx.conv(x, kernel, padding: :same) + bias, 0)
    end

    defn(gradient(kernel, x, bias), do: grad(kernel, &Nx.sum(layer(x, &1, bias) ** 2)))
    defn(plain_gradient(kernel, x, bias), do: grad(kernel, &Nx.sum(plain(x, &1, bias) ** 2)))

    test "in defn, compiled, and its gradient" do
      shapes = [{2, 3, 6, 6}, {4, 3, 3, 3}, {4, 1, 1}]
      all = for {shape, seed} <- Enum.with_index(shapes), do: random(shape, :f32, seed)
      [x, kernel, bias] = ours = Enum.map(all, &on/1)
      expected = apply(&plain/3, all)
      assert_all_close(layer(x, kernel, bias), expected)
      assert_all_close(apply(Nx.Vulkan.jit(&layer/3), ours), expected)
      compiled = Nx.Defn.compile(&layer/3, all, compiler: Nx.Vulkan.Compiler)
      assert_all_close(apply(compiled, ours), expected)
      assert_all_close(gradient(kernel, x, bias), plain_gradient(kernel, x, bias))
    end

    test "numbers become part of one request, whatever the default backend is" do
      [x, k] = [Nx.iota({1, 1, 3, 3}, type: :f32), Nx.broadcast(1.0, {2, 1, 1, 1})]
      fun = fn y -> y |> Nx.multiply(0.5) |> Nx.max(0) end

      for backend <- [VulkanoBackend, Nx.BinaryBackend] do
        Nx.with_default_backend(backend, fn ->
          assert {"multiply(0.5, x); max(%0, 0)", %{type: {:f, 32}}} =
                   Nx.Vulkan.Epilogue.of(fun, &Nx.conv/2, [x, k])
        end)
      end
    end

    test "what is no epilogue, names, vectors and a precision of its own" do
      x = on(random({2, 3, 6, 6}, :f32, 1))
      kernel = on(random({4, 3, 3, 3}, :f32, 2))
      apart = Nx.conv(x, kernel)
      assert off(Nx.Vulkan.conv(x, kernel, [], & &1)) == off(apart)
      pooled = Nx.Vulkan.conv(x, kernel, [], &Nx.sum(&1, axes: [2, 3]))
      assert off(pooled) == off(Nx.sum(apart, axes: [2, 3]))

      for precision <- [:default, :high, :highest] do
        got = Nx.Vulkan.conv(x, kernel, [], &Nx.exp/1, precision: precision)
        assert_all_close(got, Nx.exp(apart))
        assert_all_close(Nx.Vulkan.conv(x, kernel, [], & &1, precision: precision), apart)
      end

      for truth <- [&Nx.is_nan/1, &Nx.greater(&1, 0)] do
        jit = Nx.Vulkan.jit(&Nx.Vulkan.conv(&1, &2, [], truth))

        for got <- [Nx.Vulkan.conv(x, kernel, [], truth), jit.(x, kernel)],
            do: assert(off(got) == off(truth.(apart)))
      end

      named = Nx.rename(x, [:n, :c, :h, :w])
      order = [input_permutation: [:n, :c, :w, :h]]
      got = Nx.Vulkan.conv(named, kernel, [], &Nx.negate/1, order)
      expected = Nx.negate(Nx.conv(named, kernel, order))
      assert got.names == expected.names
      assert off(got) == off(expected)

      vectors = Nx.vectorize(Nx.stack([x, x]), :two)
      got = Nx.Vulkan.conv(vectors, kernel, [], &Nx.negate/1)
      assert got.vectorized_axes == [two: 2]
      assert off(got) == off(Nx.negate(Nx.conv(vectors, kernel)))
    end

    test "options that do not fit are told" do
      t = Nx.iota({1, 1, 3, 3}, type: :f32)
      wrong = &Nx.Vulkan.conv(t, t, [], fn y -> y end, &1)
      assert_raise ArgumentError, ~r/expected :precision to be/, fn -> wrong.(precision: :low) end
      assert_raise ArgumentError, ~r/unknown keys \[:stride\]/, fn -> wrong.(stride: 2) end
    end
  end
end
