if Code.ensure_loaded?(Nx) do
  defmodule Nx.Vulkan.FourierTest do
    use ExUnit.Case, async: true

    import Nx.Vulkan.Reference, only: [agree: 2]

    setup do
      Nx.default_backend(Nx.Vulkan.VulkanoBackend)
      :ok
    end

    # The sum by which a transform is defined, of numbers, in f64.
    defp sums(row, sign) do
      n = length(row)

      for k <- 0..(n - 1) do
        row
        |> Enum.with_index()
        |> Enum.reduce(Complex.new(0.0), fn {x, j}, sum ->
          angle = sign * 2 * :math.pi() * rem(j * k, n) / n
          Complex.add(sum, Complex.multiply(x, Complex.new(:math.cos(angle), :math.sin(angle))))
        end)
      end
    end

    defp near!(tensor, numbers, bound) do
      pairs = Enum.zip(Nx.to_flat_list(tensor), numbers)
      assert Nx.size(tensor) == length(numbers)
      largest = numbers |> Enum.map(&Complex.abs/1) |> Enum.max() |> max(1.0)

      for {x, y} <- pairs,
          do: assert(Complex.abs(Complex.subtract(x, y)) <= bound * largest, "#{x} is not #{y}")
    end

    defp wave(n), do: for(j <- 0..(n - 1), do: rem(j * j * 7, 23) / 4 - 2)

    test "every length is the sum that it is defined as, on the device" do
      for n <- [1, 2, 3, 8, 12, 17, 35, 97] do
        x = wave(n)

        for {type, bound} <- [f32: 1.0e-6, f64: 1.0e-14] do
          t = Nx.tensor(x, type: type)
          near!(Nx.fft(t, eps: 0), sums(x, -1), bound)
          near!(Nx.multiply(Nx.ifft(t, eps: 0), n), sums(x, 1), bound)
        end
      end
    end

    test "long rows go there and back" do
      for {n, rows} <- [{4096, 2}, {65_536, 1}, {10_007, 1}] do
        x = Nx.tensor(wave(n * rows), type: :f32) |> Nx.reshape({rows, n})
        spectrum = Nx.fft(x, eps: 0)
        near!(Nx.real(Nx.ifft(spectrum)), Nx.to_flat_list(x), 2.0e-6)
        totals = x |> Nx.sum(axes: [1]) |> Nx.to_flat_list()
        near!(spectrum[[.., 0]], totals, 1.0e-3)
        near!(Nx.irfft(Nx.rfft(x), length: n), Nx.to_flat_list(x), 2.0e-6)
      end
    end

    test "any axis of any view is cut or goes on with zeros" do
      x = Nx.iota({4, 6}, type: :f32)

      for axis <- [0, 1], length <- [2, 3, 8], op <- [:fft, :ifft] do
        agree([x], &apply(Nx, op, [&1, [axis: axis, length: length]]))
        rows = Nx.transpose(x) |> Nx.reverse(axes: [1])
        agree([rows], &apply(Nx, op, [&1, [axis: axis, length: length]]))
      end

      # Nx.BinaryBackend exchanges the axes behind the first one here.
      cube = Nx.iota({3, 2, 2}, type: :f32)
      rows = cube |> Nx.transpose(axes: [1, 2, 0]) |> Nx.fft() |> Nx.transpose(axes: [2, 0, 1])

      assert Nx.to_binary(Nx.fft(cube, axis: 0)) == Nx.to_binary(rows)
    end

    test "every type is transformed" do
      for type <- [:u8, :s16, :s64, :f16, :bf16, :f32, :f64, :c64, :c128] do
        x = Nx.tensor([[1, 2, 3, 0], [5, 1, 0, 4]], type: type)
        agree([x], &Nx.fft/1)
        agree([x], &Nx.ifft/1)
        agree([x], &Nx.fft2/1)
        agree([x], &Nx.ifft2(&1, lengths: [4, 4]))
      end
    end

    test "blocks are those of their default functions" do
      x = Nx.tensor([[1.5, -2.0, 0.25, 3.0, -1.0], [0.5, 4.0, 1.0, 0.0, 2.0]])
      half = Nx.complex(x, Nx.reverse(x))

      agree([x], &Nx.fft2(&1, lengths: [3, 6]))
      agree([half], &Nx.ifft2(&1, axes: [1, 0]))
      for length <- [2, 4, 5, 8], do: agree([x], &Nx.rfft(&1, length: length))
      for length <- [3, 4, 7, 8, 10], do: agree([half], &Nx.irfft(&1, length: length))
      agree([x], &Nx.rfft(&1, axis: 0))

      rows = Nx.vectorize(x, :rows)
      assert %{vectorized_axes: [rows: 2], shape: {3}} = spectrum = Nx.rfft(rows)
      assert Nx.to_binary(spectrum) == Nx.to_binary(Nx.rfft(x))
    end

    test "an inverse transform of narrow floats has the type that Nx's own function gives it" do
      for type <- [:bf16, :f16] do
        half = Nx.tensor([1.0, 2.0, 3.0, 4.0, 5.0], type: type)
        jitted = Nx.Defn.jit(&Nx.irfft/1, compiler: Nx.Vulkan.Compiler)
        here = for fun <- [&Nx.irfft/1, jitted], do: fun.(half)
        binary = Nx.irfft(Nx.backend_copy(half, Nx.BinaryBackend))

        for result <- here do
          assert result.type == binary.type
          near!(result, Nx.to_flat_list(binary), 1.0e-6)
        end
      end
    end

    test "nothing of it goes through Nx.BinaryBackend or the host" do
      before = Nx.Vulkan.stats().fallbacks
      x = Nx.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])

      for fun <- [&Nx.fft/1, &Nx.ifft/1, &Nx.fft2/1, &Nx.ifft2/1, &Nx.rfft/1, &Nx.irfft/1],
          do: fun.(x)

      ours = &Map.take(&1, ~w(fft ifft Nx.Block.FFT2 Nx.Block.IFFT2 Nx.Block.RFFT Nx.Block.IRFFT))
      assert ours.(Nx.Vulkan.stats().fallbacks) == ours.(before)
    end

    test "parts of at most eps are zero" do
      x = Nx.tensor([1.0, 0.001, 0.0, 0.0], type: :f64)
      assert [a, b, _, _] = Nx.to_flat_list(Nx.fft(x, eps: 0.001))
      assert {a, b} == {Complex.new(1.001, 0.0), Complex.new(1.0, 0.0)}
    end

    test "what is no transform is refused" do
      assert_raise ArgumentError, ~r/axis/, fn -> Nx.fft(Nx.tensor([1.0]), axis: 3) end
      assert_raise ArgumentError, ~r/real tensor/, fn -> Nx.rfft(Nx.tensor([Complex.new(1)])) end
    end
  end
end
