Code.require_file("support/spirv.exs", __DIR__)
Code.require_file("support/vm.exs", __DIR__)

defmodule Nx.Vulkan.StrangersTest do
  # Shaders that would end a process that compiles them. That this VM is there at the end is what is tested.
  use ExUnit.Case, async: true
  @moduletag :same_with_nx

  alias Nx.Vulkan.{Device, NativeV, Spirv, VM}

  @head """
  #version 450
  layout(local_size_x = 256) in;
  layout(set = 0, binding = 0) buffer A { float a[]; };
  layout(set = 0, binding = 1) buffer B { float result[]; };
  """

  defp shader(body) do
    @head <>
      """
      void main() {
        float x = a[gl_GlobalInvocationID.x];
        #{body}
        if (gl_GlobalInvocationID.x == 0) result[0] = x;
      }
      """
  end

  defp run(path) do
    {:ok, a} = NativeV.buf_upload(Spirv.encode([2.0], 32))
    {:ok, out} = NativeV.buf_upload(Spirv.encode([7.0], 32))
    result = NativeV.apply_unary(out, a, 1, 0, path)
    {:ok, bytes} = NativeV.buf_download(out)
    {result, Spirv.decode(bytes, 32)}
  end

  defp assert_serves do
    number = System.unique_integer([:positive])
    assert run(Spirv.file!(shader("x = x + #{number}.0;"))) == {:ok, [2.0 + number]}
  end

  setup do
    %{device: Device.fetch!(Device.default()), folder: Spirv.folder!()}
  end

  test "macros that grow beyond measure are refused", %{device: device} do
    rows = for i <- 1..20, do: "#define M#{i} M#{i - 1}+M#{i - 1}\n"
    bomb = "#version 450\n#define M0 x\n#{rows}void main() {\n    float x = 1;\n    x = M20;\n}\n"
    assert byte_size(bomb) <= 517

    for answer <- [
          NativeV.module_of(device, bomb, false),
          NativeV.module_of(device, bomb, true),
          NativeV.spirv_file(device, bomb, false)
        ] do
      assert {:error, :shader, message} = answer
      assert message =~ "operators"
    end

    assert_serves()
  end

  test "ifs and loops that nest deeply are built or refused", %{device: device} do
    ifs = fn count ->
      shader(
        Enum.map_join(1..count, &"if (x > #{&1}.5) { x *= 1.5;\n") <>
          "x += 1.0;" <> String.duplicate("}", count)
      )
    end

    for count <- [120, 250, 1000] do
      case NativeV.spirv_file(device, ifs.(count), false) do
        {:ok, path} ->
          case run(path) do
            {:ok, [x]} -> assert x == 3.0 or x > 3.0
            {{:error, :dispatch_failed, message}, [7.0]} -> assert message =~ ~r/ends the|nest/
          end

        {:error, :shader, message} ->
          assert message =~ ~r/ends the|nest/
      end
    end

    assert_serves()
  end

  # Without the validation layers, which would report these files.
  @changed """
  Application.put_env(:nx_vulkan, :validation, false)
  alias Nx.Vulkan.{Device, NativeV}
  import Bitwise

  {:ok, path} = NativeV.spirv_file(Device.fetch!(Device.default()), System.fetch_env!("SHADER"), false)
  words = for(<<word::32-little <- File.read!(path)>>, do: word)
  folder = System.fetch_env!("NX_VULKAN_CACHE")

  run = fn path ->
    {:ok, a} = NativeV.buf_upload(<<2.0::float-32-little>>)
    {:ok, out} = NativeV.buf_upload(<<7.0::float-32-little>>)
    result = NativeV.apply_unary(out, a, 1, 0, path)
    {:ok, bytes} = NativeV.buf_download(out)
    {result, bytes}
  end

  changed =
    for at <- 5..(length(words) - 1),
        value <- [0, bxor(Enum.at(words, at), 1 <<< 16)],
        do: List.replace_at(words, at, value)

  refused =
    for {words, i} <- changed |> Enum.take_every(3) |> Enum.with_index() do
      changed = Path.join(folder, "\#{i}.spv")
      File.write!(changed, for(word <- words, into: <<>>, do: <<word::32-little>>))

      case run.(changed) do
        {:ok, _} -> 0
        {{:error, :dispatch_failed, message}, _} -> if message =~ changed, do: 1, else: raise(message)
      end
    end

  {:ok, <<4.0::float-32-little>>} = run.(path)
  IO.puts("refused: \#{Enum.sum(refused) > 0}")
  """

  test "a file with a changed word is an answer of the driver, or its end elsewhere", %{
    folder: folder
  } do
    shader = shader("if (x > 1.0) { x = x * x; }")
    assert VM.run!(@changed, folder, [{"SHADER", shader}]) =~ "refused: true"
  end

  test "a chain by such a file is refused as any other", %{folder: folder} do
    path = Path.join(folder, "chain.spv")
    words = Spirv.words(Spirv.file!(shader("x = 1.0;")))
    File.write!(path, words |> List.replace_at(-1, 0) |> Spirv.binary())
    q = Spirv.encode([1.0], 32)
    push = Spirv.push(1, 0, 1, 0, 0.1, 32)

    assert {:error, :dispatch_failed, message} =
             NativeV.leapfrog_chain_synth(q, q, q, push, 1, path)

    assert message =~ path
    assert_serves()
  end
end
