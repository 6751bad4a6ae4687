defmodule Nx.Vulkan.ChainViewTest do
  use ExUnit.Case, async: true

  alias Nx.Vulkan.{Device, NativeV, Request}

  @f32 {:f, 32}

  # Gives back the data it sees, and how many.
  @shader """
  #version 450
  layout(local_size_x_id = 0) in;
  layout(push_constant) uniform Push { uint K, n_obs, d, chains; float spare; } push;
  layout(set = 0, binding = 3) writeonly buffer B3 { float q_chain[]; };
  layout(set = 0, binding = 6) writeonly buffer B6 { float logp_chain[]; };
  layout(set = 0, binding = 7) readonly buffer B7 { float data[]; };
  void main() {
      if (gl_LocalInvocationIndex > 0) return;
      for (uint i = 0; i < push.d; ++i) q_chain[i] = data[i];
      logp_chain[0] = float(data.length());
  }
  """

  test "data that are a view of a tensor are read as that view" do
    device = Device.fetch!(Device.default())
    {:ok, module} = NativeV.module_of(device, @shader, false)
    {:ok, whole} = Request.upload(device, @f32, {2, 3}, floats([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]))
    {:ok, sliced} = NativeV.slice(whole, [0, 1], [2, 2], [1, 1])
    {:ok, row} = NativeV.slice(whole, [1, 0], [1, 3], [1, 1])
    {:ok, prefix} = NativeV.slice(whole, [0, 0], [1, 2], [1, 1])
    {:ok, turned} = NativeV.transpose(whole, [1, 0])
    {:ok, reversed} = NativeV.reverse(whole, [0, 1])
    {:ok, one} = NativeV.slice(whole, [1, 1], [1, 1], [1, 1])
    {:ok, repeated} = NativeV.broadcast(one, {4, 1}, [0, 1])
    {:ok, constant} = Request.constant(device, @f32, {3}, floats([7.0]))

    for {data, values} <- [
          {whole, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]},
          {sliced, [2.0, 3.0, 5.0, 6.0]},
          {row, [4.0, 5.0, 6.0]},
          {prefix, [1.0, 2.0]},
          {turned, [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]},
          {reversed, [6.0, 5.0, 4.0, 3.0, 2.0, 1.0]},
          {repeated, [5.0, 5.0, 5.0, 5.0]},
          {constant, [7.0, 7.0, 7.0]}
        ] do
      d = length(values)
      push = <<1::32-little, 0::32, d::32-little, 1::32-little, 0::32>>
      zeros = floats(List.duplicate(0.0, d))
      inputs = {zeros, zeros, floats(List.duplicate(0.0, d + 1)), push}
      assert {:ok, {q, _, _, logp}} = NativeV.chain_module(module, inputs, 1, :f32, {data, 0, 8})
      assert list(q) == values
      assert list(logp) == [d * 1.0]
    end
  end

  test "a type that chains do not have is refused" do
    device = Device.fetch!(Device.default())
    {:ok, module} = NativeV.module_of(device, @shader, false)
    push = <<1::32-little, 0::32, 1::32-little, 1::32-little, 0::64>>
    inputs = {<<0::64>>, <<0::64>>, <<0::128>>, push}
    assert NativeV.chain_module(module, inputs, 1, :f16, {nil, 0, 8}) == {:error, :bad_input}
  end

  defp floats(list), do: for(x <- list, into: <<>>, do: <<x::float-32-little>>)
  defp list(binary), do: for(<<x::float-32-little <- binary>>, do: x)
end
