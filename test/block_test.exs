Code.require_file("support/vm.exs", __DIR__)

if Code.ensure_loaded?(Nx) do
  defmodule Nx.Vulkan.BlockTest do
    use ExUnit.Case, async: true

    alias Nx.Vulkan.{Block, VM}

    defmodule Scale do
      defstruct [:name, factor: 2, exact: true, rates: [0.5], mode: :fast, on: nil]
    end

    describe "the request of a block" do
      test "is named after its struct and has its fields" do
        x = Nx.template({3}, :f32)

        assert {"Nx.Vulkan.BlockTest.Scale", [{{:f, 32}, {3}}], attrs} =
                 Block.request(%Scale{name: "a"}, x, [x])

        assert Enum.sort(attrs) == [exact: 1, factor: [2], mode: :fast, name: "a", rates: [0.5]]

        assert {"Nx.Block.LinAlg.LU", [_, _, _], [eps: 1.0e-10]} =
                 Block.request(%Nx.Block.LinAlg.LU{}, {x, x, x}, [x])
      end

      test "is not there where it cannot say what the block does" do
        x = Nx.template({3}, :f32)
        assert Block.request(%Scale{on: &is_nil/1}, x, [x]) == nil
        assert Block.request(%Scale{on: %{}}, x, [x]) == nil
        assert Block.request(%Scale{factor: [1, 2.0]}, x, [x]) == nil
        assert Block.request(%Scale{factor: [1 | 2]}, x, [x]) == nil
        assert Block.request(%Scale{factor: 0x8000_0000_0000_0000}, x, [x]) == nil
        assert Block.request(%Scale{}, {x, {x, x}}, [x]) == nil
        assert Block.request(%Scale{}, x, [x, [x]]) == nil
        assert Block.request(%Scale{}, x, []) == nil
      end
    end

    @table """
    [pack]
    id = "scale"
    version = "1.0.0"
    abi = "1"
    [[kernel]]
    id = "scale"
    op = "Stranger.Scale"
    inputs = ["f32"]
    outputs = ["f32"]
    shader = "scale.comp"
    push = ["elems"]
    groups = ["ceil(elems / 64)"]
    """

    @shader """
    #version 450
    layout(local_size_x = 64) in;
    layout(set = 0, binding = 0) readonly buffer A { float a[]; };
    layout(set = 0, binding = 1) writeonly buffer R { float r[]; };
    layout(push_constant) uniform P { uint count; };
    void main() {
        uint i = gl_GlobalInvocationID.x;
        if (i < count) r[i] = 7.0 * a[i];
    }
    """

    # A device opens once in a VM, with one registry file.
    test "a pack runs a stranger's block, and its default function what no pack takes" do
      folder = Path.join(System.tmp_dir!(), "nx_vulkan-block-test-#{System.pid()}")
      File.mkdir_p!(Path.join(folder, "packs/scale"))
      on_exit(fn -> File.rm_rf!(folder) end)
      File.write!(Path.join(folder, "packs/scale/pack.toml"), @table)
      File.write!(Path.join(folder, "packs/scale/scale.comp"), @shader)
      registry = Path.join(folder, "registry.toml")
      File.write!(registry, "schema = 1\n[search]\npaths = [\"packs\"]\n")

      script = """
      defmodule Stranger.Scale do
        defstruct [:hook, factor: 3]
      end

      Application.put_env(:nx_vulkan, :registry, #{inspect(registry)})
      {:ok, _} = Application.ensure_all_started(:nx)
      Nx.global_default_backend(Nx.Vulkan.VulkanoBackend)

      scale = fn struct, x -> Nx.block(struct, [x], x, fn s, x -> Nx.multiply(x, s.factor) end) end
      x = Nx.tensor([1.0, 2.0], type: :f32)
      [7.0, 14.0] = Nx.to_flat_list(scale.(struct(Stranger.Scale), x))
      # It says nothing of integers, and what has a function is no request.
      [3, 6] = Nx.to_flat_list(scale.(struct(Stranger.Scale), Nx.tensor([1, 2])))
      [3.0, 6.0] = Nx.to_flat_list(scale.(struct(Stranger.Scale, hook: &is_nil/1), x))

      {y} = Nx.block(struct(Stranger.Scale), [x], {x}, fn s, x -> {Nx.multiply(x, s.factor)} end)
      [7.0, 14.0] = Nx.to_flat_list(y)
      [1.0, 3.0] = Nx.to_flat_list(Nx.cumulative_sum(x))
      """

      VM.run!(script, Path.join(folder, "cache"))
    end
  end
end
