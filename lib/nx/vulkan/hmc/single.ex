defmodule Nx.Vulkan.HMC.Single do
  @moduledoc """
  Lets the sampler run over a chain function in f32, for devices without f64.

  Positions and momenta are rounded on their way in; energies are still summed in f64.
  """

  @nan32 <<0::16, 0xC0, 0x7F>>
  @nan64 <<0::48, 0xF8, 0x7F>>
  @largest 3.4e38

  @doc "The chain function of `Nx.Vulkan.HMC.Sampler.run/3` over one whose binaries hold little-endian f32 values."
  def chain(chain) when is_function(chain, 5) do
    fn q, p, inv_mass, step_sizes, steps ->
      with {:ok, {qs, ps, _gradients, logps}} <-
             chain.(narrow(q), narrow(p), narrow(inv_mass), step_sizes, steps),
           do: {:ok, {widen(qs), widen(ps), nil, widen(logps)}}
    end
  end

  defp narrow(binary), do: narrow(binary, <<>>)

  defp narrow(<<x::float-64-little, rest::binary>>, done) when x < @largest and x > -@largest,
    do: narrow(rest, <<done::binary, x::float-32-little>>)

  defp narrow(<<_::64, rest::binary>>, done), do: narrow(rest, <<done::binary, @nan32::binary>>)
  defp narrow(<<>>, done), do: done

  # Infinities become NaNs, which mean the same to the sampler.
  defp widen(binary), do: widen(binary, <<>>)

  defp widen(<<x::float-32-little, rest::binary>>, done),
    do: widen(rest, <<done::binary, x::float-64-little>>)

  defp widen(<<_::32, rest::binary>>, done), do: widen(rest, <<done::binary, @nan64::binary>>)
  defp widen(<<>>, done), do: done
end
