defmodule Nx.Vulkan.ReadmeTest do
  # What README.md copies from other files.
  use ExUnit.Case, async: true
  @moduletag :same_with_nx

  defp read(path), do: File.read!(Path.join([__DIR__, "..", path]))
  defp spaced(text), do: String.replace(text, ~r/ +/, " ")

  test "the row of an op is one of the pack's" do
    [_, row] = Regex.run(~r/^```toml\n(\{ op = .*?\},)\n```$/ms, read("README.md"))
    assert spaced(read("packs/elementwise/pack.toml")) =~ spaced(row)
  end
end
