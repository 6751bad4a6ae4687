//! Steps that repeat: which they are, and the dispatches that they stand for.

use super::{refusal::invalid, step::CheckedStep};
use crate::{Result, queue::StepArg};
use nx_vulkan_abi::{Plan, plan::MAX_DISPATCHES};
use std::ops::Range;

/// Steps of a plan that run several times.
#[derive(Debug)]
pub(super) struct Repeated {
    places: Range<usize>,
    times: u32,
}

/// The ranges of steps that repeat, in order. They neither overlap nor leave the plan, and all dispatches together are not
/// too many.
pub(super) fn ranges(plan: &Plan) -> Result<Vec<Repeated>> {
    let mut ranges: Vec<Repeated> = Vec::new();
    let mut dispatches = plan.steps.len() as u64;
    for (place, step) in plan.steps.iter().enumerate() {
        let Some((steps, times)) = step.repetition() else {
            continue;
        };
        let at = |why: &str| {
            let text = format!("step {place}: {steps} steps repeat {times} times, {why}");
            Err(invalid(text))
        };
        let left = plan.steps.len() - place;
        if steps == 0 || times == 0 {
            return at("and neither may be 0");
        }
        if steps as usize > left {
            return at(&format!("and there are {left}"));
        }
        if ranges.last().is_some_and(|last| place < last.places.end) {
            return at("inside of others that do");
        }
        dispatches += u64::from(steps) * u64::from(times - 1);
        ranges.push(Repeated {
            places: place..place + steps as usize,
            times,
        });
    }
    if dispatches > MAX_DISPATCHES as u64 {
        return Err(invalid(format!(
            "{dispatches} dispatches, and the limit is {MAX_DISPATCHES}"
        )));
    }
    let outside = plan
        .steps
        .iter()
        .enumerate()
        .find(|(place, step)| step.counter().is_some() && !is_in(&ranges, *place));
    match outside {
        Some((place, _)) => Err(invalid(format!(
            "step {place}: its push constants grow with repetitions, and it does not repeat"
        ))),
        None => Ok(ranges),
    }
}

/// Whether the step at `place` repeats.
pub(super) fn is_in(ranges: &[Repeated], place: usize) -> bool {
    ranges.iter().any(|range| range.places.contains(&place))
}

/// The steps as often as they run, each with a barrier where it depends on one since the last barrier.
pub(super) fn unrolled<'a>(steps: &'a [CheckedStep], ranges: &[Repeated]) -> Vec<CheckedStep> {
    let mut all = Vec::with_capacity(steps.len());
    // What ran since then, each step once: all its repetitions touch the same bytes.
    let mut since: Vec<&CheckedStep> = Vec::new();
    let mut run = |own: &'a CheckedStep, turn: u32| {
        let mut step = own.clone();
        step.barrier = since.iter().any(|b| depends(&b.args, &step.args));
        // Who reads its workgroup counts does so beside its arguments: what wrote them is kept in mind.
        if step.barrier && step.counts.is_none() {
            since.clear();
        }
        if !since.iter().any(|b| std::ptr::eq(*b, own)) {
            since.push(own);
        }
        if let Some((byte, by)) = step.counter
            && let Some(word) = step.push[byte..].first_chunk_mut()
        {
            let count = u32::from_ne_bytes(*word).wrapping_add(turn.wrapping_mul(by));
            *word = count.to_ne_bytes();
        }
        all.push(step);
    };
    let mut rest = steps;
    while let Some(first) = rest.first() {
        let range = ranges
            .iter()
            .find(|range| range.places.contains(&first.place));
        let (count, times) = match range {
            Some(range) => {
                let inside = rest
                    .iter()
                    .take_while(|step| range.places.contains(&step.place));
                (inside.count(), range.times)
            }
            None => (1, 1),
        };
        let (own, others) = rest.split_at(count);
        for turn in 0..times {
            for step in own {
                run(step, turn);
            }
        }
        rest = others;
    }
    all
}

/// Whether `later` touches bytes that `earlier` writes, or writes bytes that it reads.
pub(super) fn depends(earlier: &[StepArg], later: &[StepArg]) -> bool {
    later.iter().any(|b| {
        earlier.iter().any(|a| {
            let overlap =
                a.buffer == b.buffer && a.offset < b.offset + b.len && b.offset < a.offset + a.len;
            overlap && (a.writes || b.writes)
        })
    })
}
