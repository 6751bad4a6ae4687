if Code.ensure_loaded?(Nx) do
  defmodule Nx.Vulkan.Closure do
    @moduledoc false
    # Closures of `Nx.reduce` and `Nx.window_reduce` as ops and as expressions. What one computes of an element and an accumulator
    # is found by calling it with tensors of a backend, this module, that only writes down which ops it was asked for:
    # Nx.Defn.Evaluator hands on closures that take no expressions.

    alias Nx.Tensor, as: T
    alias Nx.Vulkan.Ops

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

    # As the attribute takes.
    @most_calls 64

    @doc """
    What `fun` is for `op`, `:reduce` or `:window_reduce`, on a tensor and an accumulator like these, to a result of type `type`:
    `{op, fold}`, an op and that over axes or windows, the attribute `expression`, or `nil`.
    """
    def kind(:reduce, type, tensor, acc, fun) do
      case op(fun, tensor.type, acc.type) do
        {op, ^type} -> {op, elem(@folds[op], 0)}
        _ -> of_type(expression(fun, tensor.type, acc.type), type)
      end
    end

    # Elements are those of a tensor that is padded with the accumulator.
    def kind(:window_reduce, type, tensor, acc, fun),
      do: if(Nx.Type.merge(tensor.type, acc.type) == type, do: windows(type, fun))

    defp windows(type, fun) do
      with {op, ^type} <- op(fun, type, type), {_, fold} when fold != nil <- @folds[op] do
        {op, fold}
      else
        _ -> of_type(expression(fun, type, type), type)
      end
    end

    defp of_type({text, type}, type), do: text
    defp of_type(_, _), do: nil

    @doc """
    The attributes of a request of `op` with an expression.
    """
    def attrs(:reduce, text, [tensor, opts]),
      do: Keyword.put(Ops.attrs(:sum, [tensor, opts]), :expression, text)

    def attrs(:window_reduce, text, [tensor, window, opts]),
      do: Keyword.put(Ops.attrs(:window_sum, [tensor, window, opts]), :expression, text)

    @doc """
    `Nx.reduce` on `backend`: its result, where the closure is an op; `{operands, attributes}` of a request, where it is an
    expression; else `nil`.
    """
    def reduce(backend, out, tensor, acc, opts, fun) do
      case kind(:reduce, out.type, tensor, acc, fun) do
        {op, fold} ->
          folded = if fold in [:all, :any], do: tensor, else: cast(backend, tensor, out.type)
          apply(backend, op, [out, apply(backend, fold, [out, folded, opts]), acc])

        nil ->
          nil

        text ->
          request(backend, out.type, acc, tensor, attrs(:reduce, text, [tensor, opts]))
      end
    end

    @doc """
    The same of `Nx.window_reduce`, whose padding is the accumulator.
    """
    def window_reduce(backend, out, tensor, acc, window, opts, fun) do
      case kind(:window_reduce, out.type, tensor, acc, fun) do
        {op, fold} ->
          padding = Enum.map(opts[:padding], fn {low, high} -> {low, high, 0} end)
          padded = %{tensor | shape: Nx.Shape.pad(tensor.shape, padding), type: out.type}

          padded =
            if Enum.all?(padding, &(&1 == {0, 0, 0})),
              do: cast(backend, tensor, out.type),
              else: backend.pad(padded, tensor, acc, padding)

          opts = Keyword.put(opts, :padding, Enum.map(padding, fn _ -> {0, 0} end))
          apply(backend, op, [out, apply(backend, fold, [out, padded, window, opts]), acc])

        nil ->
          nil

        text ->
          attrs = attrs(:window_reduce, text, [tensor, window, opts])
          request(backend, out.type, acc, cast(backend, tensor, out.type), attrs)
      end
    end

    defp request(backend, type, acc, tensor, attrs),
      do: if(holds?(type, acc), do: {[tensor, cast(backend, acc, type)], attrs})

    defp cast(_backend, %T{type: type} = tensor, type), do: tensor
    defp cast(backend, tensor, type), do: backend.as_type(%{tensor | type: type}, tensor)

    # Whether a scalar is the same number in that type.
    defp holds?(type, %T{type: type}), do: true
    defp holds?({:c, _}, _), do: false
    defp holds?(_, %T{type: {:c, _}}), do: false

    defp holds?(type, scalar) do
      number = Nx.to_number(scalar)

      number ==
        number |> Nx.tensor(type: type, backend: Nx.BinaryBackend) |> Nx.to_number()
    end

    @doc """
    The op of `fun` and the type in which it goes on from an element of type `element` and an accumulator of type `acc`; `nil`
    where it is none of those that take both arguments, in either order, and nothing else.
    """
    def op(fun, element, acc) do
      with {op, type} <- one(fun, element, acc),
           {^op, ^type} <- one(fun, element, type) do
        {op, type}
      else
        _ -> nil
      end
    end

    defp one(fun, element, acc) do
      with %T{type: type, data: %{made: {_, op, operands}}} when is_map_key(@folds, op) <-
             call(fun, element, acc, 1),
           [:acc, :element] <- operands |> Enum.map(&argument/1) |> Enum.sort() do
        {op, type}
      else
        _ -> nil
      end
    end

    defp argument(%T{data: %__MODULE__{made: {_, name, []}}}), do: name
    defp argument(_), do: nil

    @doc """
    The attribute `expression` of docs/ops.md, which is what `fun` makes of an element, i0, and an accumulator, i1, and the type in
    which it goes on; `nil` where it is no such expression of real types.

    A closure that compares its arguments themselves, as `Kernel.max/2` does, gives something else where tensors have another order.
    """
    def expression(fun, element, acc) do
      with {text, type} <- text(fun, element, acc, 1),
           {^text, ^type} <- text(fun, element, type, -1) do
        {text, type}
      else
        _ -> nil
      end
    end

    defp text(fun, element, acc, order) do
      with %T{type: type, data: %{made: {_, _, [_ | _]}}} = t <- call(fun, element, acc, order),
           {:ok, {_, calls, _}} <- term(t, {[], %{}}),
           true <- length(calls) <= @most_calls do
        {calls |> Enum.reverse() |> Enum.join("; "), type}
      else
        _ -> nil
      end
    end

    # Whatever goes wrong in a closure is told by whoever calls it with numbers, and other callbacks are not here.
    defp call(fun, element, acc, order) do
      arguments = [parameter(order, :element, element), parameter(2 * order, :acc, acc)]

      # Numbers are tensors of the default backend.
      case Nx.with_default_backend(Nx.BinaryBackend, fn -> apply(fun, arguments) end) do
        %T{shape: {}, vectorized_axes: [], data: %__MODULE__{}} = t -> t
        _ -> nil
      end
    rescue
      _ -> nil
    catch
      _, _ -> nil
    end

    defp parameter(key, name, type),
      do: %{Nx.template({}, type) | data: %__MODULE__{made: {key, name, []}}}

    # What an operand is called, and the calls before it, the last one first.
    defp term(%T{data: %__MODULE__{made: {_, :element, []}}}, {calls, known}),
      do: {:ok, {"i0", calls, known}}

    defp term(%T{data: %__MODULE__{made: {_, :acc, []}}}, {calls, known}),
      do: {:ok, {"i1", calls, known}}

    defp term(%T{data: %__MODULE__{made: {key, _, _}}}, {calls, known})
         when is_map_key(known, key),
         do: {:ok, {known[key], calls, known}}

    defp term(%T{data: %__MODULE__{made: {key, op, operands}}, type: type}, acc) do
      with {:ok, {terms, calls, known}} <- terms(operands, acc),
           name when is_binary(name) <- name(type) do
        call = "#{op}(#{Enum.join(terms, ", ")}):#{name}"
        at = "%#{length(calls)}"
        {:ok, {at, [call | calls], Map.put(known, key, at)}}
      end
    end

    defp term(%T{data: %Nx.BinaryBackend{}, shape: {}, type: type} = t, {calls, known}) do
      with name when is_binary(name) <- name(type),
           do: {:ok, {"#{number(Nx.to_number(t))}:#{name}", calls, known}}
    end

    defp term(_, _), do: nil

    defp terms([], {calls, known}), do: {:ok, {[], calls, known}}

    defp terms([operand | rest], acc) do
      with {:ok, {term, calls, known}} <- term(operand, acc),
           {:ok, {terms, calls, known}} <- terms(rest, {calls, known}),
           do: {:ok, {[term | terms], calls, known}}
    end

    defp name({:c, _}), do: nil
    defp name(type), do: Nx.Type.to_string(type)

    defp number(:nan), do: "nan"
    defp number(:infinity), do: "inf"
    defp number(:neg_infinity), do: "-inf"
    defp number(number), do: to_string(number)

    @shapes [[:tensor], [:left, :right], [:pred, :on_true, :on_false], [:tensor, :min, :max]]

    for {name, arguments, _, :native} <- Ops.callbacks(), arguments in @shapes do
      arguments = Enum.map(arguments, &Macro.var(&1, __MODULE__))

      @doc false
      def unquote(name)(%T{shape: {}} = out, unquote_splicing(arguments)) do
        made(out, unquote(name), unquote(arguments))
      end
    end

    # Keys of calls lie beyond those of the arguments, on the same side of 0.
    defp made(out, op, operands) do
      order =
        Enum.find_value(operands, fn
          %T{data: %__MODULE__{made: {key, _, _}}} -> div(key, abs(key))
          _ -> nil
        end)

      key = order * (3 + System.unique_integer([:positive, :monotonic]))
      %{out | data: %__MODULE__{made: {key, op, operands}}}
    end

    @doc false
    def block(struct, _out, arguments, fun), do: apply(fun, [struct | arguments])
  end
end
