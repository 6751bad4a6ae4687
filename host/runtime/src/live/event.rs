//! What is told to listeners, and written to the log.

use std::fmt;

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    /// A pack serves that did not before.
    PackAdded,
    /// Another content of a pack's file serves.
    PackReplaced,
    /// A pack no longer serves.
    PackRemoved,
    /// A pack's file or the registry's cannot be used; what served before still serves.
    Rejected,
    /// An edited shader serves, or the pack's own again.
    ShaderReplaced,
    /// An edited shader does not compile; what served before still serves.
    ShaderRejected,
    /// The registry file says something else, and it is in force.
    RegistryReplaced,
    /// A pack serves in an earlier version.
    RolledBack,
    /// A request has a kernel for the first time, or another one than before.
    Chosen,
    /// The watcher cannot see changes as they happen.
    WatchTrouble,
}

/// One thing that happened while a runtime ran.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Event {
    /// What happened.
    pub kind: EventKind,
    /// The pack it happened to, if one.
    pub pack: Option<String>,
    /// The op, for a choice.
    pub op: Option<String>,
    /// The file, if one.
    pub file: Option<String>,
    /// What and why, in one sentence.
    pub message: String,
    /// Number of the table that is in force after it.
    pub generation: u64,
    /// From the moment a change was seen settled to the moment it served, in microseconds.
    pub took_us: u64,
}

impl Event {
    pub(crate) fn new(kind: EventKind, generation: u64, message: String) -> Event {
        Event {
            kind,
            pack: None,
            op: None,
            file: None,
            message,
            generation,
            took_us: 0,
        }
    }

    /// Writes what a developer must see even without a listener.
    pub(super) fn log(&self) {
        match self.kind {
            EventKind::Rejected | EventKind::ShaderRejected => log::error!("{self}"),
            EventKind::WatchTrouble => log::warn!("{self}"),
            EventKind::Chosen => {}
            EventKind::PackAdded
            | EventKind::PackReplaced
            | EventKind::PackRemoved
            | EventKind::ShaderReplaced
            | EventKind::RegistryReplaced
            | EventKind::RolledBack => log::info!("{self}"),
        }
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}
