//! The packs that tests load: built on demand, beside the test binary's own build.

use std::{
    collections::BTreeMap,
    env, fs,
    path::{Path, PathBuf},
    process::Command,
    sync::Mutex,
};

/// Folders of the packs, by the name of their library.
const PACKS: &[(&str, &str)] = &[
    // One op, `square` on f32.
    ("template", "../../abi/template"),
    ("elementwise", "../../packs/elementwise"),
    ("reduce", "../../packs/reduce"),
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

fn build(name: &str) -> PathBuf {
    let (_, folder) = PACKS
        .iter()
        .find(|row| row.0 == name)
        .expect("a row of PACKS");
    let folder = fs::canonicalize(Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)).unwrap();
    let own = env::current_exe().unwrap();
    let target = own.ancestors().nth(3).unwrap();
    // The same target folder, so that the dependencies the workspace has built are used again.
    let status = Command::new(env!("CARGO"))
        .args(["build", "--release", "--quiet"])
        .current_dir(&folder)
        .env("CARGO_TARGET_DIR", target)
        .status()
        .unwrap();
    assert!(status.success(), "{} does not build", folder.display());
    let (prefix, suffix) = (env::consts::DLL_PREFIX, env::consts::DLL_SUFFIX);
    target
        .join("release")
        .join(format!("{prefix}nx_vulkan_pack_{name}{suffix}"))
}
