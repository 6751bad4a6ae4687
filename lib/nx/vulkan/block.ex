if Code.ensure_loaded?(Nx) do
  defmodule Nx.Vulkan.Block do
    @moduledoc false
    # Blocks as requests: the op is named after a block's struct, whoever defined it, and its fields are the attributes.

    alias Nx.Tensor, as: T

    @doc """
    The request of a block: `{op, outs, attrs}`, or `nil` where a request cannot say what the block does.
    """
    def request(%name{} = struct, out, arguments) do
      outs = outs(out)

      with true <- arguments != [] and Enum.all?(arguments ++ outs, &plain?/1),
           fields = Enum.sort(Map.to_list(Map.from_struct(struct))),
           attrs when is_list(attrs) <- attrs(fields) do
        {inspect(name), Enum.map(outs, &{&1.type, &1.shape}), attrs}
      else
        _ -> nil
      end
    end

    @doc """
    The results of a block in the form of `out`, each made by `wrap` of what it looks like and its reference.
    """
    def results(out, refs, wrap) when is_tuple(out),
      do: out |> outs() |> Enum.zip_with(refs, wrap) |> List.to_tuple()

    def results(out, [ref], wrap), do: wrap.(out, ref)

    defp outs(out) when is_tuple(out), do: Tuple.to_list(out)
    defp outs(out), do: [out]

    defp plain?(%T{vectorized_axes: []}), do: true
    defp plain?(_), do: false

    defp attrs(fields) do
      Enum.reduce_while(fields, [], fn {name, value}, attrs ->
        case attr(value) do
          :none -> {:cont, attrs}
          {:ok, value} -> {:cont, [{name, value} | attrs]}
          :error -> {:halt, nil}
        end
      end)
    end

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
