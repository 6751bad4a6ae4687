defmodule Nx.Vulkan.Trace do
  @moduledoc false
  # The expression of a function, by a compiler that gives it in the place of a result.
  @behaviour Nx.Defn.Compiler

  def of(fun, args), do: apply(Nx.Defn.jit(fun, compiler: __MODULE__), args)

  @impl true
  def __jit__(_key, vars, fun, _args, _opts), do: [fun.(vars)]
  @impl true
  def __compile__(_key, vars, fun, _opts), do: fn _ -> [fun.(vars)] end
  @impl true
  def __partitions_options__(opts), do: [opts]
  @impl true
  def __to_backend__(_opts), do: {Nx.Vulkan.VulkanoBackend, []}
end
