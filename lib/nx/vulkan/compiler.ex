if Code.ensure_loaded?(Nx) do
  defmodule Nx.Vulkan.Compiler do
    @moduledoc """
    A `Nx.Defn.Compiler` that computes on a Vulkan device.

        Nx.Defn.jit(fun, compiler: Nx.Vulkan.Compiler)
        config :nx, default_defn_options: [compiler: Nx.Vulkan.Compiler]

    It runs a function op by op as `Nx.Defn.Evaluator` does, with arguments that are on `Nx.BinaryBackend` copied to the
    device when they are first used, and new tensors made there. Results are tensors of `Nx.Vulkan.VulkanoBackend`, save
    arguments that are returned as they came.

    `Nx.Defn.compile/3` does more: ops that follow each other become one call of the library, and elementwise ones that follow
    from each other one dispatch, with the same bits; ops that no argument changes and
    whose results take at most a megabyte are run once, and the same op on the same operands runs once. A function with
    closures or vectorized tensors inside runs as the evaluator runs it.

    ## Options

      * `:device` and `:precision` - as those of `Nx.Vulkan.VulkanoBackend`, whose own do not count here
      * those of `Nx.Defn.Evaluator`: `:hooks`, `:garbage_collect`, `:max_concurrency`

    What Nx, its servings and Axon hand on to every compiler changes nothing: `:on_conflict`, `:batch_keys`, `:debug`,
    `:debug_options`, and of `Axon.build/2` `:mode`, `:print_values`, `:global_layer_options` and `:raise_on_none`. Any other
    option is an error.
    """

    @behaviour Nx.Defn.Compiler

    alias Nx.Defn.{Composite, Evaluator}
    alias Nx.Vulkan.{Routine, VulkanoBackend}

    @own [:device, :precision]
    @evaluator [:hooks, :garbage_collect, :max_concurrency]
    @axon [:mode, :print_values, :global_layer_options, :raise_on_none]
    @handed_on [:on_conflict, :batch_keys, :debug, :debug_options] ++ @axon

    @impl true
    def __jit__(key, vars, fun, args_list, opts),
      do: evaluator(key, vars, fun, opts, __to_backend__(opts)).(args_list)

    @impl true
    def __compile__(key, vars, fun, opts) do
      backend = __to_backend__(opts)
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

          fn [params] = args_list ->
            params = Enum.map(params, &on_device(&1, backend))

            case Nx.with_default_backend(backend, fn -> Routine.run(routine, params) end) do
              {:ok, tensors} -> [Routine.results(out, tensors)]
              :error -> evaluator(key, vars, fun, opts, backend).(args_list)
            end
          end

        :error ->
          evaluator(key, vars, fn _vars -> expr end, opts, backend)
      end
    end

    defp evaluator(key, vars, fun, opts, backend) do
      run = Evaluator.__compile__(key, vars, fun, Keyword.drop(opts, @own))

      fn args_list ->
        args_list = for args <- args_list, do: Enum.map(args, &on_device(&1, backend))
        Nx.with_default_backend(backend, fn -> run.(args_list) end)
      end
    end

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
      fn ->
        case arg.() do
          %Nx.Tensor{data: %Nx.BinaryBackend{}} = tensor -> Nx.backend_copy(tensor, backend)
          tensor -> tensor
        end
      end
    end
  end
end
