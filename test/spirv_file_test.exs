Code.require_file("support/spirv.exs", __DIR__)

defmodule Nx.Vulkan.SpirvFileTest do
  use ExUnit.Case, async: true

  import Bitwise

  alias Nx.Vulkan.{Device, NativeV, Spirv}

  # out[i] = `expression` of x = a[i]
  defp shader(expression, size \\ 256, more \\ "") do
    Spirv.file!("""
    #version 450
    layout(local_size_x = #{size}) in;
    layout(set = 0, binding = 0) buffer A { float a[]; };
    layout(set = 0, binding = 1) buffer B { float result[]; };
    #{more}
    void main() {
      float x = a[gl_GlobalInvocationID.x];
      if (gl_GlobalInvocationID.x == 0) result[0] = #{expression};
    }
    """)
  end

  setup do
    %{folder: Spirv.folder!(), good: shader("x * x")}
  end

  defp run(path, op \\ 12) do
    {:ok, a} = NativeV.buf_upload(Spirv.encode([2.0], 32))
    {:ok, out} = NativeV.buf_upload(Spirv.encode([7.0], 32))
    result = NativeV.apply_unary(out, a, 1, op, path)
    {:ok, bytes} = NativeV.buf_download(out)
    {result, Spirv.decode(bytes, 32)}
  end

  test "a file that cannot be read is an error that says so", %{folder: folder} do
    for path <- [
          "",
          folder,
          Path.join(folder, "missing.spv"),
          "/dev/null/x",
          "a\0b",
          <<255, 254>>
        ] do
      assert {{:error, :dispatch_failed, message}, [7.0]} = run(path)
      assert message =~ "read spv"
    end
  end

  test "a file that is no SPIR-V is an error", %{folder: folder, good: good} do
    path = Path.join(folder, "bad.spv")
    bytes = File.read!(good)

    bad =
      ["", "GLSL", "#version 450", :binary.copy(<<0>>, 4096), :binary.copy(<<255>>, 4096)] ++
        [
          binary_part(bytes, 0, 3),
          binary_part(bytes, 0, 20),
          binary_part(bytes, 0, byte_size(bytes) - 1)
        ]

    for contents <- bad do
      File.write!(path, contents)
      assert {{:error, :dispatch_failed, message}, [7.0]} = run(path)
      assert message =~ path and message =~ "not a usable SPIR-V module"
    end
  end

  test "a file that was cut off at any word is an error", %{folder: folder, good: good} do
    bytes = File.read!(good)

    for {words, index} <- Enum.with_index(1..(div(byte_size(bytes), 4) - 1)) do
      path = Path.join(folder, "#{index}.spv")
      File.write!(path, binary_part(bytes, 0, 4 * words))
      assert {{:error, :dispatch_failed, _}, [7.0]} = run(path)
    end
  end

  test "a file in the other byte order runs", %{folder: folder, good: good} do
    path = Path.join(folder, "big.spv")
    File.write!(path, for(word <- Spirv.words(good), into: <<>>, do: <<word::32-big>>))
    assert run(path) == {:ok, [4.0]}
  end

  test "a file that needs what the device lacks is an error", %{folder: folder, good: good} do
    {header, body} = good |> Spirv.words() |> Enum.split(5)

    # OpCapability of Kernel, of a number that nobody has given out, and twice of Shader, which the device has.
    for {capability, result} <- [{6, :error}, {65_000, :error}, {1, :ok}] do
      path = Path.join(folder, "#{capability}.spv")
      File.write!(path, Spirv.binary(header ++ [(2 <<< 16) + 17, capability] ++ body))

      case run(path) do
        {:ok, [4.0]} ->
          assert result == :ok

        {{:error, :dispatch_failed, message}, [7.0]} ->
          assert result == :error and message =~ "capability #{capability}"
      end
    end
  end

  test "a file with more bindings, sets or push constants than there are is an error" do
    block = &"layout(set = #{&1}, binding = #{&2}) buffer C { float c[]; };"

    for {more, expression, words} <- [
          {block.(0, 2), "c[0]", "bindings [0, 1, 2], and 2 buffers"},
          {"layout(push_constant) uniform P { float p, q; };", "q",
           "4 bytes of push constants; it reads 8"}
        ] do
      assert {{:error, :dispatch_failed, message}, [7.0]} = run(shader(expression, 256, more))
      assert message =~ words
    end

    text =
      "#version 450\nlayout(local_size_x = 1) in;\n#{block.(1, 0)}\nvoid main() { c[0] = 1.0; }\n"

    assert {:error, :shader, message} =
             NativeV.spirv_file(Device.fetch!(Device.default()), text, false)

    assert message =~ "descriptor sets"
  end

  test "a file with a workgroup that the device does not run is an error" do
    path = Spirv.file!("#version 450\nlayout(local_size_x_id = 0) in;\nvoid main() {}\n")
    assert {:ok, [_]} = run(path, 64)

    for size <- [0, 1 <<< 20, -1] do
      assert {{:error, :dispatch_failed, message}, [7.0]} = run(path, size)
      assert message =~ "workgroup"
    end
  end

  test "a file that is replaced serves at once", %{folder: folder, good: good} do
    path = Path.join(folder, "swapped.spv")

    other = shader("x + x + 1")

    for _ <- 1..5, {file, want} <- [{good, 4.0}, {other, 5.0}] do
      File.cp!(file, path <> ".new")
      File.rename!(path <> ".new", path)
      assert run(path) == {:ok, [want]}
    end

    File.rm!(path)
    assert {{:error, :dispatch_failed, "read spv" <> _}, [7.0]} = run(path)
    File.cp!(good, path)
    assert run(path) == {:ok, [4.0]}
  end

  test "a file that is written over in place serves at once", %{folder: folder, good: good} do
    path = Path.join(folder, "written.spv")
    [one, two] = [File.read!(good), File.read!(shader("x - x"))]
    assert byte_size(one) == byte_size(two)

    for _ <- 1..100, {bytes, want} <- [{one, 4.0}, {two, 0.0}] do
      File.write!(path, bytes)
      assert run(path) == {:ok, [want]}
    end
  end

  test "a file that is replaced while it runs is either of the two", %{folder: folder, good: good} do
    path = Path.join(folder, "busy.spv")
    other = shader("x + x + 1")
    File.cp!(good, path)

    writer =
      Task.async(fn ->
        for _ <- 1..100, file <- [other, good] do
          File.cp!(file, path <> ".new")
          File.rename!(path <> ".new", path)
        end
      end)

    results = Task.async_stream(1..300, fn _ -> run(path) end, timeout: :infinity)
    for {:ok, result} <- results, do: assert(result in [{:ok, [4.0]}, {:ok, [5.0]}])
    Task.await(writer, :infinity)
    assert run(path) == {:ok, [4.0]}
  end

  test "a file runs from many processes at once", %{good: good} do
    results =
      Task.async_stream(1..200, fn _ -> run(good) end, max_concurrency: 16, timeout: :infinity)

    assert Enum.all?(results, &(&1 == {:ok, {:ok, [4.0]}}))
  end

  test "a source that nests deeply compiles or is refused" do
    assert run(shader("x" <> String.duplicate(" + x", 20_000))) == {:ok, [40_002.0]}
    device = Device.fetch!(Device.default())

    for expression <- [
          "x" <> String.duplicate("+x", 400_001),
          String.duplicate("(", 20_000) <> "x" <> String.duplicate(")", 20_000),
          String.duplicate("- ", 20_000) <> "x"
        ] do
      glsl = "#version 450\nvoid main() { float x = 1; x = #{expression}; }"
      assert {:error, :shader, message} = NativeV.spirv_file(device, glsl, false)
      assert message =~ ~r/operators|parentheses|memory exhausted/
    end
  end
end
