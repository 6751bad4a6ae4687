defmodule Nx.Vulkan.SettingsTest do
  use ExUnit.Case, async: true
  @moduletag :same_with_nx

  import ExUnit.CaptureLog

  alias Nx.Vulkan.Settings

  test "a key that nobody reads is told, with the one that it is near to" do
    on_exit(fn -> for key <- [:devise, :zzz], do: Application.delete_env(:nx_vulkan, key) end)
    Application.put_env(:nx_vulkan, :devise, 0)
    Application.put_env(:nx_vulkan, :zzz, 0)
    told = capture_log(&Settings.warn/0)
    assert told =~ "config :nx_vulkan has no setting :devise; did you mean :device?"
    assert told =~ ~r/config :nx_vulkan has no setting :zzz\W*$/m
    for key <- Settings.keys(), do: refute(told =~ "no setting #{inspect(key)}")
  end

  test "what is no boolean does not count as true, which is told" do
    on_exit(fn -> Application.delete_env(:nx_vulkan, :add_backend_on_inspect) end)
    Application.put_env(:nx_vulkan, :add_backend_on_inspect, "yes")
    told = capture_log(&Settings.warn/0)
    assert told =~ ~s(expected :add_backend_on_inspect to be a boolean, got: "yes")
  end

  test "the documentation has every key" do
    {:docs_v1, _, _, _, %{"en" => doc}, _, _} = Code.fetch_docs(Nx.Vulkan)
    [_, listed] = Regex.run(~r/config :nx_vulkan,\n(.*?)\n\n/s, doc)
    keys = for [_, key] <- Regex.scan(~r/^\s+(\w+): /m, listed), do: String.to_atom(key)
    assert Enum.sort(keys) == Enum.sort(Settings.keys())
  end
end
