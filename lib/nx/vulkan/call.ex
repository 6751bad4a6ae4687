if Code.ensure_loaded?(Nx) do
  defmodule Nx.Vulkan.Call do
    @moduledoc false
    # A call of a function of Nx as the request that its last op or block makes.

    alias Nx.Defn.Composite
    alias Nx.Tensor, as: T
    alias Nx.Vulkan.{Block, Closure, Movement, Ops}

    @views ~w(reshape squeeze transpose broadcast reverse bitcast)a
    # What the last step of a function may be that no request asks for.
    @none ~w(cond while fun metadata token runtime_call attach_token)a

    @doc """
    `{op, operands, outs, attrs}` of `Nx.function(arguments…)`. Nothing is computed; templates stand for tensors.
    """
    def request(_function, arguments) when not is_list(arguments) do
      raise ArgumentError, "expected a list of arguments, got: #{inspect(arguments)}"
    end

    def request(function, arguments) when is_atom(function),
      do: request(Nx, function, arguments)

    def request({module, function}, arguments) when is_atom(module) and is_atom(function),
      do: request(module, function, arguments)

    def request(function, _arguments) do
      raise ArgumentError,
            "expected the name of a function of Nx as an atom, or a module and such a name, got: #{inspect(function)}"
    end

    defp request(module, function, arguments) do
      out = module |> trace(function, arguments) |> Composite.traverse(&Nx.devectorize/1)
      [%T{data: %{op: op, args: args}} = first | _] = Composite.flatten_list([out])

      case {op, args} do
        {:block, [struct, operands | _]} ->
          block(struct, operands, out, function)

        {:elem, [%T{data: %{op: :block, args: [struct, operands | _]}}, _]} ->
          block(struct, operands, out, function)

        {op, [tensor, acc | rest]} when op in [:reduce, :window_reduce] ->
          closure(op, first, tensor, acc, rest, List.last(arguments))

        {:slice, [tensor, starts, lengths, strides]} when is_list(starts) ->
          slice(first, tensor, starts, lengths, strides, function)

        {op, _} when op in @views ->
          view!(function, if(module == Nx, do: "is", else: "ends with"))

        {op, _} when op in @none ->
          raise ArgumentError,
                "expected a function that a request can ask for, got: #{function}, which ends with #{inspect(op)}: " <>
                  "compile it and look at Nx.Vulkan.stats/1"

        {op, _} when op in [:parameter, :constant, :tensor] ->
          raise ArgumentError,
                "expected a function that a request can ask for, got: #{function} of arguments that " <>
                  "leave nothing to compute"

        {:iota, [axis]} ->
          {op, [], [{first.type, first.shape}], axis: List.wrap(axis)}

        # Nx makes a vector of a scalar that is reduced or sorted.
        {op, [%T{shape: {}} = scalar, opts]} when is_list(opts) ->
          {inputs, attrs} = Ops.request(op, [Nx.template({1}, scalar.type), opts])
          {op, inputs, [{first.type, first.shape}], attrs}

        _ ->
          {inputs, attrs} = Ops.request(op, args)
          {op, inputs, [{first.type, first.shape}], attrs}
      end
    end

    defp view!(function, verb \\ "is") do
      raise ArgumentError,
            "expected a function that a request can ask for, got: #{function}, which #{verb} a view: " <>
              "nothing is computed, or one copy where an op needs it contiguous"
    end

    # Of starts that nobody knows here.
    defp slice(out, tensor, starts, lengths, strides, function) do
      # A trace makes tensors of numbers that stand beside tensors.
      starts =
        Enum.map(starts, fn
          %T{data: %{op: :constant, args: [start]}} -> start
          start -> start
        end)

      case Ops.tensors(starts) do
        [] ->
          view!(function)

        dynamic ->
          {_, extents, _, attrs} =
            Movement.slice(tensor.shape, out.shape, starts, lengths, strides)

          seen = %{tensor | shape: List.to_tuple(extents)}
          {:dynamic_slice, [seen | dynamic], [{out.type, out.shape}], attrs}
      end
    end

    defp block(struct, operands, out, function) do
      case Block.request(struct, out, Block.widened(struct, operands)) do
        {inputs, outs, attrs} ->
          {Block.op(struct), inputs, outs, attrs}

        nil ->
          raise ArgumentError,
                "expected a function that a request can ask for, got: #{function}, whose block " <>
                  "#{inspect(struct)} runs Nx's own function: its types or its fields have no place in a request"
      end
    end

    defp closure(op, out, tensor, acc, rest, fun) do
      arguments = [tensor | Enum.drop(rest, -1)]
      outs = [{out.type, out.shape}]

      case Closure.kind(op, out.type, tensor, acc, fun) do
        {_, fold} ->
          {fold, [tensor], outs, Ops.attrs(fold, arguments)}

        nil ->
          closure!(fun)

        text ->
          attrs = Closure.attrs(op, text, arguments)
          {op, [tensor, %{acc | type: out.type}], outs, attrs}
      end
    end

    defp closure!(fun) do
      raise ArgumentError,
            "expected a closure that is an expression of elementwise ops, got: #{inspect(fun)}, " <>
              "which Nx.BinaryBackend calls"
    end

    # The call as Nx.Defn writes it down.
    defp trace(module, function, arguments) do
      {slots, tensors} = slots(arguments, [])
      call = fn tensors -> apply(module, function, fill(slots, tensors)) end
      Nx.Defn.debug_expr_apply(call, [tensors |> Enum.reverse() |> List.to_tuple()])
    rescue
      # A closure that reads its arguments.
      error in ArgumentError ->
        fun = List.last(arguments)
        reads? = is_function(fun, 2) and error.message =~ "on Nx.Defn.Expr"
        if reads?, do: closure!(fun), else: reraise(error, __STACKTRACE__)
    end

    # Tensors are found in lists too.
    defp slots(arguments, tensors) do
      Enum.map_reduce(arguments, tensors, fn
        %T{} = tensor, tensors ->
          {{:tensor, length(tensors)}, [tensor | tensors]}

        [_ | _] = list, tensors ->
          if Enum.any?(list, &is_struct(&1, T)) do
            {slots, tensors} = slots(list, tensors)
            {{:list, slots}, tensors}
          else
            {{:other, list}, tensors}
          end

        other, tensors ->
          {{:other, other}, tensors}
      end)
    end

    defp fill(slots, tensors) do
      Enum.map(slots, fn
        {:tensor, index} -> elem(tensors, index)
        {:list, slots} -> fill(slots, tensors)
        {:other, other} -> other
      end)
    end
  end
end
