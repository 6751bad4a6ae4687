if Code.ensure_loaded?(Nx) do
  defmodule Nx.Vulkan.Movement do
    @moduledoc false
    # What slices, joins and batches are made of: which part of a slice is a view, and how many tensors one request joins.

    alias Nx.Tensor, as: T
    alias Nx.Vulkan.{Operand, Ops}

    # As many as a plan has steps.
    @joined 64

    @doc """
    The starts of a slice: integers where the VM knows them, moved to where the slice fits.
    """
    def starts(shape, starts, lengths) do
      Enum.zip_with([starts, Tuple.to_list(shape), lengths], fn [start, size, length] ->
        case known(start) do
          nil -> start
          number -> Ops.start(number, size - length)
        end
      end)
    end

    defp known(%T{} = start), do: Operand.known(start)
    defp known(start), do: start

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

    @doc """
    A stream of slices along the first axis, each as `out`: the last one begins anew where the tensor ends before it does.
    """
    def to_batched(backend, out, tensor, opts) do
      batch = elem(out.shape, 0)
      size = elem(tensor.shape, 0)
      full = div(size, batch)
      left = rem(size, batch)
      last = if left != 0 and opts[:leftover] == :repeat, do: full, else: full - 1

      Stream.map(0..last//1, fn
        ^full ->
          ends = rows(backend, out, tensor, full * batch, left)
          backend.concatenate(out, [ends, rows(backend, out, tensor, 0, batch - left)], 0)

        i ->
          rows(backend, out, tensor, i * batch, batch)
      end)
    end

    defp rows(backend, out, tensor, start, count) do
      [_ | inner] = Tuple.to_list(tensor.shape)
      zeros = Enum.map(inner, fn _ -> 0 end)
      ones = Enum.map([0 | inner], fn _ -> 1 end)
      out = %{out | shape: List.to_tuple([count | inner])}
      backend.slice(out, tensor, [start | zeros], [count | inner], ones)
    end
  end
end
