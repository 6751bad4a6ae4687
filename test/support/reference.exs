defmodule Nx.Vulkan.Reference do
  @moduledoc false
  # Nx.BinaryBackend says what this backend has to compute.

  import ExUnit.Assertions

  alias Nx.Vulkan.VulkanoBackend, as: V

  # How far a float may be off, as a part of the larger of it and 1.
  @tolerance %{
    {:f, 64} => 1.0e-14,
    {:f, 32} => 1.0e-6,
    {:f, 16} => 1.0e-3,
    {:bf, 16} => 1.0e-2,
    {:c, 64} => 1.0e-6,
    {:c, 128} => 1.0e-14
  }

  @doc "What `fun` gives here, which is what it gives there, to the last bit."
  def same(tensors, fun), do: compare(tensors, fun, &same!/2)

  @doc "What `fun` gives here, which is what it gives there, but for rounding."
  def agree(tensors, fun), do: compare(tensors, fun, &agree!/2)

  @doc "What `fun` gives with this backend as the default, and what with Nx.BinaryBackend."
  def both(fun),
    do: for(backend <- [V, Nx.BinaryBackend], do: Nx.with_default_backend(backend, fun))

  def same!(ours, theirs), do: check!(ours, theirs, 0)
  def agree!(ours, theirs), do: check!(ours, theirs, Map.get(@tolerance, ours.type, 0))

  # What is on the device already goes in as it is, be it a view.
  defp compare(tensors, fun, check) do
    [ours, theirs] =
      both(fn ->
        {backend, _} = Nx.default_backend()
        move = if backend == V, do: &Nx.backend_transfer(&1, V), else: &Nx.backend_copy/1
        apply(fun, Enum.map(tensors, move))
      end)

    check.(ours, theirs)
    ours
  end

  defp check!(ours, theirs, tolerance) do
    assert %V{} = ours.data
    assert {ours.type, ours.shape, ours.names} == {theirs.type, theirs.shape, theirs.names}

    pairs = Enum.zip(Nx.to_flat_list(ours), Nx.to_flat_list(theirs))

    assert Enum.all?(pairs, fn {x, y} -> close?(x, y, tolerance) end),
           "#{inspect(ours)}\n#{inspect(theirs)}"
  end

  defp close?(x, x, _tolerance), do: true

  defp close?(%Complex{} = x, %Complex{} = y, tolerance),
    do: close?(x.re, y.re, tolerance) and close?(x.im, y.im, tolerance)

  defp close?(x, y, tolerance) when is_number(x) and is_number(y),
    do: x == y or abs(x - y) <= tolerance * max(1.0, abs(y))

  defp close?(_x, _y, _tolerance), do: false
end
