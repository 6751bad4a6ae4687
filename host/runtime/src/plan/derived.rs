//! Scratch buffers that depend on one input alone: whether a plan's steps are as it says, and what is left of the plan where
//! such a buffer is there already.

use super::{
    check::{Check, slot_name},
    refusal::invalid,
    repeat::depends,
    step::CheckedStep,
};
use crate::{
    Result,
    memory::Key,
    queue::{Step, StepArg},
    tensor::Tensor,
};
use nx_vulkan_abi::{
    Access, Dispatch, Plan, Slot,
    plan::{MAX_DERIVED, MAX_STEPS},
};
use sha2::{Digest, Sha256};
use std::sync::OnceLock;

/// A scratch buffer that depends on one input alone.
#[derive(Debug)]
pub(crate) struct Derivation {
    /// Which of the plan's scratch buffers.
    pub(crate) scratch: usize,
    /// Which of its inputs.
    pub(crate) input: usize,
    /// Everything but the input's bytes that says what the buffer is filled with.
    digest: [u8; 32],
    /// The steps that fill it.
    steps: Vec<usize>,
}

/// What a plan says of a scratch buffer, once its steps are seen to agree.
#[derive(Debug)]
pub(super) struct Claim {
    scratch: u32,
    input: u32,
    /// The steps that fill it: their places in the plan, or among those that run.
    steps: Vec<usize>,
}

/// What a plan says of its scratch buffers; those are left out that report to the host as they are filled.
///
/// # Errors
/// [`Kind::Pack`](crate::Kind::Pack) where its steps do anything else.
pub(super) fn claims(
    check: &Check<'_>,
    steps: &[CheckedStep],
    repeats: &dyn Fn(usize) -> bool,
) -> Result<Vec<Claim>> {
    let plan = check.plan;
    let mut claims: Vec<Claim> = Vec::with_capacity(MAX_DERIVED);
    for (scratch, input) in plan.derived().flatten() {
        let claim = format!("scratch buffer {scratch} is said to depend on input {input} alone");
        let refused = |why: &str| Err(invalid(format!("{claim}, {why}")));
        let at = |place: usize, why: &str| refused(&format!("and step {place} {why}"));
        if scratch as usize >= plan.scratch.len() {
            return refused("and there is no such buffer");
        }
        if input as usize >= check.sizes.inputs.len() {
            return refused("and there is no such input");
        }
        if claims.iter().any(|claim| claim.scratch == scratch) {
            return refused("which is said of it twice");
        }
        let is_it = |slot, index| slot == Slot::SCRATCH && index == scratch;
        let args = |step: &Dispatch| -> Vec<(Slot, u32, bool)> {
            let args = step.args.iter();
            args.map(|arg| (arg.slot, arg.index, arg.access != Access::READ))
                .collect()
        };
        let mut fills: Vec<usize> = Vec::new();
        let mut read = false;
        for step in steps.iter().filter(|step| step.shader.is_some()) {
            let (place, all) = (step.place, args(&plan.steps[step.place]));
            let touches = all.iter().any(|&(slot, index, _)| is_it(slot, index));
            if !all
                .iter()
                .any(|&(slot, index, writes)| is_it(slot, index) && writes)
            {
                read |= touches;
                continue;
            }
            if read {
                return at(place, "fills it once another has read it");
            }
            let foreign = all.iter().find(|&&(slot, index, writes)| {
                let may_read = slot == Slot::PARAMS || (slot == Slot::INPUT && index == input);
                !is_it(slot, index) && (writes || !may_read)
            });
            if let Some((slot, index, _)) = foreign {
                let why = format!("fills it and has {} {index} too", slot_name(*slot));
                return at(place, &why);
            }
            if repeats(place) {
                return at(place, "fills it and repeats");
            }
            if step.counts.is_some() {
                return at(place, "fills it by workgroup counts of the device");
            }
            fills.push(place);
        }
        if fills.is_empty() {
            return refused("and no step fills it");
        }
        let reports = steps.iter().any(|step| {
            fills.contains(&step.place) && step.args.len() > plan.steps[step.place].args.len()
        });
        if !reports {
            claims.push(Claim {
                scratch,
                input,
                steps: fills,
            });
        }
    }
    Ok(claims)
}

impl Claim {
    /// The same by the numbers of the steps that run, of which each that fills the buffer is one.
    pub(super) fn among(mut self, steps: &[CheckedStep]) -> Claim {
        let fills = |step: &CheckedStep| self.steps.contains(&step.place);
        let places = steps.iter().enumerate();
        self.steps = places
            .filter(|(_, step)| fills(step))
            .map(|(at, _)| at)
            .collect();
        self
    }

    /// With what tells it from others: the steps, whose pipelines have these keys.
    pub(super) fn derivation(self, plan: &Plan, steps: &[Step], keys: &[[u8; 32]]) -> Derivation {
        let mut hash = Sha256::new();
        let mut number = |n: u64| hash.update(n.to_le_bytes());
        number(plan.scratch[self.scratch as usize]);
        let input = self.input as usize;
        for &at in &self.steps {
            let step = &steps[at];
            step.groups.iter().for_each(|&n| number(n.into()));
            number(step.args.len() as u64);
            let filled = step
                .args
                .iter()
                .find(|arg| arg.writes)
                .map(|arg| arg.buffer);
            for arg in &step.args {
                // It is the input, the buffer that is filled, or params.
                let kind =
                    u64::from(arg.buffer == input) + 2 * u64::from(Some(arg.buffer) == filled);
                let access = u64::from(arg.reads) + 2 * u64::from(arg.writes);
                [kind, access, arg.offset, arg.len]
                    .into_iter()
                    .for_each(&mut number);
            }
        }
        for &at in &self.steps {
            hash.update(keys[at]);
            hash.update((steps[at].push.len() as u64).to_le_bytes());
            hash.update(&steps[at].push);
        }
        hash.update(plan.params.as_slice());
        Derivation {
            scratch: self.scratch as usize,
            input,
            digest: hash.finalize().into(),
            steps: self.steps,
        }
    }
}

impl Derivation {
    /// What tells the buffer from what others are filled with, where these are the plan's inputs.
    pub(crate) fn key(&self, inputs: &[&Tensor]) -> Key {
        Key {
            steps: self.digest,
            start: inputs[self.input].part().start,
        }
    }
}

/// The scratch buffers of a plan that depend on one input alone.
#[derive(Debug, Default)]
pub(crate) struct Derivations {
    pub(crate) all: Vec<Derivation>,
    /// What is left of the plan where some are there already, by which they are; made when first needed.
    shorter: Vec<OnceLock<Vec<Step>>>,
}

impl Derivations {
    pub(super) fn of(all: Vec<Derivation>) -> Derivations {
        Derivations {
            shorter: vec![OnceLock::new(); (1 << all.len()) - 1],
            all,
        }
    }

    /// The steps of the plan, without those that fill the buffers whose bits are set in `made`.
    pub(super) fn left<'a>(&'a self, made: usize, steps: &'a [Step]) -> &'a [Step] {
        let Some(shorter) = made.checked_sub(1).map(|at| &self.shorter[at]) else {
            return steps;
        };
        shorter.get_or_init(|| {
            let is_made = |at: usize| {
                let mut all = self.all.iter().enumerate();
                all.any(|(bit, one)| made & 1 << bit != 0 && one.steps.contains(&at))
            };
            let left = steps.iter().enumerate().filter(|(at, _)| !is_made(*at));
            let mut left: Vec<Step> = left.map(|(_, step)| step.clone()).collect();
            relax(&mut left);
            left
        })
    }
}

/// Takes the barriers away that only steps needed which are gone. Long plans, and those that read workgroup counts, have one
/// before every step: that of a step which is gone may have stood between others.
fn relax(steps: &mut [Step]) {
    if steps.len() > MAX_STEPS || steps.iter().any(|step| step.counts.is_some()) {
        for step in steps {
            step.barrier = true;
        }
        return;
    }
    let mut since: Vec<Vec<StepArg>> = Vec::new();
    for step in steps {
        step.barrier = since.iter().any(|args| depends(args, &step.args));
        if step.barrier {
            since.clear();
        }
        since.push(step.args.clone());
    }
}
