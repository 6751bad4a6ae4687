defmodule Mix.Tasks.Compile.NxVulkan do
  @moduledoc false
  # Builds the NIF library, the kernel packs and the program that tries new ones with cargo, and puts them in priv.
  use Mix.Task.Compiler

  # Every folder of packs, but what they share.
  @packs Path.join(__DIR__, "packs/*/Cargo.toml")
         |> Path.wildcard()
         |> Enum.map(&(&1 |> Path.dirname() |> Path.basename()))
         |> Kernel.--(["kit"])

  @impl true
  def run(_args) do
    crates = ["nx-vulkan-nif", "nx-vulkan-child" | Enum.map(@packs, &"nx-vulkan-pack-#{&1}")]
    build(["build", "--release" | Enum.flat_map(crates, &["-p", &1])])

    nif = install(library("nx_vulkan_nif"), "priv/libnx_vulkan_nif#{nif_extension()}")
    child = install("nxv-child#{exe()}", "priv/nxv-child#{exe()}")

    packs =
      for pack <- @packs,
          name = library("nx_vulkan_pack_#{pack}"),
          do: install(name, "priv/packs/#{name}")

    Mix.Project.build_structure()
    if :ok in [nif, child | packs], do: {:ok, []}, else: {:noop, []}
  end

  @impl true
  def clean, do: File.rm_rf!("priv")

  defp build(args) do
    cargo =
      System.find_executable("cargo") ||
        Mix.raise(
          "cargo was not found: install Rust from https://rustup.rs, then run mix compile again"
        )

    case System.cmd(cargo, args, into: IO.stream(:stderr, :line), stderr_to_stdout: true) do
      {_, 0} -> :ok
      {_, status} -> Mix.raise("cargo #{Enum.join(args, " ")} failed with status #{status}")
    end
  end

  # A library may be mapped by a running VM: it is replaced by renaming, never written over.
  defp install(file, target) do
    built = Path.join([System.get_env("CARGO_TARGET_DIR", "target"), "release", file])

    if same?(built, target) do
      :noop
    else
      temporary = "#{target}.#{System.pid()}"
      File.mkdir_p!(Path.dirname(target))
      File.cp!(built, temporary)
      File.touch!(temporary, File.stat!(built).mtime)
      File.rename!(temporary, target)
    end
  end

  defp same?(built, target) do
    %{size: size, mtime: time} = File.stat!(built)

    case File.stat(target) do
      {:ok, %{size: ^size, mtime: ^time}} -> true
      {:ok, %{size: ^size}} -> File.read!(built) == File.read!(target)
      _ -> false
    end
  end

  defp library(crate) do
    case :os.type() do
      {:win32, _} -> crate <> ".dll"
      {_, :darwin} -> "lib#{crate}.dylib"
      _ -> "lib#{crate}.so"
    end
  end

  defp exe, do: if(match?({:win32, _}, :os.type()), do: ".exe", else: "")

  # :erlang.load_nif/2 looks for .so on every Unix.
  defp nif_extension, do: if(match?({:win32, _}, :os.type()), do: ".dll", else: ".so")
end

defmodule NxVulkan.MixProject do
  use Mix.Project

  @version "0.1.0"
  @source_url "https://github.com/borodark/nx_vulkan"

  def project do
    [
      app: :nx_vulkan,
      version: @version,
      elixir: "~> 1.17",
      compilers: [:nx_vulkan] ++ Mix.compilers(),
      elixirc_options: [no_warn_undefined: [:telemetry]],
      deps: deps(),
      description: "A GPU tensor backend for Nx that runs on anything with a Vulkan driver",
      package: package()
    ]
  end

  def application do
    [mod: {Nx.Vulkan.Application, []}, extra_applications: [:crypto, :logger]]
  end

  # NX_PATH names a checkout of Nx. Without it and without Hex only Nx.Vulkan.NativeV is built.
  defp deps do
    cond do
      path = System.get_env("NX_PATH") -> [{:nx, path: path}]
      Code.ensure_loaded?(Hex) -> [{:nx, "~> 0.13"}]
      true -> []
    end
  end

  defp package do
    [
      licenses: ["Apache-2.0"],
      links: %{"GitHub" => @source_url},
      files:
        ~w(lib abi host nif packs Cargo.toml Cargo.lock mix.exs .formatter.exs README.md CHANGELOG.md LICENSE docs guides)
    ]
  end
end
