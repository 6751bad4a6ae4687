defmodule Training.Picture do
  @moduledoc false
  # Draws curves over the steps of a training as a PNG file.

  @width 960
  @height 540
  # Plot area: left, top, right, bottom.
  @area {80, 40, 930, 480}

  @paper {255, 255, 255}
  @ink {70, 76, 84}
  @grid {226, 229, 233}
  @colors [{150, 196, 240}, {226, 120, 60}, {40, 44, 52}]
  @widths [11.0, 5.0, 1.2]

  @text_scale 2

  @glyphs %{
    "0" => ~w(.###. #...# #..## #.#.# ##..# #...# .###.),
    "1" => ~w(..#.. .##.. ..#.. ..#.. ..#.. ..#.. .###.),
    "2" => ~w(.###. #...# ....# ...#. ..#.. .#... #####),
    "3" => ~w(.###. #...# ....# ..##. ....# #...# .###.),
    "4" => ~w(...#. ..##. .#.#. #..#. ##### ...#. ...#.),
    "5" => ~w(##### #.... ####. ....# ....# #...# .###.),
    "6" => ~w(..##. .#... #.... ####. #...# #...# .###.),
    "7" => ~w(##### ....# ...#. ..#.. ..#.. ..#.. ..#..),
    "8" => ~w(.###. #...# #...# .###. #...# #...# .###.),
    "9" => ~w(.###. #...# #...# .#### ....# ...#. .##..),
    "." => ~w(..... ..... ..... ..... ..... .##.. .##..),
    "A" => ~w(.###. #...# #...# ##### #...# #...# #...#),
    "C" => ~w(.###. #...# #.... #.... #.... #...# .###.),
    "E" => ~w(##### #.... #.... ####. #.... #.... #####),
    "H" => ~w(#...# #...# #...# ##### #...# #...# #...#),
    "I" => ~w(.###. ..#.. ..#.. ..#.. ..#.. ..#.. .###.),
    "K" => ~w(#...# #..#. #.#.. ##... #.#.. #..#. #...#),
    "L" => ~w(#.... #.... #.... #.... #.... #.... #####),
    "N" => ~w(#...# ##..# ##..# #.#.# #..## #..## #...#),
    "O" => ~w(.###. #...# #...# #...# #...# #...# .###.),
    "P" => ~w(####. #...# #...# ####. #.... #.... #....),
    "R" => ~w(####. #...# #...# ####. #.#.. #..#. #...#),
    "S" => ~w(.###. #...# #.... .###. ....# #...# .###.),
    "T" => ~w(##### ..#.. ..#.. ..#.. ..#.. ..#.. ..#..),
    "U" => ~w(#...# #...# #...# #...# #...# #...# .###.),
    "V" => ~w(#...# #...# #...# #...# .#.#. .#.#. ..#..),
    "X" => ~w(#...# #...# .#.#. ..#.. .#.#. #...# #...#)
  }

  @doc """
  Writes a picture of `curves`, a list of `{label, values}`. Later curves are drawn thinner, over the earlier ones.
  Labels are made of A C E H I K L N O P R S T U V X.
  """
  def write(path, curves) do
    top = nice(curves |> Enum.flat_map(&elem(&1, 1)) |> Enum.max())
    steps = curves |> Enum.map(&length(elem(&1, 1))) |> Enum.max()

    lines =
      for {{_label, values}, index} <- Enum.with_index(curves) do
        points =
          for {value, step} <- Enum.with_index(values, 1),
              do: {x(step, steps), y(value, top)}

        {points, Enum.at(@colors, index), Enum.at(@widths, index)}
      end

    pixels =
      %{}
      |> frame(top, steps)
      |> legend(curves)
      |> then(
        &Enum.reduce(lines, &1, fn {points, color, width}, pixels ->
          curve(pixels, points, color, width)
        end)
      )

    File.write!(path, png(pixels))
  end

  defp x(step, steps) do
    {left, _, right, _} = @area
    left + (right - left) * (step - 1) / max(steps - 1, 1)
  end

  defp y(value, top) do
    {_, up, _, down} = @area
    down - (down - up) * value / top
  end

  # The next of 1, 2, 5, 10, … times a power of ten.
  defp nice(value) do
    power = 10 ** floor(:math.log10(value))
    Enum.find([1, 2, 5, 10], &(&1 * power >= value)) * power
  end

  defp frame(pixels, top, steps) do
    {left, up, right, down} = @area

    marks =
      for i <- 0..4 do
        row = round(y(top * i / 4, top))
        {row, :erlang.float_to_binary(top * i / 4, decimals: 2)}
      end

    pixels =
      Enum.reduce(marks, pixels, fn {row, text}, pixels ->
        pixels
        |> box({left, row, right, row}, @grid)
        |> write_text({left - 10 - text_width(text), row - 7}, text, @ink)
      end)

    pixels = box(pixels, {left, up, left, down}, @ink) |> box({left, down, right, down}, @ink)

    0..10
    |> Enum.map(&max(round(steps * &1 / 10), 1))
    |> Enum.uniq()
    |> Enum.reduce(pixels, fn step, pixels ->
      column = round(x(step, steps))
      text = Integer.to_string(step)

      pixels
      |> box({column, down, column, down + 5}, @ink)
      |> write_text({column - div(text_width(text), 2), down + 12}, text, @ink)
    end)
    |> write_text({right - text_width("STEP"), down + 36}, "STEP", @ink)
    |> write_text({left, up - 28}, "LOSS", @ink)
  end

  defp legend(pixels, curves) do
    {_, up, right, _} = @area
    widest = curves |> Enum.map(&text_width(elem(&1, 0))) |> Enum.max()

    curves
    |> Enum.with_index()
    |> Enum.reduce(pixels, fn {{label, _}, index}, pixels ->
      row = up + 16 + 28 * index
      left = right - widest - 60

      pixels
      |> box({left, row + 5, left + 36, row + 8}, Enum.at(@colors, index))
      |> write_text({left + 50, row}, label, @ink)
    end)
  end

  defp box(pixels, {left, top, right, bottom}, color) do
    for row <- top..bottom, column <- left..right, reduce: pixels do
      pixels -> Map.put(pixels, {column, row}, color)
    end
  end

  defp text_width(text), do: String.length(text) * 6 * @text_scale - @text_scale

  defp write_text(pixels, {left, top}, text, color) do
    for {letter, index} <- text |> String.graphemes() |> Enum.with_index(),
        {line, row} <- @glyphs |> Map.get(letter, []) |> Enum.with_index(),
        {"#", column} <- line |> String.graphemes() |> Enum.with_index(),
        reduce: pixels do
      pixels ->
        x = left + (index * 6 + column) * @text_scale
        y = top + row * @text_scale
        box(pixels, {x, y, x + @text_scale - 1, y + @text_scale - 1}, color)
    end
  end

  defp curve(pixels, points, color, width) do
    points
    |> Enum.zip(tl(points))
    |> Enum.reduce(%{}, &cover(&2, &1, width))
    |> Enum.reduce(pixels, fn {at, share}, pixels ->
      Map.put(pixels, at, blend(Map.get(pixels, at, @paper), color, share))
    end)
  end

  # How much of each pixel around a segment lies within half a line width of it.
  defp cover(shares, {{x1, y1}, {x2, y2}} = segment, width) do
    reach = width / 2 + 1

    for column <- floor(min(x1, x2) - reach)..ceil(max(x1, x2) + reach),
        row <- floor(min(y1, y2) - reach)..ceil(max(y1, y2) + reach),
        share = min(width / 2 + 0.5 - distance({column, row}, segment), 1.0),
        share > 0,
        reduce: shares do
      shares -> Map.update(shares, {column, row}, share, &max(&1, share))
    end
  end

  defp distance({x, y}, {{x1, y1}, {x2, y2}}) do
    {dx, dy} = {x2 - x1, y2 - y1}
    along = ((x - x1) * dx + (y - y1) * dy) / max(dx * dx + dy * dy, 1.0e-9)
    along = along |> max(0.0) |> min(1.0)
    :math.sqrt((x - x1 - along * dx) ** 2 + (y - y1 - along * dy) ** 2)
  end

  defp blend({r, g, b}, {r2, g2, b2}, share) do
    mix = fn under, over -> round(under + (over - under) * share) end
    {mix.(r, r2), mix.(g, g2), mix.(b, b2)}
  end

  defp png(pixels) do
    rows =
      for row <- 0..(@height - 1) do
        [0 | for(column <- 0..(@width - 1), do: color(pixels, column, row))]
      end

    # 8 bits for each of red, green and blue, no interlacing.
    header = <<@width::32, @height::32, 8, 2, 0, 0, 0>>

    [
      <<137, "PNG\r\n", 26, 10>>,
      chunk("IHDR", header),
      chunk("IDAT", :zlib.compress(rows)),
      chunk("IEND", "")
    ]
  end

  defp color(pixels, column, row) do
    {r, g, b} = Map.get(pixels, {column, row}, @paper)
    <<r, g, b>>
  end

  defp chunk(type, data) do
    body = type <> IO.iodata_to_binary(data)
    [<<byte_size(body) - 4::32>>, body, <<:erlang.crc32(body)::32>>]
  end
end
