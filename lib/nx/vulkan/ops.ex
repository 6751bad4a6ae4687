defmodule Nx.Vulkan.Ops do
  @moduledoc false
  # The call shapes of the backend's compute callbacks: which arguments are operands, and where they run.

  import Nx.Vulkan.Packed, only: [is_packed: 1]

  # Tables are there without Nx, tensors are not.
  @compile {:no_warn_undefined, Nx}

  # Functions of so many floats.
  @functions %{
    1 =>
      ~w(exp expm1 log log1p sigmoid cos sin tan cosh sinh tanh acosh asinh atanh acos asin atan sqrt rsqrt cbrt)a ++
        ~w(erf erfc erf_inv)a,
    2 => ~w(pow atan2)a
  }

  # Their results are 0 or 1 of u8.
  @truths %{
    1 => ~w(is_nan is_infinity)a,
    2 =>
      ~w(equal not_equal greater less greater_equal less_equal logical_and logical_or logical_xor)a
  }

  # What so many elements make one of, floats too.
  @floats %{
    1 => @functions[1] ++ @truths[1] ++ ~w(abs negate sign round ceil floor)a,
    2 => @functions[2] ++ @truths[2] ++ ~w(add subtract multiply divide remainder min max)a,
    3 => ~w(select clip)a
  }

  @unary @floats[1] ++
           ~w(bitwise_not count_leading_zeros population_count conjugate real imag as_type)a

  @binary @floats[2] ++
            ~w(quotient bitwise_and bitwise_or bitwise_xor left_shift right_shift)a

  @reductions ~w(sum product all any reduce_max reduce_min)a
  @windows ~w(window_sum window_product window_max window_min)a
  @scatters ~w(window_scatter_max window_scatter_min)a

  # Their arguments are their operands.
  @elementwise @unary ++ @binary ++ [:select, :clip]

  # Callbacks, their arguments after `out`, and where they run.
  @table [
    {@unary, [:tensor], :native},
    {@binary, [:left, :right], :native},
    {[:select], [:pred, :on_true, :on_false], :native},
    {[:clip], [:tensor, :min, :max], :native},
    {@reductions, [:tensor, :opts], :native},
    {[:argmax, :argmin, :sort, :argsort], [:tensor, :opts], :native},
    {[:dot], [:left, :contract_left, :batch_left, :right, :contract_right, :batch_right],
     :native},
    {[:pad], [:tensor, :pad_value, :padding], :native},
    {[:put_slice], [:tensor, :starts, :slice], :native},
    {[:concatenate, :stack], [:tensors, :axis], :native},
    {[:gather], [:tensor, :indices, :opts], :native},
    {[:fft, :ifft], [:tensor, :opts], :native},
    {[:indexed_add, :indexed_put], [:tensor, :indices, :updates, :opts], :native},
    {[:conv], [:tensor, :kernel, :opts], :native},
    {[:triangular_solve], [:a, :b, :opts], :native},
    {[:reduce], [:tensor, :acc, :opts, :fun], :closure},
    {[:window_reduce], [:tensor, :acc, :window, :opts, :fun], :closure},
    {@windows, [:tensor, :window, :opts], :native},
    {@scatters, [:tensor, :source, :init, :window, :opts], :native}
  ]

  # Arguments that are operands or lists with some, in the order of requests.
  @operands ~w(tensor tensors left right pred on_true on_false min max pad_value indices updates slice starts)a ++
              ~w(a b kernel source init acc)a

  @callbacks (for {names, arguments, where} <- @table, name <- names do
                {name, arguments, Enum.filter(@operands, &(&1 in arguments)), where}
              end)

  # What there is to know of a native callback.
  @natives Map.new(
             for {name, arguments, operands, :native} <- @callbacks,
                 do: {name, {arguments, operands}}
           )

  @doc """
  The functions of so many floats.
  """
  def functions(arity), do: @functions[arity]

  @doc """
  The ops whose results are 0 or 1 of u8, element by element.
  """
  def truths, do: @truths[1] ++ @truths[2]

  @doc """
  The ops that make one element of so many, floats too.
  """
  def floats(arity), do: @floats[arity]

  @doc """
  One `{callback, arguments, operands, where}` for each callback of the table.
  """
  def callbacks, do: @callbacks

  @doc """
  The operands and attributes of a callback's arguments; every argument is an operand of a callback not in the table.
  """
  def request(op, arguments) do
    case @natives do
      %{^op => {names, operands}} ->
        named = Enum.zip(names, arguments)
        operands = Enum.map(operands, &Keyword.fetch!(named, &1))
        {operands(op, operands, arguments), attrs(op, arguments)}

      _ ->
        {tensors(arguments), []}
    end
  end

  @doc """
  The operands of a native op's request. Nx makes updates of a vectorized tensor one axis: they get back the axes that no index
  is for.
  """
  def operands(op, [target, indices, updates], [_target, _indices, _updates, opts])
      when op in [:indexed_add, :indexed_put] do
    rows = indices.shape |> Tuple.to_list() |> Enum.drop(-1)
    sizes = target.shape |> Tuple.to_list() |> Enum.with_index()
    shape = List.to_tuple(rows ++ for({size, axis} <- sizes, axis not in opts[:axes], do: size))

    if updates.shape == shape,
      do: [target, indices, updates],
      else: [target, indices, Nx.reshape(updates, shape)]
  end

  # Matrices of integers that are narrower than a byte are no request.
  def operands(:triangular_solve, operands, _arguments) do
    for %{type: type} = matrix <- operands,
        do: if(is_packed(type), do: Nx.as_type(matrix, {:f, 32}), else: matrix)
  end

  def operands(op, operands, _arguments) when op in @elementwise, do: operands
  def operands(_op, operands, _arguments), do: tensors(operands)

  @doc """
  The tensors among arguments and in lists of them.
  """
  def tensors(arguments),
    do: arguments |> List.flatten() |> Enum.filter(&is_struct(&1, Nx.Tensor))

  @doc """
  The attributes of a native op, as `docs/ops.md` names them, from the arguments of its callback.
  """
  def attrs(op, [tensor, opts]) when op in @reductions do
    [axes: Enum.sort(opts[:axes] || Enum.to_list(0..(tuple_size(tensor.shape) - 1)//1))]
  end

  def attrs(op, [_tensor, opts]) when op in [:argmax, :argmin] do
    [axis: List.wrap(opts[:axis]), tie_break: opts[:tie_break]]
  end

  def attrs(op, [_tensor, opts]) when op in [:sort, :argsort] do
    [axis: [opts[:axis]], direction: opts[:direction]]
  end

  def attrs(:dot, [_left, contract_left, batch_left, _right, contract_right, batch_right]) do
    [
      batch_a: batch_left,
      batch_b: batch_right,
      contract_a: contract_left,
      contract_b: contract_right
    ]
  end

  def attrs(:gather, [_tensor, _indices, opts]), do: [axes: opts[:axes]]

  def attrs(op, [_tensor, opts]) when op in [:fft, :ifft] do
    [axis: [opts[:axis]], eps: opts[:eps], length: [opts[:length]]]
  end

  def attrs(op, [_tensor, _indices, _updates, opts]) when op in [:indexed_add, :indexed_put],
    do: [axes: opts[:axes]]

  def attrs(op, [_tensors, axis]) when op in [:concatenate, :stack], do: [axis: [axis]]

  def attrs(:pad, [tensor, _value, padding]) do
    sizes = Enum.zip(Tuple.to_list(tensor.shape), padding)

    if Enum.any?(sizes, fn {size, {low, high, inner}} ->
         low + high + size + max(size - 1, 0) * inner < 0
       end) do
      raise ArgumentError,
            "expected padding to take no more than a tensor of shape #{inspect(tensor.shape)} has, got: #{inspect(padding)}"
    end

    [
      high: Enum.map(padding, &elem(&1, 1)),
      interior: Enum.map(padding, &elem(&1, 2)),
      low: Enum.map(padding, &elem(&1, 0))
    ]
  end

  # A start that is a tensor is an operand: its axis is named, and its number is 0.
  def attrs(:put_slice, [tensor, starts, slice]) do
    sizes = Enum.zip(Tuple.to_list(tensor.shape), Tuple.to_list(slice.shape))

    numbers =
      Enum.zip_with(starts, sizes, fn
        at, {size, length} when is_integer(at) -> start(at, size - length)
        _start, _sizes -> 0
      end)

    [axes: dynamic(starts), starts: numbers]
  end

  def attrs(:triangular_solve, [_a, _b, opts]) do
    [
      left_side: if(opts[:left_side], do: 1, else: 0),
      lower: if(opts[:lower], do: 1, else: 0),
      transform_a: opts[:transform_a]
    ]
  end

  def attrs(op, [_tensor, window, opts]) when op in @windows do
    [
      padding: pairs(opts[:padding]),
      strides: opts[:strides],
      window: Tuple.to_list(window),
      window_dilations: opts[:window_dilations]
    ]
  end

  def attrs(op, [_tensor, _source, _init, window, opts]) when op in @scatters do
    [padding: pairs(opts[:padding]), strides: opts[:strides], window: Tuple.to_list(window)]
  end

  def attrs(:conv, [_tensor, _kernel, opts]) do
    for {name, value} <- opts do
      {name, if(name == :padding, do: pairs(value), else: List.wrap(value))}
    end
  end

  def attrs(_op, _arguments), do: []

  @doc """
  Where a slice starts along an axis: at the place that is asked for, or the nearest one at which it fits, of which `last` is the last.
  """
  def start(at, last), do: at |> max(0) |> min(last)

  @doc """
  The axes whose starts are tensors.
  """
  def dynamic(starts),
    do: for({start, axis} <- Enum.with_index(starts), is_struct(start, Nx.Tensor), do: axis)

  defp pairs(padding), do: Enum.flat_map(padding, &Tuple.to_list/1)
end
