if Code.ensure_loaded?(Nx) do
  defmodule Nx.Vulkan.Slots do
    @moduledoc false
    # The numbered slots of a traced function: which steps make them, and what is in those that are known already.

    alias Nx.Vulkan.Step

    # Bytes of a tensor that is kept from when a function was compiled, and of all of them.
    @most_kept 1_048_576
    @all_kept 64 * @most_kept

    @doc """
    The slots of what a step makes: those of the same step before it, of what is computed now, or new ones.
    """
    def emit(step, outs, steps) do
      key = {key(step), Enum.map(outs, &{&1.type, &1.shape})}

      case steps.known do
        %{^key => slots} ->
          {slots, steps}

        %{} ->
          {slots, steps} =
            case kept(step, outs, steps) do
              nil ->
                push(step, outs, steps)

              tensors ->
                Enum.map_reduce(tensors, %{steps | kept: steps.kept + bytes(outs)}, &capture/2)
            end

          {slots, put_in(steps.known[key], slots)}
      end
    end

    # Two blocks that no pack runs are the same only where their functions are, and these cannot be compared.
    defp key(%{op: :block, native: nil}), do: make_ref()
    defp key(step), do: Map.drop(step, [:out, :fun])

    # What a step makes of nothing but what is known now, where that is small. What raises does so when it is called.
    defp kept(step, outs, %{captured: captured} = steps) do
      bytes = bytes(outs)
      is_small = bytes <= @most_kept and steps.kept + bytes <= @all_kept
      is_known = Enum.all?(step.reads, &is_map_key(captured, &1))

      if is_small and is_known and (step.native != nil or step.reads == []),
        do: step |> Step.call(&Map.fetch!(captured, &1)) |> Enum.map(&number(&1, steps))
    rescue
      _ -> nil
    end

    # A number that an expression can have as it is, where a view of others would be one more operand. Not every type has each
    # of its numbers again for what it is as a number.
    defp number(%{shape: {}} = t, %{backend: {module, opts}}) do
      with number when is_number(number) <- Nx.to_number(t),
           constant = module.constant(Nx.to_template(t), number, opts),
           true <- Nx.to_binary(constant) == Nx.to_binary(t) do
        constant
      else
        _ -> t
      end
    end

    defp number(t, _steps), do: t

    defp bytes(outs), do: outs |> Enum.map(&Nx.byte_size/1) |> Enum.sum()

    @doc """
    Adds a step, with new slots for what it makes.
    """
    def push(step, outs, steps) do
      {slots, steps} = Enum.map_reduce(outs, steps, &new_slot/2)
      {slots, %{steps | steps: [Map.put(step, :makes, slots) | steps.steps]}}
    end

    @doc """
    A slot for a tensor that is known now.
    """
    def capture(tensor, steps) do
      {slot, steps} = new_slot(tensor, steps)
      {slot, put_in(steps.captured[slot], tensor)}
    end

    @doc """
    The slot of a tensor all of whose elements are a number, which is one for all who read it and has no names.
    """
    def constant(number, %{shape: shape, type: type}, %{backend: {module, opts}} = steps) do
      # Bits tell -0.0 from 0.0.
      key = {:constant, :erlang.term_to_binary(number), type, shape}

      case steps.known do
        %{^key => slot} ->
          {slot, steps}

        %{} ->
          tensor = module.constant(Nx.template(shape, type), number, opts)
          {slot, steps} = capture(tensor, steps)
          {slot, put_in(steps.known[key], slot)}
      end
    end

    @doc """
    A slot for a tensor like that.
    """
    def new_slot(t, %{next: slot} = steps) do
      steps = put_in(steps.templates[slot], Nx.to_template(t))
      {slot, %{steps | next: slot + 1}}
    end

    @doc """
    Gives up a program that would have to make real numbers of complex ones.
    """
    def convertible!(from, to) do
      if Nx.Type.complex?(from) and not Nx.Type.complex?(to), do: throw(:unsupported)
    end

    @doc """
    The slots among arguments.
    """
    def reads(filled) do
      Enum.flat_map(filled, fn
        {:slot, slot} -> [slot]
        [_ | _] = list -> reads(list)
        _ -> []
      end)
    end
  end
end
