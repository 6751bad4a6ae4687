if Code.ensure_loaded?(Nx) do
  defmodule Nx.Vulkan.RandomLine do
    @moduledoc false
    # One op of Nx, as text, on tensors that a program has so far. Nobody knows yet whether Nx computes it.

    @extents [1, 1, 2, 2, 3, 5, 7, 8, 9, 16, 17, 64, 65, 200]

    def op(env) do
      a = pick(env, :float)
      b = pick(env, :float)
      i = pick(env, :int)
      any = pick(env, :any)

      group =
        Enum.random(
          ~w(unary unary binary binary shape shape slice join index reduce reduce reduce dot compare
                             choose integer constant algebra vector other)a
        )

      text(group, {env, a, b, i, any})
    end

    # The latest more often.
    defp pick(env, kind) do
      found =
        for {name, t} <- env,
            kind == :any or Nx.Type.float?(t.type) == (kind == :float),
            do: {name, t}

      cond do
        found == [] -> nil
        chance(2) -> hd(found)
        true -> Enum.random(found)
      end
    end

    defp text(_, {_, nil, _, _, _}), do: nil

    defp text(:unary, {_, {a, _}, _, _, _}) do
      case Enum.random(1..4) do
        1 ->
          "Nx.#{Enum.random(~w(sigmoid cos sin tanh atan erf erfc asinh cbrt abs negate sign floor ceil round expm1)a)}(#{a})"

        2 ->
          "Nx.#{Enum.random(~w(log log1p sqrt rsqrt acosh)a)}(Nx.add(Nx.abs(#{a}), 1.25))"

        3 ->
          "Nx.#{Enum.random(~w(acos asin atanh erf_inv tan)a)}(Nx.multiply(Nx.tanh(#{a}), 0.8))"

        4 ->
          "Nx.#{Enum.random(~w(exp cosh sinh log sqrt)a)}(#{a})"
      end
    end

    defp text(:binary, {_, {a, _}, {b, _}, i, _}) do
      b = if chance(4) and i, do: elem(i, 0), else: b

      case Enum.random(1..6) do
        1 -> "Nx.#{Enum.random(~w(add subtract multiply)a)}(#{a}, #{b})"
        2 -> "Nx.#{Enum.random(~w(add subtract multiply max min)a)}(#{b}, #{a})"
        3 -> "Nx.divide(#{a}, Nx.add(Nx.abs(#{b}), 0.5))"
        4 -> "Nx.pow(Nx.add(Nx.abs(#{a}), 0.1), #{b})"
        5 -> "Nx.#{Enum.random(~w(atan2 remainder)a)}(#{a}, Nx.add(Nx.pow(#{b}, 2), 0.3))"
        6 -> "Nx.pow(#{a}, #{Enum.random([2, 3, 0, 1, -1, 0.5])})"
      end
    end

    defp text(:shape, {_, _, _, _, {a, t}}) do
      shape = t.shape
      rank = tuple_size(shape)

      case Enum.random(1..8) do
        1 ->
          "Nx.reshape(#{a}, #{inspect(factored(Nx.size(t)))})"

        2 ->
          "Nx.transpose(#{a}, axes: #{inspect(Enum.shuffle(Nx.axes(t)))})"

        3 ->
          "Nx.squeeze(#{a})"

        4 ->
          "Nx.new_axis(#{a}, #{Enum.random(0..rank)})"

        5 ->
          "Nx.reverse(#{a}, axes: #{inspect(some(Nx.axes(t)))})"

        6 ->
          "Nx.broadcast(#{a}, #{inspect(List.to_tuple([Enum.random([1, 2, 5, 17]) | Tuple.to_list(shape)]))})"

        7 ->
          "Nx.tile(#{a}, #{inspect(for _ <- Nx.axes(t), do: Enum.random(1..2))})"

        8 ->
          "Nx.flatten(#{a})"
      end
    end

    defp text(:slice, {_, _, {b, _}, i, {a, t}}) do
      extents = Tuple.to_list(t.shape)
      lengths = for extent <- extents, do: Enum.random(1..extent)
      strides = for _ <- extents, do: Enum.random(1..3)

      starts =
        for {extent, length} <- Enum.zip(extents, lengths), do: Enum.random(0..(extent - length))

      dynamic =
        for start <- starts do
          if i && chance(2), do: "Nx.reduce_max(#{elem(i, 0)})", else: start
        end

      dynamic = "[#{Enum.join(dynamic, ", ")}]"

      case Enum.random(1..4) do
        1 ->
          "Nx.slice(#{a}, #{inspect(starts, charlists: :as_lists)}, #{inspect(lengths, charlists: :as_lists)}, strides: #{inspect(strides, charlists: :as_lists)})"

        2 ->
          "Nx.slice(#{a}, #{dynamic}, #{inspect(lengths, charlists: :as_lists)})"

        3 ->
          "Nx.put_slice(#{a}, #{dynamic}, Nx.broadcast(Nx.sum(#{b}), #{inspect(List.to_tuple(lengths))}))"

        4 when extents != [] ->
          "#{a}[#{Enum.random(0..(hd(extents) - 1))}]"

        _ ->
          nil
      end
    end

    defp text(:join, {env, {a, t}, {b, _}, _, {c, u}}) do
      axis = Enum.random(Nx.axes(t) ++ [0])

      fits =
        for {name, %{shape: shape}} <- env, tuple_size(shape) == tuple_size(t.shape), do: name

      case Enum.random(1..4) do
        1 ->
          "Nx.concatenate([#{a}, #{Enum.random(fits)}, Nx.sin(#{a})], axis: #{axis})"

        2 ->
          "Nx.stack([#{a}, Nx.multiply(#{a}, #{b}), #{Enum.random(fits)}], axis: #{axis})"

        3 ->
          config =
            for _ <- Nx.axes(t),
                do: {Enum.random(-1..3), Enum.random(-1..3), Enum.random([0, 0, 1, 2])}

          "Nx.pad(#{a}, Nx.sum(#{b}), #{inspect(config)})"

        4 ->
          config =
            for _ <- Nx.axes(u), do: {Enum.random(-2..2), Enum.random(-2..2), Enum.random([0, 1])}

          "Nx.pad(#{c}, 0, #{inspect(config)})"
      end
    end

    defp text(:index, {_, {a, t}, {b, _}, i, _}) when t.shape != {} do
      axis = Enum.random(Nx.axes(t))
      extent = Nx.axis_size(t, axis)
      count = Enum.random(@extents)

      index =
        if i && chance(2),
          do: "Nx.remainder(Nx.abs(Nx.as_type(#{elem(i, 0)}, :s32)), #{extent})",
          else: "Nx.remainder(Nx.multiply(Nx.iota({#{count}}), 7), #{extent})"

      case Enum.random(1..5) do
        1 ->
          "Nx.take(#{a}, #{index}, axis: #{axis})"

        2 ->
          "Nx.take_along_axis(#{a}, Nx.as_type(Nx.floor(Nx.multiply(Nx.sigmoid(#{a}), #{extent - 0.01})), :s32), axis: #{axis})"

        3 ->
          "Nx.gather(#{a}, Nx.new_axis(#{index}, -1), axes: [#{axis}])"

        4 ->
          "Nx.indexed_add(#{a}, Nx.new_axis(Nx.remainder(Nx.iota({#{count}}), #{elem(t.shape, 0)}), -1), " <>
            "Nx.broadcast(Nx.sum(#{b}), #{inspect(put_elem(t.shape, 0, count))}))"

        5 ->
          "Nx.gather(#{a}, Nx.stack([#{Enum.map_join(Tuple.to_list(t.shape), ", ", &"Nx.remainder(Nx.iota({#{count}}), #{&1})")}], axis: 1))"
      end
    end

    defp text(:reduce, {_, {a, t}, _, i, _}) do
      axes = some(Nx.axes(t))
      opts = if chance(4), do: "", else: ", axes: #{inspect(axes)}, keep_axes: #{chance(2)}"

      case Enum.random(1..9) do
        n when n < 4 ->
          "Nx.#{Enum.random(~w(sum reduce_max reduce_min mean)a)}(#{a}#{opts})"

        4 ->
          "Nx.product(Nx.tanh(#{a})#{opts})"

        5 ->
          "Nx.#{Enum.random(~w(logsumexp variance)a)}(#{a}#{opts})"

        6 ->
          "Nx.#{Enum.random(~w(all any)a)}(Nx.greater(#{a}, 0)#{opts})"

        7 when t.shape != {} ->
          "Nx.cumulative_#{Enum.random(~w(sum sum product max)a)}(#{a}, axis: #{Enum.random(Nx.axes(t))})"

        8 ->
          "Nx.sum(Nx.multiply(#{a}, Nx.sum(Nx.cos(Nx.subtract(#{a}, Nx.mean(#{a}#{opts})))#{opts}))#{opts})"

        9 when i != nil ->
          "Nx.#{Enum.random(~w(sum reduce_max reduce_min product all any)a)}(#{elem(i, 0)})"

        _ ->
          nil
      end
    end

    defp text(:dot, {env, {a, t}, _, _, {c, _}}) do
      pairs =
        for {b, u} <- env,
            x <- Nx.axes(t),
            y <- Nx.axes(u),
            elem(t.shape, x) == elem(u.shape, y),
            do: {b, u, x, y}

      case pairs do
        [] ->
          "Nx.outer(#{a}, #{c})"

        pairs ->
          {b, u, x, y} = Enum.random(pairs)

          if x == 0 and y == 0 and chance(2) do
            others =
              for i <- tl(Nx.axes(t)),
                  j <- tl(Nx.axes(u)),
                  elem(t.shape, i) == elem(u.shape, j),
                  do: {i, j}

            case others do
              [] ->
                "Nx.dot(#{a}, [], [0], #{b}, [], [0])"

              others ->
                {i, j} = Enum.random(others)
                "Nx.dot(#{a}, [#{i}], [0], #{b}, [#{j}], [0])"
            end
          else
            "Nx.dot(#{a}, [#{x}], #{b}, [#{y}])"
          end
      end
    end

    defp text(:compare, {_, {a, _}, {b, _}, _, {c, _}}) do
      compare = Enum.random(~w(equal not_equal greater less greater_equal less_equal)a)

      Enum.random([
        "Nx.#{compare}(#{a}, #{c})",
        "Nx.#{Enum.random(~w(logical_and logical_or logical_xor)a)}(Nx.#{compare}(#{a}, #{b}), #{c})",
        "Nx.logical_not(Nx.#{compare}(#{a}, 0.25))",
        "Nx.#{Enum.random(~w(is_nan is_infinity)a)}(Nx.log(#{a}))"
      ])
    end

    defp text(:choose, {_, {a, t}, {b, _}, i, {c, _}}) do
      Enum.random([
        "Nx.select(Nx.greater(#{a}, #{b}), Nx.exp(Nx.min(#{a}, 2)), Nx.multiply(#{b}, 3))",
        "Nx.select(Nx.greater(#{c}, 0), #{a}, #{b})",
        "Nx.select(Nx.sum(#{c}), #{a}, 0)",
        "Nx.clip(#{a}, #{Enum.random(["-0.5", "Nx.min(0, Nx.reduce_min(#{b}))"])}, 0.5)",
        "Choice.either(Nx.greater(Nx.sum(#{b}), 0), #{a}, Nx.cos(#{a}))",
        "Choice.both(Nx.sum(#{c}), #{a}, Nx.sin(#{a}))",
        if(i, do: "Nx.as_type(#{elem(i, 0)}, q.type)"),
        if(t.shape != {}, do: "Nx.tril(Nx.outer(#{a}, #{b}))")
      ])
    end

    defp text(:integer, {env, {a, _}, _, {i, _}, _}) do
      {j, _} = pick(env, :int)

      Enum.random([
        "Nx.#{Enum.random(~w(add subtract multiply min max bitwise_and bitwise_or bitwise_xor)a)}(#{i}, #{j})",
        "Nx.#{Enum.random(~w(add subtract multiply min max bitwise_and bitwise_or)a)}(#{i}, #{Enum.random(1..9)})",
        "Nx.#{Enum.random(~w(quotient remainder)a)}(#{i}, #{Enum.random([1, 2, 3, 7])})",
        "Nx.#{Enum.random(~w(quotient remainder)a)}(#{i}, Nx.max(#{j}, 1))",
        "Nx.#{Enum.random(~w(negate abs sign)a)}(#{i})",
        "Nx.#{Enum.random(~w(left_shift right_shift)a)}(#{i}, 2)",
        "Nx.as_type(Nx.multiply(#{a}, 3), #{inspect(Enum.random(~w(s8 s16 s32 s64)a))})",
        "Nx.as_type(#{i}, #{inspect(Enum.random(~w(u8 s8 u16 s16 s32 s64)a))})",
        "Nx.select(Nx.greater(#{i}, #{j}), #{i}, #{j})",
        "Nx.#{Enum.random(~w(sum product reduce_max reduce_min)a)}(#{i})",
        "Nx.dot(Nx.flatten(#{i}), Nx.flatten(#{i}))",
        "Nx.clip(#{i}, 1, 5)"
      ])
    end

    defp text(:integer, {_, {a, _}, _, nil, _}), do: "Nx.as_type(Nx.multiply(#{a}, 3), :s32)"

    defp text(:constant, {_, {a, _}, _, _, _}) do
      shape = inspect(shape())

      Enum.random([
        "Nx.as_type(Nx.iota(#{shape}), q.type)",
        "Nx.iota(#{shape})",
        "Nx.eye(#{Enum.random([1, 2, 3, 9])})",
        "Nx.multiply(#{a}, Nx.eye(#{inspect({Enum.random([2, 17]), Enum.random([3, 17])})}))",
        "Nx.broadcast(Nx.as_type(0.7, q.type), #{shape})",
        "Nx.max(#{a}, Nx.Constants.neg_infinity(q.type))",
        "Nx.select(Nx.greater(#{a}, 100), Nx.Constants.nan(q.type), #{a})",
        "Nx.min(#{a}, Nx.Constants.infinity(q.type))",
        "Nx.linspace(-1, 1, n: #{Enum.random(@extents)}, type: q.type)"
      ])
    end

    defp text(:algebra, {_, {a, t}, {b, u}, _, _}) do
      n = Enum.random([1, 2, 3, 3, 4])
      square = "Nx.reshape(Nx.slice(Nx.flatten(#{a}), [0], [#{n * n}]), {#{n}, #{n}})"
      shift = "Nx.add(#{square}, Nx.multiply(Nx.eye(#{n}), 4))"

      Enum.random([
        "Nx.LinAlg.determinant(#{square})",
        "Nx.LinAlg.norm(Nx.flatten(#{a}))",
        "Nx.LinAlg.matrix_power(#{square}, #{Enum.random(1..3)})",
        "Nx.#{Enum.random(~w(tril triu)a)}(#{square})",
        "Nx.#{Enum.random(~w(trace take_diagonal)a)}(#{square})",
        if(Nx.size(t) < 30, do: "Nx.make_diagonal(Nx.flatten(#{a}))"),
        if(chance(4), do: "Nx.LinAlg.#{Enum.random(~w(invert cholesky)a)}(#{shift})"),
        if(Nx.size(u) < 60, do: "Nx.outer(Nx.flatten(#{a}), Nx.flatten(#{b}))"),
        "Nx.weighted_mean(#{a}, Nx.exp(Nx.tanh(#{a})))",
        "Nx.standard_deviation(#{a})",
        "Nx.diff(Nx.flatten(#{a}))",
        "Nx.covariance(#{square})"
      ])
    end

    defp text(:vector, {_, {a, t}, {b, u}, _, {c, _}}) when t.shape != {} and u.shape != {} do
      Enum.random([
        "Nx.vectorize(#{a}, :x) |> Nx.sin() |> Nx.sum() |> Nx.devectorize(keep_names: false)",
        "Nx.add(Nx.vectorize(#{a}, :x), Nx.sum(Nx.vectorize(#{b}, :y))) |> Nx.devectorize(keep_names: false)",
        "Nx.vectorize(#{a}, :x) |> Nx.multiply(#{c}) |> Nx.reduce_max() |> Nx.devectorize(keep_names: false)",
        "Nx.dot(Nx.flatten(Nx.vectorize(#{a}, :x)), Nx.flatten(Nx.vectorize(#{a}, :x))) |> Nx.devectorize(keep_names: false)",
        "Nx.logsumexp(Nx.vectorize(#{a}, :x)) |> Nx.devectorize(keep_names: false)"
      ])
    end

    defp text(:other, {_, {a, t}, _, _, _}) do
      cond do
        t.shape == {} or not chance(8) ->
          nil

        true ->
          Enum.random([
            "Nx.sort(#{a})",
            "Nx.argmax(#{a})",
            "Nx.window_sum(#{a}, #{inspect(Tuple.duplicate(1, tuple_size(t.shape)))})",
            "Nx.as_type(Nx.real(Nx.fft(#{a})), q.type)",
            "Nx.median(#{a})",
            "Nx.indexed_put(#{a}, Nx.tensor([#{inspect(Tuple.to_list(Tuple.duplicate(0, tuple_size(t.shape))))}]), Nx.tensor([1.0], type: q.type))",
            "Nx.population_count(Nx.as_type(#{a}, :s32))"
          ])
      end
    end

    defp text(_, _), do: nil

    def shape do
      shape = List.to_tuple(for _ <- 1..Enum.random(0..3)//1, do: Enum.random(@extents))
      if Tuple.product(shape) > 400, do: shape(), else: shape
    end

    def chance(n), do: :rand.uniform(n) == 1

    defp some(axes), do: Enum.filter(axes, fn _ -> chance(2) end)

    defp factored(size) do
      factor = Enum.random(for n <- 1..min(size, 65), rem(size, n) == 0, do: n)

      Enum.random([
        {factor, div(size, factor)},
        {div(size, factor), 1, factor},
        {div(size, factor), factor}
      ])
    end
  end
end
