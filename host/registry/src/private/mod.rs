//! Who else could have written this: the owner and mode of files and of every folder above them, and files that are read
//! and written so that nobody can change them in between. What is in them is decided elsewhere.
//!
//! A path is gone through once, component by component, each opened relative to the one before and looked at through its
//! own descriptor; symbolic links are read there and gone through alike. What was looked at is what is used.

mod descriptor;
mod folder;
mod sealed;
mod temporary;
#[cfg(test)]
mod tests;
mod walk;

pub use descriptor::{names, reading};
pub use folder::Folder;
pub use sealed::Sealed;
pub use temporary::Temporary;
pub(crate) use walk::Opened;
pub use walk::{open_file, open_folder};

use std::{
    fs::{File, Metadata},
    hash::{BuildHasher as _, Hasher as _, RandomState},
    io::{self, Read as _},
    os::unix::fs::MetadataExt as _,
};

/// What a folder has to be so that what lies in it counts as written by this user or root.
///
/// In a folder with the sticky bit, such as /tmp, only its owner and the owner of an entry can rename or remove the entry,
/// so what this user has there stays what it is while it exists. But anybody can take a name before this user does, or
/// once a cleaner has removed it, and everybody can see that coming. So a folder below /tmp is good enough for
/// development; what must not depend on luck lies elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// It and every folder above it can be changed by this user and root only.
    Private,
    /// The same, but folders with the sticky bit may be above it.
    Sticky,
}

/// The largest file of any kind that is read where nothing else is said.
pub const MAX_BYTES: u64 = 256 << 20;

/// Who besides this user and root may change what `meta` belongs to, as the end of a sentence; `None`: nobody.
pub fn weakness(meta: &Metadata) -> Option<String> {
    let user = user();
    let mode = meta.mode() & 0o7777;
    match () {
        () if meta.uid() != user && meta.uid() != 0 => {
            Some(format!("belongs to user {}, not {user}", meta.uid()))
        }
        () if mode & 0o002 != 0 => Some(format!("is writable for everyone (mode {mode:o})")),
        () if mode & 0o020 != 0 => Some(format!("is writable for its group (mode {mode:o})")),
        () => None,
    }
}

/// What nobody else guesses, so that nobody has taken a name with it.
pub fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

fn user() -> u32 {
    // SAFETY: geteuid takes nothing, touches no memory and cannot fail.
    unsafe { libc::geteuid() }
}

/// The content of an open regular file of at most `most` bytes.
pub fn content(file: &File, most: u64) -> io::Result<Vec<u8>> {
    let meta = file.metadata()?;
    if !meta.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let fits = |len: u64| match len > most {
        true => Err(io::Error::other(format!(
            "it has {len} bytes; at most {most} are read"
        ))),
        false => Ok(()),
    };
    fits(meta.len())?;
    let mut bytes = Vec::new();
    file.take(most + 1).read_to_end(&mut bytes)?;
    fits(bytes.len() as u64)?;
    Ok(bytes)
}
