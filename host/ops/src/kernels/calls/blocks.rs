//! Where the blocks of values are while a thread computes them.

use super::{
    Calls,
    loops::spread,
    plan::{Made, Value},
};
use crate::kernels::lanes::{self, Cell};

/// Bytes of a line of the cache: what crosses the end of one takes twice as long or more.
pub(super) const LINE: usize = 64;

/// What one thread needs for its blocks.
pub(super) struct Registers<'a> {
    pub(super) blocks: Vec<Block>,
    /// By value a block that all others are the same as.
    pub(super) same: Vec<Block>,
    /// By value where its elements lie in memory.
    pub(super) lines: Vec<Option<&'a [u8]>>,
    /// For results of 16 bits.
    pub(super) wide: Vec<Cell>,
}

impl<'a> Registers<'a> {
    /// Of these calls.
    pub(super) fn of(calls: &Calls<'a>) -> Registers<'a> {
        let elements = calls.block * calls.length;
        let same = |value: &Value| {
            let size = value.size();
            let mut block = match value.is_same() {
                true => Block::new(size * elements),
                false => Block::default(),
            };
            match &value.made {
                Made::One(one) if value.is_same() => {
                    // Of one of the sizes that are spread, as all that come here.
                    let _ = spread(
                        size,
                        one,
                        elements,
                        &mut block.bytes_mut()[..size * elements],
                    );
                }
                Made::Row(at) => {
                    // Of a type that can be read, as all that come here.
                    let _ = calls.operands[*at].0.copy(0, block.bytes_mut());
                }
                _ => {}
            }
            block
        };
        let plan = &calls.plan;
        let is_narrow = plan
            .values
            .iter()
            .any(|value| lanes::is_narrow(value.dtype));
        let blocks = plan.sizes.iter().map(|size| Block::new(size * elements));
        Registers {
            blocks: blocks.collect(),
            same: plan.values.iter().map(same).collect(),
            lines: vec![None; plan.values.len()],
            wide: vec![Cell::default(); if is_narrow { elements } else { 0 }],
        }
    }
}

/// Bytes from the begin of a line of the cache on.
#[derive(Default)]
pub(super) struct Block(Vec<u8>, usize);

impl Block {
    fn new(bytes: usize) -> Block {
        let bytes = vec![0; bytes + LINE];
        let begin = bytes.as_ptr().align_offset(LINE);
        Block(bytes, begin.min(LINE))
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.0[self.1..]
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.0[self.1..]
    }
}
