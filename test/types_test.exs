if Code.ensure_loaded?(Nx) do
  defmodule Nx.Vulkan.TypesTest do
    # Every type through every op that takes it, on the device alone: nothing may fall back. What is expected comes from
    # Nx.BinaryBackend in the widest type of the class, whose result is then rounded or wrapped.
    use ExUnit.Case, async: false

    @integers ~w(u2 u4 u8 u16 u32 u64 s2 s4 s8 s16 s32 s64)a
    @floats ~w(f8 f8_e4m3fn f16 bf16 f32 f64)a
    @complex ~w(c64 c128)a

    # Relative, by type. f8 has 2 bits after the point, f8_e4m3fn 3.
    @tolerance %{
      {:f, 8} => 0.15,
      {:f8_e4m3fn, 8} => 0.07,
      {:f, 16} => 2.0e-3,
      {:bf, 16} => 1.0e-2,
      {:f, 32} => 2.0e-6,
      {:f, 64} => 1.0e-14,
      {:c, 64} => 2.0e-6,
      {:c, 128} => 1.0e-14
    }

    setup do
      Application.put_env(:nx_vulkan, :fallback, :error)
      on_exit(fn -> Application.delete_env(:nx_vulkan, :fallback) end)
    end

    @functions ~w(exp expm1 log log1p sigmoid cos sin tan cosh sinh tanh asinh atan sqrt rsqrt cbrt)a
    @own ~w(negate abs sign)a
    @bits ~w(bitwise_and bitwise_or bitwise_xor)a
    @compare ~w(equal not_equal greater less greater_equal less_equal)a
    @logical ~w(logical_and logical_or logical_xor)a

    # Positive values, values of any sign, and values of one row to combine with them.
    defp values(type) when type in @integers do
      {kind, bits} = Nx.Type.normalize!(type)

      {low, high} =
        if kind == :u, do: {0, 2 ** bits - 1}, else: {-(2 ** (bits - 1)), 2 ** (bits - 1) - 1}

      all = for x <- [-100, -7, -2, -1, 0, 1, 1, 3, 5, 60], do: x |> max(low) |> min(high)
      {[1, 1, min(3, high)], all, [1, min(2, high)]}
    end

    defp values(type) when type in @floats,
      do: {[0.5, 1, 1.75, 3], [-2.5, -1, -0.25, 0.5, 1, 1.75, 3], [-1.5, 2]}

    defp values(_complex) do
      pairs = [{0.5, 0.25}, {-0.75, 1.5}, {1.25, -2}, {-3, -0.5}, {1, 0.125}]
      all = for {re, im} <- pairs, do: Complex.new(re, im)
      {all, all, [Complex.new(0.5, -1.5), Complex.new(-2, 0.25)]}
    end

    defp wide(type) when type in @integers, do: :s64
    defp wide(type) when type in @floats, do: :f64
    defp wide(_complex), do: :c128

    # `fun` of tensors of the values, here in the type and there in the widest one.
    defp agree(type, op, lists, fun) do
      at = fn backend, type ->
        Nx.with_default_backend(backend, fn ->
          fun.(Enum.map(lists, &Nx.tensor(&1, type: type)))
        end)
      end

      ours = at.(Nx.Vulkan.VulkanoBackend, type)
      theirs = at.(Nx.BinaryBackend, wide(type))
      assert ours.shape == theirs.shape

      theirs =
        Nx.with_default_backend(Nx.BinaryBackend, fn -> Nx.as_type(theirs, exact(ours)) end)

      pairs = Enum.zip(Nx.to_flat_list(ours), Nx.to_flat_list(theirs))

      assert Enum.all?(pairs, fn {x, y} -> near?(x, y, @tolerance[ours.type]) end),
             "#{op} of #{type}: #{inspect(pairs)}"
    end

    # A float of 8 bits is compared with the result before it is rounded.
    defp exact(%{type: {kind, 8}}) when kind in [:f, :f8_e4m3fn], do: {:f, 64}
    defp exact(%{type: type}), do: type

    defp near?(same, same, _tolerance), do: true
    defp near?(x, y, nil), do: x == y
    defp near?(x, y, _) when is_atom(x) or is_atom(y), do: false

    defp near?(x, y, tolerance),
      do: Complex.abs(Complex.subtract(x, y)) <= tolerance * max(Complex.abs(y), 0.01)

    for type <- @integers ++ @floats ++ @complex do
      test "#{type} elementwise" do
        type = unquote(type)
        {positive, all, row} = values(type)
        column = &Nx.new_axis(&1, -1)

        functions =
          if type in @complex, do: @functions ++ ~w(acos asin atanh acosh)a, else: @functions

        for op <- functions,
            type not in @integers,
            do: agree(type, op, [positive], fn [x] -> apply(Nx, op, [x]) end)

        own = if type in @complex, do: [:negate, :abs, :real, :imag, :conjugate], else: @own
        for op <- own, do: agree(type, op, [all], fn [x] -> apply(Nx, op, [x]) end)

        for op <- [:add, :subtract, :multiply, :equal, :not_equal | @logical],
            do: agree(type, op, [all, row], fn [x, y] -> apply(Nx, op, [x, column.(y)]) end)

        if type not in @complex do
          for op <- [:min, :max | @compare],
              do: agree(type, op, [all, row], fn [x, y] -> apply(Nx, op, [x, column.(y)]) end)

          for op <- [:round, :floor, :ceil],
              do: agree(type, op, [all], fn [x] -> apply(Nx, op, [x]) end)

          agree(type, :clip, [all], fn [x] -> Nx.clip(x, 0, 1) end)
          agree(type, :remainder, [positive, row], fn [x, y] -> Nx.remainder(x, column.(y)) end)
        end

        if type in @integers do
          for op <- @bits,
              do: agree(type, op, [all, row], fn [x, y] -> apply(Nx, op, [x, column.(y)]) end)

          agree(type, :bitwise_not, [all], fn [x] -> Nx.bitwise_not(x) end)
          agree(type, :quotient, [all, row], fn [x, y] -> Nx.quotient(x, column.(y)) end)

          agree(type, :left_shift, [all], fn [x] ->
            Nx.left_shift(x, Nx.tensor([[0], [1]], type: type))
          end)

          agree(type, :right_shift, [all], fn [x] ->
            Nx.right_shift(x, Nx.tensor([[0], [1]], type: type))
          end)

          agree(type, :pow, [positive], fn [x] -> Nx.pow(x, x) end)
        else
          agree(type, :divide, [all, row], fn [x, y] -> Nx.divide(x, column.(y)) end)
          agree(type, :pow, [positive, row], fn [x, y] -> Nx.pow(x, column.(y)) end)

          for op <- [:is_nan, :is_infinity],
              do: agree(type, op, [all], fn [x] -> apply(Nx, op, [x]) end)
        end

        agree(type, :select, [all, row], fn [x, y] ->
          Nx.select(Nx.equal(x, x), x, Nx.sum(y) |> Nx.as_type(x.type))
        end)
      end

      test "#{type} reduced, contracted and converted" do
        type = unquote(type)
        {positive, all, row} = values(type)

        for op <- [:sum, :product, :all, :any], axes <- [[0], [1], [0, 1]] do
          agree(type, op, [[row, row]], fn [x] -> apply(Nx, op, [x, [axes: axes]]) end)
        end

        agree(type, :mean, [[row, row]], fn [x] -> Nx.mean(x, axes: [0]) end)
        agree(type, :dot, [[row, row], [row, row]], fn [x, y] -> Nx.dot(x, y) end)

        if type not in @complex do
          for op <- [:reduce_max, :reduce_min, :argmax, :argmin],
              do: agree(type, op, [all], fn [x] -> apply(Nx, op, [x]) end)
        end

        for other <- @integers ++ @floats ++ @complex do
          x = Nx.tensor(positive, type: type, backend: Nx.Vulkan.VulkanoBackend)
          y = Nx.as_type(x, other)
          whole = for x <- Nx.to_flat_list(x), do: x |> Complex.real() |> part(other)
          got = for y <- Nx.to_flat_list(y), do: Complex.real(y)
          pairs = Enum.zip(got, whole)
          tolerance = @tolerance[y.type]

          assert Enum.all?(pairs, fn {x, y} -> near?(x, y, tolerance) end),
                 "#{type} to #{other}: #{inspect(pairs)}"
        end

        assert Nx.to_flat_list(Nx.eye(2, type: type, backend: Nx.Vulkan.VulkanoBackend))
               |> Enum.map(&Complex.real/1) == [1, 0, 0, 1]
      end
    end

    test "elements narrower than a byte keep their bits as another type" do
      readers = [
        &Nx.as_type(&1, :s32),
        &Nx.sum/1,
        &Nx.sort/1,
        &Nx.reduce_max/1,
        &Nx.divide(&1, 2),
        &Nx.greater(&1, 2)
      ]

      for {from, to} <- [s4: :u4, u4: :s4, s2: :u2, u2: :s2], read <- readers do
        {_, bits} = Nx.Type.normalize!(from)
        fun = &read.(Nx.bitcast(&1, to))
        all = for x <- 0..(2 ** bits - 1), into: <<>>, do: <<x::size(bits)>>
        x = Nx.from_binary(all, from, backend: Nx.Vulkan.VulkanoBackend)
        # The other type wraps.
        expected = x |> Nx.backend_copy(Nx.BinaryBackend) |> Nx.as_type(to) |> read.()

        for got <- [fun.(x), Nx.Defn.jit(fun, compiler: Nx.Vulkan.Compiler).(x)] do
          assert got.type == expected.type
          assert Nx.to_flat_list(got) == Nx.to_flat_list(expected), "#{from} as #{to}"
        end
      end
    end

    # What a real number becomes.
    defp part(x, type) when type in @integers do
      {kind, bits} = Nx.Type.normalize!(type)

      {low, high} =
        if kind == :u, do: {0, 2 ** bits - 1}, else: {-(2 ** (bits - 1)), 2 ** (bits - 1) - 1}

      cond do
        is_float(x) -> x |> trunc() |> max(low) |> min(high)
        true -> low + Integer.mod(x - low, high - low + 1)
      end
    end

    defp part(x, _type), do: x
  end
end
