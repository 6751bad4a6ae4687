if Code.ensure_loaded?(Nx) do
  defmodule Nx.Vulkan.Density do
    @moduledoc """
    A log density, written as a function of Nx, as a shader that runs leapfrog steps of Hamiltonian Monte Carlo.

        density = Nx.Vulkan.Density.new!(fn q -> Nx.negate(Nx.sum(Nx.multiply(q, q))) end, 3)
        {:ok, {q, p, grad, logp}} = Nx.Vulkan.Density.chain(density, q0, p0, masses, [0.1], 32)

    The function is traced and differentiated with `Nx.Defn`, and written down as one compute shader in which each
    value is computed once; sums over data are shared by the invocations of a workgroup, and a workgroup runs a chain.
    `Nx.Vulkan.HMC` samples with it. Integers are computed as signed ones of 32 bits, or of fewer where their type has fewer;
    reductions of them as floats of the density's type.

    It may use arithmetic, elementary functions, comparisons and `select`, reductions (`sum`, `product`, `reduce_max`,
    `reduce_min`, `all`, `any`, `logsumexp`, …), `dot`, reshapes, slices, `concatenate`, `stack`, `pad`, `put_slice`,
    `gather`, `take` and `cond`. Other ops, such as factorizations, `sort`, windows and `while`, are named in the error.
    """

    # Each invocation keeps momenta and masses of its own coordinates: 64, or twice as many where a workgroup has 128.
    @most 16_384

    # Bytes that one call of chain/6 gives back.
    @result 4_294_967_296

    alias Nx.Vulkan.{Device, Error, Graph, NativeV}
    alias Nx.Vulkan.Density.Shader

    @enforce_keys [:module, :glsl, :d, :type, :data, :scratch, :workgroup, :pace]
    defstruct @enforce_keys

    @doc """
    Makes the shader of `fun`, a function of a vector of `d` floats, at most #{@most}, and, with the option `:data`, of that.

    ## Options

      * `:data` - the second argument of `fun`: a tensor, or a container of tensors. It is kept on the device
      * `:type` - `:f64` (the default) or `:f32`, the type of everything
      * `:device` - as that of `Nx.Vulkan.VulkanoBackend`

    Returns `{:ok, density}` or `{:error, exception}`: an `ArgumentError` for a function that does not give a scalar or
    uses what no shader has, an `Nx.Vulkan.Error` from the device.
    """
    def new(fun, d, opts \\ []) do
      opts = Keyword.validate!(opts, [:data, type: :f64, device: Device.default()])
      type = validate!(fun, d, opts)

      with {:ok, device} <- opts[:device] |> Device.validate!() |> Device.fetch() |> native(),
           %{kind: kind, features: features} = NativeV.device_info(device),
           subgroups = "subgroup_arithmetic" in features,
           {:ok, %{data: data} = source} <- source(fun, d, [subgroups: subgroups] ++ opts) do
        with {:ok, module} <- native(NativeV.module_of(device, source.glsl, true)),
             {:ok, data} <- upload(device, data, type) do
          {:ok,
           %__MODULE__{
             module: module,
             glsl: source.glsl,
             d: d,
             type: type,
             data: data,
             scratch: source.scratch,
             workgroup: workgroup(kind, source.loop, d),
             pace: :atomics.new(1, [])
           }}
        end
      end
    end

    @doc """
    `new/3`, raising.
    """
    def new!(fun, d, opts \\ []) do
      case new(fun, d, opts) do
        {:ok, density} -> density
        {:error, exception} -> raise exception
      end
    end

    @doc """
    The GLSL of a log density and what its chains need, without a device: `{:ok, map}` with `:glsl`, the `:data` as a
    binary, the elements of `:scratch` memory for each chain and the longest `:loop`. Options as `new/3`, and

      * `:subgroups` - whether to use arithmetic of subgroups, which not every device has; `false` by default
      * `:layout` - `:resident` (the default), or `:native` for a shader that `Nx.Vulkan.NativeV.leapfrog_chain_synth_f64/6`
        and its siblings run: its data are then part of the extras
    """
    def source(fun, d, opts \\ []) do
      opts =
        Keyword.validate!(opts, [:data, :device, type: :f64, layout: :resident, subgroups: false])

      type = validate!(fun, d, opts)
      {value, gradient} = trace(fun, d, type, opts)
      graph = Graph.new([value, gradient])
      tensors = operands(graph, opts[:data])
      for {_, tensor} <- tensors, do: exact!(tensor, type)
      {sources, length} = sources(tensors)
      shader = Shader.new(graph, type, d, {sources, length}, opts[:layout], opts[:subgroups])

      data =
        for {_, tensor} <- tensors, into: <<>>, do: tensor |> host() |> encode(type)

      loop =
        tensors
        |> Enum.map(fn {_, tensor} -> Nx.axis_size(Nx.flatten(tensor), 0) end)
        |> Enum.max(fn -> 1 end)

      {:ok, %{glsl: shader.glsl, data: data, scratch: shader.scratch, loop: max(loop, d)}}
    rescue
      error in ArgumentError ->
        {:error, error}

      error in Protocol.UndefinedError ->
        message = "expected :data of tensors or containers of them, got: #{inspect(error.value)}"
        {:error, ArgumentError.exception(message)}
    catch
      {:unsupported, op, type, shape} -> {:error, unsupported(op, type, shape)}
    end

    @doc """
    Runs `k` leapfrog steps of one or more chains.

    `q`, `p` and `inverse_mass` are binaries of `d` floats for each chain, in the density's type, little-endian;
    `step_sizes` is a list with one number for each chain, negative to go back. Returns
    `{:ok, {q_chain, p_chain, grad_chain, logp_chain}}`, binaries with `k` rows for each chain, where row i is the state
    after step i + 1 and the log density and its gradient there; or `{:error, exception}`, an `Nx.Vulkan.Error` of the device or
    where more than #{@result} bytes would come back. Raises `ArgumentError` for arguments that do not fit.
    """
    def chain(%__MODULE__{} = density, q, p, inverse_mass, step_sizes, k) do
      (is_list(step_sizes) and Enum.all?(step_sizes, &is_number/1)) ||
        raise ArgumentError,
              "expected step_sizes to be a list of numbers, got: #{inspect(step_sizes)}"

      %{d: d, type: type} = density
      chains = length(step_sizes)
      bytes = chains * d * size(type)

      for {name, binary} <- [q: q, p: p, inverse_mass: inverse_mass],
          not is_binary(binary) or byte_size(binary) != bytes do
        got = if is_binary(binary), do: byte_size(binary), else: inspect(binary)

        raise ArgumentError,
              "expected #{name} to be a binary of #{chains} chains of #{d} coordinates in #{bytes} bytes, got: #{got}"
      end

      (is_integer(k) and k in 1..0xFFFFFFFF and chains > 0) ||
        raise ArgumentError,
              "expected at least one step and one chain, got: #{inspect(k)} and #{chains}"

      case k * chains * (3 * d + 1) * size(type) do
        result when result <= @result ->
          walk(density, {q, p}, extras(step_sizes, inverse_mass, d * size(type), type), chains, k)

        result ->
          message =
            "#{k} steps of #{chains} chains of #{d} coordinates take #{result} bytes, and at most #{@result} come back at once"

          {:error, Error.exception(kind: :out_of_memory, message: message)}
      end
    end

    @doc false
    # As many steps as `chain/6` gives back at once.
    def most_steps(%__MODULE__{d: d, type: type}, chains),
      do: @result |> div(chains * (3 * d + 1) * size(type)) |> max(1)

    # What runs longer than about a second is run in pieces, so that no driver takes it for hung: the next piece starts
    # where the last one ended, with the same gradient, and gives the same bits.
    defp walk(density, {q, p}, extras, chains, k, done \\ []) do
      piece = min(k, piece(density))
      started = System.monotonic_time()

      with {:ok, rows} <- run(density, {q, p, extras}, chains, piece) do
        elapsed =
          System.convert_time_unit(System.monotonic_time() - started, :native, :nanosecond)

        :atomics.put(density.pace, 1, div(elapsed, piece))
        done = [{rows, piece} | done]

        if piece == k do
          {:ok, join(Enum.reverse(done), chains)}
        else
          {qs, ps, _, _} = rows
          last = {last(qs, chains, piece), last(ps, chains, piece)}
          walk(density, last, extras, chains, k - piece, done)
        end
      end
    end

    @longest 1_000_000_000
    @first 32

    defp piece(density) do
      case :atomics.get(density.pace, 1) do
        0 -> @first
        nanoseconds -> max(1, div(@longest, nanoseconds))
      end
    end

    defp last(rows, chains, k) do
      bytes = div(byte_size(rows), chains * k)
      for chain <- 1..chains, into: <<>>, do: binary_part(rows, (chain * k - 1) * bytes, bytes)
    end

    defp join([{rows, _}], _), do: rows

    defp join(pieces, chains) do
      0..3
      |> Enum.map(fn part ->
        for chain <- 0..(chains - 1), {rows, _} <- pieces, into: <<>> do
          rows = elem(rows, part)
          bytes = div(byte_size(rows), chains)
          binary_part(rows, chain * bytes, bytes)
        end
      end)
      |> List.to_tuple()
    end

    defp run(%{d: d, type: type} = density, {q, p, extras}, chains, k) do
      push = <<k::32-little, 0::32, d::32-little, chains::32-little, 0::size(size(type))-unit(8)>>
      memory = {density.data, density.scratch, density.workgroup}

      case NativeV.chain_module(density.module, {q, p, extras, push}, k, type, memory) do
        {:ok, rows} ->
          {:ok, rows}

        {:error, :dispatch_failed, message} ->
          {:error, Error.exception(kind: :vulkan, message: message)}

        {:error, reason} ->
          {:error, Error.exception(kind: :vulkan, message: "the chain was refused: #{reason}")}
      end
    end

    ## Tracing

    defp trace(fun, d, type, opts) do
      point = Nx.template({d}, type)

      # Everything is traced in one type.
      case Keyword.fetch(opts, :data) do
        {:ok, data} when data != nil ->
          Nx.Defn.debug_expr_apply(
            &Nx.Defn.value_and_grad(&1, fn q -> scalar!(fun.(q, &2)) end),
            [
              point,
              templates(data, type)
            ]
          )

        _ ->
          Nx.Defn.debug_expr_apply(&Nx.Defn.value_and_grad(&1, fn q -> scalar!(fun.(q)) end), [
            point
          ])
      end
    end

    defp scalar!(%Nx.Tensor{vectorized_axes: axes, shape: shape})
         when axes != [] or shape != {} do
      shape = inspect(List.to_tuple(Keyword.values(axes) ++ Tuple.to_list(shape)))

      raise ArgumentError,
            "expected a log density that gives a scalar, got: one of shape #{shape}"
    end

    defp scalar!(value), do: value

    defp templates(data, type) do
      {template, _} =
        Nx.Defn.Composite.traverse(data, nil, fn tensor, acc ->
          tensor = Nx.to_tensor(tensor)
          type = if Nx.Type.float?(tensor.type), do: type, else: tensor.type

          if Nx.Type.complex?(tensor.type), do: refuse!(tensor, "that is real")

          if tensor.vectorized_axes != [],
            do: refuse!(tensor, "without vectorized axes, which the density can make of it")

          {Nx.template(tensor.shape, type, names: tensor.names), acc}
        end)

      template
    end

    defp refuse!(data, what) do
      raise ArgumentError, "expected :data #{what}, got: #{inspect(Nx.to_template(data))}"
    end

    defp operands(graph, data) do
      given = if data, do: [data] |> Nx.Defn.Composite.flatten_list(), else: []

      parameters =
        for {at, _} <- Enum.sort(graph.inputs),
            at > 0,
            do: {{:parameter, at}, Enum.at(given, at - 1)}

      captured =
        for {tensor, at} <- Enum.with_index(graph.captured), do: {{:tensor, at}, tensor}

      parameters ++ captured
    end

    defp sources(tensors) do
      Enum.reduce(tensors, {%{}, 0}, fn {key, tensor}, {sources, at} ->
        {Map.put(sources, key, at), at + Nx.size(tensor)}
      end)
    end

    # Nx converts a million elements in seconds.
    defp encode(%{type: {:f, 32}} = tensor, :f64) do
      for <<x::binary-4 <- Nx.to_binary(tensor)>>, into: <<>> do
        case x do
          <<finite::float-32-native>> -> <<finite::float-64-native>>
          <<bits::32-native>> -> wide(bits)
        end
      end
    end

    defp encode(tensor, type), do: Nx.to_binary(Nx.as_type(tensor, type))

    defp wide(0x7F800000), do: Nx.Type.infinity_binary({:f, 64})
    defp wide(0xFF800000), do: Nx.Type.neg_infinity_binary({:f, 64})
    defp wide(_), do: Nx.Type.nan_binary({:f, 64})

    # Integers lie among the floats, and are computed as those of 32 bits.
    defp exact!(tensor, type) do
      tensor = Nx.to_tensor(tensor)

      {most, holder} =
        if type == :f32, do: {2 ** 24, "f32"}, else: {2 ** 31 - 1, "an int of 32 bits"}

      with {kind, bits} when kind in [:s, :u] and bits >= 32 <- tensor.type,
           number when number != nil <-
             tensor |> host() |> Nx.to_flat_list() |> Enum.find(&(abs(&1) > most)) do
        raise ArgumentError,
              "expected integers from #{-most} to #{most}, which #{holder} holds, got: #{number} in " <>
                "#{Nx.Type.to_string(tensor.type)}#{inspect(Tuple.to_list(tensor.shape), charlists: :as_lists)}"
      end
    end

    defp host(tensor), do: tensor |> Nx.to_tensor() |> Nx.backend_copy(Nx.BinaryBackend)

    ## Checks

    defp validate!(fun, d, opts) do
      arity = if opts[:data] == nil, do: 1, else: 2

      unless is_function(fun, arity) do
        raise ArgumentError, "expected a function of #{arity} argument(s), got: #{inspect(fun)}"
      end

      unless is_integer(d) and d in 1..@most do
        raise ArgumentError,
              "expected a number of coordinates from 1 to #{@most}, got: #{inspect(d)}"
      end

      case opts[:type] do
        type when type in [:f32, :f64] -> type
        {:f, bits} when bits in [32, 64] -> :"f#{bits}"
        other -> raise ArgumentError, "expected :type to be :f32 or :f64, got: #{inspect(other)}"
      end
    end

    defp unsupported(op, type, shape) do
      ArgumentError.exception(
        "no shader computes #{op} (#{Nx.Type.to_string(type)}#{inspect(Tuple.to_list(shape), charlists: :as_lists)}) of a log density; " <>
          "sample op by op with method: :per_op, which is slower, or write the density without it"
      )
    end

    defp native({:ok, value}), do: {:ok, value}

    defp native({:error, kind, message}),
      do: {:error, Error.exception(kind: kind, message: message)}

    defp upload(_, <<>>, _), do: {:ok, nil}

    defp upload(device, data, type) do
      shape = {div(byte_size(data), size(type))}
      native(NativeV.upload(device, {:f, 8 * size(type)}, shape, data))
    end

    defp size(:f64), do: 8
    defp size(:f32), do: 4

    # A CPU runs a workgroup's invocations in vectors of 8, and each barrier costs it; an invocation owns 16 coordinates
    # at most, or as few as 256 invocations leave.
    defp workgroup("cpu", _, d), do: Enum.find([8, 16, 32, 64, 128], 256, &(d <= 16 * &1))
    defp workgroup(_, loop, _), do: Enum.find([32, 64, 128], 256, &(loop <= &1))

    defp extras(step_sizes, inverse_mass, bytes, type) do
      for {epsilon, chain} <- Enum.with_index(step_sizes), into: <<>> do
        float(epsilon, type) <> binary_part(inverse_mass, chain * bytes, bytes)
      end
    end

    defp float(number, :f64), do: <<number::float-64-little>>
    defp float(number, :f32), do: <<number::float-32-little>>
  end
end
