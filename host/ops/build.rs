//! Tells one state of the CPU kernels' sources from another, since their version says so of releases only.

use std::{
    fs,
    hash::{DefaultHasher, Hash, Hasher},
    io,
    path::{Path, PathBuf},
};

const KERNELS: &str = "src/kernels";

fn main() -> io::Result<()> {
    println!("cargo:rerun-if-changed={KERNELS}");
    let mut files = Vec::new();
    list(Path::new(KERNELS), &mut files)?;
    files.sort();
    let mut hasher = DefaultHasher::new();
    for file in files {
        fs::read(file)?.hash(&mut hasher);
    }
    println!("cargo:rustc-env=NX_VULKAN_KERNELS={:016x}", hasher.finish());
    Ok(())
}

fn list(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        match path.is_dir() {
            true => list(&path, files)?,
            false => files.push(path),
        }
    }
    Ok(())
}
