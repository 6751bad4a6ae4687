if Code.ensure_loaded?(Nx) do
  defmodule Nx.Vulkan.RankTest do
    use ExUnit.Case, async: true

    alias Nx.Vulkan.VulkanoBackend, as: V

    def forward(_event, _count, metadata, parent), do: send(parent, {:fallback, metadata})

    # One more than packs are asked about, and more.
    @ranks [17, 20, 64]

    for rank <- @ranks do
      test "ops on tensors of #{rank} axes are what Nx.BinaryBackend says" do
        rank = unquote(rank)
        shape = shape(rank)
        order = Enum.to_list((rank - 1)..0//-1)
        last = rank - 1
        flat = {Tuple.product(shape)}
        wide = put_elem(Tuple.duplicate(1, rank), last, 3)
        deep = List.to_tuple([2 | Tuple.to_list(shape)])
        axes = Enum.to_list(1..rank)
        ones = Enum.filter(0..last, &(elem(shape, &1) == 1))
        starts = List.duplicate(0, rank)
        lengths = shape |> put_elem(0, 1) |> Tuple.to_list()
        half = div(rank, 2)

        ops = [
          add: &Nx.add(&1, &1),
          add_scalar: &Nx.add(&1, 2),
          multiply: &Nx.multiply(&1, Nx.reshape(Nx.tensor([1.0, 2.0, 3.0]), wide)),
          less: &Nx.less(&1, 7),
          exp: &Nx.exp(Nx.divide(&1, 100)),
          as_type: &Nx.as_type(&1, :s32),
          select: &Nx.select(Nx.greater(&1, 5), &1, Nx.negate(&1)),
          clip: &Nx.clip(&1, 3, 9),
          sum: &Nx.sum/1,
          sum_some: &Nx.sum(&1, axes: [0, last]),
          sum_keep: &Nx.sum(&1, axes: [half], keep_axes: true),
          reduce_max: &Nx.reduce_max(&1, axes: [last]),
          argmax: &Nx.argmax(&1, axis: 0),
          all: &Nx.all(&1, axes: [0]),
          transpose: &Nx.transpose(&1, axes: order),
          transposed_sum: &Nx.sum(Nx.transpose(&1, axes: order), axes: [0]),
          reshape: &Nx.reshape(Nx.transpose(&1, axes: order), flat),
          back: &Nx.add(Nx.reshape(Nx.reshape(&1, flat), shape), 1),
          squeeze: &Nx.squeeze(&1, axes: ones),
          new_axis: &Nx.new_axis(&1, half),
          broadcast: &Nx.broadcast(&1, deep, axes: axes),
          broadcast_add: &Nx.add(Nx.broadcast(&1, deep, axes: axes), 1),
          slice: &Nx.slice(&1, starts, lengths),
          reverse: &Nx.reverse(&1, axes: [0, last]),
          dot: &Nx.dot(&1, [last, 0], &1, [last, 0]),
          dot_few: &Nx.dot(&1, [last], Nx.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), [0]),
          bitcast: &Nx.bitcast(&1, :u32),
          concatenate: &Nx.concatenate([&1, &1], axis: last),
          sort: &Nx.sort(&1, axis: last)
        ]

        values = for i <- 1..elem(flat, 0), do: rem(i * 7, 13) * 1.0

        for {name, op} <- ops do
          [ours, theirs] =
            for backend <- [V, Nx.BinaryBackend] do
              Nx.with_default_backend(backend, fn ->
                op.(Nx.reshape(Nx.tensor(values, type: :f32), shape))
              end)
            end

          assert %V{} = ours.data, "#{name}"
          assert {ours.type, ours.shape} == {theirs.type, theirs.shape}, "#{name}"

          for {a, b} <- Enum.zip(Nx.to_flat_list(ours), Nx.to_flat_list(theirs)),
              do: assert_in_delta(a, b, 1.0e-5, "#{name}")
        end
      end
    end

    test "twenty axes of which none merge" do
      shape = List.to_tuple(List.duplicate(2, 12) ++ List.duplicate(1, 8))
      order = Enum.shuffle(Enum.to_list(0..19))

      [ours, theirs] =
        for backend <- [V, Nx.BinaryBackend] do
          x = Nx.iota(shape, type: :s32, backend: backend)
          turned = Nx.transpose(x, axes: order)

          {Nx.to_binary(turned), Nx.to_binary(Nx.add(turned, x)),
           Nx.to_binary(Nx.sum(turned, axes: [0, 3, 5]))}
        end

      assert ours == theirs
    end

    test "the CPU's part in it is told" do
      handler = {__MODULE__, make_ref()}
      :telemetry.attach(handler, [:nx_vulkan, :fallback], &__MODULE__.forward/4, self())
      shape = shape(17)
      x = Nx.iota(shape, type: :f32, backend: V)
      assert Nx.to_flat_list(Nx.add(x, x)) == for(i <- 0..(Nx.size(x) - 1), do: 2.0 * i)
      :telemetry.detach(handler)
      assert_received {:fallback, %{op: "add", to: :host, shapes: [^shape, ^shape]}}
    end

    test "sixteen axes are still the packs'" do
      x = Nx.template(shape(16), :f32)
      assert Nx.Vulkan.explain(:add, [x, x]).picked =~ "elementwise"
      x = Nx.template(shape(17), :f32)
      explained = Nx.Vulkan.explain(:add, [x, x])
      assert explained.picked == "host"
      assert explained.text =~ "17 axes"
    end

    test "beyond what a view may have there is an error" do
      many = Tuple.duplicate(1, 5_000)
      x = Nx.tensor([1.0], backend: V)

      assert_raise ArgumentError, ~r/5000 axes is beyond the limit of 4096/, fn ->
        Nx.reshape(x, many)
      end

      assert Nx.to_flat_list(Nx.reshape(x, Tuple.duplicate(1, 4_096))) == [1.0]
    end

    defp shape(rank) do
      1
      |> Tuple.duplicate(rank)
      |> put_elem(0, 2)
      |> put_elem(div(rank, 3), 2)
      |> put_elem(div(rank, 2), 2)
      |> put_elem(rank - 2, 2)
      |> put_elem(rank - 1, 3)
    end
  end
end
