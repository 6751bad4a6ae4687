defmodule Nx.Vulkan.Request do
  @moduledoc false
  # Requests and programs of them. What may take long moves to a dirty scheduler by itself.

  alias Nx.Vulkan.{Garbage, NativeV, Report}

  @doc """
  Runs `op` on `operands`, a list of references, or on a device when it has no operands.

  Answers `{:ok, references}` or `{:error, kind, message}`.
  """
  def run(op, operands, outs, attrs) do
    case retry(fn -> NativeV.run(op, operands, outs, attrs) end) do
      {:host, refs, [0]} ->
        Report.fallback(op, :host, inputs(operands))
        {:ok, refs}

      other ->
        other
    end
  end

  @doc """
  Runs `requests`, each `{op, values, outs, attrs}`, in one call, and answers with references to the values `results`.

  Values are numbered: first `operands`, a list of references (or a device instead of none), then what each request
  makes. Answers `{:ok, references}` or `{:error, kind, message}`.
  """
  def run_program(operands, requests, results) do
    case retry(fn -> NativeV.run_program(operands, requests, results) end) do
      {:host, refs, places} ->
        # Type and shape of every value.
        made = Enum.flat_map(requests, &elem(&1, 2))
        values = List.to_tuple(inputs(operands) ++ made)

        for place <- places do
          {op, inputs, _outs, _attrs} = Enum.at(requests, place)
          Report.fallback(op, :host, Enum.map(inputs, &elem(values, &1)))
        end

        {:ok, refs}

      other ->
        other
    end
  end

  @doc """
  Runs a program that `NativeV.compile_program/4` made: `{:ok, references, places}`, with the places of the steps that ran on
  the host, or `{:error, kind, message}`.
  """
  def run_compiled(operands, program) do
    case retry(fn -> NativeV.run_compiled(operands, program) end) do
      {:ok, refs} -> {:ok, refs, []}
      {:host, refs, places} -> {:ok, refs, places}
      error -> error
    end
  end

  defp inputs(operands) when is_list(operands), do: Enum.map(operands, &signature/1)
  defp inputs(_device), do: []

  defp signature(ref) do
    %{type: type, shape: shape} = NativeV.tensor_info(ref)
    {type, shape}
  end

  @doc """
  Copies a binary to a device: `{:ok, reference}` or `{:error, kind, message}`.
  """
  def upload(device, type, shape, binary),
    do: retry(fn -> NativeV.upload(device, type, shape, binary) end)

  @doc """
  A tensor whose elements are all `element`: `{:ok, reference}` or `{:error, kind, message}`.
  """
  def constant(device, type, shape, element),
    do: retry(fn -> NativeV.constant(device, type, shape, element) end)

  # Who holds memory without need is this process, or another one that has nothing to do.
  defp retry(call) do
    with {:error, :out_of_memory, _} <- call.(),
         true <- :erlang.garbage_collect(),
         {:error, :out_of_memory, _} <- call.() do
      Garbage.collect_all()
      call.()
    end
  end
end
