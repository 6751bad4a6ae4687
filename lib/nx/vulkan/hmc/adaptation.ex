defmodule Nx.Vulkan.HMC.Adaptation do
  @moduledoc false
  # What one chain learns in its warm-up: a step size by dual averaging (Hoffman and Gelman 2014, section 3.2) and the
  # variance of each coordinate by Welford's method, shrunk as in Stan.

  @gamma 0.05
  @t0 10.0
  @kappa 0.75

  # Step sizes outside are of no use, and their logarithms keep exp/1 in range.
  @smallest 1.0e-18
  @largest 1.0e7

  defstruct [:target, :mu, count: 0, error: 0.0, log_mean: 0.0, n: 0, mean: nil, squares: nil]

  def range, do: {@smallest, @largest}

  def new(target), do: %__MODULE__{target: target}

  @doc "Starts dual averaging anew from `step_size`."
  def restart(adaptation, step_size) do
    %{adaptation | mu: :math.log(10.0 * step_size), count: 0, error: 0.0, log_mean: 0.0}
  end

  @doc "Learns from an acceptance statistic; returns the step size to go on with."
  def step_size(%__MODULE__{} = a, accept) do
    count = a.count + 1
    eta = 1.0 / (count + @t0)
    error = (1.0 - eta) * a.error + eta * (a.target - min(accept, 1.0))
    log = clamp(a.mu - error * :math.sqrt(count) / @gamma)
    weight = :math.pow(count, -@kappa)
    log_mean = (1.0 - weight) * a.log_mean + weight * log
    {:math.exp(log), %{a | count: count, error: error, log_mean: log_mean}}
  end

  @doc "The averaged step size, to sample with."
  def final_step_size(%__MODULE__{log_mean: log_mean}), do: :math.exp(log_mean)

  defp clamp(log), do: log |> max(:math.log(@smallest)) |> min(:math.log(@largest))

  @doc "Takes a position into the estimate of the variances."
  def observe(%__MODULE__{n: 0} = a, position),
    do: %{a | n: 1, mean: position, squares: Enum.map(position, fn _ -> 0.0 end)}

  def observe(%__MODULE__{} = a, position) do
    n = a.n + 1
    mean = Enum.zip_with(position, a.mean, fn x, mean -> mean + (x - mean) / n end)

    squares =
      Enum.zip_with([position, a.mean, mean, a.squares], fn [x, before, now, sum] ->
        sum + (x - before) * (x - now)
      end)

    %{a | n: n, mean: mean, squares: squares}
  end

  @doc "The inverse metric: the variances, shrunk towards 1.0e-3. Forgets the positions."
  def inv_mass(%__MODULE__{n: n, squares: squares} = a) do
    shrink = fn sum -> sum / (n - 1) * n / (n + 5.0) + 1.0e-3 * 5.0 / (n + 5.0) end
    {Enum.map(squares, shrink), %{a | n: 0, mean: nil, squares: nil}}
  end
end
