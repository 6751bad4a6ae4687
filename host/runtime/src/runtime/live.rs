//! Packs, shaders and rules that change while ops run: a new table is made beside the one in force and put in its place.
//!
//! A call that began on the old table ends on it: its route holds what it needs.

mod edited;

use super::{Current, Runtime, reports::Report};
use crate::{
    Error, Result,
    live::{self, Event, EventKind, Listener, PackVersion, edits},
    plan,
    shader::Variant,
};
use nx_vulkan_registry as registry;
use nx_vulkan_registry::{Change, EditedSource, LoadedPack, Table};
use std::{cell::RefCell, sync::Arc, time::Instant};

/// What came of a look.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) events: Vec<Event>,
    /// Packs that serve though their files are gone.
    pub(crate) gone: Vec<String>,
}

impl Runtime {
    /// Looks at the registry, its packs and the watched folders now, and puts what changed into force. What cannot be
    /// used is in the events, and what served before still serves.
    pub fn reload(&self) -> Vec<Event> {
        self.look(&|_| false, Instant::now()).events
    }

    /// As [`Runtime::reload`] for a change seen at `seen`; packs whose files are gone and that are awaited are kept.
    pub(crate) fn look(&self, is_awaited: &dyn Fn(&str) -> bool, seen: Instant) -> Seen {
        let _turn = self.live.turn.lock();
        let current = self.table();
        let (mut events, mut gone) = (Vec::new(), Vec::new());
        let mut reports = Vec::new();
        let broken = RefCell::new(Vec::new());
        let held = |pack| {
            let pack = self.live.held(pack);
            let serves = current.packs.iter().find(|old| old.id == pack.id);
            if let Some(old) = serves.filter(|old| pack.is_being_written(old)) {
                return old.clone();
            }
            match serves.and_then(|old| Some((old, self.broken(&current, old, &pack)?))) {
                None => pack,
                Some((old, error)) => {
                    let message = format!("pack {} serves the old shaders on: {error}", pack.id);
                    let kind = EventKind::ShaderRejected;
                    let report = Report::new(kind, Some(pack.id), message, &pack.sha256);
                    broken.borrow_mut().push(report);
                    old.clone()
                }
            }
        };
        match registry::reload(&self.live.options, &current, is_awaited, &held) {
            Err(error) => {
                let options = &self.live.options;
                let files = [&options.registry, &options.registry_override];
                let content = files.map(|file| Some(std::fs::read(file.as_ref()?).ok()));
                let message = error.to_string();
                reports.push(Report::new(EventKind::Rejected, None, message, &content));
            }
            Ok((mut table, changes)) => {
                self.edit(&mut table, &current, &mut reports);
                let edited = edited::since(&current, &table);
                let mut moves = Vec::new();
                for change in &changes {
                    match change {
                        Change::Kept(pack, file) => {
                            let message = format!(
                                "the new file of pack {pack} cannot be loaded, the old one serves on: {}",
                                file.reason
                            );
                            reports.push(rejected(Some(pack), message, &file.sha256));
                        }
                        Change::Gone(pack) => {
                            gone.push(pack.clone());
                            let message = format!(
                                "the file of pack {pack} is gone, the old one serves on for a moment"
                            );
                            reports.push(rejected(Some(pack), message, ""));
                        }
                        Change::Rejected(file) => {
                            reports.push(rejected(None, format!("the pack {file}"), &file.sha256));
                        }
                        Change::Added(_)
                        | Change::Replaced(_)
                        | Change::Removed(_)
                        | Change::Registry => moves.push(change),
                    }
                }
                if !moves.is_empty() || !edited.is_empty() {
                    let table = self.publish(table);
                    events.extend(moves.into_iter().filter_map(|change| told(change, &table)));
                    events.extend(edited.into_iter().map(|(pack, file)| {
                        let message = edited::words(&table, &pack, &file);
                        Event {
                            pack: Some(pack),
                            file: Some(file),
                            ..Event::new(EventKind::ShaderReplaced, table.generation, message)
                        }
                    }));
                }
            }
        }
        reports.extend(broken.take());
        events.extend(self.unreported(reports));
        let took_us = seen.elapsed().as_micros() as u64;
        for event in &mut events {
            event.took_us = took_us;
            self.live.emit(event);
        }
        Seen { events, gone }
    }

    /// Puts the edited shaders of the watched folders into `table`, where those that are in use still compile.
    fn edit(&self, table: &mut Table, current: &Table, reports: &mut Vec<Report>) {
        let found = edits(&table.dev().watch, &table.packs, &current.packs);
        for index in 0..table.packs.len() {
            let id = table.packs[index].id.clone();
            if self.live.is_held(&id) {
                continue;
            }
            let same_file =
                |old: &&LoadedPack| old.id == id && old.sha256 == table.packs[index].sha256;
            let served = current.packs.iter().find(same_file);
            let served = served.map_or(Vec::new(), |old| old.edited.clone());
            let wanted: Vec<EditedSource> = found
                .iter()
                .filter(|(pack, _)| *pack == index)
                .map(|(_, edit)| edit.clone())
                .collect();
            if wanted == served {
                table.packs[index].edited = wanted;
                continue;
            }
            table.packs[index].edited.clone_from(&wanted);
            if let Some(error) = self.breaks(&current.packs, &table.packs, &id) {
                let file = wanted.iter().find(|edit| !served.contains(edit));
                let file = file.map(|edit| edit.path.display().to_string());
                let message = format!("pack {id} serves the old shaders on: {error}");
                let kind = EventKind::ShaderRejected;
                reports.push(Report::new(kind, Some(id), message, &wanted).on(file));
                table.packs[index].edited = served;
            }
        }
    }

    /// Why `new`, a pack without code that differs from `old` in its shaders, cannot run what `old` runs.
    fn broken(&self, current: &Table, old: &LoadedPack, new: &LoadedPack) -> Option<Error> {
        if !new.differs_in_shaders(old) {
            return None;
        }
        let packs = current.packs.iter();
        let after = packs.map(|pack| if pack.id == new.id { new } else { pack });
        self.breaks(&current.packs, &after.cloned().collect::<Vec<_>>(), &new.id)
    }

    /// Why a shader that was in use lately, and has files of the pack `id`, cannot run `after` where it ran `before`.
    fn breaks(&self, before: &[LoadedPack], after: &[LoadedPack], id: &str) -> Option<Error> {
        let inside = format!("{id}/");
        for pack in before {
            let Some(new) = after.iter().find(|new| new.id == pack.id) else {
                continue;
            };
            let files = plan::Files::new(pack, before);
            for mut variant in self.shaders.recent(&pack.id) {
                // Other code or another table makes other plans, which nobody knows yet.
                variant.is_planned &= new.plans_as(pack);
                let all = self
                    .shaders
                    .files(&variant.shader.file, &|name| files.find(name));
                let includes =
                    all.is_ok_and(|all| all.iter().any(|file| file.name.starts_with(&inside)));
                if (pack.id == id || includes)
                    && self.runs(pack, before, &variant).is_ok()
                    && let Err(error) = self.runs(new, after, &variant)
                {
                    return Some(error);
                }
            }
        }
        None
    }

    fn runs(&self, pack: &LoadedPack, beside: &[LoadedPack], variant: &Variant) -> Result<()> {
        let files = plan::Files::new(pack, beside);
        let find = |name: &str| files.find(name);
        let file = &variant.shader.file;
        let module = self.shaders.compile(file, &variant.defines(), &find)?;
        match variant.is_planned {
            true => plan::check_in_place(variant, &module, &self.device.info()),
            false => Ok(()),
        }
    }

    /// Puts `table` into force.
    fn publish(&self, mut table: Table) -> Arc<Table> {
        let keep = table.dev().keep_versions;
        table.follow(&self.table());
        let table = Arc::new(table);
        // Calls that have begun end on the old one, also those whose results nobody has asked for yet.
        self.settle_all();
        let fresh = Current::new(table.clone());
        let old = std::mem::replace(&mut *self.current.write(), fresh);
        if table.is_locked() && !old.table.is_locked() {
            // What lies in a cache folder that was good enough for development does not count from here on.
            self.cache.change(self.locked_cache.clone());
            self.shaders.forget();
        }
        self.tally(old.routes.values());
        // Shaders that changed make something else of operands.
        self.kept.clear();
        self.replays.forget(false);
        for pack in &old.table.packs {
            if !table.packs.iter().any(|new| new.plans_as(pack)) {
                self.shaders.replan(&pack.id);
            }
        }
        let stays = |pack: &LoadedPack| table.packs.iter().any(|new| new.sha256 == pack.sha256);
        for pack in old.table.packs.iter().filter(|pack| !stays(pack)) {
            // The code of a pack may take its time, and reloads must not wait for it.
            let pack = pack.clone();
            drop(std::thread::Builder::new().spawn(move || pack.retire()));
        }
        self.failures.clear();
        self.live.remember(&table.packs, keep);
        self.builder.prepare_for(&table);
        self.pipelines.forget_unused(
            table.generation,
            || self.stream.sequence(),
            self.stream.completed_hint(),
        );
        table
    }

    /// The versions of a pack that can serve, the newest last.
    pub fn versions(&self, pack: &str) -> Vec<PackVersion> {
        let table = self.table();
        let now = table.packs.iter().find(|now| now.id == pack);
        let shown = |version: &LoadedPack| PackVersion {
            version: version.version.to_string(),
            sha256: version.sha256.clone(),
            edited: version
                .edited
                .iter()
                .map(|edit| edit.name.clone())
                .collect(),
            serves: now.is_some_and(|now| live::same(now, version)),
        };
        self.live.versions(pack).iter().map(shown).collect()
    }

    /// Lets the version of `pack` serve that is `steps` before the one that serves now, until its file changes again
    /// or [`Runtime::resume`] is called. 0 steps stay.
    ///
    /// # Errors
    /// Bad input when there is no such pack or no version that old.
    pub fn rollback(&self, pack: &str, steps: usize) -> Result<PackVersion> {
        let turn = self.live.turn.lock();
        let table = self.table();
        let now = table
            .packs
            .iter()
            .find(|now| now.id == pack)
            .ok_or_else(|| {
                let ids: Vec<&str> = table.packs.iter().map(|pack| pack.id.as_str()).collect();
                Error::bad_input(format!(
                    "expected a loaded pack ({}), got: {pack}",
                    ids.join(", ")
                ))
            })?;
        let versions = self.live.versions(pack);
        let at = versions.iter().position(|version| live::same(version, now));
        let target = at
            .and_then(|at| at.checked_sub(steps))
            .map(|at| versions[at].clone());
        let target = target.ok_or_else(|| {
            Error::bad_input(format!(
                "expected at most {} steps back for pack {pack}, got: {steps}",
                at.unwrap_or(0)
            ))
        })?;
        let on_disk = registry::sha256_of(&now.path).unwrap_or_else(|_| now.sha256.clone());
        self.live.hold(target.clone(), on_disk);
        let packs = table.packs.iter().map(|old| match old.id == pack {
            true => target.clone(),
            false => old.clone(),
        });
        let table = self.publish(table.with_packs(packs.collect())?);
        drop(turn);
        let message = format!(
            "pack {pack} serves version {} again ({})",
            target.version,
            &target.sha256[..target.sha256.len().min(12)]
        );
        self.live.emit(&Event {
            pack: Some(pack.to_owned()),
            ..Event::new(EventKind::RolledBack, table.generation, message)
        });
        let versions = self.versions(pack);
        let serving = versions.into_iter().find(|version| version.serves);
        serving.ok_or_else(|| Error::bad_input(format!("pack {pack} was unloaded meanwhile")))
    }

    /// Ends a rollback: the pack's file and its edited shaders count again.
    pub fn resume(&self, pack: &str) -> Vec<Event> {
        self.live.release(pack);
        self.reload()
    }

    /// Tells the listeners.
    pub(crate) fn tell(&self, event: &Event) {
        self.live.emit(event);
    }

    pub(crate) fn options(&self) -> &registry::Options {
        &self.live.options
    }

    /// Adds a listener for [`Event`]s; the number is for [`Runtime::forget_listener`]. It must not block.
    pub fn listen(&self, listener: Listener) -> u64 {
        self.live.listen(listener)
    }

    /// Takes a listener away again.
    pub fn forget_listener(&self, number: u64) {
        self.live.unlisten(number);
    }
}

fn rejected(pack: Option<&String>, message: String, sha256: &str) -> Report {
    Report::new(EventKind::Rejected, pack.cloned(), message, &sha256)
}

/// What happened with a change that is in force.
fn told(change: &Change, table: &Table) -> Option<Event> {
    let version = |id: &String| {
        let pack = table.packs.iter().find(|pack| pack.id == *id);
        pack.map_or(String::new(), |pack| {
            format!(
                "{} ({})",
                pack.version,
                &pack.sha256[..pack.sha256.len().min(12)]
            )
        })
    };
    let (kind, pack, message) = match change {
        Change::Added(id) => (
            EventKind::PackAdded,
            Some(id),
            format!("pack {id} {} serves", version(id)),
        ),
        Change::Replaced(id) => (
            EventKind::PackReplaced,
            Some(id),
            format!(
                "pack {id} {} serves in place of the one before",
                version(id)
            ),
        ),
        Change::Removed(id) => (
            EventKind::PackRemoved,
            Some(id),
            format!("pack {id} no longer serves"),
        ),
        Change::Kept(..) | Change::Gone(_) | Change::Rejected(_) => return None,
        Change::Registry => (
            EventKind::RegistryReplaced,
            None,
            "the registry file changed and is in force".to_owned(),
        ),
    };
    Some(Event {
        pack: pack.cloned(),
        ..Event::new(kind, table.generation, message)
    })
}
