//! What is checked, and how.

use super::{named::Named, report::Report};
use nx_vulkan_host::{Config, Error, Kind, Result, Runtime};
use nx_vulkan_ops::Request;
use nx_vulkan_registry::{self as registry, KernelEntry, request::Operand};
use std::{path::PathBuf, sync::Arc};

/// What to check.
#[derive(Debug, Clone)]
pub struct Options {
    /// The pack's file.
    pub file: PathBuf,
    /// A configuration that loads this pack and no other.
    pub config: Config,
    /// Seed of the requests.
    pub seed: u64,
    /// Requests beside those of the sweep.
    pub requests: Vec<Named>,
    /// Called with what is about to be looked at.
    pub progress: fn(&str),
}

impl Options {
    /// The requests of the author that `kernel` may take, all with operands in row-major order.
    pub(super) fn named(&self, kernel: &KernelEntry) -> Vec<Request<'static, Operand>> {
        let all = self.requests.iter();
        // What does not fit this kernel is meant for another; `tell_unasked` tells of what fits none.
        all.filter_map(|named| named.of(kernel).ok()).collect()
    }

    /// Reports the requests of the author that no kernel is asked for.
    pub(super) fn tell_unasked(&self, kernels: &[KernelEntry], report: &mut Report) {
        for named in &self.requests {
            if let Some(why) = named.is_for_none(kernels) {
                report.error(format!("--request {}", named.text), why);
            }
        }
    }

    /// A runtime with the pack, and the pack's place in its table.
    pub(super) fn open(&self) -> Result<(Arc<Runtime>, usize)> {
        let sha256 = registry::sha256_of(&self.file)?;
        let runtime = Runtime::open(&self.config)?;
        let table = runtime.table();
        match table.packs.iter().position(|pack| pack.sha256 == sha256) {
            Some(place) => Ok((runtime, place)),
            None => {
                let why: Vec<String> = table.rejected.iter().map(ToString::to_string).collect();
                Err(Error::new(
                    Kind::Pack,
                    format!("the pack does not load: {}", why.join("; ")),
                ))
            }
        }
    }
}
