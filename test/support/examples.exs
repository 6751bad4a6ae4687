defmodule Nx.Vulkan.Examples do
  @moduledoc false
  # The examples of a module's documentation one by one; ExUnit.DocTest leaves out functions as a whole only.

  import ExUnit.Assertions

  @number ~r/-?\d+(?:\.\d+)?(?:e[+-]?\d+)?/

  @doc """
  Makes a test of each example of `module`, as `doctest/1` does.

  `apart` are the examples that print something else here, each with a part of its source that no other has, and how far the
  printed numbers may be off, as a part of the larger of them and 1; `:anything` leaves it out.
  """
  defmacro examples(module, apart) do
    quote bind_quoted: [module: module, apart: apart] do
      for {name, test, tags} <- Nx.Vulkan.Examples.of(module, apart) do
        registered =
          ExUnit.Case.register_test(__MODULE__, __ENV__.file, __ENV__.line, :doctest, name, tags)

        def unquote(registered)(_), do: unquote(test)
      end
    end
  end

  def of(module, apart) do
    tests = ExUnit.DocTest.__doctests__(module, [])
    sources = for {_, test, _} <- tests, do: source(test)

    for {part, _} <- apart,
        count = Enum.count(sources, &(&1 =~ part)),
        count != 1,
        do: raise(ArgumentError, "#{count} examples of #{inspect(module)} have #{inspect(part)}")

    for {{name, test, tags}, source} <- Enum.zip(tests, sources),
        tolerance = allowed(source, apart),
        tolerance != :anything,
        do: {name, allow(test, tolerance), tags}
  end

  defp allowed(source, apart),
    do: Enum.find_value(apart, 0, fn {part, tolerance} -> source =~ part && tolerance end)

  # Of each check ExUnit has the value, what it should print, and the example's text.
  defp source(test) do
    {_, texts} =
      Macro.prewalk(test, [], fn
        {{:., _, [_, check]}, _, [_, _, text | _]} = node, texts
        when check in [:__inspect__, :__test__] ->
          {node, [text | texts]}

        {{:., _, [_, :__error__]}, _, [_, _, _, text | _]} = node, texts ->
          {node, [text | texts]}

        node, texts ->
          {node, texts}
      end)

    Enum.join(Enum.reverse(texts), "\n")
  end

  defp allow(test, 0), do: test

  defp allow(test, tolerance) do
    Macro.prewalk(test, fn
      {{:., _, [_, :__inspect__]}, _, [value, expected | _]} ->
        quote do: unquote(__MODULE__).near!(unquote(value), unquote(expected), unquote(tolerance))

      node ->
        node
    end)
  end

  def near!(value, expected, tolerance) do
    printed = inspect(value, safe: false)
    assert Regex.replace(@number, printed, "") == Regex.replace(@number, expected, ""), printed

    for {x, y} <- Enum.zip(numbers(printed), numbers(expected)) do
      assert abs(x - y) <= tolerance * max(1.0, abs(y)), "#{printed}\n#{expected}"
    end
  end

  defp numbers(text) do
    for [number] <- Regex.scan(@number, text) do
      {x, ""} = Float.parse(number)
      x
    end
  end
end
