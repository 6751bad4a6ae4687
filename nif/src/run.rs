//! The call of an op, and what programs of several share with it.

use crate::{
    device::DeviceRef,
    held::{INLINE, settled},
    later::later,
    reply::{self, Failure},
    resource::ResourceArc,
    tensor::{Element, TensorRef},
    terms::{AttrsTerm, SpecsTerm},
    turn::Turn,
    weight,
};
use nx_vulkan_abi::DeviceKind;
use nx_vulkan_host::{
    Attr, Error, Operand, Program, Progress, RanProgram, Request, Runtime, Spec, Tensor,
};
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

/// Operands as tensors.
type Inputs = SmallVec<[Arc<Tensor>; INLINE]>;

impl Operands {
    /// The operands as tensors; none where that would wait and may not.
    fn handles(&self, may_wait: bool) -> Result<Option<Inputs>, Failure> {
        if let Some(stranger) = self.tensors.iter().find(|tensor| !self.is_here(tensor)) {
            return Err(Failure::bad_input(format!(
                "expected operands on one device, got: {} and {}",
                self.runtime.device().summary().name,
                stranger.runtime.device().summary().name,
            )));
        }
        let references: SmallVec<[&TensorRef; INLINE]> =
            self.tensors.iter().map(|tensor| &**tensor).collect();
        let inputs = settled(&references, may_wait)?;
        Ok((inputs.len() == references.len()).then_some(inputs))
    }

    fn is_here(&self, tensor: &TensorRef) -> bool {
        Arc::ptr_eq(&tensor.runtime, &self.runtime)
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
    if let Some(made) = deferred(&operands, op, outs, &attrs.0) {
        weight::count(env, &operands.runtime, std::slice::from_ref(&made));
        return (atoms::ok(), vec![made]).encode(env);
    }
    let program = Program::of_one(op, operands.tensors.len(), outs, &attrs.0);
    start(env, operands, program)
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
    // Of what came from the VM only integers: they have the same bits whoever computes them.
    let is_exact = outs.iter().all(|out| out.0.is_integer());
    let exact = |tensor: &TensorRef| tensor.exact().filter(|_| is_exact);
    let elements = tensors.map(|tensor| tensor.element().or_else(|| exact(tensor)));
    let elements = elements.collect::<Option<SmallVec<[Element; INLINE]>>>()?;
    let runtime = &operands.runtime;
    if !operands
        .tensors
        .iter()
        .all(|tensor| operands.is_here(tensor))
    {
        return None;
    }
    let specs = operands.tensors.iter();
    let specs = specs.map(|tensor| (tensor.dtype, tensor.shape.to_vec()));
    let request = Request::new(op, specs.collect::<Vec<Spec>>(), outs, attrs);
    let elements: SmallVec<[&[u8]; INLINE]> = elements.iter().map(|e| &**e).collect();
    let made = runtime.try_fold(&request, &elements)?;
    Some(made.map(|(tensor, element)| TensorRef::constant(runtime, tensor, &element)))
}

/// The result of an op that can wait until somebody needs it. `None` for all other calls.
fn deferred(
    operands: &Operands,
    op: &str,
    outs: &[Spec],
    attrs: &[Attr],
) -> Option<ResourceArc<TensorRef>> {
    let runtime = &operands.runtime;
    let [out] = outs else { return None };
    if !attrs.is_empty() || !runtime.may_wait(out) {
        return None;
    }
    let held = operands.tensors.iter();
    let held = held.map(|tensor| tensor.operand().filter(|_| operands.is_here(tensor)));
    let held = held.collect::<Option<SmallVec<[Operand; INLINE]>>>()?;
    let lazy = runtime.defer(op, held, out)?;
    Some(TensorRef::lazy(runtime, out, lazy))
}

/// Runs a program, on a dirty scheduler where it has to wait.
pub(crate) fn start<'a>(env: Env<'a>, operands: Operands, program: Program<'_>) -> Term<'a> {
    match try_now(env, &operands, &program) {
        Ok(answer) => answer,
        Err(begun) => go_on(env, operands, *begun, program.into_owned()),
    }
}

/// Operands of a call as tensors, where they are there, and how far it came without waiting.
pub(crate) type Begun = (Option<Inputs>, Progress);

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
    let _turn = Turn::begin(env);
    let runtime = &operands.runtime;
    let inputs = match operands.handles(false) {
        Ok(Some(inputs)) => inputs,
        Ok(None) => return Err(Box::default()),
        Err(failure) => return Ok(reply::encode_error(env, &failure)),
    };
    let (steps, results) = runnable.size();
    let is_short = steps <= SHORT && results <= MANY && operands.tensors.len() <= MANY;
    let tried = runnable.try_run(runtime, &references(&inputs), is_short);
    match tried {
        Ok(Ok(ran)) => Ok(answer(env, runtime, ran)),
        Ok(Err(progress)) => Err(Box::new((Some(inputs), progress))),
        Err(error) => Ok(reply::encode_error(env, &error.into())),
    }
}

/// Runs what is left of a program on a dirty scheduler.
pub(crate) fn go_on<'a>(
    env: Env<'a>,
    operands: Operands,
    (inputs, progress): Begun,
    runnable: impl Runnable + Send + 'static,
) -> Term<'a> {
    later(env, scheduler(&operands.runtime), &[], move |env, _| {
        let runtime = &operands.runtime;
        let ran = || {
            let inputs = match inputs {
                Some(inputs) => inputs,
                None => operands.handles(true)?.unwrap_or_default(),
            };
            Ok(runnable.resume(runtime, &references(&inputs), progress)?)
        };
        match ran() {
            Ok(ran) => answer(env, runtime, ran),
            Err(failure) => reply::encode_error(env, &failure),
        }
    })
}

/// The dirty schedulers on which a call goes on. For a GPU, a child or the compiler it waits there, and there are as few of those
/// for computing as cores, which the VM collects large heaps on; with a CPU it mostly computes.
pub(crate) fn scheduler(runtime: &Runtime) -> SchedulerFlags {
    match runtime.device().info().kind {
        DeviceKind::CPU => SchedulerFlags::DirtyCpu,
        _ => SchedulerFlags::DirtyIo,
    }
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
