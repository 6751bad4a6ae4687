defmodule Nx.Vulkan.NativeV do
  @moduledoc """
  The NIF library: buffers and ops of the Vulkan host, without Nx.

  The buffer functions below are for callers who bring their own bytes. They use the default device
  (`config :nx_vulkan, device: …`), which opens on first use. A buffer belongs to no process: any process may
  use it, and its memory goes back to the pool when the last reference is garbage collected.

  The module may be loaded anew while the VM runs (`:code.load_file/1`, a hot upgrade of a release): references live on, and
  every process keeps its own, as long as the library stays the same build. Another build is refused with a message, and
  what runs goes on; changing it takes a restart of the VM. Where the module was gone meanwhile (`:code.delete/1`, then
  `:code.purge/1`), references from before are no longer known, which is an `ArgumentError`; their memory is freed with them.
  """

  @on_load :load

  # What the library answers when it is asked to serve in place of another build of itself.
  @other_build 2

  # Name and arity of every function the library provides.
  @natives [
    open_device: 2,
    list_devices: 0,
    device_info: 1,
    device_stats: 1,
    sync_device: 1,
    begin_profile: 1,
    end_profile: 2,
    validation_messages: 0,
    upload: 4,
    constant: 4,
    constant_of: 1,
    known: 1,
    download: 2,
    deallocate: 1,
    tensor_info: 1,
    device_of: 1,
    same_device: 2,
    run: 4,
    run_program: 3,
    compile_program: 4,
    run_compiled: 2,
    explain: 5,
    has_op: 2,
    elementwise_rows: 0,
    reshape: 2,
    transpose: 2,
    squeeze: 2,
    broadcast: 3,
    slice: 4,
    reverse: 2,
    bitcast: 2,
    address_of: 1,
    from_address: 4,
    share: 2,
    from_shared: 4,
    count_fallback: 1,
    fallback_counts: 0,
    buffer_upload: 2,
    buffer_alloc: 2,
    follow: 2,
    logged: 0,
    reload: 1,
    pack_versions: 2,
    rollback: 3,
    resume_pack: 2,
    module_of: 3,
    spirv_file: 3,
    synthesis_dir: 1,
    dispatch_file: 6,
    chain_file: 5,
    chain_module: 5,
    pipeline_cache_path: 1,
    pipeline_cache_uuid: 1,
    persist_pipelines: 1,
    load_pipelines: 1,
    clear_pipelines: 1
  ]

  @doc """
  Copies a binary into a new device buffer.

  Returns `{:ok, ref}`, `{:error, :bad_input}` for anything but a binary, `{:error, :upload_failed, message}`, or
  `{:error, :vulkan_init_failed, message}` when there is no device.
  """
  def buf_upload(binary), do: with_device(&buffer_upload(&1, binary))

  @doc """
  Makes a device buffer of `n_bytes` zeros. Returns what `buf_upload/1` returns.
  """
  def buf_alloc(n_bytes), do: with_device(&buffer_alloc(&1, n_bytes))

  @doc """
  Reads a device buffer back.

  Returns `{:ok, binary}`, `{:error, :bad_input}` for anything but a live buffer, or `{:error, :download_failed, message}`.
  """
  def buf_download(_ref), do: not_loaded()

  @doc """
  Size of a buffer in bytes, as a plain integer.
  """
  def buf_byte_size(_ref), do: not_loaded()

  @doc """
  Overwrites a buffer with a binary of the same size.

  Returns `:ok`, `{:error, :size_mismatch}`, `{:error, :bad_input}` or `{:error, :upload_failed, message}`.
  """
  def buf_upload_into(_ref, _binary), do: not_loaded()

  @doc """
  Elementwise binary op by a SPIR-V file: `out[i] = a[i] op b[i]` for `n` elements.

  The shader has `a`, `b` and `out` at bindings 0, 1 and 2 of set 0, `uint n` in its push constants, a workgroup of 256
  invocations, and `op_code` in specialization constant 0: 0 add, 1 mul, 2 sub, 3 div, 4 pow, 5 max, 6 min.

  Each buffer is `n` elements of 1, 2, 4 or 8 bytes, the same for all. Returns `:ok`, `{:error, :size_mismatch}`,
  `{:error, :bad_input}` or `{:error, :dispatch_failed, message}`; a message that contains `read spv` means the file.
  """
  def apply_binary(out, a, b, n, op_code, spv_path),
    do: dispatch(out, [a, b], [n, n, n], [n], [op_code], &lines/1, [n], spv_path)

  @doc """
  Elementwise unary op by a SPIR-V file; `a` and `out` at bindings 0 and 1, else as `apply_binary/6`.

  Op codes: 0 exp, 1 log, 2 sqrt, 3 abs, 4 neg, 5 sigmoid, 6 tanh, 7 relu, 8 ceil, 9 floor, 10 sign, 11 reciprocal,
  12 square.
  """
  def apply_unary(out, a, n, op_code, spv_path),
    do: dispatch(out, [a], [n, n], [n], [op_code], &lines/1, [n], spv_path)

  @doc """
  Reduces the middle axis of `a`, seen as `{outer, reduce_size, inner}`, into `out` of `{outer, inner}` elements.

  `a` and `out` at bindings 0 and 1; push constants `uint outer, reduce_size, inner, op_code`; `op_code` (0 sum, 1 max,
  2 min) in specialization constant 0 too. Errors as `apply_binary/6`. A full reduction is `{1, n, 1}`.
  """
  def reduce_axis(out, a, outer, reduce_size, inner, op_code, spv_path) do
    counts = [outer, reduce_size, inner]
    elements = if Enum.all?(counts, &is_integer/1), do: [Enum.product(counts), outer * inner]

    dispatch(
      out,
      [a],
      elements,
      counts ++ [op_code],
      [op_code],
      &lines/1,
      [elements && outer * inner],
      spv_path
    )
  end

  @doc """
  Transposes `a`, `m` rows of `n`, into `out`, `n` rows of `m`.

  `a` and `out` at bindings 0 and 1, push constants `uint m, n`, workgroups of 16 by 16. Errors as `apply_binary/6`.
  """
  def transpose_2d(out, a, m, n, spv_path) do
    elements = if is_integer(m) and is_integer(n), do: [m * n, m * n]
    dispatch(out, [a], elements, [m, n], [], &tiles/1, [m, n], spv_path)
  end

  @doc """
  Matrix product: `a` of `{m, k}` times `b` of `{k, n}` into `out` of `{m, n}`, row-major.

  `a`, `b` and `out` at bindings 0, 1 and 2, push constants `uint m, n, k`, workgroups of 16 by 16. Errors as
  `apply_binary/6`.
  """
  def matmul(out, a, b, m, n, k, spv_path) do
    elements = if Enum.all?([m, n, k], &is_integer/1), do: [m * k, k * n, m * n]
    dispatch(out, [a, b], elements, [m, n, k], [], &tiles/1, [m, n], spv_path)
  end

  @doc """
  K leapfrog steps of one chain in single precision, by a SPIR-V file.

    * `q_init`, `p_init` - positions and momenta, `d` little-endian floats each
    * `extras` - `n_obs` observations, then the inverse mass of each of the `d` coordinates
    * `push` - the push constants, up to 128 bytes, all of which the shader gets: `uint k, n_obs, d, 0`, the step size
      as a float, and whatever the shader wants besides
    * `k` - steps, as `push` says

  The shader has these three at bindings 0, 1 and 2 of set 0, and its outputs at 3 to 6: positions, momenta, gradients
  (`k` rows of `d`) and log densities (`k`). It runs in one workgroup.

  Returns `{:ok, {q_chain, p_chain, grad_chain, logp_chain}}`, `{:error, :size_mismatch}` for lengths that do not agree,
  `{:error, :bad_input}` for `k` of 0 or other than in `push`, for `d` beyond 256 and for `push` shorter than its header or
  longer than 128 bytes, or `{:error, :dispatch_failed, message}`; a message that contains `read spv` means the file.
  """
  def leapfrog_chain_synth(q_init, p_init, extras, push, k, spv_path),
    do: chain({q_init, p_init, extras, push}, k, spv_path, {:f32, false})

  @doc """
  As `leapfrog_chain_synth/6`, in double precision: the header of `push` has 24 bytes, with the step size at byte 16.
  """
  def leapfrog_chain_synth_f64(q_init, p_init, extras, push, k, spv_path),
    do: chain({q_init, p_init, extras, push}, k, spv_path, {:f64, false})

  @doc """
  As `leapfrog_chain_synth/6` for as many chains as the fourth word of `push` says, a workgroup each. Inputs and outputs
  of the chains follow each other; each chain has extras of its own.
  """
  def leapfrog_chain_synth_batch(q_init, p_init, extras, push, k, spv_path),
    do: chain({q_init, p_init, extras, push}, k, spv_path, {:f32, true})

  @doc """
  `leapfrog_chain_synth_batch/6` in double precision.
  """
  def leapfrog_chain_synth_batch_f64(q_init, p_init, extras, push, k, spv_path),
    do: chain({q_init, p_init, extras, push}, k, spv_path, {:f64, true})

  for {name, arity} <- @natives do
    arguments = for i <- 1..arity//1, do: Macro.var(:"_argument#{i}", __MODULE__)
    @doc false
    def unquote(name)(unquote_splicing(arguments)), do: not_loaded()
  end

  # Devices, threads and tensors belong to the library that runs, so a new version of this module gets that one again, from
  # the path that the VM knows it by. The library compares itself with what lies in its place by now.
  @doc false
  def load do
    path = :filename.join(:code.priv_dir(:nx_vulkan), ~c"libnx_vulkan_nif")
    running = :persistent_term.get(__MODULE__, path)

    case :erlang.load_nif(running, List.to_string(path)) do
      :ok ->
        :persistent_term.put(__MODULE__, running)
        # Where the module was gone meanwhile, its references are nothing to this one.
        for {{Nx.Vulkan.Device, _} = key, _} <- :persistent_term.get(),
            do: :persistent_term.erase(key)

        :ok

      {:error, {kind, text}} = error when kind in [:load, :upgrade] ->
        if :lists.suffix(~c"(#{@other_build}).", text),
          do:
            {:error, {kind, ~c"#{path} is not the library that runs: restart the VM to change"}},
          else: error

      error ->
        error
    end
  end

  @word 0..0xFFFFFFFF

  defp dispatch(out, inputs, elements, push, op, groups, extents, path) do
    op? = Enum.all?(op, &(&1 in -0x80000000..0x7FFFFFFF))

    if op? and is_binary(path) and is_list(elements) and
         Enum.all?(push ++ elements, &(&1 in @word)) do
      dispatch_file(out, inputs, elements, {push, List.first(op)}, groups.(extents), path)
    else
      {:error, :bad_input}
    end
  end

  defp lines([n]), do: {div(n + 255, 256), 1, 1}
  defp tiles([rows, columns]), do: {div(columns + 15, 16), div(rows + 15, 16), 1}

  defp chain(inputs, k, path, kind),
    do: with_device(&chain_file(&1, inputs, k, path, kind))

  defp with_device(fun) do
    case Nx.Vulkan.Device.fetch(Nx.Vulkan.Device.default()) do
      {:ok, device} -> fun.(device)
      {:error, _kind, message} -> {:error, :vulkan_init_failed, message}
    end
  end

  defp not_loaded, do: :erlang.nif_error(:nif_not_loaded)
end
