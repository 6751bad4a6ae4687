# Forward passes of Bumblebee's models at their usual sizes, and of some the value and gradient of a loss, through Nx.Vulkan.Compiler.
# Weights are made on the spot. models_torch.py times the same models of transformers.
# Usage, with Bumblebee and nx_vulkan on the code path, and the protocols that Mix consolidates before them: elixir -pa … bench/models.exs [--profile] [names]
# A name is a model's, or that of its forward pass in one type, as bert:bf16. With --profile each is followed by what took the device longest.
# Times are medians, each until the device was done, after a second of runs: a card that waits lowers its clock.

defmodule Bench.Models do
  @moduledoc false

  alias Bumblebee.{Audio, Text, Vision}
  alias Nx.Vulkan.{Device, NativeV, VulkanoBackend}

  @runs 15
  @warm_ms 1000
  @profiled_lines 16

  def run(arguments) do
    {options, names} = OptionParser.parse!(arguments, strict: [profile: :boolean])
    {:ok, _} = Application.ensure_all_started(:nx_vulkan)
    Nx.default_backend(VulkanoBackend)
    info = Nx.Vulkan.device_info()
    IO.puts("#{info.name}, #{info.driver}, OTP #{System.otp_release()}, #{Date.utc_today()}\n")

    # BERT in bf16 took 2.3 ms without them, 1.8 with.
    unless Protocol.consolidated?(Nx.LazyContainer),
      do: IO.puts("Protocols are not consolidated, as Mix would: calls take longer.\n")

    for {name, types, trains?, spec, inputs} <- models(),
        type <- types,
        names == [] or name in names or "#{name}:#{type}" in names do
      model = Bumblebee.build_model(spec, type: type)
      {_init, predict} = Axon.build(model, mode: :inference)
      params = model |> Axon.trace_init(inputs) |> Nx.Defn.Composite.traverse(&weights/1)
      line("#{name} #{inspect(type)} forward", predict, params, inputs, options)

      if trains? and type == :f32 and (names == [] or name in names),
        do:
          line(
            "#{name} #{inspect(type)} value and gradient",
            step(predict),
            params,
            inputs,
            options
          )
    end
  end

  # Name, types, whether its gradient is timed too, specification, inputs.
  defp models do
    gpt2 = [num_blocks: 12, num_attention_heads: 12]

    whisper = [
      hidden_size: 384,
      encoder_num_blocks: 4,
      decoder_num_blocks: 4,
      encoder_num_attention_heads: 6,
      decoder_num_attention_heads: 6,
      encoder_intermediate_size: 1536,
      decoder_intermediate_size: 1536
    ]

    summary = Map.put(text(4, 128), "decoder_input_ids", ids({4, 32}))
    speech = %{"input_features" => waves({1, 3000, 80}), "decoder_input_ids" => ids({1, 4})}
    causal = :for_causal_language_modeling
    sequence = :for_conditional_generation

    [
      {"bert", [:f32, :bf16], true, spec(Text.Bert, :base), text(8, 128)},
      {"vit", [:f32, :bf16], true, spec(Vision.Vit, :base), images(16)},
      {"resnet", [:f32, :f16], true, spec(Vision.ResNet, :base), images(16)},
      {"convnext", [:f32], true, spec(Vision.ConvNext, :base), images(16)},
      {"gpt2", [:f32, :bf16], true, spec(Text.Gpt2, causal, gpt2), text(1, 512)},
      {"t5", [:f32], false, spec(Text.T5, sequence), summary},
      {"swin", [:f32], false, spec(Vision.Swin, :base), images(8)},
      {"whisper", [:f32], false, spec(Audio.Whisper, sequence, whisper), speech}
    ]
  end

  defp spec(module, architecture, options \\ []),
    do: Bumblebee.configure(struct(module, architecture: architecture), options)

  defp text(batch, length) do
    mask = Nx.broadcast(Nx.tensor(1, type: :s64), {batch, length})
    %{"input_ids" => ids({batch, length}), "attention_mask" => mask}
  end

  defp images(batch), do: %{"pixel_values" => waves({batch, 224, 224, 3})}
  defp ids(shape), do: Nx.iota(shape, type: :s64) |> Nx.multiply(37) |> Nx.remainder(50)
  defp waves(shape), do: Nx.iota(shape, type: :f32) |> Nx.multiply(0.37) |> Nx.sin()

  defp weights(template) do
    case template.type do
      {kind, _} when kind in [:f, :bf] ->
        waves = {Nx.size(template)} |> waves() |> Nx.multiply(0.03)
        waves = if tuple_size(template.shape) == 1, do: Nx.add(waves, 1.0), else: waves
        waves |> Nx.as_type(template.type) |> Nx.reshape(template.shape)

      type ->
        Nx.broadcast(Nx.tensor(0, type: type), template.shape)
    end
  end

  # The mean squares of all that the model gives, and their gradient by every weight.
  defp step(predict) do
    fn state, inputs ->
      Nx.Defn.value_and_grad(state.data, fn data ->
        [predict.(%{state | data: data}, inputs)]
        |> Nx.Defn.Composite.flatten_list()
        |> Enum.reject(&match?(%Axon.None{}, &1))
        |> Enum.map(&Nx.mean(Nx.multiply(&1, &1)))
        |> Enum.reduce(&Nx.add/2)
      end)
    end
  end

  defp line(name, function, params, inputs, options) do
    device = Device.fetch!(Device.default())
    compiled = Nx.Defn.compile(function, [params, inputs], compiler: Nx.Vulkan.Compiler)

    run = fn ->
      result = compiled.(params, inputs)
      NativeV.sync_device(device)
      result
    end

    for _ <- 1..2, do: run.()
    warm(run, System.monotonic_time(:millisecond) + @warm_ms)
    times = for _ <- 1..@runs, do: run |> :timer.tc() |> elem(0)
    median = times |> Enum.sort() |> Enum.at(div(@runs, 2))
    IO.puts("#{String.pad_trailing(name, 34)} #{Float.round(median / 1000, 2)} ms")
    if options[:profile], do: run |> Nx.Vulkan.profile() |> elem(1) |> show()
  end

  defp show(profile) do
    lines = profile.text |> String.split("\n") |> Enum.take(@profiled_lines)
    IO.puts(Enum.map_join(lines, "\n", &("  " <> &1)) <> "\n")
  end

  defp warm(run, until) do
    run.()
    if System.monotonic_time(:millisecond) < until, do: warm(run, until)
  end
end

Bench.Models.run(System.argv())
