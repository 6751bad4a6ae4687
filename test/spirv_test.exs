Code.require_file("support/spirv.exs", __DIR__)

defmodule Nx.Vulkan.SpirvTest do
  use ExUnit.Case, async: true

  alias Nx.Vulkan.{Device, NativeV, Spirv}

  @head "#version 450\nlayout(constant_id = 0) const int OP = -1;\n"
  @lines "layout(local_size_x = 256) in;\n"
  @tiles "layout(local_size_x = 16, local_size_y = 16) in;\n"

  defp buffers(names, type) do
    for {name, index} <- Enum.with_index(names), into: "" do
      "layout(set = 0, binding = #{index}) buffer B#{index} { #{type} #{name}[]; };\n"
    end
  end

  defp elementwise(names, expression, type) do
    Spirv.file!("""
    #{@head}#{@lines}#{buffers(names ++ ["result"], type)}
    layout(push_constant) uniform Push { uint n; };
    #{type} apply(#{Enum.map_join(names, ", ", &"#{type} #{&1}")}) { #{expression} }
    void main() {
      uint i = gl_GlobalInvocationID.x;
      if (i < n) result[i] = apply(#{Enum.map_join(names, ", ", &"#{&1}[i]")});
    }
    """)
  end

  defp binary_shader(type \\ "float") do
    cases = [
      "a + b",
      "a * b",
      "a - b",
      "a / b",
      "#{type}(pow(float(a), float(b)))",
      "max(a, b)",
      "min(a, b)"
    ]

    elementwise(["a", "b"], switch(cases), type)
  end

  defp unary_shader do
    cases =
      [
        "exp(a)",
        "log(a)",
        "sqrt(a)",
        "abs(a)",
        "-a",
        "1.0 / (1.0 + exp(-a))",
        "tanh(a)",
        "max(a, 0.0)"
      ] ++
        ["ceil(a)", "floor(a)", "sign(a)", "1.0 / a", "a * a"]

    elementwise(["a"], switch(cases), "float")
  end

  defp switch(cases) do
    for {text, code} <- Enum.with_index(cases), into: "" do
      "if (OP == #{code}) return #{text}; "
    end <> "return -1234;"
  end

  defp reduce_shader do
    Spirv.file!("""
    #{@head}#{@lines}#{buffers(["a", "result"], "float")}
    layout(push_constant) uniform Push { uint rows, reduce_size, inner, op; };
    void main() {
      uint i = gl_GlobalInvocationID.x;
      if (i >= rows * inner) return;
      uint at = (i / inner) * reduce_size * inner + i % inner;
      float x = a[at];
      for (uint r = 1; r < reduce_size; r++) {
        float y = a[at + r * inner];
        x = OP == 0 ? x + y : OP == 1 ? max(x, y) : min(x, y);
      }
      result[i] = op == uint(OP) ? x : -1234;
    }
    """)
  end

  defp transpose_shader do
    Spirv.file!("""
    #{@head}#{@tiles}#{buffers(["a", "result"], "float")}
    layout(push_constant) uniform Push { uint m, n; };
    void main() {
      uvec2 at = gl_GlobalInvocationID.xy;
      if (at.x < n && at.y < m) result[at.x * m + at.y] = a[at.y * n + at.x];
    }
    """)
  end

  defp matmul_shader do
    Spirv.file!("""
    #{@head}#{@tiles}#{buffers(["a", "b", "result"], "float")}
    layout(push_constant) uniform Push { uint m, n, k; };
    void main() {
      uvec2 at = gl_GlobalInvocationID.xy;
      if (at.x >= n || at.y >= m) return;
      float sum = 0;
      for (uint i = 0; i < k; i++) sum += a[at.y * k + i] * b[i * n + at.x];
      result[at.y * n + at.x] = sum;
    }
    """)
  end

  defp buffer(list, bits \\ 32) do
    {:ok, ref} = NativeV.buf_upload(Spirv.encode(list, bits))
    ref
  end

  defp zeros(count) do
    {:ok, ref} = NativeV.buf_alloc(4 * count)
    ref
  end

  defp floats(ref, bits \\ 32) do
    {:ok, binary} = NativeV.buf_download(ref)
    Spirv.decode(binary, bits)
  end

  defp close(got, want) do
    assert length(got) == length(want)
    for {a, b} <- Enum.zip(got, want), do: assert_in_delta(a, b, 2.0e-6 * max(1.0, abs(b)))
  end

  describe "apply_binary" do
    test "every op code" do
      path = binary_shader()
      [a, b] = [[1.5, 2.0, 0.25, 3.0], [2.0, -1.0, 4.0, 3.0]]
      apart = [&+/2, &*/2, &-/2, &//2, &:math.pow/2, &max/2, &min/2]

      for {op, code} <- Enum.with_index(apart) do
        out = zeros(4)
        assert NativeV.apply_binary(out, buffer(a), buffer(b), 4, code, path) == :ok
        close(floats(out), Enum.zip_with(a, b, op))
      end
    end

    test "any number of elements, also in f64 and in place" do
      path = binary_shader()

      for n <- [1, 255, 256, 257, 70_000] do
        [a, out] = [buffer(Enum.map(1..n, &(&1 * 1.0))), zeros(n)]
        assert NativeV.apply_binary(out, a, a, n, 0, path) == :ok
        assert floats(out) == Enum.map(1..n, &(&1 * 2.0))
        assert NativeV.apply_binary(a, a, out, n, 2, path) == :ok
        assert floats(a) == Enum.map(1..n, &(&1 * -1.0))
      end

      if Nx.Vulkan.Spirv.f64?() do
        a = buffer([0.1, 0.2], 64)
        assert NativeV.apply_binary(a, a, a, 2, 1, binary_shader("double")) == :ok
        assert floats(a, 64) == [0.1 * 0.1, 0.2 * 0.2]
      end
    end

    test "no elements" do
      {:ok, empty} = NativeV.buf_alloc(0)
      assert NativeV.apply_binary(empty, empty, empty, 0, 0, binary_shader()) == :ok
    end

    test "sizes on both sides of the boundary" do
      path = binary_shader()
      [two, three] = [buffer([1.0, 2.0]), buffer([1.0, 2.0, 3.0])]
      assert NativeV.apply_binary(three, three, three, 3, 0, path) == :ok
      assert NativeV.apply_binary(two, three, three, 3, 0, path) == {:error, :size_mismatch}
      assert NativeV.apply_binary(three, two, three, 3, 0, path) == {:error, :size_mismatch}
      assert NativeV.apply_binary(three, three, two, 3, 0, path) == {:error, :size_mismatch}
      assert NativeV.apply_binary(three, three, three, 2, 0, path) == {:error, :size_mismatch}
      assert NativeV.apply_binary(three, three, three, 4, 0, path) == {:error, :size_mismatch}
      assert NativeV.apply_binary(three, three, three, 0, 0, path) == {:error, :size_mismatch}

      assert NativeV.apply_binary(three, three, three, 0xFFFFFFFF, 0, path) ==
               {:error, :size_mismatch}

      assert NativeV.apply_binary(three, three, three, 0x100000000, 0, path) ==
               {:error, :bad_input}

      assert floats(three) == [2.0, 4.0, 6.0]
    end

    test "wrong terms are errors" do
      path = binary_shader()
      a = buffer([1.0])
      freed = buffer([1.0])
      :ok = NativeV.deallocate(freed)
      bad = {:error, :bad_input}

      for other <- [freed, make_ref(), Device.fetch!(Device.default()), nil, "", <<1::3>>, 1.5] do
        assert NativeV.apply_binary(other, a, a, 1, 0, path) == bad
        assert NativeV.apply_binary(a, other, a, 1, 0, path) == bad
        assert NativeV.apply_binary(a, a, other, 1, 0, path) == bad
        assert NativeV.apply_unary(other, a, 1, 0, path) == bad
        assert NativeV.reduce_axis(a, other, 1, 1, 1, 0, path) == bad
        assert NativeV.transpose_2d(a, other, 1, 1, path) == bad
        assert NativeV.matmul(a, a, other, 1, 1, 1, path) == bad
      end

      for other <- [-1, 1.0, nil, :one, "1", [1], make_ref()] do
        assert NativeV.apply_binary(a, a, a, other, 0, path) == bad
        assert NativeV.apply_unary(a, a, other, 0, path) == bad
        assert NativeV.reduce_axis(a, a, other, 1, 1, 0, path) == bad
        assert NativeV.reduce_axis(a, a, 1, other, 1, 0, path) == bad
        assert NativeV.reduce_axis(a, a, 1, 1, other, 0, path) == bad
        assert NativeV.transpose_2d(a, a, other, 1, path) == bad
        assert NativeV.transpose_2d(a, a, 1, other, path) == bad
        assert NativeV.matmul(a, a, a, other, 1, 1, path) == bad
        assert NativeV.matmul(a, a, a, 1, other, 1, path) == bad
        assert NativeV.matmul(a, a, a, 1, 1, other, path) == bad
      end

      for other <- [1.0, nil, :add, "0", 0x80000000, -0x80000001] do
        assert NativeV.apply_binary(a, a, a, 1, other, path) == bad
        assert NativeV.apply_unary(a, a, 1, other, path) == bad
        assert NativeV.reduce_axis(a, a, 1, 1, 1, other, path) == bad
      end

      for other <- [nil, :path, ~c"path", 1, <<1::3>>] do
        assert NativeV.apply_binary(a, a, a, 1, 0, other) == bad
        assert NativeV.apply_unary(a, a, 1, 0, other) == bad
        assert NativeV.reduce_axis(a, a, 1, 1, 1, 0, other) == bad
        assert NativeV.transpose_2d(a, a, 1, 1, other) == bad
        assert NativeV.matmul(a, a, a, 1, 1, 1, other) == bad
      end
    end
  end

  test "apply_unary: every op code" do
    path = unary_shader()

    apart =
      [&:math.exp/1, &:math.log/1, &:math.sqrt/1, &abs/1, &-/1, &(1 / (1 + :math.exp(-&1)))] ++
        [
          &:math.tanh/1,
          &max(&1, 0.0),
          &Float.ceil/1,
          &Float.floor/1,
          &sign/1,
          &(1 / &1),
          &(&1 * &1)
        ]

    for {op, code} <- Enum.with_index(apart) do
      a = if code in [1, 2], do: [0.5, 1.0, 2.25, 9.0], else: [-1.5, -0.25, 0.75, 2.0]
      out = zeros(4)
      assert NativeV.apply_unary(out, buffer(a), 4, code, path) == :ok
      close(floats(out), Enum.map(a, op))
    end

    assert NativeV.apply_unary(zeros(3), zeros(4), 4, 0, path) == {:error, :size_mismatch}
    assert NativeV.apply_unary(zeros(4), zeros(3), 4, 0, path) == {:error, :size_mismatch}
    assert NativeV.apply_unary(zeros(4), zeros(4), 5, 0, path) == {:error, :size_mismatch}
  end

  defp sign(x), do: if(x < 0, do: -1.0, else: 1.0)

  test "reduce_axis: every op code over first, last, middle and all axes" do
    path = reduce_shader()

    for {outer, size, inner} <- [
          {1, 24, 1},
          {1, 4, 6},
          {4, 6, 1},
          {2, 3, 4},
          {300, 2, 1},
          {1, 1, 1}
        ],
        {fold, code} <- Enum.with_index([&Enum.sum/1, &Enum.max/1, &Enum.min/1]) do
      a = for i <- 1..(outer * size * inner), do: rem(i * 7, 13) - 5.0
      out = zeros(outer * inner)
      assert NativeV.reduce_axis(out, buffer(a), outer, size, inner, code, path) == :ok

      want =
        for o <- 0..(outer - 1), i <- 0..(inner - 1) do
          fold.(for r <- 0..(size - 1), do: Enum.at(a, (o * size + r) * inner + i))
        end

      assert floats(out) == want
    end

    assert NativeV.reduce_axis(zeros(8), zeros(24), 2, 3, 4, 0, path) == :ok

    for {out, a} <- [{7, 24}, {9, 24}, {8, 23}, {8, 25}] do
      assert NativeV.reduce_axis(zeros(out), zeros(a), 2, 3, 4, 0, path) ==
               {:error, :size_mismatch}
    end

    huge = 0x10000

    assert NativeV.reduce_axis(zeros(8), zeros(24), huge, huge, 1, 0, path) ==
             {:error, :bad_input}
  end

  test "transpose_2d" do
    path = transpose_shader()

    for {m, n} <- [{1, 1}, {3, 5}, {16, 17}, {33, 1}, {40, 50}] do
      a = for i <- 1..(m * n), do: i * 1.0
      out = zeros(m * n)
      assert NativeV.transpose_2d(out, buffer(a), m, n, path) == :ok
      assert floats(out) == a |> Enum.chunk_every(n) |> Enum.zip_with(& &1) |> List.flatten()
    end

    assert NativeV.transpose_2d(zeros(5), zeros(6), 2, 3, path) == {:error, :size_mismatch}
    assert NativeV.transpose_2d(zeros(6), zeros(7), 2, 3, path) == {:error, :size_mismatch}

    assert NativeV.transpose_2d(zeros(6), zeros(6), 0x10000, 0x10000, path) ==
             {:error, :bad_input}
  end

  test "matmul" do
    path = matmul_shader()

    for {m, n, k} <- [{1, 1, 1}, {2, 3, 4}, {17, 16, 5}, {20, 33, 1}] do
      a = for i <- 1..(m * k), do: rem(i * 5, 7) - 3.0
      b = for i <- 1..(k * n), do: rem(i * 3, 11) - 5.0
      columns = b |> Enum.chunk_every(n) |> Enum.zip_with(& &1)

      want =
        for row <- Enum.chunk_every(a, k), column <- columns do
          Enum.zip_with(row, column, &*/2) |> Enum.sum()
        end

      out = zeros(m * n)
      assert NativeV.matmul(out, buffer(a), buffer(b), m, n, k, path) == :ok
      assert floats(out) == want
    end

    for {out, a, b} <- [{5, 8, 12}, {6, 7, 12}, {6, 8, 13}] do
      assert NativeV.matmul(zeros(out), zeros(a), zeros(b), 2, 3, 4, path) ==
               {:error, :size_mismatch}
    end
  end
end
