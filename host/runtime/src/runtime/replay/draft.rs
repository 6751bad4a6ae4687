//! A call of a recorded program, and where its buffers come from.

use crate::{
    Tensor,
    memory::Buffer,
    queue::{Bound, Call, Step},
    route::Route,
};
use std::sync::Arc;

/// One call, over buffers of the program or others.
#[derive(Debug)]
pub(super) struct Draft {
    pub(super) route: Arc<Route>,
    pub(super) made: usize,
    pub(super) waves: Vec<u32>,
    pub(super) buffers: Vec<(Place, u64)>,
    /// By step whether each run records it anew; empty where that is none.
    pub(super) anew: Vec<bool>,
}

#[derive(Debug, Clone)]
pub(super) enum Place {
    Own(usize),
    Other(Arc<Buffer>),
    /// The buffer of results of that number, another one in each run.
    Fresh(usize),
    /// Where the input of that number lies in a run.
    Input(usize),
    /// The buffer of the input of that number, the same in each run: whoever calls holds it.
    Same(usize),
}

impl Draft {
    fn steps(&self) -> &[Step] {
        match &*self.route {
            Route::Device { compiled, .. } => compiled.steps_without(self.made),
            Route::Split { .. } | Route::Host { .. } => &[],
        }
    }

    fn touched(&self, step: &Step) -> impl Iterator<Item = &Place> {
        let args = step.args.iter().map(|arg| arg.buffer);
        let all = args.chain(step.counts.map(|counts| counts.buffer));
        all.map(|buffer| &self.buffers[buffer].0)
    }

    /// How many of its steps touch one of the program's own buffers that has another place.
    pub(super) fn renewed(&self, instead: &[Option<Place>]) -> u64 {
        let moves = |place: &Place| matches!(place, Place::Own(index) if instead[*index].is_some());
        let steps = self.steps().iter();
        steps.filter(|step| self.touched(step).any(moves)).count() as u64
    }

    /// How many of its steps touch that one of the program's own buffers.
    pub(super) fn touches(&self, own: usize) -> u64 {
        let is_own = |place: &Place| matches!(place, Place::Own(index) if *index == own);
        let steps = self.steps().iter();
        let touching = steps.filter(|step| self.touched(step).any(is_own));
        touching.count() as u64
    }

    /// Has each run record anew what touches another buffer in each, in place of the program's own, by these the places of those.
    pub(super) fn renew(&mut self, instead: &[Option<Place>]) {
        for (place, _) in &mut self.buffers {
            if let Place::Own(index) = place
                && let Some(other) = &instead[*index]
            {
                *place = other.clone();
            }
        }
        let differs = |place: &Place| matches!(place, Place::Fresh(_) | Place::Input(_));
        let steps = self.steps().iter();
        self.anew = steps.map(|step| self.touched(step).any(differs)).collect();
        if !self.anew.contains(&true) {
            self.anew.clear();
        }
    }

    /// The same with the program's own buffers by themselves, and without those of `inputs`.
    pub(super) fn holding(mut self, own: &[Arc<Buffer>], inputs: &[Tensor]) -> Draft {
        for (place, _) in &mut self.buffers {
            match place {
                Place::Own(index) => *place = Place::Other(own[*index].clone()),
                Place::Other(buffer) => {
                    let is_it = |input: &Tensor| Arc::ptr_eq(&input.buffer, buffer);
                    if let Some(input) = inputs.iter().position(is_it) {
                        *place = Place::Same(input);
                    }
                }
                Place::Fresh(_) | Place::Input(_) | Place::Same(_) => {}
            }
        }
        self
    }

    /// The call over the program's own buffers, those of results, and the inputs of a run.
    pub(super) fn call<'a>(
        &'a self,
        own: &'a [Arc<Buffer>],
        fresh: &'a [Arc<Buffer>],
        inputs: &[&'a Tensor],
    ) -> Option<Call<'a>> {
        let Route::Device { compiled, .. } = &*self.route else {
            return None;
        };
        let bound = |(place, start): &'a (Place, u64)| match place {
            Place::Own(index) => Bound::from_byte(&own[*index], *start),
            Place::Other(buffer) => Bound::from_byte(buffer, *start),
            Place::Fresh(index) => Bound::from_byte(&fresh[*index], *start),
            Place::Input(index) => {
                let input = inputs[*index];
                Bound::from_byte(&input.buffer, input.part().start + start)
            }
            Place::Same(index) => Bound::from_byte(&inputs[*index].buffer, *start),
        };
        Some(Call {
            name: &compiled.name,
            steps: self.steps(),
            waves: &self.waves,
            anew: &self.anew,
            buffers: self.buffers.iter().map(bound).collect(),
        })
    }
}
