defmodule Nx.Vulkan.LeapfrogGLSL do
  @moduledoc false
  # The leapfrog pack's GLSL, around which chain shaders are written: `leapfrog/0` takes the steps, `families/0` has the
  # log densities.

  @shaders Path.expand("../../../packs/leapfrog/shaders", __DIR__)

  for name <- [:leapfrog, :families] do
    path = Path.join(@shaders, "#{name}.glsl")
    @external_resource path
    def unquote(name)(), do: unquote(File.read!(path))
  end
end
