defmodule Mix.Tasks.NxvTest do
  use ExUnit.Case, async: true
  @moduletag :same_with_nx

  @tag :tmp_dir
  test "the tool runs, and its exit code is the task's", %{tmp_dir: folder} do
    assert Mix.Tasks.Nxv.run(["--version"]) == :ok
    assert catch_exit(Mix.Tasks.Nxv.run(["no such verb"])) == {:shutdown, 2}
    missing = Path.join(folder, "missing.so")
    assert catch_exit(Mix.Tasks.NxVulkan.Pack.Pin.run([missing])) == {:shutdown, 1}
  end

  test "standard output is the tool's alone" do
    assert {printed, 0} = System.cmd("mix", ["nxv", "--version"])
    assert printed =~ ~r/\Anxv \S+\n\z/
  end

  @tag :tmp_dir
  test "a new pack is built against this package's contract", %{tmp_dir: folder} do
    assert Mix.Tasks.NxVulkan.Pack.New.run(["gauss", "--into", folder]) == :ok
    manifest = File.read!(Path.join(folder, "gauss/Cargo.toml"))
    assert manifest =~ ~s(path = "#{Path.expand("abi")}")
  end

  test "every verb has a task that says what it does" do
    {:ok, modules} = :application.get_key(:nx_vulkan, :modules)

    tasks =
      Enum.filter(modules, &String.starts_with?(to_string(&1), "Elixir.Mix.Tasks.NxVulkan."))

    assert length(tasks) >= 10
    for task <- tasks, do: assert(Mix.Task.shortdoc(task))
  end
end
