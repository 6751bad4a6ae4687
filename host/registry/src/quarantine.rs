//! The contents that are not loaded again until somebody releases them: `quarantine.toml` in the store.
//!
//! A content gets there when a process ended while it loaded it, and when a runtime sets it aside.

use super::{diagnostic::clean, private::Folder, spelling::is_sha256, store};
use nx_vulkan_ops::{Error, Kind, Result};
use std::{
    collections::BTreeMap,
    io,
    path::Path,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

const FILE: &str = "quarantine.toml";
const LOCK: &str = "quarantine.lock";

/// Largest file that is read.
const MAX_BYTES: u64 = 4 << 20;

/// Characters of a reason that are kept.
const MAX_REASON: usize = 500;

const HEADING: &str = "\
# Packs that are not loaded, by the sha256 of their file. Removing an entry lets a pack in again.
";

/// A content that is not loaded.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Quarantined {
    /// sha256 of the file, in lower-case hex.
    pub sha256: String,
    /// What it did.
    pub reason: String,
    /// When it was set aside, as RFC 3339 in UTC.
    pub since: String,
}

/// An entry as it stands in the file.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
pub(super) struct Entry {
    reason: String,
    since: String,
}

/// What is in quarantine in the folder `store`, in order of the hashes. A store that does not exist has none.
///
/// # Errors
/// [`Kind::Pack`] when others could have changed it, or the file is there and cannot be understood.
pub fn list(store: &Path) -> Result<Vec<Quarantined>> {
    match store::open_at(store, false).map_err(failure)? {
        Some(store) => listed(&store),
        None => Ok(Vec::new()),
    }
}

/// Sets the content with that hash aside, for `reason`; an older entry stays as it is.
///
/// # Errors
/// [`Kind::Pack`] when `sha256` is no hash, or the store cannot be written.
pub fn add(store: &Path, sha256: &str, reason: &str) -> Result<()> {
    set_aside(&opened(store)?, sha256, reason)
}

/// Lets the content with that hash in again, from the next load on. Says whether it was in quarantine.
///
/// # Errors
/// [`Kind::Pack`] when the store cannot be written.
pub fn release(store: &Path, sha256: &str) -> Result<bool> {
    let mut was_there = false;
    change(&opened(store)?, |entries| {
        was_there = entries.remove(&sha256.to_ascii_lowercase()).is_some();
    })?;
    Ok(was_there)
}

fn opened(store: &Path) -> Result<Folder> {
    let missing = || failure(format!("the store {} cannot be created", store.display()));
    store::open_at(store, true)
        .map_err(failure)?
        .ok_or_else(missing)
}

/// As [`list`], in a store that is open.
pub(super) fn listed(store: &Folder) -> Result<Vec<Quarantined>> {
    Ok(read(store)?.into_iter().map(shown).collect())
}

/// An entry as people may see it.
pub(super) fn shown((sha256, Entry { reason, since }): (String, Entry)) -> Quarantined {
    Quarantined {
        sha256,
        reason: clean(&reason, MAX_REASON),
        since: clean(&since, 40),
    }
}

/// As [`add`], in a store that is open.
pub(super) fn set_aside(store: &Folder, sha256: &str, reason: &str) -> Result<()> {
    if !is_sha256(sha256) {
        return Err(failure(format!("`{sha256}` is not a sha256")));
    }
    change(store, |entries| {
        let entry = Entry {
            reason: clean(reason, MAX_REASON),
            since: utc(SystemTime::now()),
        };
        entries.entry(sha256.to_ascii_lowercase()).or_insert(entry);
    })
}

fn failure(message: String) -> Error {
    Error::new(Kind::Pack, message)
}

fn read(store: &Folder) -> Result<BTreeMap<String, Entry>> {
    let path = store.path().join(FILE);
    let broken = |why: String| failure(format!("the quarantine {}: {why}", path.display()));
    let bytes = store.read(FILE, MAX_BYTES);
    match bytes.map_err(|error| broken(error.to_string()))? {
        None => Ok(BTreeMap::new()),
        Some(bytes) => parsed(&bytes).map_err(broken),
    }
}

/// The entries in the bytes of the file, by hash in lower case.
pub(super) fn parsed(bytes: &[u8]) -> std::result::Result<BTreeMap<String, Entry>, String> {
    let text = std::str::from_utf8(bytes).map_err(|_| "it is not UTF-8")?;
    let entries: BTreeMap<String, Entry> =
        toml::from_str(text).map_err(|error| error.message().replace('\n', ", "))?;
    match entries.keys().find(|key| !is_sha256(key)) {
        Some(key) => Err(format!("`{}` is not a sha256", clean(key, 80))),
        None => Ok(entries
            .into_iter()
            .map(|(sha256, entry)| (sha256.to_ascii_lowercase(), entry))
            .collect()),
    }
}

/// Reads, changes and writes the file, while no other process does.
fn change(store: &Folder, apply: impl FnOnce(&mut BTreeMap<String, Entry>)) -> Result<()> {
    let path = store.path().join(FILE);
    let written = |error: io::Error| failure(format!("writing {}: {error}", path.display()));
    // On a file that stays, since the other one is replaced at every change.
    let lock = store.keep(LOCK).map_err(written)?;
    lock.lock().map_err(written)?;
    let mut entries = read(store)?;
    apply(&mut entries);
    let text = toml::to_string(&entries)
        .map_err(|error| failure(format!("writing {}: {error}", path.display())))?;
    let text = format!("{HEADING}\n{text}");
    store.write(FILE, &[text.as_bytes()], true).map_err(written)
}

/// RFC 3339 to the second.
fn utc(time: SystemTime) -> String {
    let seconds = time
        .duration_since(UNIX_EPOCH)
        .unwrap_or(Duration::ZERO)
        .as_secs();
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = date(days);
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// Year, month and day of the Gregorian calendar, `days` after 1970-01-01 (Hinnant, "chrono-compatible low-level
/// date algorithms", civil_from_days).
fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        let at = |seconds| utc(UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!(at(0), "1970-01-01T00:00:00Z");
        assert_eq!(at(951_782_399), "2000-02-28T23:59:59Z");
        assert_eq!(at(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(at(1_795_237_265), "2026-11-21T05:01:05Z");
    }
}
