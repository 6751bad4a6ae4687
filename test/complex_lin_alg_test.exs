if Code.ensure_loaded?(Nx) do
  defmodule Nx.Vulkan.ComplexLinAlgTest do
    # Nx.LinAlg and products of complex numbers, here and on Nx.BinaryBackend. With fallback: :error nothing may leave the device.
    use ExUnit.Case, async: false

    alias Nx.Vulkan.Reference

    setup do
      Nx.default_backend(Nx.Vulkan.VulkanoBackend)
      Application.put_env(:nx_vulkan, :fallback, :error)
      on_exit(fn -> Application.delete_env(:nx_vulkan, :fallback) end)
    end

    # Well conditioned, with magnitudes that differ.
    defp random(shape, type, seed) do
      key = Nx.Random.key(seed)
      part = if type == :c64, do: :f32, else: :f64
      {re, key} = Nx.Random.uniform(key, -1.0, 1.0, shape: shape, type: part)
      {im, _} = Nx.Random.uniform(key, -1.0, 1.0, shape: shape, type: part)
      [re, im] = for x <- [re, im], do: Nx.backend_copy(x, Nx.BinaryBackend)
      Nx.complex(re, im) |> Nx.as_type(type)
    end

    defp product(a, b) do
      batch = Enum.to_list(0..(Nx.rank(a) - 3)//1)
      Nx.dot(a, [-1], batch, b, [-2], batch)
    end

    defp positive(a) do
      square = product(a, Nx.LinAlg.adjoint(a))
      Nx.add(square, Nx.eye(Nx.axis_size(a, -1), type: a.type))
    end

    # What both give, within `tolerance`; and nothing left the device.
    defp assert_same(operands, tolerance, fun) do
      before = Nx.Vulkan.stats().fallbacks

      [ours, theirs] =
        Reference.both(fn ->
          {backend, _} = Nx.default_backend()
          results = apply(fun, Enum.map(operands, &Nx.backend_copy(&1, backend)))
          if is_tuple(results), do: Tuple.to_list(results), else: [results]
        end)

      assert Nx.Vulkan.stats().fallbacks == before

      for {x, y} <- Enum.zip(ours, theirs) do
        assert %Nx.Vulkan.VulkanoBackend{} = x.data
        assert {x.type, x.shape} == {y.type, y.shape}
        x = Nx.backend_copy(x, Nx.BinaryBackend)
        Nx.with_default_backend(Nx.BinaryBackend, fn -> assert_near(x, y, tolerance) end)
      end
    end

    defp assert_near(x, y, tolerance) do
      [apart, largest] =
        for z <- [Nx.subtract(x, y), y], do: z |> Nx.abs() |> Nx.reduce_max() |> Nx.to_number()

      assert apart <= tolerance * max(largest, 1.0), "#{apart} apart: #{inspect({x, y})}"
    end

    @tolerance %{c64: 1.0e-5, c128: 1.0e-12}

    for type <- [:c64, :c128], n <- [1, 2, 5] do
      @tag type: type, n: n
      test "triangular_solve of #{n} #{type}", %{type: type, n: n} do
        eye = Nx.eye(n, type: type, backend: Nx.BinaryBackend)
        a = Nx.add(random({2, n, n}, type, 1), Nx.multiply(eye, Complex.new(2, 2)))
        b = random({2, n, n}, type, 2)

        for way <- [:none, :transpose, :conjugate],
            left <- [true, false],
            lower <- [true, false] do
          opts = [transform_a: way, left_side: left, lower: lower]
          assert_same([a, b], @tolerance[type], &Nx.LinAlg.triangular_solve(&1, &2, opts))
        end

        assert_same([a[0], b[0][0]], @tolerance[type], &Nx.LinAlg.triangular_solve/2)
      end

      @tag type: type, n: n
      test "lu, determinant, solve and what is made of them, of #{n} #{type}", context do
        %{type: type, n: n} = context
        a = random({2, n, n}, type, 3)
        tolerance = 10 * @tolerance[type]
        assert_same([a], tolerance, &Nx.LinAlg.lu/1)
        assert_same([a], tolerance, &Nx.LinAlg.determinant/1)
        assert_same([a], 10 * tolerance, &Nx.LinAlg.invert/1)
        assert_same([a, random({2, n, 3}, type, 4)], 10 * tolerance, &Nx.LinAlg.solve/2)
        assert_same([a, random({2, n}, type, 5)], 10 * tolerance, &Nx.LinAlg.solve/2)
      end

      @tag type: type, n: n
      test "cholesky of #{n} #{type}", %{type: type, n: n} do
        a = positive(random({2, n, n}, type, 6))
        # Nx.BinaryBackend adds 1.0e-10 to what it divides by.
        assert_same([a], max(@tolerance[type], 1.0e-9), &Nx.LinAlg.cholesky/1)
      end

      if n > 1 do
        @tag type: type, n: n
        test "eigh of #{n} #{type}", %{type: type, n: n} do
          a = random({2, n, n}, type, 7)
          a = Nx.add(a, Nx.LinAlg.adjoint(a))
          # Nx.BinaryBackend stops when what is beside the diagonal is below eps.
          assert_same([a], 1.0e-3, &Nx.LinAlg.eigh(&1, eps: 1.0e-7))
        end
      end
    end

    # Nx.BinaryBackend has NaN for matrices of two columns more than rows.
    for type <- [:c64, :c128], {m, n} <- [{1, 1}, {3, 3}, {5, 3}, {3, 4}, {1, 2}, {4, 1}] do
      @tag type: type, shape: {m, n}
      test "qr of #{m} x #{n} #{type}", %{type: type, shape: shape} do
        a = random(shape, type, 8)

        for mode <- [:reduced, :complete] do
          tolerance = max(@tolerance[type], 1.0e-9)
          assert_same([a], tolerance, &Nx.LinAlg.qr(&1, mode: mode))
        end
      end
    end

    for type <- [:c64, :c128] do
      @tag type: type
      test "products of #{type}", %{type: type} do
        a = random({4, 6}, type, 9)
        tolerance = @tolerance[type]

        for axis <- [0, 1], reverse <- [false, true] do
          opts = [axis: axis, reverse: reverse]
          assert_same([a], tolerance, &Nx.cumulative_product(&1, opts))
        end

        assert_same([a], tolerance, &Nx.window_product(&1, {2, 3}, padding: :same))
        opts = [strides: [2, 1], window_dilations: [1, 2]]
        assert_same([a], tolerance, &Nx.window_product(&1, {2, 2}, opts))
        assert_same([random({300}, type, 10)], tolerance, &Nx.cumulative_product/1)
      end
    end

    # Sizes of several blocks: what results have to satisfy.
    for type <- [:c64, :c128], n <- [33, 65, 130] do
      @tag type: type, n: n
      test "factors of #{n} #{type} give their matrix back", %{type: type, n: n} do
        a = random({2, n, n}, type, 11) |> Nx.backend_copy(Nx.Vulkan.VulkanoBackend)
        precision = 10 * n * if(type == :c64, do: 1.2e-7, else: 2.3e-16)
        before = Nx.Vulkan.stats().fallbacks
        hermitian = Nx.add(a, Nx.LinAlg.adjoint(a))
        {p, l, u} = Nx.LinAlg.lu(a)
        {q, r} = Nx.LinAlg.qr(a)
        {values, vectors} = Nx.LinAlg.eigh(hermitian)
        square = positive(a)
        c = Nx.LinAlg.cholesky(square)

        pairs = [
          {p |> product(l) |> product(u), a},
          {product(q, r), a},
          {product(c, Nx.LinAlg.adjoint(c)), square},
          {product(hermitian, vectors), Nx.multiply(vectors, Nx.new_axis(values, 1))}
        ]

        for {x, y} <- pairs, do: assert_near(x, y, precision)

        for x <- [q, vectors],
            do: assert_near(product(Nx.LinAlg.adjoint(x), x), Nx.eye(n, type: type), precision)

        assert Nx.Vulkan.stats().fallbacks == before
      end
    end

    test "singular systems are errors when read" do
      a = Nx.tensor([[Complex.new(1, 1), 2], [Complex.new(2, 2), 4]])
      b = Nx.tensor([1.0, 2.0])
      message = ~r"can't solve for singular matrix"
      assert_raise ArgumentError, message, fn -> Nx.to_binary(Nx.LinAlg.solve(a, b)) end
    end

    test "what is not positive definite has no Cholesky factor" do
      a = Nx.tensor([[1, Complex.new(0, -2)], [Complex.new(0, 2), 1]], type: :c64)
      l = Nx.LinAlg.cholesky(a)
      assert Nx.to_number(Nx.is_nan(l[1][1])) == 1
    end
  end
end
