if Code.ensure_loaded?(Nx) do
  defmodule Nx.Vulkan.ComplexTest do
    # c64 on the device, against Nx.BinaryBackend. With fallback: :error nothing may leave the device.
    use ExUnit.Case, async: false

    import Nx.Vulkan.Reference, only: [agree: 2, same: 2]

    alias Nx.Vulkan.VulkanoBackend, as: V

    setup do
      Nx.default_backend(V)
      Application.put_env(:nx_vulkan, :fallback, :error)
      on_exit(fn -> Application.delete_env(:nx_vulkan, :fallback) end)
    end

    defp binary(values, type), do: Nx.tensor(values, type: type, backend: Nx.BinaryBackend)

    defp z,
      do:
        binary(
          [
            [Complex.new(1, -2), Complex.new(0.5, 3)],
            [Complex.new(-4, 0), Complex.new(0, -0.25)]
          ],
          :c64
        )

    defp w,
      do:
        binary(
          [[Complex.new(2, 1), Complex.new(0.5, 3)], [Complex.new(-1, 8), Complex.new(0, 0.25)]],
          :c64
        )

    test "predicates choose numbers of any type" do
      for {x, y, type} <- [{1, 2, :s32}, {1.5, 2, :f32}, {3, 4, :u8}, {0.5, -1, :f64}] do
        [x, y] = for n <- [x, y], do: binary(n, type)
        same([z(), x, y], &Nx.select/3)

        # Nx.BinaryBackend counts the complex 0 as true.
        zero = Nx.backend_copy(binary(Complex.new(0, 0), :c64), V)
        assert Nx.to_number(Nx.select(zero, x, y)) == Nx.to_number(y)
      end
    end

    test "sums, differences and products" do
      for op <- [:add, :subtract, :multiply] do
        same([z(), w()], &apply(Nx, op, [&1, &2]))
        same([z(), Nx.transpose(w())], &apply(Nx, op, [&1, &2]))
        same([z(), binary([3, -7], :s32)], &apply(Nx, op, [&1, &2]))
        same([binary([1.5, -2], :f32), z()], &apply(Nx, op, [&1, &2]))
        same([z()], &apply(Nx, op, [&1, 2]))
        same([z()], &apply(Nx, op, [Complex.new(0, 1), &1]))
      end
    end

    test "conversion keeps the real part, and makes an imaginary part of 0" do
      for type <- [:u8, :s16, :s32, :s64, :u64, :f16, :bf16, :f32, :f64] do
        same([binary([1, 0, 7], type)], &Nx.as_type(&1, :c64))
        same([binary([Complex.new(3, -2), Complex.new(0, 5)], :c64)], &Nx.as_type(&1, type))
      end
    end

    test "equality is of both parts" do
      for op <- [:equal, :not_equal] do
        same([z(), w()], &apply(Nx, op, [&1, &2]))
        same([z(), binary([[1, 2], [-4, 0]], :s32)], &apply(Nx, op, [&1, &2]))
        same([z()], &apply(Nx, op, [&1, -4]))

        same(
          [binary([Complex.new(16_777_216, 0)], :c64), binary([16_777_217], :s32)],
          &apply(Nx, op, [&1, &2])
        )
      end
    end

    test "sums along axes and of large tensors" do
      same([z()], &Nx.sum/1)
      same([z()], &Nx.sum(&1, axes: [0]))
      same([z()], &Nx.sum(&1, axes: [1], keep_axes: true))

      # Whole numbers, so that every order of summation gives the same.
      large =
        Nx.with_default_backend(Nx.BinaryBackend, fn ->
          Nx.iota({2, 3000, 7}, type: :f32) |> Nx.remainder(5) |> Nx.multiply(Complex.new(1, -2))
        end)

      for axes <- [[0], [1], [0, 1, 2]], do: same([large], &Nx.sum(&1, axes: axes))
    end

    test "parts, angle and magnitude" do
      for op <- [:real, :imag, :conjugate, :phase, :abs], do: agree([z()], &apply(Nx, op, [&1]))
    end
  end
end
