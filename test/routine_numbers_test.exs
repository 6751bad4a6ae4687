if Code.ensure_loaded?(Nx) do
  defmodule Nx.Vulkan.RoutineNumbersTest do
    use ExUnit.Case, async: true

    import Nx.Vulkan.Routines

    alias Nx.Vulkan.{Compiler, VulkanoBackend}

    setup do
      Nx.default_backend(VulkanoBackend)
      :ok
    end

    defmodule Defns do
      @moduledoc false
      import Nx.Defn

      # The loop is written out, and the block is its default function on tensors with names.
      defn named(x, y) do
        sum = Nx.add(x, Nx.broadcast(1.0, {2}, names: [:i]))

        {_, _, close} =
          while {k = 0, y, close = Nx.u8(0)}, k < 3 do
            {k + 1, y, close + Nx.all_close(y, Nx.broadcast(1.0, {2}, names: [:j]))}
          end

        {sum, close}
      end
    end

    test "what is the same in every run is checked once, and where it has no result by each call" do
      x = Nx.iota({3, 4})
      checks = fn fun, args -> Enum.flat_map(routine(fun, args).parts, & &1.checks) end

      constant = fn x ->
        rows = Nx.take(x, Nx.tensor([2, 0]))
        Nx.add(Nx.right_shift(rows, Nx.tensor(1)), Nx.quotient(rows, Nx.tensor([1, 2, 3, 4])))
      end

      assert checks.(constant, [x]) == []
      same(constant, [x])

      given = fn x, by -> Nx.negate(Nx.quotient(x, Nx.reshape(by, {3, 1}))) end
      assert [%{op: :quotient}] = checks.(given, [x, Nx.tensor([1, 2, 3])])
      compiled = Nx.Defn.compile(given, [x, Nx.template({3}, :s32)], compiler: Compiler)
      same(given, [x, Nx.tensor([1, 2, 3])])

      for _ <- 1..2,
          do: assert_raise(ArithmeticError, fn -> compiled.(x, Nx.tensor([1, 0, 3])) end)

      # The view of an argument is made by an earlier part.
      twice = fn x, by ->
        column = Nx.reshape(by, {3, 1})

        {Nx.LinAlg.adjoint(Nx.quotient(Nx.reduce(x, 0, fn a, b -> Nx.add(a, b) end), column)),
         column}
      end

      assert_raise ArithmeticError, fn ->
        Nx.Defn.jit_apply(twice, [x, Nx.tensor([1, 0, 3])], compiler: Compiler)
      end

      far = fn x -> Nx.negate(Nx.take(Nx.add(x, 1), Nx.tensor([2, 3]))) end
      assert [%{op: :block}] = checks.(far, [x])
      compiled = Nx.Defn.compile(far, [x], compiler: Compiler)
      message = "index 3 is out of bounds for axis 0 in shape {3, 4}"
      for _ <- 1..2, do: assert_raise(ArgumentError, message, fn -> compiled.(x) end)
    end

    test "numbers of the same bits are one, and what is created is a part of the program" do
      fun = fn x -> {Nx.divide(x, 0.0), Nx.divide(x, -0.0), Nx.exp(Nx.divide(x, 0.0))} end
      assert ops(fun, [Nx.tensor([1.0])]) == [:divide, :divide, :exp]
      same(fun, [Nx.tensor([-0.0, 1.5])])

      same(&Defns.named/2, [
        Nx.tensor([1.0, 2.0], names: [:i]),
        Nx.tensor([2.0, 1.0], names: [:j])
      ])

      for {type, axis} <- [{:f32, 1}, {:bf16, nil}, {:u8, 0}, {:s64, 1}, {:c64, nil}, {:u4, 1}] do
        made = fn x ->
          ones = Nx.eye({1024, 1025}, type: type)
          Nx.add(Nx.add(Nx.iota({1024, 1025}, axis: axis, type: type), x), ones)
        end

        same(made, [Nx.tensor(1, type: type)])
      end

      large = fn x -> Nx.add(x, Nx.iota({1025, 256})) end
      assert [%{program: program, steps: [_, _]}] = routine(large, [Nx.tensor(1)]).parts
      assert is_reference(program)
    end
  end
end
