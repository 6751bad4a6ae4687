//! The call of an op, and what programs of several share with it.

use crate::{
    device::DeviceRef,
    later::later,
    reply::{self, Failure},
    resource::ResourceArc,
    tensor::{Element, TensorRef},
    terms::{AttrsTerm, SpecsTerm},
    weight,
};
use nx_vulkan_host::{Attr, Error, Program, Progress, RanProgram, Request, Runtime, Spec, Tensor};
use rustler::{Decoder, Encoder, Env, ListIterator, NifResult, Term, schedule::SchedulerFlags};
use smallvec::SmallVec;
use std::sync::Arc;

mod atoms {
    rustler::atoms! { ok, host }
}

/// The most steps that a program may have to be tried on the scheduler of its process. Each takes about two microseconds.
const SHORT: usize = 128;
/// The most operands, and results, of such a program.
const MANY: usize = 4_096;

/// Operands that are held without memory of their own.
const INLINE: usize = 4;

/// Where a program runs and on what: a list of references, or without any the device.
pub(crate) struct Operands {
    runtime: Arc<Runtime>,
    pub(crate) tensors: SmallVec<[ResourceArc<TensorRef>; INLINE]>,
}

impl<'a> Decoder<'a> for Operands {
    fn decode(term: Term<'a>) -> NifResult<Operands> {
        if !term.is_list() {
            let device: ResourceArc<DeviceRef> = term.decode()?;
            return Ok(Operands {
                runtime: device.runtime.clone(),
                tensors: SmallVec::new(),
            });
        }
        // The iterator panics where a list is improper.
        term.list_length()?;
        let tensors: ListIterator = term.decode()?;
        let tensors = tensors.map(|tensor| tensor.decode());
        let tensors: SmallVec<[ResourceArc<TensorRef>; INLINE]> =
            tensors.collect::<NifResult<_>>()?;
        let runtime = tensors
            .first()
            .ok_or(rustler::Error::BadArg)?
            .runtime
            .clone();
        Ok(Operands { runtime, tensors })
    }
}

impl Operands {
    fn handles(&self) -> Result<SmallVec<[Arc<Tensor>; INLINE]>, Failure> {
        self.tensors
            .iter()
            .map(|tensor| {
                if Arc::ptr_eq(&tensor.runtime, &self.runtime) {
                    tensor.tensor()
                } else {
                    Err(Failure::bad_input(format!(
                        "expected operands on one device, got: {} and {}",
                        self.runtime.device().summary().name,
                        tensor.runtime.device().summary().name,
                    )))
                }
            })
            .collect()
    }
}

/// One op: the program of it alone. Answers as [`crate::program`]'s functions.
#[rustler::nif]
fn run<'a>(
    env: Env<'a>,
    op: &str,
    operands: Operands,
    outs: SpecsTerm,
    attrs: AttrsTerm,
) -> Term<'a> {
    let outs = &outs.0[..];
    if let Some(made) = folded(&operands, op, outs, &attrs.0) {
        return match made {
            Ok(made) => (atoms::ok(), vec![made]).encode(env),
            Err(error) => reply::encode_error(env, &error.into()),
        };
    }
    let program = Program::of_one(op, operands.tensors.len(), outs, &attrs.0);
    start(env, &operands, program)
}

/// What an elementwise op makes of operands whose elements the VM knows: it knows the result's as well, and reads them
/// without asking the device. `None` for all other calls.
fn folded(
    operands: &Operands,
    op: &str,
    outs: &[Spec],
    attrs: &[Attr],
) -> Option<Result<ResourceArc<TensorRef>, Error>> {
    let tensors = operands.tensors.iter();
    let elements = tensors.map(|tensor| tensor.element());
    let elements = elements.collect::<Option<SmallVec<[Element; INLINE]>>>()?;
    let runtime = &operands.runtime;
    let all_here = |tensor: &ResourceArc<TensorRef>| Arc::ptr_eq(&tensor.runtime, runtime);
    if !operands.tensors.iter().all(all_here) {
        return None;
    }
    let specs = operands.tensors.iter();
    let specs = specs.map(|tensor| (tensor.dtype, tensor.shape.to_vec()));
    let request = Request::new(op, specs.collect::<Vec<Spec>>(), outs, attrs);
    let elements: SmallVec<[&[u8]; INLINE]> = elements.iter().map(|e| &**e).collect();
    let made = runtime.try_fold(&request, &elements)?;
    Some(made.map(|(tensor, element)| TensorRef::constant(runtime, tensor, &element)))
}

/// Runs a program, on a dirty scheduler where it has to wait.
pub(crate) fn start<'a>(env: Env<'a>, operands: &Operands, program: Program<'_>) -> Term<'a> {
    match try_now(env, operands, &program) {
        Ok(answer) => answer,
        Err(begun) => go_on(env, operands, *begun, program.into_owned()),
    }
}

/// Operands of a call, and how far it came without waiting.
pub(crate) type Begun = (SmallVec<[Arc<Tensor>; INLINE]>, Progress);

/// What came of a program that was tried: results, or how far it came.
pub(crate) type Tried = Result<RanProgram, Progress>;

/// A program, and how it is run.
pub(crate) trait Runnable {
    /// How many steps and results it has.
    fn size(&self) -> (usize, usize);

    /// Runs it as far as that goes without waiting; one that is not short only where that takes no time.
    fn try_run(
        &self,
        runtime: &Runtime,
        inputs: &[&Tensor],
        is_short: bool,
    ) -> Result<Tried, Error>;

    /// Runs what is left of it.
    fn resume(
        &self,
        runtime: &Runtime,
        inputs: &[&Tensor],
        begun: Progress,
    ) -> Result<RanProgram, Error>;
}

impl Runnable for Program<'_> {
    fn size(&self) -> (usize, usize) {
        (self.steps().len(), self.results().len())
    }

    fn try_run(
        &self,
        runtime: &Runtime,
        inputs: &[&Tensor],
        is_short: bool,
    ) -> Result<Tried, Error> {
        match is_short {
            true => runtime.try_run_program(self, inputs),
            false => Ok(Err(Progress::default())),
        }
    }

    fn resume(
        &self,
        runtime: &Runtime,
        inputs: &[&Tensor],
        begun: Progress,
    ) -> Result<RanProgram, Error> {
        runtime.resume_program(self, inputs, begun)
    }
}

/// The answer of a program where that takes no waiting.
pub(crate) fn try_now<'a>(
    env: Env<'a>,
    operands: &Operands,
    runnable: &impl Runnable,
) -> Result<Term<'a>, Box<Begun>> {
    let runtime = &operands.runtime;
    let inputs = match operands.handles() {
        Ok(inputs) => inputs,
        Err(failure) => return Ok(reply::encode_error(env, &failure)),
    };
    let (steps, results) = runnable.size();
    let is_short = steps <= SHORT && results <= MANY && operands.tensors.len() <= MANY;
    let tried = runnable.try_run(runtime, &references(&inputs), is_short);
    match tried {
        Ok(Ok(ran)) => Ok(answer(env, runtime, ran)),
        Ok(Err(progress)) => Err(Box::new((inputs, progress))),
        Err(error) => Ok(reply::encode_error(env, &error.into())),
    }
}

/// Runs what is left of a program on a dirty scheduler.
pub(crate) fn go_on<'a>(
    env: Env<'a>,
    operands: &Operands,
    (inputs, progress): Begun,
    runnable: impl Runnable + Send + 'static,
) -> Term<'a> {
    let runtime = operands.runtime.clone();
    later(
        env,
        SchedulerFlags::DirtyCpu,
        &[],
        move |env, _| match runnable.resume(&runtime, &references(&inputs), progress) {
            Ok(ran) => answer(env, &runtime, ran),
            Err(error) => reply::encode_error(env, &error.into()),
        },
    )
}

fn references(tensors: &[Arc<Tensor>]) -> SmallVec<[&Tensor; INLINE]> {
    tensors.iter().map(Arc::as_ref).collect()
}

fn answer<'a>(env: Env<'a>, runtime: &Arc<Runtime>, ran: RanProgram) -> Term<'a> {
    let results = ran.results.into_iter();
    let refs = results.map(|tensor| TensorRef::new(runtime, tensor));
    let refs: SmallVec<[ResourceArc<TensorRef>; 1]> = refs.collect();
    weight::count(env, runtime, &refs);
    let refs = refs.as_slice().encode(env);
    if ran.fallbacks.is_empty() {
        (atoms::ok(), refs).encode(env)
    } else {
        (atoms::host(), refs, ran.fallbacks.to_vec()).encode(env)
    }
}
