defmodule Nx.Vulkan.HMC.Schedule do
  @moduledoc false
  # Which iterations of a warm-up adapt what, as Stan does it (reference manual, "Automatic parameter tuning"): an
  # initial part of 75 iterations, windows that start at 25 and double, a final part of 50. Shorter warm-ups are cut
  # 15% / 75% / 10%; below 20 iterations the metric stays as it is.

  @initial 75
  @window 25
  @final 50

  @doc """
  The windows of a warm-up of `iterations`: `[first..last]`, counted from 1. The metric is estimated from the draws of
  a window and set at its last iteration.
  """
  def windows(iterations) when iterations < 20, do: []

  def windows(iterations) when iterations < @initial + @window + @final do
    initial = floor(0.15 * iterations)
    [(initial + 1)..(iterations - floor(0.1 * iterations))]
  end

  def windows(iterations), do: windows(@initial + 1, @window, iterations - @final)

  # A window that leaves no room for the next, twice as long, goes on to the end.
  defp windows(first, size, end_) do
    last = first + size - 1

    if last + 2 * size > end_,
      do: [first..end_],
      else: [first..last | windows(last + 1, 2 * size, end_)]
  end
end
