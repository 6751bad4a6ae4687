defmodule Nx.Vulkan.Density.Value do
  @moduledoc false
  # Values and indices of generated GLSL. A value is `{:float | :int | :bool, text, depth}` or `{:const, number}`; an index
  # is an integer or `{text, depth}`. The depth is that of the loop in which it changes: 0 is outside of all.

  def depth({:const, _}), do: 0
  def depth({_kind, _text, depth}), do: depth
  def depth({_text, depth}), do: depth
  def depth(index) when is_integer(index), do: 0

  def deepest(values), do: values |> Enum.map(&depth/1) |> Enum.max(fn -> 0 end)

  @doc """
  The text of a value as a `REAL`, an `int` or a `bool`.
  """
  def text({:const, number}, :float, type), do: float(number, type)
  def text({:const, number}, :int, _), do: integer(number)
  def text({:const, number}, :bool, _), do: if(number in [0, 0.0], do: "false", else: "true")
  def text({kind, text, _}, kind, _), do: text

  def text({:bool, text, _}, :float, type),
    do: "(#{text} ? #{float(1.0, type)} : #{float(0.0, type)})"

  def text({:bool, text, _}, :int, _), do: "int(#{text})"
  def text({:int, text, _}, :float, _), do: "REAL(#{text})"
  def text({:int, text, _}, :bool, _), do: "(#{text} != 0)"
  def text({:float, text, _}, :int, _), do: "int(#{text})"
  def text({:float, text, _}, :bool, type), do: "(#{text} != #{float(0.0, type)})"

  def index(index) when is_integer(index), do: Integer.to_string(index)
  def index({text, _}), do: text

  @doc """
  The index of a value, which is made whole.
  """
  def to_index({:const, number}), do: trunc(number)
  def to_index(value), do: {text(value, :int, nil), depth(value)}

  def add(a, b) when is_integer(a) and is_integer(b), do: a + b
  def add(a, 0), do: a
  def add(0, b), do: b
  def add(a, b), do: {"(#{index(a)} + #{index(b)})", deepest([a, b])}

  def multiply(a, b) when is_integer(a) and is_integer(b), do: a * b
  def multiply(_, 0), do: 0
  def multiply(a, 1), do: a
  def multiply(a, b), do: {"(#{index(a)} * #{index(b)})", deepest([a, b])}

  def subtract(a, b) when is_integer(a) and is_integer(b), do: a - b
  def subtract(a, 0), do: a
  def subtract(a, b), do: {"(#{index(a)} - #{index(b)})", deepest([a, b])}

  def quotient(a, b) when is_integer(a), do: div(a, b)
  def quotient(a, 1), do: a
  def quotient(a, b), do: {"(#{index(a)} / #{b})", depth(a)}

  def remainder(a, b) when is_integer(a), do: rem(a, b)
  def remainder(_, 1), do: 0
  def remainder(a, b), do: {"(#{index(a)} % #{b})", depth(a)}

  def clamp(a, low, high) when is_integer(a), do: a |> max(low) |> min(high)
  def clamp(_, same, same), do: same
  def clamp(a, low, high), do: {"clamp(#{index(a)}, #{low}, #{high})", depth(a)}

  @doc """
  Position of an element in row-major order, and back.
  """
  def flat(idx, shape) do
    idx
    |> Enum.zip(shape)
    |> Enum.reduce(0, fn {i, extent}, at -> at |> multiply(extent) |> add(i) end)
  end

  def unflat(at, shape) do
    {idx, _} =
      shape
      |> Enum.reverse()
      |> Enum.map_reduce(at, fn extent, at ->
        {if(extent == 1, do: 0, else: remainder(at, extent)), quotient(at, extent)}
      end)

    # The first index needs no remainder.
    case Enum.reverse(idx) do
      [first | rest] when shape != [] and hd(shape) != 1 ->
        [whole(first, at, tl(shape)) | rest]

      idx ->
        idx
    end
  end

  defp whole(first, _, _) when is_integer(first), do: first
  defp whole(_, at, inner), do: quotient(at, Enum.product(inner))

  @doc """
  The index at which a tensor that is reshaped has the element.
  """
  def reshaped(idx, from, to) do
    # Axes of extent 1 come and go without arithmetic.
    if Enum.reject(from, &(&1 == 1)) == Enum.reject(to, &(&1 == 1)) do
      kept = for {i, extent} <- Enum.zip(idx, from), extent != 1, do: i
      {inner, _} = Enum.map_reduce(to, kept, &if(&1 == 1, do: {0, &2}, else: {hd(&2), tl(&2)}))
      inner
    else
      idx |> flat(from) |> unflat(to)
    end
  end

  @doc """
  An index of `rank` axes: `fixed` gives some, `rest` the others in their order.
  """
  def placed(rank, fixed, rest) do
    {idx, _} =
      Enum.map_reduce(0..(rank - 1)//1, rest, fn axis, rest ->
        case fixed do
          %{^axis => i} -> {i, rest}
          _ -> {hd(rest), tl(rest)}
        end
      end)

    idx
  end

  @doc """
  A number as a constant of GLSL.
  """
  def float(:nan, type), do: float_macro("NAN", type)
  def float(:infinity, type), do: float_macro("INF", type)
  def float(:neg_infinity, type), do: "(-" <> float_macro("INF", type) <> ")"

  def float(number, type) do
    text = Float.to_string(number / 1) <> suffix(type)
    if number < 0, do: "(#{text})", else: text
  end

  defp suffix(:f64), do: "lf"
  defp suffix(_), do: ""
  defp float_macro(name, :f64), do: "NXV_#{name}64"
  defp float_macro(name, _), do: "NXV_#{name}"

  defp integer(number) when number in [:nan, :infinity, :neg_infinity], do: "0"

  defp integer(number) do
    case trunc(number) do
      whole when whole in -0x7FFFFFFF..0x7FFFFFFF//1 ->
        if whole < 0, do: "(#{whole})", else: "#{whole}"

      whole ->
        throw({:unsupported, "the integer #{whole}", {:s, 64}, {}})
    end
  end
end
