defmodule Nx.Vulkan.Routines do
  @moduledoc false
  # What a function is compiled to, and whether that gives what the evaluator gives.

  import ExUnit.Assertions

  alias Nx.Vulkan.{Compiler, Routine, Steps, Trace, VulkanoBackend}

  @backend {VulkanoBackend, []}

  @doc "The routine of a function of such arguments."
  def routine(fun, args) do
    {:ok, routine} = Routine.new(Trace.of(fun, args), @backend)
    routine
  end

  @doc "The ops of its steps, in their order."
  def ops(fun, args) do
    {:ok, steps, _} = Steps.new(Trace.of(fun, args), @backend)
    Enum.map(steps.steps, & &1.op)
  end

  @doc "Asserts that it gives the bits, types and names that the evaluator gives, again and again."
  def same(fun, args) do
    expected = Nx.Defn.jit_apply(fun, args, compiler: Nx.Defn.Evaluator)
    compiled = Nx.Defn.compile(fun, args, compiler: Compiler)

    for _ <- 1..2 do
      got = apply(compiled, args)
      pairs = Enum.zip(Nx.Defn.Composite.flatten_list([got]), flat(expected))

      for {got, expected} <- pairs do
        assert %VulkanoBackend{} = got.data

        assert {got.shape, got.type, got.names} ==
                 {expected.shape, expected.type, expected.names}

        assert Nx.to_binary(got) == Nx.to_binary(expected)
      end

      assert length(pairs) == length(flat(expected))
    end
  end

  defp flat(composite), do: Nx.Defn.Composite.flatten_list([composite])
end
