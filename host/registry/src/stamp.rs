//! What tells apart two states of a file without reading it.

use std::{
    fs::Metadata,
    os::unix::fs::MetadataExt as _,
    time::{Duration, SystemTime},
};

/// The state of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    device: u64,
    inode: u64,
    len: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    /// The state that `meta` tells of.
    pub fn of(meta: &Metadata) -> Stamp {
        Stamp {
            device: meta.dev(),
            inode: meta.ino(),
            len: meta.len(),
            modified: (meta.mtime(), meta.mtime_nsec()),
            changed: (meta.ctime(), meta.ctime_nsec()),
        }
    }

    /// Whether it is older at `now` than `tick`, what the file system's clock goes by at once: every later change then gives
    /// another stamp. Nobody sets the time of the last change but by the system's clock.
    pub fn is_settled(&self, now: SystemTime, tick: Duration) -> bool {
        let now = now.duration_since(SystemTime::UNIX_EPOCH);
        let (seconds, nanoseconds) = self.changed;
        let at = u64::try_from(seconds).map(Duration::from_secs);
        let at = at.map(|at| at + Duration::from_nanos(nanoseconds.unsigned_abs()));
        matches!((at, now), (Ok(at), Ok(now)) if at + tick < now)
    }
}
