//! The call of a program: every op of the backend comes through here.

use crate::{
    device::DeviceRef,
    later::later,
    reply::{self, Failure},
    resource::ResourceArc,
    tensor::{Element, TensorRef},
    terms::{AttrsTerm, List, SpecTerm, elements},
};
use nx_vulkan_host::{
    Attr, Error, Program, Progress, RanProgram, Request, Runtime, Spec, Tensor, Value,
};
use rustler::{Decoder, Encoder, Env, ListIterator, NifResult, Term, schedule::SchedulerFlags};
use smallvec::SmallVec;
use std::sync::Arc;

mod atoms {
    rustler::atoms! { ok, host }
}

/// The most requests that a program may have to be tried on the scheduler of its process. Each takes about two microseconds.
const SHORT: usize = 128;

/// Operands that are held without memory of their own.
const INLINE: usize = 4;

/// Where a program runs and on what: a list of references, or without any the device.
struct Operands {
    runtime: Arc<Runtime>,
    tensors: SmallVec<[ResourceArc<TensorRef>; INLINE]>,
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

/// `{op, operands, outs, attrs}`; operands are numbers of values.
struct RequestTerm<'a>(Request<'a, Value>);

impl<'a> Decoder<'a> for RequestTerm<'a> {
    fn decode(term: Term<'a>) -> NifResult<RequestTerm<'a>> {
        let [op, operands, outs, attrs] = elements(term)?;
        let (op, attrs): (&str, AttrsTerm) = (op.decode()?, attrs.decode()?);
        let List(operands): List<Value> = operands.decode()?;
        let List(outs): List<SpecTerm> = outs.decode()?;
        let outs: Vec<Spec> = outs.into_iter().map(|out| out.0).collect();
        Ok(RequestTerm(Request::new(op, operands, outs, attrs.0)))
    }
}

/// `{:ok, refs}` of the values `results`, or `{:host, refs, places}` when the CPU computed the requests at these places.
///
/// Values are numbered: first `operands`, then what each request makes. A program that compiles a shader, computes on
/// the CPU, or has to wait for memory or for a device that is far behind goes on on a dirty scheduler from there.
#[rustler::nif]
fn run_program<'a>(
    env: Env<'a>,
    operands: Operands,
    requests: List<RequestTerm<'a>>,
    results: List<Value>,
) -> Term<'a> {
    let requests = requests.0.into_iter().map(|request| request.0);
    match Program::new(operands.tensors.len(), requests, results.0) {
        Ok(program) => start(env, &operands, program),
        Err(error) => reply::encode_error(env, &error.into()),
    }
}

/// One op: the program of it alone. Answers as [`run_program`].
#[rustler::nif]
fn run<'a>(
    env: Env<'a>,
    op: &str,
    operands: Operands,
    outs: List<SpecTerm>,
    attrs: AttrsTerm,
) -> Term<'a> {
    let outs: Vec<Spec> = outs.0.into_iter().map(|out| out.0).collect();
    if let Some(made) = folded(&operands, op, &outs, &attrs.0) {
        return match made {
            Ok(made) => (atoms::ok(), vec![made]).encode(env),
            Err(error) => reply::encode_error(env, &error.into()),
        };
    }
    let program = Program::of_one(op, operands.tensors.len(), outs, attrs.0);
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

fn start<'a>(env: Env<'a>, operands: &Operands, program: Program<'_>) -> Term<'a> {
    let runtime = operands.runtime.clone();
    let inputs = match operands.handles() {
        Ok(inputs) => inputs,
        Err(failure) => return reply::encode_error(env, &failure),
    };
    let tried = match program.requests().len() > SHORT {
        true => Ok(Err(Progress::default())),
        false => runtime.try_run_program(&program, &references(&inputs)),
    };
    match tried {
        Ok(Ok(ran)) => answer(env, &runtime, ran),
        Ok(Err(progress)) => {
            let program = program.into_owned();
            later(
                env,
                SchedulerFlags::DirtyCpu,
                &[],
                move |env, _| match runtime.resume_program(&program, &references(&inputs), progress)
                {
                    Ok(ran) => answer(env, &runtime, ran),
                    Err(error) => reply::encode_error(env, &error.into()),
                },
            )
        }
        Err(error) => reply::encode_error(env, &error.into()),
    }
}

fn references(tensors: &[Arc<Tensor>]) -> SmallVec<[&Tensor; INLINE]> {
    tensors.iter().map(Arc::as_ref).collect()
}

fn answer<'a>(env: Env<'a>, runtime: &Arc<Runtime>, ran: RanProgram) -> Term<'a> {
    let results = ran.results.into_iter();
    let refs: Vec<_> = results
        .map(|tensor| TensorRef::new(runtime, tensor))
        .collect();
    if ran.fallbacks.is_empty() {
        (atoms::ok(), refs).encode(env)
    } else {
        (atoms::host(), refs, ran.fallbacks.to_vec()).encode(env)
    }
}
