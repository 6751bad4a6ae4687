//! The end of the process: nothing of ours is inside a driver or a compiler while their exit handlers run, and what
//! hangs in one of them does not keep the process from ending.

use crate::{Error, Kind, queue::Stream};
use std::{
    sync::{
        Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

/// How long the end of the process waits for the device and for what is inside a driver.
const PATIENCE: Duration = Duration::from_secs(2);
const POLL: Duration = Duration::from_millis(1);

static ENDING: AtomicBool = AtomicBool::new(false);
static INSIDE: AtomicUsize = AtomicUsize::new(0);
/// A device was lost: its work may never end.
static CUT_SHORT: AtomicBool = AtomicBool::new(false);
static STREAMS: Mutex<Vec<Weak<Stream>>> = Mutex::new(Vec::new());

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

/// Has the end of the process stop `stream`. Drivers register their handlers when they are loaded, and the last one
/// registered runs first: so this is done for every device that opens.
pub(crate) fn stop_at_exit(stream: Weak<Stream>) {
    let mut streams = streams();
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

/// Stops everything. What does not stop in time makes the process end here and now, without the handlers of drivers:
/// they would wait for it, or pull the memory away under it.
fn end(status: libc::c_int) {
    ENDING.store(true, Ordering::SeqCst);
    let deadline = Instant::now() + PATIENCE;
    let streams: Vec<_> = streams().iter().filter_map(Weak::upgrade).collect();
    let stopped = !CUT_SHORT.load(Ordering::SeqCst)
        && streams.iter().all(|stream| stream.end(deadline))
        && until(deadline, || INSIDE.load(Ordering::SeqCst) == 0);
    // Dropped here, a last handle would go through the driver again.
    std::mem::forget(streams);
    if !stopped {
        // SAFETY: it ends the process, whatever state that is in.
        unsafe { libc::_exit(status) };
    }
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

fn streams() -> MutexGuard<'static, Vec<Weak<Stream>>> {
    STREAMS.lock().unwrap_or_else(PoisonError::into_inner)
}
