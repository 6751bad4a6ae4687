defmodule Nx.Vulkan.Spirv do
  @moduledoc false
  # SPIR-V files for tests, and what is to be expected of them.

  alias Nx.Vulkan.{Device, NativeV}

  @doc "The path of the SPIR-V of a GLSL text."
  def file!(glsl) do
    {:ok, path} = NativeV.spirv_file(Device.fetch!(Device.default()), glsl, false)
    path
  end

  @doc "Whether the device computes in f64."
  def f64? do
    info = NativeV.device_info(Device.fetch!(Device.default()))
    "fp64" in info.features
  end

  @doc "A folder of the test's own."
  def folder! do
    path =
      Path.join(
        System.tmp_dir!(),
        "nx_vulkan-#{System.pid()}-#{System.unique_integer([:positive])}"
      )

    File.mkdir_p!(path)
    ExUnit.Callbacks.on_exit(fn -> File.rm_rf!(path) end)
    path
  end

  @doc "The words of a file."
  def words(path), do: for(<<word::32-little <- File.read!(path)>>, do: word)

  def binary(words), do: for(word <- words, into: <<>>, do: <<word::32-little>>)

  @doc "A list of floats of `bits` bits as a binary, and back."
  def encode(list, bits), do: for(x <- list, into: <<>>, do: <<x::float-size(bits)-little>>)
  def decode(binary, bits), do: for(<<x::float-size(bits)-little <- binary>>, do: x)

  @doc "The push block of a chain: its header, then `more`."
  def push(k, n_obs, d, chains, epsilon, bits, more \\ []) do
    <<k::32-little, n_obs::32-little, d::32-little, chains::32-little>> <>
      encode([epsilon | more], bits)
  end

  @doc """
  Rows `{q, p, gradient, logp}` of `k` leapfrog steps over `density`, which maps coordinates to `{logp, gradient}`.
  """
  def leapfrog(density, q, p, inverse_mass, epsilon, k) do
    {_, gradient} = density.(q)

    {rows, _} =
      Enum.map_reduce(1..k, {q, p, gradient}, fn _, {q, p, gradient} ->
        p = kick(p, gradient, epsilon / 2)
        q = Enum.zip_with([q, p, inverse_mass], fn [q, p, m] -> q + epsilon * m * p end)
        {logp, gradient} = density.(q)
        p = kick(p, gradient, epsilon / 2)
        {{q, p, gradient, logp}, {q, p, gradient}}
      end)

    rows
  end

  @doc "The outputs of a chain function as rows like those of `leapfrog/6`."
  def rows({q, p, gradient, logp}, d, bits) do
    [q, p, gradient] =
      for part <- [q, p, gradient], do: part |> decode(bits) |> Enum.chunk_every(d)

    Enum.zip_with([q, p, gradient, decode(logp, bits)], &List.to_tuple/1)
  end

  @doc "The largest difference between rows, relative to the largest of their numbers and 1."
  def distance(got, want) do
    [got, want] =
      for rows <- [got, want], do: rows |> Enum.map(&Tuple.to_list/1) |> List.flatten()

    true = length(got) == length(want)
    scale = want |> Enum.map(&abs/1) |> Enum.max() |> max(1.0)
    Enum.zip_with(got, want, &(abs(&1 - &2) / scale)) |> Enum.max()
  end

  defp kick(p, gradient, h), do: Enum.zip_with(p, gradient, &(&1 + h * &2))
end
