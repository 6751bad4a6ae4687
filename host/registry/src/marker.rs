//! Crash markers: a file in the store for each content that a process is just mapping. One that its process left
//! behind tells the next process what it died of.
//!
//! A marker is locked for as long as its process lives, whatever ends that. So two processes that load the same
//! pack at once do not take each other for dead, even where they see different process ids. A process that ends in order
//! says so in the names of its markers, but of those of the thread that ends it: there the pack did.

use super::{diagnostic::clean, private::Folder, spelling::is_sha256};
use std::{
    fs::{self, File},
    io::{self, Read as _, Write as _},
    os::unix::fs::MetadataExt as _,
    sync::{
        Arc, Mutex, MutexGuard, Once, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    time::{SystemTime, UNIX_EPOCH},
};

const PREFIX: &str = "loading-";

/// What the name of the marker of a second chance ends with.
const AGAIN: &str = "-again";
/// And that of one whose process ended in order.
const ENDED: &str = "-ended";

/// Bytes of a marker that are read.
const MAX_BYTES: u64 = 4096;

/// Characters of a marker that are shown.
const MAX_SHOWN: usize = 1000;

/// The marker of a load in progress; dropping it says that the process survived.
#[derive(Debug)]
pub(super) struct Marker {
    store: Arc<Folder>,
    name: String,
    /// Holds the lock.
    _file: File,
}

/// A marker whose process is gone.
#[derive(Debug)]
pub(super) struct Abandoned {
    pub(super) sha256: String,
    /// Which process it was, and what it loaded.
    pub(super) what: String,
    store: Arc<Folder>,
    name: String,
    _lock: File,
}

impl Marker {
    /// Leaves a marker for `sha256` in the folder `store`, on the disk when this returns. `what` is one line.
    pub(super) fn leave(
        store: &Arc<Folder>,
        sha256: &str,
        what: &str,
        is_second: bool,
    ) -> io::Result<Marker> {
        let pid = std::process::id();
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let again = if is_second { AGAIN } else { "" };
        let name = format!("{PREFIX}{sha256}-{pid}-{}{again}", now.as_nanos());
        let hidden = format!(".{name}");
        // It gets its name when it is locked and written: until then nobody takes it for a marker.
        let mut file = store.create(&hidden)?;
        let left = file.try_lock().map_err(io::Error::from).and_then(|()| {
            let process = format!("process {pid}, started at {}", started());
            writeln!(file, "{process}, ended while it loaded {what}")?;
            file.sync_all()?;
            appear(store, &hidden, &name)?;
            store.sync()
        });
        match left {
            Ok(()) => Ok(Marker {
                store: store.clone(),
                name,
                _file: file,
            }),
            Err(error) => {
                let _ = store.remove(&hidden).or_else(|_| store.remove(&name));
                Err(error)
            }
        }
    }
}

impl Drop for Marker {
    fn drop(&mut self) {
        let mut living = living();
        living.markers.retain(|(_, name, _)| *name != self.name);
        // Before the lock goes with the file, so that nobody finds it unlocked under its name. What cannot be
        // removed is evidence against a good pack at the next start, which says so.
        let _ = self.store.remove(&self.name);
    }
}

/// The markers of this process, each with the thread that loads.
#[derive(Debug)]
struct Living {
    has_ended: bool,
    markers: Vec<(Arc<Folder>, String, usize)>,
}

// A lock of the standard library, which needs nothing of a thread: an exit handler runs when much of it is gone.
static LIVING: Mutex<Living> = Mutex::new(Living {
    has_ended: false,
    markers: Vec::new(),
});

/// The process that has markers; a fork of it has none.
static OWNER: AtomicU32 = AtomicU32::new(0);

fn living() -> MutexGuard<'static, Living> {
    LIVING.lock().unwrap_or_else(PoisonError::into_inner)
}

fn this_thread() -> usize {
    // SAFETY: it takes nothing and cannot fail.
    (unsafe { libc::pthread_self() }) as usize
}

/// Says in the names of this process's markers that it ends in order. Loads that go on leave none from then on.
pub fn end() {
    if OWNER.load(Ordering::Relaxed) != std::process::id() {
        return;
    }
    let mut living = living();
    living.has_ended = true;
    let thread = this_thread();
    for (store, name, _) in living.markers.iter().filter(|(_, _, own)| *own != thread) {
        let _ = store.rename(name, &format!("{name}{ENDED}"));
    }
}

/// Gives a marker its name, unless the process ends already.
fn appear(store: &Arc<Folder>, hidden: &str, name: &str) -> io::Result<()> {
    extern "C" fn at_exit() {
        end();
    }
    static REGISTERED: Once = Once::new();
    REGISTERED.call_once(|| {
        OWNER.store(std::process::id(), Ordering::Relaxed);
        // SAFETY: the handler is a plain function of a library that stays loaded. Without room for it a marker keeps its name.
        let _ = unsafe { libc::atexit(at_exit) };
    });
    let mut living = living();
    if living.has_ended {
        return store.remove(hidden);
    }
    store.rename(hidden, name)?;
    let own = (store.clone(), name.to_owned(), this_thread());
    living.markers.push(own);
    Ok(())
}

impl Abandoned {
    /// The markers in `store` that no living process holds.
    pub(super) fn all(store: &Arc<Folder>) -> Vec<Abandoned> {
        let names = store.names().into_iter();
        names.filter_map(|name| of(store, name)).collect()
    }

    /// Whether its process ended in order, so that the content need not have to do with it.
    pub(super) fn has_ended(&self) -> bool {
        self.name.ends_with(ENDED)
    }

    /// Whether that was the content's second chance.
    pub(super) fn is_second(&self) -> bool {
        self.name.ends_with(AGAIN)
    }

    /// Removes the marker: what it tells has been recorded.
    pub(super) fn clear(self) -> io::Result<()> {
        match self.store.remove(&self.name) {
            // Another process recorded the same.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            done => done,
        }
    }
}

fn of(store: &Arc<Folder>, name: String) -> Option<Abandoned> {
    let sha256 = sha256_in(&name)?.to_owned();
    let file = store.open(&name).ok()?;
    // Shared, so that processes that look at the same time do not take each other for the owner.
    file.try_lock_shared().ok()?;
    let mut text = String::new();
    (&file).take(MAX_BYTES).read_to_string(&mut text).ok()?;
    // Removed between opening and locking it: its process lives.
    if file.metadata().ok()?.nlink() == 0 {
        return None;
    }
    Some(Abandoned {
        sha256,
        what: clean(text.trim_end(), MAX_SHOWN),
        store: store.clone(),
        name,
        _lock: file,
    })
}

/// The hash in the name of a marker.
pub(super) fn sha256_in(name: &str) -> Option<&str> {
    let (sha256, _) = name.strip_prefix(PREFIX)?.split_once('-')?;
    is_sha256(sha256).then_some(sha256)
}

/// When this process started, in clock ticks after the machine, where the system tells; for a reader of the marker.
fn started() -> String {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The second field is the program's name in parentheses, which may hold anything.
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
    match fields.split_ascii_whitespace().nth(19) {
        Some(ticks) => format!("tick {ticks}"),
        None => "an unknown time".to_owned(),
    }
}
