//! The conformance sweep as verbs run it: its options, with a bar that says how far it is.

use crate::{global::Global, output::Problem, progress, spec::Filter};
use clap::value_parser;
use nx_vulkan_conformance::sweep::{self, Extent, Report};
use nx_vulkan_host::Config;
use std::path::Path;

/// Each thread has a device of its own, and a machine has only so many.
const MOST_THREADS: i64 = 256;

// No doc comment: clap would take it for what the verb is about.
#[derive(Debug, clap::Args)]
pub(crate) struct Sweep {
    /// Another choice of shapes, types and values; the same seed gives the same ones
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,

    /// One problem per op, type and layout, without mixed types
    #[arg(long)]
    quick: bool,

    /// Everything for f32 and one other type per op, of large problems two; one other type of each kind in one contiguous problem
    /// and one in another layout
    #[arg(long, conflicts_with = "quick")]
    sample: bool,

    /// Threads, each with a device of its own [default: one per core, up to 8]
    #[arg(long, value_name = "N", value_parser = value_parser!(u16).range(1..=MOST_THREADS))]
    threads: Option<u16>,
}

impl Sweep {
    fn extent(&self) -> Extent {
        match (self.quick, self.sample) {
            (true, _) => Extent::Quick,
            (_, true) => Extent::Sample,
            _ => Extent::Full,
        }
    }

    /// The option that asks for as much as this, after a space.
    pub(crate) fn option(&self) -> &'static str {
        match self.extent() {
            Extent::Full => "",
            Extent::Sample => " --sample",
            Extent::Quick => " --quick",
        }
    }

    /// Sweeps over the ops of the filter, with the kernels that the registry chooses or with those of one pack.
    pub(crate) fn run(
        &self,
        global: &Global,
        config: &Config,
        filter: Option<&Filter>,
        pack: Option<&str>,
        running: Option<&Path>,
    ) -> Result<Report, Problem> {
        let options = sweep::Options {
            seed: self.seed,
            filter: filter.map(ToString::to_string),
            extent: self.extent(),
            threads: self
                .threads
                .map_or_else(|| sweep::Options::default().threads, usize::from),
            pack: pack.map(str::to_owned),
            running: running.map(Path::to_owned),
        };
        let bar = progress::bar(global);
        let report = sweep::run(config, &options, &|_, all| {
            bar.set_length(all as u64);
            bar.inc(1);
        })?;
        Ok(report)
    }
}
