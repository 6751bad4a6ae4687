if Code.ensure_loaded?(Nx) do
  defmodule Nx.Vulkan.Density.Statements do
    @moduledoc false
    # The statements of a shader so far, and the names of its values. A value is written down once, in the outermost loop in
    # which it is known.

    alias Nx.Vulkan.Density.Value

    @enforce_keys [:graph, :plan, :type, :sources, :places]
    defstruct @enforce_keys ++ [subgroups: false, memo: %{}, code: %{0 => []}, depth: 0, names: 0]

    @doc """
    Names a value. The same text means the same value.
    """
    def let(st, kind, text, depth) do
      key = {{:text, kind, text}, []}

      case st.memo do
        %{^key => value} ->
          {value, st}

        _ ->
          {value, st} = fresh(st, kind, text, depth)
          {value, put_in(st.memo[key], value)}
      end
    end

    @doc """
    A variable of its own, for what changes.
    """
    def fresh(st, kind, text, depth) do
      name = "v#{st.names}"
      st = line(%{st | names: st.names + 1}, depth, "#{declared(kind)} #{name} = #{text};")
      {{kind, name, depth}, st}
    end

    def line(st, depth, text),
      do: %{st | code: Map.update(st.code, depth, [text], &[text | &1])}

    @doc """
    Lines written at a depth so far, which is then empty.
    """
    def take(st, depth) do
      {lines, code} = Map.pop(st.code, depth, [])
      {Enum.reverse(lines), %{st | code: code}}
    end

    @doc """
    Forgets what changes in loops from `depth` on.
    """
    def close(st, depth) do
      known = fn {{_, idx}, value} ->
        Value.depth(value) < depth and Value.deepest(idx) < depth
      end

      %{st | memo: st.memo |> Enum.filter(known) |> Map.new(), depth: depth - 1}
    end

    @doc """
    Kind of a node's values.
    """
    def kind(%{op: op}) when op in [:all, :any], do: :bool
    def kind(%{type: {t, _}}) when t in [:f, :bf], do: :float
    def kind(%{type: {t, _}}) when t in [:s, :u], do: :int

    def kind(node), do: unsupported(node)

    @doc """
    Gives up on a node that no shader computes.
    """
    def unsupported(%{op: op, type: type, shape: shape}),
      do: throw({:unsupported, op, type, List.to_tuple(shape)})

    @doc """
    Names a value that is made of `parts`.
    """
    def named(st, kind, text, parts), do: let(st, kind, text, Value.deepest(parts))

    @doc """
    A name that nothing has yet.
    """
    def name(st), do: {"v#{st.names}", %{st | names: st.names + 1}}

    def declared(kind), do: %{float: "REAL", int: "int", bool: "bool"}[kind]
  end
end
