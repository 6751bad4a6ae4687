//! docs/writing-a-pack.md as a program: every shell block runs as it is written, one after the other.

use std::{
    env, fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
};

/// Removed when it is dropped.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A folder in which a pack may be pinned: nobody else may write to it or to what it is in.
fn folder() -> Folder {
    let private = |path: &Path| {
        let closed =
            |dir: &Path| fs::metadata(dir).is_ok_and(|meta| meta.permissions().mode() & 0o022 == 0);
        path.ancestors().all(closed)
    };
    let own = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let home = env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache"));
    let base = [Some(own.clone()), home].into_iter().flatten();
    let base = base
        .into_iter()
        .find(|path| fs::create_dir_all(path).is_ok() && private(path));
    let path = base
        .unwrap_or(own)
        .join(format!("writing-a-pack-{}", std::process::id()));
    drop(fs::remove_dir_all(&path));
    fs::create_dir_all(&path).unwrap();
    Folder(path)
}

/// The shell blocks of the page, in order.
fn blocks(page: &str) -> Vec<&str> {
    let parts = page.split("```sh\n").skip(1);
    parts.filter_map(|part| part.split("```").next()).collect()
}

/// A store beyond the result in the new pack, which the checked mode has to name.
const FAULT: &str = "
sed -i 's/nxv_store(elements, i,/nxv_store(elements, i + count,/' shaders/map.comp
line=$(grep -n nxv_store shaders/map.comp | cut -d: -f1)
cargo build --release
nxv pack test target/release/libnx_vulkan_pack_gauss.so --checked --op negate > checked.txt 2>&1 && exit 1
grep -q \"map.comp:$line: index [0-9]* is outside of elements\" checked.txt || { cat checked.txt; exit 1; }
";

#[test]
fn every_command_of_the_page_succeeds() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = fs::read_to_string(root.join("docs/writing-a-pack.md")).unwrap();
    let blocks = blocks(&page);
    assert!(blocks.len() >= 8, "{} blocks", blocks.len());

    let folder = folder();
    let nxv = Path::new(env!("CARGO_BIN_EXE_nxv"));
    let target = nxv.ancestors().nth(2).unwrap();
    // A cargo that lets a crate share what the workspace has built, by the same versions.
    let bin = folder.0.join("bin");
    let cargo = bin.join("cargo");
    let text = format!(
        "#!/bin/sh\n[ -e target ] || {{ ln -s '{}' target && cp '{}/Cargo.lock' .; }} || exit 1\nexec '{}' \"$@\"\n",
        target.display(),
        root.display(),
        env!("CARGO")
    );
    fs::create_dir(&bin).unwrap();
    fs::write(&cargo, text).unwrap();
    fs::set_permissions(&cargo, fs::Permissions::from_mode(0o755)).unwrap();
    let script = format!("set -eux\n{}{FAULT}", blocks.join(""));
    let paths = env::var_os("PATH").unwrap_or_default();
    let paths = env::split_paths(&paths);
    let own = [bin, nxv.parent().unwrap().to_owned()];
    let output = Command::new("sh")
        .args(["-c", &script])
        .current_dir(&folder.0)
        .env(
            "PATH",
            env::join_paths(own.into_iter().chain(paths)).unwrap(),
        )
        .env("NX_VULKAN", root)
        .env("NX_VULKAN_CACHE", folder.0.join("cache"))
        .env_remove("NX_VULKAN_PACKS")
        .env_remove("NX_VULKAN_REGISTRY")
        .env_remove("NX_VULKAN_KEY_PASSWORD")
        .env_remove("CARGO_TARGET_DIR")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}\n{error}");
    let picked = |line: &&str| line.contains("gauss/multiply") && line.contains("PICKED");
    let picks = text.lines().filter(picked).count();
    assert_eq!(picks, 2, "in mode dev and in mode locked:\n{text}");
    assert!(text.contains("mode = \"locked\""), "{text}");
    assert!(text.contains("gauss 0.1.0 ran"), "{text}");
}
