//! The log: what the host and its packs say waits here until the process of `Nx.Vulkan.Events` fetches it for Logger.

use crate::notes::notes;
use log::{Level, Log, Metadata, Record};
use nx_vulkan_host::stderr::{self, Line};
use parking_lot::Mutex;
use rustler::{
    Atom, Encoder, LocalPid, OwnedEnv,
    sys::{ErlNifPid, enif_whereis_pid},
};
use std::{
    mem::MaybeUninit,
    ptr::null_mut,
    sync::atomic::{AtomicBool, Ordering},
};

mod atoms {
    rustler::atoms! { error, warning, info, debug, nx_vulkan_log, events = "Elixir.Nx.Vulkan.Events" }
}

/// Lines that wait at most. What is said beyond goes to standard error.
const MOST: usize = 1000;

static WAITING: Mutex<Vec<Line>> = Mutex::new(Vec::new());
/// Whether the process was told that lines wait, and has not come yet.
static TOLD: AtomicBool = AtomicBool::new(false);

struct Waiting;

impl Log for Waiting {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &Record<'_>) {
        let Some(line) = Line::of(record) else {
            return;
        };
        let mut waiting = WAITING.lock();
        if waiting.len() == MOST {
            drop(waiting);
            return line.write();
        }
        waiting.push(line);
        drop(waiting);
        if TOLD.swap(true, Ordering::AcqRel) {
            return;
        }
        if !notes().is_ok_and(|notes| notes.send(Box::new(tell)).is_ok()) {
            self.flush();
        }
    }

    /// Nobody comes for them any more.
    fn flush(&self) {
        take().iter().for_each(Line::write);
    }
}

/// From now on the log waits here.
pub(crate) fn install() {
    stderr::take(&Waiting);
}

/// Tells the process that lines wait. Where there is none they go to standard error. Not for schedulers.
fn tell() {
    let sent = events().is_some_and(|pid| {
        let sent = OwnedEnv::new().send_and_clear(&pid, |env| atoms::nx_vulkan_log().encode(env));
        sent.is_ok()
    });
    if !sent {
        Waiting.flush();
    }
}

/// The process that keeps the log.
fn events() -> Option<LocalPid> {
    let name = OwnedEnv::new().run(|env| atoms::events().encode(env).as_c_arg());
    let mut pid = MaybeUninit::<ErlNifPid>::uninit();
    // SAFETY: an atom belongs to no env, and outside of schedulers no env is what the VM wants. It has written the pid where
    // it does not answer 0.
    unsafe {
        (enif_whereis_pid(null_mut(), name, pid.as_mut_ptr()) != 0)
            .then(|| LocalPid::from_c_arg(pid.assume_init()))
    }
}

/// `[{level, target, message}]`: what was said since the last call.
#[rustler::nif]
fn logged() -> Vec<(Atom, String, String)> {
    let level = |level| match level {
        Level::Error => atoms::error(),
        Level::Warn => atoms::warning(),
        Level::Info => atoms::info(),
        Level::Debug | Level::Trace => atoms::debug(),
    };
    let lines = take().into_iter();
    lines
        .map(|line| (level(line.level), line.target, line.message))
        .collect()
}

fn take() -> Vec<Line> {
    // First, so that a line that comes meanwhile is told.
    TOLD.store(false, Ordering::Release);
    std::mem::take(&mut *WAITING.lock())
}
