//! Looking again when files changed, as the registry's `[dev]` says.

use super::Runtime;
use crate::{
    Error, Kind, Result,
    live::{
        Event, EventKind,
        watch::{
            Shared, Watch,
            files::stamps,
            folders::{Folders, POLL},
        },
    },
};
use nx_vulkan_registry::Places;
use std::{
    collections::BTreeMap,
    sync::{Arc, Weak},
    time::{Duration, Instant},
};

/// Changes that the system did not tell about are found this often.
const SAFETY: Duration = Duration::from_secs(5);
/// How long a pack whose file is gone is kept.
const GRACE: Duration = Duration::from_secs(1);

impl Runtime {
    pub(super) fn start_watch(self: &Arc<Self>) -> Result<()> {
        let runtime = Arc::downgrade(self);
        let watch = Watch::start(move |shared| run(shared, &runtime)).map_err(|error| {
            Error::new(
                Kind::Io,
                format!("the watcher could not be started: {error}"),
            )
        })?;
        drop(self.watch.set(watch));
        Ok(())
    }
}

fn run(shared: &Arc<Shared>, runtime: &Weak<Runtime>) {
    let mut folders = Folders::new(shared);
    let mut known = None;
    // Until when packs are kept whose files are gone.
    let mut awaited: BTreeMap<String, Instant> = BTreeMap::new();
    while let Some(runtime) = runtime.upgrade() {
        let table = runtime.table();
        let places = table.places(runtime.options());
        let (settle, poll) = (
            Duration::from_millis(table.dev().settle_ms),
            table.dev().poll_ms,
        );
        let events = shared.events();
        let mut follow = |places: &Places| {
            if let Some(trouble) = folders.follow(places, poll) {
                let kind = EventKind::WatchTrouble;
                runtime.tell(&Event::new(kind, runtime.table().generation, trouble));
            }
            folders.has_grown()
        };
        follow(&places);
        let stamps = stamps(&places);
        let is_due = awaited.values().any(|until| Instant::now() >= *until);
        if known.as_ref() != Some(&stamps) || is_due {
            let settled = shared.settle(settle, &places, &stamps);
            let now = Instant::now();
            let is_awaited = |pack: &str| awaited.get(pack).is_none_or(|until| now < *until);
            let gone = runtime.look(&is_awaited, now).gone;
            awaited.retain(|pack, _| gone.contains(pack));
            for pack in gone {
                awaited.entry(pack).or_insert(now + GRACE);
            }
            let places = runtime.table().places(runtime.options());
            // A folder may have come, or come back, while files settled.
            if follow(&places) {
                shared.touch();
            }
            known = Some(if places.watched.is_empty() {
                // Nothing is watched from now on but the file that may say otherwise.
                let own = settled.into_iter();
                own.filter(|(path, _)| places.registry.as_ref() == Some(path))
                    .collect()
            } else {
                settled
            });
        } else if shared.forget(events) {
            // What is written all the time and is none of ours costs a look now and then.
            shared.rest(settle);
        }
        drop(table);
        drop(runtime);
        let wait = match (poll, folders.polls()) {
            (0, false) => SAFETY,
            (0, true) => POLL,
            (poll, _) => Duration::from_millis(poll),
        };
        let next = awaited.values().min();
        shared.wait(next.map_or(wait, |until| {
            wait.min(until.saturating_duration_since(Instant::now()))
        }));
        if shared.is_stopped() {
            return;
        }
    }
}
