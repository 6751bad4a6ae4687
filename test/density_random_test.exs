Code.require_file("support/random_line.exs", __DIR__)

if Code.ensure_loaded?(Nx) do
  defmodule Nx.Vulkan.DensityRandomTest do
    use ExUnit.Case, async: true

    @moduletag :synthesized

    import Nx.Vulkan.RandomLine
    alias Nx.Vulkan.Density

    # DENSITY_SEEDS=first..last runs others, such as the one that a failure names.
    @seeds System.get_env("DENSITY_SEEDS", "1..30")
    # Relative to the largest component.
    @tolerance %{f64: 1.0e-10, f32: 1.0e-3}
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
  end
end
