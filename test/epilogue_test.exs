if Code.ensure_loaded?(Nx) do
  defmodule Nx.Vulkan.EpilogueTest do
    use ExUnit.Case, async: true

    import Nx.Defn

    alias Nx.Vulkan.{Epilogue, NativeV, VulkanoBackend}

    defp random(shape, type, seed) do
      {t, _} = Nx.Random.normal(Nx.Random.key(seed), shape: shape, type: :f32)
      t |> Nx.as_type(type) |> Nx.backend_transfer(Nx.BinaryBackend)
    end

    defp on(t), do: Nx.backend_copy(t, VulkanoBackend)
    defp off(t), do: Nx.backend_transfer(t, Nx.BinaryBackend)

    defp gelu(x), do: Nx.multiply(Nx.multiply(x, 0.5), Nx.add(Nx.erf(Nx.divide(x, 1.5)), 1))

    defp text(fun, shapes \\ []) do
      [a, b | rest] = for shape <- [{2, 3}, {3, 4} | shapes], do: Nx.template(shape, :f32)
      plain = &Nx.dot(&1, [1], [], &2, [0], [])

      case Epilogue.of(fun, plain, [a, b | rest]) do
        {text, out} -> {text, out.type, out.shape}
        nil -> nil
      end
    end

    test "a function of elements is an expression, in which what is used twice stands once" do
      assert text(fn x, b -> x |> Nx.add(b) |> Nx.max(0) end, [{4}]) ==
               {"add(x, i2); max(%0, 0)", {:f, 32}, {2, 4}}

      assert {"add(x, i2); sigmoid(%0); multiply(%0, %1); add(%2, i3)", _, _} =
               text(
                 fn x, b, r ->
                   y = Nx.add(x, b)
                   Nx.add(Nx.multiply(y, Nx.sigmoid(y)), r)
                 end,
                 [{4}, {2, 4}]
               )

      assert {"greater(x, 0); multiply(0.5, x); select(%0, x, %1)", _, _} =
               text(&Nx.select(Nx.greater(&1, 0), &1, Nx.multiply(&1, 0.5)))

      assert {"tanh(x)", {:bf, 16}, _} = text(&Nx.as_type(Nx.tanh(&1), :bf16))
    end

    test "what else a function does makes it none" do
      for fun <- [
            &Nx.sum/1,
            & &1,
            &Nx.transpose/1,
            &Nx.reshape(&1, {4, 2}),
            &Nx.add(&1, Nx.iota({2, 4})),
            &Nx.as_type(Nx.as_type(&1, :s32), :f32),
            &Nx.subtract(&1, Nx.reduce_max(&1, axes: [1], keep_axes: true)),
            # Sums of what is 0 or 1 wrap at 256.
            &Nx.multiply(&1, Nx.subtract(Nx.less(&1, 0), Nx.greater(&1, 0))),
            # Wider than all that is known.
            &(&1 |> Nx.as_type(:f64) |> Nx.add(1.0e10) |> Nx.as_type(:f32)),
            &Enum.reduce(1..65, &1, fn _, y -> Nx.sin(y) end),
            &Nx.multiply(&1, Nx.to_number(Nx.reduce_max(&1)))
          ] do
        assert text(fun) == nil
      end

      assert text(fn x, _bias -> Nx.exp(x) end, [{4}]) == nil
      assert text(fn _x, rest -> Nx.exp(rest) end, [{2, 4}]) == nil
    end

    test "what is no epilogue gives what the plain ops give" do
      x = on(random({5, 6}, :f32, 1))
      w = on(random({6, 7}, :f32, 2))
      b = on(random({7}, :f32, 3))

      for {fun, operands} <- [
            {&Nx.multiply(&1, Nx.subtract(Nx.less(&1, 0), Nx.greater(&1, 0))), []},
            {fn y, _ -> Nx.max(y, 0) end, [b]},
            {&Nx.multiply(&1, Nx.to_number(Nx.reduce_max(&1))), []}
          ] do
        ours = off(Nx.Vulkan.dot(x, [1], [], w, [0], [], operands, fun))
        assert ours == off(apply(fun, [Nx.dot(x, [1], [], w, [0], []) | operands]))
      end
    end

    test "names of axes are those of the product" do
      x = Nx.rename(on(random({5, 6}, :f32, 1)), [:row, :in])
      w = Nx.rename(on(random({6, 7}, :f32, 2)), [:in, :out])

      for axes <- [{[:in], [:in]}, {[1], [0]}] do
        {a, b} = axes
        assert Nx.Vulkan.dot(x, a, [], w, b, [], [], &Nx.exp/1).names == [:row, :out]
      end
    end

    for type <- [:f32, :f16, :bf16, :f64] do
      test "bias, activation and residual of #{type} in one request" do
        type = unquote(type)

        [x, w, bias, rest] =
          for {shape, seed} <- [{{33, 70}, 1}, {{70, 37}, 2}, {{37}, 3}, {{33, 37}, 4}],
              do: random(shape, type, seed)

        fun = fn x, bias, rest -> x |> Nx.add(bias) |> gelu() |> Nx.add(rest) end
        wide = for t <- [x, w, bias, rest], do: Nx.as_type(t, :f64)
        [wx, ww, wb, wr] = wide
        expected = fun.(Nx.dot(wx, ww), wb, wr)

        [x, w, bias, rest] = Enum.map([x, w, bias, rest], &on/1)
        got = Nx.Vulkan.dot(x, [1], [], w, [0], [], [bias, rest], fun)
        assert got.type == x.type
        assert %VulkanoBackend{} = got.data
        # Once rounded to the type, and what f32 sums are off.
        bound = %{f32: 2.0e-5, f16: 1.0e-2, bf16: 1.0e-1, f64: 1.0e-12}[type]
        error = got |> off() |> Nx.as_type(:f64) |> Nx.subtract(expected) |> Nx.abs()
        assert Nx.to_number(Nx.reduce_max(error)) < bound
      end
    end

    test "kernels take it, and what none takes is run as several ops" do
      f32 = {:f, 32}
      attrs = [batch_a: [], batch_b: [], contract_a: [1], contract_b: [0]]
      device = Nx.Vulkan.Device.fetch!(Nx.Vulkan.Device.default())

      explain = fn operands, epilogue ->
        inputs = for shape <- [{64, 64}, {64, 64} | operands], do: {f32, shape}
        attrs = [epilogue: epilogue] ++ attrs
        NativeV.explain(device, "dot", inputs, [{f32, {64, 64}}], attrs)
      end

      assert {:ok, {_, %{picked: "matmul/" <> _}}} = explain.([{64}], "add(x, i2); exp(%0)")
      many = "add(x, i2); add(%0, i3); add(%1, i4); add(%2, i5); add(%3, i6)"
      assert {:ok, {text, %{picked: "split"}}} = explain.(List.duplicate({64}, 5), many)
      assert text =~ "kernels take 4"
      assert text =~ "what it stands for one by one, 2 ops"
      assert {:error, :bad_input, why} = explain.([{63}], "add(x, i2)")
      assert why =~ "i2, f32[63], does not broadcast to the result"
    end

    defp assert_all_close(a, b), do: assert(Nx.to_number(Nx.all_close(a, b, atol: 1.0e-5)) == 1)

    defn dense(x, w, b) do
      Nx.Vulkan.dot(x, [1], [], w, [0], [], [b], fn y, b -> Nx.max(y + b, 0) end)
    end

    defn gradient(w, x, b) do
      grad(w, fn w -> Nx.sum(dense(x, w, b) ** 2) end)
    end

    defn plain(w, x, b) do
      grad(w, fn w -> Nx.sum(Nx.max(Nx.dot(x, w) + b, 0) ** 2) end)
    end

    test "in defn, compiled, and its gradient" do
      [x, w, b] = for {s, n} <- [{{5, 7}, 1}, {{7, 3}, 2}, {{3}, 3}], do: random(s, :f32, n)
      expected = Nx.max(Nx.add(Nx.dot(x, w), b), 0)
      [vx, vw, vb] = Enum.map([x, w, b], &on/1)
      assert_all_close(off(dense(vx, vw, vb)), expected)
      assert_all_close(off(Nx.Vulkan.jit(&dense/3).(vx, vw, vb)), expected)
      compiled = Nx.Defn.compile(&dense/3, [x, w, b], compiler: Nx.Vulkan.Compiler)
      assert_all_close(off(compiled.(vx, vw, vb)), expected)
      assert_all_close(off(gradient(vw, vx, vb)), plain(w, x, b))
      assert_all_close(dense(x, w, b), expected)
    end

    test "what is no call of it says what is expected" do
      a = Nx.iota({2, 2}, type: :f32)

      dot = fn operands, fun, opts ->
        Nx.Vulkan.dot(a, [1], [], a, [0], [], operands, fun, opts)
      end

      same = & &1

      for {operands, fun, opts, told} <- [
            {a, same, [], "a list of further operands"},
            {[], &Nx.add/2, [], "1 arguments"},
            {[a], same, [], "2 arguments"},
            {[], same, :high, "a keyword list, got: :high"},
            {[], same, [precision: false], "precision"}
          ] do
        error = assert_raise ArgumentError, fn -> dot.(operands, fun, opts) end
        assert error.message =~ told
      end

      x = Nx.iota({1, 1, 2, 2}, type: :f32)
      both = ~r/unknown keys \[:precison\].*:precision.*:padding/

      assert_raise ArgumentError, both, fn ->
        Nx.Vulkan.conv(x, x, [], & &1, precison: :high)
      end

      assert_raise ArgumentError, ~r"Nx.Vulkan.conv/5 expects its options", fn ->
        x = Nx.iota({1, 1, 3, 3}, type: :f32)
        Nx.Vulkan.conv(x, x, [], same, :same)
      end
    end

    test "batches, other axes and what is no expression" do
      x = random({2, 3, 5}, :f32, 1)
      w = random({2, 5, 4}, :f32, 2)
      [vx, vw] = [on(x), on(w)]
      add = fn y, b -> Nx.add(Nx.exp(y), b) end
      b = Nx.tensor([1.0, 2.0, 3.0, 4.0])
      got = Nx.Vulkan.dot(vx, [-1], [0], vw, [1], [0], [b], add)
      assert_all_close(off(got), add.(Nx.dot(x, [2], [0], w, [1], [0]), b))
      sums = Nx.Vulkan.dot(vx, [2], [0], vw, [1], [0], [], &Nx.sum(&1, axes: [0]))
      assert_all_close(off(sums), Nx.sum(Nx.dot(x, [2], [0], w, [1], [0]), axes: [0]))

      whole =
        Nx.Vulkan.dot(Nx.iota({2, 2}), [1], [], Nx.iota({2, 2}), [0], [], [], &Nx.add(&1, 1))

      assert Nx.to_flat_list(whole) == [3, 4, 7, 12]
    end
  end
end
