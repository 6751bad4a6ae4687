//! docs/tensor-cores.md as a program: its shell blocks run, and its other blocks stand in the pack that it is about.

use nx_vulkan_host::{Config, DeviceChoice, Runtime};
use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn page() -> String {
    fs::read_to_string(root().join("docs/tensor-cores.md")).unwrap()
}

/// The blocks of the page in that language, in order.
fn blocks<'a>(page: &'a str, language: &str) -> Vec<&'a str> {
    let start = format!("```{language}\n");
    let parts = page.split(&start).skip(1);
    parts.filter_map(|part| part.split("```").next()).collect()
}

#[test]
fn what_the_page_quotes_stands_in_the_pack() {
    let pack = root().join("examples/packs/tiles");
    let read = |file: &str| fs::read_to_string(pack.join(file)).unwrap();
    let sources = [
        read("src/lib.rs"),
        read("shaders/staged.comp"),
        read("shaders/workgroup.comp"),
    ];
    let page = page();
    let quoted = [blocks(&page, "rust"), blocks(&page, "glsl")].concat();
    assert_eq!(quoted.len(), 3);
    for block in quoted {
        assert!(
            sources.iter().any(|source| source.contains(block)),
            "{block}"
        );
    }
}

#[test]
fn every_command_of_the_page_succeeds_without_a_matrix_unit() {
    let page = page();
    let script = format!("set -eux\n{}", blocks(&page, "sh").join(""));
    let nxv = Path::new(env!("CARGO_BIN_EXE_nxv"));
    let paths = env::var_os("PATH").unwrap_or_default();
    let own = [nxv.parent().unwrap().to_owned()];
    let paths = own.into_iter().chain(env::split_paths(&paths));
    let output = Command::new("sh")
        .args(["-c", &script])
        .env("PATH", env::join_paths(paths).unwrap())
        .env("NX_VULKAN", root())
        .env("CARGO_TARGET_DIR", crate::packs::target())
        .env_remove("NX_VULKAN_PACKS")
        .env_remove("NX_VULKAN_REGISTRY")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}\n{error}");
    // Three types with `staged.comp`, two with `workgroup.comp`; no request has results of f32.
    assert!(text.contains("compile  ok"), "{text}");
    assert!(text.contains("shader variants"), "{text}");
}

#[test]
fn packs_are_told_whose_driver_it_is() {
    let device = env::var("NX_VULKAN_DEVICE").unwrap_or_else(|_| "llvmpipe".to_owned());
    let runtime = Runtime::open(&Config {
        device: DeviceChoice::parse(&device),
        packs: Vec::new(),
        ..Config::from_env()
    });
    let runtime = runtime.unwrap();
    let info = runtime.device().info();
    let id = info.fact("driver_id");
    assert_eq!(id.len(), 1);
    // VK_DRIVER_ID_MESA_LLVMPIPE
    if runtime.device().summary().name.contains("llvmpipe") {
        assert_eq!(id, [13]);
    }
}
