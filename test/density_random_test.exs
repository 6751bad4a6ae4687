if Code.ensure_loaded?(Nx) do
  defmodule Nx.Vulkan.DensityRandomTest do
    use ExUnit.Case, async: true

    alias Nx.Vulkan.Density

    @moduletag timeout: 600_000

    # DENSITY_SEEDS=first..last runs others, such as the one that a failure names.
    @seeds System.get_env("DENSITY_SEEDS", "1..30")
    # Relative to the largest component.
    @tolerance %{f64: 1.0e-10, f32: 1.0e-3}
    @extents [1, 1, 2, 2, 3, 5, 7, 8, 9, 16, 17, 64, 65, 200]
    @largest 1_500
    @integers ~w(u8 s8 u16 s16 s32 s32 s64 u32)a

    defmodule Choice do
      import Nx.Defn

      defn either(p, a, b) do
        cond do
          p -> a
          true -> b
        end
      end

      defn both(p, a, b) do
        {x, y} =
          cond do
            p > 1 -> {a, b}
            p > 0 -> {b, a}
            true -> {a + b, a * b}
          end

        x - 0.5 * y
      end
    end

    @env Macro.Env.prune_compile_info(__ENV__)

    test "random programs give the value and gradient of Nx, or are refused" do
      Nx.default_backend(Nx.BinaryBackend)
      [first, last] = @seeds |> String.split("..") |> Enum.map(&String.to_integer/1)
      results = Enum.map(first..last, &check/1)
      counts = Enum.frequencies_by(results, &if(is_binary(&1), do: :wrong, else: &1))
      IO.puts("random densities: #{inspect(counts)}")
      assert Enum.filter(results, &is_binary/1) |> Enum.join("\n") == ""
      assert Map.get(counts, :refused, 0) <= div(last - first, 4) + 1
    end

    # A program is a text of Nx, made line by line: a line stays if Nx computes it at a point.
    defp check(seed) do
      :rand.seed(:exsss, {seed, 2, 3})
      type = Enum.random([:f64, :f64, :f32])
      program = program(type)

      case verdict(program, type) do
        fault when is_binary(fault) -> report("#{fault}\n#{show(seed, program)}")
        other -> other
      end
    end

    defp report(text) do
      IO.puts(text)
      text
    end

    defp verdict({text, d, data}, type) do
      {fun, _} = Code.eval_string(text, [], @env)
      opts = [data: data, type: type, subgroups: true]

      case Density.source(fun, d, opts) do
        {:ok, %{glsl: glsl}} ->
          {:ok, again} = Density.source(fun, d, opts)
          density = Density.new!(fun, d, data: data, type: type)

          # A comparison may tip where both sides round differently: two points of three must agree.
          cond do
            again.glsl != glsl -> "another text the second time"
            fault = fault(density, fun, data, d, type) -> again(fault, density, fun, data)
            true -> :same
          end

        {:error, %ArgumentError{message: "no shader computes " <> rest}} ->
          if System.get_env("DENSITY_REFUSED"), do: IO.puts(rest)
          :refused
      end
    rescue
      error -> Exception.format(:error, error, __STACKTRACE__)
    end

    defp again(fault, density, fun, data) do
      faults =
        for _ <- 1..2, fault = fault(density, fun, data, density.d, density.type), do: fault

      if faults == [], do: :same, else: Enum.join([fault | faults], "\n")
    end

    defp fault(density, fun, data, d, type) do
      point = point(d, type)
      {value, gradient} = reference(fun, point, data)
      want = Nx.to_flat_list(value) ++ Nx.to_flat_list(gradient)

      # What f32 loses to rounding is measured.
      loss =
        if type == :f32 do
          {value, gradient} = reference(fun, Nx.as_type(point, :f64), data)
          difference(want, Nx.to_flat_list(value) ++ Nx.to_flat_list(gradient))
        else
          0.0
        end

      ones = Nx.to_binary(Nx.broadcast(Nx.tensor(1, type: type), {d}))

      {:ok, {_, _, gradient, value}} =
        Density.chain(density, Nx.to_binary(point), ones, ones, [0.0], 1)

      got = floats(value, type) ++ floats(gradient, type)
      largest = want |> Enum.filter(&is_float/1) |> Enum.map(&abs/1) |> Enum.max(fn -> 1.0 end)
      difference = difference(got, want)

      cond do
        is_atom(loss) ->
          nil

        is_atom(difference) ->
          "got #{difference}: #{inspect(hd(got))} for #{inspect(hd(want))}"

        difference > @tolerance[type] * max(largest, 1.0) + 10 * loss ->
          "off by #{difference}, where the largest is #{largest}: #{inspect(Enum.take(got, 6))} for #{inspect(Enum.take(want, 6))}"

        true ->
          nil
      end
    end

    defp reference(fun, point, data) do
      data =
        data
        |> Tuple.to_list()
        |> Enum.map(&if(Nx.Type.float?(&1.type), do: Nx.as_type(&1, point.type), else: &1))
        |> List.to_tuple()

      Nx.Defn.jit_apply(&Nx.Defn.value_and_grad(&1, fn q -> fun.(q, &2) end), [point, data])
    end

    # The largest difference, or another class of value.
    defp difference(got, want) do
      Enum.zip_reduce(got, want, 0.0, fn
        a, b, worst when is_float(a) and is_float(b) and is_float(worst) -> max(worst, abs(a - b))
        same, same, worst -> worst
        _, _, _ -> :another_class
      end)
    end

    defp floats(binary, type), do: binary |> Nx.from_binary(type) |> Nx.to_flat_list()

    defp point(d, type),
      do: Nx.tensor(for(_ <- 1..d, do: Float.round(:rand.normal(), 6)), type: type)

    defp show(seed, {text, d, data}) do
      shapes =
        data
        |> Tuple.to_list()
        |> Enum.map_join(", ", &"#{Nx.Type.to_string(&1.type)}#{inspect(&1.shape)}")

      "DENSITY_SEEDS=#{seed}..#{seed}, d = #{d}, data = #{shapes}\n#{text}"
    end

    ## Programs

    defp program(type) do
      d = if chance(3), do: Enum.random(65..100), else: Enum.random(1..64)
      data = for _ <- 1..Enum.random(1..3), do: tensor(type)
      q = point(d, type)
      names = for {_, n} <- Enum.with_index(data), do: "x#{n}"
      env = [{"q", q} | Enum.zip(names, data)]
      {lines, env} = Enum.reduce(1..Enum.random(3..14), {[], env}, &line(&1, &2, type))
      used = env |> Enum.take(3) |> Enum.filter(fn {_, t} -> is_struct(t, Nx.Tensor) end)
      terms = Enum.map(used, &term/1)
      last = Enum.reduce(terms, fn term, text -> "Nx.add(#{text}, #{term})" end)

      text =
        [
          "fn q, {#{Enum.join(names, ", ")}} ->"
          | pruned(lines, ["  total = #{last}", "  _ = {#{Enum.join(["q" | names], ", ")}}"])
        ] ++
          ["  total", "end\n"]

      {Enum.join(text, "\n"), d, List.to_tuple(data)}
    end

    # Lines that nothing reads are left out.
    defp pruned([], kept), do: kept

    defp pruned([line | lines], kept) do
      [name, _] = line |> String.trim() |> String.split(" = ", parts: 2)
      read? = Enum.any?(kept, &Regex.match?(~r/\b#{name}\b/, &1))
      pruned(lines, if(read?, do: [line | kept], else: kept))
    end

    defp term({name, %{shape: shape}}) do
      name = "Nx.as_type(#{name}, q.type)"
      weights = "Nx.cos(Nx.as_type(Nx.iota(#{inspect(shape)}), q.type))"

      Enum.random([
        "Nx.sum(#{name})",
        "Nx.sum(Nx.multiply(#{name}, #{weights}))",
        "Nx.mean(Nx.pow(#{name}, 2))"
      ])
    end

    defp line(n, program, type, attempts \\ 30)
    defp line(_, program, _, 0), do: program

    defp line(n, {lines, env}, type, attempts) do
      with text when is_binary(text) <- op(env),
           {:ok, %Nx.Tensor{vectorized_axes: []} = t} <- value(text, env, type),
           true <- kept?(t, type) do
        {["  v#{n} = #{text}" | lines], [{"v#{n}", t} | env]}
      else
        _ -> line(n, {lines, env}, type, attempts - 1)
      end
    end

    defp value(text, env, _type) do
      binding = for {name, t} <- env, do: {String.to_atom(name), t}
      {t, _} = Code.eval_string(text, binding, @env)
      {:ok, t}
    rescue
      _ -> :error
    end

    defp kept?(t, type) do
      float? = Nx.Type.float?(t.type)

      cond do
        Nx.size(t) > @largest ->
          false

        match?({:c, _}, t.type) ->
          false

        float? and t.type != Nx.Type.normalize!(type) ->
          false

        not float? ->
          true

        true ->
          t |> Nx.to_flat_list() |> Enum.all?(&(is_float(&1) and abs(&1) < 50)) or chance(60)
      end
    end

    defp tensor(type) do
      shape = shape()
      count = Tuple.product(shape)

      if chance(3) do
        integer = Enum.random(@integers)
        low = if integer in ~w(u8 u16 u32)a, do: 0, else: -9

        Nx.tensor(for(_ <- 1..count, do: Enum.random(low..12)), type: integer)
        |> Nx.reshape(shape)
      else
        Nx.tensor(for(_ <- 1..count, do: Float.round(:rand.normal(), 6)), type: type)
        |> Nx.reshape(shape)
      end
    end

    defp shape do
      shape = List.to_tuple(for _ <- 1..Enum.random(0..3)//1, do: Enum.random(@extents))
      if Tuple.product(shape) > 400, do: shape(), else: shape
    end

    defp chance(n), do: :rand.uniform(n) == 1

    ## Lines

    defp op(env) do
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
