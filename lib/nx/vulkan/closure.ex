if Code.ensure_loaded?(Nx) do
  defmodule Nx.Vulkan.Closure do
    @moduledoc false
    # Closures of `Nx.reduce` and `Nx.window_reduce` as ops. What one computes of an element and an accumulator is found by
    # calling it with tensors of a backend, this module, that only writes down which op it was asked for: Nx.Defn.Evaluator
    # hands on closures that take no expressions.

    alias Nx.Tensor, as: T

    @enforce_keys [:made]
    defstruct @enforce_keys

    @folds %{
      add: {:sum, :window_sum},
      multiply: {:product, :window_product},
      max: {:reduce_max, :window_max},
      min: {:reduce_min, :window_min},
      logical_and: {:all, nil},
      logical_or: {:any, nil}
    }

    @doc """
    `Nx.reduce` on `backend`, as the op over axes and once more on the accumulator; `nil` where the closure is no op.
    """
    def reduce(backend, out, tensor, acc, opts, fun) do
      with {op, type} when type == out.type <- op(fun, tensor.type, acc.type) do
        {fold, _} = @folds[op]
        tensor = if fold in [:all, :any], do: tensor, else: cast(backend, tensor, type)
        apply(backend, op, [out, apply(backend, fold, [out, tensor, opts]), acc])
      else
        _ -> nil
      end
    end

    @doc """
    The same of `Nx.window_reduce`, whose padding is the accumulator.
    """
    def window_reduce(backend, out, tensor, acc, window, opts, fun) do
      with true <- Nx.Type.merge(tensor.type, acc.type) == out.type,
           {op, type} when type == out.type <- op(fun, out.type, out.type),
           {_, fold} when fold != nil <- @folds[op] do
        padding = Enum.map(opts[:padding], fn {low, high} -> {low, high, 0} end)
        padded = %{tensor | shape: Nx.Shape.pad(tensor.shape, padding), type: type}

        padded =
          if Enum.all?(padding, &(&1 == {0, 0, 0})),
            do: cast(backend, tensor, type),
            else: backend.pad(padded, tensor, acc, padding)

        opts = Keyword.put(opts, :padding, Enum.map(padding, fn _ -> {0, 0} end))
        apply(backend, op, [out, apply(backend, fold, [out, padded, window, opts]), acc])
      else
        _ -> nil
      end
    end

    defp cast(_backend, %T{type: type} = tensor, type), do: tensor
    defp cast(backend, tensor, type), do: backend.as_type(%{tensor | type: type}, tensor)

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

    for {op, _} <- @folds do
      @doc false
      def unquote(op)(out, %T{data: %__MODULE__{made: a}}, %T{data: %__MODULE__{made: b}})
          when {a, b} in [{:element, :acc}, {:acc, :element}],
          do: %{out | data: %__MODULE__{made: {unquote(op), [a, b]}}}
    end
  end
end
