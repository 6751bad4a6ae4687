defmodule Workloads.Regime do
  @moduledoc """
  The regime model through the backend, op by op in double precision: its log density, the gradient, and leapfrog steps.
  """

  # Of 40 digits, with hyperparameters that are exact in f64, at 0.05 in every coordinate.
  @log_density -217.7297991168506

  def log_density, do: @log_density

  @doc """
  Log densities of the start and of `steps` leapfrog steps from it, and the gradient at the start, on the default backend.
  """
  def chain(steps) do
    {backend, opts} = Nx.default_backend()
    returns = Nx.backend_copy(Regime.returns(), {backend, opts})

    at =
      Nx.Defn.jit(fn q, returns ->
        Nx.Defn.value_and_grad(q, &Regime.log_density(&1, returns))
      end)

    q = Nx.broadcast(Nx.tensor(0.05, type: :f64), {8})
    p = Nx.linspace(-1, 1, n: 8, type: :f64)
    {value, gradient} = at.(q, returns)

    {values, _} =
      Enum.map_reduce(1..steps//1, {q, p, gradient}, fn _, {q, p, gradient} ->
        half = Nx.add(p, Nx.multiply(0.5e-3, gradient))
        q = Nx.add(q, Nx.multiply(1.0e-3, half))
        {value, gradient} = at.(q, returns)
        {Nx.to_number(value), {q, Nx.add(half, Nx.multiply(0.5e-3, gradient)), gradient}}
      end)

    {[Nx.to_number(value) | values], Nx.to_flat_list(gradient)}
  end

  @doc """
  How far lists are apart at most, as a part of the larger of each number and 1.
  """
  def apart(ours, theirs),
    do: ours |> Enum.zip_with(theirs, &(abs(&1 - &2) / max(1, abs(&2)))) |> Enum.max()
end
