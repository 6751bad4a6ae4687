//! Running what waits.

use super::{Lazy, graph::Graph};
use crate::{
    Kind, Result, Tensor,
    memory::{Buffer, Patience, would_wait},
    runtime::{Progress, Runtime},
};
use smallvec::SmallVec;
use std::sync::{Arc, atomic::Ordering};

/// Most ops of a family.
pub(super) const MOST: usize = 48;
/// Results that are settled together, so that what they have in common is computed once.
const TOGETHER: usize = 4;

impl Runtime {
    /// Runs what these results wait for.
    ///
    /// # Errors
    /// As [`Runtime::run_program`].
    pub fn settle(&self, lazies: &[Arc<Lazy>]) -> Result<()> {
        self.settle_by(lazies, Patience::Waits)
    }

    /// As [`Runtime::settle`], without waiting or compiling; false where that is needed, or there are many.
    ///
    /// # Errors
    /// As [`Runtime::settle`].
    pub fn try_settle(&self, lazies: &[Arc<Lazy>]) -> Result<bool> {
        match self.settle_by(lazies, Patience::Never) {
            Err(e) if matches!(e.kind(), Kind::WouldWait | Kind::OutOfMemory) => Ok(false),
            settled => settled.map(|()| true),
        }
    }

    /// Runs what waits, but what was only on the way to something else. What cannot run stays: its reader is told.
    pub(in crate::runtime) fn settle_last(&self) {
        for lazy in self.lazies.last() {
            let _ = self.settle(std::slice::from_ref(&lazy));
        }
    }

    /// Runs all that waits, as far as it can, so that rules and packs that come do not change what was called before.
    pub(in crate::runtime) fn settle_all(&self) {
        for lazy in self.lazies.pending() {
            let _ = self.settle(std::slice::from_ref(&lazy));
        }
    }

    /// Runs what is to be made of the content of a buffer.
    ///
    /// # Errors
    /// As [`Runtime::settle`].
    pub(in crate::runtime) fn settle_readers(&self, buffer: &Arc<Buffer>) -> Result<()> {
        self.settle(&self.lazies.readers(buffer))
    }

    pub(super) fn settle_by(&self, lazies: &[Arc<Lazy>], patience: Patience) -> Result<()> {
        if lazies.len() > TOGETHER && patience == Patience::Never {
            return Err(would_wait());
        }
        lazies
            .chunks(TOGETHER)
            .try_for_each(|lazies| self.settle_few(lazies, patience))
    }

    fn settle_few(&self, lazies: &[Arc<Lazy>], patience: Patience) -> Result<()> {
        let graph = Graph::of(lazies);
        if graph.ops() == 0 {
            return Ok(());
        }
        let inputs: SmallVec<[&Tensor; 8]> = graph.leaves().collect();
        if let Some((lazy, request)) = graph.only(&inputs) {
            let ran = self.run_by(&request, patience)?;
            let made = ran.outputs.into_iter().next();
            return made.map_or(Ok(()), |tensor| self.make(lazy, tensor));
        }
        let program = self.lazies.program(&graph, patience)?;
        let mut progress = Progress::default();
        progress.advance(&program, &inputs, &mut (self, patience))?;
        let ran = progress.finish(&program, &inputs)?;
        for (lazy, tensor) in graph.results().zip(ran.results) {
            self.make(lazy, tensor)?;
        }
        graph.passed().for_each(|lazy| {
            lazy.was_passed.store(true, Ordering::Relaxed);
        });
        Ok(())
    }

    fn make(&self, lazy: &Lazy, tensor: Tensor) -> Result<()> {
        let charge = self.lazies.charge(tensor.buffer.block());
        lazy.make(tensor, charge)
    }
}
