if Code.ensure_loaded?(Nx) do
  defmodule Nx.Vulkan.GuideTest do
    # The examples of the guides.
    use ExUnit.Case, async: true

    # A driver on the CPU compiles shaders that are new to it for a minute.

    setup do
      Nx.default_backend(Nx.Vulkan.VulkanoBackend)
      :ok
    end

    doctest_file("docs/guide.md")

    for page <- ~w(index nx nx_lin_alg),
        do: doctest_file("guides/backend_documentation/#{page}.md")
  end
end
