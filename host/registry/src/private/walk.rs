//! Going through a path component by component, looking at each through its own descriptor.

use super::{Folder, Rule, descriptor, weakness};
use std::{
    ffi::{OsStr, OsString},
    fs::File,
    io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

/// Symbolic links on one path, as Linux has it.
const MAX_LINKS: usize = 40;

/// The bit of a mode that lets only owners rename and remove entries.
const STICKY: u32 = 0o1000;

/// A file or folder that was opened for reading, and who else could have put it there.
#[derive(Debug)]
pub struct Opened {
    pub file: File,
    /// Who else could change it or a folder above it, each a sentence, its own first.
    pub weaknesses: Vec<String>,
}

/// Opens what is at `path`, whoever could have written it. A symbolic link at the end is followed only where `follows`;
/// a FIFO does not block.
pub fn open_file(path: &Path, follows: bool) -> io::Result<Opened> {
    let mut walk = Walk::new(path, None)?;
    let file = loop {
        let Some(name) = walk.left.pop() else {
            break descriptor::reading(&walk.here().folder, OsStr::new("."))?;
        };
        if !walk.left.is_empty() || name == ".." || name == "/" {
            walk.enter(&name, false)?;
            continue;
        }
        match descriptor::reading(&walk.here().folder, &name) {
            Err(error) if follows => walk.follow(&name, error)?,
            opened => break opened?,
        }
    };
    let own = weakness(&file.metadata()?).map(|why| format!("{} {why}", path.display()));
    let mut weaknesses = Vec::from_iter(own);
    walk.pass();
    for why in walk.passed {
        if !weaknesses.contains(&why) {
            weaknesses.push(why);
        }
    }
    Ok(Opened { file, weaknesses })
}

/// Opens the folder at `path` if nobody but this user and root could have changed what is in it, as `rule` has it. Where
/// it is missing it is created if `create`, else the answer is `None`.
///
/// # Errors
/// Which folder somebody else could change, or why it cannot be had.
pub fn open_folder(path: &Path, rule: Rule, create: bool) -> io::Result<Option<Folder>> {
    let mut walk = Walk::new(path, Some(rule))?;
    while let Some(name) = walk.left.pop() {
        match walk.enter(&name, create) {
            Err(error) if !create && error.kind() == io::ErrorKind::NotFound => return Ok(None),
            entered => entered?,
        }
    }
    let Level { folder, path, weak } = walk.above.pop().expect("the root is never left");
    match weak {
        None => Folder::new(&folder, path).map(Some),
        Some(why) => Err(io::Error::other(why)),
    }
}

/// A path that is being gone through.
struct Walk {
    /// What the folders have to be; without it they may be anything.
    rule: Option<Rule>,
    /// The folders that lead to where it is, the root first.
    above: Vec<Level>,
    /// Who else could have changed what led to where it is, folders that links led out of among them.
    passed: Vec<String>,
    /// What is still to come, the next last.
    left: Vec<OsString>,
    links: usize,
}

struct Level {
    folder: File,
    path: PathBuf,
    /// Who else could change what is in it.
    weak: Option<String>,
}

impl Walk {
    fn new(path: &Path, rule: Option<Rule>) -> io::Result<Walk> {
        let mut walk = Walk {
            rule,
            above: Vec::new(),
            passed: Vec::new(),
            left: Vec::new(),
            links: 0,
        };
        walk.push(descriptor::root()?, PathBuf::from("/"))?;
        walk.plan(&std::path::absolute(path)?);
        Ok(walk)
    }

    fn here(&self) -> &Level {
        self.above.last().expect("the root is never left")
    }

    /// Goes to `path`, from the root or from here, before what is left.
    fn plan(&mut self, path: &Path) {
        let parts = path.components().rev();
        self.left
            .extend(parts.map(|part| part.as_os_str().to_owned()));
    }

    /// Goes on into a folder or the folder that a link of that name leads to.
    fn enter(&mut self, name: &OsStr, create: bool) -> io::Result<()> {
        match name.as_encoded_bytes() {
            b"." => return Ok(()),
            b"/" => {
                self.above.truncate(1);
                return Ok(());
            }
            b".." => {
                self.above
                    .truncate(self.above.len().saturating_sub(1).max(1));
                return Ok(());
            }
            _ => {}
        }
        let here = &self.here().folder;
        let mut opened = descriptor::through(here, name);
        let is_missing = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
        if create && opened.as_ref().is_err_and(is_missing) {
            match descriptor::make_folder(here, name) {
                // Somebody else was faster; whoever it was is looked at below.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                made => made?,
            }
            opened = descriptor::through(here, name);
        }
        match opened {
            Ok(folder) => {
                let path = self.here().path.join(name);
                self.push(folder, path)
            }
            Err(error) => self.follow(name, error),
        }
    }

    /// Follows the symbolic link of that name, if it is why opening it gave `error`.
    fn follow(&mut self, name: &OsStr, error: io::Error) -> io::Result<()> {
        if !matches!(error.raw_os_error(), Some(libc::ELOOP | libc::ENOTDIR)) {
            return Err(error);
        }
        let Ok(target) = descriptor::link(&self.here().folder, name) else {
            return Err(error);
        };
        let here = self.here();
        if let (Some(why), Some(_)) = (&here.weak, self.rule) {
            let link = here.path.join(name);
            let why = format!("{} is a symbolic link, and {why}", link.display());
            return Err(io::Error::other(why));
        }
        self.links += 1;
        if self.links > MAX_LINKS {
            return Err(io::Error::from_raw_os_error(libc::ELOOP));
        }
        self.pass();
        self.plan(Path::new(&target));
        Ok(())
    }

    /// Notes the folders above, the nearest first: what leads out of them depends on them too.
    fn pass(&mut self) {
        let above = self.above.iter().rev();
        self.passed
            .extend(above.filter_map(|level| level.weak.clone()));
    }

    fn push(&mut self, folder: File, path: PathBuf) -> io::Result<()> {
        let meta = folder.metadata()?;
        let weak = weakness(&meta).map(|why| format!("{} {why}", path.display()));
        // Whether others can put entries there, but cannot touch those of others.
        let is_sticky =
            meta.mode() & STICKY != 0 && (meta.uid() == super::user() || meta.uid() == 0);
        if let (Some(why), Some(rule)) = (&weak, self.rule)
            && !(is_sticky && rule == Rule::Sticky)
        {
            return Err(io::Error::other(why.clone()));
        }
        self.above.push(Level { folder, path, weak });
        Ok(())
    }
}
