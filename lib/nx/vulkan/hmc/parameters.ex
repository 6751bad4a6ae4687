if Code.ensure_loaded?(Nx) do
  defmodule Nx.Vulkan.HMC.Parameters do
    @moduledoc false
    # The parameters of a density by name, and the real numbers that stand for them: x = e^z for a positive number,
    # x = 1 / (1 + e^-z) for one between 0 and 1.

    alias Nx.Vulkan.HMC.{Error, Result}

    @enforce_keys [:d, :parts]
    defstruct @enforce_keys

    def new!(d) when is_integer(d) and d > 0, do: %__MODULE__{d: d, parts: nil}

    def new!([_ | _] = named) do
      {parts, d} =
        Enum.map_reduce(named, 0, fn entry, at ->
          {name, support, shape} = part!(entry)
          size = Tuple.product(shape)
          {%{name: name, support: support, shape: shape, at: at, size: size}, at + size}
        end)

      parts |> Enum.map(& &1.name) |> once!()

      if d == 0,
        do:
          raise(
            ArgumentError,
            "expected parameters with at least one element, got: #{inspect(named)}"
          )

      %__MODULE__{d: d, parts: parts}
    end

    def new!(other) do
      raise ArgumentError,
            "expected a positive number of coordinates or a list of names with shapes, got: #{inspect(other)}"
    end

    defp once!(names) do
      case names -- Enum.uniq(names) do
        [] ->
          :ok

        [name | _] ->
          raise ArgumentError, "expected each parameter once, got: #{inspect(name)} twice"
      end
    end

    defp part!({name, {support, shape}})
         when is_atom(name) and support in [:real, :positive, :unit] and is_tuple(shape),
         do: {name, support, shape!(name, shape)}

    defp part!({name, shape}) when is_atom(name) and is_tuple(shape),
      do: {name, :real, shape!(name, shape)}

    defp part!(other) do
      raise ArgumentError,
            "expected a name with a shape, {:positive, shape} or {:unit, shape}, got: #{inspect(other)}"
    end

    defp shape!(name, shape) do
      if Enum.all?(Tuple.to_list(shape), &(is_integer(&1) and &1 > 0)),
        do: shape,
        else:
          raise(
            ArgumentError,
            "expected the shape of #{name} to be of positive integers, got: #{inspect(shape)}"
          )
    end

    @doc """
    The density over the real line of one over the parameters, a function of as many arguments.
    """
    def density(%{parts: nil}, fun, _arity), do: fun
    def density(parameters, fun, 1), do: fn q -> over(parameters, q, fun) end
    def density(parameters, fun, 2), do: fn q, data -> over(parameters, q, &fun.(&1, data)) end

    defp over(parameters, q, fun) do
      {values, jacobians} =
        parameters.parts
        |> Enum.map(fn part ->
          z = q |> Nx.slice([part.at], [part.size]) |> Nx.reshape(part.shape)
          {x, jacobian} = transform(part.support, z)
          {{part.name, x}, jacobian}
        end)
        |> Enum.unzip()

      jacobians
      |> Enum.reject(&is_nil/1)
      |> Enum.reduce(fun.(Map.new(values)), &Nx.add(&2, Nx.sum(&1)))
    end

    defp transform(:real, z), do: {z, nil}
    defp transform(:positive, z), do: {Nx.exp(z), z}

    # log x (1 - x) = -|z| - 2 log(1 + e^-|z|)
    defp transform(:unit, z) do
      distance = Nx.abs(z)

      {Nx.sigmoid(z),
       Nx.negate(Nx.add(distance, Nx.multiply(2, Nx.log1p(Nx.exp(Nx.negate(distance))))))}
    end

    @doc """
    A name for each coordinate, or nothing where the parameters have none.
    """
    def names(%{parts: nil}), do: nil

    def names(%{parts: parts}) do
      for part <- parts, index <- indices(Tuple.to_list(part.shape)) do
        if index == [], do: "#{part.name}", else: "#{part.name}[#{Enum.join(index, ",")}]"
      end
    end

    defp indices([]), do: [[]]

    defp indices([extent | rest]),
      do: for(i <- 0..(extent - 1), tail <- indices(rest), do: [i | tail])

    defp real?(%{parts: nil}), do: true
    defp real?(%{parts: parts}), do: Enum.all?(parts, &(&1.support == :real))

    @doc "What a sampler answers, with draws of the parameters in place of those on the real line."
    def constrained({:ok, result}, parameters), do: {:ok, draws(result, parameters)}

    def constrained({:error, %Error{partial: %Result{} = partial} = error}, parameters),
      do: {:error, %{error | partial: draws(partial, parameters)}}

    def constrained(error, _parameters), do: error

    defp draws(result, parameters) do
      if real?(parameters),
        do: result,
        else: Result.put_draws(result, result.names, constrain(parameters, result.draws))
    end

    @doc """
    Draws of the parameters from those on the real line, f64 little-endian.
    """
    def constrain(%{parts: parts, d: d}, draws) do
      supports = for part <- parts, _ <- 1..part.size, do: part.support
      bytes = 8 * d

      for <<row::binary-size(bytes) <- draws>>,
          {support, at} <- Enum.with_index(supports),
          into: <<>> do
        case {support, binary_part(row, 8 * at, 8)} do
          {:real, x} -> x
          {support, <<z::float-64-little>>} -> <<value(support, z)::float-64-little>>
          {_, x} -> x
        end
      end
    end

    # Nothing beyond 1e100 counts as finite among draws.
    defp value(:positive, z), do: :math.exp(min(z, 230.0))
    defp value(:unit, z) when z < -709.0, do: 0.0
    defp value(:unit, z), do: 1 / (1 + :math.exp(-z))
  end
end
