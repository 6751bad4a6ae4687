//! Tells one state of the CPU kernels' sources from another, since their version says so of releases only.

use std::{
    fs,
    hash::{DefaultHasher, Hash, Hasher},
    io,
    path::{Path, PathBuf},
};

/// Kernels, and the rows of the ops that say which of them runs.
const SOURCES: &str = "src";

fn main() -> io::Result<()> {
    println!("cargo:rerun-if-changed={SOURCES}");
    let mut files = Vec::new();
    list(Path::new(SOURCES), &mut files)?;
    files.sort();
    let mut hasher = DefaultHasher::new();
    for file in files {
        fs::read(file)?.hash(&mut hasher);
    }
    println!("cargo:rustc-env=NX_VULKAN_KERNELS={:016x}", hasher.finish());
    Ok(())
}

/// Files of Rust but tests.
fn list(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.file_stem().is_some_and(|name| name == "tests") {
            continue;
        }
        if path.is_dir() {
            list(&path, files)?;
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            files.push(path);
        }
    }
    Ok(())
}
