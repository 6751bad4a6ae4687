if Code.ensure_loaded?(Nx) do
  defmodule Nx.Vulkan.Density.Row do
    @moduledoc false
    # GLSL of elementwise ops, as the rows of the elementwise pack have it, and the functions that it calls.

    alias Nx.Vulkan.NativeV

    @functions Path.expand("../../../../packs/elementwise/shaders/functions.glsl", __DIR__)
    @external_resource @functions

    # Stands behind the math headers.
    def functions, do: unquote(File.read!(@functions))

    @doc """
    The expression of an op on these operands, each the text of a primary expression.
    """
    def text(op, operands) do
      {parts, _} = fetch(op, length(operands))

      Enum.map_join(parts, fn
        index when is_integer(index) -> Enum.at(operands, index)
        text -> text
      end)
    end

    @doc """
    How each of so many operands enters it: as in `compute` of packs/elementwise/pack.toml.
    """
    def compute(op, arity), do: op |> fetch(arity) |> elem(1)

    defp fetch(op, arity), do: Map.fetch!(rows(), {op, arity})

    defp rows do
      with nil <- :persistent_term.get(__MODULE__, nil) do
        {:ok, rows} = NativeV.elementwise_rows()

        rows =
          Map.new(rows, fn %{op: op, glsl: glsl, compute: compute} ->
            {{String.to_atom(op), length(compute)},
             {parts(glsl), Enum.map(compute, &String.to_atom/1)}}
          end)

        :persistent_term.put(__MODULE__, rows)
        rows
      end
    end

    # Text, and the numbers of operands.
    defp parts(glsl) do
      for part <- Regex.split(~r/\b[abc]\b/, glsl, include_captures: true, trim: true),
          do: Enum.find_index(~w(a b c), &(&1 == part)) || part
    end
  end
end
