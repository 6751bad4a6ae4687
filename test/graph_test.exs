if Code.ensure_loaded?(Nx) do
  defmodule Nx.Vulkan.GraphTest do
    use ExUnit.Case, async: true

    alias Nx.Vulkan.Graph

    defp graph(fun, templates),
      do: Graph.new([Nx.Defn.debug_expr_apply(fun, templates)])

    defp nodes(graph), do: for(id <- Graph.order(graph), do: graph.nodes[id])

    test "a node has its op, operands, type, shape and attributes, after what it reads" do
      fun = fn a, b -> Nx.sum(Nx.dot(a, Nx.exp(b)), axes: [1], keep_axes: true) end
      templates = [Nx.template({2, 3}, :f32), Nx.template({3, 4}, :f32)]
      graph = graph(fun, templates)
      assert [a, b, exp, dot, sum] = Graph.order(graph)
      assert graph.outputs == [sum]
      assert graph.inputs == %{0 => [2, 3], 1 => [3, 4]}
      assert %{op: :parameter, attributes: [index: 0]} = graph.nodes[a]
      assert %{op: :exp, operands: [^b], attributes: []} = graph.nodes[exp]

      assert graph.nodes[dot] == %{
               op: :dot,
               operands: [a, exp],
               type: {:f, 32},
               shape: [2, 4],
               attributes: [batch_a: [], batch_b: [], contract_a: [1], contract_b: [0]]
             }

      assert %{op: :sum, shape: [2, 1], attributes: [axes: [1]]} = graph.nodes[sum]
    end

    test "the same op on the same operands is one node, and a captured tensor is there once" do
      x = Nx.iota({5}, type: :f32)
      fun = fn q -> Nx.add(Nx.sin(Nx.multiply(q, x)), Nx.sin(Nx.multiply(q, x))) end
      graph = graph(fun, [Nx.template({5}, :f32)])
      assert graph.captured == [x]
      assert Enum.map(nodes(graph), & &1.op) == [:parameter, :tensor, :multiply, :sin, :add]
    end

    test "starts that are tensors are operands" do
      fun = fn q, at -> Nx.slice(q, [at, 1], [2, 3]) end
      graph = graph(fun, [Nx.template({5, 6}, :f32), Nx.template({}, :s32)])
      assert [%{op: :parameter}, %{op: :parameter}, %{op: :constant}, slice] = nodes(graph)
      assert slice.operands == Graph.order(graph) |> Enum.take(3)
      assert slice.attributes[:starts] == [operand: 1, operand: 2]
    end

    test "what is no op on tensors alone is thrown" do
      fun = fn q -> Nx.sort(q) end

      assert {:unsupported, :sort, {:f, 32}, {3}} =
               catch_throw(graph(fun, [Nx.template({3}, :f32)]))
    end
  end
end
