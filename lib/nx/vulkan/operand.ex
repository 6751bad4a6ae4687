if Code.ensure_loaded?(Nx) do
  defmodule Nx.Vulkan.Operand do
    @moduledoc false
    # Operands that have no result: Nx.BinaryBackend raises for them. What the VM knows without asking the device raises
    # here as well; what only the device knows raises when the result is read, or is a NaN where it is a float.

    import Nx.Vulkan.Packed, only: [is_packed: 1]

    alias Nx.Tensor, as: T
    alias Nx.Vulkan.{NativeV, VulkanoBackend}

    # Elements of a tensor in the VM's memory that are looked at: the device is quicker with more.
    @few 1024

    @doc """
    Raises when the VM knows that the operands are ones for which `op` is not defined.
    """
    def check!(op, [%T{type: {left, _}}, %T{type: {kind, _}} = right])
        when op in [:quotient, :remainder, :pow, :left_shift, :right_shift] and left in [:s, :u] and
               kind in [:s, :u] do
      for n <- elements(right), do: defined!(op, n)
      :ok
    end

    def check!(:remainder, [%T{type: {kind, _}} = left, %T{} = right]) when kind in [:f, :bf] do
      case {literal(left), literal(right)} do
        {a, b} when is_nil(a) or is_nil(b) -> :ok
        {a, b} when is_number(a) and is_number(b) -> :ok
        # Infinities and NaN have no remainder: this raises as Nx.BinaryBackend does.
        {a, b} -> :math.fmod(a, b)
      end
    end

    def check!(:gather, [tensor, indices, opts]), do: inside!(tensor, opts[:axes], indices)

    def check!(op, [tensor, indices, _updates, opts]) when op in [:indexed_add, :indexed_put],
      do: inside!(tensor, opts[:axes], indices)

    def check!(:triangular_solve, [%T{shape: shape} = a, _b, _opts]) do
      n = elem(shape, tuple_size(shape) - 1)

      for matrix <- Enum.chunk_every(elements(a), n * n),
          pivot <- Enum.take_every(matrix, n + 1),
          zero?(pivot),
          do: raise(ArgumentError, "can't solve for singular matrix")

      :ok
    end

    def check!(_op, _arguments), do: :ok

    @doc """
    The arguments of a step whose elements `check!/2` or `check_block!/2` looks at.
    """
    def looked_at(%{op: :block, struct: %name{}, args: [_tensor, indices]})
        when name in [Nx.Block.Take, Nx.Block.TakeAlongAxis],
        do: [indices]

    def looked_at(%{op: op, args: [_tensor, indices | _]})
        when op in [:gather, :indexed_add, :indexed_put],
        do: [indices]

    def looked_at(%{op: op, out: %T{type: {kind, _}}, args: [_left, right]})
        when op in [:quotient, :remainder, :pow, :left_shift, :right_shift] and kind in [:s, :u],
        do: [right]

    def looked_at(%{args: args}), do: args

    @doc """
    A scalar's number where the VM knows it, else nothing.
    """
    def known(%T{shape: {}} = scalar), do: scalar |> elements() |> List.first()

    @doc """
    The same for a block.
    """
    def check_block!(%Nx.Block.Take{axis: axis}, [tensor, indices]),
      do: inside!(tensor, [axis], indices)

    def check_block!(%Nx.Block.TakeAlongAxis{axis: axis}, [tensor, indices]) do
      for index <- elements(indices),
          do: inside!(index, axis, elem(tensor.shape, axis), tensor.shape)

      :ok
    end

    def check_block!(%Nx.Block.LinAlg.Cholesky{}, [%T{type: {kind, _} = type, shape: shape} = a])
        when kind != :c do
      n = elem(shape, tuple_size(shape) - 1)

      for matrix <- Enum.chunk_every(elements(a), max(n * n, 1)),
          Enum.all?(matrix, &is_number/1),
          do: factor!(Enum.chunk_every(matrix, n), n * unit(type))

      :ok
    end

    def check_block!(_struct, _arguments), do: :ok

    # Nx.BinaryBackend puts the axes that are indexed first, and speaks of that shape.
    defp inside!(tensor, axes, indices) do
      shape = Tuple.to_list(tensor.shape)
      first = Enum.map(axes, &Enum.at(shape, &1))
      rest = for {size, axis} <- Enum.with_index(shape), axis not in axes, do: size
      all = List.to_tuple(first ++ rest)
      sizes = Enum.with_index(first)

      for {index, {size, axis}} <- Enum.zip(elements(indices), Stream.cycle(sizes)),
          do: inside!(index, axis, size, all)

      :ok
    end

    # Rows of a Cholesky factor, one after the other, up to where it is not sure that there is one. A negative pivot raises as
    # its square root does in Nx.BinaryBackend, but where it may be what rounding made of 0.
    defp factor!(rows, rounding) do
      Enum.reduce_while(rows, [], fn row, factor ->
        {own, [diagonal | _]} =
          Enum.reduce(factor, {[], row}, fn other, {own, [x | rest]} ->
            {own ++ [(x - product(own, other)) / List.last(other)], rest}
          end)

        pivot = diagonal - product(own, own)

        if pivot <= 0 and pivot >= -rounding * abs(diagonal),
          do: {:halt, factor},
          else: {:cont, factor ++ [own ++ [:math.sqrt(pivot)]]}
      end)
    end

    defp product(a, b), do: Enum.zip_reduce(a, b, 0.0, fn x, y, sum -> sum + x * y end)

    # What rounding changes 1 by, in types that factors are computed in.
    defp unit({:f, 64}), do: 1.1e-16
    defp unit({:bf, 16}), do: 4.0e-3
    defp unit({:f, 16}), do: 5.0e-4
    defp unit({:f, 8}), do: 0.125
    defp unit({:f8_e4m3fn, 8}), do: 0.0625
    defp unit(_type), do: 6.0e-8

    defp inside!(index, _axis, size, _shape) when index in 0..(size - 1)//1, do: :ok

    defp inside!(index, axis, _size, shape) do
      raise ArgumentError,
            "index #{index} is out of bounds for axis #{axis} in shape #{inspect(shape)}"
    end

    defp defined!(op, 0) when op in [:quotient, :remainder], do: raise(ArithmeticError)
    defp defined!(:pow, n) when n < 0, do: raise(ArithmeticError)

    defp defined!(:left_shift, n) when n < 0,
      do: raise(ArgumentError, "cannot left shift by #{n}")

    defp defined!(:right_shift, n) when n < 0,
      do: raise(ArgumentError, "cannot right shift by #{n}")

    defp defined!(_op, _n), do: :ok

    defp elements(%T{data: %Nx.BinaryBackend{}} = tensor) do
      if Nx.size(tensor) <= @few, do: Nx.to_flat_list(tensor), else: []
    end

    defp elements(%T{data: %VulkanoBackend{ref: ref}, type: type} = tensor)
         when not is_packed(type) do
      bytes = if Nx.size(tensor) <= @few, do: NativeV.known(ref) || NativeV.constant_of(ref)
      if bytes, do: numbers(bytes, type), else: []
    end

    defp elements(_tensor), do: []

    # The number that every element is, where the VM knows it.
    defp literal(%T{data: %VulkanoBackend{ref: ref}, type: type}) when not is_packed(type) do
      bytes = NativeV.constant_of(ref)
      if bytes, do: bytes |> numbers(type) |> hd()
    end

    defp literal(%T{shape: {}, data: %Nx.BinaryBackend{}} = scalar), do: Nx.to_number(scalar)
    defp literal(_tensor), do: nil

    defp numbers(bytes, {:s, bits}), do: for(<<n::signed-native-size(bits) <- bytes>>, do: n)
    defp numbers(bytes, {:u, bits}), do: for(<<n::native-size(bits) <- bytes>>, do: n)

    defp numbers(bytes, type),
      do: bytes |> Nx.from_binary(type, backend: Nx.BinaryBackend) |> Nx.to_flat_list()

    defp zero?(%Complex{re: re, im: im}), do: re == 0 and im == 0
    defp zero?(number), do: number == 0
  end
end
