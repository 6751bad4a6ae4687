if Code.ensure_loaded?(Nx) do
  defmodule Nx.Vulkan.VulkanoBackend do
    @moduledoc """
    A `Nx.Backend` that keeps tensors on a Vulkan device and computes there.

        config :nx, default_backend: {Nx.Vulkan.VulkanoBackend, device: 0}

    ## Options

      * `:device` - an index into `Nx.Vulkan.devices/0`, a part of a device's name, or its UUID. Without it the
        device named in `config :nx_vulkan, device: …`, or else the best one of the machine.
      * `:precision` - how exact `Nx.dot/6` and `Nx.conv/3` of f32 have to be where this is the process's default backend:
        * `:default` - as sums in f32, unless the registry allows less. This is safe, and what holds without the option.
        * `:high` - of each element the first 16 of 24 binary digits have to count. What is left out is about 1e-5 of each
          product. Large ones are then faster where matrix units run them.
        * `:highest` - as sums in f32, whatever the registry allows.

    The names are EXLA's; what it calls `:default`, one product of bf16, is here what tensors of bf16 are for. `:precision` only
    allows: kernels that gain nothing from it, and other types than f32, are as exact as ever. A result may so differ from one
    device to another by that much.

    Ops return at once; reading a tensor waits for it. What neither a kernel pack nor the host runs goes through
    `Nx.BinaryBackend`: each time is counted in `Nx.Vulkan.stats/1`, reported as the telemetry event
    `[:nx_vulkan, :fallback]`, and raises under `config :nx_vulkan, fallback: :error`.
    `Nx.reduce/4` and `Nx.window_reduce/5` run on the device where their closure is an expression of elementwise ops, as `docs/guide.md`
    says; it may be called four times more than there, with tensors that have no elements to read.

    `config :nx_vulkan, add_backend_on_inspect: true` prints the device with each tensor.

    How it differs from Nx's documentation else, pointers among it, is in `guides/backend_documentation`.
    """

    @behaviour Nx.Backend
    @enforce_keys [:ref, :shape, :type]
    defstruct [:ref, :shape, :type]

    import Nx.Vulkan.Packed, only: [is_packed: 1]
    import Nx.Vulkan.Precision, only: [has_precision: 1]

    alias Nx.Tensor, as: T

    alias Nx.Vulkan.{Block, Closure, Device, Error, Fallback, Movement, NativeV}
    alias Nx.Vulkan.{Operand, Ops, Packed, Pointer, Precision, Request}
    alias Nx.Vulkan.VulkanoBackend, as: V

    ## Storage

    @impl true
    def init([]), do: []

    def init(opts) do
      opts = Keyword.validate!(opts, [:device, :precision])
      if choice = opts[:device], do: Device.validate!(choice)
      if value = opts[:precision], do: Precision.validate!(value)
      opts
    end

    @impl true
    def from_binary(%T{} = out, binary, opts), do: upload(out, binary, device(opts))

    @impl true
    def to_binary(%T{data: %V{}, type: type} = tensor, limit) do
      bytes = tensor |> ref_of() |> NativeV.download(limit) |> ok!()
      if is_packed(type), do: Packed.pack(bytes, type), else: bytes
    end

    @impl true
    def backend_copy(%T{data: %V{ref: ref}} = tensor, V, opts) do
      device = device(opts)

      if NativeV.same_device(ref, device) do
        wrap(tensor, copy(ref, tensor.type, tensor.shape))
      else
        upload(tensor, to_binary(tensor, Nx.size(tensor)), device)
      end
    end

    def backend_copy(%T{} = tensor, backend, opts) do
      backend.from_binary(tensor, to_binary(tensor, Nx.size(tensor)), opts)
    end

    @impl true
    def backend_transfer(%T{data: %V{ref: ref}} = tensor, backend, opts) do
      if backend == V and NativeV.same_device(ref, device(opts)) do
        tensor
      else
        moved = backend_copy(tensor, backend, opts)
        NativeV.deallocate(ref)
        moved
      end
    end

    @impl true
    def backend_deallocate(%T{data: %V{ref: ref}}), do: NativeV.deallocate(ref)

    @impl true
    def to_batched(out, tensor, opts), do: Movement.to_batched(V, out, tensor, opts)

    @impl true
    def inspect(%T{data: %V{ref: ref}} = tensor, opts) do
      limit =
        if opts.limit == :infinity,
          do: Nx.size(tensor),
          else: min(opts.limit + 1, Nx.size(tensor))

      doc = Nx.Backend.inspect(tensor, to_binary(tensor, limit), opts)

      if Application.get_env(:nx_vulkan, :add_backend_on_inspect) == true do
        info = NativeV.device_info(NativeV.device_of(ref))

        Inspect.Algebra.concat([
          "Nx.Vulkan.VulkanoBackend<#{info.index}: #{info.name}>",
          Inspect.Algebra.line(),
          doc
        ])
      else
        doc
      end
    end

    @impl true
    def to_pointer(%T{data: %V{ref: ref}, type: type}, opts), do: ok!(Pointer.of(ref, type, opts))

    @impl true
    def from_pointer(pointer, type, shape, backend_opts, opts) do
      template = Nx.template(shape, type, Keyword.validate!(opts, [:names]))
      wrap(template, ok!(Pointer.fetch(pointer, device(backend_opts), type, shape)))
    end

    ## Creation

    @impl true
    def constant(out, value, opts) do
      %T{data: %Nx.BinaryBackend{state: bits}} =
        Nx.BinaryBackend.constant(%{out | shape: {}}, value, [])

      element = if is_packed(out.type), do: Packed.unpack(bits, out.type), else: bits
      wrap(out, ok!(Request.constant(device(opts), out.type, out.shape, element)))
    end

    @impl true
    def eye(out, opts), do: create(:eye, out, opts, [], [[]])

    @impl true
    def iota(out, axis, opts), do: create(:iota, out, opts, [axis: List.wrap(axis)], [axis, []])

    defp create(op, out, opts, attrs, arguments) do
      device = device(opts)

      finish(
        op,
        out,
        Request.run(Atom.to_string(op), device, [{out.type, out.shape}], attrs),
        device,
        arguments
      )
    end

    ## Views

    @impl true
    def reshape(out, tensor) do
      [ref] = refs([tensor])

      case NativeV.reshape(ref, out.shape) do
        :copy -> wrap(out, ok!(NativeV.reshape(copy(ref, tensor.type, tensor.shape), out.shape)))
        viewed -> wrap(out, ok!(viewed))
      end
    end

    @impl true
    def squeeze(out, tensor, axes), do: view(out, tensor, &NativeV.squeeze(&1, axes))

    @impl true
    def transpose(out, tensor, axes), do: view(out, tensor, &NativeV.transpose(&1, axes))

    @impl true
    def broadcast(out, tensor, shape, axes),
      do: view(out, tensor, &NativeV.broadcast(&1, shape, axes))

    @impl true
    def reverse(out, tensor, axes), do: view(out, tensor, &NativeV.reverse(&1, axes))

    @impl true
    # What a byte has beyond such an element follows from the type.
    def bitcast(%T{type: type} = out, tensor) when is_packed(type), do: as_type(out, tensor)
    def bitcast(out, tensor), do: view(out, tensor, &NativeV.bitcast(&1, out.type))

    # Integers are a view; the device reads the starts that nobody knows here.
    @impl true
    def slice(out, tensor, starts, lengths, strides) do
      starts = Movement.starts(tensor.shape, starts, lengths)

      if Enum.all?(starts, &is_integer/1) do
        view(out, tensor, &NativeV.slice(&1, starts, Tuple.to_list(out.shape), strides))
      else
        [ref | dynamic] = refs = refs([tensor | Ops.tensors(starts)])

        {first, extents, steps, attrs} =
          Movement.slice(tensor.shape, out.shape, starts, lengths, strides)

        ref = ok!(NativeV.slice(ref, first, extents, steps))
        result = Request.run("dynamic_slice", [ref | dynamic], [{out.type, out.shape}], attrs)
        finish(:slice, out, result, refs, [tensor, starts, lengths, strides])
      end
    end

    defp view(out, tensor, layout) do
      [ref] = refs([tensor])
      wrap(out, ok!(layout.(ref)))
    end

    ## Ops

    for {name, arguments, operands, :native} <- Ops.callbacks() do
      arguments = Enum.map(arguments, &Macro.var(&1, __MODULE__))
      operands = Enum.map(operands, &Macro.var(&1, __MODULE__))

      @impl true
      def unquote(name)(out, unquote_splicing(arguments)) do
        native(
          unquote(name),
          unquote(Atom.to_string(name)),
          out,
          unquote(operands),
          unquote(arguments)
        )
      end
    end

    for {name, arguments, _, :closure} <- Ops.callbacks() do
      arguments = Enum.map(arguments, &Macro.var(&1, __MODULE__))

      @impl true
      def unquote(name)(out, unquote_splicing(arguments)) do
        traced = Closure.unquote(name)(V, out, unquote_splicing(arguments))
        closure(unquote(name), out, traced, unquote(arguments))
      end
    end

    defp closure(_op, _out, %T{} = result, _arguments), do: result
    defp closure(op, out, nil, arguments), do: fallback(op, out, refs_of(arguments), arguments)

    defp closure(op, out, {operands, attrs}, arguments) do
      case Request.run(Atom.to_string(op), refs(operands), [{out.type, out.shape}], attrs) do
        {:error, :bad_input, _} -> closure(op, out, nil, arguments)
        result -> finish(op, out, result, refs_of(arguments), arguments)
      end
    end

    @impl true
    def block(%_{} = struct, out, arguments, fun) do
      op = Block.op(struct)
      Operand.check_block!(struct, arguments)
      arguments = Block.widened(struct, arguments)

      with true <- NativeV.has_op(arguments |> refs_of() |> device_of(), op),
           {operands, outs, attrs} <- Block.request(filled(struct), out, arguments),
           {:ok, refs} <- offer(op, refs(operands), outs, attrs) do
        Block.results(out, refs, &wrap/2)
      else
        _ -> default(struct, arguments, fun)
      end
    end

    defp filled(%name{} = struct) when name in [Nx.Vulkan.Dot, Nx.Vulkan.Conv],
      do: Precision.fill(struct, Precision.backend_opts())

    defp filled(struct), do: struct

    # Nobody has to run a block: it says itself what it is.
    defp offer(op, refs, outs, attrs) do
      case Request.run(op, refs, outs, attrs) do
        {:error, kind, message} when kind not in [:unsupported, :fallback_forbidden] ->
          Error.raise!(kind, message)

        result ->
          result
      end
    end

    defp default(struct, arguments, fun) do
      # Literals inside the default function are made on the default backend: they belong next to the operands.
      opts = Keyword.put(Precision.backend_opts(), :device, arguments |> refs_of() |> uuid())
      backend = {V, opts}
      Nx.with_default_backend(backend, fn -> apply(fun, [struct | arguments]) end)
    end

    # The host reduces axes, and a scalar has none.
    defp native(op, name, out, [%T{shape: {}} = scalar], [_, opts]) when is_list(opts) do
      vector = reshape(%{scalar | shape: {1}, names: [nil]}, scalar)
      native(op, name, out, [vector], [vector, opts])
    end

    defp native(op, name, out, [tensors], [_, axis] = arguments)
         when op in [:concatenate, :stack] do
      case Movement.parts(op, out, tensors, axis) do
        nil ->
          request(op, name, out, tensors, arguments)

        parts ->
          parts = for {part, chunk} <- parts, do: native(op, name, part, [chunk], [chunk, axis])
          native(:concatenate, "concatenate", out, [parts], [parts, axis])
      end
    end

    defp native(op, name, out, operands, arguments),
      do: request(op, name, out, Ops.operands(op, operands, arguments), arguments)

    defp request(op, name, out, operands, arguments) do
      Operand.check!(op, arguments)
      refs = refs(operands)
      result = Request.run(name, refs, [{out.type, out.shape}], attrs(op, arguments))
      finish(op, out, result, refs, arguments)
    end

    defp attrs(op, arguments) when has_precision(op),
      do: op |> Ops.attrs(arguments) |> Precision.add(op, Precision.backend_opts())

    defp attrs(op, arguments), do: Ops.attrs(op, arguments)

    defp finish(_op, out, {:ok, [ref]}, _where, _arguments), do: wrap(out, ref)

    defp finish(op, out, {:error, :unsupported, _}, where, arguments),
      do: fallback(op, out, where, arguments)

    defp finish(_op, _out, {:error, kind, message}, _where, _arguments),
      do: Error.raise!(kind, message)

    defp fallback(op, out, where, arguments) do
      device = if is_list(where), do: device_of(where), else: where
      result = Fallback.run(op, out, arguments)
      result = if result.type == out.type, do: result, else: Nx.as_type(result, out.type)
      upload(out, Nx.to_binary(result), device)
    end

    ## References

    defp wrap(out, ref), do: %{out | data: %V{ref: ref, shape: out.shape, type: out.type}}

    defp refs(operands) do
      for operand <- operands do
        case operand do
          %T{data: %V{}} ->
            ref_of(operand)

          %T{} ->
            upload(operand, Nx.to_binary(operand), operands |> refs_of() |> device_of()).data.ref
        end
      end
    end

    # Nx's evaluator gives gradients of loops the types of what the loops begin with, whatever their elements are.
    defp ref_of(%T{data: %V{ref: ref, type: type}, type: type}), do: ref
    defp ref_of(%T{data: %V{ref: ref}} = tensor), do: copy(ref, tensor.type, tensor.shape)

    defp refs_of(arguments) do
      for %T{data: %V{ref: ref}} <- List.flatten(arguments), do: ref
    end

    defp device_of([ref | _]), do: NativeV.device_of(ref)
    defp device_of([]), do: device([])

    defp uuid(refs), do: NativeV.device_info(device_of(refs)).uuid

    # Nx asks for a device with each literal.
    defp device([]), do: Device.fetch!(Device.default())
    defp device(opts), do: Device.fetch!(init(opts)[:device] || Device.default())

    # What the VM knows of a scalar stays known, as that of a constant does.
    defp upload(%T{shape: {}, type: {_, bits}} = out, binary, device)
         when bit_size(binary) == bits and not is_packed(out.type),
         do: wrap(out, ok!(Request.constant(device, out.type, {}, binary)))

    defp upload(%T{type: type, shape: shape} = out, binary, device) do
      {_, bits} = type
      expected = Tuple.product(shape) * bits

      if bit_size(binary) != expected do
        raise ArgumentError,
              "expected #{expected} bits for #{Nx.Type.to_string(type)}#{inspect(shape)}, got: #{bit_size(binary)} bits"
      end

      bytes = if is_packed(type), do: Packed.unpack(binary, type), else: binary
      wrap(out, ok!(Request.upload(device, type, shape, bytes)))
    end

    defp copy(ref, type, shape) do
      [copy] = ok!(Request.run("as_type", [ref], [{type, shape}], []))
      copy
    end

    defp ok!({:ok, value}), do: value
    defp ok!({:error, kind, message}), do: Error.raise!(kind, message)
  end
end
