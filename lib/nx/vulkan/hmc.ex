if Code.ensure_loaded?(Nx) do
  defmodule Nx.Vulkan.HMC do
    @moduledoc """
    Draws from a log density that is written as a function of Nx, by Hamiltonian Monte Carlo on the device.

        schools = %{y: Nx.tensor([28.0, 8, -3, 7, -1, 1, 18, 12]), sigma: Nx.tensor([15.0, 10, 16, 11, 9, 11, 10, 18])}

        log_density = fn %{mu: mu, tau: tau, eta: eta}, %{y: y, sigma: sigma} ->
          theta = Nx.add(mu, Nx.multiply(tau, eta))
          normal = fn x, mean, sd -> Nx.sum(Nx.subtract(Nx.multiply(-0.5, Nx.pow(Nx.divide(Nx.subtract(x, mean), sd), 2)), Nx.log(sd))) end

          normal.(y, theta, sigma)
          |> Nx.add(normal.(eta, 0, 1))
          |> Nx.add(normal.(mu, 0, 5))
          |> Nx.subtract(Nx.log1p(Nx.pow(Nx.divide(tau, 5), 2)))
        end

        {:ok, result} =
          Nx.Vulkan.HMC.sample(log_density, [mu: {}, tau: {:positive, {}}, eta: {8}], data: schools)

    The density is compiled to one shader (`Nx.Vulkan.Density`) that runs whole trajectories of all chains, and the
    No-U-Turn sampler (`Nx.Vulkan.HMC.Sampler`) chooses from them. `Nx.Vulkan.HMC.Result` describes what comes back;
    `Nx.Vulkan.HMC.Picture.write/3` draws it.
    """

    alias Nx.Vulkan.{Density, Device, NativeV}
    alias Nx.Vulkan.HMC.{Options, Parameters, PerOp, Sampler, Single}

    @own [:data, :type, :device, :chains, :init, :method]

    @doc """
    Samples `log_density`.

    `parameters` is a number of coordinates, and `log_density` then gets a vector of so many reals; or a list of names
    with shapes, and it gets a map of tensors. A shape alone stands for reals, `{:positive, shape}` for positive numbers,
    `{:unit, shape}` for numbers between 0 and 1; the density is one over these values, and the change of variables to
    the whole real line is made here. With the option `:data`, that is the second argument.

    ## Options

      * `:data` - what is observed: a tensor, or a container of tensors
      * `:chains` - how many; 4
      * `:init` - `:random` (the default), or a list with the start of each chain, a list of numbers on the real line in
        the order of the parameters
      * `:type` - `:f64`, or `:f32`, which is the default where the device has no f64
      * `:device` - as that of `Nx.Vulkan.VulkanoBackend`
      * `:method` - `:chain` (the default), or `:per_op`, which evaluates the density op by op with `Nx.Defn` on the
        default backend: slow, but it takes every function of Nx

    and those of `Nx.Vulkan.HMC.Sampler.run/3`.

    Returns `{:ok, result}`, or `{:error, exception}`: a `Nx.Vulkan.HMC.Error` of the sampler, an `ArgumentError` for a
    density that no shader computes, an `Nx.Vulkan.Error` of the device. Misuse raises an `ArgumentError`.
    """
    def sample(log_density, parameters, opts \\ []) do
      Keyword.validate!(opts, @own ++ Options.keys())
      {own, opts} = Keyword.split(opts, @own)
      parameters = Parameters.new!(parameters)
      start = start!(own, parameters)
      own = Keyword.merge([method: :chain, device: Device.default()], own)
      type!(own[:type])
      fun = Parameters.density(parameters, log_density, arity!(log_density, own[:data]))

      with {:ok, chain, most} <- chain(own[:method], fun, parameters.d, own) do
        opts = opts |> named(parameters) |> Keyword.put_new(:max_steps, most.(sides(start)))
        chain |> Sampler.run(start, opts) |> Parameters.constrained(parameters)
      end
    end

    @doc """
    `sample/3`, raising.
    """
    def sample!(log_density, parameters, opts \\ []) do
      case sample(log_density, parameters, opts) do
        {:ok, result} -> result
        {:error, exception} -> raise exception
      end
    end

    defp chain(:chain, fun, d, own) do
      with {:ok, type} <- type(own[:type], own[:device]),
           {:ok, density} <-
             Density.new(fun, d, [type: type] ++ Keyword.take(own, [:data, :device])) do
        chain = &Density.chain(density, &1, &2, &3, &4, &5)
        chain = if type in [:f32, {:f, 32}], do: Single.chain(chain), else: chain
        {:ok, chain, &Density.most_steps(density, &1)}
      end
    end

    defp chain(:per_op, fun, d, own),
      do: {:ok, PerOp.chain(fun, d, own[:type] || :f64, own[:data]), fn _sides -> nil end}

    defp chain(other, _, _, _),
      do: raise(ArgumentError, "expected :method to be :chain or :per_op, got: #{inspect(other)}")

    defp type(nil, choice) do
      case choice |> Device.validate!() |> Device.fetch() do
        {:ok, device} ->
          %{features: features} = NativeV.device_info(device)
          {:ok, if("fp64" in features, do: :f64, else: :f32)}

        {:error, kind, message} ->
          {:error, Nx.Vulkan.Error.exception(kind: kind, message: message)}
      end
    end

    defp type(type, _), do: {:ok, type}

    defp type!(type) when type in [nil, :f32, :f64, {:f, 32}, {:f, 64}], do: :ok

    defp type!(type),
      do: raise(ArgumentError, "expected :type to be :f32 or :f64, got: #{inspect(type)}")

    defp arity!(fun, data) do
      arity = if data == nil, do: 1, else: 2

      unless is_function(fun, arity) do
        raise ArgumentError,
              "expected a log density of #{arity} argument(s), got: #{inspect(fun)}"
      end

      arity
    end

    defp start!(own, %{d: d}) do
      case {Keyword.get(own, :init, :random), Keyword.get(own, :chains, 4)} do
        {_, chains} when not is_integer(chains) or chains < 1 ->
          raise ArgumentError,
                "expected :chains to be a positive integer, got: #{inspect(chains)}"

        {:random, chains} ->
          {:random, chains, d}

        {[_ | _] = positions, chains} ->
          if own[:chains] && chains != length(positions) do
            raise ArgumentError,
                  "expected :init to have a position for each of #{chains} chains, got: #{length(positions)}"
          end

          Enum.each(positions, &position!(&1, d))
          positions

        {init, _} ->
          raise ArgumentError,
                "expected :init to be :random or a list of positions, got: #{inspect(init)}"
      end
    end

    defp position!(position, d) do
      unless is_list(position) and length(position) == d do
        raise ArgumentError,
              "expected :init to be lists of #{d} numbers, got: #{inspect(position, charlists: :as_lists)}"
      end
    end

    # A tree of each chain may grow at both ends in one call.
    defp sides({:random, chains, _}), do: 2 * chains
    defp sides(positions), do: 2 * length(positions)

    defp named(opts, parameters), do: Keyword.put_new(opts, :names, Parameters.names(parameters))
  end
end
