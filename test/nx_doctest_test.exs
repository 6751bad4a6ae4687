if Code.ensure_loaded?(Nx) do
  Code.require_file("support/examples.exs", __DIR__)

  # Nx's own examples on this backend. Each that prints something else here is named, with how far its numbers may be off.
  apart = [
    # Nx.BinaryBackend prints the C library's last digit of an f64. Ours is within what docs/ops.md allows.
    {Nx,
     [
       {"Nx.acosh(Nx.tensor([1, 2, 3], names: [:x], type: :f64))", 1.0e-15},
       {"Nx.atan(Nx.tensor([0.1, 0.5, 0.9], names: [:x], type: :f64))", 1.0e-15},
       {"Nx.cbrt(Nx.tensor([1, 2, 3], names: [:x], type: :f64))", 1.0e-15},
       {"Nx.erfc(Nx.tensor([1, 2, 3], names: [:x], type: :f64))", 1.0e-15},
       {"Nx.expm1(Nx.tensor([1, 2, 3], names: [:x], type: :f64))", 1.0e-15},
       {"Nx.log(Nx.tensor([1, 2, 3], names: [:x], type: :f64))", 1.0e-15},
       {"Nx.log1p(Nx.tensor([1, 2, 3], names: [:x], type: :f64))", 1.0e-15},
       {"Nx.tan(Nx.tensor([1, 2, 3], names: [:x], type: :f64))", 1.0e-15}
     ]},
    {Nx.LinAlg,
     [
       # Here a QR is rounded once: 0.70710677 where the example has 0.7071068.
       {"{q, r} = Nx.LinAlg.qr(t, mode: :reduced)\niex> q\n", 2.0e-7},
       # The last digits of what is solved by a QR.
       {"least_squares(Nx.tensor([[1, 2], [2, 3]]), Nx.tensor([1, 2]))\n#", 1.0e-6},
       {"least_squares(Nx.tensor([[0, 1], [1, 1], [2, 1], [3, 1]])", 1.0e-6},
       {"least_squares(Nx.tensor([[1, 2, 3], [4, 5, 6]])", 1.0e-6},
       # Rotations run until nothing is left to rotate. The example has 4.0000577 for 4, we have 4.0.
       {"pinv(Nx.tensor([[1, 1], [3, 4]]))", 2.0e-5},
       # The last digit, and zeros whose sign differs.
       {"svd(Nx.tensor([[1, 0, 0], [0, 1, 0], [0, 0, -1]]))", 1.0e-7},
       {"svd(Nx.tensor([[2, 0, 0], [0, 3, 0], [0, 0, -1], [0, 0, 0]]))", 1.0e-7},
       # The last digit.
       {"Nx.LinAlg.eigh(Nx.tensor([[[2, 5],[5, 6]], [[1, 0], [0, 4]]]))", 1.0e-7},
       {"Nx.vectorize(x: 2)\niex> {eigenvals, eigenvecs} =", 1.0e-7},
       # Two eigenvalues are equal: ours has their vectors in the other order.
       {"eigh(Nx.tensor([[0, 1, 2], [1, 0, 2], [2, 2, 3]]))", :anything},
       # What only the device knows to be singular is an error when the result is read: Nx.Vulkan.LinAlgTest.
       {"triangular_solve(Nx.tensor([[0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [1, 1, 1, 1]])",
        :anything}
     ]},
    # The last digits of an erf_inv of f32.
    {Nx.Random,
     [
       {"Nx.Random.normal(key)\n", 1.0e-6},
       {"Nx.Random.normal(key, 0, 1, shape: {2, 2}, type: :c64)", 1.0e-6},
       {"Nx.tensor([0, 0]), Nx.tensor([[1, 0], [0, 1]]))", 1.0e-6},
       {"Nx.tensor([0, 0]), Nx.tensor([[1, 0], [0, 1]]), shape: {3, 2})", 1.0e-6}
     ]}
  ]

  for {module, apart} <- apart do
    defmodule Module.concat([Nx.Vulkan.Doctest, module]) do
      use ExUnit.Case, async: true
      import Nx.Vulkan.Examples

      setup do
        Nx.default_backend(Nx.Vulkan.VulkanoBackend)
        :ok
      end

      examples(module, apart)
    end
  end
end
