if Code.ensure_loaded?(Nx) do
  defmodule Nx.Vulkan.FusionTest do
    # Compiled functions, whose elementwise ops are fused, beside the same ops one by one and on Nx.BinaryBackend.
    use ExUnit.Case, async: true

    import Nx.Defn
    import Nx.Vulkan.Reference, only: [agree!: 2, same!: 2]

    alias Nx.Vulkan.{Compiler, Device, NativeV, VulkanoBackend}

    @programs 40
    @steps 12
    @types [:f32, :f16, :bf16, :s32, :u8, :s64]
    @unary [:negate, :abs, :sigmoid, :exp, :sin, :floor, :logical_not, :is_nan, :sign]
    @binary [:add, :subtract, :multiply, :max, :min, :divide, :less, :equal, :logical_xor]

    defn(gelu(x), do: x * 0.5 * (1 + Nx.erf(x / Nx.sqrt(2.0))))

    defn softmax(x) do
      e = Nx.exp(x - Nx.reduce_max(x, axes: [-1], keep_axes: true))
      e / Nx.sum(e, axes: [-1], keep_axes: true)
    end

    @fused [{"fused", "elementwise/fused"}, {"fused_rows", "closure/fused_rows"}]

    defn layer_norm(x, scale, shift) do
      mean = Nx.mean(x, axes: [-1], keep_axes: true)
      spread = Nx.variance(x, axes: [-1], keep_axes: true)
      (x - mean) * Nx.rsqrt(spread + 1.0e-5) * scale + shift
    end

    defn adam(x, slope, m, v) do
      m = 0.9 * m + 0.1 * slope
      v = 0.999 * v + 0.001 * slope * slope
      {x - 0.01 * m / (Nx.sqrt(v) + 1.0e-8), m, v}
    end

    defn(divided(a, b), do: {Nx.quotient(a, b) * 2 - 1, a + b})

    defn(normal(key), do: Nx.Random.normal(key, shape: {33, 3}))
    defn(uniform(key), do: Nx.Random.uniform(key, 2, 5, shape: {99}, type: :f64))

    defp flat(composite), do: Nx.Defn.Composite.flatten_list([composite])
    defp there(tensors), do: Enum.map(tensors, &Nx.backend_copy(&1, VulkanoBackend))

    defp line(extent, scale),
      do: Nx.iota(extent, type: :f32, backend: Nx.BinaryBackend) |> Nx.multiply(scale) |> Nx.sin()

    defp compiled(fun, args) do
      run = Nx.Defn.compile(fun, args, compiler: Compiler)
      apply(run, args)
      flat(apply(run, args))
    end

    defp one_by_one(fun, args),
      do: flat(Nx.Defn.jit_apply(fun, args, compiler: Nx.Defn.Evaluator))

    defp fused do
      %{served: served} = NativeV.device_stats(Device.fetch!(Device.default()))
      Enum.sum(for {op, kernel, count} <- served, {op, kernel} in @fused, do: count)
    end

    for {name, count} <- [gelu: 1, softmax: 1, layer_norm: 3, adam: 4, normal: 0, uniform: 0] do
      test "#{name} has the bits of its ops one by one" do
        fun = Function.capture(__MODULE__, unquote(name), max(unquote(count), 1))
        row = for k <- 2..unquote(count)//1, do: line({1, 5}, 0.1 * k)

        args =
          if unquote(count) == 0,
            do: [Nx.Random.key(42)],
            else: [line({7, 5}, 0.37) | Enum.map(row, &Nx.abs/1)]

        before = fused()
        ours = compiled(fun, there(args))
        assert fused() > before
        one = Nx.with_default_backend(VulkanoBackend, fn -> one_by_one(fun, there(args)) end)
        theirs = Nx.with_default_backend(Nx.BinaryBackend, fn -> one_by_one(fun, args) end)

        for {ours, one} <- Enum.zip(ours, one), do: same!(ours, Nx.backend_copy(one))
        for {ours, theirs} <- Enum.zip(ours, theirs), do: agree!(ours, theirs)
      end
    end

    test "a product with a known 0 is none of an infinity, and has a sign" do
      zeros = fn x, i ->
        products = for zero <- [0, 0.0, -0.0], do: Nx.multiply(x, zero)
        nothing = for fun <- [&Nx.subtract/2, &Nx.bitwise_xor/2, &Nx.less/2], do: fun.(i, i)
        List.to_tuple(products ++ Enum.map([Nx.is_nan(i) | nothing], &Nx.multiply(x, &1)))
      end

      # Where Nx.BinaryBackend raises.
      signs = fn x, i ->
        all = Tuple.to_list(zeros.(x, i))
        List.to_tuple(Enum.map(all, &Nx.divide(1.0, Nx.subtract(0.0, &1))))
      end

      x = Nx.tensor([1.0, -2.0, :infinity, :neg_infinity, :nan], backend: Nx.BinaryBackend)

      for float <- [:f32, :f16, :bf16, :f64], integer <- [:s32, :u8, :s64] do
        i = Nx.iota({5}, type: integer, backend: Nx.BinaryBackend)
        args = [Nx.as_type(x, float), i]

        for fun <- [zeros, signs] do
          before = fused()
          ours = compiled(fun, there(args))
          assert fused() > before
          one = Nx.with_default_backend(VulkanoBackend, fn -> one_by_one(fun, there(args)) end)
          for {ours, one} <- Enum.zip(ours, one), do: same!(ours, Nx.backend_copy(one))
        end

        pairs = Enum.zip(compiled(zeros, there(args)), one_by_one(zeros, args))
        for {ours, theirs} <- pairs, do: agree!(ours, theirs)
      end
    end

    test "what an integer has no result for is told as before, and of nothing else" do
      # What the VM sent itself, it looks at before anything runs.
      [x, y] = there([Nx.tensor([1, 2, 3]), Nx.tensor([2, 1, 3])])
      args = [x, Nx.subtract(y, Nx.sign(x))]
      [quotient, sum] = compiled(&divided/2, args)
      [before, _] = one_by_one(&divided/2, args)
      error = assert_raise ArithmeticError, fn -> Nx.to_binary(before) end
      again = assert_raise ArithmeticError, fn -> Nx.to_binary(quotient) end
      assert Exception.message(error) == Exception.message(again)
      assert Nx.to_flat_list(sum) == [2, 2, 5]
    end

    test "random programs have the bits of their ops one by one" do
      for seed <- 1..@programs do
        :rand.seed(:exsss, {seed, 5, 20_261_124})

        args =
          for shape <- [{3, 4}, {4}, {}] do
            size = Tuple.product(shape)
            values = for _ <- 1..size, do: Enum.random(0..9)
            Nx.tensor(values, type: pick(@types), backend: VulkanoBackend) |> Nx.reshape(shape)
          end

        steps = for _ <- 1..@steps, do: {pick(@unary ++ @binary), :rand.uniform(6), random_term()}
        fun = fn x, y, z -> program(x, y, z, steps) end

        for {ours, one} <- Enum.zip(compiled(fun, args), one_by_one(fun, args)) do
          assert {ours.type, ours.shape} == {one.type, one.shape}
          assert Nx.to_binary(ours) == Nx.to_binary(one), "seed #{seed}: #{inspect(steps)}"
        end
      end
    end

    defp pick(list), do: Enum.random(list)
    defp random_term, do: pick([:y, :z, 2, -1.5, :x, :x])

    # Each step reads what was made by one of the last six, and what was given.
    defp program(x, y, z, steps) do
      made =
        Enum.reduce(steps, [x], fn {op, back, term}, made ->
          own = Enum.at(made, back - 1, x)
          other = %{x: hd(made), y: y, z: z}[term] || term

          [if(op in @unary, do: apply(Nx, op, [own]), else: apply(Nx, op, [own, other])) | made]
        end)

      {hd(made), Enum.at(made, 3)}
    end
  end
end
