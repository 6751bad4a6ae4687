if Code.ensure_loaded?(Nx) do
  defmodule Nx.Vulkan.LinAlgTest do
    # Nx.LinAlg here and on Nx.BinaryBackend, and what its results have to satisfy.
    use ExUnit.Case, async: true

    alias Nx.Vulkan.Reference

    @float %{{:f, 32} => 1.2e-7, {:f, 64} => 2.3e-16}

    setup do
      Nx.default_backend(Nx.Vulkan.VulkanoBackend)
      :ok
    end

    defp random(shape, type \\ :f32, seed \\ 7) do
      {x, _} = Nx.Random.uniform(Nx.Random.key(seed), -1.0, 1.0, shape: shape, type: type)
      x
    end

    defp product(a, b) do
      batch = Enum.to_list(0..(Nx.rank(a) - 3)//1)
      Nx.dot(a, [-1], batch, b, [-2], batch)
    end

    defp adjoint(a), do: Nx.LinAlg.adjoint(a)

    defp positive(a),
      do: Nx.add(product(a, adjoint(a)), Nx.eye(Nx.axis_size(a, -1), type: a.type))

    # Within so many units of n times the type's precision times the largest element of what is expected.
    defp assert_near(got, expected, units \\ 10) do
      precision = @float[got.type] * Nx.axis_size(expected, -1)
      [got, expected] = for x <- [got, expected], do: Nx.as_type(x, :f64)
      [apart, largest] = for x <- [Nx.subtract(got, expected), expected], do: largest(x)
      assert apart <= units * precision * max(largest, 1.0e-300), "#{apart} apart of #{largest}"
    end

    # Within n times the type's precision times what the terms of the products add up to.
    defp assert_solves(a, x, b) do
      apart = largest(Nx.subtract(product(a, x), b))
      terms = largest(product(Nx.abs(a), Nx.abs(x)))
      assert apart <= @float[x.type] * Nx.axis_size(a, -1) * terms, "#{apart} apart of #{terms}"
    end

    defp assert_orthogonal(x) do
      gram = product(adjoint(x), x)
      assert_near(gram, Nx.broadcast(Nx.eye(Nx.axis_size(x, -1), type: x.type), gram))
    end

    defp assert_reduced(a) do
      {u, s, vt} = Nx.LinAlg.svd(a, full_matrices?: false)
      assert_near(product(Nx.multiply(u, s), vt), a)
      for x <- [u, adjoint(vt)], do: assert_orthogonal(x)
    end

    defp smallest(x), do: x |> Nx.reduce_min() |> Nx.to_number()
    defp largest(x), do: x |> Nx.abs() |> Nx.reduce_max() |> Nx.to_number()

    for type <- [:f32, :f64], n <- [1, 2, 5, 33, 64, 65, 150] do
      test "triangular_solve of #{n} #{type}" do
        n = unquote(n)
        a = Nx.add(Nx.divide(random({n, n}, unquote(type)), n), Nx.eye(n, type: unquote(type)))
        b = random({n, 3}, unquote(type), 8)

        for lower <- [true, false], transform <- [:none, :transpose, :conjugate] do
          triangle = if lower, do: Nx.tril(a), else: Nx.triu(a)
          turned = if transform == :transpose, do: Nx.transpose(triangle), else: triangle
          opts = [lower: lower, transform_a: transform]
          x = Nx.LinAlg.triangular_solve(a, b, opts)
          assert_near(Nx.dot(turned, x), b)
          y = Nx.LinAlg.triangular_solve(a, Nx.transpose(b), [left_side: false] ++ opts)
          assert_near(Nx.dot(y, turned), Nx.transpose(b))
          z = Nx.LinAlg.triangular_solve(a, b[[.., 0]], opts)
          assert_near(z, x[[.., 0]])
        end
      end

      test "cholesky of #{n} #{type}" do
        a = positive(random({2, unquote(n), unquote(n)}, unquote(type)))
        l = Nx.LinAlg.cholesky(a)
        assert_near(product(l, adjoint(l)), a)
        assert Nx.to_number(Nx.all(Nx.equal(l, Nx.tril(l)))) == 1
      end

      test "lu and what comes of it, of #{n} #{type}" do
        n = unquote(n)
        a = random({2, n, n}, unquote(type))
        {p, l, u} = Nx.LinAlg.lu(a)
        assert_near(p |> product(l) |> product(u), a)
        assert Nx.to_number(Nx.all(Nx.less_equal(Nx.abs(l), 1))) == 1
        assert Nx.to_number(Nx.all(Nx.equal(Nx.sum(p, axes: [1]), 1))) == 1
        b = random({2, n, 2}, unquote(type), 9)
        x = Nx.LinAlg.solve(a, b)
        assert_solves(a, x, b)
        assert_near(Nx.LinAlg.solve(a, b[[.., .., 0]]), x[[.., .., 0]], 1)
        scaled = Nx.multiply(a[0], 2)
        determinants = Nx.divide(Nx.LinAlg.determinant(scaled), Nx.LinAlg.determinant(a[0]))

        if n <= 33,
          do:
            assert_near(
              Nx.reshape(determinants, {1}),
              Nx.tensor([2.0 ** n], type: unquote(type)),
              100
            )
      end
    end

    for type <- [:f32, :f64],
        {m, n} <- [{1, 1}, {4, 4}, {9, 5}, {5, 9}, {40, 33}, {70, 66}, {66, 70}] do
      test "qr of #{m} x #{n} #{type}" do
        a = random({2, unquote(m), unquote(n)}, unquote(type))

        for mode <- [:reduced, :complete] do
          {q, r} = Nx.LinAlg.qr(a, mode: mode)
          assert_near(product(q, r), a)
          assert_orthogonal(q)
          assert Nx.to_number(Nx.all(Nx.equal(r, Nx.triu(r)))) == 1
        end
      end

      test "svd of #{m} x #{n} #{type}" do
        a = random({2, unquote(m), unquote(n)}, unquote(type))

        for full <- [true, false] do
          {u, s, vt} = Nx.LinAlg.svd(a, full_matrices?: full)
          k = Nx.axis_size(s, -1)
          scaled = Nx.multiply(u[[.., .., 0..(k - 1)]], Nx.new_axis(s, 1))
          assert_near(product(scaled, vt[[.., 0..(k - 1), ..]]), a)
          for x <- [u, adjoint(vt)], do: assert_orthogonal(x)
          assert smallest(s) >= 0
          if k > 1, do: assert(smallest(Nx.multiply(-1, Nx.diff(s))) >= 0)
        end
      end
    end

    for type <- [:f32, :f64], n <- [1, 2, 3, 8, 33, 65, 90] do
      test "eigh of #{n} #{type}" do
        a = random({2, unquote(n), unquote(n)}, unquote(type))
        a = Nx.add(a, adjoint(a))
        {values, vectors} = Nx.LinAlg.eigh(a)
        assert_near(product(a, vectors), Nx.multiply(vectors, Nx.new_axis(values, 1)))
        assert_orthogonal(vectors)
        if unquote(n) > 1, do: assert(Nx.to_number(Nx.reduce_max(Nx.diff(Nx.abs(values)))) <= 0)
      end
    end

    # Signs and order are those of Nx's own functions.
    test "factors are those of Nx.BinaryBackend" do
      call = fn ->
        a = Nx.tensor([[2.0, -1.0, 0.5], [-3.0, 0.25, 1.0], [1.0, 4.0, -2.0], [0.5, 1.5, 2.5]])
        square = Nx.dot(Nx.transpose(a), a)
        shifted = Nx.subtract(square, Nx.multiply(9, Nx.eye(3)))
        {q, r} = Nx.LinAlg.qr(a)
        {full, wide} = Nx.LinAlg.qr(Nx.transpose(a), mode: :complete)
        {values, vectors} = Nx.LinAlg.eigh(shifted)
        {u, s, vt} = Nx.LinAlg.svd(a, full_matrices?: false)
        {left, _, right} = Nx.LinAlg.svd(Nx.transpose(a))
        inverse = Nx.LinAlg.pinv(a)
        solved = Nx.LinAlg.least_squares(a, Nx.tensor([1.0, 2.0, 3.0, 4.0]))

        norms = for ord <- [2, -2, :nuclear, :frobenius], do: Nx.LinAlg.norm(a, ord: ord)
        results = [q, r, full, wide, values, vectors, u, s, vt, left, right[0..2]]
        results ++ [inverse, solved, Nx.LinAlg.matrix_rank(a)] ++ norms
      end

      [ours, theirs] = Reference.both(call)

      for {x, y, index} <- Enum.zip([ours, theirs, 0..99]) do
        assert {x.type, x.shape} == {y.type, y.shape}
        close = Nx.all_close(Nx.backend_copy(x, Nx.BinaryBackend), y, atol: 2.0e-3, rtol: 2.0e-3)
        assert Nx.to_number(close) == 1, inspect({index, x, y})
      end
    end

    test "what is of low rank, graded or 0 has orthogonal factors" do
      column = random({12, 1})
      low = Nx.dot(column, random({1, 8}, :f32, 3))
      graded = Nx.multiply(random({12, 8}), Nx.pow(10.0, Nx.multiply(-1, Nx.iota({8}))))

      for a <- [low, graded, Nx.broadcast(0.0, {12, 8}), Nx.eye({12, 8})] do
        {u, s, vt} = Nx.LinAlg.svd(a)
        assert_near(Nx.dot(Nx.multiply(u[[.., 0..7]], s), vt), a)
        for x <- [u, vt, elem(Nx.LinAlg.qr(a, mode: :complete), 0)], do: assert_orthogonal(x)
        assert_reduced(a)
        assert_reduced(Nx.transpose(a))
        {_, vectors} = Nx.LinAlg.eigh(Nx.dot(Nx.transpose(a), a))
        assert_orthogonal(vectors)
      end

      assert Nx.to_number(Nx.LinAlg.matrix_rank(low, eps: 1.0e-6)) == 1
      assert_near(Nx.dot(Nx.dot(low, Nx.LinAlg.pinv(low, eps: 1.0e-5)), low), low, 100)
    end

    test "short columns have directions" do
      for rows <- [[[1.0, 1], [1, 1], [1, 1]], [[1.0, 0], [0, 1.0e-8]], [[0.0], [0.0]]],
          do: assert_reduced(Nx.tensor(rows, type: :f32))

      {u, s, _} = Nx.LinAlg.svd(Nx.tensor([[1.0, 0], [0, 1.0e-8]]), full_matrices?: false)
      assert Nx.to_flat_list(u) == [1.0, 0.0, 0.0, 1.0]
      # So that a pseudoinverse leaves it out.
      assert Nx.to_flat_list(s) == [1.0, 0.0]
    end

    # Their sums of squares are too large or too small for their types.
    for {type, scale} <- [f32: 1.0e-30, f32: 1.0e30, f64: 1.0e-200, f64: 1.0e200],
        n <- [2, 8, 40] do
      test "scales change nothing: #{scale} of #{n} #{type}" do
        n = unquote(n)
        scale = Nx.tensor(unquote(scale), type: unquote(type))
        a = Nx.multiply(random({n + 1, n}, unquote(type)), scale)

        for mode <- [:reduced, :complete] do
          {q, r} = Nx.LinAlg.qr(a, mode: mode)
          assert_near(product(q, r), a)
          assert_orthogonal(q)
        end

        assert_reduced(a)
        {u, _, vt} = Nx.LinAlg.svd(a)
        for x <- [u, vt], do: assert_orthogonal(x)
        square = a[0..(n - 1)]
        symmetric = Nx.add(square, Nx.transpose(square))
        {values, vectors} = Nx.LinAlg.eigh(symmetric)
        assert_near(product(symmetric, vectors), Nx.multiply(vectors, values))
        assert_orthogonal(vectors)
      end
    end

    test "what is not finite ends, and gives NaN" do
      for n <- [4, 70], bad <- [:nan, :infinity] do
        a =
          Nx.indexed_put(
            positive(random({n, n})),
            Nx.tensor([[1, 0]]),
            Nx.tensor([bad], type: :f32)
          )

        {_, _, u} = Nx.LinAlg.lu(a)
        {values, vectors} = Nx.LinAlg.eigh(a)
        {left, s, _} = Nx.LinAlg.svd(a)
        {q, _} = Nx.LinAlg.qr(a)

        for x <- [Nx.LinAlg.cholesky(a), u, values, vectors, left, s, q],
            do:
              assert(
                Nx.to_number(Nx.any(Nx.is_nan(Nx.subtract(x, x)))) == 1,
                inspect({n, bad, x})
              )
      end
    end

    test "integers, narrow floats, views and vectorized axes" do
      for type <- [:s32, :u8, :bf16, :f16, :f64] do
        call = fn ->
          a = Nx.tensor([[4, 1, 2], [1, 5, 3], [2, 3, 6]], type: type)
          b = Nx.tensor([[1, 2], [3, 4], [5, 6]], type: type)
          {p, l, u} = Nx.LinAlg.lu(Nx.reverse(a, axes: [0]))
          solved = Nx.LinAlg.triangular_solve(Nx.transpose(a), b, lower: false)

          [
            Nx.LinAlg.cholesky(a),
            p,
            l,
            u,
            solved,
            Nx.LinAlg.determinant(a),
            Nx.LinAlg.solve(a, b)
          ]
        end

        {ours, theirs} = Reference.both(call) |> List.to_tuple()

        for {x, y} <- Enum.zip(ours, theirs) do
          assert {x.type, x.shape} == {y.type, y.shape}

          close =
            Nx.all_close(Nx.backend_copy(x, Nx.BinaryBackend), y, atol: 1.0e-2, rtol: 1.0e-2)

          assert Nx.to_number(close) == 1, inspect({type, x, y})
        end
      end

      a = Nx.vectorize(positive(random({3, 4, 4})), :x)
      l = Nx.LinAlg.cholesky(a)
      assert l.vectorized_axes == [x: 3]
    end

    test "factors of one row, column or element" do
      for {fun, a} <- [
            {&Nx.LinAlg.svd(&1, full_matrices?: false), [[3, 1]]},
            {&Nx.LinAlg.svd/1, [[3], [1]]},
            {&Nx.LinAlg.pinv/1, [[3, 1]]},
            {&Nx.LinAlg.qr/1, [[3]]},
            {&Nx.LinAlg.qr/1, [[3, 1]]},
            {&Nx.LinAlg.eigh/1, [[6]]},
            {&Nx.LinAlg.eigh/1, [[Complex.new(6.0, 0)]]}
          ],
          compiler <- [Nx.Defn.Evaluator, Nx.Vulkan.Compiler],
          do: assert_same(fun, a, nil, compiler)
    end

    test "matrices of integers that are narrower than a byte" do
      for type <- [:u2, :s4],
          fun <- [
            &Nx.LinAlg.cholesky/1,
            &Nx.LinAlg.lu/1,
            &Nx.LinAlg.qr/1,
            &Nx.LinAlg.svd/1,
            &Nx.LinAlg.eigh/1,
            &Nx.LinAlg.determinant/1,
            &Nx.LinAlg.solve(&1, &1),
            &Nx.LinAlg.triangular_solve/2
          ],
          compiler <- [Nx.Defn.Evaluator, Nx.Vulkan.Compiler] do
        fun = if is_function(fun, 2), do: &fun.(Nx.tril(&1), &1), else: fun
        assert_same(fun, [[1, 0], [0, 1]], type, compiler)
      end
    end

    test "integers narrower than a byte are factorised as those of a byte" do
      for {packed, type} <- [u4: :u8, s4: :s8],
          compiler <- [Nx.Defn.Evaluator, Nx.Vulkan.Compiler] do
        {a, _} = Nx.Random.randint(Nx.Random.key(40), 0, 4, shape: {33, 40}, type: type)
        svd = Nx.Defn.jit(&Nx.LinAlg.svd(&1, full_matrices?: false), compiler: compiler)
        results = a |> Nx.as_type(packed) |> svd.() |> Tuple.to_list()

        for {x, y} <- Enum.zip(results, a |> svd.() |> Tuple.to_list()),
            do: assert(Nx.to_binary(x) == Nx.to_binary(y))
      end
    end

    # What Nx.BinaryBackend gives for the matrix.
    defp assert_same(fun, a, type, compiler) do
      call = fn backend, compiler ->
        fun = Nx.Defn.jit(fun, compiler: compiler)
        result = Nx.with_default_backend(backend, fn -> fun.(Nx.tensor(a, type: type)) end)
        Nx.Defn.Composite.flatten_list([result])
      end

      ours = call.(Nx.Vulkan.VulkanoBackend, compiler)
      theirs = call.(Nx.BinaryBackend, Nx.Defn.Evaluator)

      for {x, y} <- Enum.zip(ours, theirs) do
        assert {x.type, x.shape} == {y.type, y.shape}
        assert Nx.to_number(Nx.all_close(Nx.backend_copy(x, Nx.BinaryBackend), y)) == 1
      end
    end

    test "invert and matrix_power" do
      a = Nx.add(random({20, 20}), Nx.multiply(4, Nx.eye(20)))
      assert_near(Nx.dot(Nx.LinAlg.invert(a), a), Nx.eye(20))
      assert_near(Nx.LinAlg.matrix_power(a, -1), Nx.LinAlg.invert(a))
      singular = Nx.LinAlg.invert(Nx.tensor([[1.0, 1.0], [1.0, 1.0]]))
      assert Nx.to_flat_list(singular) == [:nan, :nan, :nan, :nan]
    end
  end
end
