if Code.ensure_loaded?(Nx) do
  defmodule Nx.Vulkan.Step do
    @moduledoc false
    # One step of a traced function as a call.

    alias Nx.Defn.Composite
    alias Nx.Vulkan.{Routine, VulkanoBackend}

    @doc """
    Calls the backend for a step; `fetch` gives the tensor in a slot. The results are in the order of the step's slots.
    """
    def call(%{op: :while, condition: condition, body: body, reads: reads}, fetch),
      do: Routine.loop(condition, body, Enum.map(reads, fetch))

    def call(%{op: :strides, body: body, strides: strides}, fetch) do
      Enum.reduce(strides, [], fn slots, made ->
        made = List.to_tuple(made)

        Routine.apply_to(
          body,
          Enum.map(slots, fn
            {:made, at} -> elem(made, at)
            slot -> fetch.(slot)
          end)
        )
      end)
    end

    def call(%{op: :cond, clauses: clauses, last: last, reads: reads}, fetch),
      do: Routine.choose(clauses, last, Enum.map(reads, fetch))

    def call(%{op: :hook, fun: fun, out: out, reads: reads}, fetch) do
      fun.(Routine.results(out, Enum.map(reads, fetch)))
      []
    end

    def call(%{op: :block, struct: struct, out: out, args: args, fun: fun}, fetch),
      do: Composite.flatten_list([VulkanoBackend.block(struct, out, fill(args, fetch), fun)])

    def call(%{op: op, out: out, args: args, options: options}, fetch),
      do: [apply(VulkanoBackend, op, [out | fill(args, fetch)] ++ options)]

    @doc """
    Arguments with tensors in the place of slots.
    """
    def fill(args, fetch) do
      Enum.map(args, fn
        {:slot, slot} -> fetch.(slot)
        [_ | _] = list -> fill(list, fetch)
        arg -> arg
      end)
    end
  end
end
