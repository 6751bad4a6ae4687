if Code.ensure_loaded?(Nx) do
  defmodule Nx.Vulkan.Density.Emit do
    @moduledoc false
    # GLSL statements for elements of a graph's tensors. A value is written down once, in the outermost loop in which it is
    # known, and named.

    alias Nx.Vulkan.Density.{Elementwise, Plan, Value}

    @enforce_keys [:graph, :plan, :type, :sources, :places]
    defstruct @enforce_keys ++ [subgroups: false, memo: %{}, code: %{0 => []}, depth: 0, names: 0]

    @most 0x7FFFFFFF
    # Bytes of an index from which on it has a name.
    @long 24

    @doc """
    The element of a node at an index: `{value, state}`.
    """
    def elem(st, id, idx) do
      {idx, st} = Enum.map_reduce(idx, st, &short/2)
      key = {id, idx}

      case st.memo do
        %{^key => value} ->
          {value, st}

        _ ->
          node = st.graph.nodes[id]

          {value, st} =
            if st.places[id], do: load(st, id, node, idx), else: compute(st, id, node, idx)

          {value, put_in(st.memo[key], value)}
      end
    end

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
    Folds the elements of a reduction at `idx` into `from`, those at `positions` of what is reduced.
    """
    def fold(st, node, idx, positions, from) do
      Enum.reduce(positions, {from, st}, fn position, {acc, st} ->
        {value, st} = term(st, node, idx, position)
        if value == :none, do: {acc, st}, else: combine(st, node, acc, value)
      end)
    end

    @doc """
    What a reduction starts from.
    """
    def identity(%{op: op} = node) do
      case op do
        op when op in [:sum, :dot, :indexed_add] -> {:const, zero(node)}
        :product -> {:const, one(node)}
        :all -> {:const, 1}
        :any -> {:const, 0}
        :reduce_max -> {:const, if(kind(node) == :int, do: -@most, else: :neg_infinity)}
        :reduce_min -> {:const, if(kind(node) == :int, do: @most, else: :infinity)}
      end
    end

    @doc """
    One more term in an accumulator.
    """
    def combine(st, node, a, b) do
      if node.op not in [:all, :any] and a == identity(node),
        do: {b, st},
        else: named(st, kind(node), combined(node, a, b, st.type), [a, b])
    end

    @doc """
    GLSL of that.
    """
    def combined(node, a, b, type) do
      kind = kind(node)
      [a, b] = Enum.map([a, b], &Value.text(&1, kind, type))

      case node.op do
        op when op in [:sum, :dot, :indexed_add] -> "#{a} + #{b}"
        :product -> "#{a} * #{b}"
        :all -> "#{a} && #{b}"
        :any -> "#{a} || #{b}"
        :reduce_max -> "maximum(#{a}, #{b})"
        :reduce_min -> "minimum(#{a}, #{b})"
      end
    end

    @doc """
    Kind of a node's values.
    """
    def kind(%{op: op}) when op in [:all, :any], do: :bool
    def kind(%{type: {t, _}}) when t in [:f, :bf], do: :float
    def kind(%{type: {t, _}}) when t in [:s, :u], do: :int

    def kind(%{op: op, type: type, shape: shape}),
      do: throw({:unsupported, op, type, List.to_tuple(shape)})

    # An index used twice is computed once: without a name its text would double with every reshape.
    defp short({text, depth}, st) when byte_size(text) > @long do
      {{:int, name, _}, st} = let(st, :int, text, depth)
      {{name, depth}, st}
    end

    defp short(index, st), do: {index, st}

    ## Elements

    defp load(st, id, node, idx) do
      {where, offset} = st.places[id]
      at = idx |> Value.flat(node.shape) |> Value.add(offset)
      named(st, :float, "#{where}(#{Value.index(at)})", idx)
    end

    defp compute(st, id, node, idx) do
      if Plan.reduction?(node), do: reduction(st, id, node, idx), else: element(st, node, idx)
    end

    defp element(st, %{op: :constant, args: [number]}, _), do: {{:const, number}, st}

    defp element(st, %{op: :parameter, args: [0]} = node, idx),
      do: named(st, :float, "q(#{idx |> Value.flat(node.shape) |> Value.index()})", idx)

    defp element(st, %{op: op, args: [at]} = node, idx) when op in [:parameter, :captured] do
      position = idx |> Value.flat(node.shape) |> Value.add(st.sources[{op, at}])
      {value, st} = named(st, :float, "data(#{Value.index(position)})", idx)
      if kind(node) == :int, do: named(st, :int, "int(#{elem(value, 1)})", idx), else: {value, st}
    end

    defp element(st, %{op: :iota, args: [axis], shape: shape}, idx),
      do: {index_value(if(axis, do: Enum.at(idx, axis), else: Value.flat(idx, shape))), st}

    defp element(st, %{op: :eye}, idx) do
      case Enum.take(idx, -2) do
        [i, j] when is_integer(i) and is_integer(j) -> {{:const, if(i == j, do: 1, else: 0)}, st}
        [i, j] -> named(st, :bool, "#{Value.index(i)} == #{Value.index(j)}", [i, j])
      end
    end

    defp element(st, %{op: :reshape, args: [t]} = node, idx) do
      inner = st.graph.nodes[t].shape
      elem(st, t, reshaped(idx, node.shape, inner))
    end

    defp element(st, %{op: :squeeze, args: [t, axes]}, idx) do
      rank = length(st.graph.nodes[t].shape)

      {inner, []} =
        Enum.map_reduce(
          0..(rank - 1)//1,
          idx,
          &if(&1 in axes, do: {0, &2}, else: {hd(&2), tl(&2)})
        )

      elem(st, t, inner)
    end

    defp element(st, %{op: :transpose, args: [t, axes]}, idx) do
      inner = axes |> Enum.zip(idx) |> Enum.sort() |> Enum.map(&Kernel.elem(&1, 1))
      elem(st, t, inner)
    end

    defp element(st, %{op: :reverse, args: [t, axes], shape: shape}, idx) do
      inner =
        for {{i, extent}, axis} <- idx |> Enum.zip(shape) |> Enum.with_index() do
          if axis in axes, do: Value.subtract(extent - 1, i), else: i
        end

      elem(st, t, inner)
    end

    defp element(st, %{op: :broadcast, args: [t, axes]}, idx) do
      inner =
        for {extent, axis} <- Enum.zip(st.graph.nodes[t].shape, axes),
            do: if(extent == 1, do: 0, else: Enum.at(idx, axis))

      elem(st, t, inner)
    end

    defp element(st, %{op: :slice, args: [t, starts, lengths, strides]}, idx) do
      extents = st.graph.nodes[t].shape
      {starts, st} = starts(st, starts, extents, lengths)

      inner =
        for {start, stride, i} <- zip3(starts, strides, idx),
            do: Value.add(start, Value.multiply(i, stride))

      elem(st, t, inner)
    end

    defp element(st, %{op: :put_slice, args: [t, starts, slice], shape: shape}, idx) do
      lengths = st.graph.nodes[slice].shape
      {starts, st} = starts(st, starts, shape, lengths)
      inner = for {i, start} <- Enum.zip(idx, starts), do: Value.subtract(i, start)
      within(st, inner, lengths, {:elem, slice}, {:elem, t, idx})
    end

    defp element(st, %{op: :pad, args: [t, value, config]}, idx) do
      extents = st.graph.nodes[t].shape

      inner =
        for {i, {low, _high, interior}} <- Enum.zip(idx, config) do
          {Value.subtract(i, low), interior + 1}
        end

      padded(st, inner, extents, t, value)
    end

    defp element(st, %{op: :concatenate, args: [list, axis]}, idx) do
      extents = Enum.map(list, &Enum.at(st.graph.nodes[&1].shape, axis))
      choose(st, list, extents, Enum.at(idx, axis), fn i -> List.replace_at(idx, axis, i) end)
    end

    defp element(st, %{op: :stack, args: [list, axis]}, idx) do
      extents = Enum.map(list, fn _ -> 1 end)
      choose(st, list, extents, Enum.at(idx, axis), fn _ -> List.delete_at(idx, axis) end)
    end

    defp element(st, %{op: :gather, args: [t, indices, axes]}, idx) do
      %{shape: extents} = st.graph.nodes[t]
      %{shape: rows} = st.graph.nodes[indices]
      {at, rest} = Enum.split(idx, length(rows) - 1)

      {picked, st} =
        Enum.map_reduce(Enum.with_index(axes), st, fn {axis, n}, st ->
          {value, st} = elem(st, indices, at ++ [n])
          {{axis, value |> Value.to_index() |> Value.clamp(0, Enum.at(extents, axis) - 1)}, st}
        end)

      elem(st, t, placed(length(extents), Map.new(picked), rest))
    end

    defp element(st, %{op: op, args: [condition, a, b]} = node, idx)
         when op in [:select, :clip] do
      {[condition, a, b], st} = operands(st, [condition, a, b], idx)
      kind = kind(node)

      case {op, condition} do
        {:select, {:const, number}} ->
          {if(number in [0, 0.0], do: b, else: a), st}

        {:select, _} ->
          [a_text, b_text] = Enum.map([a, b], &Value.text(&1, kind, st.type))
          text = "#{Value.text(condition, :bool, st.type)} ? #{a_text} : #{b_text}"
          named(st, kind, text, [condition, a, b])

        {:clip, _} ->
          [x, low, high] = Enum.map([condition, a, b], &Value.text(&1, kind, st.type))
          named(st, kind, "minimum(maximum(#{x}, #{low}), #{high})", [condition, a, b])
      end
    end

    defp element(st, %{op: :as_type, args: [t]} = node, idx) do
      {value, st} = elem(st, t, idx)

      case {kind(node), value} do
        {_, {:const, number}} ->
          {{:const, cast(number, node.type)}, st}

        {:float, {:float, _, _}} ->
          {value, st}

        {kind, _} ->
          text = Value.text(value, kind, st.type)

          if Elementwise.narrow?(node),
            do: named(st, kind, Elementwise.wrapped(text, node.type), [value]),
            else: named(st, kind, text, [value])
      end
    end

    defp element(st, %{args: [t]} = node, idx) do
      {[value], st} = operands(st, [t], idx)
      Elementwise.unary(st, node, value)
    end

    defp element(st, %{args: [a, b]} = node, idx) do
      {[a, b], st} = operands(st, [a, b], idx)
      Elementwise.binary(st, node, a, b)
    end

    ## Reductions that are no loop of the workgroup

    defp reduction(st, id, node, idx) do
      {extents, _} = Plan.reduced(node, st.graph)

      cond do
        Plan.size(extents) <= Plan.inline() ->
          {value, st} = fold(st, node, idx, Plan.indices(extents), identity(node))
          with_target(st, node, idx, value)

        Enum.all?(idx, &is_integer/1) ->
          raise "#{inspect(id)} was not planned"

        true ->
          # One of few results, by its position.
          {values, st} = Enum.map_reduce(Plan.indices(node.shape), st, &elem(&2, id, &1))
          pick(st, kind(node), values, Value.flat(idx, node.shape))
      end
    end

    @doc """
    A reduction at `idx` by a loop of one invocation.
    """
    def serial(st, node, idx, {extents, looped}) do
      depth = st.depth + 1
      kind = kind(node)
      {name, st} = name(st)
      start = Value.text(identity(node), kind, st.type)
      outer = max(Value.deepest(idx), st.depth)
      st = line(st, outer, "#{declared(kind)} #{name} = #{start};")
      domain = Enum.map(looped, &Enum.at(extents, &1))
      st = %{st | depth: depth}
      {positions, st} = positions(st, extents, looped, "t#{depth}")
      {value, st} = fold(st, node, idx, positions, identity(node))
      text = combined(node, {kind, name, 0}, value, st.type)
      st = line(st, depth, "#{name} = #{text};")
      {body, st} = take(st, depth)
      st = close(st, depth)

      loop = [
        "for (int t#{depth} = 0; t#{depth} < #{Plan.size(domain)}; ++t#{depth}) {",
        body,
        "}"
      ]

      st = line(st, outer, loop)
      with_target(st, node, idx, {kind, name, outer})
    end

    @doc """
    The positions of what is reduced that one turn of a loop over `looped` axes takes, where `name` counts the turns.
    """
    def positions(st, extents, looped, name) do
      domain = Enum.map(looped, &Enum.at(extents, &1))
      at = looped |> Enum.zip(Value.unflat({name, st.depth}, domain)) |> Map.new()
      short = for {extent, axis} <- Enum.with_index(extents), not is_map_key(at, axis), do: extent

      positions =
        for rest <- Plan.indices(short), do: placed(length(extents), at, rest)

      {positions, st}
    end

    # indexed_add adds to what was there.
    @doc """
    The result of a reduction, once it is folded.
    """
    def with_target(st, %{op: :indexed_add, args: [t | _]} = node, idx, value) do
      {target, st} = elem(st, t, idx)

      case {target, value} do
        {{:const, zero}, _} when zero in [0, 0.0] -> {value, st}
        _ -> Elementwise.arithmetic(st, node, "+", target, value)
      end
    end

    def with_target(st, %{op: :dot} = node, _, value) do
      if Elementwise.narrow?(node),
        do:
          named(st, :int, Elementwise.wrapped(Value.text(value, :int, st.type), node.type), [
            value
          ]),
        else: {value, st}
    end

    def with_target(st, _, _, value), do: {value, st}

    # The term of a reduction's result at `idx` for one position of what is reduced; `:none` where it has none.
    defp term(
           st,
           %{op: :dot, args: [a, b, {axes_a, batch_a}, {axes_b, batch_b}]} = node,
           idx,
           position
         ) do
      {batch, rest} = Enum.split(idx, length(batch_a))
      rank_a = length(st.graph.nodes[a].shape)
      {free_a, free_b} = Enum.split(rest, rank_a - length(axes_a) - length(batch_a))

      at = fn rank, axes, batches, free ->
        fixed = Enum.zip(axes, position) ++ Enum.zip(batches, batch)
        placed(rank, Map.new(fixed), free)
      end

      {x, st} = elem(st, a, at.(rank_a, axes_a, batch_a, free_a))
      {y, st} = elem(st, b, at.(length(st.graph.nodes[b].shape), axes_b, batch_b, free_b))
      Elementwise.arithmetic(st, node, "*", x, y)
    end

    defp term(st, %{op: :indexed_add, args: [_, indices, updates, axes]}, idx, row) do
      targets = for axis <- axes, do: Enum.at(idx, axis)
      window = for {i, axis} <- Enum.with_index(idx), axis not in axes, do: i

      {matches, st} =
        Enum.map_reduce(Enum.with_index(targets), st, fn {target, n}, st ->
          {index, st} = elem(st, indices, row ++ [n])
          {{Value.to_index(index), target}, st}
        end)

      if Enum.any?(matches, fn {i, j} -> is_integer(i) and is_integer(j) and i != j end) do
        {:none, st}
      else
        {update, st} = elem(st, updates, row ++ window)
        guard(st, for({i, j} <- matches, i != j, do: {i, j}), update)
      end
    end

    defp term(st, %{args: [t, axes, keep]}, idx, position) do
      rank = length(st.graph.nodes[t].shape)

      free =
        if keep, do: for({i, axis} <- Enum.with_index(idx), axis not in axes, do: i), else: idx

      elem(st, t, placed(rank, Map.new(Enum.zip(axes, position)), free))
    end

    defp guard(st, [], update), do: {update, st}

    defp guard(st, matches, update) do
      condition =
        Enum.map_join(matches, " && ", fn {i, j} -> "#{Value.index(i)} == #{Value.index(j)}" end)

      parts = [update | Enum.flat_map(matches, &Tuple.to_list/1)]
      zero = Value.float(0.0, st.type)
      named(st, :float, "#{condition} ? #{Value.text(update, :float, st.type)} : #{zero}", parts)
    end

    ## Indices

    defp reshaped(idx, from, to) do
      # Axes of extent 1 come and go without arithmetic.
      if Enum.reject(from, &(&1 == 1)) == Enum.reject(to, &(&1 == 1)) do
        kept = for {i, extent} <- Enum.zip(idx, from), extent != 1, do: i
        {inner, _} = Enum.map_reduce(to, kept, &if(&1 == 1, do: {0, &2}, else: {hd(&2), tl(&2)}))
        inner
      else
        idx |> Value.flat(from) |> Value.unflat(to)
      end
    end

    # An index of `rank` axes: `fixed` gives some, `rest` the others in their order.
    defp placed(rank, fixed, rest) do
      {idx, _} =
        Enum.map_reduce(0..(rank - 1)//1, rest, fn axis, rest ->
          case fixed do
            %{^axis => i} -> {i, rest}
            _ -> {hd(rest), tl(rest)}
          end
        end)

      idx
    end

    defp starts(st, starts, extents, lengths) do
      Enum.map_reduce(zip3(starts, extents, lengths), st, fn
        {start, _, _}, st when is_integer(start) ->
          {start, st}

        {start, extent, length}, st ->
          {value, st} = elem(st, start, [])
          {value |> Value.to_index() |> Value.clamp(0, extent - length), st}
      end)
    end

    # The element of `inside` at an index where that is within its extents, else `outside`.
    defp within(st, inner, extents, {:elem, inside}, {:elem, outside, idx}) do
      case bounds(inner, extents) do
        :outside ->
          elem(st, outside, idx)

        [] ->
          elem(st, inside, inner)

        conditions ->
          clamped = for {i, extent} <- Enum.zip(inner, extents), do: Value.clamp(i, 0, extent - 1)
          {a, st} = elem(st, inside, clamped)
          {b, st} = elem(st, outside, idx)
          choice(st, conditions, a, b, inner)
      end
    end

    # With interior padding only every `step`th position holds an element.
    defp padded(st, inner, extents, t, value) do
      positions = for {i, step} <- inner, do: Value.quotient(i, step)

      between? =
        Enum.any?(inner, fn {i, step} -> is_integer(i) and (i < 0 or rem(i, step) != 0) end)

      exact = for {{text, _} = i, step} <- inner, step > 1, do: {"#{text} % #{step} == 0", i}

      cond do
        between? ->
          elem(st, value, [])

        exact == [] ->
          within(st, positions, extents, {:elem, t}, {:elem, value, []})

        true ->
          # A negative position would round towards 0, into the first element.
          {element, st} = within(st, positions, extents, {:elem, t}, {:elem, value, []})
          {outside, st} = elem(st, value, [])
          conditions = for {text, {at, _}} <- exact, do: "#{at} >= 0 && #{text}"

          choice(
            st,
            Enum.reverse(conditions),
            element,
            outside,
            Enum.map(exact, &Kernel.elem(&1, 1))
          )
      end
    end

    defp bounds(inner, extents) do
      Enum.reduce_while(Enum.zip(inner, extents), [], fn
        {i, extent}, conditions when is_integer(i) ->
          if i >= 0 and i < extent, do: {:cont, conditions}, else: {:halt, :outside}

        {i, extent}, conditions ->
          text = Value.index(i)
          {:cont, ["#{text} >= 0 && #{text} < #{extent}" | conditions]}
      end)
    end

    defp choice(st, conditions, a, b, parts) do
      kind =
        if Enum.any?([a, b], &match?({:float, _, _}, &1)),
          do: :float,
          else: Elementwise.merged(a, b)

      [x, y] = Enum.map([a, b], &Value.text(&1, kind, st.type))
      parts = [a, b | Enum.reject(parts, &is_integer/1)]
      named(st, kind, "#{conditions |> Enum.reverse() |> Enum.join(" && ")} ? #{x} : #{y}", parts)
    end

    defp choose(st, list, extents, at, inner) do
      offsets = Enum.scan([0 | extents], &(&1 + &2)) |> Enum.take(length(list))
      parts = zip3(list, offsets, extents)

      if is_integer(at) do
        {id, offset, _} =
          Enum.find(parts, fn {_, offset, extent} -> at >= offset and at < offset + extent end)

        elem(st, id, inner.(at - offset))
      else
        [{id, offset, extent} | rest] = Enum.reverse(parts)

        {last, st} =
          elem(st, id, inner.(at |> Value.subtract(offset) |> Value.clamp(0, extent - 1)))

        Enum.reduce(rest, {last, st}, fn {id, offset, extent}, {otherwise, st} ->
          {value, st} =
            elem(st, id, inner.(at |> Value.subtract(offset) |> Value.clamp(0, extent - 1)))

          choice(st, ["#{Value.index(at)} < #{offset + extent}"], value, otherwise, [at])
        end)
      end
    end

    defp pick(st, kind, values, at) do
      [last | rest] = Enum.reverse(Enum.with_index(values))

      Enum.reduce(rest, {elem(last, 0), st}, fn {value, n}, {otherwise, st} ->
        [x, y] = Enum.map([value, otherwise], &Value.text(&1, kind, st.type))
        named(st, kind, "#{Value.index(at)} == #{n} ? #{x} : #{y}", [value, otherwise, at])
      end)
    end

    # Operands of an elementwise op, their shapes aligned on the right.
    defp operands(st, ids, idx) do
      Enum.map_reduce(ids, st, fn id, st ->
        shape = st.graph.nodes[id].shape
        tail = Enum.take(idx, -length(shape))
        tail = if shape == [], do: [], else: tail

        elem(
          st,
          id,
          for({i, extent} <- Enum.zip(tail, shape), do: if(extent == 1, do: 0, else: i))
        )
      end)
    end

    defp index_value(index) when is_integer(index), do: {:const, index}
    defp index_value({text, depth}), do: {:int, text, depth}

    @doc """
    Names a value that is made of `parts`.
    """
    def named(st, kind, text, parts), do: let(st, kind, text, Value.deepest(parts))

    defp name(st), do: {"v#{st.names}", %{st | names: st.names + 1}}

    def declared(kind), do: %{float: "REAL", int: "int", bool: "bool"}[kind]

    defp zero(node), do: if(kind(node) == :int, do: 0, else: 0.0)
    defp one(node), do: if(kind(node) == :int, do: 1, else: 1.0)

    defp cast(number, {t, _}) when t in [:f, :bf] and is_integer(number), do: number * 1.0
    defp cast(number, {t, _}) when t in [:s, :u] and is_float(number), do: trunc(number)
    defp cast(number, _), do: number

    defp zip3(a, b, c), do: Enum.zip([a, b, c])
  end
end
