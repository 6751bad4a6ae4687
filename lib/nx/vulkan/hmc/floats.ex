defmodule Nx.Vulkan.HMC.Floats do
  @moduledoc false
  # Binaries of little-endian f64 values. A NaN or an infinity matches no float pattern in Erlang, and arithmetic on
  # huge floats raises, so whatever is not within ±1.0e100 counts as not finite here.

  @bound 1.0e100

  defguard is_bounded(x) when x < @bound and x > -@bound

  def encode(list), do: for(x <- list, into: <<>>, do: <<x::float-64-little>>)

  @doc "The values of `binary`, or `:error` where one of them is not finite."
  def decode(binary), do: decode(binary, [])

  defp decode(<<x::float-64-little, rest::binary>>, list) when is_bounded(x),
    do: decode(rest, [x | list])

  defp decode(<<>>, list), do: {:ok, :lists.reverse(list)}
  defp decode(_not_finite, _list), do: :error

  @doc "The values of a binary that is known to be finite."
  def decode!(binary), do: for(<<x::float-64-little <- binary>>, do: x)

  def finite?(<<x::float-64-little, rest::binary>>) when is_bounded(x), do: finite?(rest)
  def finite?(rest), do: rest == <<>>

  @doc "The values for people to read: what is no float is `:nan`, `:infinity` or `:neg_infinity`."
  def read(<<x::float-64-little, rest::binary>>), do: [x | read(rest)]
  def read(<<0::48, 0xF0, 0x7F, rest::binary>>), do: [:infinity | read(rest)]
  def read(<<0::48, 0xF0, 0xFF, rest::binary>>), do: [:neg_infinity | read(rest)]
  def read(<<_::64, rest::binary>>), do: [:nan | read(rest)]
  def read(<<>>), do: []
end
