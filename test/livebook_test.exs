if Code.ensure_loaded?(Nx) do
  defmodule Nx.Vulkan.LivebookTest do
    # The cells of the livebooks, one after the other, as Livebook evaluates them.
    use ExUnit.Case, async: true

    import ExUnit.CaptureIO

    defp cells(name) do
      text = File.read!(Path.join(__DIR__, "../livebooks/#{name}.livemd"))
      cells = for [_, cell] <- Regex.scan(~r/^```elixir\n(.*?)^```$/ms, text), do: cell
      {[setup], cells} = Enum.split(cells, 1)
      assert setup =~ "Mix.install" and not Enum.any?(cells, &(&1 =~ "Mix.install"))
      cells
    end

    # Of each cell its text and its value, and what is bound at the end.
    defp evaluate(cells) do
      Enum.map_reduce(cells, [], fn cell, binding ->
        {value, binding} = Code.eval_string(cell, binding)
        {{cell, value}, binding}
      end)
    end

    defp value(values, part) do
      [value] = for {cell, value} <- values, cell =~ part, do: value
      value
    end

    def tell(_event, _measured, meta, test),
      do: if(self() == test, do: send(test, {:fallback, meta}))

    test "intro_10min" do
      handler = {__MODULE__, self()}
      :telemetry.attach(handler, [:nx_vulkan, :fallback], &__MODULE__.tell/4, self())
      cells = cells("intro_10min")
      {{values, binding}, printed} = with_io(fn -> evaluate(cells) end)
      :telemetry.detach(handler)

      assert [{0, name, _kind} | _] = value(values, "Nx.Vulkan.devices()")
      assert is_binary(name)
      assert binding[:t].data.__struct__ == Nx.Vulkan.VulkanoBackend
      solved = values |> value("Nx.LinAlg.solve") |> Nx.to_flat_list()
      descended = binding[:line] |> Tuple.to_list() |> Enum.map(&Nx.to_number/1)

      for [slope, intercept] <- [solved, descended] do
        assert_in_delta slope, 3.0, 0.03
        assert_in_delta intercept, 0.5, 0.03
      end

      for name <- ~w(slope intercept sd), do: assert(printed =~ name)
      refute_received {:fallback, _}
    end
  end
end
