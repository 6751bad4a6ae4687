defmodule Nx.Vulkan.HMC.Leapfrog do
  @moduledoc false
  # A chain function in Elixir over `density`, which maps a list of coordinates to {log density, gradient}. What is no
  # float in either, or raises an ArithmeticError, becomes a NaN, as does all that follows from it.

  alias Nx.Vulkan.HMC.Sampler

  @nan <<0::48, 0xF8, 0x7F>>

  @doc "The result of a run over `density` that shows no progress."
  def sample!(density, positions, opts) do
    {:ok, result} = density |> chain() |> Sampler.run(positions, [progress: false] ++ opts)
    result
  end

  def chain(density) do
    fn q, p, inv_mass, step_sizes, steps ->
      bytes = div(byte_size(q), length(step_sizes))

      rows =
        for {step_size, index} <- Enum.with_index(step_sizes) do
          [q, p, inv_mass] = for part <- [q, p, inv_mass], do: values(part, index * bytes, bytes)
          walk(start(q, p, density), {density, inv_mass, step_size, div(bytes, 8)}, steps, [])
        end

      {:ok, for(part <- 0..3, do: join(rows, part)) |> List.to_tuple()}
    end
  end

  # A NaN is no float and left out here.
  defp values(binary, at, bytes),
    do: for(<<x::float-64-little <- binary_part(binary, at, bytes)>>, do: x)

  defp start([], _p, _density), do: :lost
  defp start(q, p, density), do: {q, p, density |> safe(q) |> elem(1)}

  defp join(rows, part) do
    for chain <- rows, row <- chain, into: <<>>, do: elem(row, part)
  end

  defp walk(_state, _system, 0, rows), do: Enum.reverse(rows)

  defp walk(state, {_, _, _, dims} = system, steps, rows) do
    case step(state, system) do
      {{q, p, gradient} = state, logp} ->
        row = {encode(q), encode(p), encode(gradient), encode([logp])}
        walk(state, system, steps - 1, [row | rows])

      :lost ->
        lost = :binary.copy(@nan, dims)
        walk(:lost, system, steps - 1, [{lost, lost, lost, @nan} | rows])
    end
  end

  defp step({q, p, gradient}, {density, inv_mass, step_size, _dims}) do
    p = kick(p, gradient, step_size / 2)
    q = drift(q, p, inv_mass, step_size)
    {logp, gradient} = safe(density, q)
    {{q, kick(p, gradient, step_size / 2), gradient}, logp}
  rescue
    ArithmeticError -> :lost
  end

  defp step(:lost, _system), do: :lost

  defp kick([p | ps], [g | gs], h), do: [p + h * g | kick(ps, gs, h)]
  defp kick([], [], _h), do: []

  defp drift([q | qs], [p | ps], [m | ms], h), do: [q + h * m * p | drift(qs, ps, ms, h)]
  defp drift([], [], [], _h), do: []

  defp safe(density, q) do
    density.(q)
  rescue
    ArithmeticError -> {:nan, Enum.map(q, fn _ -> :nan end)}
  end

  defp encode(list), do: for(x <- list, into: <<>>, do: value(x))

  defp value(x) when is_float(x), do: <<x::float-64-little>>
  defp value(:infinity), do: <<0::48, 0xF0, 0x7F>>
  defp value(:neg_infinity), do: <<0::48, 0xF0, 0xFF>>
  defp value(:nan), do: @nan
end
