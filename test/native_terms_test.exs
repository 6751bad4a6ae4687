defmodule Nx.Vulkan.NativeTermsTest do
  use ExUnit.Case, async: true

  alias Nx.Vulkan.{Device, NativeV, Request}

  @calls 200
  @largest 0xFFFF_FFFF_FFFF_FFFF

  # What each argument is, of every function of the library that has any.
  @signatures [
    open_device: [:choice, :settings],
    device_info: [:device],
    device_stats: [:device],
    sync_device: [:device],
    begin_profile: [:device],
    end_profile: [:profile, :operands],
    upload: [:device, :type, :shape, :bytes],
    constant: [:device, :type, :shape, :bytes],
    constant_of: [:tensor],
    known: [:tensor],
    download: [:tensor, :limit],
    deallocate: [:tensor],
    tensor_info: [:tensor],
    device_of: [:tensor],
    same_device: [:tensor, :device],
    run: [:text, :operands, :outs, :attrs],
    run_program: [:operands, :steps, :axes],
    compile_program: [:inputs, :steps, :axes, :boolean],
    run_compiled: [:operands, :program],
    explain: [:device, :text, :outs, :outs, :attrs],
    has_op: [:device, :text],
    reshape: [:tensor, :shape],
    transpose: [:tensor, :axes],
    squeeze: [:tensor, :axes],
    broadcast: [:tensor, :shape, :axes],
    slice: [:tensor, :axes, :axes, :axes],
    reverse: [:tensor, :axes],
    bitcast: [:tensor, :type],
    address_of: [:tensor],
    from_address: [:device, :type, :shape, :size],
    share: [:tensor, :size],
    from_shared: [:device, :type, :shape, :text],
    count_fallback: [:text],
    buffer_upload: [:device, :bytes],
    buffer_alloc: [:device, :size],
    buf_download: [:tensor],
    buf_byte_size: [:tensor],
    buf_upload_into: [:tensor, :bytes],
    follow: [:device, :pid],
    reload: [:device],
    pack_versions: [:device, :text],
    rollback: [:device, :text, :size],
    resume_pack: [:device, :text],
    module_of: [:device, :text, :boolean],
    spirv_file: [:device, :text, :boolean],
    synthesis_dir: [:device],
    dispatch_file: [:tensor, :operands, :axes, :push, :groups, :bytes],
    chain_file: [:device, :binaries, :size, :bytes, :chain],
    chain_module: [:module, :binaries, :size, :float, :memory],
    pipeline_cache_path: [:device],
    pipeline_cache_uuid: [:device],
    persist_pipelines: [:device],
    load_pipelines: [:device],
    clear_pipelines: [:device]
  ]

  # Written in Elixir, over those above.
  @wrappers ~w(load buf_upload buf_alloc apply_binary apply_unary reduce_axis
               transpose_2d matmul leapfrog_chain_synth leapfrog_chain_synth_f64 leapfrog_chain_synth_batch
               leapfrog_chain_synth_batch_f64)a

  setup_all do
    device = Device.fetch!(Device.default())
    {:ok, tensor} = Request.upload(device, {:u, 8}, {2}, "ab")

    {:ok, module} =
      NativeV.module_of(
        device,
        "#version 450\nlayout(local_size_x = 1) in;\nvoid main() {}\n",
        true
      )

    {:ok, program} =
      NativeV.compile_program([{{:u, 8}, {2}}], [{:reshape, 0, {2, 1}}], [1], false)

    {:ok, profile} = NativeV.begin_profile(device)
    {:ok, _} = NativeV.end_profile(profile, [])

    %{device: device, tensor: tensor, module: module, program: program, profile: profile}
  end

  test "every function is here" do
    natives =
      for {name, arity} <- NativeV.__info__(:functions),
          arity > 0,
          name not in @wrappers,
          do: {name, arity}

    assert Enum.sort(natives) ==
             Enum.sort(for {name, kinds} <- @signatures, do: {name, length(kinds)})
  end

  for {{name, kinds}, seed} <- Enum.with_index(@signatures) do
    test "wrong terms are errors of #{name}/#{length(kinds)}", context do
      kinds = unquote(kinds)
      :rand.seed(:exsss, {unquote(seed), 1, 2})
      pool = pool(context)

      for _ <- 1..@calls do
        wrong = Enum.random(0..(length(kinds) - 1))

        arguments =
          for {kind, place} <- Enum.with_index(kinds) do
            if place == wrong or :rand.uniform(3) == 1,
              do: wrong(kind, pool, context),
              else: right(kind, context)
          end

        try do
          apply(NativeV, unquote(name), arguments)
        rescue
          ArgumentError -> :ok
        else
          {:error, _} -> :ok
          {:error, _, _} -> :ok
          other -> flunk("#{inspect(arguments, limit: 20)} gave #{inspect(other, limit: 20)}")
        end
      end

      assert {:ok, "ab"} = NativeV.download(context.tensor, nil)
    end
  end

  defp out?({type, shape}, context),
    do: right?(:type, type, context) and right?(:shape, shape, context)

  defp out?(_, _), do: false

  defp right(:choice, _), do: :auto

  defp right(:settings, _),
    do: %{
      registry: nil,
      packs: [],
      cache_dir: nil,
      prober: nil,
      validation: false,
      timeout_ms: nil,
      memory_bytes: nil,
      memory_share: nil,
      kept_bytes: nil,
      kept_share: nil,
      shader_timeout: nil,
      measure: false,
      replays: nil,
      lazy: nil
    }

  defp right(:type, _), do: {:u, 8}
  defp right(:shape, _), do: {2}
  defp right(:bytes, _), do: "ab"
  defp right(:limit, _), do: nil
  defp right(:text, _), do: "negate"
  defp right(:operands, context), do: [context.tensor]
  defp right(:inputs, context), do: right(:outs, context)
  defp right(:outs, _), do: [{{:u, 8}, {2}}]
  defp right(:attrs, _), do: [axes: [0]]
  defp right(:steps, _), do: [{:reshape, 0, {1, 2}}, {"negate", [0], [{{:u, 8}, {2}}], []}]
  defp right(:axes, _), do: [0]
  defp right(:size, _), do: 1
  defp right(:pid, _), do: self()
  defp right(:push, _), do: {[2], nil}
  defp right(:groups, _), do: {1, 1, 1}
  defp right(:binaries, _), do: {"", "", "", ""}
  defp right(:chain, _), do: {:f32, false}
  defp right(:float, _), do: :f32
  defp right(:memory, _), do: {nil, 0, 1}
  defp right(:boolean, _), do: true
  defp right(resource, context), do: Map.fetch!(context, resource)

  defp wrong(kind, pool, context) do
    term = Enum.random(pool)
    # The same in a list, a tuple or a place of what would be right.
    term =
      case :rand.uniform(5) do
        1 -> [term]
        2 -> {term, Enum.random(pool)}
        3 -> inside(right(kind, context), term)
        _ -> term
      end

    if right?(kind, term, context), do: wrong(kind, pool, context), else: term
  end

  defp inside([_ | rest], term),
    do: Enum.random([[term | rest], [term | term], [term, term | rest]])

  defp inside(tuple, term) when is_tuple(tuple),
    do: put_elem(tuple, Enum.random(0..(tuple_size(tuple) - 1)), term)

  defp inside(%{} = map, term), do: Map.put(map, map |> Map.keys() |> Enum.random(), term)
  defp inside(_, term), do: term

  # Whether a term may be taken.
  defp right?(:choice, term, _), do: term == :auto or is_binary(term) or term in 0..@largest

  defp right?(:settings, %{packs: packs, validation: validation, measure: measure} = map, _),
    do:
      Enum.all?([map.registry, map.cache_dir, map.prober], &(is_nil(&1) or is_binary(&1))) and
        Enum.all?(
          [
            map.timeout_ms,
            map.memory_bytes,
            map.memory_share,
            map.kept_bytes,
            map.kept_share,
            map.shader_timeout
          ],
          &(is_nil(&1) or is_number(&1))
        ) and is_list(packs) and is_boolean(validation) and is_boolean(measure) and
        (is_nil(map.replays) or is_boolean(map.replays))

  defp right?(:type, {kind, size}, _), do: is_atom(kind) and is_integer(size)

  defp right?(:shape, term, _),
    do: is_tuple(term) and Enum.all?(Tuple.to_list(term), &(&1 in 0..@largest))

  defp right?(:bytes, term, _), do: is_binary(term)
  defp right?(:limit, term, _), do: is_nil(term) or term in 0..@largest
  defp right?(:text, term, _), do: is_binary(term) and String.valid?(term)

  defp right?(:operands, term, context),
    do: term == context.device or proper?(term, &(&1 == context.tensor))

  defp right?(:inputs, term, context),
    do: proper?(term, &(&1 == context.tensor or out?(&1, context)))

  defp right?(:outs, term, context), do: proper?(term, &out?(&1, context))

  defp right?(:attrs, term, _),
    do: proper?(term, fn attr -> match?({name, _} when is_atom(name), attr) end)

  defp right?(:steps, term, context) do
    proper?(term, fn
      {:reshape, value, shape} ->
        value in 0..@largest and right?(:shape, shape, context)

      {op, values, outs, attrs} ->
        right?(:text, op, context) and right?(:axes, values, context) and
          right?(:outs, outs, context) and right?(:attrs, attrs, context)

      _ ->
        false
    end)
  end

  defp right?(:axes, term, _), do: proper?(term, &(&1 in 0..@largest))
  defp right?(:size, term, _), do: term in 0..@largest
  defp right?(:pid, term, _), do: is_pid(term)
  defp right?(:push, term, _), do: match?({list, _} when is_list(list), term)

  defp right?(:groups, term, _),
    do: match?({x, y, z} when is_integer(x) and is_integer(y) and is_integer(z), term)

  defp right?(:binaries, term, _),
    do:
      match?(
        {a, b, c, d} when is_binary(a) and is_binary(b) and is_binary(c) and is_binary(d),
        term
      )

  defp right?(:chain, term, _),
    do: match?({name, batch} when is_atom(name) and is_boolean(batch), term)

  defp right?(:float, term, _), do: term in [:f32, :f64]
  defp right?(:boolean, term, _), do: is_boolean(term)

  defp right?(:memory, term, context),
    do:
      match?({_, m, n} when is_integer(m) and is_integer(n), term) and
        elem(term, 0) in [nil, context.tensor]

  defp right?(resource, term, context)
       when resource in [:device, :tensor, :module, :program, :profile],
       do: term == Map.fetch!(context, resource)

  defp right?(_kind, _term, _context), do: false

  defp proper?(term, fits?),
    do: is_list(term) and List.improper?(term) == false and Enum.all?(term, fits?)

  defp pool(context) do
    deep = Enum.reduce(1..5_000, [], fn _, inner -> [inner] end)
    deep_tuple = Enum.reduce(1..5_000, {}, fn _, inner -> {inner, 1} end)

    [
      [-1, 0, 1, @largest, @largest + 1, -0x8000_0000_0000_0000, -0x8000_0000_0000_0001],
      [Bitwise.bsl(1, 5_000), -Bitwise.bsl(1, 5_000), 0.0, 1.0e308, -1.5],
      [nil, true, false, :f, :u, :ok, :error, :"", :é, :infinity],
      ["", "add", <<0>>, <<255, 254>>, <<5::3>>, String.duplicate("a", 100_000), "\0/etc/passwd"],
      [
        [],
        [0],
        [0, 0],
        [-1],
        [@largest],
        [1.0],
        [0 | 1],
        [:a | :b],
        ["x"],
        Enum.to_list(1..10_000),
        ~c"text"
      ],
      [
        {},
        {1},
        {-1},
        {@largest, @largest},
        {:f, 32},
        {:f, 33},
        {1, 2, 3},
        {"", "", ""},
        Tuple.duplicate(1, 10_000)
      ],
      [%{}, %{a: 1}, %{"packs" => []}, Map.new(1..1_000, &{&1, &1}), 1..3, %ArgumentError{}],
      [self(), make_ref(), fn -> :ok end, &is_nil/1, hd(Port.list()), deep, deep_tuple],
      [
        context.device,
        context.tensor,
        context.module,
        context.program,
        context.profile,
        [context.tensor, context.device],
        {context.device}
      ]
    ]
    |> Enum.concat()
  end
end
