Code.require_file("support/spirv.exs", __DIR__)
Code.require_file("support/vm.exs", __DIR__)

defmodule Nx.Vulkan.PipelineCacheTest do
  use ExUnit.Case, async: true

  alias Nx.Vulkan.{PipelineCache, Spirv, VM}

  # Opens the device, makes a pipeline, and has a function `file` that writes a cache file with a right checksum.
  @start """
  alias Nx.Vulkan.{NativeV, PipelineCache, Synthesis}
  path = PipelineCache.default_path()
  file = fn data -> File.write!(path, [:crypto.hash(:sha256, data), data]) end
  pipeline = fn ->
    {:ok, spv} = Synthesis.compile("#version 450\\nlayout(local_size_x = 256) in;\\nlayout(set = 0, binding = 0) buffer A { float a[]; };\\nlayout(set = 0, binding = 1) buffer B { float b[]; };\\nvoid main() { b[0] = a[0] + 1; }")
    {:ok, a} = NativeV.buf_upload(<<1.0::float-32-little>>)
    {:ok, b} = NativeV.buf_alloc(4)
    :ok = NativeV.apply_unary(b, a, 1, 0, spv)
    {:ok, <<2.0::float-32-little>>} = NativeV.buf_download(b)
  end
  """

  setup do
    %{cache: Spirv.folder!()}
  end

  test "the UUID is the driver's" do
    assert PipelineCache.device_uuid_hex() =~ ~r/^[0-9a-f]{32}$/
    assert Path.extname(PipelineCache.default_path()) == ".bin"
  end

  test "what one VM writes the next one reads", %{cache: cache} do
    script =
      @start <>
        """
        pipeline.()
        :ok = PipelineCache.persist()
        IO.puts("path=" <> path)
        """

    [_, path] = Regex.run(~r/path=(.*)/, VM.run!(script, cache))
    assert Path.dirname(path) == cache
    assert <<sum::binary-32, data::binary>> = first = File.read!(path)
    assert sum == :crypto.hash(:sha256, data)
    # VkPipelineCacheHeaderVersionOne.
    assert <<32::32-little, 1::32-little, _vendor::32, _device::32, uuid::binary-16, _::binary>> =
             data

    assert Base.encode16(uuid, case: :lower) == PipelineCache.device_uuid_hex()
    # A CPU may have nothing to keep.
    if Nx.Vulkan.device_info().kind != "cpu", do: assert(byte_size(data) > 32)

    VM.run!(
      @start <> ":ok = PipelineCache.load()\npipeline.()\n:ok = PipelineCache.persist()",
      cache
    )

    assert byte_size(File.read!(path)) >= byte_size(first)
  end

  test "no file is no error, and clear removes it", %{cache: cache} do
    VM.run!(
      @start <>
        """
        :ok = PipelineCache.clear()
        :ok = PipelineCache.load()
        :ok = PipelineCache.persist()
        true = File.regular?(path)
        :ok = PipelineCache.load()
        :ok = PipelineCache.clear()
        false = File.exists?(path)
        :ok = PipelineCache.clear()
        :ok = PipelineCache.load()
        pipeline.()
        """,
      cache
    )
  end

  test "files of others and damaged ones are refused, and replaced", %{cache: cache} do
    VM.run!(
      @start <>
        """
        pipeline.()
        NativeV.sync_device(Nx.Vulkan.Device.fetch!(:auto))
        :ok = PipelineCache.persist()
        <<_sum::binary-32, head::binary-16, uuid::binary-16, rest::binary>> = good = File.read!(path)
        <<first, uuid_rest::binary>> = uuid
        foreign = <<Bitwise.bxor(first, 1), uuid_rest::binary>>

        refused = fn word ->
          {:error, message} = PipelineCache.load()
          true = message =~ word and message =~ path
        end

        file.(head <> foreign <> rest)
        refused.(Base.encode16(foreign, case: :lower))
        refused.(PipelineCache.device_uuid_hex())
        file.(<<32::32-little, 2::32-little>> <> binary_part(head, 8, 8) <> uuid <> rest)
        refused.("version")

        for length <- [0, 1, 31, 32, 33, 63] do
          File.write!(path, binary_part(good, 0, length))
          refused.("damaged")
        end

        File.write!(path, good <> "x")
        refused.("checksum")
        <<one, others::binary>> = good
        File.write!(path, <<Bitwise.bxor(one, 1), others::binary>>)
        refused.("checksum")
        File.rm!(path)
        File.mkdir!(path)
        refused.("not a regular file")
        File.rmdir!(path)

        File.write!(path, "damaged")
        :ok = PipelineCache.persist()
        :ok = PipelineCache.load()
        file.(head <> foreign <> rest)
        """,
      cache
    )

    # The next VM starts with the foreign file.
    VM.run!(
      @start <>
        "{:error, _} = PipelineCache.load()\npipeline.()\n:ok = PipelineCache.persist()\n:ok = PipelineCache.load()",
      cache
    )
  end

  test "a folder that cannot be written is an error, also for root", %{cache: cache} do
    file = Path.join(cache, "file")
    File.write!(file, "")

    VM.run!(
      """
      alias Nx.Vulkan.PipelineCache
      {:error, message} = PipelineCache.persist()
      true = message =~ "is not used: Not a directory" and message =~ #{inspect(file)}
      {:error, ^message} = PipelineCache.clear()
      {:error, ^message} = PipelineCache.load()
      """,
      file
    )
  end

  test "without a device all are errors", %{cache: cache} do
    VM.run!(
      """
      alias Nx.Vulkan.PipelineCache
      Application.put_env(:nx_vulkan, :device, "no such device")
      for name <- [:load, :persist, :clear] do
        {:error, message} = apply(PipelineCache, name, [])
        true = message =~ "no such device"
      end
      for name <- [:default_path, :device_uuid_hex] do
        %Nx.Vulkan.Error{kind: :no_device} = try do apply(PipelineCache, name, []) rescue e -> e end
      end
      """,
      cache
    )
  end

  test "many processes load and persist while pipelines are made", %{cache: cache} do
    VM.run!(
      @start <>
        """
        work = fn i ->
          {:ok, spv} = Synthesis.compile("#version 450\\nlayout(local_size_x = 256) in;\\nlayout(set = 0, binding = 1) buffer A { float a[]; };\\nvoid main() { a[0] = \#{i}; }")
          {:ok, a} = NativeV.buf_alloc(4)
          :ok = NativeV.apply_unary(a, a, 1, 0, spv)
          :ok = PipelineCache.persist()
          :ok = PipelineCache.load()
        end
        Task.async_stream(1..64, work, max_concurrency: 8, timeout: :infinity) |> Enum.each(fn {:ok, :ok} -> :ok end)
        """,
      cache
    )
  end
end
