defmodule Nx.Vulkan.HMC.Dispatch do
  @moduledoc false
  # The function that runs leapfrog steps, what it was asked so far, and how the steps of several chains make one call.
  #
  # A request is `{q, p, inv_mass, step_size, steps}`: three binaries of d f64 values, a signed step size, and how many
  # steps are wanted. Its rows are `{qs, ps, logps}`, binaries of `steps` rows. A call runs as many steps as the longest
  # request wants; the others get the first rows, so no chain sees who shared its call. With `max_steps` a request for
  # more of them is run in parts.

  alias Nx.Vulkan.HMC.Error

  @enforce_keys [:chain]
  defstruct [:chain, max_steps: nil, calls: 0, steps: 0, rows: 0, microseconds: 0]

  @doc "Runs all requests, in one call where `max_steps` allows. Returns their rows, in order."
  def run(dispatch, []), do: {:ok, [], dispatch}

  def run(%__MODULE__{max_steps: most} = dispatch, requests) do
    with {:ok, rows, dispatch} <- call(dispatch, Enum.map(requests, &first(&1, most))),
         rests = Enum.zip_with(requests, rows, &rest(&1, &2, most)),
         {:ok, more, dispatch} <- run(dispatch, Enum.reject(rests, &is_nil/1)),
         do: {:ok, append(rows, rests, more), dispatch}
  end

  defp first({q, p, inv_mass, step_size, steps}, most),
    do: {q, p, inv_mass, step_size, min(steps, most || steps)}

  # What goes on from the last row.
  defp rest({q, _p, inv_mass, step_size, steps}, {qs, ps, _logps}, most) do
    if most && steps > most do
      last = &binary_part(&1, byte_size(&1), -byte_size(q))
      {last.(qs), last.(ps), inv_mass, step_size, steps - most}
    end
  end

  defp append([rows | others], [nil | rests], more), do: [rows | append(others, rests, more)]

  defp append([{q, p, logp} | others], [_ | rests], [{q2, p2, logp2} | more]),
    do: [{q <> q2, p <> p2, logp <> logp2} | append(others, rests, more)]

  defp append([], [], []), do: []

  defp call(%__MODULE__{chain: chain} = dispatch, requests) do
    steps = requests |> Enum.map(&elem(&1, 4)) |> Enum.max()
    [q, p, inv_mass] = for part <- 0..2, do: join(requests, part)
    step_sizes = Enum.map(requests, &elem(&1, 3))

    started = System.monotonic_time(:microsecond)
    answer = chain.(q, p, inv_mass, step_sizes, steps)
    took = System.monotonic_time(:microsecond) - started

    with {:ok, {qs, ps, _gradients, logps}} <-
           check(answer, byte_size(q), length(requests), steps) do
      dispatch = %{
        dispatch
        | calls: dispatch.calls + 1,
          steps: dispatch.steps + steps,
          rows: dispatch.rows + steps * length(requests),
          microseconds: dispatch.microseconds + took
      }

      {:ok, split(requests, steps, {qs, ps, logps}), dispatch}
    end
  end

  @doc "What was asked since `earlier`."
  def since(now, earlier) do
    for key <- [:calls, :steps, :rows, :microseconds],
        into: %{},
        do: {key, Map.fetch!(now, key) - Map.fetch!(earlier, key)}
  end

  defp join(requests, part),
    do: requests |> Enum.map(&elem(&1, part)) |> IO.iodata_to_binary()

  defp split(requests, steps, {qs, ps, logps}) do
    for {{q, _, _, _, wanted}, index} <- Enum.with_index(requests) do
      row = byte_size(q)
      at = index * steps
      cut = &binary_part(&1, at * &2, wanted * &2)
      {cut.(qs, row), cut.(ps, row), cut.(logps, 8)}
    end
  end

  # The gradients are not read, so they may be left out.
  defp check({:ok, {q, p, _gradients, logp}} = answer, bytes, chains, steps)
       when byte_size(q) == bytes * steps and byte_size(p) == bytes * steps and
              byte_size(logp) == chains * steps * 8,
       do: answer

  defp check({:error, reason}, _bytes, chains, steps) do
    message =
      "the chain function failed on #{steps} steps of #{chains} chains: #{inspect(reason)}"

    {:error, %Error{kind: :chain, message: message, reason: reason}}
  end

  defp check(answer, bytes, chains, steps) do
    message =
      "expected {:ok, {q_chain, p_chain, grad_chain, logp_chain}} of #{bytes * steps} bytes each, and " <>
        "#{chains * steps * 8} in the last, from the chain function, got: #{shape(answer)}"

    {:error, %Error{kind: :chain, message: message, reason: answer}}
  end

  defp shape({:ok, parts}) when is_tuple(parts),
    do: "{:ok, {#{parts |> Tuple.to_list() |> Enum.map_join(", ", &size/1)}}}"

  defp shape(answer), do: inspect(answer, limit: 5, printable_limit: 80)

  defp size(part) when is_binary(part), do: "#{byte_size(part)} bytes"
  defp size(part), do: inspect(part, limit: 5)
end
