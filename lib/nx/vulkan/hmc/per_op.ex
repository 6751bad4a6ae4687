if Code.ensure_loaded?(Nx) do
  defmodule Nx.Vulkan.HMC.PerOp do
    @moduledoc false
    # A chain function that evaluates the density op by op, for what no shader computes.

    alias Nx.Vulkan.HMC.Floats

    def chain(fun, d, type, data) do
      evaluate =
        if data == nil,
          do: Nx.Defn.jit(&Nx.Defn.value_and_grad(&1, fun), compiler: Nx.Defn.Evaluator),
          else:
            Nx.Defn.jit(&Nx.Defn.value_and_grad(&1, fn q -> fun.(q, &2) end),
              compiler: Nx.Defn.Evaluator
            )

      at = fn q ->
        q = q |> Nx.from_binary(:f64) |> Nx.as_type(type)
        {value, gradient} = if data == nil, do: evaluate.(q), else: evaluate.(q, data)
        scalar!(value)
        {list(value), list(gradient)}
      end

      fn q, p, masses, step_sizes, k ->
        rows =
          for {epsilon, chain} <- Enum.with_index(step_sizes) do
            [q, p, masses] = for all <- [q, p, masses], do: binary_part(all, chain * d * 8, d * 8)
            run(at, q, Floats.read(p), Floats.read(masses), epsilon, k)
          end

        {qs, ps, gs, logps} = rows |> Enum.concat() |> unzip()
        {:ok, {join(qs), join(ps), join(gs), join(logps)}}
      end
    end

    defp run(at, q, p, masses, epsilon, k) do
      {_, g} = at.(q)

      {rows, _} =
        Enum.map_reduce(1..k, {Floats.read(q), p, g}, fn _, {q, p, g} ->
          half = kick(p, g, epsilon)

          q =
            Enum.zip_with([q, masses, half], fn [q, m, p] ->
              plus(q, times(epsilon, times(m, p)))
            end)

          {logp, g} = at.(encode(q))
          p = kick(half, g, epsilon)
          {{encode(q), encode(p), encode(g), encode(logp)}, {q, p, g}}
        end)

      rows
    end

    defp kick(p, g, epsilon), do: Enum.zip_with(p, g, &plus(&1, times(0.5 * epsilon, &2)))

    # Numbers of Erlang are finite; what is not is lost for good, as it would be by the next step.
    defp plus(a, b) when is_number(a) and is_number(b), do: finite(fn -> a + b end)
    defp plus(_, _), do: :nan
    defp times(a, b) when is_number(a) and is_number(b), do: finite(fn -> a * b end)
    defp times(_, _), do: :nan

    defp finite(fun) do
      fun.()
    rescue
      ArithmeticError -> :nan
    end

    defp list(tensor), do: tensor |> Nx.as_type(:f64) |> Nx.to_flat_list()

    defp encode(list), do: for(x <- list, into: <<>>, do: float(x))
    defp float(x) when is_number(x), do: <<x::float-64-little>>
    defp float(_), do: <<0::48, 0xF8, 0x7F>>

    defp join(parts), do: IO.iodata_to_binary(parts)

    defp unzip(rows) do
      {for({q, _, _, _} <- rows, do: q), for({_, p, _, _} <- rows, do: p),
       for({_, _, g, _} <- rows, do: g), for({_, _, _, l} <- rows, do: l)}
    end

    defp scalar!(%{shape: {}}), do: :ok

    defp scalar!(%{shape: shape}),
      do:
        raise(
          ArgumentError,
          "expected a log density that gives a scalar, got: one of shape #{inspect(shape)}"
        )
  end
end
