if Code.ensure_loaded?(Nx) do
  defmodule Nx.Vulkan.DensityCase do
    @moduledoc false
    # Densities on the device, and what is to be expected of them.

    import ExUnit.Assertions
    alias Nx.Vulkan.Density

    @tolerance %{f64: 1.0e-12, f32: 2.0e-5}

    # Value and gradient on the device against those of Nx.Defn.Evaluator, at a few points.
    def same(fun, d, opts \\ []) do
      for type <- [:f64, :f32] do
        opts = Keyword.put(opts, :type, type)
        data = opts[:data]
        density = Density.new!(fun, d, opts)

        for seed <- 1..3 do
          point = point(d, type, seed)

          {value, gradient} =
            if data do
              Nx.Defn.jit_apply(&Nx.Defn.value_and_grad(&1, fn q -> fun.(q, &2) end), [
                point,
                cast(data, type)
              ])
            else
              Nx.Defn.value_and_grad(point, fun)
            end

          {got_value, got_gradient} = evaluate(density, point)
          close(got_value, Nx.to_flat_list(value), type)
          close(got_gradient, Nx.to_flat_list(gradient), type)
        end
      end
    end

    defp point(d, type, seed) do
      {list, _} =
        Enum.map_reduce(1..d, :rand.seed_s(:exsss, seed), fn _, s -> :rand.normal_s(s) end)

      Nx.tensor(list, type: type)
    end

    defp cast(data, type) do
      {data, _} =
        Nx.Defn.Composite.traverse(data, nil, fn t, acc ->
          {if(Nx.Type.float?(t.type), do: Nx.as_type(t, type), else: t), acc}
        end)

      data
    end

    def evaluate(density, point) do
      q = Nx.to_binary(point)
      ones = Nx.to_binary(Nx.broadcast(Nx.tensor(1, type: density.type), {density.d}))
      {:ok, {_, _, gradient, value}} = Density.chain(density, q, ones, ones, [0.0], 1)
      {floats(value, density.type), floats(gradient, density.type)}
    end

    def floats(binary, type), do: binary |> Nx.from_binary(type) |> Nx.to_flat_list()

    defp close(got, want, type) do
      assert length(got) == length(want)

      scale =
        want
        |> Enum.filter(&is_float/1)
        |> Enum.map(&abs/1)
        |> Enum.max(fn -> 1.0 end)
        |> max(1.0)

      for {a, b} <- Enum.zip(got, want) do
        if is_float(a) and is_float(b) do
          assert abs(a - b) <= @tolerance[type] * scale, "got #{a}, expected #{b} (#{type})"
        else
          assert a == b
        end
      end
    end

    def bin(list), do: for(x <- list, into: <<>>, do: <<x::float-64-little>>)
    def list(binary), do: for(<<x::float-64-little <- binary>>, do: x)
  end
end
