//! What is said about each registry file of `golden/`, word for word.
//!
//! `NXV_BLESS=1 cargo test -p nx-vulkan-tool golden` writes down what is said now.

use nx_vulkan_registry::{Code, check};
use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

fn files() -> Vec<PathBuf> {
    let folder = Path::new("tests/golden");
    let entries = fs::read_dir(folder).unwrap();
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "toml"))
        .collect();
    files.sort();
    files
}

#[test]
fn the_words_are_those_written_down() {
    let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let mut wrong = Vec::new();
    for file in files() {
        let said = check(&file, None).diagnostics;
        let said: String = said.iter().map(|d| format!("{d}\n")).collect();
        let said = said.replace(&target, "TARGET");
        let written = file.with_extension("txt");
        if std::env::var_os("NXV_BLESS").is_some() {
            fs::write(&written, &said).unwrap();
        }
        if fs::read_to_string(&written).ok().as_ref() != Some(&said) {
            wrong.push(format!("== {}\n{said}", file.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Those that need packs or an environment have tests of their own in `registry/`.
#[test]
fn every_code_occurs() {
    let said: BTreeSet<Code> = files()
        .iter()
        .flat_map(|file| check(file, None).diagnostics)
        .map(|diagnostic| diagnostic.code)
        .collect();
    let elsewhere = [
        Code::Kernel,
        Code::DeniesNothing,
        Code::Overridden,
        Code::Unlocked,
        Code::Exposed,
    ];
    let missing: Vec<&Code> = Code::ALL
        .iter()
        .filter(|code| !said.contains(code) && !elsewhere.contains(code))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}
