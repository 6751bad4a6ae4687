defmodule Nx.Vulkan.Product do
  @moduledoc false
  # `Nx.Vulkan.dot/9`: a `deftransform` compiles only where Nx is, so that a macro puts it there.

  defmacro __using__(_opts) do
    if Code.ensure_loaded?(Nx) do
      quote do
        import Nx.Defn, only: [deftransform: 1, deftransform: 2]

        @doc """
        `Nx.dot/6` with what becomes of it: `fun` gets the product and `operands`, tensors that broadcast to it.

            Nx.Vulkan.dot(x, [1], [], w, [0], [], [bias], fn product, bias ->
              product |> Nx.add(bias) |> Nx.max(0)
            end)

        On a device this is one request where a kernel takes it: sums are kept in f32 at least, `fun` is computed in that type, and
        the result is rounded once. For that `fun` works element by element on floats with ops of `Nx`, uses all its operands and
        no other tensors. Whatever else it does, and on other backends, it is called with `Nx.dot/6`. It works in `defn`, and with
        `grad`. `fun` may be called more than once. Its numbers become part of the kernel: one that changes from call to call, such as
        a learning rate, is better one of the operands.

        ## Options

          * `:precision` - that of this product, as for `Nx.Vulkan.VulkanoBackend`, whose own holds without it. Products of
            its gradient have that of the backend or the compiler.
        """
        deftransform(
          dot(a, contract_a, batch_a, b, contract_b, batch_b, operands, fun, opts \\ [])
        )

        deftransform dot(a, contract_a, batch_a, b, contract_b, batch_b, operands, fun, opts)
                     when is_list(operands) and is_function(fun, length(operands) + 1) do
          unquote(__MODULE__).dot(
            {a, contract_a, batch_a},
            {b, contract_b, batch_b},
            operands,
            fun,
            opts
          )
        end
      end
    end
  end

  if Code.ensure_loaded?(Nx) do
    alias Nx.Vulkan.Precision

    @doc """
    `Nx.Vulkan.dot/9`, of factors that are tensors with the axes to contract and those of batches.
    """
    def dot({a, contract_a, batch_a}, {b, contract_b, batch_b}, operands, fun, opts) do
      precision = Keyword.validate!(opts, [:precision])[:precision]
      if precision, do: Precision.validate!(precision)
      tensors = traced(Enum.map([a, b | operands], &Nx.to_tensor/1))
      [a, b | operands] = tensors
      plain = &Nx.dot(&1, contract_a, batch_a, &2, contract_b, batch_b)

      with true <- Enum.all?(tensors, &(&1.vectorized_axes == [])),
           {[a_axes, a_batch], [b_axes, b_batch]} <-
             {axes(a, [contract_a, batch_a]), axes(b, [contract_b, batch_b])} do
        struct = %Nx.Vulkan.Dot{
          batch_a: a_batch,
          batch_b: b_batch,
          contract_a: a_axes,
          contract_b: b_axes,
          precision: precision
        }

        finished(struct, tensors, plain, fun) ||
          apply(fun, [alone(struct, a, b, plain) | operands])
      else
        _ -> apply(fun, [plain.(a, b) | operands])
      end
    end

    # One request of the product and what becomes of it; nil where that is no epilogue.
    defp finished(struct, [_, _ | operands] = tensors, plain, fun) do
      with {:ok, default} <- default(length(operands), plain, fun),
           {text, out} <- Nx.Vulkan.Epilogue.of(fun, plain, tensors) do
        Nx.block(%{struct | epilogue: text}, tensors, out, default)
      else
        _ -> nil
      end
    end

    # Only as a block the product has a precision of its own.
    defp alone(%{precision: nil}, a, b, plain), do: plain.(a, b)

    defp alone(struct, a, b, plain) do
      [x, y] =
        for {t, at} <- [{a, 0}, {b, 1}], do: Nx.Defn.Expr.parameter(Nx.to_template(t), :root, at)

      out = Nx.to_template(plain.(x, y))
      Nx.block(struct, [a, b], out, fn _struct, a, b -> plain.(a, b) end)
    end

    # The arguments of a block in defn are expressions, all of them.
    defp traced(tensors) do
      if Enum.any?(tensors, &is_struct(&1.data, Nx.Defn.Expr)),
        do: Enum.map(tensors, &Nx.Defn.Expr.tensor/1),
        else: tensors
    end

    defp axes(tensor, lists),
      do: Enum.map(lists, &Nx.Shape.normalize_axes(tensor.shape, &1, tensor.names))

    # A block's default function takes the tensors one by one.
    for count <- 0..4 do
      operands = Macro.generate_arguments(count, __MODULE__)

      defp default(unquote(count), plain, fun) do
        {:ok,
         fn _struct, a, b, unquote_splicing(operands) ->
           fun.(plain.(a, b), unquote_splicing(operands))
         end}
      end
    end

    defp default(_count, _plain, _fun), do: :error
  end
end
