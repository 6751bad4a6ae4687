//! Writing down what a program's requests would record, from the plans that are known.

use super::{
    super::{
        Ran, Runtime,
        key::with_key,
        program::{Progress, Runner},
        running::Memory as _,
        tensors::cast,
    },
    Fresh, Lies, Made, Outcome, Replay,
    arena::Arena,
    draft::{Draft, Place},
    sources::Sources,
};
use crate::{
    Kind, Program, Request, Result, Tensor,
    faults::Faults,
    memory::{Buffer, would_wait},
    queue::{Bound, Call},
    route::Route,
};
use rustc_hash::FxHashSet;
use std::sync::Arc;

/// Commands that a program has at least: with fewer of them the copies around them outweigh what they save.
const LEAST_COMMANDS: u64 = 8;
/// Commands that it has at most: twice as many as the queue takes ahead of the device.
const MOST_COMMANDS: u64 = 8_192;
/// Bytes that may be copied around a run for each of its commands: a tenth of the time that a command saves.
const COPIED: u64 = 256 << 10;
/// Bytes of a result, or of an input that changes, for each command that touches it from which on its copy takes longer than to
/// record these anew in each run.
const ANEW: u64 = 8 * COPIED;

struct Composer<'a> {
    runtime: &'a Runtime,
    arena: Arena<'a>,
    drafts: Vec<Draft>,
    commands: u64,
    routes: Vec<Arc<Route>>,
}

impl Runner for Composer<'_> {
    fn request(&mut self, request: &Request<'_, &Tensor>) -> Result<Ran> {
        let Some(route) = with_key(request, |key| self.runtime.cached(key)) else {
            self.arena.is_early = true;
            return Err(would_wait());
        };
        let outputs = match &*route {
            Route::Device {
                compiled, prepare, ..
            } if compiled.watched.is_none() => {
                let mut prepared: Vec<Tensor> =
                    request.inputs.iter().map(|t| (*t).clone()).collect();
                for as_type in prepare {
                    let tensor = &mut prepared[as_type.index as usize];
                    *tensor = cast(tensor, as_type.dtype, |request| self.request(request))?;
                }
                let prepared: Vec<&Tensor> = prepared.iter().collect();
                self.draft(&route, &request.over(prepared))?
            }
            Route::Split { program, .. } => {
                let mut progress = Progress::default();
                progress.advance(program, &request.inputs, self)?;
                progress.finish(program, &request.inputs)?.results
            }
            // What the host computes is no command, and what a shader reports is looked at after each call.
            Route::Device { .. } | Route::Host { .. } => return Err(would_wait()),
        };
        let served_by = route.served_by().clone();
        self.routes.push(route);
        Ok(Ran {
            outputs,
            served_by,
            is_fallback: false,
        })
    }

    fn runtime(&self) -> &Runtime {
        self.runtime
    }
}

impl Composer<'_> {
    fn draft(&mut self, route: &Arc<Route>, request: &Request<'_, &Tensor>) -> Result<Vec<Tensor>> {
        let Route::Device { compiled, .. } = &**route else {
            return Err(would_wait());
        };
        self.arena.expect(request.inputs.iter().copied());
        let mut allotted = self.runtime.allot(compiled, request, &mut self.arena)?;
        let bound = allotted.bound(compiled, &request.inputs, None);
        let place = |bound: &Bound<'_>| {
            let own = self.arena.place(bound.buffer).map(Place::Own);
            let place = own.unwrap_or_else(|| Place::Other(bound.buffer.clone()));
            (place, bound.start)
        };
        let buffers = bound.iter().map(place).collect();
        let steps = compiled.steps_without(allotted.made);
        self.commands += steps.len() as u64;
        if self.commands > MOST_COMMANDS {
            return Err(would_wait());
        }
        let waves = self.arena.order.next(steps, &bound);
        self.drafts.push(Draft {
            route: route.clone(),
            made: allotted.made,
            waves,
            buffers,
            anew: Vec::new(),
        });
        drop(bound);
        let word = allotted.word.clone();
        self.runtime
            .inherit(request, word.as_ref(), &mut allotted.results);
        Ok(allotted.results)
    }
}

/// What came of it.
pub(super) enum Composed {
    Replay(Box<Replay>),
    /// A plan is not known yet, or what will be kept of an operand is not there.
    Early,
    /// There is no room for the memory that it has more for steps side by side.
    Full,
}

/// Records a program over `inputs`, of which those that are `changing` are copied to buffers of the program's own before each run,
/// or read where they lie where they are large.
/// With `in_turn` its steps run one after the other. With `can_wait` it is told where it is too early for that.
///
/// # Errors
/// [`crate::Kind::WouldWait`] where it cannot be recorded, or that does not pay.
pub(super) fn compose(
    runtime: &Runtime,
    program: &Program<'_>,
    inputs: &[&Tensor],
    changing: &[bool],
    (in_turn, can_wait): (bool, bool),
) -> Result<Composed> {
    let composed = |in_turn| composed(runtime, program, inputs, changing, (in_turn, can_wait));
    match composed(in_turn)? {
        Composed::Full => composed(true),
        composed => Ok(composed),
    }
}

fn composed(
    runtime: &Runtime,
    program: &Program<'_>,
    inputs: &[&Tensor],
    changing: &[bool],
    (in_turn, can_wait): (bool, bool),
) -> Result<Composed> {
    let mut composer = Composer {
        runtime,
        arena: Arena::new(runtime, runtime.replays.room(), in_turn),
        drafts: Vec::new(),
        commands: 0,
        routes: Vec::new(),
    };
    let mut tensors = Vec::with_capacity(inputs.len());
    let mut slots = Vec::with_capacity(inputs.len());
    for (input, is_changing) in inputs.iter().zip(changing) {
        let slot = match is_changing {
            true => Some(composer.arena.buffer(input.part().len)?),
            false => None,
        };
        tensors.push(match &slot {
            Some(slot) => input.in_part(slot.clone()),
            None => input.moved(input.buffer.clone(), Faults::default()),
        });
        slots.push(slot);
    }
    let references: Vec<&Tensor> = tensors.iter().collect();
    let mut progress = Progress::default();
    match progress.advance(program, &references, &mut composer) {
        Err(_) if composer.arena.is_full && !in_turn => return Ok(Composed::Full),
        Err(error) if error.kind() == Kind::WouldWait && composer.arena.is_early && can_wait => {
            return Ok(Composed::Early);
        }
        walked => walked?,
    }
    let ran = progress.finish(program, &references)?;
    let Composer {
        arena,
        mut drafts,
        commands,
        routes,
        ..
    } = composer;
    if arena.is_early && can_wait {
        return Ok(Composed::Early);
    }
    // The own buffers that results lie in.
    let mut own: Vec<usize> = Vec::new();
    let mut results = Vec::with_capacity(ran.results.len());
    let sources = Sources::of(program, &references);
    for (&value, tensor) in program.results().iter().zip(ran.results) {
        if (value as usize) < inputs.len() {
            results.push(Outcome::Input(value as usize));
            continue;
        }
        let lies = match arena.place(&tensor.buffer) {
            Some(place) => {
                let known = own.iter().position(|own| *own == place);
                let fresh = known.unwrap_or(own.len());
                if known.is_none() {
                    own.push(place);
                }
                Lies::Fresh(fresh)
            }
            None => Lies::In(tensor.buffer.clone()),
        };
        let words = arena.words.iter().enumerate();
        let words = words.filter(|(_, word)| tensor.faults.has(word));
        results.push(Outcome::Made(Box::new(Made {
            words: words.map(|(index, _)| index).collect(),
            of: sources.inputs_of(value),
            lies,
            layout: tensor.layout(),
        })));
    }
    let fresh = fresh(&arena, &drafts, &own, &slots);
    // By own buffer what commands touch in its place.
    let mut instead: Vec<Option<Place>> = vec![None; arena.buffers.len()];
    for (result, (&own, fresh)) in own.iter().zip(&fresh).enumerate() {
        if fresh.copied().is_none() {
            instead[own] = Some(Place::Fresh(result));
        }
    }
    for (input, slot) in slots.iter_mut().enumerate() {
        let place = slot.as_ref().and_then(|slot| arena.place(slot));
        if let Some(place) = place.filter(|place| !own.contains(place))
            && is_renewed(&arena, &drafts, place)
        {
            instead[place] = Some(Place::Input(input));
            *slot = None;
        }
    }
    let renewed = drafts.iter_mut().map(|draft| draft.renew(&instead));
    let renewed: u64 = renewed.sum();
    let copies = slots.iter().flatten();
    let copies = copies.chain(fresh.iter().filter_map(Fresh::copied));
    let (count, bytes) = copies.fold((0, 0), |(count, bytes), buffer| {
        (count + 1, bytes + buffer.len())
    });
    let kept = commands - renewed;
    if kept < LEAST_COMMANDS.max(count) || bytes > kept * COPIED {
        return Err(would_wait());
    }
    let of_results: Vec<Arc<Buffer>> = own.iter().map(|&own| arena.buffers[own].clone()).collect();
    let calls = drafts.iter();
    let calls: Vec<Call<'_>> = calls
        .filter_map(|draft| draft.call(&arena.buffers, &of_results, inputs))
        .collect();
    let captured = runtime.stream.capture(&runtime.pipelines, &calls)?;
    drop(calls);
    // Operands that stay the same are held by whoever calls, and are compared before each run.
    let mut known: FxHashSet<*const Buffer> = tensors
        .iter()
        .map(|tensor| Arc::as_ptr(&tensor.buffer))
        .collect();
    let mut held: Vec<Arc<Buffer>> = Vec::new();
    for (place, _) in drafts.iter().flat_map(|draft| &draft.buffers) {
        if let Place::Other(buffer) = place
            && known.insert(Arc::as_ptr(buffer))
        {
            held.push(buffer.clone());
        }
    }
    let anew = drafts.into_iter().filter(|draft| !draft.anew.is_empty());
    let anew = anew.map(|draft| draft.holding(&arena.buffers)).collect();
    let buffers = arena.buffers.into_iter().zip(&instead);
    let buffers = buffers.filter(|(_, other)| other.is_none());
    let buffers: Vec<Arc<Buffer>> = buffers.map(|(buffer, _)| buffer).collect();
    let counted = runtime
        .replays
        .count(buffers.iter().map(|buffer| buffer.block()).sum());
    Ok(Composed::Replay(Box::new(Replay {
        captured,
        slots,
        own: buffers,
        held,
        words: arena.words,
        fresh,
        anew,
        results,
        routes,
        served_by: ran.served_by,
        counted,
    })))
}

/// The buffers that each run makes in place of the program's `own` ones, in which results lie. They are written where they stay
/// if their copies would take longer than what each run then records anew.
fn fresh(
    arena: &Arena<'_>,
    drafts: &[Draft],
    own: &[usize],
    slots: &[Option<Arc<Buffer>>],
) -> Vec<Fresh> {
    let fresh = own.iter().map(|&own| {
        let buffer = &arena.buffers[own];
        let is_slot = slots.iter().flatten().any(|slot| Arc::ptr_eq(slot, buffer));
        match !is_slot && is_renewed(arena, drafts, own) {
            true => Fresh::Written(buffer.len()),
            false => Fresh::Copy(buffer.clone()),
        }
    });
    fresh.collect()
}

/// Whether a copy of that own buffer would take longer than to record anew what touches it.
fn is_renewed(arena: &Arena<'_>, drafts: &[Draft], own: usize) -> bool {
    let touches: u64 = drafts.iter().map(|draft| draft.touches(own)).sum();
    touches > 0 && arena.buffers[own].len() > touches * ANEW
}
