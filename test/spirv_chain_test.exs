Code.require_file("support/spirv.exs", __DIR__)

defmodule Nx.Vulkan.SpirvChainTest do
  use ExUnit.Case, async: true
  @moduletag :same_with_nx

  alias Nx.Vulkan.{Device, NativeV, Spirv}

  @d 3
  @n_obs 4
  @k 5
  @epsilon 0.125
  @mu 0.75
  @header %{32 => 20, 64 => 24}
  @tolerance %{32 => 2.0e-6, 64 => 1.0e-14}

  # log pi(q) = -1/2 sum_i (q_i - mu)^2 - 1/2 sum_j (obs_j - q_0)^2, where mu is the last of `priors` numbers behind the
  # header, or 0.75 where there are none.
  defp shader(bits, priors) do
    type = if bits == 32, do: "float", else: "double"
    member = if priors > 0, do: "#{type} prior[#{priors}];"
    mu = if priors > 0, do: "prior[#{priors - 1}]", else: "#{type}(#{@mu})"

    names = ~w(q_init p_init extras q_chain p_chain grad_chain logp_chain)

    buffers =
      for {name, index} <- Enum.with_index(names),
          do: "layout(set = 0, binding = #{index}) buffer B#{index} { #{type} #{name}[]; };\n"

    Spirv.file!("""
    #version 450
    layout(local_size_x = 1) in;
    layout(push_constant) uniform Push { uint k, n_obs, d, chains; #{type} eps; #{member} };
    #{buffers}
    #{type} q[256], p[256], g[256];
    #{type} evaluate(uint obs) {
      #{type} logp = 0, pull = 0;
      for (uint j = 0; j < n_obs; j++) {
        #{type} x = extras[obs + j] - q[0];
        pull += x;
        logp -= x * x / 2;
      }
      for (uint i = 0; i < d; i++) {
        #{type} x = q[i] - #{mu};
        g[i] = (i == 0 ? pull : 0) - x;
        logp -= x * x / 2;
      }
      return logp;
    }
    void main() {
      uint chain = gl_WorkGroupID.x, obs = chain * (n_obs + d), mass = obs + n_obs;
      for (uint i = 0; i < d; i++) { q[i] = q_init[chain * d + i]; p[i] = p_init[chain * d + i]; }
      evaluate(obs);
      for (uint row = chain * k; row < (chain + 1) * k; row++) {
        for (uint i = 0; i < d; i++) {
          p[i] += eps / 2 * g[i];
          q[i] += eps * extras[mass + i] * p[i];
        }
        logp_chain[row] = evaluate(obs);
        for (uint i = 0; i < d; i++) {
          p[i] += eps / 2 * g[i];
          q_chain[row * d + i] = q[i];
          p_chain[row * d + i] = p[i];
          grad_chain[row * d + i] = g[i];
        }
      }
    }
    """)
  end

  defp density(obs, mu) do
    fn [first | _] = q ->
      pull = Enum.map(obs, &(&1 - first))
      misfit = Enum.map(q, &(&1 - mu))
      [g | rest] = Enum.map(misfit, &(-&1))
      {-0.5 * (squares(pull) + squares(misfit)), [g + Enum.sum(pull) | rest]}
    end
  end

  defp squares(list), do: list |> Enum.map(&(&1 * &1)) |> Enum.sum()

  # Multiples of 1/8, which f32 has too.
  defp numbers(count, seed), do: for(i <- 1..count//1, do: (rem(i * 37 + seed * 11, 33) - 16) / 8)
  defp masses(d), do: for(i <- 1..d, do: 0.5 + i / 4)

  defp functions do
    [
      {&NativeV.leapfrog_chain_synth/6, 32, false},
      {&NativeV.leapfrog_chain_synth_batch/6, 32, true}
    ] ++
      if Spirv.f64?(),
        do: [
          {&NativeV.leapfrog_chain_synth_f64/6, 64, false},
          {&NativeV.leapfrog_chain_synth_batch_f64/6, 64, true}
        ],
        else: []
  end

  # A call that is right, with what is to be different in it.
  defp call({function, bits, batch}, changes \\ []) do
    chains = if batch, do: 2, else: 1
    d = changes[:d] || @d
    n_obs = changes[:n_obs] || @n_obs

    extras = for chain <- 1..chains//1, do: numbers(n_obs, chain) ++ masses(max(d, 1))
    push = Spirv.push(@k, n_obs, d, if(batch, do: chains, else: 0), @epsilon, bits)

    arguments = [
      q: Spirv.encode(numbers(chains * d, 1), bits),
      p: Spirv.encode(numbers(chains * d, 2), bits),
      extras: Spirv.encode(List.flatten(extras), bits),
      push: push,
      k: @k,
      path: changes[:path] || shader(bits, 0)
    ]

    arguments = Keyword.merge(arguments, Keyword.drop(changes, [:d, :n_obs]))
    [q, p, extras, push, k, path] = for name <- ~w(q p extras push k path)a, do: arguments[name]
    function.(q, p, extras, push, k, path)
  end

  defp word(push, at, value) do
    <<head::binary-size(at), _::32, rest::binary>> = push
    <<head::binary, value::32-little, rest::binary>>
  end

  for {name, index} <- Enum.with_index(~w(f32 batch_f32 f64 batch_f64)) do
    describe name do
      setup do
        functions = Enum.at(functions(), unquote(index))
        # A device without f64 has nothing to run here.
        if functions, do: %{function: functions}, else: %{function: hd(functions())}
      end

      test "gives the rows of a leapfrog on the host", %{function: {function, bits, batch}} do
        for d <- [1, 3, 256], n_obs <- [0, 4, 600], k <- [1, 7] do
          chains = if batch, do: 3, else: 1

          all =
            for c <- 1..chains,
                do: {numbers(d, c), numbers(d, c + 1), numbers(n_obs, c), masses(d)}

          join = fn part -> all |> Enum.flat_map(part) |> Spirv.encode(bits) end
          push = Spirv.push(k, n_obs, d, if(batch, do: chains, else: 0), 0.03125, bits)

          assert {:ok, {_, _, _, _} = outputs} =
                   function.(
                     join.(&elem(&1, 0)),
                     join.(&elem(&1, 1)),
                     join.(&(elem(&1, 2) ++ elem(&1, 3))),
                     push,
                     k,
                     shader(bits, 0)
                   )

          want =
            for {q, p, obs, masses} <- all,
                row <- Spirv.leapfrog(density(obs, @mu), q, p, masses, 0.03125, k),
                do: row

          assert Spirv.distance(Spirv.rows(outputs, d, bits), want) <= 10 * @tolerance[bits]
        end
      end

      test "hands every byte of the push block on", %{function: {_, bits, _} = function} do
        size = div(bits, 8)

        for priors <- [1, div(128 - @header[bits], size)], mu <- [-1.5, 2.25] do
          chains = if elem(function, 2), do: 2, else: 0
          behind = List.duplicate(99.0, priors - 1) ++ [mu]
          push = Spirv.push(@k, @n_obs, @d, chains, @epsilon, bits, behind)
          assert {:ok, outputs} = call(function, push: push, path: shader(bits, priors))
          [row | _] = Spirv.rows(outputs, @d, bits)

          [want | _] =
            Spirv.leapfrog(
              density(numbers(@n_obs, 1), mu),
              numbers(@d, 1),
              numbers(@d, 2),
              masses(@d),
              @epsilon,
              @k
            )

          assert Spirv.distance([row], [want]) <= @tolerance[bits]
        end
      end

      test "a longer chain starts with a shorter one, and repeats bit for bit", %{
        function: {_, bits, batch} = function
      } do
        {:ok, long} = call(function)
        assert call(function) == {:ok, long}

        unless batch do
          push = Spirv.push(2, @n_obs, @d, 0, @epsilon, bits)
          {:ok, short} = call(function, push: push, k: 2)

          for {short, long} <- Enum.zip(Tuple.to_list(short), Tuple.to_list(long)) do
            assert short == binary_part(long, 0, byte_size(short))
          end
        end
      end

      test "guards lengths on both sides", %{function: {_, bits, batch} = function} do
        size = div(bits, 8)
        chains = if batch, do: 2, else: 1
        [state, extras] = [chains * @d * size, chains * (@n_obs + @d) * size]
        assert {:ok, _} = call(function)
        mismatch = {:error, :size_mismatch}

        for off <- [-state, -size, -1, 1, size] do
          assert call(function, q: zeros(state + off)) == mismatch
          assert call(function, p: zeros(state + off)) == mismatch
          assert call(function, q: zeros(state + off), p: zeros(state + off)) == mismatch
          assert call(function, extras: zeros(extras + off)) == mismatch
        end

        assert call(function, extras: "") == mismatch
        assert call(function, q: "", p: "", d: 0) == mismatch
      end

      test "guards counts on both sides", %{function: {_, bits, batch} = function} do
        path = shader(bits, 0)
        bad = {:error, :bad_input}
        {:ok, _} = call(function, path: path)
        push = Spirv.push(@k, @n_obs, @d, if(batch, do: 2, else: 0), @epsilon, bits)

        for k <- [0, @k - 1, @k + 1, -1, 0x100000000, 1.0, nil, :k],
            do: assert(call(function, k: k) == bad)

        assert call(function, k: 0, push: word(push, 0, 0)) == bad

        for k <- [0, @k + 1, 0xFFFFFFFF],
            do: assert(call(function, push: word(push, 0, k)) == bad)

        assert {:ok, _} = call(function, d: 256)
        assert call(function, d: 257) == bad

        for n_obs <- [@n_obs - 1, @n_obs + 1, 0, 0xFFFFFFFF],
            do: assert(call(function, push: word(push, 4, n_obs)) == {:error, :size_mismatch})

        for d <- [@d - 1, @d + 1],
            do: assert(call(function, push: word(push, 8, d)) == {:error, :size_mismatch})

        if batch do
          assert call(function, push: word(push, 12, 0)) == bad

          for n <- [1, 3, 0xFFFFFFFF],
              do: assert(call(function, push: word(push, 12, n)) == {:error, :size_mismatch})
        end
      end

      test "guards the length of the push block on both sides", %{
        function: {_, bits, batch} = function
      } do
        push = Spirv.push(@k, @n_obs, @d, if(batch, do: 2, else: 0), @epsilon, bits)
        header = byte_size(push)
        assert header == @header[bits]

        for length <- [header, header + 4, 124, 128] do
          assert {:ok, _} = call(function, push: push <> zeros(length - header))
        end

        for length <- [129, 132, 4096] do
          assert call(function, push: push <> zeros(length - header)) == {:error, :bad_input}
        end

        for length <- 0..(header - 1) do
          assert call(function, push: binary_part(push, 0, length)) == {:error, :bad_input}
        end

        # Vulkan takes whole words.
        assert {:error, :dispatch_failed, message} = call(function, push: push <> "x")
        assert message =~ "multiples of 4"
        # The shader reads more than there is.
        assert {:error, :dispatch_failed, message} = call(function, path: shader(bits, 1))
        assert message =~ "push constants"
      end

      test "wrong terms are errors", %{function: function} do
        for name <- ~w(q p extras push path)a,
            other <- [nil, 1, ~c"abc", make_ref(), <<1::3>>, Device.fetch!(:auto)] do
          assert call(function, [{name, other}]) == {:error, :bad_input}
        end
      end

      test "a file that is not there or no chain's is an error", %{function: function} do
        folder = Spirv.folder!()

        for path <- [folder, Path.join(folder, "missing.spv"), ""] do
          assert {:error, :dispatch_failed, message} = call(function, path: path)
          assert message =~ "read spv"
        end

        path = Path.join(folder, "bad.spv")
        good = File.read!(shader(elem(function, 1), 0))

        for contents <- ["", "no SPIR-V", binary_part(good, 0, div(byte_size(good), 8) * 4)] do
          File.write!(path, contents)
          assert {:error, :dispatch_failed, message} = call(function, path: path)
          assert message =~ "not a usable SPIR-V module"
        end

        File.write!(path, good)
        assert {:ok, _} = call(function, path: path)

        eighth =
          "#version 450\nlayout(set = 0, binding = 7) buffer B { float b[]; };\nvoid main() { b[0] = 0; }"

        assert {:error, :dispatch_failed, message} = call(function, path: Spirv.file!(eighth))
        assert message =~ "7 buffers"
      end

      test "what no memory can hold is an error, and everything still works", %{
        function: {_, bits, batch} = function
      } do
        k = 0xFFFFFFFF
        push = Spirv.push(k, 0, 256, if(batch, do: 2, else: 0), @epsilon, bits)

        assert {:error, :dispatch_failed, message} =
                 call(function, d: 256, n_obs: 0, k: k, push: push)

        assert message =~ ~r/memory|limit|large/
        assert {:ok, _} = call(function)
      end
    end
  end

  defp zeros(count), do: :binary.copy(<<0>>, count)
end
