//! Which shaders of packs are edited ones, and since when.

use nx_vulkan_registry::{EditedSource, LoadedPack, Table};

/// Pack and name of every source that is served with another text than before, by packs whose files stayed.
pub(super) fn since(old: &Table, new: &Table) -> Vec<(String, String)> {
    let mut changed = Vec::new();
    for pack in &new.packs {
        let before = old
            .packs
            .iter()
            .find(|old| old.id == pack.id && old.sha256 == pack.sha256);
        let before = before.map_or(&[][..], |old| &old.edited[..]);
        let differs = |a: &[EditedSource], b: &[EditedSource]| {
            let own = a.iter().filter(|edit| !b.contains(edit));
            own.map(|edit| edit.name.clone()).collect::<Vec<_>>()
        };
        let mut names = differs(&pack.edited, before);
        names.extend(differs(before, &pack.edited));
        names.sort();
        names.dedup();
        changed.extend(names.into_iter().map(|name| (pack.id.clone(), name)));
    }
    changed
}

/// What is told of an edit that came, or went.
pub(super) fn words(table: &Table, pack: &str, file: &str) -> String {
    let is_edited =
        |own: &&LoadedPack| own.id == pack && own.edited.iter().any(|edit| edit.name == file);
    match table.packs.iter().find(is_edited) {
        Some(_) => format!("pack {pack} serves the edited {file}"),
        None => format!("pack {pack} serves its own {file} again"),
    }
}
