//! Programs that are run many times, and when they are recorded.

use super::{
    super::{Progress, RanProgram, Runtime},
    Replay,
    compose::{Composed, compose},
};
use crate::{
    Kind, Program, Result, Tensor, fusion,
    memory::{Buffer, Patience},
    tensor::{Laid as _, Layout},
};
use parking_lot::Mutex;
use std::sync::{Arc, OnceLock, Weak, atomic::Ordering};

/// Steps that a program has at least to be recorded.
const LEAST_STEPS: usize = 8;
/// Runs before the one that records: so many show what changes from one to the next, and leave what is kept of operands.
const BEFORE: u32 = 2;
/// How often it may fail to be recorded, and how often in turn the inputs may be others than those that it was recorded for, before
/// that is no longer tried with the packs in force.
const TRIES: u32 = 4;
/// Replays after which such failures are forgotten.
const PROVEN: u32 = 64;

/// A program that is run many times. On a GPU its commands are recorded once, where all of it runs there and its parameters stay the
/// same.
#[derive(Debug)]
pub struct Routine {
    program: Program<'static>,
    /// The same without a word of what lasts, where that is more than may be kept.
    untold: OnceLock<Option<Program<'static>>>,
    state: Arc<Mutex<State>>,
    in_turn: bool,
}

impl From<Program<'static>> for Routine {
    fn from(program: Program<'static>) -> Routine {
        Routine {
            program,
            untold: OnceLock::new(),
            state: Arc::default(),
            in_turn: false,
        }
    }
}

/// What is known of the runs of a program.
#[derive(Debug, Default)]
pub(super) struct State {
    /// The inputs of the last run that was not replayed.
    seen: Vec<Seen>,
    /// Which of them were other tensors than before.
    changing: Vec<bool>,
    /// Runs in turn on inputs of these layouts.
    runs: u32,
    replay: Option<Box<Replay>>,
    /// Replays in turn.
    replays: u32,
    failures: u32,
    /// Of the table and its routes that all this is about.
    generation: (u64, u64),
    /// Whether it is not recorded with that table.
    is_refused: bool,
}

/// An input, as it was in a run.
#[derive(Debug)]
struct Seen {
    buffer: Weak<Buffer>,
    /// The last write of the buffer before.
    version: u64,
    /// Whether others wrote it behind the queue's back, so that nothing was kept of it.
    is_lent: bool,
    layout: Layout,
}

/// How a program runs.
enum Way {
    Replayed,
    /// It is recorded first.
    Recorded,
    Plain,
}

impl Seen {
    fn of(tensor: &Tensor) -> Seen {
        Seen {
            buffer: Arc::downgrade(&tensor.buffer),
            version: tensor.buffer.last_write.load(Ordering::Relaxed),
            is_lent: tensor.buffer.is_lent(),
            layout: tensor.layout(),
        }
    }

    /// Whether that is the same tensor, with the same content.
    fn is(&self, tensor: &Tensor) -> bool {
        std::ptr::eq(self.buffer.as_ptr(), Arc::as_ptr(&tensor.buffer))
            && self.version == tensor.buffer.last_write.load(Ordering::Relaxed)
            && self.is_lent == tensor.buffer.is_lent()
            && self.layout.part() == tensor.part()
    }
}

impl State {
    /// How the next run goes, on `inputs` and with the table and routes of that `generation`.
    fn next(&mut self, generation: (u64, u64), inputs: &[&Tensor]) -> Way {
        if self.generation != generation {
            self.forget();
            (self.generation, self.failures, self.is_refused) = (generation, 0, false);
        }
        if self.is_refused {
            return Way::Plain;
        }
        if self.replay.is_some() && self.fits(inputs) {
            self.replays += 1;
            if self.replays >= PROVEN {
                self.failures = 0;
            }
            return Way::Replayed;
        }
        if self.replay.is_some() {
            self.give_up();
        }
        self.note(inputs);
        match self.runs > BEFORE {
            true => Way::Recorded,
            false => Way::Plain,
        }
    }

    /// Whether what was recorded is right for these inputs.
    fn fits(&self, inputs: &[&Tensor]) -> bool {
        let known = self.seen.iter().zip(&self.changing);
        self.seen.len() == inputs.len()
            && known.zip(inputs).all(|((seen, is_changing), input)| {
                input.is_laid_out_as(&seen.layout) && (*is_changing || seen.is(input))
            })
    }

    fn note(&mut self, inputs: &[&Tensor]) {
        let laid_out = |(seen, input): (&Seen, &&Tensor)| input.is_laid_out_as(&seen.layout);
        let is_known =
            self.seen.len() == inputs.len() && self.seen.iter().zip(inputs).all(laid_out);
        if !is_known {
            self.changing = vec![false; inputs.len()];
            self.runs = 0;
        }
        // With no run before there is nothing to compare with.
        if self.runs > 0 {
            for ((seen, input), is_changing) in self.seen.iter().zip(inputs).zip(&mut self.changing)
            {
                *is_changing |= !seen.is(input);
            }
        }
        self.seen = inputs.iter().map(|input| Seen::of(input)).collect();
        self.runs += 1;
    }

    /// Notes that recording it came to nothing.
    pub(super) fn fail(&mut self) {
        self.failures += 1;
        self.is_refused |= self.failures >= TRIES;
    }

    /// Gives up what is recorded since it was of no use, or there is no room for it.
    pub(super) fn give_up(&mut self) {
        self.forget();
        self.fail();
    }

    /// Whether a tensor that it was recorded for is gone.
    pub(super) fn is_orphaned(&self) -> bool {
        let known = self.seen.iter().zip(&self.changing);
        let mut gone =
            known.filter(|(seen, is_changing)| !**is_changing && seen.buffer.strong_count() == 0);
        self.replay.is_some() && gone.next().is_some()
    }

    /// Gives up what is recorded; whether anything was.
    pub(super) fn forget(&mut self) -> bool {
        (self.runs, self.replays) = (0, 0);
        self.replay.take().is_some()
    }

    /// Records the program for these inputs and those that are like them, where it is not. False where that cannot be, or not yet.
    fn is_recorded(
        &mut self,
        runtime: &Runtime,
        routine: &Routine,
        inputs: &[&Tensor],
    ) -> Result<bool> {
        if self.generation != runtime.current().generation() {
            return Ok(false);
        }
        if self.replay.is_some() || self.runs <= BEFORE {
            return Ok(self.replay.is_some());
        }
        let can_wait = self.failures + 1 < TRIES;
        let program = routine.on(runtime, inputs);
        let how = (routine.in_turn, can_wait);
        match compose(runtime, program, inputs, &self.changing, how) {
            Ok(Composed::Replay(replay)) => {
                self.replay = Some(replay);
                return Ok(true);
            }
            Ok(Composed::Early | Composed::Full) => self.runs = 0,
            Err(error) => match error.kind() {
                Kind::WouldWait => self.is_refused = true,
                Kind::OutOfMemory => self.runs = 0,
                _ => return Err(error),
            },
        }
        self.fail();
        Ok(false)
    }
}

impl Runtime {
    /// Runs a routine.
    ///
    /// # Errors
    /// As [`Runtime::run_program`].
    pub fn run_routine(&self, routine: &Routine, inputs: &[&Tensor]) -> Result<RanProgram> {
        match self.try_run_routine(routine, inputs, false)? {
            Ok(ran) => Ok(ran),
            Err(progress) => self.resume_routine(routine, inputs, progress),
        }
    }

    /// Runs a routine as far as that goes without waiting: as it was recorded, or with `is_short` as [`Runtime::try_run_program`].
    ///
    /// # Errors
    /// As [`Runtime::run_program`].
    pub fn try_run_routine(
        &self,
        routine: &Routine,
        inputs: &[&Tensor],
        is_short: bool,
    ) -> Result<std::result::Result<RanProgram, Progress>> {
        let program = routine.on(self, inputs);
        match self.way(routine, inputs)? {
            (Way::Replayed, Some(ran)) => Ok(Ok(ran)),
            (Way::Replayed | Way::Recorded, _) => Ok(Err(Progress::to_be_recorded())),
            (Way::Plain, _) if is_short => self.try_run_program(program, inputs),
            (Way::Plain, _) => Ok(Err(Progress::default())),
        }
    }

    /// How a routine runs now, and what came of it where it was replayed.
    fn way(&self, routine: &Routine, inputs: &[&Tensor]) -> Result<(Way, Option<RanProgram>)> {
        let program = &routine.program;
        let is_for_it = self.replays.is_on
            && program.steps().len() >= LEAST_STEPS
            && program.inputs() == inputs.len();
        if !is_for_it {
            return Ok((Way::Plain, None));
        }
        self.renew_routes();
        // Somebody else records it, or runs it at this moment.
        let Some(mut state) = routine.state.try_lock() else {
            return Ok((Way::Plain, None));
        };
        self.device.usable()?;
        let generation = self.current().generation();
        let way = state.next(generation, inputs);
        let ran = match (&way, &state.replay) {
            (Way::Replayed, Some(replay))
                if replay.is_short(inputs) && !self.stream.is_stamped() =>
            {
                replay.run(self, inputs, Patience::Never)
            }
            _ => return Ok((way, None)),
        };
        match ran {
            Ok(ran) => Ok((way, Some(ran))),
            Err(error) if matches!(error.kind(), Kind::WouldWait | Kind::OutOfMemory) => {
                Ok((way, None))
            }
            Err(error) => Err(error),
        }
    }

    /// Runs what is left of a routine after [`Runtime::try_run_routine`].
    ///
    /// # Errors
    /// As [`Runtime::run_program`]; bad input where another program came so far.
    pub fn resume_routine(
        &self,
        routine: &Routine,
        inputs: &[&Tensor],
        progress: Progress,
    ) -> Result<RanProgram> {
        let program = routine.on(self, inputs);
        if progress.is_to_be_recorded() {
            let mut state = routine.state.lock();
            // Somebody else may have run it meanwhile, on other inputs.
            if state.fits(inputs) && state.is_recorded(self, routine, inputs)? {
                self.replays.note(&routine.state);
                match state
                    .replay
                    .as_ref()
                    .map(|replay| replay.run(self, inputs, Patience::Waits))
                {
                    // Op by op it takes less, without what was recorded.
                    Some(Err(error)) if error.kind() == Kind::OutOfMemory => state.give_up(),
                    Some(ran) => return ran,
                    None => {}
                }
            }
        }
        self.resume_program(program, inputs, progress)
    }
}

impl Routine {
    /// Has the steps run one after the other where they give each other's memory back, also those that depend on nothing else: so that
    /// each of them can be timed.
    #[must_use]
    pub fn in_turn(self) -> Routine {
        Routine {
            in_turn: true,
            ..self
        }
    }

    /// What it runs.
    pub fn program(&self) -> &Program<'static> {
        &self.program
    }

    /// What it runs there. What lasts is told if all of it may be kept in another form: else it would be packed anew in each run. The
    /// first run decides, so that all runs give the same bits.
    fn on(&self, runtime: &Runtime, inputs: &[&Tensor]) -> &Program<'static> {
        let untold = self.untold.get_or_init(|| {
            let weights = fusion::weights(&self.program);
            let all = weights
                .iter()
                .filter_map(|&value| inputs.get(value as usize));
            let bytes: u64 = all.map(|input| input.part().len).sum();
            match bytes > runtime.kept.stats().limit {
                true => fusion::untold(&self.program).ok(),
                false => None,
            }
        });
        untold.as_ref().unwrap_or(&self.program)
    }
}
