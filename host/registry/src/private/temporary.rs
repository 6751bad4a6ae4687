//! A folder for files that nobody needs afterwards, which nobody else can look into or could have made.

use super::{Folder, Rule, open_folder, random};
use nx_vulkan_ops::{Error, Kind, Result};
use std::{
    io,
    path::{Path, PathBuf},
};

/// Names that are tried before it is given up.
const TRIES: u32 = 1000;

/// A folder of this process; it goes with what is in it when it is dropped.
#[derive(Debug)]
pub struct Temporary {
    folder: Folder,
}

impl Temporary {
    /// A new folder, in the system's folder for temporary files.
    ///
    /// # Errors
    /// [`Kind::Io`] when it cannot be made there, or others could move what is made there.
    pub fn new() -> Result<Temporary> {
        let base = std::env::temp_dir();
        made(&base).map_err(|error| {
            let base = base.display();
            Error::new(
                Kind::Io,
                format!("no folder can be made in {base}: {error}"),
            )
        })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Writes a file in it and says where it is.
    ///
    /// # Errors
    /// [`Kind::Io`] when it cannot be written.
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<PathBuf> {
        let path = self.path().join(name);
        let failed =
            |error: io::Error| Error::new(Kind::Io, format!("{}: {error}", path.display()));
        self.folder.write(name, &[bytes], false).map_err(failed)?;
        Ok(path)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // A temporary folder that stays does no harm.
        drop(std::fs::remove_dir_all(self.path()));
    }
}

fn made(base: &Path) -> io::Result<Temporary> {
    for _ in 0..TRIES {
        let path = base.join(format!("nxv-{:016x}", random()));
        if path.symlink_metadata().is_ok() {
            continue;
        }
        let folder = open_folder(&path, Rule::Sticky, true)?;
        // Whoever was faster with that name: it is another one's, or not empty.
        match folder.filter(|folder| folder.names().is_empty()) {
            Some(folder) => return Ok(Temporary { folder }),
            None => continue,
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}
