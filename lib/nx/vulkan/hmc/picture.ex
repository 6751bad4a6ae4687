defmodule Nx.Vulkan.HMC.Picture do
  @moduledoc """
  Draws a result as an SVG file: for each coordinate its distribution on the left, its traces on the right.
  """

  alias Nx.Vulkan.HMC.{Diagnostics, Result}

  @width 1000
  @row 130
  # The plots of a row: {left, right}, and how far below its top they begin and end.
  @density {40, 380}
  @trace {440, 980}
  @up 26
  @down 112
  @bins 40
  @points 500
  @colors ~w(#2f6fb5 #d9752b #3a9455 #b0413e #7d5ba6 #8a6d3b #c25b9a #5f6b76)

  @escapes %{"&" => "&amp;", "<" => "&lt;", ">" => "&gt;"}

  @doc """
  Writes the picture of `result` to `path`.

    * `:names` - the coordinates to draw, in order; all of them

  Each line is a chain. Traces show at most #{@points} of its draws; ticks under a trace are divergences. Raises a
  `File.Error` where the file cannot be written.
  """
  def write(%Result{} = result, path, opts \\ []) do
    names = Keyword.validate!(opts, names: result.names)[:names]
    File.write!(path, svg(result, names))
  end

  @doc "The picture as iodata, for a notebook."
  def svg(%Result{} = result, names) do
    rows = for {name, index} <- Enum.with_index(names), do: row(result, name, index * @row)
    size = ~s(width="#{@width}" height="#{length(names) * @row}")

    [
      ~s(<svg xmlns="http://www.w3.org/2000/svg" #{size} font-family="sans-serif" font-size="11" ),
      ~s(fill="#464c54">\n),
      ~s(<rect width="100%" height="100%" fill="#fff"/>\n),
      rows,
      "</svg>\n"
    ]
  end

  defp row(result, name, top) do
    chains = Result.fetch!(result, name)
    {low, high} = chains |> Enum.concat() |> Enum.min_max() |> widen()
    about = chains |> Diagnostics.summary() |> about()

    [
      text(elem(@density, 0), top + 16, "start", "#{name}  #{about}"),
      axis(@density, top),
      text(elem(@density, 0), top + @down + 13, "start", short(low)),
      text(elem(@density, 1), top + @down + 13, "end", short(high)),
      densities(chains, {low, high}, top),
      axis(@trace, top),
      text(elem(@trace, 0) - 4, top + @up + 8, "end", short(high)),
      text(elem(@trace, 0) - 4, top + @down, "end", short(low)),
      traces(chains, {low, high}, top),
      divergences(result, top)
    ]
  end

  defp widen({low, high}) when low == high do
    by = max(0.5, abs(low) * 1.0e-3)
    {low - by, high + by}
  end

  defp widen(range), do: range

  defp about(%{mean: mean, sd: sd, rhat: rhat, ess_bulk: ess}) do
    more = if rhat && ess, do: ", R-hat #{Float.round(rhat, 3)}, ESS #{round(ess)}"
    "mean #{short(mean)}, sd #{short(sd)}#{more}"
  end

  # Bars for all chains together, a smoothed line for each.
  defp densities(chains, range, top) do
    shares = Enum.map(chains, &shares(&1, range))
    bars = Enum.zip_with(shares, &(Enum.sum(&1) / length(chains)))
    lines = Enum.map(shares, &(&1 |> smooth() |> smooth()))
    highest = [bars | lines] |> Enum.concat() |> Enum.max()
    y = &scale(&1, {0.0, highest}, {top + @down, top + @up})
    {left, right} = @density
    step = (right - left) / @bins
    points = &for {share, bin} <- Enum.with_index(&1), do: {left + (bin + 0.5) * step, y.(share)}

    [
      for {share, bin} <- Enum.with_index(bars) do
        ~s(<rect x="#{short(left + bin * step)}" y="#{short(y.(share))}" width="#{short(step)}" ) <>
          ~s(height="#{short(top + @down - y.(share))}" fill="#e2e6ea"/>\n)
      end,
      for({shares, index} <- Enum.with_index(lines), do: line(points.(shares), index, 1.2))
    ]
  end

  defp shares(chain, {low, high}) do
    counts = Enum.frequencies_by(chain, &min(trunc((&1 - low) / (high - low) * @bins), @bins - 1))
    for bin <- 0..(@bins - 1), do: Map.get(counts, bin, 0) / length(chain)
  end

  defp smooth(shares) do
    around = [[0.0 | shares], shares, tl(shares) ++ [0.0]]
    Enum.zip_with(around, fn [a, b, c] -> (a + 2.0 * b + c) / 4.0 end)
  end

  defp traces(chains, range, top) do
    count = chains |> hd() |> length()
    every = max(ceil(count / @points), 1)

    for {chain, index} <- Enum.with_index(chains) do
      points =
        for {value, at} <- chain |> Enum.take_every(every) |> Enum.with_index() do
          {scale(at * every, {0, max(count - 1, 1)}, @trace),
           scale(value, range, {top + @down, top + @up})}
        end

      line(points, index, 0.7)
    end
  end

  defp divergences(result, top) do
    for %{draw: draw, chain: chain} <- result.divergences do
      x = draw |> scale({0, max(result.count - 1, 1)}, @trace) |> short()
      ~s(<path d="M#{x} #{top + @down}v7" stroke="#{color(chain)}" stroke-width="1"/>\n)
    end
  end

  defp scale(value, {low, high}, {from, to}),
    do: from + (value - low) / (high - low) * (to - from)

  defp line(points, index, width) do
    places = Enum.map_join(points, " ", fn {x, y} -> "#{short(x)},#{short(y)}" end)

    ~s(<polyline points="#{places}" fill="none" stroke="#{color(index)}" stroke-width="#{width}" ) <>
      ~s(stroke-opacity="0.8"/>\n)
  end

  defp axis({left, right}, top),
    do: ~s(<path d="M#{left} #{top + @down}H#{right}" stroke="#464c54"/>\n)

  defp text(x, y, anchor, text),
    do: ~s(<text x="#{x}" y="#{y}" text-anchor="#{anchor}">#{escape(text)}</text>\n)

  defp escape(text), do: String.replace(text, ["&", "<", ">"], &@escapes[&1])

  defp color(index), do: Enum.at(@colors, rem(index, length(@colors)))

  defp short(x) when abs(x) >= 1.0e5 or (abs(x) < 0.01 and x != 0),
    do: :erlang.float_to_binary(x / 1, scientific: 1)

  defp short(x), do: :erlang.float_to_binary(x / 1, [:compact, decimals: 2])
end
