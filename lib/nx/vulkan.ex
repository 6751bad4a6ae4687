defmodule Nx.Vulkan do
  @moduledoc """
  Nx on anything with a Vulkan driver: devices, counters, and which kernel runs what.

  The backend is `Nx.Vulkan.VulkanoBackend`:

      config :nx, default_backend: {Nx.Vulkan.VulkanoBackend, device: 0}

  ## Configuration

      config :nx_vulkan,
        device: :auto,           # for callers who name none: an index, a name or a UUID
        registry: nil,           # path of a registry.toml; in mode dev $NX_VULKAN_REGISTRY takes its place
        packs: [],               # more folders to look for kernel packs in
        cache_dir: nil,          # where compiled shaders are kept
        shader_timeout: 20_000,  # milliseconds for one shader from outside to compile
        measure: true,           # choose between packs and CPU by measured times; new ones are taken on CPU devices only
        validation: false,       # turn on the Vulkan validation layers
        timeout_ms: nil,         # how long a command may take before the device counts as lost: 120_000, on a CPU 600_000
        memory: nil,             # what may be taken from the driver: bytes, or a share up to 1.0 of the device's memory
        kept_memory: nil,        # of that, what may hold operands as kernels pack them: bytes, or a share
        replays: nil,            # whether compiled functions are recorded once; nil: on a GPU
        lazy: nil,               # whether elementwise ops wait until somebody needs their results; nil: on a GPU
        node_timeout_ms: :infinity, # how long callers of Nx.Vulkan.Node wait
        fallback: :binary,       # :error raises where no kernel pack runs an op, instead of computing on the CPU
        add_backend_on_inspect: false

  The settings from `:registry` to `:lazy` are read when a device opens.

  The device tells how far it is once per batch of up to 64 commands, and a batch may take `:timeout_ms` for each of its
  commands; as long as one batch after the other gets done a queue may take any time. A process that is thousands of
  commands ahead of the device waits for it. After a command that takes longer every call raises or returns
  `:device_lost`: the device stays lost until the VM starts anew, other devices work on. Halting the VM takes a few
  seconds at most, whatever a device does.

  Where `:memory` is `nil` it is 0.9 of the device's memory. Devices that share the system's memory, lavapipe among them,
  take no more than 0.75 of what is free there when they open, and a control group's limit counts too. `stats/1` has the
  budget and what is taken of it, in bytes, under `:budget`.

  Kernels on matrix units pack their operands first. From its second use on a tensor keeps what was made of it, so that
  weights are packed once; it is freed with the tensor, and before any allocation fails. `:kept_memory` bounds all of that:
  an eighth of the memory where it is `nil`, 0 for none. `stats/1` has the bytes under `:kept`; they count among those
  `in_use` under `:memory` too.

  A driver takes longer to record a small dispatch than a GPU to run it. So on a GPU the commands of a function of
  `Nx.Vulkan.Compiler` are recorded the third time that it is called with the same parameters, and replayed from then on:
  what changes between calls is copied to where the commands read it, results are copied out. That takes memory of its own
  for what the function makes on the way, an eighth of the device's at most for all of them, which is given up before any
  allocation fails. `:replays` turns it on or off for every device; `stats/1` has the functions, their bytes and the calls
  that were replayed under `:replays`.

  On a GPU elementwise ops that are called one by one wait until somebody needs what they make: another op, who reads it, or
  `sync/1`. Up to 48 that follow from each other then run as one, from the third time on that the same ones come; their bits are
  those that they have one by one, but for which NaN it is, and the sign of a zero that is the least or greatest of two. What
  nobody needs is never computed, so a benchmark has to read all of its results. What waits holds its operands, also where
  `Nx.backend_deallocate/1` was called for them, up to an eighth of the memory. `:lazy` turns it on or off for every device.

  ## Hot upgrades

  New versions of the modules may be loaded while the VM runs; tensors and devices live on. Another build of the NIF library
  is refused, and what runs goes on: changing it takes a restart of the VM.

  ## Log

  What the library and its packs say goes to `Logger` under the domain `[:elixir, :nx_vulkan]`, with `:target` as metadata:
  `nx_vulkan`, the id of a pack, or `vulkan validation`. Where the application is not started it goes to standard error.

  ## Telemetry

  Each time no kernel pack runs an op the telemetry event `[:nx_vulkan, :fallback]` is emitted, with the measurement
  `count: 1` and as metadata `:op`, `:types` and `:shapes`, and under `:to` what runs it: `:host`, the library's own kernel for
  the CPU, or `Nx.BinaryBackend`.
  """

  alias Nx.Vulkan.{Device, Error, NativeV}

  @typedoc """
  A device as the setting `:device` names it.
  """
  @type device :: :auto | non_neg_integer | String.t()

  @doc """
  Opens the default device, which else opens on first use.

  Returns `:ok`, or `{:error, message}` where there is none or the registry file is wrong. Raises `ArgumentError` where a
  setting is of another kind than it has to be.
  """
  @spec init() :: :ok | {:error, String.t()}
  def init do
    case Device.fetch(Device.default()) do
      {:ok, _device} -> :ok
      {:error, _kind, message} -> {:error, message}
    end
  end

  @doc """
  The name of the default device. Raises `Nx.Vulkan.Error` where there is none.
  """
  @spec device_name() :: String.t()
  def device_name, do: device_info().name

  @doc """
  Whether shaders of the default device compute in f64. Raises `Nx.Vulkan.Error` where there is none.

  Tensors of f64 work in any case: what the device cannot compute the host does.
  """
  @spec has_f64?() :: boolean
  def has_f64?, do: "fp64" in device_info().features

  @doc """
  The Vulkan devices of the machine, best first, as `device_info/1` describes them. A device's `:index` is its place in this
  list, and `:unusable` is why nx_vulkan cannot use it, or `nil`. Raises `Nx.Vulkan.Error` where there is no Vulkan.
  """
  @spec devices() :: [map]
  def devices, do: ok!(NativeV.list_devices())

  @doc """
  A map that describes a device, which opens if need be. Raises `Nx.Vulkan.Error` where there is none.

    * `:index`, `:name`, `:uuid` - each names it as the setting `:device`
    * `:kind` - `"discrete"`, `"integrated"`, `"virtual"`, `"cpu"` or `"other"`
    * `:driver`, `:api` - name and version of its driver, and its version of Vulkan
    * `:memory` - its own memory, in bytes
    * `:features` - what packs may ask for, such as `"fp64"`
    * `:matrices` - what its matrix units multiply, as the driver lists it
  """
  @spec device_info(device) :: map
  def device_info(choice \\ Device.default()) do
    choice |> Device.validate!() |> Device.fetch!() |> NativeV.device_info()
  end

  @doc """
  Counters of a device, which opens if need be. Raises `Nx.Vulkan.Error` where there is none.

    * `:served` - who ran what how often, as `{op, kernel, runs}`
    * `:fallbacks` - how often which op ran on the CPU in this VM because no kernel pack ran it, as `%{op => runs}`
    * `:memory` - of tensors, in bytes: `:allocated` from the driver, `:in_use`, and at most so far, the `:peak`; in so
      many `:buffers`
    * `:budget` - of all memory, in bytes: the `:limit`, what is `:taken`, and of that for `:readback` and `:upload`
    * `:kept` - what kernels made of operands: the `:limit` and the `:bytes`, in so many `:buffers`, and how often one was
      `:reused`
    * `:replays` - recorded `:programs`, their `:bytes`, and how often one ran, the `:runs`
    * `:ahead` - commands that are not known to be done; `:submissions` to the queue so far
    * `:plans`, `:pipelines` - how many are kept
    * `:cache_trouble` - why compiled shaders cannot be kept on disk, or `nil`
  """
  @spec stats(device) :: map
  def stats(choice \\ Device.default()) do
    stats = choice |> Device.validate!() |> Device.fetch!() |> NativeV.device_stats()
    Map.put(stats, :fallbacks, Map.new(NativeV.fallback_counts()))
  end

  @doc """
  Waits until a device has run everything recorded so far. Raises `Nx.Vulkan.Error` where there is none, or it is lost.
  """
  @spec sync(device) :: :ok
  def sync(choice \\ Device.default()) do
    case choice |> Device.validate!() |> Device.fetch!() |> NativeV.sync_device() do
      :ok -> :ok
      {:error, kind, message} -> Error.raise!(kind, message)
    end
  end

  @doc """
  Runs a function and tells how long the device took for each command: `{result, profile}`, once all that the function asked for
  is done. Raises `Nx.Vulkan.Error` where the device cannot be profiled or is lost, `ArgumentError` while another profile of
  it is on. What the function raises or throws goes on, and ends the profile.

      {_, profile} = Nx.Vulkan.profile(fn -> predict.(params, input) end)
      IO.puts(profile.text)

    * `:rows` - a map for each command, in order: the `:op` with its types and shapes; the `:kernel`; its shader, the
      `:step`, which is the one of that `:index` of so many `:steps`; the workgroups as `:groups`, `nil` where the device
      counts them itself; `:start_us`, in microseconds since the first row, and `:us`
    * `:device_us` - the times of all rows together
    * `:span_us` - from the start of the first one to the end of the last: the device waited for the rest of it
    * `:dropped` - how many rows there were after the first 65,536
    * `:text` - a table by op, kernel and step, those first that took longest in all

  A time is from the end of the command before to its own end. So commands that run side by side are told as if one came after
  the other, and behind each stands a stamp, which takes a GPU about a microsecond: what is profiled is somewhat slower. Copies and
  fills are rows with `"host"` as `:kernel` and no `:steps`. What other processes have the device do meanwhile is told too. What the
  host computes is not, which on a CPU's driver may be much. So profile what ran some times before: first runs compile and pack.
  """
  @spec profile((-> result), device) :: {result, map} when result: term
  def profile(fun, choice \\ Device.default()) when is_function(fun, 0) do
    device = choice |> Device.validate!() |> Device.fetch!()
    profile = ok!(NativeV.begin_profile(device))

    try do
      result = fun.()
      {result, ok!(NativeV.end_profile(profile, references(result)))}
    catch
      kind, reason ->
        NativeV.end_profile(profile, [])
        :erlang.raise(kind, reason, __STACKTRACE__)
    end
  end

  # The tensors of a term, wherever they are in it.
  defp references(%{__struct__: Nx.Vulkan.VulkanoBackend, ref: ref}), do: [ref]
  defp references(%{} = map), do: map |> Map.values() |> references()
  defp references(tuple) when is_tuple(tuple), do: tuple |> Tuple.to_list() |> references()
  defp references([head | tail]), do: references(head) ++ references(tail)
  defp references(_), do: []

  if Code.ensure_loaded?(Nx) do
    use Nx.Vulkan.Product

    @doc """
    `Nx.Defn.jit/2` with `Nx.Vulkan.Compiler`: a function that computes on a device, wherever its arguments are.

        Nx.Vulkan.jit(&Nx.sigmoid/1).(Nx.tensor([1.0, 2.0]))

    Options are those of `Nx.Defn.jit/2` and of `Nx.Vulkan.Compiler`.
    """
    def jit(fun, opts \\ []) do
      Nx.Defn.jit(fun, Keyword.put_new(opts, :compiler, Nx.Vulkan.Compiler))
    end

    @doc """
    Which kernel runs a call of a function of `Nx`, or of another module as `{module, function}`, and why the others do not:
    the last op or block of it, where it has several. Nothing is computed.

    The arguments are those of the function; templates stand for tensors; `:precision` is that of the default backend.
    Returns a map with the `:request`, the kernel `:picked`, the `:candidates` with their reasons and lines of the registry
    file, the `:rules` of that file that name the op, the `:generation` of the table of packs, and all of it as `:text`.
    Raises `ArgumentError` for a function that no request asks for: one that is a view or ends with one, such as
    `Nx.reshape/2`, or with a `cond` or a loop, or a block that only Nx's own function runs.

        Nx.Vulkan.explain(:sum, [Nx.template({1000, 3}, :f32), [axes: [0]]]).text
        Nx.Vulkan.explain({Nx.LinAlg, :cholesky}, [Nx.template({8, 8}, :f32)]).text

    A candidate is a map with the `:kernel`, its `:outcome`, the `:reason`, the `:line` of the registry file or `nil`, and
    `:measured_us`, its time in microseconds where such times decide, or `nil`.
    """
    def explain(function, arguments, choice \\ Device.default()) do
      device = choice |> Device.validate!() |> Device.fetch!()
      {op, inputs, outs, attrs} = Nx.Vulkan.Call.request(function, arguments)
      own = Nx.Vulkan.Precision.backend_opts()
      attrs = Nx.Vulkan.Precision.add(attrs, op, own)
      inputs = Enum.map(inputs, &{&1.type, &1.shape})
      {text, map} = ok!(NativeV.explain(device, to_string(op), inputs, outs, attrs))
      Map.put(map, :text, text)
    end
  end

  defp ok!({:ok, value}), do: value
  defp ok!({:error, kind, message}), do: Error.raise!(kind, message)
end
