//! The contents that are not loaded again until somebody releases them: `quarantine.toml` in the store.
//!
//! A content gets there when a process ended while it loaded it, and when a runtime sets it aside.

use super::{diagnostic::clean, store};
use crate::{Error, Kind, Result};
use std::{
    collections::BTreeMap,
    fs::File,
    io,
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

const FILE: &str = "quarantine.toml";
const LOCK: &str = "quarantine.lock";

/// Largest file that is read.
const MAX_BYTES: usize = 4 << 20;

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
struct Entry {
    reason: String,
    since: String,
}

/// What is in quarantine, in order of the hashes. A store that does not exist has none.
///
/// # Errors
/// [`Kind::Pack`] when the file is there and cannot be understood.
pub fn list(store: &Path) -> Result<Vec<Quarantined>> {
    let entries = read(&store.join(FILE))?.into_iter();
    let listed = entries.map(|(sha256, Entry { reason, since })| Quarantined {
        sha256,
        reason: clean(&reason, MAX_REASON),
        since: clean(&since, 40),
    });
    Ok(listed.collect())
}

/// Sets the content with that hash aside, for `reason`; an older entry stays as it is.
///
/// # Errors
/// [`Kind::Pack`] when `sha256` is no hash, or the store cannot be written.
pub fn add(store: &Path, sha256: &str, reason: &str) -> Result<()> {
    if sha256.len() != 64 || !sha256.bytes().all(|b| b.is_ascii_hexdigit()) {
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

/// Lets the content with that hash in again, from the next load on. Says whether it was in quarantine.
///
/// # Errors
/// [`Kind::Pack`] when the store cannot be written.
pub fn release(store: &Path, sha256: &str) -> Result<bool> {
    let mut was_there = false;
    change(store, |entries| {
        was_there = entries.remove(&sha256.to_ascii_lowercase()).is_some();
    })?;
    Ok(was_there)
}

fn failure(message: String) -> Error {
    Error::new(Kind::Pack, message)
}

fn read(path: &Path) -> Result<BTreeMap<String, Entry>> {
    let broken =
        |why: &dyn std::fmt::Display| failure(format!("the quarantine {}: {why}", path.display()));
    if !path.try_exists().map_err(|error| broken(&error))? {
        return Ok(BTreeMap::new());
    }
    let (bytes, _) = store::read(path).map_err(|why| broken(&why))?;
    if bytes.len() > MAX_BYTES {
        return Err(broken(&format!("it has more than {MAX_BYTES} bytes")));
    }
    let text = String::from_utf8(bytes).map_err(|_| broken(&"it is not UTF-8"))?;
    toml::from_str(&text).map_err(|error| broken(&error.message().replace('\n', ", ")))
}

/// Reads, changes and writes the file, while no other process does.
fn change(store: &Path, apply: impl FnOnce(&mut BTreeMap<String, Entry>)) -> Result<()> {
    let store = store::open(store).map_err(failure)?;
    let path = store.join(FILE);
    let written = |error: io::Error| failure(format!("writing {}: {error}", path.display()));
    let _lock = lock(&store.join(LOCK)).map_err(written)?;
    let mut entries = read(&path)?;
    apply(&mut entries);
    let text = toml::to_string(&entries)
        .map_err(|error| failure(format!("writing {}: {error}", path.display())))?;
    store::write(&path, format!("{HEADING}\n{text}").as_bytes(), 0o600, true).map_err(written)
}

/// The lock is on a file that stays, since the other one is replaced at every change.
fn lock(path: &Path) -> io::Result<File> {
    let file = File::options()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)?;
    file.lock()?;
    Ok(file)
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
