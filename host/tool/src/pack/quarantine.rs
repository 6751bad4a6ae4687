//! `nxv pack quarantine` and `nxv pack release`: packs that are not loaded because they ended a process.

use crate::{
    global::Global,
    output::{Answer, Outcome, Problem, json},
};
use nx_vulkan_host::{Error, Kind};
use nx_vulkan_registry::{
    self as registry,
    quarantine::{self, Quarantined},
};
use std::{fmt::Write, path::PathBuf};

/// The fewest digits of a hash that name a pack.
const FEWEST: usize = 8;

/// List the packs that are not loaded because they ended a process, with their sha256.
#[derive(Debug, clap::Args)]
pub(crate) struct List {}

impl List {
    /// Lists what is in quarantine, with the reason.
    pub(crate) fn run(&self, global: &Global) -> Answer {
        let store = store(global)?;
        let listed = quarantine::list(&store)?;
        let mut text = String::new();
        for Quarantined {
            sha256,
            reason,
            since,
        } in &listed
        {
            let _ = writeln!(text, "{sha256}  since {since}\n  {reason}");
        }
        if listed.is_empty() {
            let _ = writeln!(text, "nothing is in quarantine in {}", store.display());
        }
        Ok(Outcome::good(text, json(&listed)))
    }
}

/// Let a pack out of quarantine.
#[derive(Debug, clap::Args)]
pub(crate) struct Release {
    /// The sha256 of the pack; the first 8 digits are enough
    sha256: String,
}

impl Release {
    /// Lets the pack in again whose sha256 begins like that.
    pub(crate) fn run(&self, global: &Global) -> Answer {
        let store = store(global)?;
        let listed = quarantine::list(&store)?;
        let sha256 = named(&self.sha256, &listed).map_err(|why| {
            let why = format!("{why} in quarantine in {}", store.display());
            Problem::Failure(Error::new(Kind::Pack, why))
        })?;
        quarantine::release(&store, sha256)?;
        let text =
            format!("{sha256} is out of quarantine and loaded again from the next start on\n");
        let json = serde_json::json!({ "sha256": sha256 });
        Ok(Outcome::good(text, json))
    }
}

/// The store of the registry in force.
fn store(global: &Global) -> Result<PathBuf, Problem> {
    let store = registry::store(&global.config().registry_options())?;
    store.ok_or_else(|| {
        let why = "there is no store: name its folder with --cache".to_owned();
        Problem::Failure(Error::new(Kind::Pack, why))
    })
}

/// The one hash that begins like that.
fn named<'a>(hash: &str, listed: &'a [Quarantined]) -> Result<&'a str, String> {
    if hash.len() < FEWEST {
        return Err(format!(
            "expected at least {FEWEST} digits of the sha256 of a pack, got: {hash}; look for one"
        ));
    }
    let hash = hash.to_ascii_lowercase();
    let mut fitting = listed.iter().filter(|one| one.sha256.starts_with(&hash));
    match (fitting.next(), fitting.next()) {
        (Some(one), None) => Ok(&one.sha256),
        (None, _) => Err(format!("no pack {hash} is")),
        (Some(_), Some(_)) => Err(format!("several packs {hash} are")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_named_by_its_beginning() {
        let one = |sha256: String| Quarantined {
            sha256,
            reason: String::new(),
            since: String::new(),
        };
        let (a, b) = ("ab".repeat(32), format!("{}00", "ab".repeat(31)));
        let listed = [one(a.clone()), one(b.clone())];
        assert_eq!(named(&a.to_uppercase(), &listed), Ok(&*a));
        assert_eq!(named(&b, &listed), Ok(&*b));
        assert!(named("abababab", &listed).unwrap_err().contains("several"));
        assert!(named("cdcdcdcd", &listed).unwrap_err().contains("no pack"));
        assert!(named("ab", &listed[..1]).unwrap_err().contains("8 digits"));
    }
}
