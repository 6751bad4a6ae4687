//! Contents that a process ended with while it loaded them. It may have been killed just then: so each is tried in a child,
//! and where that goes well loaded once more. Ends a process the same way again, it is set aside.

use super::{
    loader::PackFile,
    marker::{self, Abandoned},
    private::Folder,
    probe::{Failure, Prober},
    quarantine,
};
use std::{collections::BTreeMap, io};

/// What such processes left behind, by the hash of the content.
#[derive(Debug, Default)]
pub(super) struct Suspects {
    /// What tries them; without it nothing is a suspect.
    prober: Option<Prober>,
    markers: BTreeMap<String, Vec<Abandoned>>,
}

impl Suspects {
    pub(super) fn new(prober: Option<Prober>) -> Suspects {
        Suspects {
            prober,
            markers: BTreeMap::new(),
        }
    }

    /// Keeps a marker until its content is loaded, or gives it back where that had its second chance.
    pub(super) fn add(&mut self, marker: Abandoned) -> Result<(), Abandoned> {
        if self.prober.is_none() || marker.was_spared() {
            return Err(marker);
        }
        let sha256 = marker.sha256.clone();
        self.markers.entry(sha256).or_default().push(marker);
        Ok(())
    }

    /// Tries a content that a process ended with. Gives what there is to be warned of.
    ///
    /// # Errors
    /// Why it is not loaded. Unless that may pass it is in quarantine from then on.
    pub(super) fn judge(
        &mut self,
        file: &PackFile,
        store: &Folder,
    ) -> Result<Option<String>, String> {
        let Some(prober) = &self.prober else {
            return Ok(None);
        };
        let Some(markers) = self.markers.remove(&file.sha256) else {
            return Ok(None);
        };
        let what = markers
            .first()
            .map_or("", |marker| marker.what.as_str())
            .to_owned();
        let unrecorded = |error: io::Error| format!("{what}; this could not be recorded: {error}");
        let verdict = prober.again(&file.path, &file.sha256);
        let judged = match verdict {
            Ok(()) => {
                marker::spare(store, &file.sha256).map_err(unrecorded)?;
                let news = "in a child it is sound, and is loaded once more";
                Ok(Some(format!("{what}; {news}")))
            }
            Err(Failure { reason, may_pass }) => {
                let reason = format!("{what}; {reason}");
                if may_pass {
                    return Err(reason);
                }
                quarantine::set_aside(store, &file.sha256, &reason)
                    .map_err(|error| error.to_string())?;
                Err(format!(
                    "quarantine: {reason}; {} is in quarantine now",
                    file.sha256
                ))
            }
        };
        for marker in markers {
            marker.clear().map_err(unrecorded)?;
        }
        judged
    }
}
