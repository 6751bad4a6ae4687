defmodule Nx.Vulkan.Precision do
  @moduledoc false
  # The option `:precision`: its values, and the attribute of docs/ops.md that requests have for it.

  @values [:default, :high, :highest]

  @doc """
  Raises unless it is a value of the option.
  """
  def validate!(value) when value in @values, do: value

  def validate!(value) do
    raise ArgumentError,
          "expected :precision to be :default, :high or :highest, got: #{inspect(value)}"
  end

  @doc """
  Whether requests of `op` have the attribute.
  """
  defguard has_precision(op) when op in [:dot, :conv]

  @doc """
  The attributes of a request, with that of a backend's options where the op has it.
  """
  def add(attrs, op, opts) when has_precision(op) do
    case opts[:precision] do
      value when value in [nil, :default] -> attrs
      value -> [{:precision, value} | attrs]
    end
  end

  def add(attrs, _op, _opts), do: attrs

  if Code.ensure_loaded?(Nx) do
    @doc """
    The block, with the option of a backend where it has none of its own.
    """
    def fill(%name{precision: nil} = struct, opts) when name in [Nx.Vulkan.Dot, Nx.Vulkan.Conv],
      do: %{struct | precision: opts[:precision]}

    def fill(struct, _opts), do: struct

    @doc """
    The options of the process's default backend, where that is ours.
    """
    def backend_opts do
      case Nx.default_backend() do
        {Nx.Vulkan.VulkanoBackend, opts} -> opts
        _ -> []
      end
    end
  end
end
