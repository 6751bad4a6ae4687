//! The template as a stranger builds it: outside the repository, with the packaged ABI crate, chosen by a rule.

use crate::{
    folder::Folder,
    packs::{cargo, library, target},
};
use nx_vulkan_host::{Config, DType, Request, Runtime};
use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
};

const TEMPLATE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../abi/template");

/// A folder outside the repository, the same in every run, so that what is built there is built once.
fn outside() -> PathBuf {
    let own = target().to_string_lossy().replace(['/', '\\', ':'], "-");
    env::temp_dir().join(format!("nxv-outside{own}"))
}

/// The ABI crate in the form in which it is published, unpacked in `folder`.
fn packaged_abi(folder: &Path) -> PathBuf {
    cargo(
        Path::new("../.."),
        &[
            "package",
            "--quiet",
            "--package",
            "nx-vulkan-abi",
            "--no-verify",
            "--allow-dirty",
        ],
    );
    let name = format!("nx-vulkan-abi-{}", nx_vulkan_abi::ABI_VERSION);
    let archive = target().join("package").join(format!("{name}.crate"));
    let unpacked = Command::new("tar")
        .arg("xzf")
        .arg(archive)
        .arg("-C")
        .arg(folder)
        .status()
        .unwrap();
    assert!(unpacked.success());
    folder.join(name)
}

/// The template, copied to `folder` and built there against the packaged crate.
fn build_template(folder: &Path) {
    let (own, abi) = (folder.join("my-pack"), packaged_abi(folder));
    for name in [
        "Cargo.toml",
        "Cargo.lock",
        "src/lib.rs",
        "src/tests.rs",
        "shaders/unary.comp",
    ] {
        let to = own.join(name);
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(Path::new(TEMPLATE).join(name), to).unwrap();
    }
    let manifest = fs::read_to_string(own.join("Cargo.toml")).unwrap();
    let (path, published) = (
        "path = \"..\"",
        format!("path = {:?}", abi.display().to_string()),
    );
    assert_eq!(manifest.matches(path).count(), 1, "{manifest}");
    let manifest = manifest
        .replace(path, &published)
        .replace("nx-vulkan-pack-template", "nx-vulkan-pack-outside");
    fs::write(own.join("Cargo.toml"), manifest).unwrap();
    cargo(&own, &["build", "--release", "--quiet"]);
}

/// A runtime with the template and the pack it competes with.
fn open(folder: &Folder, rule: &str) -> Arc<Runtime> {
    for name in ["outside", "elementwise"] {
        let to = folder.write(&format!("packs/{name}.so"), "");
        fs::copy(library(name), to).unwrap();
    }
    let registry = format!("schema = 1\n[search]\npaths = [\"packs\"]\n{rule}");
    let config = Config {
        registry: Some(folder.write("registry.toml", registry)),
        packs: Vec::new(),
        cache_dir: Some(folder.join("cache")),
        ..Config::from_env()
    };
    Runtime::open(&config).unwrap()
}

fn picked(runtime: &Runtime) -> Option<String> {
    let operand = [(DType::F32, vec![5])];
    runtime
        .explain(&Request::new("negate", &operand, &operand, &[]))
        .unwrap()
        .picked
}

#[test]
fn the_template_built_elsewhere_with_the_published_crate_wins_by_a_rule() {
    let outside = outside();
    fs::create_dir_all(&outside).unwrap();
    build_template(&outside);
    cargo(
        Path::new("../.."),
        &[
            "build",
            "--release",
            "--quiet",
            "--package",
            "nx-vulkan-pack-elementwise",
        ],
    );

    let folder = Folder::new();
    let runtime = open(&folder, "");
    assert!(picked(&runtime).is_some_and(|name| name.starts_with("elementwise/")));

    let folder = Folder::new();
    let rule =
        "[[op]]\nname = \"negate\"\ndtype = [\"f32\"]\nuse = [\"template\", \"*\", \"host\"]\n";
    let runtime = open(&folder, rule);
    assert_eq!(picked(&runtime).as_deref(), Some("template/negate_f32"));
    let bytes = |values: [f32; 5]| values.map(f32::to_ne_bytes).concat();
    let input = bytes([1.0, -2.5, 0.0, f32::INFINITY, 1e-30]);
    let input = runtime.upload(DType::F32, &[5], &input).unwrap();
    let output = runtime
        .run(&Request::new(
            "negate",
            &[&input],
            &[(DType::F32, vec![5])],
            &[],
        ))
        .unwrap();
    assert_eq!(
        runtime.download(&output[0], None).unwrap(),
        bytes([-1.0, 2.5, -0.0, f32::NEG_INFINITY, -1e-30])
    );
}
