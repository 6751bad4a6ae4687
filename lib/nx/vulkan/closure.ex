if Code.ensure_loaded?(Nx) do
  defmodule Nx.Vulkan.Closure do
    @moduledoc false
    # Closures of `Nx.reduce` and `Nx.window_reduce` as ops. What one computes of an element and an accumulator is found by
    # calling it with tensors of a backend, this module, that only writes down which op it was asked for: Nx.Defn.Evaluator
    # hands on closures that take no expressions.

    alias Nx.Tensor, as: T

    @enforce_keys [:made]
    defstruct @enforce_keys

    @ops ~w(add multiply max min logical_and logical_or)a

    @doc """
    The op of `fun` and the type in which it goes on from an element of type `element` and an accumulator of type `acc`; `nil`
    where it is none of those that take both arguments, in either order, and nothing else.
    """
    def op(fun, element, acc) do
      with {op, type} <- call(fun, element, acc),
           {^op, ^type} <- call(fun, element, type) do
        {op, type}
      end
    end

    # Whatever goes wrong in a closure is told by whoever calls it with numbers, and other callbacks are not here.
    defp call(fun, element, acc) do
      case fun.(argument(:element, element), argument(:acc, acc)) do
        %T{type: type, shape: {}, data: %__MODULE__{made: {op, [_, _]}}} -> {op, type}
        _ -> nil
      end
    rescue
      _ -> nil
    catch
      _, _ -> nil
    end

    defp argument(name, type), do: %{Nx.template({}, type) | data: %__MODULE__{made: name}}

    for op <- @ops do
      @doc false
      def unquote(op)(out, %T{data: %__MODULE__{made: a}}, %T{data: %__MODULE__{made: b}})
          when {a, b} in [{:element, :acc}, {:acc, :element}],
          do: %{out | data: %__MODULE__{made: {unquote(op), [a, b]}}}
    end
  end
end
