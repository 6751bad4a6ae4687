defmodule Nx.Vulkan.OpsTest do
  # The backend's table of calls against the host's ops, as docs/ops.md has them: a test of the host writes it from its own
  # table, and fails where the two differ.
  use ExUnit.Case, async: true

  alias Nx.Vulkan.{Leapfrog, Ops}

  # Asked for by callbacks that are no calls of the table, or what compiled programs have in the place of several.
  @written ~w(iota eye fill dynamic_slice fused fused_rows attention)

  # What more there is than the host's table has names for: the starts that are tensors.
  @further [put_slice: 1]

  @row ~r/^\| `([\w.]+)` \| ([^|]*) \|/

  # The operands of each op, of the tables alone that the host writes.
  defp host do
    for table <- tl(String.split(File.read!("docs/ops.md"), "<!-- ops: ")),
        line <- table |> String.split("\n\n") |> hd() |> String.split("\n"),
        [_, name, operands] <- [Regex.run(@row, line)],
        into: %{},
        do: {name, operands |> String.split(", ", trim: true) |> length()}
  end

  test "every call is an op of the host, of as many operands" do
    host = host()

    calls =
      for {name, _, operands, _} <- Ops.callbacks(),
          do: {name, length(operands) - Keyword.get(@further, name, 0)}

    assert calls != []

    assert for(
             {name, count} <- calls,
             host["#{name}"] != count,
             do: {name, count, host["#{name}"]}
           ) == []
  end

  test "every op of the host is a call, or is asked for otherwise" do
    calls = for {name, _, _, _} <- Ops.callbacks(), do: "#{name}"
    steps = for {family, _} <- Leapfrog.families(), do: "leapfrog_#{family}"
    {blocks, ops} = host() |> Map.keys() |> Enum.split_with(&String.starts_with?(&1, "Nx.Block."))

    assert ops -- (calls ++ steps ++ @written) == []
    assert (steps ++ @written) -- ops == []

    if Code.ensure_loaded?(Nx) do
      for block <- blocks,
          do: assert({:module, _} = Code.ensure_loaded(Module.concat([block])), block)
    end
  end

  if Code.ensure_loaded?(Nx) do
    test "every call is a callback of Nx.Backend, with as many arguments" do
      callbacks = Nx.Backend.behaviour_info(:callbacks)

      # The first argument is the result.
      calls = for {name, arguments, _, _} <- Ops.callbacks(), do: {name, length(arguments) + 1}

      assert calls -- callbacks == []
      assert calls == Enum.uniq(calls)
    end
  end
end
