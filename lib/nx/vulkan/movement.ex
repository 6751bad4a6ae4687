if Code.ensure_loaded?(Nx) do
  defmodule Nx.Vulkan.Movement do
    @moduledoc false
    # What slices and joins are made of: which part of a slice is a view, and how many tensors one request joins.

    alias Nx.Tensor, as: T
    alias Nx.Vulkan.{Operand, Ops}

    # As many as a plan has steps.
    @joined 64

    @doc """
    The starts of a slice: integers where the VM knows them, moved to where the slice fits.
    """
    def starts(shape, starts, lengths) do
      Enum.zip_with([starts, Tuple.to_list(shape), lengths], fn
        [start, _size, _length] when is_integer(start) ->
          start

        [%T{} = start, size, length] ->
          case Operand.known(start) do
            nil -> start
            number -> number |> max(0) |> min(size - length)
          end
      end)
    end

    @doc """
    A slice with starts that nobody knows here as `{starts, lengths, strides, attrs}`: a view of the other axes, and the
    attributes of the request for the rest. `shape` is the tensor's, `out` the result's.
    """
    def slice(shape, out, starts, lengths, strides) do
      axes = Ops.dynamic(starts)

      {starts, extents, steps} =
        [starts, Tuple.to_list(shape), Tuple.to_list(out), strides]
        |> Enum.zip_with(fn
          [%T{}, size, _extent, _stride] -> {0, size, 1}
          [start, _size, extent, stride] -> {start, extent, stride}
        end)
        |> unzip()

      of_axes = fn list -> Enum.map(axes, &Enum.at(list, &1)) end

      {starts, extents, steps,
       [axes: axes, lengths: of_axes.(lengths), strides: of_axes.(strides)]}
    end

    defp unzip(list),
      do:
        {Enum.map(list, &elem(&1, 0)), Enum.map(list, &elem(&1, 1)), Enum.map(list, &elem(&1, 2))}

    @doc """
    The requests that join many tensors, each with what its result looks like; nothing where one request does.
    """
    def parts(op, out, tensors, axis) when length(tensors) > @joined do
      for chunk <- Enum.chunk_every(tensors, @joined) do
        extents =
          if op == :stack, do: [length(chunk)], else: Enum.map(chunk, &elem(&1.shape, axis))

        {%{out | shape: put_elem(out.shape, axis, Enum.sum(extents))}, chunk}
      end
    end

    def parts(_op, _out, _tensors, _axis), do: nil
  end
end
