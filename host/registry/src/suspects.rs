//! Contents that a process ended with while it loaded them. It may have been killed just then: so each is tried in a child,
//! and where that goes well loaded once more. One that a process ends with on that second chance is set aside.

use super::{
    loader::PackFile,
    marker::Abandoned,
    private::Folder,
    probe::{Failure, Prober},
    quarantine,
};
use nx_vulkan_ops::{Error, Kind};
use std::{collections::BTreeMap, io, sync::Arc, time::Duration};

/// How long a child may take: a machine that has just started is busy, and what does not finish is set aside.
const PATIENCE: Duration = Duration::from_secs(20);

/// What such processes left behind, by the hash of the content.
#[derive(Debug)]
pub(super) struct Suspects {
    /// What tries them; without it nothing is a suspect.
    prober: Option<Prober>,
    markers: BTreeMap<String, Vec<Abandoned>>,
    /// Why contents that were tried are not loaded, whatever other path leads to one.
    refused: BTreeMap<String, String>,
}

impl Suspects {
    pub(super) fn new(prober: Option<Prober>) -> Suspects {
        Suspects {
            prober: prober.map(|prober| prober.timeout(PATIENCE)),
            markers: BTreeMap::new(),
            refused: BTreeMap::new(),
        }
    }

    /// Takes up what processes left behind in a store: contents that are not in quarantine are tried once they are to be
    /// loaded, or set aside where that is proven. Whether one was.
    pub(super) fn look_back(
        &mut self,
        store: &Arc<Folder>,
        known: &mut BTreeMap<String, String>,
        warnings: &mut Vec<String>,
    ) -> bool {
        let mut is_new = false;
        for marker in Abandoned::all(store) {
            let is_known = known.contains_key(&marker.sha256);
            // A process that ended in order proves nothing.
            if is_known || self.prober.is_none() && marker.has_ended() {
                let _ = marker.clear();
            } else if self.prober.is_none() || marker.is_second() {
                set_aside(marker, store, known, warnings);
                is_new = true;
            } else {
                let sha256 = marker.sha256.clone();
                self.markers.entry(sha256).or_default().push(marker);
            }
        }
        is_new
    }

    /// Tries a content if a process ended with it, and says what there is to be warned of where it is loaded once more.
    ///
    /// # Errors
    /// Why it is not loaded: it is in quarantine.
    pub(super) fn judge(
        &mut self,
        file: &PackFile,
        store: &Folder,
    ) -> Result<Option<String>, String> {
        if let Some(reason) = self.refused.get(&file.sha256) {
            return Err(reason.clone());
        }
        let marker = self.markers.get(&file.sha256).and_then(|all| all.first());
        let (Some(prober), Some(marker)) = (&self.prober, marker) else {
            return Ok(None);
        };
        let what = &marker.what;
        let Err(Failure { reason, .. }) = prober.again(&file.path, &file.sha256) else {
            return Ok(Some(format!(
                "{what}; in a child it is sound, and is loaded once more"
            )));
        };
        let reason = format!("{what}; {reason}");
        let recorded = match quarantine::set_aside(store, &file.sha256, &reason) {
            Ok(()) => {
                self.clear(&file.sha256);
                String::new()
            }
            Err(error) => format!("; this could not be recorded: {error}"),
        };
        let refused = format!("quarantine: {reason}{recorded}");
        self.refused.insert(file.sha256.clone(), refused.clone());
        Err(refused)
    }

    /// Removes what is held against a content: this process has loaded it, and lives. Gives what there is to be warned of.
    pub(super) fn clear(&mut self, sha256: &str) -> Vec<String> {
        let markers = self.markers.remove(sha256).into_iter().flatten();
        markers
            .filter_map(|marker| {
                let what = marker.what.clone();
                let error = marker.clear().err()?;
                Some(format!("{what}; its marker cannot be removed: {error}"))
            })
            .collect()
    }
}

fn set_aside(
    marker: Abandoned,
    store: &Folder,
    known: &mut BTreeMap<String, String>,
    warnings: &mut Vec<String>,
) {
    let (sha256, what) = (marker.sha256.clone(), marker.what.clone());
    warnings.push(format!("{what}; {sha256} is in quarantine now"));
    let recorded = quarantine::set_aside(store, &sha256, &what).and_then(|()| {
        let failed = |error: io::Error| Error::new(Kind::Pack, error.to_string());
        marker.clear().map_err(failed)
    });
    if let Err(error) = recorded {
        warnings.push(format!("this could not be recorded: {error}"));
        known.insert(sha256, what);
    }
}
