if Code.ensure_loaded?(Nx) do
  defmodule Nx.Vulkan.IndexingTest do
    # Movement and indexing on the device: what each op gives by its definition, what is out of bounds, and that nothing
    # runs elsewhere.
    use ExUnit.Case, async: false
    import Bitwise

    @moduletag timeout: 300_000

    alias Nx.Vulkan.VulkanoBackend, as: V

    setup do
      Nx.default_backend(V)
      # What the device does not run raises.
      Application.put_env(:nx_vulkan, :fallback, :error)
      on_exit(fn -> Application.delete_env(:nx_vulkan, :fallback) end)
      :ok
    end

    defp device(tensor), do: Nx.backend_copy(tensor, V)

    describe "gather" do
      test "reads parts by their indices" do
        t = Nx.iota({3, 4, 5})
        index = Nx.tensor([[2, 1], [0, 4]])
        expected = for [i, k] <- [[2, 1], [0, 4]], do: for(j <- 0..3, do: i * 20 + j * 5 + k)
        assert Nx.to_list(Nx.gather(t, index, axes: [0, 2])) == expected
      end

      test "takes indices of any integer type" do
        t = Nx.tensor([10, 11, 12], type: :u8)

        for type <- [:u8, :u16, :u32, :u64, :s8, :s16, :s32, :s64] do
          index = Nx.tensor([[2], [0]], type: type)
          assert Nx.to_list(Nx.gather(t, index)) == [12, 10]
          assert Nx.to_list(Nx.take(t, Nx.tensor([[1, 2]], type: type))) == [[11, 12]]
          assert Nx.to_list(Nx.take_along_axis(t, Nx.tensor([1], type: type))) == [11]
        end
      end

      test "raises for indices that the VM knows, in Nx's words" do
        t = Nx.iota({2, 3})
        index = Nx.tensor([[0], [3]], backend: Nx.BinaryBackend)
        words = "index 3 is out of bounds for axis 0 in shape {3, 2}"
        assert_raise ArgumentError, words, fn -> Nx.gather(t, index, axes: [1]) end
        assert_raise ArgumentError, words, fn -> Nx.take(t, Nx.squeeze(index), axis: 1) end
        words = "index -1 is out of bounds for axis 1 in shape {2, 3}"

        assert_raise ArgumentError, words, fn ->
          Nx.take_along_axis(t, Nx.tensor([[0], [-1]], backend: Nx.BinaryBackend), axis: 1)
        end
      end

      test "raises for others when the result is read" do
        t = Nx.iota({2, 3})

        for {index, type} <- [{2, :s32}, {-1, :s64}, {1 <<< 40, :u64}, {200, :u8}] do
          index = device(Nx.tensor([[0], [index]], type: type))
          parts = Nx.gather(t, index)
          assert parts.shape == {2, 3}

          assert_raise ArgumentError, ~r/gather.*an index is out of bounds/, fn ->
            Nx.to_binary(parts)
          end

          sum = Nx.sum(Nx.take(t, Nx.squeeze(index)))

          assert_raise ArgumentError, ~r/Take.*an index is out of bounds/, fn ->
            Nx.to_number(sum)
          end
        end
      end
    end
  end
end
