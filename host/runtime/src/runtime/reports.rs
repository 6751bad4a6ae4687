//! What a look found broken, and what of it is new. How it was found is told elsewhere.

use super::Runtime;
use crate::live::{Event, EventKind};
use std::hash::{DefaultHasher, Hash, Hasher as _};

/// What may have to be told.
pub(super) struct Report {
    kind: EventKind,
    pack: Option<String>,
    file: Option<String>,
    message: String,
    /// Stands for the content that was rejected: other content is told of, though the words are the same.
    content: u64,
}

impl Report {
    pub(super) fn new(
        kind: EventKind,
        pack: Option<String>,
        message: String,
        content: &impl Hash,
    ) -> Report {
        let mut hasher = DefaultHasher::new();
        content.hash(&mut hasher);
        Report {
            kind,
            pack,
            file: None,
            message,
            content: hasher.finish(),
        }
    }

    /// The same of a file.
    pub(super) fn on(self, file: Option<String>) -> Report {
        Report { file, ..self }
    }
}

impl Runtime {
    /// The reports that were not made by the last look already.
    pub(super) fn unreported(&self, reports: Vec<Report>) -> Vec<Event> {
        let generation = self.table().generation;
        let mut reported = self.live.reported.lock();
        let key = |report: &Report| (report.message.clone(), report.content);
        let keys = reports.iter().map(key).collect();
        let old = std::mem::replace(&mut *reported, keys);
        let fresh = reports
            .into_iter()
            .filter(|report| !old.contains(&key(report)));
        fresh
            .map(|report| Event {
                pack: report.pack,
                file: report.file,
                ..Event::new(report.kind, generation, report.message)
            })
            .collect()
    }
}
