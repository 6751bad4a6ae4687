defmodule Nx.Vulkan.HMC.Options do
  @moduledoc false
  # The options of a sampler, checked once.

  @defaults [
    warmup: 1000,
    draws: 1000,
    seed: nil,
    target_accept: 0.8,
    max_tree_depth: 10,
    max_energy_error: 1000.0,
    max_steps: nil,
    step_size: nil,
    inv_mass: nil,
    names: nil,
    progress: true
  ]

  # What squares and inverses of such numbers are is finite.
  @most 1.0e100

  @doc "The options there are."
  def keys, do: Keyword.keys(@defaults)

  @doc "The options with their defaults; raises an `ArgumentError` that names the first that does not fit."
  def validate!(opts) do
    opts = Keyword.validate!(opts, @defaults)
    for {key, value} <- opts, do: check!(key, value)
    Keyword.update!(opts, :seed, &(&1 || :rand.uniform(0xFFFF_FFFF)))
  end

  @doc "Checks what must fit `dims`, the number of coordinates."
  def fit!(opts, dims) do
    for key <- [:names, :inv_mass], list = opts[key], length(list) != dims do
      raise ArgumentError,
            "expected #{inspect(key)} to have #{dims} entries, one for each coordinate, got: #{length(list)}"
    end

    names = opts[:names] || for(i <- 0..(dims - 1), do: "x[#{i}]")
    names = Enum.map(names, &to_string/1)

    with [name | _] <- names -- Enum.uniq(names) do
      raise ArgumentError, "expected each name once, got: #{inspect(name)} twice"
    end

    inv_mass = opts[:inv_mass] || List.duplicate(1.0, dims)

    Keyword.merge(opts,
      names: names,
      inv_mass: Enum.map(inv_mass, &(&1 / 1))
    )
  end

  defp check!(:warmup, n) when is_integer(n) and n >= 0, do: :ok
  defp check!(:draws, n) when is_integer(n) and n > 0, do: :ok
  defp check!(:seed, seed) when is_nil(seed) or is_integer(seed), do: :ok
  defp check!(:target_accept, x) when is_float(x) and x > 0.0 and x < 1.0, do: :ok
  defp check!(:max_tree_depth, n) when n in 1..20, do: :ok
  defp check!(:max_energy_error, x) when is_number(x) and x > 0, do: :ok
  defp check!(:max_steps, n) when is_nil(n) or (is_integer(n) and n > 0), do: :ok
  defp check!(:step_size, nil), do: :ok
  defp check!(:step_size, x) when is_number(x) and x > 0 and x < @most, do: :ok
  defp check!(:progress, value) when is_boolean(value) or is_function(value, 1), do: :ok
  defp check!(key, nil) when key in [:inv_mass, :names], do: :ok

  defp check!(:inv_mass, [_ | _] = list) do
    Enum.all?(list, &(is_number(&1) and &1 > 1 / @most and &1 < @most)) ||
      refuse!(:inv_mass, list)
  end

  defp check!(:names, [_ | _] = list) do
    Enum.all?(list, &(is_binary(&1) or is_atom(&1))) || refuse!(:names, list)
  end

  defp check!(key, value), do: refuse!(key, value)

  @expected [
    warmup: "a number of iterations, 0 or more",
    draws: "a number of draws, 1 or more",
    seed: "an integer",
    target_accept: "a float between 0.0 and 1.0",
    max_tree_depth: "an integer from 1 to 20",
    max_energy_error: "a positive number",
    max_steps: "an integer, 1 or more",
    step_size: "a positive number below 1.0e100",
    inv_mass: "a list of numbers between 1.0e-100 and 1.0e100",
    names: "a list of strings or atoms",
    progress: "true, false or a function of one argument"
  ]

  defp refuse!(key, value) do
    raise ArgumentError,
          "expected #{inspect(key)} to be #{@expected[key]}, got: #{inspect(value)}"
  end
end
