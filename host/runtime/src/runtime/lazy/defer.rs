//! Which ops wait.

use super::{Family, Lazy, Operand, Owed, State, settle::MOST, size};
use crate::{
    Request, Spec,
    memory::Patience,
    route::Route,
    runtime::{Runtime, key::with_key},
    tensor::{Laid as _, Layout, byte_len},
};
use nx_vulkan_ops::{find, op::Op};
use parking_lot::Mutex;
use smallvec::SmallVec;
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

impl Runtime {
    /// Whether a result of that type and shape may wait.
    pub fn may_wait(&self, (dtype, shape): &Spec) -> bool {
        self.lazies.is_on
            && self.device.usable().is_ok()
            && byte_len(*dtype, shape).is_ok_and(|bytes| bytes > 0)
    }

    /// The result of an op that waits until somebody needs it; `None` where the op has to run now: it is no elementwise one, did
    /// not run with these layouts before, or there is no room for what it would hold.
    pub fn defer(
        &self,
        op: &str,
        operands: impl IntoIterator<Item = Operand>,
        output: &Spec,
    ) -> Option<Arc<Lazy>> {
        let op = find(op).filter(|op| op.is_elementwise())?;
        if !self.may_wait(output) {
            return None;
        }
        let operands = operands.into_iter().map(Operand::by_now);
        let operands: SmallVec<[Operand; 2]> = operands.collect();
        let fits = |lazy: &Arc<Lazy>| lazy.layout.shape() == output.1;
        if !operands.iter().filter_map(Operand::lazy).all(fits)
            || !self.serves(op, &operands, output)
        {
            return None;
        }
        let waiting = self
            .lazies
            .wait(operands.iter().map(Operand::bytes).sum())?;
        let owed = Owed {
            op,
            operands,
            waiting,
        };
        let family = match owed.family() {
            Some(family) => family,
            None => {
                let lazies: SmallVec<[Arc<Lazy>; 2]> = owed.lazies().cloned().collect();
                self.settle_by(&lazies, Patience::Never).ok()?;
                Family::new(1.into())
            }
        };
        let lazy = Arc::new(Lazy {
            layout: Layout::contiguous(output.0, &output.1),
            state: Mutex::new(State::Owed(owed)),
            family,
            was_passed: AtomicBool::new(false),
        });
        self.lazies.note(&lazy);
        // Looked at last: who lends a buffer notes that first, and then looks for who reads it.
        (!lazy.may_change()).then_some(lazy)
    }

    /// Whether it is known who runs it, and that it is who runs several of them as one.
    fn serves(&self, op: &Op, operands: &[Operand], output: &Spec) -> bool {
        let operands: SmallVec<[&Operand; 2]> = operands.iter().collect();
        let outputs = std::slice::from_ref(output);
        let request = Request::new(op.name, &operands[..], outputs, &[]);
        let current = self.current();
        let route = with_key(&request, |key| current.routes.get(key));
        route.is_some_and(|route| match &**route {
            Route::Device { served_by, .. } => current.runs_fused(served_by),
            Route::Host { .. } | Route::Split { .. } => false,
        })
    }
}

impl Lazy {
    /// Whether somebody may write what it is to be made of.
    fn may_change(&self) -> bool {
        match &*self.state.lock() {
            State::Owed(owed) => owed.operands.iter().any(Operand::may_be_written),
            State::Made(..) => false,
        }
    }
}

impl Owed {
    /// The family that it joins; `None` where that would be too large.
    fn family(&self) -> Option<Family> {
        let Some(first) = self.lazies().next().map(|lazy| &lazy.family) else {
            return Some(Family::new(1.into()));
        };
        if self.lazies().all(|lazy| Arc::ptr_eq(&lazy.family, first)) {
            let before = first.fetch_add(1, Ordering::Relaxed);
            return (before < MOST).then(|| first.clone());
        }
        let all: usize = self.lazies().map(|lazy| size(&lazy.family)).sum();
        (all < MOST).then(|| Family::new((all + 1).into()))
    }
}
