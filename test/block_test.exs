Code.require_file("support/vm.exs", __DIR__)

if Code.ensure_loaded?(Nx) do
  defmodule Nx.Vulkan.BlockTest do
    use ExUnit.Case, async: true

    alias Nx.Vulkan.{Block, VM}

    defmodule Scale do
      defstruct [:name, factor: 2, exact: true, rates: [0.5], mode: :fast, on: nil]
    end

    defmodule Along do
      defstruct axis: 0, axes: [0, -1]
    end

    describe "the request of a block" do
      test "has the fields of its struct" do
        x = Nx.template({3}, :f32)
        assert Block.op(%Scale{}) == "Nx.Vulkan.BlockTest.Scale"
        assert {[^x], [{{:f, 32}, {3}}], attrs} = Block.request(%Scale{name: "a"}, x, [x])

        assert Enum.sort(attrs) == [exact: 1, factor: [2], mode: :fast, name: "a", rates: [0.5]]

        assert {_, [_, _, _], [eps: 1.0e-10]} =
                 Block.request(%Nx.Block.LinAlg.LU{}, {x, x, x}, [x])
      end

      test "has its results in the order of Nx" do
        [a, b, c, d] = outs = for size <- 1..4, do: Nx.template({size}, :f32)
        out = {a, %{z: {c, d}, y: {b}}}
        assert {_, shapes, _} = Block.request(%Scale{}, out, [a])
        assert shapes == for(size <- [1, 2, 3, 4], do: {{:f, 32}, {size}})
        assert Block.results(out, outs, fn _out, ref -> ref end) == out
      end

      test "has vectorized axes first" do
        [x, y] =
          for {size, name} <- [{2, :x}, {5, :y}], do: Nx.vectorize(Nx.iota({size, 3}), name)

        [out, _] = Nx.broadcast_vectors([x, y])

        assert {[%{shape: {2, 5, 3}}, %{shape: {2, 5, 3}}], [{{:s, 32}, {2, 5, 3}}], attrs} =
                 Block.request(%Along{}, out, [x, y])

        assert Enum.sort(attrs) == [axes: [2, -1], axis: [2], vectorized: [2]]
        assert Block.request(%Along{}, x, [x, y]) == nil
        assert Block.request(%{__struct__: Along, vectorized: 1}, x, [x]) == nil
      end

      test "is not there where it cannot say what the block does" do
        x = Nx.template({3}, :f32)
        assert Block.request(%Scale{on: &is_nil/1}, x, [x]) == nil
        assert Block.request(%Scale{on: %{}}, x, [x]) == nil
        assert Block.request(%Scale{factor: [1, 2.0]}, x, [x]) == nil
        assert Block.request(%Scale{factor: [1 | 2]}, x, [x]) == nil
        assert Block.request(%Scale{factor: 0x8000_0000_0000_0000}, x, [x]) == nil
        assert Block.request(%Scale{}, x, [x, [x]]) == nil
        assert Block.request(%Scale{}, x, []) == nil

        for out <- [{}, nil, {x, 1}, %Scale{}, Nx.vectorize(x, :x)],
            do: assert(Block.request(%Scale{}, out, [x]) == nil)
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
    [[kernel]]
    id = "both"
    op = "Stranger.Both"
    inputs = ["f32"]
    outputs = ["f32", "f32"]
    shader = "scale.comp"
    defines = { BOTH = "1" }
    push = ["elems"]
    groups = ["ceil(elems / 64)"]
    """

    # Seven times the operand, and in Both its negative.
    @shader """
    #version 450
    layout(local_size_x = 64) in;
    layout(set = 0, binding = 0) readonly buffer A { float a[]; };
    layout(set = 0, binding = 1) writeonly buffer R { float r[]; };
    #ifdef BOTH
    layout(set = 0, binding = 2) writeonly buffer S { float s[]; };
    #endif
    layout(push_constant) uniform P { uint count; };
    void main() {
        uint i = gl_GlobalInvocationID.x;
        if (i >= count) return;
        r[i] = 7.0 * a[i];
    #ifdef BOTH
        s[i] = -a[i];
    #endif
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

      defmodule Stranger.Both do
        defstruct []
      end

      defmodule Stranger.Pair do
        @derive {Nx.Container, containers: [:left, :right]}
        defstruct [:left, :right]
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

      rows = Nx.vectorize(Nx.tensor([[1.0, 2.0], [3.0, 4.0]]), :rows)
      %{vectorized_axes: [rows: 2], shape: {2}} = scaled = scale.(struct(Stranger.Scale), rows)
      [7.0, 14.0, 21.0, 28.0] = Nx.to_flat_list(scaled)

      both = fn x, out -> Nx.block(struct(Stranger.Both), [x], out, fn _, _ -> raise "not here" end) end
      {%{a: {a}, b: b}} = both.(x, {%{a: {x}, b: x}})
      {[7.0, 14.0], [-1.0, -2.0]} = {Nx.to_flat_list(a), Nx.to_flat_list(b)}
      %{__struct__: Stranger.Pair, left: a, right: b} = both.(rows, struct(Stranger.Pair, left: rows, right: rows))
      {[rows: 2], [7.0, 14.0, 21.0, 28.0]} = {a.vectorized_axes, Nx.to_flat_list(a)}
      [-1.0, -2.0, -3.0, -4.0] = Nx.to_flat_list(b)
      """

      VM.run!(script, Path.join(folder, "cache"))
    end

    # What the page's function computes, and the operand once more.
    @scale """
    #version 450
    layout(local_size_x = 64) in;
    layout(set = 0, binding = 0) readonly buffer A { float a[]; };
    layout(set = 0, binding = 1) writeonly buffer R { float r[]; };
    layout(push_constant) uniform P { uint offset, count; float factor; };
    void main() {
        uint i = gl_GlobalInvocationID.x;
        if (i < count) r[i] = (factor + 1.0) * a[offset + i];
    }
    """

    test "the op of docs/writing-a-pack.md is run by its row" do
      page = File.read!("docs/writing-a-pack.md")
      blocks = &Regex.scan(~r/```#{&1}\n(.*?)```/s, page, capture: :all_but_first)
      [[row]] = blocks.("toml")
      [[module], [call] | _] = blocks.("elixir")

      folder = Path.join(System.tmp_dir!(), "nx_vulkan-page-test-#{System.pid()}")
      on_exit(fn -> File.rm_rf!(folder) end)
      File.mkdir_p!(Path.join(folder, "packs/scale"))
      pack = ~s([pack]\nid = "scale"\nversion = "1.0.0"\nabi = "1"\n)
      File.write!(Path.join(folder, "packs/scale/pack.toml"), pack <> row)
      File.write!(Path.join(folder, "packs/scale/scale.comp"), @scale)

      script = """
      {:ok, _} = Application.ensure_all_started(:nx)
      Nx.global_default_backend(Nx.Vulkan.VulkanoBackend)
      Code.eval_string(#{inspect(module)})
      {y, _} = Code.eval_string(#{inspect(call)})
      [8.0, 16.0] = Nx.to_flat_list(y)
      """

      env = [{"NX_VULKAN_PACKS", Path.join(folder, "packs")}]
      VM.run!(script, Path.join(folder, "cache"), env)
    end
  end
end
