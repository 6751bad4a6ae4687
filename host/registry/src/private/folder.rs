//! An open folder that only this user and root can change, and the files in it.

use super::{content, descriptor, random, weakness};
use parking_lot::Mutex;
use std::{
    collections::BTreeSet,
    ffi::OsStr,
    fs::File,
    io::{self, Write as _},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    time::Duration,
};

/// Beginning and end of what files are called until they are complete, and after how long nobody is still writing one.
const TEMPORARY: [&str; 2] = [".", ".tmp"];
const ABANDONED: Duration = Duration::from_secs(3600);

/// A folder whose files are read and written relative to it, so that it does not matter what its path leads to now.
#[derive(Debug)]
pub struct Folder {
    folder: File,
    path: PathBuf,
}

impl Folder {
    /// The folder at `path` that `through` was opened for.
    pub(super) fn new(through: &File, path: PathBuf) -> io::Result<Folder> {
        let folder = descriptor::reading(through, OsStr::new("."))?;
        Ok(Folder { folder, path })
    }

    /// Where it was when it was opened, for messages and for those who cannot do without a path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The folder of that name in it, created where it is missing.
    pub fn within(&self, name: &str) -> io::Result<Folder> {
        let own = OsStr::new(name);
        let opened = match descriptor::through(&self.folder, own) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                match descriptor::make_folder(&self.folder, own) {
                    Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
                    _ => descriptor::through(&self.folder, own),
                }
            }
            opened => opened,
        };
        let path = self.path.join(name);
        let shown =
            |why: &dyn std::fmt::Display| io::Error::other(format!("{} {why}", path.display()));
        let opened = opened.map_err(|error| shown(&format_args!("cannot be opened: {error}")))?;
        match weakness(&opened.metadata()?) {
            Some(why) => Err(shown(&why)),
            None => Folder::new(&opened, path),
        }
    }

    /// Opens a regular file of this user or root that nobody else can write to.
    pub fn open(&self, name: &str) -> io::Result<File> {
        let file = descriptor::reading(&self.folder, OsStr::new(name))?;
        own(file)
    }

    /// The content of such a file, of at most `most` bytes; `None` where there is nothing of that name.
    pub fn read(&self, name: &str, most: u64) -> io::Result<Option<Vec<u8>>> {
        match self.open(name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            opened => content(&opened?, most).map(Some),
        }
    }

    /// Creates a file that only this user can read and write; what had the name is removed.
    pub fn create(&self, name: &str) -> io::Result<File> {
        let own = OsStr::new(name);
        match descriptor::new_file(&self.folder, own, 0o600) {
            // Left behind by a process that was killed while it wrote.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                self.remove(name)?;
                descriptor::new_file(&self.folder, own, 0o600)
            }
            opened => opened,
        }
    }

    /// Opens a file that stays, for a lock on it.
    pub fn keep(&self, name: &str) -> io::Result<File> {
        descriptor::any_file(&self.folder, OsStr::new(name), 0o600).and_then(own)
    }

    /// Writes a file that appears under its name complete or not at all, whoever else writes it at the same time, and
    /// that only this user can read. Where it has to survive a power failure it is `durable`, which takes milliseconds.
    pub fn write(&self, name: &str, parts: &[&[u8]], durable: bool) -> io::Result<()> {
        self.sweep_once();
        // Not by the process's number, which another one may have that sees this folder from a container.
        let [begin, end] = TEMPORARY;
        let temporary = format!("{begin}{:016x}{end}", random());
        let created = descriptor::new_file(&self.folder, OsStr::new(&temporary), 0o600);
        let written = created.and_then(|mut file| {
            for part in parts {
                file.write_all(part)?;
            }
            if durable {
                file.sync_all()?;
            }
            self.rename(&temporary, name)?;
            if durable { self.sync() } else { Ok(()) }
        });
        written.inspect_err(|_| {
            // Absent when it could not be created or was renamed already.
            let _ = self.remove(&temporary);
        })
    }

    /// Removes what processes left behind that were killed while they wrote, the first time that this one writes here.
    fn sweep_once(&self) {
        static SWEPT: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
        if !SWEPT.lock().insert(self.path.clone()) {
            return;
        }
        let [begin, end] = TEMPORARY;
        let names = self.names().into_iter();
        for name in names.filter(|name| name.starts_with(begin) && name.ends_with(end)) {
            let changed = self
                .open(&name)
                .and_then(|file| file.metadata()?.modified());
            if changed.is_ok_and(|at| at.elapsed().is_ok_and(|age| age > ABANDONED)) {
                // Absent when another process was faster.
                let _ = self.remove(&name);
            }
        }
    }

    /// Renames what lies in it.
    pub fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        descriptor::rename(&self.folder, OsStr::new(from), OsStr::new(to))
    }

    /// Removes a file that lies in it.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        descriptor::remove(&self.folder, OsStr::new(name))
    }

    /// Makes sure that what was created and renamed in it is on the disk.
    pub fn sync(&self) -> io::Result<()> {
        self.folder.sync_all()
    }

    /// Whether somebody removed it since it was opened.
    pub fn is_gone(&self) -> bool {
        self.folder.metadata().is_ok_and(|meta| meta.nlink() == 0)
    }

    /// Names of what lies in it, those that are text.
    pub fn names(&self) -> Vec<String> {
        let names = descriptor::names(&self.folder).unwrap_or_default();
        let text = names.into_iter().map(|name| name.into_string());
        text.filter_map(Result::ok).collect()
    }
}

/// The file, if it is a regular one that nobody but this user and root can change.
fn own(file: File) -> io::Result<File> {
    let meta = file.metadata()?;
    if !meta.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    match weakness(&meta) {
        Some(why) => Err(io::Error::other(format!("it {why}"))),
        None => Ok(file),
    }
}
