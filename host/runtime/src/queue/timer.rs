//! The timer of a queue: a thread that submits what was recorded and nobody waited for.

use super::{Stream, lock};
use crate::{Error, Kind, Result};
use std::{
    sync::{
        Arc, Condvar, Mutex, Once, Weak,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::Duration,
};

/// How often the timer looks at an open command buffer.
const TICK: Duration = Duration::from_micros(60);
/// Ticks without work after which the timer sleeps until it is woken.
const QUIET_TICKS: u32 = 40;

/// Work for the timer's thread while nothing is being recorded.
pub(crate) struct Quiet(pub(crate) Box<dyn Fn() + Send + Sync>);

impl std::fmt::Debug for Quiet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Quiet")
    }
}

#[derive(Debug, Default)]
pub(super) struct Timer {
    sleeping: AtomicBool,
    stop: AtomicBool,
    lock: Mutex<()>,
    wake: Condvar,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// Streams whose timers must stop before the driver's own exit handlers run.
static LIVE: Mutex<Vec<Weak<Stream>>> = Mutex::new(Vec::new());

impl Timer {
    /// Starts the timer of `stream`.
    pub(super) fn start(stream: &Arc<Stream>) -> Result<()> {
        let weak = Arc::downgrade(stream);
        let thread = std::thread::Builder::new()
            .name("nx_vulkan-timer".to_owned())
            .spawn({
                let weak = weak.clone();
                move || run_timer(&weak)
            })
            .map_err(|e| {
                Error::new(
                    Kind::Io,
                    format!("the submission timer could not be started: {e}"),
                )
            })?;
        *lock(&stream.timer.thread) = Some(thread);
        stop_at_exit(weak);
        Ok(())
    }
}

impl Stream {
    /// Ends the timer's thread, so that nothing of the queue runs in the background any more.
    pub(crate) fn stop_timer(&self) {
        self.timer.stop.store(true, Ordering::Release);
        self.timer.notify();
        if let Some(thread) = lock(&self.timer.thread).take() {
            // A timer that panicked has stopped too.
            drop(thread.join());
        }
    }

    /// Submits an open command buffer if there is one. Returns whether the timer has to look again soon.
    fn tick(&self) -> bool {
        let Ok(mut open) = self.open.try_lock() else {
            return true;
        };
        if open.commands == 0 {
            return false;
        }
        if let Err(error) = self.submit(&mut open) {
            open.failure.get_or_insert(error);
        }
        true
    }
}

fn run_timer(stream: &Weak<Stream>) {
    let mut quiet = 0;
    while let Some(stream) = stream.upgrade() {
        if stream.timer.stop.load(Ordering::Acquire) {
            return;
        }
        quiet = if stream.tick() { 0 } else { quiet + 1 };
        if quiet < QUIET_TICKS {
            drop(stream);
            std::thread::sleep(TICK);
        } else {
            (stream.when_quiet.0)();
            stream.timer.sleep();
            quiet = 0;
        }
    }
}

/// A driver tears itself down in an exit handler; a thread of ours that is inside it then would crash the process.
/// Ours is registered after the driver's, so it runs first.
fn stop_at_exit(stream: Weak<Stream>) {
    extern "C" fn stop_all() {
        for stream in lock(&LIVE).drain(..).filter_map(|weak| weak.upgrade()) {
            stream.stop_timer();
        }
    }
    static REGISTER: Once = Once::new();
    // SAFETY: the handler is a plain function of a library that stays loaded.
    REGISTER.call_once(|| unsafe {
        libc::atexit(stop_all);
    });
    let mut live = lock(&LIVE);
    live.retain(|weak| weak.strong_count() > 0);
    live.push(stream);
}

impl Timer {
    pub(super) fn notify(&self) {
        if self.sleeping.load(Ordering::Acquire) {
            let _guard = lock(&self.lock);
            self.wake.notify_one();
        }
    }

    /// Sleeps until something is recorded. The time limit covers work recorded just before `sleeping` was set.
    fn sleep(&self) {
        let guard = lock(&self.lock);
        self.sleeping.store(true, Ordering::Release);
        let result = self.wake.wait_timeout(guard, Duration::from_millis(100));
        self.sleeping.store(false, Ordering::Release);
        drop(result);
    }
}
