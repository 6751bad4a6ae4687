defmodule Nx.Vulkan.Request do
  @moduledoc false
  # One op call. What may take long moves to a dirty scheduler.

  alias Nx.Vulkan.{NativeV, Report}

  # Copying more than this holds a scheduler for too long.
  @upload_limit 1_048_576

  @doc """
  Runs `op` on `operands`, a list of references, or on a device when it has no operands.

  Answers `{:ok, references}` or `{:error, kind, message}`.
  """
  def run(op, operands, outs, attrs) do
    case NativeV.run(op, operands, outs, attrs) do
      {:ok, _} = done -> done
      :dirty -> slow(op, operands, outs, attrs)
      {:error, :out_of_memory, _} -> slow(op, operands, outs, attrs)
      error -> error
    end
  end

  defp slow(op, operands, outs, attrs) do
    case retry(fn -> NativeV.run_dirty(op, operands, outs, attrs) end) do
      {:host, refs} ->
        Report.fallback(
          op,
          :host,
          if(is_list(operands), do: Enum.map(operands, &signature/1), else: [])
        )

        {:ok, refs}

      other ->
        other
    end
  end

  defp signature(ref) do
    %{type: type, shape: shape} = NativeV.tensor_info(ref)
    {type, shape}
  end

  @doc """
  Copies a binary to a device: `{:ok, reference}` or `{:error, kind, message}`.
  """
  def upload(device, type, shape, binary) when byte_size(binary) <= @upload_limit do
    with :dirty <- NativeV.upload(device, type, shape, binary),
         do: upload_dirty(device, type, shape, binary)
  end

  def upload(device, type, shape, binary), do: upload_dirty(device, type, shape, binary)

  defp upload_dirty(device, type, shape, binary),
    do: retry(fn -> NativeV.upload_dirty(device, type, shape, binary) end)

  @doc """
  A tensor whose elements are all `element`: `{:ok, reference}` or `{:error, kind, message}`.
  """
  def constant(device, type, shape, element) do
    with :dirty <- NativeV.constant(device, type, shape, element),
         do: retry(fn -> NativeV.constant_dirty(device, type, shape, element) end)
  end

  defp retry(call) do
    case call.() do
      {:error, :out_of_memory, _} -> collect(call)
      other -> other
    end
  end

  # The garbage collector does not see device memory: references this process no longer holds may own a lot of it.
  defp collect(call) do
    :erlang.garbage_collect()
    call.()
  end
end
