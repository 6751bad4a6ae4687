//! Code-free packs: a folder with `pack.toml` and GLSL and no library, whose plans the host makes from the table.
//!
//! `docs/code-free-packs.md` is the format. [`Table::parse`] and [`Expression::parse`] take any text, and
//! [`Table::plan`] any request, without a panic.

mod files;
pub(super) mod plan;
pub(super) mod row;
mod schema;
mod step;
mod table;
#[cfg(test)]
mod tests;
mod text;
mod types;

pub use super::expression::{Expression, Mistake};

use super::{
    identity::Identity,
    image::{Image, SourceContent, SourceFile},
    kernel::{KernelEntry, Planner},
};
use files::Files;
pub use files::MAX_DEPTH;
use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};
pub use table::Table;

/// Files that shaders and headers are in.
const GLSL: &[&str] = &["comp", "glsl"];

/// A folder as it was read.
#[derive(Debug)]
pub(super) struct FolderPack {
    folder: PathBuf,
    files: Files,
    weaknesses: Vec<String>,
    pub(super) sha256: String,
}

/// Whether `path` is a folder that holds a table, and neither a library nor a crate that builds one.
pub fn is_pack(path: &Path) -> bool {
    path.is_dir()
        && path.join(files::TABLE).exists()
        && libraries(path).is_ok_and(|found| found.is_empty())
}

/// What lies in a folder and makes it no pack without code: libraries, and what builds one.
///
/// # Errors
/// When the folder cannot be read.
pub fn libraries(folder: &Path) -> io::Result<Vec<String>> {
    let is_library = |path: &Path| {
        let extension = std::env::consts::DLL_EXTENSION;
        path.ends_with("Cargo.toml") || path.extension().is_some_and(|own| own == extension)
    };
    let paths = std::fs::read_dir(folder)?.flatten();
    let found = paths.filter(|entry| is_library(&entry.path()));
    let mut names: Vec<String> = found
        .map(|entry| entry.file_name().display().to_string())
        .collect();
    names.sort();
    Ok(names)
}

impl FolderPack {
    /// Reads a folder, and looks at nothing that it read. The error starts with the step that failed.
    pub(super) fn read(folder: &Path) -> Result<FolderPack, String> {
        let (files, weaknesses) = files::read(folder).map_err(|why| format!("read: {why}"))?;
        Ok(FolderPack {
            weaknesses,
            folder: folder.to_owned(),
            sha256: files::sha256(&files),
            files,
        })
    }

    /// What the table says. The error starts with the step that failed.
    pub(super) fn describe(&self) -> Result<Image, String> {
        let (mut sources, mut toml) = (Vec::new(), None);
        for (name, bytes) in &self.files {
            let path = self.folder.join(name);
            let extension = path.extension().and_then(|extension| extension.to_str());
            let is_glsl = extension.is_some_and(|extension| GLSL.contains(&extension));
            if !is_glsl && name != files::TABLE {
                continue;
            }
            let text = String::from_utf8(bytes.clone())
                .map_err(|_| format!("describe: {name} is not UTF-8"))?;
            if is_glsl {
                sources.push(SourceFile {
                    name: name.clone(),
                    content: SourceContent::Text(text),
                    path: Some(path),
                });
            } else {
                toml = Some(text);
            }
        }
        let toml = toml.ok_or_else(|| format!("describe: there is no {}", files::TABLE))?;
        let names: Vec<&str> = sources.iter().map(|source| source.name.as_str()).collect();
        let table = Table::parse(&self.folder.join(files::TABLE), &toml, &names)
            .map_err(|why| format!("describe: the table is wrong\n{why}"))?;
        let mut image = table.image(sources);
        image.table = Some(toml);
        Ok(image)
    }

    /// What the table calls itself. The error starts with the step that failed.
    pub(super) fn identity(&self) -> Result<Identity, String> {
        let Image { id, version, .. } = self.describe()?;
        let abi = schema::VERSION.to_owned();
        Ok(Identity { id, version, abi })
    }

    /// Who else could have changed it, what lies in it or a folder above, each a sentence.
    pub(super) fn weaknesses(&self) -> &[String] {
        &self.weaknesses
    }

    /// Bytes of all files.
    pub(super) fn bytes(&self) -> u64 {
        self.files.iter().map(|(_, bytes)| bytes.len() as u64).sum()
    }
}

impl Table {
    fn image(self, sources: Vec<SourceFile>) -> Image {
        let mut image = Image {
            id: self.id,
            version: self.version,
            sources,
            kernels: Vec::new(),
            warnings: Vec::new(),
            notes: Vec::new(),
            retire: nothing,
            table: None,
        };
        for (number, row) in (0..).zip(self.rows) {
            image.add_kernel(KernelEntry {
                pack: 0,
                id: row.id.clone(),
                op: row.op.clone(),
                row: number,
                inputs: row.inputs,
                outputs: row.outputs,
                needs: row.needs,
                numerics: row.numerics,
                rank: row.rank,
                offers: nx_vulkan_abi::Offers::NONE,
                plan: Planner::Table(Arc::new(row)),
            });
        }
        image
    }
}

/// A table runs nothing that would have to end.
extern "C" fn nothing() {}
