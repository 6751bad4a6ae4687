if Code.ensure_loaded?(Nx) do
  defmodule Nx.Vulkan.Density.Choice do
    @moduledoc false
    # Elements that are chosen among by an index.

    import Nx.Vulkan.Density.Statements, only: [named: 4]

    alias Nx.Vulkan.Density.{Element, Elementwise, Value}

    @doc """
    The element of `inside` at an index where that is within its extents, else `outside`.
    """
    def within(st, inner, extents, {:elem, inside}, {:elem, outside, idx}) do
      case bounds(inner, extents) do
        :outside ->
          Element.at(st, outside, idx)

        [] ->
          Element.at(st, inside, inner)

        conditions ->
          clamped = for {i, extent} <- Enum.zip(inner, extents), do: Value.clamp(i, 0, extent - 1)
          {a, st} = Element.at(st, inside, clamped)
          {b, st} = Element.at(st, outside, idx)
          choice(st, conditions, a, b, inner)
      end
    end

    @doc """
    The element of a padded tensor. With interior padding only every `step`th position holds one.
    """
    def padded(st, inner, extents, t, value) do
      positions = for {i, step} <- inner, do: Value.quotient(i, step)

      between? =
        Enum.any?(inner, fn {i, step} -> is_integer(i) and (i < 0 or rem(i, step) != 0) end)

      exact = for {{text, _} = i, step} <- inner, step > 1, do: {"#{text} % #{step} == 0", i}

      cond do
        between? ->
          Element.at(st, value, [])

        exact == [] ->
          within(st, positions, extents, {:elem, t}, {:elem, value, []})

        true ->
          # A negative position would round towards 0, into the first element.
          {element, st} = within(st, positions, extents, {:elem, t}, {:elem, value, []})
          {outside, st} = Element.at(st, value, [])
          conditions = for {text, {at, _}} <- exact, do: "#{at} >= 0 && #{text}"

          parts = Enum.map(exact, &elem(&1, 1))
          choice(st, Enum.reverse(conditions), element, outside, parts)
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
          else: Elementwise.merged([a, b])

      [x, y] = Enum.map([a, b], &Value.text(&1, kind, st.type))
      parts = [a, b | Enum.reject(parts, &is_integer/1)]

      text = "#{conditions |> Enum.reverse() |> Enum.join(" && ")} ? #{x} : #{y}"
      named(st, kind, text, parts)
    end

    @doc """
    The element of one of `list`, which lie behind each other with these extents, for the index `at`.
    """
    def choose(st, list, extents, at, inner) do
      offsets = Enum.scan([0 | extents], &(&1 + &2)) |> Enum.take(length(list))
      parts = Enum.zip([list, offsets, extents])

      if is_integer(at) do
        {id, offset, _} =
          Enum.find(parts, fn {_, offset, extent} -> at >= offset and at < offset + extent end)

        Element.at(st, id, inner.(at - offset))
      else
        [{id, offset, extent} | rest] = Enum.reverse(parts)

        {last, st} =
          Element.at(st, id, inner.(at |> Value.subtract(offset) |> Value.clamp(0, extent - 1)))

        Enum.reduce(rest, {last, st}, fn {id, offset, extent}, {otherwise, st} ->
          {value, st} =
            Element.at(st, id, inner.(at |> Value.subtract(offset) |> Value.clamp(0, extent - 1)))

          choice(st, ["#{Value.index(at)} < #{offset + extent}"], value, otherwise, [at])
        end)
      end
    end

    @doc """
    The value at a position that is not known before.
    """
    def pick(st, kind, values, at) do
      [last | rest] = Enum.reverse(Enum.with_index(values))

      Enum.reduce(rest, {elem(last, 0), st}, fn {value, n}, {otherwise, st} ->
        [x, y] = Enum.map([value, otherwise], &Value.text(&1, kind, st.type))

        text = "#{Value.index(at)} == #{n} ? #{x} : #{y}"
        named(st, kind, text, [value, otherwise, at])
      end)
    end
  end
end
