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
      {glsl, _} = fetch(op, length(operands))
      named = Map.new(Enum.zip(~w(a b c), operands))
      Regex.replace(~r/\b[abc]\b/, glsl, &Map.fetch!(named, &1))
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
            {{String.to_atom(op), length(compute)}, {glsl, Enum.map(compute, &String.to_atom/1)}}
          end)

        :persistent_term.put(__MODULE__, rows)
        rows
      end
    end
  end
end
