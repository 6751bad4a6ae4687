//! Programs: their steps run one after the other, each on what came before.

use super::{
    Ran, Runtime,
    tensors::{cast, reshaped},
};
use crate::{Error, Kind, Program, Request, Result, Step, Tensor, Value, View, memory::Patience};
use smallvec::{SmallVec, smallvec};
use std::{collections::HashMap, sync::Arc};

/// Results that are searched one by one.
const FEW: usize = 16;

/// Results of a program, with who ran its requests.
#[derive(Debug)]
pub struct RanProgram {
    /// Results, in the order in which the program names them.
    pub results: Vec<Tensor>,
    /// `pack/kernel`, or `host`, for each step; `view` for those that nobody runs.
    pub served_by: SmallVec<[Arc<str>; 1]>,
    /// The places of the requests that ran on the host because no pack runs them; of fused ones those that they stand for.
    pub fallbacks: SmallVec<[usize; 1]>,
}

/// How far a program came that could not go on without waiting.
#[derive(Debug, Default)]
pub struct Progress {
    /// What its requests made, where it is still needed.
    made: Vec<Option<Tensor>>,
    served_by: SmallVec<[Arc<str>; 1]>,
    fallbacks: SmallVec<[usize; 1]>,
    /// Whether the program is recorded before it runs.
    is_to_be_recorded: bool,
}

/// What runs the requests of a program.
pub(super) trait Runner {
    fn request(&mut self, request: &Request<'_, &Tensor>) -> Result<Ran>;
    fn runtime(&self) -> &Runtime;
}

impl Runtime {
    /// Runs a program. What its requests make for each other is given back after its last use.
    ///
    /// # Errors
    /// Bad input when it takes another number of inputs, and those of [`Runtime::run`] for any of its requests.
    pub fn run_program(&self, program: &Program<'_>, inputs: &[&Tensor]) -> Result<RanProgram> {
        self.resume_program(program, inputs, Progress::default())
    }

    /// Runs what is left of a program after [`Runtime::try_run_program`].
    ///
    /// # Errors
    /// As [`Runtime::run_program`]; bad input where another program came so far.
    pub fn resume_program(
        &self,
        program: &Program<'_>,
        inputs: &[&Tensor],
        mut progress: Progress,
    ) -> Result<RanProgram> {
        progress.advance(program, inputs, &mut (self, Patience::Waits))?;
        progress.finish(program, inputs)
    }

    /// Runs a program as far as that goes without waiting, compiling or giving memory back; how far it came where that
    /// is not to its end.
    ///
    /// # Errors
    /// As [`Runtime::run_program`].
    pub fn try_run_program(
        &self,
        program: &Program<'_>,
        inputs: &[&Tensor],
    ) -> Result<std::result::Result<RanProgram, Progress>> {
        let mut progress = Progress::default();
        let ran = match program.only().filter(|_| inputs.len() == program.inputs()) {
            Some(request) => self.run_only(program, request, inputs, Patience::Never),
            None => progress
                .advance(program, inputs, &mut (self, Patience::Never))
                .and_then(|()| std::mem::take(&mut progress).finish(program, inputs)),
        };
        match ran {
            Err(e) if matches!(e.kind(), Kind::WouldWait | Kind::OutOfMemory) => Ok(Err(progress)),
            ran => ran.map(Ok),
        }
    }

    /// Runs a request whose results are those of its program: nothing is kept on the way.
    fn run_only(
        &self,
        program: &Program<'_>,
        request: &Request<'_, Value>,
        inputs: &[&Tensor],
        patience: Patience,
    ) -> Result<RanProgram> {
        let operands = request.inputs.iter().map(|&value| held(inputs, value));
        let operands = operands.collect::<Result<SmallVec<[&Tensor; 8]>>>()?;
        let ran = self.run_by(&request.over(&operands[..]), patience)?;
        let fallbacks = ran.is_fallback.then(|| program.stands_for(0));
        Ok(RanProgram {
            results: ran.outputs,
            served_by: smallvec![ran.served_by],
            fallbacks: fallbacks.unwrap_or_default(),
        })
    }
}

impl Runner for (&Runtime, Patience) {
    fn request(&mut self, request: &Request<'_, &Tensor>) -> Result<Ran> {
        self.0.run_by(request, self.1)
    }

    fn runtime(&self) -> &Runtime {
        self.0
    }
}

fn view(tensor: &Tensor, view: &View, runner: &mut impl Runner) -> Result<Tensor> {
    match view {
        View::Reshape(shape) => reshaped(tensor, shape, || {
            cast(tensor, tensor.dtype(), |request| runner.request(request))
        }),
        View::Transpose(axes) => tensor.transpose(axes),
        View::Squeeze(axes) => tensor.squeeze(axes),
        View::Broadcast(shape, axes) => tensor.broadcast(shape, axes),
        View::Slice(starts, lengths, strides) => tensor.slice(starts, lengths, strides),
        View::Reverse(axes) => tensor.reverse(axes),
        View::Bitcast(dtype) => tensor.bitcast(*dtype),
    }
}

impl Progress {
    /// That of a program that is recorded before it runs.
    pub(super) fn to_be_recorded() -> Progress {
        Progress {
            is_to_be_recorded: true,
            ..Progress::default()
        }
    }

    pub(super) fn is_to_be_recorded(&self) -> bool {
        self.is_to_be_recorded
    }

    /// Takes the steps that are left.
    pub(super) fn advance(
        &mut self,
        program: &Program<'_>,
        inputs: &[&Tensor],
        runner: &mut impl Runner,
    ) -> Result<()> {
        if inputs.len() != program.inputs() {
            return Err(Error::bad_input(format!(
                "expected {} inputs of a program, got: {}",
                program.inputs(),
                inputs.len()
            )));
        }
        let steps = program.steps();
        let done = steps.get(..self.served_by.len());
        let made = done.map(|done| done.iter().map(Step::made).sum());
        if made != Some(self.made.len()) {
            return Err(Error::bad_input(
                "expected how far this program came, got: another's",
            ));
        }
        for (index, step) in steps.iter().enumerate().skip(self.served_by.len()) {
            let ran = self.step(step, inputs, runner);
            let ran = ran.map_err(|error| match steps.len() {
                1 => error,
                _ => error.context(program.place(index)),
            })?;
            self.made.extend(ran.outputs.into_iter().map(Some));
            self.served_by.push(ran.served_by);
            if ran.is_fallback {
                self.fallbacks.extend(program.stands_for(index));
            }
            for made in program.done_with(index, self.made.len()) {
                self.made[made] = None;
            }
        }
        Ok(())
    }

    fn step(&self, step: &Step<'_>, inputs: &[&Tensor], runner: &mut impl Runner) -> Result<Ran> {
        match step {
            Step::Request(request) => {
                let operands = request.inputs.iter();
                let operands = operands
                    .map(|&value| self.value(inputs, value))
                    .collect::<Result<SmallVec<[&Tensor; 8]>>>()?;
                runner.request(&request.over(&operands[..]))
            }
            Step::View(value, how) => Ok(Ran {
                outputs: vec![view(self.value(inputs, *value)?, how, runner)?],
                served_by: runner.runtime().viewed.clone(),
                is_fallback: false,
            }),
        }
    }

    fn value<'a>(&'a self, inputs: &'a [&Tensor], value: Value) -> Result<&'a Tensor> {
        let value = value as usize;
        let found = match value.checked_sub(inputs.len()) {
            None => return held(inputs, value as Value),
            Some(made) => self.made.get(made).and_then(Option::as_ref),
        };
        found.ok_or_else(|| not_held(value as Value))
    }

    pub(super) fn finish(
        mut self,
        program: &Program<'_>,
        inputs: &[&Tensor],
    ) -> Result<RanProgram> {
        let values = program.results();
        let mut results = Vec::with_capacity(values.len());
        // Where each of many results stands last: there the tensor itself goes out.
        let last: HashMap<Value, usize> = match values.len() {
            ..=FEW => HashMap::new(),
            _ => values.iter().copied().zip(0..).collect(),
        };
        for (index, &value) in values.iter().enumerate() {
            let made = (value as usize).checked_sub(inputs.len());
            let is_last = match values.len() {
                ..=FEW => !values[index + 1..].contains(&value),
                _ => last.get(&value) == Some(&index),
            };
            let moved = made
                .filter(|_| is_last)
                .and_then(|made| self.made.get_mut(made)?.take());
            results.push(match moved {
                Some(tensor) => tensor,
                None => self.value(inputs, value)?.clone(),
            });
        }
        Ok(RanProgram {
            results,
            served_by: self.served_by,
            fallbacks: self.fallbacks,
        })
    }
}

fn held<'a>(inputs: &[&'a Tensor], value: Value) -> Result<&'a Tensor> {
    inputs
        .get(value as usize)
        .copied()
        .ok_or_else(|| not_held(value))
}

fn not_held(value: Value) -> Error {
    Error::bad_input(format!("the program does not hold value {value}"))
}
