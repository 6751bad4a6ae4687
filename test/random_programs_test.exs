if Code.ensure_loaded?(Nx) do
  defmodule Nx.Vulkan.RandomProgramsTest do
    # Random programs of views and ops, here and on Nx.BinaryBackend. A failure prints its seed and its steps.
    use ExUnit.Case, async: true

    alias Nx.Vulkan.VulkanoBackend, as: V

    @programs 150
    @steps 8
    @types [:u8, :s16, :s32, :s64, :u64, :f32, :f64]
    @shapes [{2, 3, 4}, {4, 6}, {24}, {3, 1, 8}]
    @whole [:add, :subtract, :multiply, :min, :max, :equal, :less, :greater_equal, :logical_xor]

    test "give the same elements" do
      for seed <- 1..@programs do
        :rand.seed(:exsss, {seed, 77, 20_261_122})
        {type, shape} = {pick(@types), pick(@shapes)}
        values = for _ <- 1..24, do: Enum.random(if(unsigned?(type), do: 0..120, else: -60..60))
        start = Nx.tensor(values, type: type, backend: Nx.BinaryBackend) |> Nx.reshape(shape)
        steps = steps(start, @steps, [])
        theirs = run(start, steps, Nx.BinaryBackend)
        here = Nx.backend_copy(start, V)
        compiled = Nx.Defn.compile(&line(&1, steps), [here], compiler: Nx.Vulkan.Compiler)

        for ours <- [run(here, steps, V), compiled.(here)] do
          assert {ours.type, ours.shape} == {theirs.type, theirs.shape}

          assert Nx.to_flat_list(ours) == Nx.to_flat_list(theirs),
                 "seed #{seed}: #{inspect(start)}\n#{inspect(steps)}\n#{inspect(ours)}\n#{inspect(theirs)}"
        end
      end
    end

    defp pick(list), do: Enum.random(list)
    defp unsigned?(type), do: match?("u" <> _, Atom.to_string(type))

    defp run(start, steps, backend),
      do: Nx.with_default_backend(backend, fn -> line(start, steps) end)

    defp line(start, steps) do
      steps
      |> Enum.reduce([start], fn step, [x | _] = known -> [apply_step(step, x, known) | known] end)
      |> hd()
    end

    # Steps are chosen by the shapes they meet, which Nx.BinaryBackend finds out.
    defp steps(_start, 0, steps), do: Enum.reverse(steps)

    defp steps(start, left, steps) do
      x = run(start, Enum.reverse(steps), Nx.BinaryBackend)
      steps(start, left - 1, [step(x, length(steps)) | steps])
    end

    # All values stay whole and small enough for f32 to hold them exactly, so that every order of summing is right.
    defp step(x, known) do
      rank = Nx.rank(x)

      case :rand.uniform(9) do
        1 ->
          {:transpose, Enum.shuffle(Enum.to_list(0..(rank - 1)//1))}

        2 ->
          {:reverse, Enum.take_random(Enum.to_list(0..(rank - 1)//1), 2)}

        3 ->
          {:reshape, List.to_tuple(Enum.shuffle(Tuple.to_list(x.shape)))}

        4 ->
          {:slice, Enum.map(Tuple.to_list(x.shape), &range/1)}

        5 when rank > 0 ->
          {:reduce, pick([:sum, :reduce_max, :reduce_min, :argmax]), :rand.uniform(rank) - 1}

        6 ->
          {:with_self, pick(@whole)}

        7 ->
          {:with_number, pick(@whole), Enum.random(-3..5)}

        8 ->
          {:with_earlier, pick(@whole), :rand.uniform(known + 1) - 1}

        _ ->
          {:small, Enum.random(50..99)}
      end
    end

    defp range(size) do
      stride = Enum.random(1..2)
      length = Enum.random(1..max(1, div(size, stride)))
      {Enum.random(0..(size - (length - 1) * stride - 1)), (length - 1) * stride + 1, stride}
    end

    defp apply_step({:transpose, axes}, x, _), do: Nx.transpose(x, axes: axes)
    defp apply_step({:reverse, axes}, x, _), do: Nx.reverse(x, axes: axes)
    defp apply_step({:reshape, shape}, x, _), do: Nx.reshape(x, shape)

    defp apply_step({:slice, ranges}, x, _) do
      {starts, lengths, strides} =
        Enum.reduce(Enum.reverse(ranges), {[], [], []}, fn {a, b, c}, {as, bs, cs} ->
          {[a | as], [b | bs], [c | cs]}
        end)

      Nx.slice(x, starts, lengths, strides: strides)
    end

    defp apply_step({:reduce, :argmax, axis}, x, _), do: Nx.argmax(x, axis: axis, keep_axis: true)

    defp apply_step({:reduce, op, axis}, x, _),
      do: apply(Nx, op, [x, [axes: [axis], keep_axes: true]])

    defp apply_step({:with_self, op}, x, _), do: small(apply(Nx, op, [x, Nx.reverse(x)]), 1000)
    defp apply_step({:with_number, op, n}, x, _), do: small(apply(Nx, op, [x, n]), 1000)

    defp apply_step({:with_earlier, op, index}, x, known) do
      y = Enum.at(known, index)
      small(apply(Nx, op, [x, Nx.broadcast(Nx.reduce_max(y), x.shape)]), 1000)
    end

    defp apply_step({:small, n}, x, _), do: small(x, n)

    defp small(x, n), do: Nx.remainder(x, n)
  end
end
