Code.require_file("support/density.exs", __DIR__)
Code.require_file("support/spirv.exs", __DIR__)

if Code.ensure_loaded?(Nx) do
  defmodule Nx.Vulkan.DensityChainTest do
    use ExUnit.Case, async: true

    @moduletag :synthesized

    import Nx.Vulkan.DensityCase
    alias Nx.Vulkan.{Density, Spirv}

    setup do
      Nx.default_backend(Nx.BinaryBackend)
      :ok
    end

    describe "chains" do
      test "every row is the state after its step, as leapfrog on the host gives it" do
        x = Nx.sin(Nx.iota({50}, type: :f64))
        scales = Nx.tensor([1.0, 20.0, 0.05], type: :f64)

        fun = fn q, x ->
          z = Nx.divide(q, scales)

          Nx.subtract(
            Nx.sum(Nx.log(Nx.add(1.5, Nx.sin(Nx.multiply(x, z[0]))))),
            Nx.sum(Nx.pow(z, 2))
          )
        end

        density = Density.new!(fun, 3, data: x)
        q = [0.3, -11.0, 0.02]
        p = [0.5, 0.02, -9.0]
        mass = [1.0, 300.0, 0.002]
        {:ok, {qs, ps, gs, ls}} = Density.chain(density, bin(q), bin(p), bin(mass), [0.05], 20)
        rows = Spirv.leapfrog(traced(&fun.(&1, x)), q, p, mass, 0.05, 20)

        for {part, at, width} <- [{qs, 0, 3}, {ps, 1, 3}, {gs, 2, 3}, {ls, 3, 1}] do
          got = part |> list() |> Enum.chunk_every(width)
          want = Enum.map(rows, &List.wrap(elem(&1, at)))

          for i <- 0..(width - 1) do
            scale = want |> Enum.map(&abs(Enum.at(&1, i))) |> Enum.max()

            for {a, b} <- Enum.zip(got, want),
                do: assert_in_delta(Enum.at(a, i), Enum.at(b, i), 1.0e-13 * scale * 10)
          end
        end
      end

      # Every coordinate has a scale of its own. Each type is compared with its own largest value over the chain.
      for type <- [:f64, :f32],
          d <- [1, 3, 256, 257, 1000],
          k <- [1, 32, 1024],
          d * k < 300_000 do
        @tag type: type, dims: d, steps: k
        test "of #{k} steps in #{d} dimensions are those of the host, row by row (#{type})", %{
          type: type,
          dims: d,
          steps: k
        } do
          scales = for i <- 1..d, do: 0.5 + rem(7 * i, 11) / 3
          data = Nx.tensor(scales, type: type)
          fun = fn q, s -> Nx.multiply(-0.5, Nx.sum(Nx.pow(Nx.divide(q, s), 2))) end
          density = Density.new!(fun, d, data: data, type: type)
          q = for {s, i} <- Enum.with_index(scales), do: single(s * :math.sin(i + 1))
          p = for {s, i} <- Enum.with_index(scales), do: single(:math.cos(3 * i) / s)
          mass = for s <- scales, do: single(s * s)
          epsilon = single(0.125 / :math.sqrt(k))
          encode = fn list -> Nx.to_binary(Nx.tensor(list, type: type)) end

          {:ok, {qs, ps, gs, ls}} =
            Density.chain(density, encode.(q), encode.(p), encode.(mass), [epsilon], k)

          squares = data |> Nx.to_flat_list() |> Enum.map(&(&1 * &1))
          rows = Spirv.leapfrog(normal(squares), q, p, mass, epsilon, k)

          for {part, at, width} <- [{qs, 0, d}, {ps, 1, d}, {gs, 2, d}, {ls, 3, 1}] do
            got = part |> floats(type) |> Enum.chunk_every(width)
            want = Enum.map(rows, &List.wrap(elem(&1, at)))
            assert length(got) == k

            largest =
              for column <- Enum.zip_with(want, & &1),
                  do: column |> Enum.map(&abs/1) |> Enum.max()

            worst =
              for {a, b} <- Enum.zip(got, want),
                  {x, y, s} <- Enum.zip([a, b, largest]),
                  reduce: 0.0 do
                worst -> max(worst, abs(x - y) / max(s, 1.0e-30))
              end

            assert worst <= %{f64: 1.0e-13, f32: 1.0e-5}[type], "output #{at}: #{worst}"
          end
        end
      end

      test "are the same bits again, whatever K and whoever runs beside them" do
        density = Density.new!(fn q -> Nx.negate(Nx.sum(Nx.pow(q, 4))) end, 5)
        q = bin([0.1, 0.2, -0.3, 0.4, 0.5])
        p = bin([1.0, -1.0, 0.5, 0.3, 0.2])
        mass = bin([1.0, 2.0, 0.5, 1.0, 3.0])
        {:ok, long} = Density.chain(density, q, p, mass, [0.1], 40)
        assert {:ok, ^long} = Density.chain(density, q, p, mass, [0.1], 40)
        {:ok, short} = Density.chain(density, q, p, mass, [0.1], 7)

        for {a, b} <- Enum.zip(Tuple.to_list(long), Tuple.to_list(short)),
            do: assert(binary_part(a, 0, byte_size(b)) == b)

        # A second chain with a step size of its own.
        {:ok, both} = Density.chain(density, q <> p, p <> q, mass <> mass, [0.1, -0.2], 7)

        for {a, b} <- Enum.zip(Tuple.to_list(both), Tuple.to_list(short)),
            do: assert(binary_part(a, 0, byte_size(b)) == b)
      end

      test "in pieces are the same bits as in one" do
        density = Density.new!(fn q -> Nx.negate(Nx.sum(Nx.cosh(q))) end, 3)
        q = bin([0.1, 0.2, -0.3, 1.0, 0.5, -0.5])
        p = bin([1.0, -1.0, 0.5, 0.2, 0.3, 0.4])
        mass = bin([1.0, 2.0, 0.5, 1.0, 1.0, 1.0])
        # A pace that is known leaves the whole to one call.
        :atomics.put(density.pace, 1, 1)
        {:ok, whole} = Density.chain(density, q, p, mass, [0.1, 0.2], 50)
        # One of which a second holds seven steps, until the first piece is measured.
        :atomics.put(density.pace, 1, 140_000_000)
        assert {:ok, ^whole} = Density.chain(density, q, p, mass, [0.1, 0.2], 50)
      end

      test "of many processes at once do not disturb each other" do
        density = Density.new!(fn q -> Nx.negate(Nx.sum(Nx.pow(q, 2))) end, 4)
        masses = bin([1.0, 1.0, 1.0, 1.0])

        run = fn i ->
          Density.chain(density, bin([i * 0.1, 0.2, 0.3, 0.4]), masses, masses, [0.05], 20)
        end

        alone = for i <- 1..64, do: run.(i)

        together =
          1..64
          |> Task.async_stream(run, max_concurrency: 64, timeout: :infinity)
          |> Enum.map(&elem(&1, 1))

        assert alone == together
      end

      test "with positions beyond shared memory" do
        density = Density.new!(fn q -> Nx.multiply(-0.5, Nx.sum(Nx.pow(q, 2))) end, 10_000)
        q = bin(for i <- 1..10_000, do: i / 1000)
        ones = bin(List.duplicate(1.0, 10_000))

        {:ok, {_, _, gradient, [logp]}} =
          with {:ok, {a, b, c, d}} <- Density.chain(density, q, ones, ones, [0.0], 1),
               do: {:ok, {a, b, c, list(d)}}

        assert list(gradient) == for(i <- 1..10_000, do: -i / 1000)
        assert_in_delta logp, -0.5 * Enum.sum(for i <- 1..10_000, do: (i / 1000) ** 2), 1.0e-6
      end

      test "with thousands of coordinates" do
        density = Density.new!(fn q -> Nx.multiply(-0.5, Nx.sum(Nx.pow(q, 2))) end, 1000)
        q = bin(for i <- 1..1000, do: i / 1000)
        ones = bin(List.duplicate(1.0, 1000))
        {:ok, {_, _, gradient, _}} = Density.chain(density, q, ones, ones, [0.0], 1)
        assert list(gradient) == for(i <- 1..1000, do: -i / 1000)
      end
    end

    # Densities for leapfrog on the host.
    defp traced(fun) do
      fn q ->
        {value, gradient} = Nx.Defn.value_and_grad(Nx.tensor(q, type: :f64), fun)
        {Nx.to_number(value), Nx.to_flat_list(gradient)}
      end
    end

    defp normal(squares) do
      fn q ->
        {Enum.sum(Enum.zip_with(q, squares, fn q, s -> -0.5 * q * q / s end)),
         Enum.zip_with(q, squares, fn q, s -> -q / s end)}
      end
    end

    # A number that both types hold.
    defp single(x) do
      <<x::float-32>> = <<x::float-32>>
      x
    end
  end
end
