if Code.ensure_loaded?(Nx) do
  defmodule Nx.Vulkan.LoopGradientsTest do
    # Nx gives gradients of loops the types of what the loops begin with.
    use ExUnit.Case, async: true

    import Nx.Defn

    alias Nx.Vulkan.{Compiler, VulkanoBackend}

    setup do
      Nx.default_backend(VulkanoBackend)
      :ok
    end

    # Nx says that the gradient is f32, whatever the body's products are.
    defn mixed(x, y, n) do
      grad(x, fn x ->
        {_, x, _, _} =
          while {i = 0, x, y, n}, i < n do
            {i + 1, Nx.as_type(x * y, :f32), y, n}
          end

        Nx.sum(x)
      end)
    end

    defn mixed_counted(x, y) do
      grad(x, fn x ->
        {_, x, _} =
          while {i = 0, x, y}, i < 2 do
            {i + 1, Nx.as_type(x * y, :f32), y}
          end

        Nx.sum(x)
      end)
    end

    defn(negated(x, y, n),
      do: {-mixed(x, y, n), mixed(x, y, n), -mixed_counted(x, y), mixed_counted(x, y)}
    )

    # Nx would have the gradient be real.
    defn turning(x, y) do
      grad(x, fn x ->
        {_, z, _} =
          while {i = 0, z = x * Nx.Constants.i(), y}, i < 2 do
            {i + 1, z * y, y}
          end

        z |> Nx.real() |> Nx.sum()
      end)
    end

    test "gradients of loops of several types have the type that Nx says" do
      [x, y] = [Nx.tensor([0.1, 0.2, -0.4]), Nx.tensor([0.5, -0.25, 2.0], type: :f64)]
      args = [x, y, Nx.tensor(2)]

      results = apply(Nx.Defn.compile(&negated/3, args, compiler: Compiler), args)

      for {result, sign} <- Enum.zip(Tuple.to_list(results), [-1, 1, -1, 1]),
          do: assert_square(result, sign)

      # The evaluator computes in the types that the values have.
      for {fun, args} <- [{&mixed/3, args}, {&mixed_counted/2, Enum.take(args, 2)}],
          do: fun |> Nx.Defn.jit_apply(args, compiler: Nx.Defn.Evaluator) |> assert_square(1)
    end

    # Of y, as f32.
    defp assert_square(result, sign) do
      assert result.type == {:f, 32}
      assert Nx.to_flat_list(result) == Enum.map([0.25, 0.0625, 4.0], &(&1 * sign))
      assert Nx.to_flat_list(Nx.add(result, 0.0)) == Nx.to_flat_list(result)
    end

    test "gradients of complex loops are as with the evaluator, or it runs them" do
      args = [Nx.tensor([0.1, 0.2]), Nx.tensor([Complex.new(1.0, 2.0), Complex.new(0.5, -1.0)])]
      expected = Nx.Defn.jit_apply(&turning/2, args, compiler: Nx.Defn.Evaluator)
      got = apply(Nx.Defn.compile(&turning/2, args, compiler: Compiler), args)
      assert got.type == expected.type
      assert Nx.to_number(Nx.all_close(got, expected)) == 1
    end
  end
end
