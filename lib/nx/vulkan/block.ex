if Code.ensure_loaded?(Nx) do
  defmodule Nx.Vulkan.Block do
    @moduledoc false
    # Blocks as requests: the op is named after a block's struct, whoever defined it, and its fields are the attributes.

    import Nx.Vulkan.Packed, only: [is_packed: 1]

    alias Nx.Block.LinAlg
    alias Nx.Defn.Composite
    alias Nx.Tensor, as: T

    @doc """
    The op of a block.
    """
    def op(%Nx.Vulkan.Dot{}), do: "dot"
    def op(%Nx.Vulkan.Conv{}), do: "conv"
    def op(%name{}), do: inspect(name)

    @doc """
    The request of a block: `{operands, outs, attrs}`, or `nil` where a request cannot say what the block does.

    Results are in the order in which Nx walks through `out`. Vectorized axes come first in every operand and result, as
    in Nx's own blocks: the attribute `vectorized` is their number, and the axes in the fields `axis` and `axes` move behind them.
    """
    def request(struct, out, [_ | _] = arguments) do
      with true <- Enum.all?(arguments, &is_struct(&1, T)),
           [%T{vectorized_axes: vectors} | _] = operands = Nx.broadcast_vectors(arguments),
           outs when outs != [] <- outs(out),
           true <- own_types?(struct, operands, outs),
           false <- packed_pivots?(struct, operands),
           true <- Enum.all?(outs, &match?(%T{vectorized_axes: ^vectors}, &1)),
           attrs when is_list(attrs) <- attrs(struct, length(vectors)) do
        outs = Enum.map(outs, &Nx.devectorize/1)
        {Enum.map(operands, &Nx.devectorize/1), Enum.map(outs, &{&1.type, &1.shape}), attrs}
      else
        _ -> nil
      end
    end

    def request(_struct, _out, []), do: nil

    @doc """
    The arguments of a block as requests have them: no request has matrices of integers that are narrower than a byte. A
    factorisation into pivots says their type again and is Nx's own function's affair.
    """
    def widened(%LinAlg.LU{}, arguments), do: arguments

    def widened(%name{}, arguments) do
      if String.starts_with?(Atom.to_string(name), "Elixir.Nx.Block.LinAlg."),
        do: Enum.map(arguments, &widened/1),
        else: arguments
    end

    defp widened(%T{type: {kind, _} = type} = t) when is_packed(type),
      do: Nx.as_type(t, {kind, 8})

    defp widened(argument), do: argument

    @doc """
    The results of a block in the form of `out`, each made by `wrap` of what it looks like and its reference.
    """
    def results(out, refs, wrap) do
      {results, []} =
        Composite.traverse(out, refs, fn out, [ref | refs] -> {wrap.(out, ref), refs} end)

      results
    end

    # A trace takes the types of Nx's own function, which leaves some factors of one row, column or element in the type of
    # the matrix, and makes others real; of an inverse transform it makes f32, whatever narrow type the result is said to
    # have. They are then its affair.
    defp own_types?(%name{}, [%T{type: type} | _], outs)
         when name in [LinAlg.Eigh, LinAlg.SVD],
         do: Enum.all?(outs, &(&1.type == Nx.Type.to_floating(type)))

    defp own_types?(%Nx.Block.IRFFT{}, [%T{type: type} | _], [out]),
      do: out.type == type |> Nx.Type.to_complex() |> Nx.Type.to_real()

    defp own_types?(_struct, _operands, _outs), do: true

    defp packed_pivots?(%name{}, [%T{type: type} | _]), do: name == LinAlg.LU and is_packed(type)

    # What Nx cannot walk through is the default function's affair.
    defp outs(out) do
      Composite.flatten_list([out])
    rescue
      Protocol.UndefinedError -> []
    end

    defp attrs(struct, vectors) do
      fields = struct |> Map.from_struct() |> Enum.sort()

      cond do
        vectors == 0 -> read(fields, 0, [])
        is_map_key(struct, :vectorized) -> nil
        true -> read(fields, vectors, vectorized: [vectors])
      end
    end

    defp read(fields, vectors, attrs) do
      Enum.reduce_while(fields, attrs, fn {name, value}, attrs ->
        case attr(value) do
          :none -> {:cont, attrs}
          {:ok, value} -> {:cont, [{name, behind(name, value, vectors)} | attrs]}
          :error -> {:halt, nil}
        end
      end)
    end

    defp behind(name, [axis | _] = axes, vectors)
         when name in [:axis, :axes] and is_integer(axis),
         do: Enum.map(axes, &if(&1 < 0, do: &1, else: &1 + vectors))

    defp behind(_name, value, _vectors), do: value

    # An absent value is an absent attribute. What is no number, text or list of numbers has no place in a request.
    defp attr(nil), do: :none
    defp attr(true), do: {:ok, 1}
    defp attr(false), do: {:ok, 0}
    defp attr(value) when is_integer(value), do: integers([value])
    defp attr(value) when is_float(value) or is_atom(value), do: {:ok, value}

    defp attr(value) when is_binary(value),
      do: if(String.valid?(value), do: {:ok, value}, else: :error)

    defp attr(value) when is_list(value) do
      cond do
        List.improper?(value) -> :error
        Enum.all?(value, &is_integer/1) -> integers(value)
        Enum.all?(value, &is_float/1) -> {:ok, value}
        true -> :error
      end
    end

    defp attr(_value), do: :error

    defp integers(list) do
      fits? = &(&1 in -0x8000_0000_0000_0000..0x7FFF_FFFF_FFFF_FFFF)
      if Enum.all?(list, fits?), do: {:ok, list}, else: :error
    end
  end
end
