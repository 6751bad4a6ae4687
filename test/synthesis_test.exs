Code.require_file("support/spirv.exs", __DIR__)
Code.require_file("support/vm.exs", __DIR__)

defmodule Nx.Vulkan.SynthesisTest do
  use ExUnit.Case, async: true

  @moduletag :synthesized
  @moduletag :same_with_nx

  alias Nx.Vulkan.{ChainShaderSpecs, ShaderTemplate, Spirv, Synthesis, VM}
  alias Nx.Vulkan.ShaderTemplate.FamilySpec

  @good "#version 450\nlayout(set = 0, binding = 0) buffer B { float b[]; };\nvoid main() { b[0] = 1; }\n"

  defp hash(text), do: :crypto.hash(:sha256, text) |> Base.encode16(case: :lower)

  test "a text becomes a module that is named by its hash" do
    assert {:ok, path, @good} = Synthesis.compile_with_source(@good)
    assert Synthesis.compile(@good) == {:ok, path}
    assert [0x07230203 | _] = Spirv.words(path)
    assert Path.basename(path) == hash(@good) <> ".spv"
  end

  test "a hit is fast and writes nothing" do
    spec = ChainShaderSpecs.beta(2.0, 5.0 + :rand.uniform(), :f32)
    {cold, {:ok, path}} = :timer.tc(fn -> Synthesis.compile(spec) end)
    File.touch!(path, 1_000_000_000)
    hits = for _ <- 1..20, do: :timer.tc(fn -> Synthesis.compile(spec) end)
    assert Enum.all?(hits, &match?({_, {:ok, ^path}}, &1))
    {hit, _} = Enum.min(hits)
    assert File.stat!(path, time: :posix).mtime == 1_000_000_000
    assert hit < 50_000 or hit < cold, "cold #{cold} us, hit #{hit} us"
  end

  test "different specs have different files" do
    specs = [
      ChainShaderSpecs.beta(2.0, 5.0, :f32),
      ChainShaderSpecs.beta(2.0, 5.5, :f32),
      ChainShaderSpecs.gamma(2.0, 5.0, :f32),
      ChainShaderSpecs.beta(),
      ChainShaderSpecs.gamma(),
      ChainShaderSpecs.lognormal()
    ]

    paths = for spec <- specs, {:ok, path} = Synthesis.compile(spec), do: path
    assert paths == Enum.uniq(paths)
  end

  test "a damaged file is written anew" do
    text = @good <> "// damaged"
    {:ok, path} = Synthesis.compile(text)
    good = File.read!(path)

    for bytes <- [
          "",
          binary_part(good, 0, 40),
          String.duplicate("x", byte_size(good)),
          good <> "more"
        ] do
      File.write!(path, bytes)
      assert Synthesis.compile(text) == {:ok, path}
      assert File.read!(path) == good
    end

    File.rm!(path)
    assert Synthesis.compile(text) == {:ok, path}
    assert File.read!(path) == good
  end

  test "an error has the line, and a file to look at" do
    text = "#version 450\nvoid main() {\n  undeclared = 1;\n}\n"
    assert {:error, reason} = Synthesis.compile(text)
    assert %{exit: 1, stderr: "shader:3: 'undeclared'" <> _, glsl_path: path} = reason
    assert map_size(reason) == 3
    assert File.read!(path) == text
    assert {:error, with_source} = Synthesis.compile_with_source(text)
    assert with_source == Map.put(reason, :glsl, text)
  end

  test "an error in a spec names the line of the rendered text" do
    spec = %FamilySpec{
      name: :broken,
      grad_block: "real grad_q = lost(q);",
      logp_block: "real lp_i = 0;"
    }

    assert {:error, %{exit: 1, stderr: stderr, glsl_path: path}} = Synthesis.compile(spec)
    assert [_, line] = Regex.run(~r/^shader:(\d+): 'lost'/, stderr)
    line = path |> File.read!() |> String.split("\n") |> Enum.at(String.to_integer(line) - 1)
    assert line =~ "lost(q)"
    assert File.read!(path) == ShaderTemplate.render(spec)
  end

  test "what a spec does not use is not looked at, and what a text does not use is" do
    spec = %FamilySpec{
      name: "idle #{System.os_time()}",
      helpers: "real idle() { return lost; }",
      grad_block: "real grad_q = -q;",
      logp_block: "real lp_i = 0;"
    }

    # What compiled once is kept by its text.
    assert {:error, %{exit: 1}} = spec |> ShaderTemplate.render() |> Synthesis.compile()
    assert {:ok, _path} = Synthesis.compile(spec)
  end

  test "no text of GLSL is an error" do
    for text <- [
          "",
          "\0",
          "#version 450\n",
          "#version 450\n#include \"lost.glsl\"\nvoid main() {}",
          "no GLSL at all"
        ] do
      assert {:error, %{exit: 1, stderr: stderr}} = Synthesis.compile(text)
      assert stderr != ""
    end

    for other <- [nil, :text, ~c"text", 1, %{}, <<255, 254>>] do
      assert_raise ArgumentError, ~r/expected/, fn -> Synthesis.compile(other) end
    end
  end

  test "many processes compile the same at once" do
    text = @good <> "// together"
    paths = Task.async_stream(1..32, fn _ -> Synthesis.compile(text) end, timeout: :infinity)
    assert [{:ok, {:ok, path}}] = Enum.uniq(paths)
    assert [0x07230203 | _] = Spirv.words(path)
  end

  describe "the folder" do
    setup do
      %{cache: Spirv.folder!()}
    end

    test "is made anew when it is deleted, and cleared alone", %{cache: cache} do
      script = """
      alias Nx.Vulkan.Synthesis
      text = #{inspect(@good)}
      {:ok, path} = Synthesis.compile(text)
      File.rm_rf!(Path.dirname(path))
      {:ok, ^path} = Synthesis.compile(text)
      true = File.regular?(path)
      {:error, %{glsl_path: source}} = Synthesis.compile("broken")
      true = File.regular?(source)
      :ok = Synthesis.clear_cache()
      false = File.exists?(path) or File.exists?(source)
      :ok = Synthesis.clear_cache()
      {:ok, ^path} = Synthesis.compile(text)
      true = File.regular?(path)
      """

      File.write!(Path.join(cache, "other.txt"), "not ours")
      VM.run!(script, cache)
      assert File.read!(Path.join(cache, "other.txt")) == "not ours"
      assert File.dir?(Path.join(cache, "shaders"))
    end

    test "that cannot be written is an error that names it", %{cache: cache} do
      # Also for root: a file where the folder would be.
      synthesis = Path.join(cache, "synthesis")
      File.write!(synthesis, "")

      script = """
      alias Nx.Vulkan.Synthesis
      {:error, %{exit: 2, stderr: stderr, glsl_path: nil}} = Synthesis.compile(#{inspect(@good)})
      true = stderr =~ #{inspect(synthesis)} and stderr =~ "cannot be opened"
      {:error, %{exit: 1, glsl_path: nil}} = Synthesis.compile("broken")
      """

      VM.run!(script, cache)
      assert File.read!(synthesis) == ""
    end

    test "and device that are not there are errors", %{cache: cache} do
      script = """
      Application.put_env(:nx_vulkan, :device, "no such device")
      {:error, %{exit: 2, stderr: stderr, glsl_path: nil}} = Nx.Vulkan.Synthesis.compile(#{inspect(@good)})
      true = stderr =~ "no such device"
      {:error, message} = Nx.Vulkan.Synthesis.clear_cache()
      true = message =~ "no such device"
      """

      VM.run!(script, cache)
    end
  end
end
