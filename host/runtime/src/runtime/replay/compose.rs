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
/// Bytes of a result, or of an input that changes, for each command that touches it from which on these are recorded anew in each
/// run: what takes less than its copy at first, then more where else too much would be copied.
const ANEW: [u64; 4] = [8 * COPIED, 4 * COPIED, 2 * COPIED, COPIED];

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
    let mut moved = ANEW
        .iter()
        .map(|bytes| Moved::of(&arena, &drafts, (&own, &slots), *bytes));
    let Some(Moved {
        fresh,
        instead,
        inputs: in_place,
        ..
    }) = moved.find(|moved| moved.pays(commands))
    else {
        return Err(would_wait());
    };
    for input in in_place {
        slots[input] = None;
    }
    drafts.iter_mut().for_each(|draft| draft.renew(&instead));
    let of_results: Vec<Arc<Buffer>> = own.iter().map(|&own| arena.buffers[own].clone()).collect();
    let calls = drafts.iter();
    let calls: Vec<Call<'_>> = calls
        .filter_map(|draft| draft.call(&arena.buffers, &of_results, inputs))
        .collect();
    let captured = runtime.stream.capture(&runtime.pipelines, &calls, false)?;
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
    let drafts = drafts.into_iter();
    let drafts = drafts.map(|draft| draft.holding(&arena.buffers, &tensors));
    let drafts: Vec<Draft> = drafts.collect();
    let anew = drafts.iter().enumerate();
    let anew = anew.filter(|(_, draft)| !draft.anew.is_empty());
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
        boards: arena.boards,
        fresh,
        anew: anew.map(|(index, _)| index).collect(),
        drafts,
        results,
        routes,
        served_by: ran.served_by,
        counted,
    })))
}

/// What of a program each run moves: what it copies, and what it records anew.
struct Moved {
    /// The buffers that each run makes in place of the program's own ones, in which results lie.
    fresh: Vec<Fresh>,
    /// By own buffer what commands touch in its place.
    instead: Vec<Option<Place>>,
    /// The inputs that are read where they lie.
    inputs: Vec<usize>,
    /// Commands that are recorded anew.
    renewed: u64,
    copies: u64,
    bytes: u64,
}

impl Moved {
    /// With buffers of results, `own` by their places, and those of inputs that change, `slots`, where they are if they have more than
    /// so many bytes for each command that touches them. The others are copied.
    fn of(
        arena: &Arena<'_>,
        drafts: &[Draft],
        (own, slots): (&[usize], &[Option<Arc<Buffer>>]),
        anew: u64,
    ) -> Moved {
        let is_large = |place: usize| {
            let touches: u64 = drafts.iter().map(|draft| draft.touches(place)).sum();
            touches > 0 && arena.buffers[place].len() > touches * anew
        };
        let mut moved = Moved {
            fresh: Vec::with_capacity(own.len()),
            instead: vec![None; arena.buffers.len()],
            inputs: Vec::new(),
            renewed: 0,
            copies: 0,
            bytes: 0,
        };
        let slots: Vec<Option<usize>> = slots
            .iter()
            .map(|slot| slot.as_ref().and_then(|slot| arena.place(slot)))
            .collect();
        for &place in own {
            let buffer = &arena.buffers[place];
            if is_large(place) && !slots.contains(&Some(place)) {
                moved.instead[place] = Some(Place::Fresh(moved.fresh.len()));
                moved.fresh.push(Fresh::Written(buffer.len()));
            } else {
                moved.fresh.push(Fresh::Copy(buffer.clone()));
                moved.copy(buffer);
            }
        }
        for (input, place) in slots.iter().enumerate() {
            let Some(place) = *place else { continue };
            if is_large(place) && !own.contains(&place) {
                moved.instead[place] = Some(Place::Input(input));
                moved.inputs.push(input);
            } else {
                moved.copy(&arena.buffers[place]);
            }
        }
        let renewed = drafts.iter().map(|draft| draft.renewed(&moved.instead));
        moved.renewed = renewed.sum();
        moved
    }

    fn copy(&mut self, buffer: &Buffer) {
        self.copies += 1;
        self.bytes += buffer.len();
    }

    /// Whether what a run of so many commands saves is more than what it copies takes.
    fn pays(&self, commands: u64) -> bool {
        let kept = commands - self.renewed;
        kept >= LEAST_COMMANDS.max(self.copies) && self.bytes <= kept * COPIED
    }
}
