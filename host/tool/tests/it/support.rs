//! `docs/support.md` says what `nxv ops` says on lavapipe.

use crate::folder::Folder;
use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

const PACKS: [&str; 4] = ["elementwise", "reduce", "matmul", "leapfrog"];
const START: &str = "<!-- nxv ops --markdown -->\n";

fn target() -> PathBuf {
    let own = env::current_exe().unwrap();
    own.ancestors().nth(3).unwrap().to_owned()
}

/// The packs of this repository, in a folder of their own.
fn packs(folder: &Folder) -> PathBuf {
    let names = PACKS.map(|name| format!("--package=nx-vulkan-pack-{name}"));
    let built = Command::new(env!("CARGO"))
        .args(["build", "--release", "--quiet"])
        .args(names)
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
        .env("CARGO_TARGET_DIR", target())
        .status()
        .unwrap();
    assert!(built.success(), "the packs do not build");
    let (prefix, suffix) = (env::consts::DLL_PREFIX, env::consts::DLL_SUFFIX);
    for name in PACKS {
        let file = format!("{prefix}nx_vulkan_pack_{name}{suffix}");
        let to = folder.write(&format!("packs/{file}"), "");
        fs::copy(target().join("release").join(file), to).unwrap();
    }
    folder.join("packs")
}

fn nxv(arguments: &[&str]) -> std::process::Output {
    Command::new(env!("CARGO_BIN_EXE_nxv"))
        .args(arguments)
        .env("NX_VULKAN_DEVICE", "llvmpipe")
        .env("NX_VULKAN_CACHE", env!("CARGO_TARGET_TMPDIR"))
        .env_remove("NX_VULKAN_REGISTRY")
        .output()
        .unwrap()
}

#[test]
fn the_support_matrix_is_what_the_tool_prints() {
    let folder = Folder::new();
    let devices = nxv(&["devices"]);
    if !String::from_utf8_lossy(&devices.stdout).contains("llvmpipe") {
        eprintln!("SKIPPED: there is no lavapipe here, so docs/support.md was not compared");
        return;
    }
    let packs = packs(&folder);
    let printed = nxv(&["ops", "--markdown", "--packs", &packs.display().to_string()]);
    assert!(printed.status.success(), "{printed:?}");
    let printed = String::from_utf8(printed.stdout).unwrap();

    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/support.md");
    let written = fs::read_to_string(&page).unwrap();
    let (head, table) = written
        .split_once(START)
        .expect("the page marks where the table starts");
    if env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&page, format!("{head}{START}{printed}")).unwrap();
        return;
    }
    assert!(
        table == printed,
        "docs/support.md is out of date; write it anew with UPDATE_DOCS=1 cargo test --release --test it support.\n{printed}"
    );
}
