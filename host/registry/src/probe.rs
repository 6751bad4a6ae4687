//! Trying a pack in a child process, where whatever it does ends that process and not this one.
//!
//! The child is `nxv-child probe FILE SHA256`, which calls [`serve`]. Native code that means harm is not contained by this: it is
//! for packs that are broken.

mod child;

pub use child::{Failure, Probed, serve};

use super::{private::Folder, target::target};
use child::Run;
use nx_vulkan_abi::ABI_VERSION;
use parking_lot::Mutex;
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

/// How long a pack may take to load and describe itself.
pub const TIMEOUT: Duration = Duration::from_secs(5);

/// How long a pack that did not finish is not tried again: the machine may have been busy.
const PATIENCE: Duration = Duration::from_secs(60);

/// Largest note that is read.
const MAX_NOTE: u64 = 4096;

/// Tries packs in child processes.
#[derive(Debug, Clone)]
pub struct Prober {
    program: PathBuf,
    timeout: Duration,
}

impl Prober {
    /// A prober that runs `program`, an `nxv-child` of this version.
    pub fn new(program: impl Into<PathBuf>) -> Prober {
        Prober {
            program: program.into(),
            timeout: TIMEOUT,
        }
    }

    /// The same with another limit than [`TIMEOUT`].
    pub fn timeout(self, timeout: Duration) -> Prober {
        Prober { timeout, ..self }
    }

    /// Maps the file in a child, lets the pack describe itself, asks each of its kernels, and retires it.
    ///
    /// # Errors
    /// When the pack breaks the contract, ends the child in whatever way or does not finish, and when there is no
    /// child to be had.
    pub fn run(&self, file: &Path) -> Result<Probed, Failure> {
        Run::start(&self.program, file, None)?.finish(self.timeout)
    }

    /// Runs it whatever is known of that content.
    pub(super) fn again(&self, file: &Path, sha256: &str) -> Result<(), Failure> {
        let run = Run::start(&self.program, file, Some(sha256))?;
        run.finish(self.timeout).map(drop)
    }

    /// Runs it unless it is known how that ends: for a content that went well with this version of the host in the
    /// store, for one that did not in this process.
    pub(super) fn admit(
        &self,
        file: &Path,
        sha256: &str,
        store: Option<&Folder>,
    ) -> Result<(), String> {
        static FAILED: Mutex<BTreeMap<String, (String, Option<Instant>)>> =
            Mutex::new(BTreeMap::new());
        let failed = || FAILED.lock();
        let note = format!("{sha256}.probed");
        if store.is_some_and(|store| is_noted(store, &note, sha256)) {
            return Ok(());
        }
        if let Some((reason, until)) = failed().get(sha256)
            && until.is_none_or(|until| Instant::now() < until)
        {
            return Err(reason.clone());
        }
        let run = Run::start(&self.program, file, Some(sha256));
        match run.and_then(|run| run.finish(self.timeout)) {
            Ok(_) => {
                // Without the note it is tried again at the next start, which costs milliseconds.
                let text = text(sha256);
                let _ = store.map(|store| store.write(&note, &[text.as_bytes()], false));
                Ok(())
            }
            Err(Failure { reason, may_pass }) => {
                let until = may_pass.then(|| Instant::now() + PATIENCE);
                failed().insert(sha256.to_owned(), (reason.clone(), until));
                Err(reason)
            }
        }
    }
}

/// The note that a content went well.
fn text(sha256: &str) -> String {
    let target = target();
    let version = env!("CARGO_PKG_VERSION");
    format!("nxv {version}, ABI {ABI_VERSION}, {target}: {sha256} is sound\n")
}

/// A note counts when only this user or root can have written it.
fn is_noted(store: &Folder, note: &str, sha256: &str) -> bool {
    let noted = store.read(note, MAX_NOTE).ok().flatten();
    noted.is_some_and(|noted| says_sound(&noted, sha256))
}

/// Whether a note is the one that this version of the host writes about that content.
pub(super) fn says_sound(note: &[u8], sha256: &str) -> bool {
    note == text(sha256).as_bytes()
}
