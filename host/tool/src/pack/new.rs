//! `nxv pack new`: a crate to start from. What it writes builds, and passes `nxv pack check` and `nxv pack test`.

use super::file::trouble;
use crate::{
    global::Global,
    output::{Answer, Outcome, Problem, shown},
};
use std::path::{Path, PathBuf};

/// Where the crates that a pack is built with are, unless the author says it.
const REPOSITORY: &str = "https://github.com/borodark/nx_vulkan";

/// Every file of the crate. In the texts, `NAME`, `LIBRARY`, `ABI` and `KIT` stand for what they say.
const FILES: &[(&str, &str)] = &[
    ("Cargo.toml", include_str!("template/Cargo.toml.in")),
    ("README.md", include_str!("template/README.md")),
    (".gitignore", include_str!("template/gitignore")),
    ("pack.toml", include_str!("template/pack.toml")),
    (
        "shaders/map.comp",
        include_str!("template/shaders/map.comp"),
    ),
    (
        "shaders/largest.comp",
        include_str!("template/shaders/largest.comp"),
    ),
    ("src/lib.rs", include_str!("template/src/lib.rs")),
    ("src/map.rs", include_str!("template/src/map.rs")),
    ("src/largest.rs", include_str!("template/src/largest.rs")),
    ("src/table.rs", include_str!("template/src/table.rs")),
    ("src/tests.rs", include_str!("template/src/tests.rs")),
];

/// Write a crate that builds, passes and has one unary op, one binary op and one op with its own shader.
#[derive(Debug, clap::Args)]
pub(crate) struct New {
    /// Id of the pack: lower-case letters, digits, - and _
    #[arg(value_parser = name)]
    name: String,

    /// Where the new folder goes
    #[arg(long, value_name = "DIR", default_value = ".")]
    into: PathBuf,

    /// The folder of the nx-vulkan-abi crate in a checkout; without it the crate is fetched from the project's repository
    #[arg(long, value_name = "PATH", value_parser = abi)]
    abi: Option<PathBuf>,
}

impl New {
    /// Writes the crate into a new folder.
    pub(crate) fn run(&self, _: &Global) -> Answer {
        let folder = self.into.join(&self.name);
        let (abi, kit) = match &self.abi {
            None => {
                let git = format!("{{ git = \"{REPOSITORY}\"");
                (git.clone(), git)
            }
            Some(path) => (local(path)?, local(&kit(path))?),
        };
        if folder.exists() {
            let text = format!(
                "{} exists already; name another folder with --into",
                folder.display()
            );
            return Err(Problem::Usage(text));
        }
        let library = library(&self.name);
        for (file, text) in FILES {
            let path = folder.join(file);
            let text = match *file {
                // The only file in which the capital words might stand for anything else is a shader.
                file if file.starts_with("shaders") => (*text).to_owned(),
                _ => text
                    .replace("LIBRARY", &library)
                    .replace("NAME", &self.name)
                    .replace("{ ABI", &abi)
                    .replace("{ KIT", &kit),
            };
            let parent = path.parent().unwrap_or(&folder);
            std::fs::create_dir_all(parent).map_err(|error| trouble(parent, &error))?;
            std::fs::write(&path, text).map_err(|error| trouble(&path, &error))?;
        }
        let files: Vec<PathBuf> = FILES.iter().map(|row| folder.join(row.0)).collect();
        let text = format!(
            "{} has {} files. Next:\n\n  cd {}\n  cargo build --release\n  nxv pack check target/release/{library}\n",
            folder.display(),
            files.len(),
            folder.display()
        );
        let json = serde_json::json!({
            "folder": shown(&folder), "files": files.iter().map(|file| shown(file)).collect::<Vec<_>>(),
            "library": library,
        });
        Ok(Outcome::good(text, json))
    }
}

/// The name is pack id, part of a crate name and of a file name.
fn name(name: &str) -> Result<String, String> {
    let ordinary = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
    let starts = name.starts_with(|c: char| c.is_ascii_lowercase());
    if !starts || name.len() > 48 || name == "host" || !name.chars().all(ordinary) {
        return Err(format!(
            "expected a name of at most 48 lower-case letters, digits, - and _ that begins with a letter and is not host, got: {name}"
        ));
    }
    Ok(name.to_owned())
}

/// The folder of the nx-vulkan-abi crate, absolute. The kit has to be the one beside it, which is built with this crate.
fn abi(path: &str) -> Result<PathBuf, String> {
    let holds = |path: &Path, name: &str| {
        std::fs::read_to_string(path.join("Cargo.toml"))
            .is_ok_and(|text| text.contains(&format!("name = \"{name}\"")))
    };
    let absolute = Path::new(path).canonicalize().ok();
    let found = absolute
        .filter(|path| holds(path, "nx-vulkan-abi") && holds(&kit(path), "nx-vulkan-pack-kit"));
    found.ok_or_else(|| {
        format!("expected the folder of the crate nx-vulkan-abi in a checkout, got: {path}")
    })
}

/// The folder of the kit, by that of the nx-vulkan-abi crate.
fn kit(abi: &Path) -> PathBuf {
    abi.with_file_name("packs").join("kit")
}

/// The start of a dependency on a crate in that folder.
fn local(path: &Path) -> Result<String, Problem> {
    let text = path
        .to_str()
        .ok_or_else(|| Problem::Usage(format!("--abi: {} is not UTF-8", path.display())))?;
    Ok(format!("{{ path = {}", toml_edit::Value::from(text)))
}

/// File name of the library that cargo makes of the crate.
fn library(name: &str) -> String {
    format!(
        "{}nx_vulkan_pack_{}{}",
        std::env::consts::DLL_PREFIX,
        name.replace('-', "_"),
        std::env::consts::DLL_SUFFIX
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_cannot_be_a_crate_are_refused() {
        for good in ["gauss", "my-pack_2"] {
            assert_eq!(name(good), Ok(good.to_owned()));
        }
        for bad in [
            "",
            "2d",
            "My",
            "a/b",
            "host",
            "ä",
            "a b",
            "-a",
            &"a".repeat(60),
        ] {
            assert!(name(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_library_is_what_cargo_calls_it() {
        let name = library("my-pack");
        assert!(name.contains("nx_vulkan_pack_my_pack"), "{name}");
    }
}
