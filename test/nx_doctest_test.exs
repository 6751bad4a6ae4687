if Code.ensure_loaded?(Nx) do
  # Nx's own examples on this backend. Nx.BinaryBackend computes in f64 and prints the C library's digits: those that are
  # left out end in another digit here, within what docs/ops.md allows.
  except = [
    # The last digit of an f64.
    {Nx, [acosh: 1, atan: 1, cbrt: 1, erfc: 1, expm1: 1, log: 1, log1p: 1, tan: 1]},
    # The last digits of a QR, of rotations and of what is made of them: here they run in f64 and until nothing is left to rotate.
    # A singular triangle is an error when the result is read.
    {Nx.LinAlg, [eigh: 2, least_squares: 3, pinv: 2, qr: 2, svd: 2, triangular_solve: 3]},
    # The last digit of an erf_inv of f32.
    {Nx.Random, [multivariate_normal: 4, normal: 4]}
  ]

  for {module, except} <- except do
    defmodule Module.concat([Nx.Vulkan.Doctest, module]) do
      use ExUnit.Case, async: true

      setup do
        Nx.default_backend(Nx.Vulkan.VulkanoBackend)
        :ok
      end

      doctest module, except: except
    end
  end
end
