Code.require_file("support/vm.exs", __DIR__)

if Code.ensure_loaded?(Nx) do
  defmodule Nx.Vulkan.LazyTest do
    use ExUnit.Case, async: true

    alias Nx.Vulkan.VM

    @moduletag :tmp_dir

    # A device takes its settings when it opens. Measured times would leave some ops to the host.
    @script """
    Application.put_env(:nx_vulkan, :lazy, true)
    Application.put_env(:nx_vulkan, :measure, false)
    {:ok, _} = Application.ensure_all_started(:nx_vulkan)
    Nx.global_default_backend(Nx.Vulkan.VulkanoBackend)

    fused = fn -> for({"fused", _, n} <- Nx.Vulkan.stats().served, do: n) |> Enum.sum() end
    on_host = fn run -> Nx.with_default_backend(Nx.BinaryBackend, run) end

    # Each op has run before: from then on they wait, and the third time they run as one.
    steps = fn x ->
      sum = Nx.add(x, Nx.multiply(x, 3))
      {Nx.subtract(sum, 7), Nx.max(sum, Nx.negate(x))}
    end

    x = Nx.iota({100}, type: :s32)
    {a, b} = on_host.(fn -> steps.(Nx.iota({100}, type: :s32)) end)
    expected = {Nx.to_binary(a), Nx.to_binary(b)}

    for _ <- 1..4 do
      {a, b} = steps.(x)
      # A task that reads what another process has not.
      ^expected = {Nx.to_binary(a), Task.await(Task.async(fn -> Nx.to_binary(b) end), 60_000)}
    end

    true = fused.() >= 2

    # What views, reductions and blocks are made of.
    turned = fn x -> x |> Nx.multiply(2) |> Nx.add(1) |> Nx.reshape({10, 10}) |> Nx.transpose() end
    rows = fn x -> x |> turned.() |> Nx.cumulative_sum(axis: 1) |> Nx.sum(axes: [0]) end
    expected = on_host.(fn -> Nx.to_binary(rows.(Nx.iota({100}, type: :s32))) end)
    for _ <- 1..4, do: ^expected = Nx.to_binary(rows.(x))

    # Operands may go before who reads what is made of them, and what waits may go itself.
    for _ <- 1..3 do
      own = Nx.add(x, 1)
      made = Nx.multiply(own, 2)
      gone = Nx.multiply(own, 2)
      :ok = Nx.backend_deallocate(own)
      :ok = Nx.backend_deallocate(gone)
      <<2::32-native, 4::32-native, _::binary>> = Nx.to_binary(made)
      %ArgumentError{} = try(do: Nx.to_binary(gone), rescue: (e -> e))
    end

    # Everything in Nx.Random is made of such ops.
    normal = fn -> Nx.Random.key(5) |> Nx.Random.randint(0, 1000, shape: {501}) |> elem(0) end
    expected = on_host.(fn -> Nx.to_binary(normal.()) end)
    for _ <- 1..4, do: ^expected = Nx.to_binary(normal.())

    # Elements that the VM has not seen: the error comes with the result.
    for _ <- 1..3 do
      zero = Nx.subtract(x, x)
      wrong = x |> Nx.quotient(zero) |> Nx.add(1)
      %ArithmeticError{} = try(do: Nx.to_binary(wrong), rescue: (e -> e))
    end

    kept = Nx.add(x, 5)
    :ok = Nx.Vulkan.sync()
    5 = Nx.to_number(kept[0])
    [] = Nx.Vulkan.NativeV.validation_messages()
    IO.puts("waited")
    """

    test "results that wait are those of Nx.BinaryBackend", %{tmp_dir: folder} do
      File.chmod!(folder, 0o700)
      assert VM.run!(@script, folder) =~ "waited"
    end
  end
end
