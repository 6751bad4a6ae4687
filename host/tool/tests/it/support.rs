//! `docs/support.md` says what `nxv ops` says on lavapipe.

use crate::folder::Folder;
use std::{env, fs, path::Path, process::Command};

const START: &str = "<!-- nxv ops --markdown -->\n";

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
    let packs = crate::packs::copied(&folder, &crate::packs::ours());
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
