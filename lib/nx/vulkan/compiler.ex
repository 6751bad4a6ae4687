if Code.ensure_loaded?(Nx) do
  defmodule Nx.Vulkan.Compiler do
    @moduledoc """
    A `Nx.Defn.Compiler` that computes on a Vulkan device.

        Nx.Defn.jit(fun, compiler: Nx.Vulkan.Compiler)
        config :nx, default_defn_options: [compiler: Nx.Vulkan.Compiler]

    Arguments that are on `Nx.BinaryBackend` are copied to the device when they are first used, and new tensors are made there.
    Results are tensors of `Nx.Vulkan.VulkanoBackend`, save arguments that are returned as they came.

    A compiled function is calls of the library of ops that follow each other. Elementwise ones that follow from each other are
    one dispatch, with the same bits, save f16 and bf16 on a GPU, which are rounded where they leave it; on a CPU either may run
    on the faster of two sides, whose functions can differ in the last bit. On a GPU products and convolutions of floats take
    along the elementwise ops that follow them: the bits of f32 and f64 are those of such an epilogue, and f16 and bf16 are
    rounded once, at its end, and not after each op. Reductions of the last axis that keep it, with up to 8192 elements, are one
    dispatch with the elementwise ops before and after them: a softmax, a normalization; on a CPU also those that drop it, of
    what is computed just before. Their rows may be summed in another order than by `Nx.sum/2` alone. Two products of f16 or
    bf16 with a softmax between them, as attention is, are one request on a GPU, whose scores are not rounded to 16 bits.
    Arguments that computed tensors are multiplied with, such as weights, may be kept in a second form, see `:kept_memory` of
    `Nx.Vulkan`. From its third call on the same parameters on a function is recorded and replayed there, see `Nx.Vulkan`. Ops
    that no argument changes and whose results take at most a megabyte are run once, and the same op on the same operands runs
    once. A function with closures or vectorized tensors inside runs op by op, as `Nx.Defn.Evaluator` runs it.

    `Nx.Defn.compile/3` compiles at once, and `Nx.Defn.jit/2` a function that it gets a second time with arguments of the same types
    and shapes; the first time it runs op by op. Two functions are the same where they are one of a module, or closures over
    the same values; one over very many is the same where a process gives that one again. Up to 512 functions are kept, with up to
    256 MiB of tensors that no argument changes, until a module is loaded; `forget/0` gives them back. A function with
    `:hooks` is not kept.
    As with every compiler, what a function reads from elsewhere, such as the dictionary of a process, is what it was then.

    ## Options

      * `:device` and `:precision` - as those of `Nx.Vulkan.VulkanoBackend`, whose own do not count here
      * those of `Nx.Defn.Evaluator`: `:hooks`, `:garbage_collect`, `:max_concurrency`

    What Nx, its servings and Axon hand on to every compiler changes nothing: `:on_conflict`, `:batch_keys`, `:debug`,
    `:debug_options`, and of `Axon.build/2` `:mode`, `:print_values`, `:global_layer_options` and `:raise_on_none`. Any other
    option is an error.
    """

    @behaviour Nx.Defn.Compiler

    alias Nx.Defn.{Composite, Evaluator}
    alias Nx.Vulkan.{JitCache, Routine, VulkanoBackend}

    @own [:device, :precision]
    @evaluator [:hooks, :garbage_collect, :max_concurrency]
    @axon [:mode, :print_values, :global_layer_options, :raise_on_none]
    @handed_on [:on_conflict, :batch_keys, :debug, :debug_options] ++ @axon

    @impl true
    def __jit__(key, vars, fun, args_list, opts) do
      backend = __to_backend__(opts)

      # Hooks are whose call it is: what they close over is not kept.
      known =
        with false <- Enum.any?(opts[:hooks] || []),
             {:ok, arguments} <- arguments(vars) do
          JitCache.fetch(key, arguments, backend)
        else
          _ -> :new
        end

      run =
        case known do
          {:ok, run} when is_function(run) -> run
          {:put, place} -> key |> compiled(vars, fun, opts, backend) |> keep(place)
          _ -> evaluator(key, vars, fun, opts, backend)
        end

      run.(args_list)
    end

    # All of the arguments that a trace can depend on. One that a lazy container has computed with is what it was computed of.
    defp arguments(vars) do
      {:ok, Enum.map(vars, &Composite.traverse(&1, fn leaf -> argument(leaf) end))}
    catch
      :computed -> :error
    end

    defp argument(%Nx.Tensor{data: %Nx.Defn.Expr{op: :parameter, args: [at]}} = t),
      do: %{t | data: at}

    defp argument(%Nx.Tensor{}), do: throw(:computed)
    defp argument(number), do: number

    defp keep({:routine, run, bytes}, place) do
      JitCache.put(place, run, bytes)
      run
    end

    defp keep({:evaluator, run}, place) do
      JitCache.put(place, :evaluator, 0)
      run
    end

    @impl true
    def __compile__(key, vars, fun, opts),
      do: key |> compiled(vars, fun, opts, __to_backend__(opts)) |> elem(1)

    # What runs it; for a routine with the bytes of the tensors in it.
    defp compiled(key, vars, fun, opts, backend) do
      expr = fun.(vars)

      # What depends on no argument is computed here, as all else is later.
      routine =
        Nx.with_default_backend(backend, fn ->
          Routine.new(Composite.traverse(expr, &Nx.devectorize/1), backend, hooks: opts[:hooks])
        end)

      # What is returned keeps no expression: a copy for another process would take each shared part apart.
      case routine do
        {:ok, routine} ->
          out = Composite.traverse(expr, &Nx.to_template/1)

          run = fn [params] = args_list ->
            params = Enum.map(params, &on_device(&1, backend))

            case Nx.with_default_backend(backend, fn -> Routine.run(routine, params) end) do
              {:ok, tensors} -> [Routine.results(out, tensors)]
              :error -> evaluator(key, vars, fun, opts, backend).(args_list)
            end
          end

          {:routine, run, Routine.bytes(routine)}

        :error ->
          {:evaluator, evaluator(key, vars, fn _vars -> expr end, opts, backend)}
      end
    end

    defp evaluator(key, vars, fun, opts, backend) do
      run = Evaluator.__compile__(key, vars, fun, Keyword.drop(opts, @own))

      fn args_list ->
        args_list = for args <- args_list, do: Enum.map(args, &on_device(&1, backend))
        results = Nx.with_default_backend(backend, fn -> run.(args_list) end)
        for result <- results, do: Composite.traverse(result, &there(&1, backend))
      end
    end

    @doc """
    Gives back what `Nx.Defn.jit/2` has compiled so far, with the tensors in it.
    """
    @spec forget() :: :ok
    defdelegate forget, to: JitCache

    @impl true
    def __shard_jit__(_key, _mesh, _vars, _fun, _args_list, _opts) do
      raise ArgumentError, "Nx.Vulkan.Compiler does not shard: a computation runs on one device"
    end

    @impl true
    def __partitions_options__(opts), do: Evaluator.__partitions_options__(opts)

    @impl true
    def __to_backend__(opts) do
      known = @own ++ @evaluator ++ @handed_on

      if unknown = Enum.find(Keyword.keys(opts), &(&1 not in known)) do
        raise ArgumentError,
              "expected options of Nx.Vulkan.Compiler among #{inspect(known)}, got: #{inspect(unknown)}"
      end

      {VulkanoBackend, opts |> Keyword.take(@own) |> VulkanoBackend.init()}
    end

    defp on_device(arg, backend) do
      fn -> there(arg.(), backend) end
    end

    defp there(%Nx.Tensor{data: %Nx.BinaryBackend{}} = tensor, backend),
      do: Nx.backend_copy(tensor, backend)

    defp there(tensor, _backend), do: tensor
  end
end
