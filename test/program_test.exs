defmodule Nx.Vulkan.ProgramTest do
  use ExUnit.Case, async: true

  alias Nx.Vulkan.{Device, NativeV, Request}

  @f32 {:f, 32}
  @row [{@f32, {3}}]

  setup_all do
    device = Device.fetch!(Device.default())
    %{device: device, a: tensor(device, [1.0, 2.0, 3.0]), b: tensor(device, [10.0, 20.0, 30.0])}
  end

  test "three ops run in one call", %{a: a, b: b} do
    requests = [
      {"add", [0, 1], @row, []},
      {"multiply", [2, 2], @row, []},
      {"sum", [3], [{@f32, {}}], [axes: [0]]}
    ]

    for _ <- 1..3 do
      assert {:ok, [sum, same, added]} = Request.run_program([a, b], requests, [4, 0, 2])
      assert floats(sum) == [1694.0]
      assert floats(same) == [1.0, 2.0, 3.0]
      assert floats(added) == [11.0, 22.0, 33.0]
    end
  end

  test "a program may begin with nothing, or do nothing", %{device: device, a: a, b: b} do
    requests = [{"iota", [], @row, [axis: []]}, {"negate", [0], @row, []}]
    assert {:ok, [ref]} = Request.run_program(device, requests, [1])
    assert floats(ref) == [0.0, -1.0, -2.0]
    assert {:ok, [first, second]} = Request.run_program([a, b], [], [1, 0])
    assert {floats(first), floats(second)} == {[10.0, 20.0, 30.0], [1.0, 2.0, 3.0]}
    assert {:ok, []} = Request.run_program([a], [{"exp", [0], @row, []}], [])
  end

  test "products take along what follows them where that is wanted", %{device: device} do
    bf16 = {:bf, 16}

    [a, b, bias] =
      for {values, shape} <- [{[16.0, 1.0], {1, 2}}, {[16.0, 1.0], {2, 1}}, {[-256.0], {1}}] do
        bytes =
          for x <- values, into: <<>> do
            <<high::16, _::16>> = <<x::float-32-big>>
            <<high::16-native>>
          end

        {:ok, ref} = Request.upload(device, bf16, shape, bytes)
        ref
      end

    attrs = [batch_a: [], batch_b: [], contract_a: [1], contract_b: [0]]
    out = [{bf16, {1, 1}}]

    steps = [
      {"dot", [0, 1], out, attrs},
      {"add", [3, 2], out, []},
      {"as_type", [4], [{@f32, {1, 1}}], []}
    ]

    operands = for shape <- [{1, 2}, {2, 1}, {1}], do: {bf16, shape}

    # 257 is none of bf16, the sum is.
    for {wanted, expected} <- [{true, 1.0}, {false, 0.0}] do
      {:ok, program} = NativeV.compile_program(operands, steps, [5], wanted)
      assert {:ok, [result], _} = Request.run_compiled([a, b, bias], program)
      assert floats(result) == [expected]
    end
  end

  # Packs are asked for 16 axes at most.
  test "what the host runs in the middle is counted", %{device: device} do
    shape = Tuple.duplicate(1, 17)
    {:ok, deep} = NativeV.reshape(tensor(device, [2.0]), shape)
    outs = [{@f32, shape}]
    requests = for value <- 0..1, do: {"cbrt", [value], outs, []}
    counted = fn -> Map.get(Map.new(NativeV.fallback_counts()), "cbrt", 0) end
    before = counted.()

    assert {:host, [_], [0, 1]} = NativeV.run_program([deep], requests, [2])
    assert {:ok, [ref]} = Request.run_program([deep], requests, [2])
    assert_in_delta hd(floats(ref)), :math.pow(2, 1 / 9), 1.0e-6
    assert counted.() == before + 2
  end

  test "an error in the middle names the request", %{a: a, b: b} do
    run = fn middle ->
      requests = [{"add", [0, 1], @row, []}, middle, {"negate", [3], @row, []}]
      Request.run_program([a, b], requests, [4])
    end

    assert {:error, :bad_input, message} = run.({"add", [2, 0], [{@f32, {4}}], []})
    assert message =~ "request 2 of 3" and message =~ "add" and message =~ "f32[3]"
    assert {:error, kind, message} = run.({"frobnicate", [2], @row, []})
    assert kind == :unsupported
    assert message =~ "request 2 of 3: nobody runs frobnicate(f32[3]) -> f32[3]"
    assert {:ok, [_]} = run.({"exp", [2], @row, []})
  end

  test "values that do not exist are errors", %{device: device, a: a} do
    negate = {"negate", [1], @row, []}
    assert {:error, :bad_input, message} = Request.run_program([a], [negate], [1])
    assert message =~ "request 1 of 1 (negate) names value 1, and there is only value 0"
    assert {:error, :bad_input, message} = Request.run_program([a], [], [7])
    assert message =~ "result 1 names value 7"
    assert {:error, :bad_input, message} = Request.run_program(device, [negate], [])
    assert message =~ "there is none before it"
  end

  test "wrong terms are argument errors", %{a: a} do
    for {operands, requests, results} <- [
          {[], [], []},
          {[a, :b], [], []},
          {[a], [:negate], []},
          {[a], [{"negate", [0], @row}], []},
          {[a], [{"negate", [-1], @row, []}], []},
          {[a], [{"negate", [0], [{@f32, {3}, 1}], []}], []},
          {[a], [{"negate", [0], @row, []} | a], []},
          {[a], [], [0 | 0]},
          {[a], [], [0x1_0000_0000]}
        ] do
      assert_raise ArgumentError, fn -> NativeV.run_program(operands, requests, results) end
    end
  end

  test "a freed operand is an error", %{device: device, a: a} do
    gone = tensor(device, [1.0])
    :ok = NativeV.deallocate(gone)
    assert {:error, :deallocated, _} = Request.run_program([a, gone], [], [0])
  end

  test "a long program keeps only what it needs", %{device: device} do
    size = 262_144

    {:ok, ref} =
      Request.upload(device, @f32, {size}, :binary.copy(<<0.5::float-32-native>>, size))

    requests = for value <- 0..63, do: {"negate", [value], [{@f32, {size}}], []}
    assert {:ok, [last]} = Request.run_program([ref], requests, [64])
    assert {:ok, <<0.5::float-32-native>>} = NativeV.download(last, 1)
  end

  defp tensor(device, values) do
    bytes = for x <- values, into: <<>>, do: <<x::float-32-native>>
    {:ok, ref} = Request.upload(device, @f32, {length(values)}, bytes)
    ref
  end

  defp floats(ref) do
    {:ok, bytes} = NativeV.download(ref, nil)
    for <<x::float-32-native <- bytes>>, do: x
  end
end
