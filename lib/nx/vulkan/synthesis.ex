defmodule Nx.Vulkan.Synthesis do
  @moduledoc """
  Compiles compute shaders at run time, and keeps them on disk by content.

      {:ok, path} = Nx.Vulkan.ChainShaderSpecs.beta(2.0, 5.0) |> Nx.Vulkan.Synthesis.compile()
      {:ok, {q, p, grad, logp}} = Nx.Vulkan.NativeV.leapfrog_chain_synth_f64(q0, p0, extras, push, k, path)

  A source is the text of a GLSL compute shader, which may include the headers of the ABI (`#include "math_f64.glsl"`),
  or a `Nx.Vulkan.ShaderTemplate.FamilySpec`. The compiler runs in this process, for Vulkan 1.2. The file is
  `<sha256 of the text>.spv` in the folder `synthesis` of the cache folder (`config :nx_vulkan, cache_dir: …`), where nothing
  else lies. It is compared with what the compiler gives each time, so a damaged or foreign file is written anew.
  """

  alias Nx.Vulkan.{Device, NativeV, ShaderTemplate}
  alias Nx.Vulkan.ShaderTemplate.FamilySpec

  @refused 1
  @trouble 2

  @doc """
  Compiles a source.

  Returns `{:ok, spv_path}` or `{:error, map}` with

    * `:exit` - 1 when the compiler refuses the shader, 2 when there is no device, or the file cannot be written
    * `:stderr` - the compiler's message, which starts with `shader:<line>` where it is about a line, or why there is no file
    * `:glsl_path` - a file with the text that was refused, or `nil` where it could not be written

  Raises `ArgumentError` for anything but a text or a spec.
  """
  def compile(source) do
    case compile_with_source(source) do
      {:ok, path, _glsl} -> {:ok, path}
      {:error, reason} -> {:error, Map.delete(reason, :glsl)}
    end
  end

  @doc """
  As `compile/1`, with the text: `{:ok, spv_path, glsl}`, or `{:error, map}` whose map has it as `:glsl`.
  """
  def compile_with_source(source) do
    glsl = text(source)

    with {:ok, device} <- Device.fetch(Device.default()),
         {:ok, path} <- NativeV.spirv_file(device, glsl, is_struct(source, FamilySpec)) do
      {:ok, path, glsl}
    else
      {:error, kind, message} ->
        {exit, glsl_path} = if kind == :shader, do: {@refused, keep(glsl)}, else: {@trouble, nil}
        {:error, %{exit: exit, stderr: message, glsl_path: glsl_path, glsl: glsl}}
    end
  end

  @doc """
  Removes every file that `compile/1` wrote. Returns `:ok` or `{:error, message}`.
  """
  def clear_cache do
    with {:ok, dir} <- dir(),
         {:error, reason, path} <- File.rm_rf(dir) do
      {:error, "#{path} cannot be removed: #{:file.format_error(reason)}"}
    else
      {:ok, _removed} -> :ok
      {:error, message} -> {:error, message}
    end
  end

  defp text(%FamilySpec{} = spec), do: ShaderTemplate.render(spec)

  defp text(glsl) when is_binary(glsl) do
    if String.valid?(glsl), do: glsl, else: raise(ArgumentError, "expected GLSL in UTF-8")
  end

  defp text(other) do
    raise ArgumentError,
          "expected the text of a shader or a ShaderTemplate.FamilySpec, got: #{inspect(other)}"
  end

  # Beside the shaders that compile, so that line numbers can be looked up.
  defp keep(glsl) do
    name = "refused-#{Base.encode16(:erlang.md5(glsl), case: :lower)}.comp"

    with {:ok, dir} <- dir(),
         path = Path.join(dir, name),
         :ok <- File.mkdir_p(dir),
         :ok <- File.write(path, glsl) do
      path
    else
      {:error, _reason} -> nil
    end
  end

  defp dir do
    with {:ok, device} <- Device.fetch(Device.default()),
         {:ok, dir} <- NativeV.synthesis_dir(device) do
      {:ok, dir}
    else
      {:error, _kind, message} -> {:error, message}
    end
  end
end
