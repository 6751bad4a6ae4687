//! The packs that tests load: built on demand, beside the test binary's own build.

use crate::folder::Folder;
use std::{
    collections::BTreeMap,
    env, fs,
    path::{Path, PathBuf},
    process::Command,
    sync::Mutex,
};

/// Packs of this repository: every folder of `packs/`, but what they share.
pub(crate) fn ours() -> Vec<String> {
    let folders = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packs")).unwrap();
    let names = folders.map(|folder| folder.unwrap().file_name().into_string().unwrap());
    let mut ours: Vec<String> = names.filter(|name| name != "kit").collect();
    ours.sort();
    ours
}

/// Folders of packs that are workspaces of their own, by the name of their library.
const OTHERS: &[(&str, &str)] = &[
    // One op, `square` on f32.
    ("template", "../../abi/template"),
    // Products on cooperative matrices, which docs/tensor-cores.md goes through.
    ("tiles", "../../examples/packs/tiles"),
    // One op per broken rule.
    ("bad", "tests/fixtures/bad_pack"),
    // Ends its process at one step of loading.
    ("hostile", "tests/fixtures/hostile_pack"),
    // Has no layout to check.
    ("optout", "tests/fixtures/optout_pack"),
];

/// The library of a pack, built once per process.
pub(crate) fn built(name: &str) -> PathBuf {
    static BUILT: Mutex<BTreeMap<String, PathBuf>> = Mutex::new(BTreeMap::new());
    let mut built = BUILT.lock().unwrap();
    built
        .entry(name.to_owned())
        .or_insert_with(|| build(name))
        .clone()
}

/// Copies packs into `packs/` of a folder, which it returns.
pub(crate) fn copied(folder: &Folder, names: &[impl AsRef<str>]) -> PathBuf {
    for name in names {
        let name = name.as_ref();
        let to = folder.write(&format!("packs/{name}.so"), "");
        fs::copy(built(name), to).unwrap();
    }
    folder.join("packs")
}

fn build(name: &str) -> PathBuf {
    let other = OTHERS.iter().find(|row| row.0 == name).map(|row| row.1);
    let is_ours = || ours().iter().any(|own| own == name);
    assert!(other.is_some() || is_ours(), "no pack {name}");
    // Ours are built with all of the workspace: alone their dependencies would have other features, and be compiled anew.
    match other {
        Some(folder) => cargo(Path::new(folder), &["build", "--release", "--quiet"]),
        None => cargo(
            Path::new("../.."),
            &["build", "--release", "--quiet", "--workspace"],
        ),
    }
    library(name)
}

/// Runs cargo in a folder, given from that of this crate, with the target folder of this build, so that the dependencies
/// which the workspace has built are used again.
pub(crate) fn cargo(folder: &Path, words: &[&str]) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let status = Command::new(env!("CARGO"))
        .args(words)
        .current_dir(&folder)
        .env("CARGO_TARGET_DIR", target())
        .status()
        .unwrap();
    let folder = folder.display();
    assert!(status.success(), "cargo {words:?} fails in {folder}");
}

pub(crate) fn target() -> PathBuf {
    let own = env::current_exe().unwrap();
    own.ancestors().nth(3).unwrap().to_owned()
}

/// Where the library of a pack is built.
pub(crate) fn library(name: &str) -> PathBuf {
    let (prefix, suffix) = (env::consts::DLL_PREFIX, env::consts::DLL_SUFFIX);
    target().join(format!("release/{prefix}nx_vulkan_pack_{name}{suffix}"))
}
