if Code.ensure_loaded?(Nx) do
  defmodule Nx.Vulkan.Checks do
    @moduledoc false
    # What the VM knows of the operands of a program's steps, where some have no result. A program makes no call that would
    # look at them.

    alias Nx.Tensor, as: T
    alias Nx.Vulkan.{Later, Operand, Step, VulkanoBackend}

    # Ops of which some operands have no result, and those that only integers lack one for.
    @checked ~w(remainder gather indexed_add indexed_put triangular_solve)a
    @integers ~w(quotient pow left_shift right_shift)a
    @blocks [Nx.Block.Take, Nx.Block.TakeAlongAxis, Nx.Block.LinAlg.Cholesky]

    @doc """
    The steps of a part that have to be checked before each run. What is the same in every run is checked now, and again
    where that raises; what the program makes nobody looks at.
    """
    def open(part, %{captured: captured, templates: templates} = steps) do
      routine = %{captured: captured, templates: templates, views: views(steps)}
      given = MapSet.new(Enum.reject(part.reads, &is_map_key(captured, &1)))

      Enum.filter(part.steps, fn step ->
        checked?(step) and (varies?(step, given, routine) or not passes?(step, routine))
      end)
    end

    @doc """
    The steps that are views, by what they make.
    """
    def views(%{steps: steps}) do
      views = for %{native: {:view, _, _}, makes: [slot]} = step <- steps, do: {slot, step}
      Map.new(views)
    end

    @doc """
    Whether the call of a step looks at its operands first, since there may be no result.
    """
    def checked?(%{op: :block, struct: %name{}}), do: name in @blocks

    def checked?(%{op: op, out: %T{type: {kind, _}}}),
      do: op in @checked or (op in @integers and kind in [:s, :u])

    defp varies?(step, given, %{views: views}) do
      slots = for {:slot, slot} <- Operand.looked_at(step), do: slot
      Enum.any?(slots, &given?(&1, given, views))
    end

    defp given?(slot, given, views) do
      case views do
        %{^slot => %{reads: [source]}} -> slot in given or given?(source, given, views)
        %{} -> slot in given
      end
    end

    defp passes?(step, routine) do
      check!(step, %{}, routine)
      true
    rescue
      _ -> false
    end

    @doc """
    Raises as the backend's call does where the VM knows that a step has no result for what is in its slots.
    """
    def check!(%{op: :block} = step, values, routine),
      do: Operand.check_block!(step.struct, Step.fill(step.args, &known(&1, values, routine)))

    def check!(step, values, routine),
      do: Operand.check!(step.op, Step.fill(step.args, &known(&1, values, routine)))

    defp known(slot, values, %{captured: captured, views: views} = routine) do
      case {values, captured, views} do
        {%{^slot => value}, _, _} -> Later.value(value)
        {_, %{^slot => tensor}, _} -> tensor
        {_, _, %{^slot => %{reads: [source]} = step}} -> view(step, source, slot, values, routine)
        _ -> Map.fetch!(routine.templates, slot)
      end
    end

    defp view(step, source, slot, values, routine) do
      case known(source, values, routine) do
        %T{data: %VulkanoBackend{}} = source -> step |> Step.call(fn _ -> source end) |> hd()
        _ -> Map.fetch!(routine.templates, slot)
      end
    end
  end
end
