defmodule Nx.Vulkan.Product do
  @moduledoc false
  # `Nx.Vulkan.dot/9` and `Nx.Vulkan.conv/5`: a `deftransform` compiles only where Nx is, so that a macro puts it there.

  defmacro __using__(_opts) do
    if Code.ensure_loaded?(Nx) do
      quote do
        import Nx.Defn, only: [deftransform: 1, deftransform: 2]

        @doc """
        `Nx.conv/3` with what becomes of it: `fun` gets the convolution and `operands`, tensors that broadcast to it.

        A layer of `{batch, channels, height, width}`, whose bias has the shape `{filters, 1, 1}`:

            Nx.Vulkan.conv(x, kernel, [bias], fn conv, bias -> conv |> Nx.add(bias) |> Nx.max(0) end, padding: :same)

        What is said of `dot/9` holds here. The sums of each filter are one request with what follows them where a kernel takes
        it, so that a bias and an activation neither read nor write the result once more. Operands may differ along the axis of
        the filters, the axes in front of it and those behind it, each as a whole: a bias, a scale of each part of a batch, a residual.

            iex> x = Nx.iota({1, 1, 3, 3}, type: :f32)
            iex> kernel = Nx.tensor([1.0, -1.0]) |> Nx.reshape({2, 1, 1, 1})
            iex> bias = Nx.tensor([0.0, 6.0]) |> Nx.reshape({2, 1, 1})
            iex> layer = Nx.Vulkan.conv(x, kernel, [bias], fn conv, bias -> conv |> Nx.add(bias) |> Nx.max(0) end)
            iex> Nx.shape(layer)
            {1, 2, 3, 3}
            iex> Nx.to_flat_list(layer[[0, 1]])
            [6.0, 5.0, 4.0, 3.0, 2.0, 1.0, 0.0, 0.0, 0.0]

        ## Options

        Those of `Nx.conv/3`, and

          * `:precision` - that of this convolution, as for `Nx.Vulkan.VulkanoBackend`, whose own holds without it, and
            for vectorized tensors. Convolutions of its gradient have that of the backend or the compiler.
        """
        deftransform(conv(tensor, kernel, operands, fun, opts \\ []))

        deftransform conv(tensor, kernel, operands, fun, opts) do
          unquote(__MODULE__).conv(tensor, kernel, operands, fun, opts)
        end

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

        deftransform dot(a, contract_a, batch_a, b, contract_b, batch_b, operands, fun, opts) do
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
    alias Nx.Defn.Expr
    alias Nx.Tensor, as: T
    alias Nx.Vulkan.{Ops, Precision}

    # The options of Nx.conv/3.
    @of_conv ~w(padding strides input_dilation kernel_dilation feature_group_size batch_group_size
                input_permutation kernel_permutation output_permutation)a

    @doc """
    `Nx.Vulkan.dot/9`, of factors that are tensors with the axes to contract and those of batches.
    """
    def dot({a, contract_a, batch_a}, {b, contract_b, batch_b}, operands, fun, opts) do
      check!("dot/9", operands, fun, opts)
      precision = precision!(Keyword.validate!(opts, [:precision]))
      plain = &Nx.dot(&1, contract_a, batch_a, &2, contract_b, batch_b)

      product([a, b | operands], plain, fun, fn a, b ->
        [a_axes, a_batch] = axes(a, [contract_a, batch_a])
        [b_axes, b_batch] = axes(b, [contract_b, batch_b])

        %Nx.Vulkan.Dot{
          batch_a: a_batch,
          batch_b: b_batch,
          contract_a: a_axes,
          contract_b: b_axes,
          precision: precision
        }
      end)
    end

    @doc """
    `Nx.Vulkan.conv/5`.
    """
    def conv(x, kernel, operands, fun, opts) do
      check!("conv/5", operands, fun, opts)
      Keyword.validate!(opts, [:precision | @of_conv])
      {own, opts} = Keyword.split(opts, [:precision])
      precision = precision!(own)
      plain = &Nx.conv(&1, &2, opts)

      product([x, kernel | operands], plain, fun, fn x, kernel ->
        # Of vectorized tensors Nx makes a convolution of other options.
        if not vectorized?([x, kernel]) do
          # Nx fills in what the options leave out.
          %T{data: %Expr{op: :conv, args: args}} =
            plain.(parameter(x, 0), parameter(kernel, 1))

          struct!(Nx.Vulkan.Conv, [precision: precision] ++ Ops.attrs(:conv, args))
        end
      end)
    end

    defp check!(name, operands, fun, opts) do
      expects = fn what, got ->
        raise ArgumentError, "Nx.Vulkan.#{name} expects #{what}, got: #{inspect(got)}"
      end

      is_list(operands) || expects.("a list of further operands", operands)
      arity = length(operands) + 1
      takes = "a function of the result and each further operand, which are #{arity} arguments"
      is_function(fun, arity) || expects.(takes, fun)
      Keyword.keyword?(opts) || expects.("its options as a keyword list", opts)
    end

    defp precision!(opts) do
      if opts[:precision] != nil, do: Precision.validate!(opts[:precision])
    end

    # A product by `plain` of the first two tensors and what `fun` makes of it; `struct` gives its block.
    defp product(tensors, plain, fun, struct) do
      tensors = traced(Enum.map(tensors, &Nx.to_tensor/1))
      [a, b | operands] = tensors

      struct = struct.(a, b)

      (not vectorized?(tensors) && finished(struct, tensors, plain, fun)) ||
        apply(fun, [alone(struct, a, b, plain) | operands])
    end

    # One request of the product and what becomes of it; nil where that is no epilogue.
    defp finished(struct, [_, _ | operands] = tensors, plain, fun) do
      with {:ok, default} <- default(length(operands), plain, fun),
           {text, %{type: type} = out} <- Nx.Vulkan.Epilogue.of(fun, plain, tensors),
           true <- gives?(struct, type) do
        Nx.block(%{struct | epilogue: text}, tensors, out, default)
      else
        _ -> nil
      end
    end

    # Results of convolutions are floats.
    defp gives?(%Nx.Vulkan.Conv{}, {kind, _}), do: kind in [:f, :bf]
    defp gives?(_, _), do: true

    # Only as a block the product has a precision of its own.
    defp alone(nil, a, b, plain), do: plain.(a, b)
    defp alone(%{precision: nil}, a, b, plain), do: plain.(a, b)

    defp alone(struct, %{vectorized_axes: []} = a, %{vectorized_axes: []} = b, plain) do
      out = Nx.to_template(plain.(parameter(a, 0), parameter(b, 1)))
      Nx.block(struct, [a, b], out, fn _struct, a, b -> plain.(a, b) end)
    end

    # Vectorized axes are batches, in front of the others.
    defp alone(struct, a, b, _plain) do
      [a, b] = Nx.broadcast_vectors([a, b], align_ranks: false)
      vectors = a.vectorized_axes
      count = length(vectors)
      behind = fn axes -> Enum.map(axes, &(&1 + count)) end

      [batch_a, batch_b] =
        for axes <- [struct.batch_a, struct.batch_b],
            do: Enum.to_list(0..(count - 1)) ++ behind.(axes)

      [contract_a, contract_b] = Enum.map([struct.contract_a, struct.contract_b], behind)

      struct = %{
        struct
        | batch_a: batch_a,
          batch_b: batch_b,
          contract_a: contract_a,
          contract_b: contract_b
      }

      [a, b] = Enum.map([a, b], &Nx.devectorize(&1, keep_names: false))
      plain = &Nx.dot(&1, contract_a, batch_a, &2, contract_b, batch_b)
      struct |> alone(a, b, plain) |> Nx.vectorize(vectors)
    end

    defp parameter(t, at), do: t |> Nx.to_template() |> Expr.parameter(:root, at)
    defp vectorized?(tensors), do: Enum.any?(tensors, &(&1.vectorized_axes != []))

    # The arguments of a block in defn are expressions, all of them.
    defp traced(tensors) do
      if Enum.any?(tensors, &is_struct(&1.data, Expr)),
        do: Enum.map(tensors, &Expr.tensor/1),
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
