//! Writing down what a program's requests would record, from the plans that are known.

use super::{
    super::{
        Ran, Runtime,
        key::with_key,
        program::{Progress, Runner},
        running::Memory as _,
        tensors::cast,
    },
    Made, Outcome, Replay,
    arena::Arena,
};
use crate::{
    DType, Kind, Program, Request, Result, Step, Tensor, Value, View,
    faults::Faults,
    memory::{Buffer, would_wait},
    queue::{Bound, Call},
    route::Route,
};
use rustc_hash::FxHashSet;
use std::sync::Arc;

/// Commands that a program has at least: with fewer of them the copies around them outweigh what they save.
const LEAST_COMMANDS: u64 = 8;
/// Commands that it has at most, as many as the queue takes ahead of the device.
const MOST_COMMANDS: u64 = 4_096;
/// Bytes that may be copied around a run for each of its commands: a tenth of the time that a command saves.
const COPIED: u64 = 256 << 10;

/// One call, over buffers of the program or others.
struct Draft {
    route: Arc<Route>,
    made: usize,
    waves: Vec<u32>,
    buffers: Vec<(Place, u64)>,
}

enum Place {
    Own(usize),
    Other(Arc<Buffer>),
}

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
        });
        drop(bound);
        let word = allotted.word.clone();
        self.runtime
            .inherit(request, word.as_ref(), &mut allotted.results);
        Ok(allotted.results)
    }
}

impl Draft {
    fn call<'a>(&'a self, own: &'a [Arc<Buffer>]) -> Option<Call<'a>> {
        let Route::Device { compiled, .. } = &*self.route else {
            return None;
        };
        let bound = |(place, start): &'a (Place, u64)| match place {
            Place::Own(index) => Bound::from_byte(&own[*index], *start),
            Place::Other(buffer) => Bound::from_byte(buffer, *start),
        };
        Some(Call {
            name: &compiled.name,
            steps: compiled.steps_without(self.made),
            waves: &self.waves,
            buffers: self.buffers.iter().map(bound).collect(),
        })
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

/// Records a program over `inputs`, of which those that are `changing` are copied to buffers of the program's own before each run.
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
        drafts,
        commands,
        routes,
        ..
    } = composer;
    if arena.is_early && can_wait {
        return Ok(Composed::Early);
    }
    let calls: Vec<Call<'_>> = drafts
        .iter()
        .filter_map(|draft| draft.call(&arena.buffers))
        .collect();
    let mut copied: Vec<Arc<Buffer>> = Vec::new();
    let mut results = Vec::with_capacity(ran.results.len());
    let sources = Sources::of(program, &references);
    for (&value, tensor) in program.results().iter().zip(ran.results) {
        if (value as usize) < inputs.len() {
            results.push(Outcome::Input(value as usize));
            continue;
        }
        let own = arena.place(&tensor.buffer).is_some();
        let copy = own.then(|| {
            let same = |buffer: &Arc<Buffer>| Arc::ptr_eq(buffer, &tensor.buffer);
            copied.iter().position(same).unwrap_or_else(|| {
                copied.push(tensor.buffer.clone());
                copied.len() - 1
            })
        });
        let words = arena.words.iter().enumerate();
        let words = words.filter(|(_, word)| tensor.faults.has(word));
        results.push(Outcome::Made(Box::new(Made {
            words: words.map(|(index, _)| index).collect(),
            of: sources.inputs_of(value),
            copy,
            tensor,
        })));
    }
    let copies = slots.iter().flatten().chain(&copied);
    let (count, bytes) = copies.fold((0, 0), |(count, bytes), buffer| {
        (count + 1, bytes + buffer.len())
    });
    let pays = commands >= LEAST_COMMANDS.max(count) && bytes <= commands * COPIED;
    if !pays {
        return Err(would_wait());
    }
    let captured = runtime.stream.capture(&runtime.pipelines, &calls)?;
    drop(calls);
    // Operands that stay the same are held by whoever calls, and are compared before each run.
    let of_inputs: FxHashSet<*const Buffer> = tensors
        .iter()
        .map(|tensor| Arc::as_ptr(&tensor.buffer))
        .collect();
    let mut held: Vec<Arc<Buffer>> = Vec::new();
    let mut known = of_inputs;
    for (place, _) in drafts.into_iter().flat_map(|draft| draft.buffers) {
        if let Place::Other(buffer) = place
            && known.insert(Arc::as_ptr(&buffer))
        {
            held.push(buffer);
        }
    }
    let counted = runtime.replays.count(arena.bytes);
    Ok(Composed::Replay(Box::new(Replay {
        captured,
        slots,
        own: arena.buffers,
        held,
        words: arena.words,
        copied,
        results,
        routes,
        served_by: ran.served_by,
        counted,
    })))
}

/// By value the inputs that it is made of, as bits.
struct Sources {
    inputs: usize,
    words: usize,
    bits: Vec<u64>,
}

impl Sources {
    fn of(program: &Program<'_>, tensors: &[&Tensor]) -> Sources {
        let inputs = program.inputs();
        let words = inputs.div_ceil(64);
        let mut dtypes: Vec<DType> = tensors.iter().map(|tensor| tensor.dtype()).collect();
        let mut bits = Vec::new();
        for input in 0..inputs {
            let at = bits.len();
            bits.resize(at + words, 0u64);
            bits[at + input / 64] |= 1 << (input % 64);
        }
        let union = |bits: &[u64], values: &mut dyn Iterator<Item = Value>| {
            let mut all = vec![0u64; words];
            for value in values {
                let from = value as usize * words;
                for (all, bits) in all.iter_mut().zip(&bits[from..from + words]) {
                    *all |= bits;
                }
            }
            all
        };
        for step in program.steps() {
            let apart = match step {
                Step::Request(request) => {
                    let of: Vec<DType> = request
                        .inputs
                        .iter()
                        .map(|&value| dtypes[value as usize])
                        .collect();
                    dtypes.extend(request.outputs.iter().map(|output| output.0));
                    nx_vulkan_ops::made(&request.op, &of, &request.attrs)
                }
                Step::View(_, View::Bitcast(dtype)) => {
                    dtypes.push(*dtype);
                    None
                }
                Step::View(value, _) => {
                    dtypes.push(dtypes[*value as usize]);
                    None
                }
            };
            match apart {
                Some(results) => {
                    for made in results {
                        let read = step.inputs().iter().zip(&made.of);
                        let mut read = read
                            .filter(|(_, is_read)| **is_read)
                            .map(|(value, _)| *value);
                        bits.extend(union(&bits, &mut read));
                    }
                }
                None => {
                    let all = union(&bits, &mut step.inputs().iter().copied());
                    (0..step.made()).for_each(|_| bits.extend_from_slice(&all));
                }
            }
        }
        Sources {
            inputs,
            words,
            bits,
        }
    }

    fn inputs_of(&self, value: u32) -> Vec<usize> {
        let bits = &self.bits[value as usize * self.words..][..self.words];
        (0..self.inputs)
            .filter(|input| bits[input / 64] >> (input % 64) & 1 == 1)
            .collect()
    }
}
