if Code.ensure_loaded?(Nx) do
  defmodule Nx.Vulkan.ClosureExpressionTest do
    # Counts what goes through Nx.BinaryBackend.
    use ExUnit.Case, async: false

    import Nx.Vulkan.Reference, only: [agree: 2, both: 1, same: 2, same!: 2]

    alias Nx.Vulkan.{Closure, VulkanoBackend}

    setup do
      Nx.default_backend(VulkanoBackend)
      :ok
    end

    @f32 {:f, 32}

    # What `fun` gives without Nx.BinaryBackend.
    defp traced!(fun) do
      before = fallbacks()
      result = fun.()
      assert fallbacks() == before
      result
    end

    defp fallbacks do
      ours = Map.take(Nx.Vulkan.stats().fallbacks, ~w(reduce window_reduce))
      ours |> Map.values() |> Enum.sum()
    end

    # Of any real type, which they keep.
    defp closures do
      [
        fn x, acc -> Nx.subtract(acc, Nx.multiply(x, 3)) end,
        fn x, acc -> Nx.max(Nx.abs(x), acc) end,
        fn x, acc -> Nx.select(Nx.greater(x, acc), x, acc) end,
        fn x, acc -> Nx.select(Nx.logical_not(Nx.equal(x, 2)), Nx.add(acc, x), acc) end,
        fn x, acc -> x |> Nx.add(acc) |> Nx.clip(1, 90) |> Nx.as_type(Nx.type(acc)) end,
        fn x, acc -> Nx.add(acc, Nx.as_type(Nx.greater_equal(x, 3), Nx.type(acc))) end,
        fn _, acc -> Nx.subtract(1, acc) end,
        fn x, _ -> Nx.multiply(x, x) end
      ]
    end

    defp floats do
      [
        fn x, acc -> Nx.add(Nx.multiply(x, 2), Nx.multiply(acc, 0.5)) end,
        fn x, acc -> Nx.subtract(x, acc) |> Nx.abs() |> Nx.add(x) end,
        fn x, acc -> Nx.select(Nx.is_nan(x), acc, Nx.add(acc, Nx.floor(x))) end
      ]
    end

    defp integers do
      [
        fn x, acc -> Nx.remainder(Nx.add(Nx.multiply(acc, 31), x), 101) end,
        fn x, acc -> Nx.bitwise_xor(Nx.left_shift(acc, 1), x) end,
        fn x, acc -> Nx.quotient(Nx.add(x, acc), 2) end
      ]
    end

    defp of(type) when type in [:f32, :f64, :bf16, :f16], do: closures() ++ floats()
    defp of(_), do: closures() ++ integers()

    test "a closure is the calls that it makes" do
      of = &Closure.expression(&1, @f32, &2)
      decay = fn x, acc -> Nx.add(Nx.multiply(x, 2), Nx.multiply(acc, 0.5)) end
      text = "multiply(i0, 2:s32):f32; multiply(i1, 0.5:f32):f32; add(%0, %1):f32"
      assert of.(decay, @f32) == {text, @f32}
      assert of.(decay, {:s, 32}) == {text, @f32}

      once = fn x, acc ->
        square = Nx.multiply(x, x)
        Nx.select(Nx.less(square, :infinity), square, acc)
      end

      text = "multiply(i0, i0):f32; less(%0, inf:f32):u8; select(%1, %0, i1):f32"
      assert of.(once, @f32) == {text, @f32}

      assert of.(fn x, acc -> x |> Nx.as_type(:s8) |> Nx.add(acc) end, {:s, 64}) ==
               {"as_type(i0):s8; add(%0, i1):s64", {:s, 64}}

      # Calls that double each time.
      doubled = fn x, acc -> Enum.reduce(1..50, Nx.add(x, acc), fn _, y -> Nx.add(y, y) end) end
      {text, _} = of.(doubled, @f32)
      assert length(String.split(text, ";")) == 51

      for fun <- [
            fn x, _ -> x end,
            fn _, _ -> 1 end,
            fn x, acc -> max(x, acc) end,
            fn x, acc -> Nx.negate(if x > acc, do: x, else: acc) end,
            fn x, acc -> Nx.add(max(Nx.abs(x), acc), 1) end,
            fn x, acc -> Nx.add(x, Nx.sum(acc)) end,
            fn x, acc -> Nx.add(Nx.tensor([1, 2]), Nx.add(x, acc)) end,
            fn x, acc -> Nx.real(Nx.add(Nx.complex(x, 1), acc)) end,
            fn x, acc -> Nx.add(x, Nx.tensor(1.0, backend: VulkanoBackend)) |> Nx.add(acc) end,
            fn x, acc -> Enum.reduce(1..65, acc, fn _, y -> Nx.add(x, y) end) end,
            fn _, _ -> raise "no" end,
            fn _, _ -> throw(:no) end
          ],
          do: assert(of.(fun, @f32) == nil)

      # One whose type changes on and on.
      other = fn x, acc ->
        type = if Nx.type(acc) == @f32, do: :f64, else: :f32
        Nx.as_type(Nx.subtract(x, acc), type)
      end

      assert of.(other, @f32) == nil
    end

    test "reductions of every type are those of Nx.BinaryBackend" do
      numbers = [[3, -1, 4, 1], [5, 9, 2, 6], [5, 3, 5, 8]]

      for type <- [:f32, :f64, :bf16, :f16, :s32, :s64, :s8, :u8, :u16, :u32] do
        unsigned? = type in [:u8, :u16, :u32]

        numbers =
          if unsigned?, do: Enum.map(numbers, fn row -> Enum.map(row, &abs/1) end), else: numbers

        x = Nx.tensor(numbers, type: type, backend: Nx.BinaryBackend)
        acc = Nx.tensor(2, type: type, backend: Nx.BinaryBackend)
        same = if type in [:bf16, :f16], do: &agree/2, else: &same/2

        for {fun, at} <- Enum.with_index(of(type)) do
          opts =
            Enum.at(
              [[], [axes: [0]], [axes: [1], keep_axes: true], [keep_axes: true]],
              rem(at, 4)
            )

          traced!(fn -> same.([x, acc], &Nx.reduce(&1, &2, opts, fun)) end)
          traced!(fn -> same.([Nx.transpose(x), acc], &Nx.reduce(&1, &2, opts, fun)) end)
        end
      end
    end

    # traced!/1 is for our side alone, since the other is a fallback of nobody's.
    test "axes, scalars and vectors" do
      x = Nx.iota({2, 3, 4}, type: :f32, backend: Nx.BinaryBackend)
      decay = fn x, acc -> Nx.add(x, Nx.multiply(acc, 0.5)) end

      for opts <- [[axes: [0, 2]], [axes: [2, 0]], [axes: [1]], [axes: [-1], keep_axes: true], []],
          do: traced!(fn -> same([x], &Nx.reduce(&1, 1.0, opts, decay)) end)

      same([x], &Nx.reduce(&1, 0.0, [axes: []], decay))
      traced!(fn -> same([Nx.tensor(3.0)], &Nx.reduce(&1, 1.0, decay)) end)

      traced!(fn ->
        same([x], fn x ->
          x |> Nx.vectorize(:rows) |> Nx.reduce(2.0, [axes: [1]], decay) |> Nx.devectorize()
        end)
      end)
    end

    test "operands and accumulators of other types" do
      x = Nx.tensor([1, -2, 3], type: :s8, backend: Nx.BinaryBackend)
      grow = fn x, acc -> Nx.add(Nx.multiply(acc, 2), x) end

      for {acc, type} <- [{1.5, :f32}, {3, :s64}, {0.5, :f64}] do
        acc = Nx.tensor(acc, type: type, backend: Nx.BinaryBackend)
        traced!(fn -> same([x, acc], &Nx.reduce(&1, &2, grow)) end)
      end

      # Their sum is no s8, as Nx.reduce takes it to be.
      assert_raise ArgumentError, ~r/scalar tensor of type/, fn -> Nx.reduce(x, 1, grow) end

      # What the accumulator's next type does not hold is nothing to begin with.
      before = fallbacks()
      floats = Nx.tensor([1.0, 2.0], backend: Nx.BinaryBackend)
      same([floats], &Nx.reduce(&1, 16_777_217, grow))
      assert fallbacks() == before + 1

      # 2^24 + 1 is greater than 2^24, though f32 takes them for the same.
      large = Nx.tensor([16_777_217], type: :s64, backend: Nx.BinaryBackend)
      greater = fn x, acc -> Nx.select(Nx.greater(x, acc), Nx.tensor(1.0), acc) end
      traced!(fn -> same([large], &Nx.reduce(&1, 16_777_216.0, greater)) end)
    end

    test "non-finite values" do
      x = Nx.tensor([1.0, :nan, :infinity, -0.0, :neg_infinity, 2.0], backend: Nx.BinaryBackend)

      for fun <- [
            fn x, acc -> Nx.max(Nx.abs(x), acc) end,
            fn x, acc -> Nx.select(Nx.is_nan(x), acc, Nx.min(x, acc)) end,
            fn x, acc -> Nx.add(acc, Nx.as_type(Nx.is_infinity(x), :f32)) end,
            fn x, acc -> Nx.select(Nx.greater(x, acc), x, acc) end
          ],
          acc <- [0.0, :nan, :neg_infinity] do
        acc = Nx.tensor(acc, type: :f32, backend: Nx.BinaryBackend)
        traced!(fn -> same([x, acc], &Nx.reduce(&1, &2, fun)) end)
      end
    end

    test "functions are those of the device" do
      x = Nx.tensor([0.5, -1.0, 2.0], backend: Nx.BinaryBackend)
      smooth = fn x, acc -> Nx.log1p(Nx.add(Nx.exp(x), Nx.tanh(acc))) end
      traced!(fn -> agree([x], &Nx.reduce(&1, 0.0, smooth)) end)

      both = fn x, acc -> Nx.as_type(Nx.add(Nx.exp(Nx.as_type(x, :f64)), Nx.exp(acc)), :f32) end

      traced!(fn ->
        agree([x], &Nx.reduce(&1, 0.0, fn x, acc -> both.(x, Nx.divide(acc, 9)) end))
      end)

      double = Nx.as_type(x, :f64)
      traced!(fn -> agree([double], &Nx.reduce(&1, Nx.tensor(0.0, type: :f64), smooth)) end)
    end

    test "windows with padding, strides and dilations" do
      for type <- [:f32, :s32] do
        x = Nx.iota({4, 5}, type: type, backend: Nx.BinaryBackend) |> Nx.subtract(7)

        for {fun, at} <- Enum.with_index(of(type)),
            opts <- [
              [],
              [padding: :same],
              [strides: [1, 2]],
              [padding: [{1, 0}, {0, 2}], window_dilations: [2, 1]]
            ] do
          acc = Nx.tensor(rem(at, 3) + 1, type: type, backend: Nx.BinaryBackend)
          traced!(fn -> same([x, acc], &Nx.window_reduce(&1, &2, {2, 2}, opts, fun)) end)
        end
      end

      # Nx.BinaryBackend knows no others.
      for type <- [:u8, :s64, :f64, :bf16] do
        x = Nx.tensor([1, 2, 3], type: type)
        digits = fn x, acc -> Nx.add(Nx.multiply(acc, 4), x) end
        made = traced!(fn -> Nx.window_reduce(x, Nx.tensor(1, type: type), {2}, digits) end)
        assert Nx.to_flat_list(made) == [22, 27]
        assert made.type == x.type
      end
    end

    test "closures of compiled functions" do
      x = Nx.tensor([[1.0, -2.0], [3.0, 4.5]])

      sum = fn x ->
        Nx.reduce(x, 0, [axes: [1]], fn x, acc ->
          Nx.select(Nx.greater(x, 0), Nx.add(Nx.multiply(x, 2), acc), acc)
        end)
      end

      windows = fn x ->
        Nx.window_reduce(x, 1.0, {2, 1}, fn x, acc -> Nx.add(Nx.multiply(acc, 0.25), x) end)
      end

      for fun <- [sum, windows], compiler <- [Nx.Vulkan.Compiler, Nx.Defn.Evaluator] do
        [ours, theirs] = both(fn -> Nx.Defn.jit(fun, compiler: compiler).(Nx.backend_copy(x)) end)
        same!(ours, theirs)
        traced!(fn -> Nx.Defn.jit(fun, compiler: compiler).(x) end)
      end
    end

    test "a closure that raises raises its own, and one without a result that of its op" do
      x = Nx.tensor([1, 0, 2])
      assert_raise RuntimeError, "no", fn -> Nx.reduce(x, 0, fn _, _ -> raise "no" end) end

      assert_raise ArithmeticError, fn ->
        x |> Nx.reduce(7, fn x, acc -> Nx.remainder(acc, x) end) |> Nx.to_number()
      end

      safe = Nx.tensor([5, 4, 3])
      traced!(fn -> same([safe], &Nx.reduce(&1, 107, fn x, acc -> Nx.remainder(acc, x) end)) end)
    end

    test "explain says what is a view" do
      x = Nx.template({10, 2}, :f32)

      for {function, arguments} <- [
            reshape: [{5, 4}],
            transpose: [],
            slice: [[1, 0], [2, 1]],
            reverse: []
          ] do
        wrong = ~r/got: #{function}, which is a view: nothing is computed/
        call = fn -> Nx.Vulkan.explain(function, [x | arguments]) end
        assert_raise ArgumentError, wrong, call
      end

      square = Nx.template({3, 3}, :f32)
      ends = fn name, with -> {{Nx.LinAlg, name}, ~r/got: #{name}, which ends with #{with}/} end

      for {function, wrong} <- [ends.(:norm, "a view"), ends.(:pinv, ":cond")] do
        call = fn -> Nx.Vulkan.explain(function, [square]) end
        assert_raise ArgumentError, wrong, call
      end

      starts = [Nx.template({}, :s32), 0]
      asked = Nx.Vulkan.explain(:slice, [x, starts, [2, 1]])
      assert asked.picked =~ "/"
      assert [%{measured_us: nil} | _] = asked.candidates
      assert asked.request =~ "dynamic_slice(f32[10,1], s32[])"
    end

    test "explain asks as calls do: of scalars, of vectors, and with lists of tensors and numbers" do
      asked = fn function, arguments -> Nx.Vulkan.explain(function, arguments).request end
      x = Nx.template({3, 4}, :f32)
      scalar = Nx.template({}, :f32)
      for op <- [:sum, :reduce_max, :product], do: assert(asked.(op, [scalar]) =~ "#{op}(f32[1])")
      assert asked.(:iota, [{3, 4}, [axis: 1]]) =~ "iota() -> s32[3,4]"
      vectors = Nx.vectorize(x, :a)
      assert asked.(:add, [vectors, 1]) =~ "-> f32[3,4]"
      assert asked.(:sum, [vectors]) =~ "sum(f32[3,4]) -> f32[3]"
      assert asked.(:take, [vectors, Nx.template({2}, :s32)]) =~ "f32[3,4]"

      assert asked.(:slice, [x, [0, Nx.template({}, :s32)], [1, 2]]) =~
               "dynamic_slice(f32[1,4], s32[])"

      for {function, arguments} <- [as_type: [x, :f32], add: [2, 2], shape: [x]] do
        call = fn -> Nx.Vulkan.explain(function, arguments) end
        assert_raise ArgumentError, ~r/leave nothing to compute/, call
      end
    end

    test "explain says what it takes" do
      x = Nx.template({3}, :f32)
      name = ~r/expected the name of a function of Nx as an atom, .*got: "sum"/
      assert_raise ArgumentError, name, fn -> Nx.Vulkan.explain("sum", [x]) end

      assert Nx.Vulkan.explain({Nx.LinAlg, :cholesky}, [Nx.template({3, 3}, :f32)]).picked =~
               "linalg/"

      list = ~r/expected a list of arguments, got: :x/
      assert_raise ArgumentError, list, fn -> Nx.Vulkan.explain(:add, :x) end
    end

    test "explain says who runs a closure" do
      explained = fn fun -> Nx.Vulkan.explain(:reduce, [Nx.template({3}, :f32), 0, fun]).text end
      assert explained.(&Nx.add/2) =~ "sum"
      assert explained.(fn x, acc -> Nx.add(Nx.abs(x), acc) end) =~ "closure/reduce"

      assert_raise ArgumentError, ~r/which Nx.BinaryBackend calls/, fn ->
        explained.(fn x, acc -> Nx.add(Nx.sum(x), acc) end)
      end

      assert_raise ArgumentError, ~r/which Nx.BinaryBackend calls/, fn ->
        explained.(fn x, acc -> Nx.add(Nx.to_number(x), acc) end)
      end

      x = Nx.template({4}, :f32)
      asked = Nx.Vulkan.explain(:window_reduce, [x, 0, {2}, fn x, acc -> Nx.subtract(x, acc) end])
      assert asked.text =~ "closure/window_reduce"
    end

    test "what is no expression runs on Nx.BinaryBackend" do
      x = Nx.tensor([1.0, 2.0, 3.0], backend: Nx.BinaryBackend)
      own = fn x, acc -> if Nx.to_number(x) > 1.5, do: Nx.add(x, acc), else: acc end
      before = fallbacks()
      same([x], &Nx.reduce(&1, 0.0, own))
      assert fallbacks() == before + 1
      complex = Nx.tensor([Complex.new(1, 2), 3], backend: Nx.BinaryBackend)
      agree([complex], &Nx.reduce(&1, 0, fn x, acc -> Nx.add(Nx.multiply(x, 2), acc) end))
      assert fallbacks() == before + 2
    end
  end
end
