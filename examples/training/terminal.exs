defmodule Training.Terminal do
  @moduledoc false
  # Titles, a progress bar, tables and a chart. Colours and a moving bar appear on a terminal only.

  @bar 32
  @eighths ~w(▁ ▂ ▃ ▄ ▅ ▆ ▇ █)

  def title(text), do: IO.puts(["\n", style([:bright], text)])

  def good(text), do: style([:green], text)
  def bad(text), do: style([:red, :bright], text)
  def faint(text), do: style([:faint], text)

  @doc """
  One line that fills up. Without a terminal it is printed once, when it is full.
  """
  def progress(label, step, steps, note) do
    full = div(@bar * step, steps)
    bar = [String.duplicate("█", full), faint(String.duplicate("░", @bar - full))]
    line = ["  ", String.pad_trailing(label, 22), bar, " #{step}/#{steps}  ", note]

    cond do
      terminal?() ->
        IO.write([IO.ANSI.clear_line(), "\r", line, if(step == steps, do: "\n", else: "")])

      step == steps ->
        IO.puts(line)

      true ->
        :ok
    end
  end

  @doc """
  Rows of texts in columns, the first of them to the left and the others to the right.
  """
  def table(rows) do
    widths =
      Enum.zip_with(rows, fn column -> column |> Enum.map(&String.length/1) |> Enum.max() end)

    for {row, index} <- Enum.with_index(rows) do
      [first | others] =
        Enum.zip_with(row, widths, fn cell, width -> {cell, width} end)

      cells = for {cell, width} <- others, do: ["  ", String.pad_leading(cell, width)]
      line = ["  ", String.pad_trailing(elem(first, 0), elem(first, 1)), cells]
      IO.puts(if index == 0, do: faint(IO.iodata_to_binary(line)), else: line)
    end
  end

  @doc """
  A chart of values over steps, one column for each value.
  """
  def chart(values, rows) do
    top = Enum.max(values)

    for row <- (rows - 1)..0//-1 do
      label = if row in [0, rows - 1], do: format(top * (row + 1) / rows), else: ""
      cells = for value <- values, do: cell(value / top * rows - row)
      IO.puts(["  ", String.pad_leading(label, 6), " ", style([:cyan], cells)])
    end
  end

  defp cell(fill) when fill <= 0.0, do: " "
  defp cell(fill), do: Enum.at(@eighths, min(trunc(fill * 8), 7))

  def format(number), do: :erlang.float_to_binary(number / 1, decimals: 4)

  def time(microseconds) when microseconds < 1000, do: "#{round(microseconds)} us"

  def time(microseconds) when microseconds < 1_000_000,
    do: "#{Float.round(microseconds / 1000, 2)} ms"

  def time(microseconds), do: "#{Float.round(microseconds / 1_000_000, 2)} s"

  defp style(codes, text) do
    if terminal?(),
      do: [codes |> IO.ANSI.format_fragment(true), text, IO.ANSI.reset()],
      else: text
  end

  defp terminal?, do: IO.ANSI.enabled?() and System.get_env("NO_COLOR", "") == ""
end
