# One forward pass of a Llama of 1.2 G parameters through Bumblebee, whose weights are made on the spot.
# Usage, with Bumblebee and nx_vulkan on the code path, and the protocols that Mix consolidates before them: elixir -pa … bench/llama.exs [tokens]
# Times are medians of 40 runs, after a second of them: until the call returned, and until the device was done.

defmodule Bench.Llama do
  @moduledoc false

  alias Nx.Vulkan.{Device, NativeV, VulkanoBackend}

  @runs 40
  @dimensions [
    architecture: :for_causal_language_modeling,
    vocab_size: 128_256,
    hidden_size: 2048,
    num_blocks: 16,
    num_attention_heads: 32,
    num_key_value_heads: 8,
    intermediate_size: 8192,
    max_positions: 2048,
    layer_norm_epsilon: 1.0e-5
  ]

  def run(tokens) do
    {:ok, _} = Application.ensure_all_started(:nx_vulkan)
    Nx.default_backend(VulkanoBackend)
    device = Device.fetch!(Device.default())
    info = Nx.Vulkan.device_info()
    IO.puts("#{info.name}, #{info.driver}, OTP #{System.otp_release()}, #{Date.utc_today()}\n")

    # BERT in bf16 took 2.3 ms without them, 1.8 with.
    unless Protocol.consolidated?(Nx.LazyContainer),
      do: IO.puts("Protocols are not consolidated, as Mix would: calls take longer.\n")

    spec = Bumblebee.configure(Bumblebee.Text.Llama, @dimensions)

    for type <- [:f32, :bf16] do
      model = Bumblebee.build_model(spec, type: type)
      {_init, predict} = Axon.build(model, mode: :inference)
      inputs = inputs(tokens)
      params = model |> Axon.trace_init(inputs) |> Nx.Defn.Composite.traverse(&weights/1)

      for compiler <- [Nx.Defn.Evaluator, Nx.Vulkan.Compiler] do
        compiled = Nx.Defn.compile(predict, [params, inputs], compiler: compiler)
        for _ <- 1..2, do: time(compiled, params, inputs, device)
        # A card that waits lowers its clock.
        warm(compiled, params, inputs, device, System.monotonic_time(:millisecond) + 1000)

        {returned, done} =
          Enum.unzip(for _ <- 1..@runs, do: time(compiled, params, inputs, device))

        IO.puts(
          "#{type}, #{tokens} tokens, #{inspect(compiler)}: #{median(returned)} and #{median(done)} ms"
        )
      end
    end
  end

  defp inputs(tokens) do
    %{
      "input_ids" => Nx.remainder(Nx.iota({1, tokens}, axis: 1, type: :s64), 100),
      "attention_mask" => Nx.broadcast(Nx.tensor(1, type: :s64), {1, tokens})
    }
  end

  defp weights(template) do
    size = Nx.size(template)
    waves = Nx.iota({size}, type: :f32) |> Nx.multiply(0.7) |> Nx.sin() |> Nx.multiply(0.05)
    waves = if tuple_size(template.shape) == 1, do: Nx.add(waves, 1.0), else: waves
    waves |> Nx.as_type(template.type) |> Nx.reshape(template.shape)
  end

  defp warm(compiled, params, inputs, device, until) do
    time(compiled, params, inputs, device)

    if System.monotonic_time(:millisecond) < until,
      do: warm(compiled, params, inputs, device, until)
  end

  defp time(compiled, params, inputs, device) do
    start = System.monotonic_time(:microsecond)
    result = compiled.(params, inputs)
    returned = System.monotonic_time(:microsecond)
    NativeV.sync_device(device)
    done = System.monotonic_time(:microsecond)
    _ = result
    {returned - start, done - start}
  end

  defp median(times), do: Float.round(Enum.at(Enum.sort(times), div(@runs, 2)) / 1000, 2)
end

case System.argv() do
  [] -> Bench.Llama.run(1)
  [tokens] -> Bench.Llama.run(String.to_integer(tokens))
end
