Code.require_file("support/density.exs", __DIR__)

if Code.ensure_loaded?(Nx) do
  defmodule Nx.Vulkan.DensityTextTest do
    use ExUnit.Case, async: true

    import Nx.Vulkan.DensityCase
    alias Nx.Vulkan.Density

    setup do
      Nx.default_backend(Nx.BinaryBackend)
      :ok
    end

    # Each of these grew twofold or more with every link.
    describe "the text stays short" do
      defp text(fun, d, opts \\ []) do
        {:ok, source} = Density.source(fun, d, opts)
        source.glsl
      end

      test "of a chain of reshapes and transposes" do
        fun = fn q ->
          chain(
            20,
            q,
            &(&1
              |> Nx.reshape({4, 5, 6})
              |> Nx.transpose()
              |> Nx.reshape({5, 24})
              |> Nx.transpose())
          )
          |> Nx.flatten()
          |> Nx.multiply(Nx.iota({120}))
          |> Nx.sum()
        end

        assert byte_size(text(fun, 120)) < 22_000
        same(fun, 120)
      end

      test "of sums of neighbours of neighbours" do
        fun = fn q ->
          chain(20, q, fn x ->
            padded = Nx.pad(x, 0.0, [{1, 1, 0}])
            Nx.divide(Nx.add(Nx.slice(padded, [0], [100]), Nx.slice(padded, [2], [100])), 2)
          end)
          |> Nx.multiply(Nx.iota({100}))
          |> Nx.sum()
        end

        assert byte_size(text(fun, 100)) < 150_000
      end

      test "of 30 products with a matrix, and of 60 nested functions" do
        matrix = Nx.divide(Nx.sin(Nx.iota({16, 16}, type: :f64)), 16)
        products = fn q, m -> Nx.sum(chain(30, q, &Nx.tanh(Nx.dot(m, &1)))) end
        assert byte_size(text(products, 16, data: matrix)) < 250_000
        nested = fn q -> Nx.sum(chain(60, q, &Nx.add(Nx.multiply(Nx.sin(&1), &1), &1))) end
        assert byte_size(text(nested, 3)) < 100_000
      end

      test "of a large tensor of the closure, which is in the data once" do
        x = Nx.iota({100_000}, type: :f32)
        fun = fn q -> Nx.sum(Nx.add(Nx.multiply(q[0], x), Nx.multiply(q[1], x))) end
        {:ok, source} = Density.source(fun, 2)
        assert byte_size(source.data) == 800_000
        assert byte_size(source.glsl) - byte_size(Nx.Vulkan.Density.Row.functions()) < 5_000
      end

      defp chain(n, x, fun), do: Enum.reduce(1..n, x, fn _, x -> fun.(x) end)
    end

    test "the text is the same in every VM" do
      program = """
      x = Nx.sin(Nx.iota({30, 9}, type: :f64))
      fun = fn q ->
        y = Nx.dot(x, q)
        Nx.add(Nx.sum(Nx.log1p(Nx.exp(y))), Nx.logsumexp(Nx.multiply(Nx.tanh(y), Nx.variance(y))))
      end
      {:ok, source} = Nx.Vulkan.Density.source(fun, 9)
      """

      path = Enum.flat_map(:code.get_path(), &["-pa", to_string(&1)])
      start = "{:ok, _} = Application.ensure_all_started(:nx)\n"
      print = start <> program <> "IO.write([\"text:\", Base.encode64(source.glsl)])"
      {output, 0} = System.cmd("elixir", path ++ ["-e", print], stderr_to_stdout: true)
      {source, _} = Code.eval_string(program <> "source")
      assert output |> String.split("text:") |> List.last() |> Base.decode64!() == source.glsl
    end

    describe "the regime model (a reconstruction)" do
      Code.require_file("../examples/models/regime.exs", __DIR__)

      # In 40 digits, hyperparameters exact in f64.
      @logp -217.7297991168506
      @gradient [-0.026268213464535964, -0.026268213464535964, -0.2, -492.8570189943978] ++
                  [
                    -68.78551640710967,
                    -65.26952305601847,
                    -68.78172603909096,
                    -0.049958374957880025
                  ]

      test "has its published density and gradient, in a short shader" do
        returns = Regime.returns()
        density = Density.new!(&Regime.log_density/2, 8, data: returns)
        assert byte_size(density.glsl) < 20_000
        {[logp], gradient} = evaluate(density, Nx.broadcast(Nx.tensor(0.05, type: :f64), {8}))
        assert_in_delta logp / @logp, 1, 1.0e-12
        for {a, b} <- Enum.zip(gradient, @gradient), do: assert_in_delta(a / b, 1, 1.0e-12)
      end

      test "runs from a file too, by the contract of NativeV" do
        returns = Regime.returns()
        {:ok, source} = Density.source(&Regime.log_density/2, 8, data: returns, layout: :native)

        {:ok, path} =
          Nx.Vulkan.NativeV.spirv_file(Nx.Vulkan.Device.fetch!(:auto), source.glsl, false)

        density = Density.new!(&Regime.log_density/2, 8, data: returns)
        q = bin(List.duplicate(0.05, 8))
        p = bin(for i <- 0..7, do: -1 + 2 * i / 7)
        masses = bin(List.duplicate(1.0, 8))
        {:ok, want} = Density.chain(density, q, p, masses, [1.0e-3], 32)
        push = <<32::32-little, 200::32-little, 8::32-little, 0::32, 1.0e-3::float-64-little>>
        extras = source.data <> masses
        {:ok, got} = Nx.Vulkan.NativeV.leapfrog_chain_synth_f64(q, p, extras, push, 32, path)

        for {a, b} <- Enum.zip(Tuple.to_list(got), Tuple.to_list(want)),
            {x, y} <- Enum.zip(list(a), list(b)),
            do: assert_in_delta(x, y, 1.0e-11 * max(1, abs(y)))
      end

      # Written out where they are used, each would be there once for every use of the one before.
      test "small reductions with many results that feed each other are computed once" do
        twice = fn q ->
          t = Nx.outer(q, q)
          u = Nx.outer(t, Nx.dot(t, q))
          Nx.sum(Nx.multiply(u, Nx.cos(u)))
        end

        for d <- [8, 16] do
          density = Density.new!(twice, d)
          assert byte_size(density.glsl) < 50_000

          q = for i <- 1..d, do: 0.7 * :math.sin(i)
          ones = bin(List.duplicate(1.0, d))

          {:ok, {_, _, gradient, value}} =
            Density.chain(density, bin(q), ones, ones, [0.0], 1)

          {want, wanted} = Nx.Defn.value_and_grad(Nx.tensor(q, type: :f64), twice)
          assert_in_delta hd(list(value)), Nx.to_number(want), 1.0e-11

          for {x, y} <- Enum.zip(list(gradient), Nx.to_list(wanted)),
              do: assert_in_delta(x, y, 1.0e-10)
        end
      end

      # Measured in a warm VM: 17 ms and 3 ms.
      test "is made in good time, and faster the second time" do
        returns = Regime.returns()

        time = fn scale ->
          fun = fn q, r -> Nx.multiply(Regime.log_density(q, r), Nx.tensor(scale, type: :f64)) end
          {us, {:ok, _}} = :timer.tc(fn -> Density.new(fun, 8, data: returns) end)
          us
        end

        time.(2.0)
        # In turns, since other tests run beside this one.
        times = for _ <- 1..7, do: {time.(1.0 + :rand.uniform()), time.(2.0)}
        {cold, cached} = Enum.unzip(times)
        {cold, cached} = {Enum.min(cold), Enum.min(cached)}

        IO.puts(
          "regime model: synthesis #{div(cold, 1000)} ms cold, #{Float.round(cached / 1000, 1)} ms cached"
        )

        assert cached < cold
        # Far above the figures for the same reason.
        assert cold < 5_000_000 and cached < 500_000
      end
    end
  end
end
