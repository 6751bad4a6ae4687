defmodule Nx.Vulkan.PrecisionAttributeTest do
  use ExUnit.Case, async: true

  alias Nx.Vulkan.{Device, NativeV, Precision}

  @spec_ {{:f, 32}, {2, 2}}

  defp run(op, attrs) do
    {:ok, device} = Device.fetch(Device.default())
    bytes = for x <- [1.0, 2.0, 3.0, 4.0], into: <<>>, do: <<x::float-32-native>>
    {:ok, ref} = NativeV.upload(device, {:f, 32}, {2, 2}, bytes)

    with {:ok, [ref]} <- NativeV.run(op, [ref, ref], [@spec_], attrs),
         do: NativeV.download(ref, 4)
  end

  @axes [batch_a: [], batch_b: [], contract_a: [1], contract_b: [0]]

  test "a request may say how exact it has to be" do
    {:ok, plain} = run("dot", @axes)
    assert plain == for(x <- [7.0, 10.0, 15.0, 22.0], into: <<>>, do: <<x::float-32-native>>)

    for value <- [:default, :high, "highest"],
        do: assert(run("dot", [precision: value] ++ @axes) == {:ok, plain})

    {:error, :bad_input, why} = run("dot", [precision: :low] ++ @axes)
    assert why =~ "dot of (f32[2, 2], f32[2, 2])"
    assert why =~ "precision must be default or high or highest"
    assert {:error, :bad_input, _} = run("dot", [precision: 1] ++ @axes)
  end

  test "the option adds an attribute where it allows or forbids something" do
    assert Precision.add([a: 1], :dot, precision: :high) == [precision: :high, a: 1]
    assert Precision.add([], :conv, precision: :highest) == [precision: :highest]
    assert Precision.add([], :add, precision: :high) == []
    assert Precision.add([], :dot, precision: :default) == []
    assert Precision.add([], :dot, []) == []
  end
end

if Code.ensure_loaded?(Nx) do
  defmodule Nx.Vulkan.PrecisionTest do
    use ExUnit.Case, async: true

    alias Nx.Vulkan.VulkanoBackend, as: V

    defp random(shape, seed) do
      {t, _} = Nx.Random.uniform(Nx.Random.key(seed), -1, 1, shape: shape, type: :f32)
      Nx.backend_transfer(t, Nx.BinaryBackend)
    end

    defp on(t), do: Nx.backend_copy(t, V)
    defp off(t), do: Nx.backend_transfer(t, Nx.BinaryBackend)

    # In f64, and the sum of the products' magnitudes.
    defp expected(fun, operands) do
      wide = Enum.map(operands, &Nx.as_type(&1, :f64))
      {apply(fun, wide), apply(fun, Enum.map(wide, &Nx.abs/1))}
    end

    # The largest error in relation to these magnitudes.
    defp error(got, {sum, magnitude}) do
      error = got |> off() |> Nx.subtract(sum) |> Nx.abs() |> Nx.divide(magnitude)
      Nx.to_number(Nx.reduce_max(error))
    end

    defp conv(x, kernel), do: Nx.conv(x, kernel, padding: :same)

    test "products and convolutions are within 1e-5, however they are asked for" do
      matrices = [random({64, 100}, 1), random({100, 48}, 2)]
      images = [random({2, 4, 9, 9}, 3), random({8, 4, 3, 3}, 4)]
      assert Nx.default_backend() |> elem(0) == Nx.BinaryBackend

      for {fun, operands} <- [{&Nx.dot/2, matrices}, {&conv/2, images}],
          expected = expected(fun, operands),
          precision <- [:default, :high, :highest] do
        ours = Enum.map(operands, &on/1)
        backend = {V, precision: precision}
        options = [compiler: Nx.Vulkan.Compiler, precision: precision]

        for got <- [
              Nx.with_default_backend(backend, fn -> apply(fun, ours) end),
              apply(Nx.Defn.jit(fun, options), ours),
              apply(Nx.Defn.compile(fun, operands, options), ours)
            ],
            do: assert(error(got, expected) < 1.0e-5)
      end
    end

    test "a call has a precision of its own, with what becomes of the product and without" do
      operands = [random({33, 70}, 1), random({70, 37}, 2)]
      {sums, magnitudes} = expected = expected(&Nx.dot/2, operands)
      [x, w] = Enum.map(operands, &on/1)

      for precision <- [:default, :high, :highest] do
        dot = fn x, w, fun ->
          Nx.Vulkan.dot(x, [1], [], w, [0], [], [], fun, precision: precision)
        end

        assert error(dot.(x, w, & &1), expected) < 1.0e-5
        assert error(dot.(x, w, &Nx.negate/1), {Nx.negate(sums), magnitudes}) < 1.0e-5
        columns = off(dot.(x, w, &Nx.sum(&1, axes: [0])))
        assert_all_close(columns, Nx.sum(sums, axes: [0]))
        jit = Nx.Vulkan.jit(&dot.(&1, &2, fn y -> y end)).(x, w)
        assert error(jit, expected) < 1.0e-5
        sum = fn {x, w} -> Nx.sum(dot.(x, w, fn y -> y end)) end
        {gradient, _} = Nx.Defn.grad({x, w}, sum)
        rows = Nx.sum(Enum.at(operands, 1), axes: [1])
        assert_all_close(off(gradient), Nx.broadcast(rows, x.shape))
      end
    end

    defp assert_all_close(a, b), do: assert(Nx.to_number(Nx.all_close(a, b, atol: 1.0e-4)) == 1)

    test "requests of the default backend have its option" do
      arguments = List.duplicate(Nx.template({2048, 2048}, :f32), 2)

      picked = fn precision ->
        Nx.with_default_backend({V, precision: precision}, fn ->
          Nx.Vulkan.explain(:dot, arguments)
        end)
      end

      # No kernel for this device is less exact.
      assert picked.(:high).picked == picked.(:default).picked

      for value <- [:high, :highest] do
        step = fn opts ->
          expr = Nx.Defn.debug_expr(&Nx.dot/2).(Nx.iota({2, 2}), Nx.iota({2, 2}))
          {:ok, steps, _} = Nx.Vulkan.Steps.new(expr, {V, opts})
          Enum.find_value(steps.steps, &match_dot(&1.native))
        end

        assert step.(precision: value)[:precision] == value
        assert step.([])[:precision] == nil
      end
    end

    defp match_dot({:request, "dot", _, attrs}), do: attrs
    defp match_dot(_), do: nil

    test "what no argument changes is as exact as what a function is compiled for" do
      test = self()

      compile = fn ->
        # Literals are constants of the trace.
        fun = fn x ->
          Nx.add(x, Nx.dot(Nx.iota({8, 8}, type: :f32), Nx.iota({8, 8}, type: :f32)))
        end

        options = [compiler: Nx.Vulkan.Compiler, precision: :highest]
        Nx.Defn.compile(fun, [Nx.template({8, 8}, :f32)], options)
      end

      pid =
        spawn_link(fn ->
          receive do: (:go -> compile.())
          send(test, :compiled)
        end)

      :erlang.trace(pid, true, [:call])
      :erlang.trace_pattern({Nx.Vulkan.NativeV, :run, 4}, true, [:local])
      send(pid, :go)
      assert_receive :compiled, 600_000
      :erlang.trace_pattern({Nx.Vulkan.NativeV, :run, 4}, false, [:local])
      assert_receive {:trace, ^pid, :call, {_, :run, ["dot", _, _, attrs]}}
      assert attrs[:precision] == :highest
    end

    test "a call on vectorized tensors has a precision of its own" do
      x = Nx.vectorize(random({3, 33, 70}, 1), :x)
      y = Nx.vectorize(random({2, 70, 37}, 2), :y)
      w = random({70, 37}, 3)
      scale = random({37}, 4)

      for {a, b} <- [{x, w}, {w, x}, {x, y}, {x, Nx.vectorize(random({3, 70, 37}, 5), :x)}],
          contract = if(b == x, do: [0, -1], else: [1, 0]),
          {fun, operands} <- [{& &1, []}, {&Nx.multiply/2, if(b == x, do: [], else: [scale])}],
          is_function(fun, length(operands) + 1) do
        dot = fn a, b, opts ->
          [c, d] = contract
          Nx.Vulkan.dot(a, [c], [], b, [d], [], operands, fun, opts)
        end

        expected = dot.(a, b, [])
        got = dot.(on(a), on(b), precision: :highest)
        assert Nx.names(got) == Nx.names(expected)
        assert got.vectorized_axes == expected.vectorized_axes

        assert got
               |> Nx.subtract(expected)
               |> Nx.devectorize()
               |> Nx.abs()
               |> Nx.reduce_max()
               |> Nx.to_number() < 1.0e-4

        expr = Nx.Defn.debug_expr(&dot.(&1, &2, precision: :highest)).(a, b)
        assert [:highest] = precisions(expr)
        jit = Nx.Vulkan.jit(&dot.(&1, &2, precision: :highest)).(on(a), on(b))
        assert jit.vectorized_axes == expected.vectorized_axes
      end
    end

    # Those of the blocks of products.
    defp precisions(%Nx.Tensor{
           data: %Nx.Defn.Expr{op: :block, args: [%Nx.Vulkan.Dot{} = dot | _]}
         }),
         do: [dot.precision]

    defp precisions(%Nx.Tensor{data: %Nx.Defn.Expr{args: args}}),
      do: Enum.flat_map(args, &precisions/1)

    defp precisions(_), do: []

    test "other values are refused where they are set" do
      message = ~r/expected :precision to be :default, :high or :highest, got: :low/
      assert_raise ArgumentError, message, fn -> Nx.default_backend({V, precision: :low}) end

      assert_raise ArgumentError, message, fn ->
        Nx.Defn.jit(&Nx.dot/2, compiler: Nx.Vulkan.Compiler, precision: :low).(1, 2)
      end

      assert_raise ArgumentError, message, fn ->
        Nx.Vulkan.dot(Nx.iota({2}), [0], [], Nx.iota({2}), [0], [], [], & &1, precision: :low)
      end
    end
  end
end
