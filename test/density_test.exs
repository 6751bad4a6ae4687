Code.require_file("support/density.exs", __DIR__)

if Code.ensure_loaded?(Nx) do
  defmodule Nx.Vulkan.DensityTest do
    use ExUnit.Case, async: true

    @moduletag :synthesized

    import Nx.Vulkan.DensityCase
    alias Nx.Vulkan.Density

    setup do
      Nx.default_backend(Nx.BinaryBackend)
      :ok
    end

    describe "value and gradient are those of Nx" do
      test "for elementary functions" do
        for f <- ~w(exp expm1 sigmoid cos sin tan cosh sinh tanh asinh atan erf erfc cbrt abs)a do
          same(fn q -> q |> Nx.multiply(0.3) |> then(&apply(Nx, f, [&1])) |> Nx.sum() end, 3)
        end

        for f <- ~w(log log1p sqrt rsqrt)a do
          same(
            fn q -> q |> Nx.pow(2) |> Nx.add(0.5) |> then(&apply(Nx, f, [&1])) |> Nx.sum() end,
            3
          )
        end

        for f <- ~w(acos asin atanh erf_inv)a do
          same(
            fn q ->
              q |> Nx.tanh() |> Nx.multiply(0.8) |> then(&apply(Nx, f, [&1])) |> Nx.sum()
            end,
            3
          )
        end
      end

      test "for arithmetic, comparisons and choices" do
        same(
          fn q ->
            a = Nx.slice(q, [0], [2])
            b = Nx.slice(q, [2], [2])

            [
              Nx.divide(a, Nx.add(Nx.abs(b), 1)),
              Nx.pow(Nx.add(Nx.abs(a), 0.1), b),
              Nx.atan2(a, b),
              Nx.max(a, b),
              Nx.min(a, 0.2),
              Nx.clip(b, -0.5, 0.5),
              Nx.select(Nx.greater(a, b), Nx.exp(a), Nx.multiply(b, 3)),
              Nx.select(Nx.logical_and(Nx.less(a, 0), Nx.not_equal(b, 0)), a, b),
              Nx.multiply(Nx.less_equal(a, b), a),
              Nx.remainder(a, 0.7),
              Nx.floor(Nx.multiply(a, 3)),
              Nx.sign(b)
            ]
            |> Enum.map(&Nx.sum/1)
            |> Enum.reduce(&Nx.add/2)
          end,
          4
        )
      end

      test "for reductions of every size" do
        for n <- [3, 16, 17, 200] do
          x = Nx.iota({n}, type: :f64) |> Nx.divide(n) |> Nx.subtract(0.3)

          same(
            fn q, x ->
              y = Nx.add(Nx.multiply(q[0], x), q[1])
              z = Nx.stack([y, Nx.multiply(y, q[2]), Nx.cos(y)])

              [
                Nx.sum(Nx.exp(Nx.negate(Nx.pow(y, 2)))),
                Nx.reduce_max(y),
                Nx.reduce_min(Nx.sin(y)),
                Nx.log(Nx.abs(Nx.product(Nx.add(1, Nx.divide(y, n))))),
                Nx.sum(Nx.logsumexp(z, axes: [0])),
                Nx.mean(Nx.sum(z, axes: [1])),
                Nx.variance(y)
              ]
              |> Enum.reduce(&Nx.add/2)
            end,
            3,
            data: x
          )
        end
      end

      test "for products of matrices, of every size" do
        for {n, d} <- [{5, 3}, {40, 20}, {200, 8}, {30, 70}] do
          key = Nx.iota({n, d}, type: :f64)
          x = Nx.sin(Nx.multiply(key, 1.7))
          y = Nx.greater(Nx.cos(Nx.iota({n})), 0)

          same(
            fn q, {x, y} ->
              eta = Nx.dot(x, q)
              bernoulli = Nx.subtract(Nx.multiply(y, eta), Nx.log1p(Nx.exp(eta)))
              Nx.subtract(Nx.sum(bernoulli), Nx.multiply(0.5, Nx.dot(q, q)))
            end,
            d,
            data: {x, y}
          )
        end
      end

      test "for a matrix of coordinates" do
        same(
          fn q ->
            m = Nx.reshape(q, {4, 5})
            product = Nx.dot(m, Nx.transpose(m))

            Nx.sum(Nx.tanh(Nx.add(product, Nx.eye(4))))
            |> Nx.add(Nx.sum(Nx.reverse(m, axes: [1])[0]))
          end,
          20
        )
      end

      test "for a matrix product whose result is large" do
        same(
          fn q ->
            m = Nx.reshape(q, {12, 20})
            Nx.sum(Nx.cos(Nx.dot(m, Nx.transpose(Nx.sin(m)))))
          end,
          240
        )
      end

      test "for groups picked by index" do
        group = Nx.remainder(Nx.iota({60}), 7)
        y = Nx.sin(Nx.iota({60}, type: :f64))

        same(
          fn q, %{group: group, y: y} ->
            theta = Nx.slice(q, [1], [7]) |> Nx.add(Nx.slice(q, [-3], [7]))
            residual = Nx.subtract(y, Nx.take(theta, group))
            Nx.subtract(Nx.negate(Nx.sum(Nx.pow(residual, 2))), Nx.exp(q[0]))
          end,
          8,
          data: %{group: group, y: y}
        )
      end

      test "for more groups than fit in variables" do
        group = Nx.remainder(Nx.multiply(Nx.iota({300}), 7), 90)
        y = Nx.cos(Nx.iota({300}, type: :f64))

        same(
          fn q, {group, y} ->
            theta = Nx.exp(Nx.slice(q, [0], [90]))
            Nx.sum(Nx.multiply(y, Nx.log1p(Nx.take(theta, group))))
          end,
          90,
          data: {group, y}
        )
      end

      test "for pieces put together" do
        same(
          fn q ->
            padded = Nx.pad(Nx.slice(q, [1], [3]), 0.5, [{2, 1, 0}])
            put = Nx.put_slice(padded, [1], Nx.exp(Nx.slice(q, [0], [2])))
            both = Nx.concatenate([put, Nx.multiply(q, 2), padded])
            stacked = Nx.stack([both, Nx.reverse(both)], axis: 1)
            Nx.sum(Nx.multiply(stacked, Nx.iota({17, 2}, axis: 0)))
          end,
          5
        )
      end

      test "for pieces longer than what is written out" do
        same(
          fn q ->
            a = Nx.slice(q, [0], [50])
            b = Nx.slice(q, [50], [50])
            both = Nx.concatenate([Nx.sin(a), Nx.multiply(a, b)])
            padded = Nx.pad(both, 1.0, [{3, 4, 0}])

            Nx.sum(Nx.log1p(Nx.pow(padded, 2)))
            |> Nx.add(Nx.sum(Nx.cumulative_sum(Nx.slice(q, [0], [5]))))
          end,
          100
        )
      end

      test "for constants of the closure" do
        weights = Nx.tensor([0.1, -0.7, 2.5, 0.3], type: :f64)
        same(fn q -> Nx.sum(Nx.multiply(Nx.cos(q), Nx.as_type(weights, q.type))) end, 4)
      end

      test "for sums larger than shared memory" do
        x = Nx.sin(Nx.iota({3000}, type: :f64))

        same(
          fn q, x ->
            m = Nx.outer(q, x)
            Nx.sum(Nx.divide(Nx.pow(Nx.sum(m, axes: [0]), 2), 3000))
          end,
          20,
          data: x
        )
      end
    end

    describe "integers" do
      test "narrow ones wrap as those of Nx" do
        x = Nx.tensor([0, 200, 255], type: :u8)
        y = Nx.tensor([-128, 100, 3], type: :s8)

        same(
          fn q, {x, y} ->
            [
              Nx.subtract(x, 1),
              Nx.add(x, 100),
              Nx.negate(x),
              Nx.multiply(y, 2),
              Nx.abs(y),
              Nx.dot(x, x)
            ]
            |> Enum.map(&Nx.sum(Nx.as_type(&1, q.type)))
            |> Enum.reduce(&Nx.add/2)
            |> Nx.multiply(q[0])
          end,
          1,
          data: {x, y}
        )
      end

      test "have a least and a greatest, whatever their signs" do
        x = Nx.subtract(Nx.iota({40}), 100)

        same(
          fn q, x ->
            Nx.add(Nx.multiply(q[0], Nx.reduce_max(x)), Nx.reduce_min(Nx.negate(x)))
          end,
          1,
          data: x
        )
      end

      test "that do not fit are refused" do
        fun = fn q, x -> Nx.sum(Nx.multiply(q, x)) end

        assert_raise ArgumentError, ~r/which f32 holds, got: 16777217 in s32\[1\]/, fn ->
          Density.new!(fun, 1, data: Nx.tensor([16_777_217]), type: :f32)
        end

        assert_raise ArgumentError,
                     ~r/an int of 32 bits holds, got: 4294967296 in s64\[1\]/,
                     fn ->
                       Density.new!(fun, 1, data: Nx.tensor([4_294_967_296], type: :s64))
                     end
      end
    end

    defmodule Branches do
      import Nx.Defn

      defn logp(q) do
        cond do
          q[0] > 1 -> -Nx.sum(q * q)
          q[0] > 0 -> Nx.sum(Nx.sin(q))
          true -> q[1] * 2
        end
      end
    end

    test "cond chooses" do
      same(&Branches.logp/1, 3)
    end

    describe "errors" do
      test "a density that gives no scalar" do
        assert_raise ArgumentError,
                     ~r/expected a log density that gives a scalar, got: one of shape \{3\}/,
                     fn ->
                       Density.new!(fn q -> Nx.exp(q) end, 3)
                     end
      end

      test "a density that is vectorized, or complex" do
        assert_raise ArgumentError, ~r/gives a scalar, got: one of shape \{2\}/, fn ->
          Density.new!(fn q -> Nx.sum(Nx.vectorize(Nx.reshape(q, {2, 2}), :x)) end, 4)
        end

        assert_raise ArgumentError, ~r/no shader computes .* \(c64/, fn ->
          Density.new!(fn q -> Nx.sum(Nx.real(Nx.multiply(q, Complex.new(0, 1)))) end, 2,
            type: :f32
          )
        end
      end

      test "an op that no shader has is named" do
        assert_raise ArgumentError,
                     ~r/no shader computes sort \(f64\[3\]\).*method: :per_op/,
                     fn ->
                       Density.new!(fn q -> Nx.sum(Nx.sort(q)) end, 3)
                     end

        assert_raise ArgumentError, ~r/no shader computes while/, fn ->
          Density.new!(fn q -> Nx.sum(Nx.LinAlg.svd(Nx.reshape(q, {2, 2})) |> elem(1)) end, 4)
        end
      end

      test "arguments of the wrong kind" do
        sum = &Nx.sum/1

        assert_raise ArgumentError, ~r/number of coordinates from 1 to 16384, got: 0/, fn ->
          Density.new!(sum, 0)
        end

        assert_raise ArgumentError, ~r/function of 2 argument/, fn ->
          Density.new!(sum, 1, data: Nx.tensor(1))
        end

        assert_raise ArgumentError, ~r/:type to be :f32 or :f64, got: :s32/, fn ->
          Density.new!(sum, 1, type: :s32)
        end

        assert_raise ArgumentError, ~r/:data of tensors or containers of them, got: :foo/, fn ->
          Density.new!(fn q, _ -> Nx.sum(q) end, 1, data: :foo)
        end

        density = Density.new!(sum, 2)

        assert_raise ArgumentError,
                     ~r/expected q to be a binary of 1 chains of 2 coordinates in 16 bytes, got: 8/,
                     fn ->
                       Density.chain(density, <<0::64>>, <<0::128>>, <<0::128>>, [0.1], 1)
                     end

        for {q, sizes, wrong} <- [
              {[0.0, 0.0], [0.1], ~r/expected q to be a binary of .*, got: \[0.0, 0.0\]/},
              {<<0::128>>, 0.1, ~r/expected step_sizes to be a list of .*, got: 0.1/},
              {<<0::128>>, [:x], ~r/expected step_sizes to be a list of .*, got: \[:x\]/}
            ] do
          assert_raise ArgumentError, wrong, fn ->
            Density.chain(density, q, <<0::128>>, <<0::128>>, sizes, 1)
          end
        end

        assert_raise ArgumentError, ~r/at least one step/, fn ->
          Density.chain(density, <<0::128>>, <<0::128>>, <<0::128>>, [0.1], 0)
        end
      end

      test "NaN is a result" do
        density = Density.new!(fn q -> Nx.log(q[0]) end, 1)
        one = bin([1.0])
        {:ok, {_, _, _, value}} = Density.chain(density, bin([-1.0]), one, one, [0.0], 1)
        assert floats(value, :f64) == [:nan]
      end

      # By the rules of Nx: half away from zero, and a NaN is one by its bits.
      test "halves are rounded and NaN is told as the ops of the device do" do
        value = fn fun, at ->
          density = Density.new!(fn q -> fun.(q[0]) end, 1)
          one = bin([1.0])
          {:ok, {_, _, _, value}} = Density.chain(density, bin([at]), one, one, [0.0], 1)
          hd(floats(value, :f64))
        end

        below_half = 0.49999999999999994

        for {x, rounded} <- [{below_half, 0.0}, {-below_half, 0.0}, {0.5, 1.0}, {-2.5, -3.0}],
            do: assert(value.(&Nx.round(Nx.Defn.Kernel.stop_grad(&1)), x) == rounded)

        is_nan = fn q ->
          Nx.select(Nx.is_nan(Nx.sqrt(q)), 7.0, 5.0) |> Nx.add(Nx.multiply(q, 0))
        end

        assert value.(is_nan, -1.0) == 7.0
        assert value.(is_nan, 4.0) == 5.0
        assert value.(&Nx.max(Nx.log(&1), 1.0), -1.0) == :nan
      end

      test "a chain longer than memory is refused and nothing is lost" do
        density = Density.new!(&Nx.sum/1, 1)
        one = bin([1.0])

        assert {:error, %Nx.Vulkan.Error{}} =
                 Density.chain(density, one, one, one, [0.1], 0xFFFFFFFF)

        assert {:ok, _} = Density.chain(density, one, one, one, [0.1], 1)
      end
    end
  end
end
