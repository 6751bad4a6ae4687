//! What is recorded: a dispatch with its buffers.

use crate::{memory::Buffer, pipeline::Pipeline};
use std::sync::Arc;

/// One compute dispatch, ready to record.
#[derive(Debug, Clone)]
pub(crate) struct Step {
    pub(crate) pipeline: Arc<Pipeline>,
    pub(crate) groups: [u32; 3],
    /// Where the workgroup counts lie that take the place of `groups`.
    pub(crate) counts: Option<Counts>,
    pub(crate) args: Vec<StepArg>,
    pub(crate) push: Vec<u8>,
    /// Whether it depends on an earlier step of the same plan.
    pub(crate) barrier: bool,
    /// Whether it writes what the host reads in place.
    pub(crate) reports: bool,
    pub(crate) label: Arc<Label>,
}

/// What a profile calls steps.
#[derive(Debug)]
pub(crate) struct Label {
    /// `pack/kernel`, or who else asks for them.
    pub(crate) kernel: Arc<str>,
    pub(crate) shader: Arc<str>,
}

impl Label {
    pub(crate) fn new(kernel: &Arc<str>, shader: &str) -> Arc<Label> {
        Arc::new(Label {
            kernel: kernel.clone(),
            shader: shader.into(),
        })
    }
}

/// Place of three workgroup counts: which of the call's buffers, which byte.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Counts {
    pub(crate) buffer: usize,
    pub(crate) offset: u64,
}

/// A buffer of a call, and the byte that its arguments count from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bound<'a> {
    pub(crate) buffer: &'a Arc<Buffer>,
    pub(crate) start: u64,
}

impl<'a> Bound<'a> {
    pub(crate) fn whole(buffer: &'a Arc<Buffer>) -> Bound<'a> {
        Bound::from_byte(buffer, 0)
    }

    pub(crate) fn from_byte(buffer: &'a Arc<Buffer>, start: u64) -> Bound<'a> {
        Bound { buffer, start }
    }
}

/// Buffer argument of a step: which of the call's buffers, which range, how it is used.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StepArg {
    pub(crate) buffer: usize,
    pub(crate) offset: u64,
    /// 0 for the rest of the buffer.
    pub(crate) len: u64,
    pub(crate) reads: bool,
    pub(crate) writes: bool,
}
