//! The end of the process: nothing of ours is inside a driver or a compiler while their exit handlers run, and what
//! hangs in one of them does not keep the process from ending.

use crate::{Error, Kind};
use std::{
    sync::{
        Mutex, MutexGuard, OnceLock, PoisonError, Weak,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread::{Builder, JoinHandle},
    time::{Duration, Instant},
};

/// How long the end of the process waits for the device and for what is inside a driver.
const PATIENCE: Duration = Duration::from_secs(2);
const POLL: Duration = Duration::from_millis(1);

static ENDING: AtomicBool = AtomicBool::new(false);
static INSIDE: AtomicUsize = AtomicUsize::new(0);
/// A device was lost: its work may never end.
static CUT_SHORT: AtomicBool = AtomicBool::new(false);
// Locks of the standard library, which need nothing of a thread: an exit handler runs when much of it is gone.
static STREAMS: Mutex<Vec<Weak<dyn Stop>>> = Mutex::new(Vec::new());
static THREADS: Mutex<Vec<JoinHandle<()>>> = Mutex::new(Vec::new());

/// Work that goes on in the background.
pub(crate) trait Stop: Send + Sync {
    /// Stops everything because the process ends; false when something is still under way at `deadline`. Without `ask` the
    /// driver must not be called any more, and what was not seen done counts as under way.
    fn stop(&self, deadline: Instant, ask: bool) -> bool;
}

/// Lives while a thread is inside a driver or a compiler.
#[derive(Debug)]
pub(crate) struct Inside(());

/// Says that this thread goes into a driver or a compiler; `None` once the process ends.
pub(crate) fn enter() -> Option<Inside> {
    INSIDE.fetch_add(1, Ordering::SeqCst);
    let inside = Inside(());
    (!ENDING.load(Ordering::SeqCst)).then_some(inside)
}

impl Drop for Inside {
    fn drop(&mut self) {
        INSIDE.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Runs `work`, which enters a driver and may be stuck there, on a thread of its own that nobody has to wait for. The end
/// of the process waits for the thread to be gone: drivers run code of theirs when a thread ends, too.
///
/// # Errors
/// The system's, when it has no room for a thread.
pub(crate) fn spawn(thread: Builder, work: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    lock(&THREADS).push(thread.spawn(work)?);
    join_finished();
    Ok(())
}

/// Waits for threads of [`spawn`] that have done their work and are about to be gone. Some drivers hang where a thread
/// that was inside them ends while a device is destroyed.
pub(crate) fn join_finished() {
    // The end of the process waits for the lock, and so for those that are being joined.
    lock(&THREADS)
        .extract_if(.., |thread| thread.is_finished())
        .for_each(|thread| drop(thread.join()));
}

/// Whether the process ends.
pub(crate) fn is_ending() -> bool {
    ENDING.load(Ordering::Relaxed)
}

pub(crate) fn error() -> Error {
    Error::new(
        Kind::DeviceLost,
        "the process is ending, and nothing is computed any more",
    )
}

/// Has the end of the process stop `stream`. The handler that was registered last runs first, and drivers register theirs
/// when they are loaded: so this is done for every device that opens.
pub(crate) fn stop_at_exit(stream: Weak<dyn Stop>) {
    let mut streams = lock(&STREAMS);
    streams.retain(|weak| weak.strong_count() > 0);
    streams.push(stream);
    register();
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn register() {
    unsafe extern "C" {
        fn on_exit(
            handler: extern "C" fn(libc::c_int, *mut libc::c_void),
            argument: *mut libc::c_void,
        ) -> libc::c_int;
    }
    extern "C" fn handler(status: libc::c_int, _: *mut libc::c_void) {
        end(status);
    }
    // SAFETY: the handler is a plain function of a library that stays loaded.
    unsafe { on_exit(handler, std::ptr::null_mut()) };
}

/// Other systems do not tell a handler the status: a process that is cut short there ends with 1.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn register() {
    extern "C" fn handler() {
        end(1);
    }
    // SAFETY: the handler is a plain function of a library that stays loaded.
    unsafe { libc::atexit(handler) };
}

/// Stops everything of this library, waiting two seconds at most for the devices' work and for what is inside a driver.
/// From now on every call fails. For a process that is about to end: once its exit handlers run it is too late to ask a
/// driver, since parts of it may be torn down before anybody else gets a turn.
pub fn stop() {
    stop_all(true);
}

/// The last handler: what does not stop makes the process end here and now, without the handlers of drivers, which would
/// wait for it, or pull the memory away under it.
fn end(status: libc::c_int) {
    if !stop_all(false) {
        // SAFETY: it ends the process, whatever state that is in.
        unsafe { libc::_exit(status) };
    }
}

/// Whether all has stopped. With `ask` drivers may be asked how far they are.
fn stop_all(ask: bool) -> bool {
    static DEADLINE: OnceLock<Instant> = OnceLock::new();
    ENDING.store(true, Ordering::SeqCst);
    nx_vulkan_registry::end();
    let deadline = *DEADLINE.get_or_init(|| Instant::now() + PATIENCE);
    let streams: Vec<_> = lock(&STREAMS).iter().filter_map(Weak::upgrade).collect();
    let mut threads = lock(&THREADS);
    crate::shared_memory::unlink_all();
    let stopped = !CUT_SHORT.load(Ordering::SeqCst)
        && streams.iter().all(|stream| stream.stop(deadline, ask))
        && until(deadline, || INSIDE.load(Ordering::SeqCst) == 0)
        && until(deadline, || threads.iter().all(JoinHandle::is_finished));
    // Dropped here, a last handle would go through the driver again.
    std::mem::forget(streams);
    if stopped {
        threads.drain(..).for_each(|thread| drop(thread.join()));
    }
    stopped
}

/// Has the process end without waiting for anything, once it ends.
pub(crate) fn cut_short() {
    CUT_SHORT.store(true, Ordering::SeqCst);
}

/// Waits until `done`, at most until `deadline`; whether it is done.
pub(crate) fn until(deadline: Instant, mut done: impl FnMut() -> bool) -> bool {
    loop {
        if done() {
            return true;
        }
        if Instant::now() >= deadline {
            return false;
        }
        std::thread::sleep(POLL);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
