//! Programs of several steps: run once as they come, or kept for many calls.

use crate::{
    reply,
    resource::{Class, Resource, ResourceArc},
    run::{Operands, Runnable, Tried, go_on, start, try_now},
    tensor::TensorRef,
    terms::{AttrsTerm, List, ShapeTerm, SpecTerm, TypeTerm, elements},
};
use nx_vulkan_host::{
    Error, Program, Progress, RanProgram, Request, Routine, Runtime, Spec, Step, Tensor, Value,
    View,
    fusion::{Input, fuse, with_few_dispatches, within_cache},
};
use rustler::{Atom, Decoder, Encoder, Env, NifResult, Term};
use std::ffi::CStr;

mod atoms {
    rustler::atoms! { ok, reshape, transpose, squeeze, broadcast, slice, reverse, bitcast }
}

/// A program that was decoded once.
pub(crate) struct ProgramRef(Routine);

impl Resource for ProgramRef {
    const NAME: &CStr = c"program";
    const EXPECTED: &str = "a program of this VM that was not collected";

    fn class() -> &'static Class {
        static CLASS: Class = Class::unopened();
        &CLASS
    }
}

impl Runnable for ResourceArc<ProgramRef> {
    fn size(&self) -> (usize, usize) {
        self.0.program().size()
    }

    fn try_run(
        &self,
        runtime: &Runtime,
        inputs: &[&Tensor],
        is_short: bool,
    ) -> Result<Tried, Error> {
        runtime.try_run_routine(&self.0, inputs, is_short)
    }

    fn resume(
        &self,
        runtime: &Runtime,
        inputs: &[&Tensor],
        begun: Progress,
    ) -> Result<RanProgram, Error> {
        runtime.resume_routine(&self.0, inputs, begun)
    }
}

/// `{op, operands, outs, attrs}` with the op's name, or `{view, operand, how}` with that of a function of `Nx.Vulkan.NativeV`
/// and its arguments after the tensor, in a tuple where there are several. Operands are numbers of values.
struct StepTerm<'a>(Step<'a>);

impl<'a> Decoder<'a> for StepTerm<'a> {
    fn decode(term: Term<'a>) -> NifResult<StepTerm<'a>> {
        if let Ok([name, value, how]) = elements(term) {
            return Ok(StepTerm(Step::View(
                value.decode()?,
                view(name.decode()?, how)?,
            )));
        }
        let [op, operands, outs, attrs] = elements(term)?;
        let (op, attrs): (&str, AttrsTerm) = (op.decode()?, attrs.decode()?);
        let List(operands): List<Value> = operands.decode()?;
        let List(outs): List<SpecTerm> = outs.decode()?;
        let outs: Vec<Spec> = outs.into_iter().map(|out| out.0).collect();
        Ok(StepTerm(Request::new(op, operands, outs, attrs.0).into()))
    }
}

fn view(name: Atom, how: Term) -> NifResult<View> {
    let axes = || how.decode().map(|List(axes)| axes);
    Ok(if name == atoms::reshape() {
        View::Reshape(how.decode::<ShapeTerm>()?.0)
    } else if name == atoms::transpose() {
        View::Transpose(axes()?)
    } else if name == atoms::squeeze() {
        View::Squeeze(axes()?)
    } else if name == atoms::reverse() {
        View::Reverse(axes()?)
    } else if name == atoms::bitcast() {
        View::Bitcast(how.decode::<TypeTerm>()?.0)
    } else if name == atoms::broadcast() {
        let [shape, axes] = elements(how)?;
        let List(axes) = axes.decode()?;
        View::Broadcast(shape.decode::<ShapeTerm>()?.0, axes)
    } else if name == atoms::slice() {
        let [List(starts), List(lengths), List(strides)] = numbers(how)?;
        View::Slice(starts, lengths, strides)
    } else {
        return Err(rustler::Error::BadArg);
    })
}

fn numbers(term: Term) -> NifResult<[List<u64>; 3]> {
    let [a, b, c] = elements(term)?;
    Ok([a.decode()?, b.decode()?, c.decode()?])
}

/// `{:ok, refs}` of the values `results`, or `{:host, refs, places}` when the CPU computed the steps at these places.
///
/// Values are numbered: first `operands`, then what each step makes. A program that compiles a shader, computes on
/// the CPU, or has to wait for memory or for a device that is far behind goes on on a dirty scheduler from there.
#[rustler::nif]
fn run_program<'a>(
    env: Env<'a>,
    operands: Operands,
    steps: List<StepTerm<'a>>,
    results: List<Value>,
) -> Term<'a> {
    let steps = steps.0.into_iter().map(|step| step.0);
    match Program::new(operands.tensors.len(), steps, results.0) {
        Ok(program) => start(env, operands, program),
        Err(error) => reply::encode_error(env, &error.into()),
    }
}

/// What an operand of a compiled program is: its type and shape, or the tensor that it is in every run.
struct OperandTerm(Input);

impl<'a> Decoder<'a> for OperandTerm {
    fn decode(term: Term<'a>) -> NifResult<OperandTerm> {
        if term.is_tuple() {
            let SpecTerm(spec) = term.decode()?;
            let element = None;
            return Ok(OperandTerm(Input { spec, element }));
        }
        let tensor: ResourceArc<TensorRef> = term.decode()?;
        Ok(OperandTerm(Input {
            spec: (tensor.dtype, tensor.shape.to_vec()),
            element: tensor.element().map(|element| element.to_vec()),
        }))
    }
}

/// `{:ok, program}` of these operands, for [`run_compiled`]. Elementwise ops that follow from each other become one, and rows are
/// reduced together with them; with `on_gpu` products take those along that follow them, and what broadcasts is computed where it is
/// read.
#[rustler::nif(schedule = "DirtyIo")]
fn compile_program<'a>(
    env: Env<'a>,
    operands: List<OperandTerm>,
    steps: List<StepTerm<'a>>,
    results: List<Value>,
    on_gpu: bool,
) -> Term<'a> {
    let operands: Vec<Input> = operands.0.into_iter().map(|operand| operand.0).collect();
    let steps = steps.0.into_iter().map(|step| step.0);
    let program = Program::new(operands.len(), steps, results.0);
    let fused = program.and_then(|program| fuse(program.into_owned(), &operands));
    match fused.and_then(|program| match on_gpu {
        true => with_few_dispatches(program, &operands),
        false => within_cache(program, &operands),
    }) {
        Ok(program) => (atoms::ok(), ResourceArc::new(ProgramRef(program.into()))).encode(env),
        Err(error) => reply::encode_error(env, &error.into()),
    }
}

/// Runs a program that [`compile_program`] made. Answers as [`run_program`].
#[rustler::nif]
fn run_compiled<'a>(
    env: Env<'a>,
    operands: Operands,
    program: ResourceArc<ProgramRef>,
) -> Term<'a> {
    match try_now(env, &operands, &program) {
        Ok(answer) => answer,
        Err(begun) => go_on(env, operands, *begun, program),
    }
}
