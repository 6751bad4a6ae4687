defmodule Nx.Vulkan.Report do
  @moduledoc false
  # Tells the world that an op did not run on the device: a counter, a telemetry event, or a raise.

  alias Nx.Vulkan.{Error, NativeV}

  @doc """
  Reports that `op` goes to `:host` (the host's CPU kernels) or to Nx.BinaryBackend. `operands` are `{type, shape}`.

  Raises under `config :nx_vulkan, fallback: :error`.
  """
  def fallback(op, to, operands) do
    case Application.get_env(:nx_vulkan, :fallback, :binary) do
      default when default in [:binary, nil] ->
        :ok

      :error ->
        Error.raise!(:fallback_forbidden, forbidden(op, to, operands))

      other ->
        raise ArgumentError, "expected :fallback to be :binary or :error, got: #{inspect(other)}"
    end

    {types, shapes} = Enum.unzip(operands)
    NativeV.count_fallback(op)

    if Code.ensure_loaded?(:telemetry) do
      :telemetry.execute([:nx_vulkan, :fallback], %{count: 1}, %{
        op: op,
        to: to,
        types: types,
        shapes: shapes
      })
    end

    :ok
  end

  defp forbidden(op, to, operands) do
    on =
      Enum.map_join(operands, ", ", fn {{kind, bits}, shape} ->
        "#{kind}#{bits}#{inspect(shape)}"
      end)

    "no pack runs #{op} on #{on}, and fallback: :error forbids #{inspect(to)}; " <>
      "load a pack that runs it, or set config :nx_vulkan, fallback: :binary"
  end
end
