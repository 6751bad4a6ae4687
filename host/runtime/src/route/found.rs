//! What a route is: who runs one kind of request, and how.

use crate::plan::Compiled;
use nx_vulkan_abi::InputAs;
use nx_vulkan_ops::Program;
use std::sync::{
    Arc,
    atomic::{AtomicU32, AtomicU64, Ordering},
};

/// Who runs one kind of request.
#[derive(Debug)]
pub(crate) enum Route {
    /// A pack's plan.
    Device {
        op: String,
        compiled: Compiled,
        /// Inputs to be made contiguous and cast first.
        prepare: Vec<InputAs>,
        served_by: Arc<str>,
        count: AtomicU64,
    },
    /// A product whose epilogue nobody takes, or a fused op, as the ops that it stands for.
    Split {
        op: String,
        program: Program<'static>,
        served_by: Arc<str>,
        /// How often in turn it could not be run without waiting.
        waited: AtomicU32,
        count: AtomicU64,
    },
    /// The host's CPU kernel.
    Host {
        op: String,
        served_by: Arc<str>,
        /// Nobody else runs it.
        is_fallback: bool,
        /// Microseconds that the last run took, and the largest number before the first one.
        micros: AtomicU32,
        count: AtomicU64,
    },
}

/// Microseconds that a scheduler of a VM can spare: changing to a dirty one and back costs a good part of that.
const BRIEF: u32 = 300;

/// Dispatches that are recorded in a good part of such a time.
const FEW: usize = 128;

/// Times in turn that a program is tried without waiting, which does some of its ops in vain where another one has to wait.
const TRIES: u32 = 4;

impl Route {
    /// Whether it takes no waiting: neither for a conversion of operands, nor for what a shader reports, nor long on the host.
    pub(crate) fn is_prompt(&self) -> bool {
        match self {
            Route::Device {
                prepare, compiled, ..
            } => prepare.is_empty() && compiled.watched.is_none() && compiled.steps.len() <= FEW,
            Route::Split { waited, .. } => waited.load(Ordering::Relaxed) < TRIES,
            Route::Host { micros, .. } => micros.load(Ordering::Relaxed) <= BRIEF,
        }
    }

    pub(crate) fn dispatches(&self) -> usize {
        match self {
            Route::Device { compiled, .. } => compiled.steps.len(),
            Route::Split { .. } | Route::Host { .. } => 0,
        }
    }

    /// Whether it takes memory beside that of the results.
    pub(crate) fn has_scratch(&self) -> bool {
        match self {
            Route::Device { compiled, .. } => !compiled.scratch.is_empty(),
            Route::Split { .. } | Route::Host { .. } => false,
        }
    }

    pub(crate) fn count(&self) {
        let (Route::Device { count, .. } | Route::Split { count, .. } | Route::Host { count, .. }) =
            self;
        count.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn served_by(&self) -> &Arc<str> {
        let (Route::Device { served_by, .. }
        | Route::Split { served_by, .. }
        | Route::Host { served_by, .. }) = self;
        served_by
    }

    /// `(op, who serves it, how often)`.
    pub(crate) fn tally(&self) -> (&str, &str, u64) {
        let (Route::Device {
            op,
            served_by,
            count,
            ..
        }
        | Route::Split {
            op,
            served_by,
            count,
            ..
        }
        | Route::Host {
            op,
            served_by,
            count,
            ..
        }) = self;
        (op, served_by, count.load(Ordering::Relaxed))
    }
}
