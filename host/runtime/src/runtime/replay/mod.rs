//! Programs that are recorded once and replayed, as a driver takes longer to record a small dispatch than a GPU to run it.
//!
//! A program that is run again and again on the same parameters has its commands recorded over buffers of its own. Inputs that
//! change are copied there before each run, and results to new buffers after it; commands on large ones are recorded anew over those
//! themselves. All else stays as it is.

mod arena;
mod compose;
mod draft;
mod routine;
mod sources;

use super::{RanProgram, Runtime};
use crate::{
    Result, Tensor,
    faults::{Faults, Word},
    memory::{Buffer, Patience},
    queue::{Around, Call, Captured, Copy},
    route::Route,
    tensor::Layout,
};
use arena::BOARD;
use draft::Draft;
use parking_lot::Mutex;
pub use routine::Routine;
use routine::State;
use smallvec::SmallVec;
use std::sync::{
    Arc, Weak,
    atomic::{AtomicU64, Ordering},
};

/// Of the runtime's memory what recorded programs may take, as a divisor.
const SHARE: u64 = 8;

/// A program's commands, recorded once.
#[derive(Debug)]
struct Replay {
    captured: Captured,
    /// By input the buffer that it is copied to, where it changes from run to run and is not read where it lies.
    slots: Vec<Option<Arc<Buffer>>>,
    /// The program's own buffers.
    own: Vec<Arc<Buffer>>,
    /// What the commands read beside these and the inputs.
    held: Vec<Arc<Buffer>>,
    /// Words that the commands set, and the buffers that they lie in.
    words: Vec<Arc<Word>>,
    boards: Vec<Arc<Buffer>>,
    /// The buffers that each run makes for results.
    fresh: Vec<Fresh>,
    /// Its calls, for a profile, which has each run record them.
    drafts: Vec<Draft>,
    /// Those with steps that touch buffers which are others in each run: these it records anew.
    anew: Vec<usize>,
    results: Vec<Outcome>,
    routes: Vec<Arc<Route>>,
    served_by: SmallVec<[Arc<str>; 1]>,
    counted: Counted,
}

/// Where a result comes from.
#[derive(Debug)]
enum Outcome {
    /// It is that input.
    Input(usize),
    Made(Box<Made>),
}

/// A result that is none of the inputs.
#[derive(Debug)]
struct Made {
    layout: Layout,
    lies: Lies,
    /// Words that speak of it.
    words: Vec<usize>,
    /// Inputs that it is made of.
    of: Vec<usize>,
}

/// The buffer that a result lies in.
#[derive(Debug)]
enum Lies {
    /// The one of that number that each run makes.
    Fresh(usize),
    /// One that stays the same.
    In(Arc<Buffer>),
}

/// A buffer that each run makes.
#[derive(Debug)]
enum Fresh {
    /// For a copy of that own one.
    Copy(Arc<Buffer>),
    /// For what commands write that are recorded anew: so many bytes.
    Written(u64),
}

impl Fresh {
    fn len(&self) -> u64 {
        match self {
            Fresh::Copy(own) => own.len(),
            Fresh::Written(len) => *len,
        }
    }

    fn copied(&self) -> Option<&Arc<Buffer>> {
        match self {
            Fresh::Copy(own) => Some(own),
            Fresh::Written(_) => None,
        }
    }
}

/// Commands, copies and faults up to which a run is short enough for a scheduler of a VM.
const SHORT: usize = 1_024;

impl Replay {
    /// Whether a run on these inputs takes a fraction of a millisecond.
    fn is_short(&self, inputs: &[&Tensor]) -> bool {
        let copies = self.slots.iter().flatten().count() + self.fresh.len();
        let anew = self.anew.iter();
        let anew = anew.map(|&at| self.drafts[at].anew.len()).sum::<usize>();
        let faulty = inputs.iter().filter(|input| !input.faults.is_empty());
        let lists = faulty.count() * self.results.len();
        self.captured.commands() as usize + 4 * (copies + anew) + lists <= SHORT
            && inputs.len() <= 4 * SHORT
    }

    /// Runs the program on inputs that lie as those did that it was recorded for.
    fn run(&self, runtime: &Runtime, inputs: &[&Tensor], patience: Patience) -> Result<RanProgram> {
        runtime.make_room(patience)?;
        let fresh = self.fresh.iter();
        let fresh = fresh.map(|own| runtime.alloc(own.len(), None, patience));
        let fresh = fresh.collect::<Result<Vec<Arc<Buffer>>>>()?;
        let boards = self.words.chunks(BOARD);
        let boards = boards.map(|words| runtime.board(words.len(), patience));
        let boards = boards.collect::<Result<Vec<Arc<Buffer>>>>()?;
        let words = self.words.iter().enumerate();
        let words = words.map(|(index, word)| word.moved(boards[index / BOARD].clone()));
        let words: Vec<Arc<Word>> = words.collect();
        let before: Vec<Copy<'_>> = inputs
            .iter()
            .zip(&self.slots)
            .filter_map(|(input, slot)| {
                Some(Copy {
                    from: &input.buffer,
                    start: input.part().start,
                    to: slot.as_ref()?,
                    len: input.part().len,
                })
            })
            .collect();
        let results = self.fresh.iter().zip(&fresh);
        let results = results.filter_map(|(one, fresh)| Some((one.copied()?, fresh)));
        let after: Vec<Copy<'_>> = results
            .chain(self.boards.iter().zip(&boards))
            .map(|(from, to)| Copy {
                from,
                start: 0,
                to,
                len: from.len().min(to.len()),
            })
            .collect();
        let zeroed: Vec<&Buffer> = self.boards.iter().map(|board| &**board).collect();
        let unchanged = inputs.iter().zip(&self.slots);
        let unchanged = unchanged.filter(|(_, slot)| slot.is_none());
        let unchanged = unchanged.map(|(input, _)| &*input.buffer);
        let written = self.fresh.iter().zip(&fresh);
        let written = written.filter(|(one, _)| one.copied().is_none());
        let written = written.map(|(_, fresh)| fresh);
        let call = |draft| Draft::call(draft, &[], &fresh, inputs);
        let (stream, pipelines) = (&runtime.stream, &runtime.pipelines);
        // What was recorded has no stamps.
        let is_stamped = stream.is_stamped();
        let anew: Vec<Call<'_>> = match is_stamped {
            true => self.drafts.iter().filter_map(call).collect(),
            false => {
                let anew = self.anew.iter().map(|&at| &self.drafts[at]);
                anew.filter_map(call).collect()
            }
        };
        let stamped = is_stamped.then(|| stream.capture(pipelines, &anew, true));
        let stamped = stamped.transpose()?;
        let around = Around {
            before: &before,
            zeroed: &zeroed,
            reads: &mut unchanged.chain(self.held.iter().map(|buffer| &**buffer)),
            own: &mut self.own.iter().chain(written).map(|buffer| &**buffer),
            anew: &anew,
            after: &after,
            reports: !words.is_empty(),
        };
        stream.replay(
            pipelines,
            stamped.as_ref().unwrap_or(&self.captured),
            around,
        )?;
        self.routes.iter().for_each(|route| route.count());
        self.counted.totals.runs.fetch_add(1, Ordering::Relaxed);
        let completed = runtime.stream.completed_hint();
        let words: Vec<Faults> = words.iter().map(Faults::from).collect();
        let is_faulty = inputs.iter().any(|input| !input.faults.is_empty());
        let result = |outcome: &Outcome| match outcome {
            Outcome::Input(index) => inputs[*index].clone(),
            Outcome::Made(made) => {
                let of = if is_faulty { &made.of[..] } else { &[] };
                let of = of.iter().map(|&index| &inputs[index].faults);
                let own = made.words.iter().map(|&index| &words[index]);
                let faults = Faults::of(of.chain(own), None, completed);
                let buffer = match &made.lies {
                    Lies::Fresh(index) => &fresh[*index],
                    Lies::In(buffer) => buffer,
                };
                made.layout.tensor(buffer.clone(), faults)
            }
        };
        Ok(RanProgram {
            results: self.results.iter().map(result).collect(),
            served_by: self.served_by.clone(),
            fallbacks: SmallVec::new(),
        })
    }
}

/// All programs that a runtime has recorded.
#[derive(Debug)]
pub(super) struct Replays {
    is_on: bool,
    limit: u64,
    totals: Arc<Totals>,
    states: Mutex<Vec<Weak<Mutex<State>>>>,
}

#[derive(Debug, Default)]
struct Totals {
    programs: AtomicU64,
    bytes: AtomicU64,
    runs: AtomicU64,
}

/// Programs that are recorded once and replayed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct ReplayStats {
    /// Programs that are recorded now.
    pub programs: u64,
    /// Bytes of the buffers that they keep; these count as tensor memory too.
    pub bytes: u64,
    /// How often one of them was replayed.
    pub runs: u64,
}

/// One program among the totals.
#[derive(Debug)]
struct Counted {
    totals: Arc<Totals>,
    bytes: u64,
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.totals.programs.fetch_sub(1, Ordering::Relaxed);
        self.totals.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl Replays {
    /// Those of a runtime whose memory is `budget`.
    pub(super) fn new(is_on: bool, budget: u64) -> Replays {
        Replays {
            is_on,
            limit: budget / SHARE,
            totals: Arc::default(),
            states: Mutex::default(),
        }
    }

    pub(super) fn stats(&self) -> ReplayStats {
        ReplayStats {
            programs: self.totals.programs.load(Ordering::Relaxed),
            bytes: self.totals.bytes.load(Ordering::Relaxed),
            runs: self.totals.runs.load(Ordering::Relaxed),
        }
    }

    /// Bytes that another program may take.
    fn room(&self) -> u64 {
        self.limit
            .saturating_sub(self.totals.bytes.load(Ordering::Relaxed))
    }

    fn count(&self, bytes: u64) -> Counted {
        self.totals.programs.fetch_add(1, Ordering::Relaxed);
        self.totals.bytes.fetch_add(bytes, Ordering::Relaxed);
        Counted {
            totals: self.totals.clone(),
            bytes,
        }
    }

    fn note(&self, state: &Arc<Mutex<State>>) {
        let mut states = self.states.lock();
        states.retain(|known| known.strong_count() > 0);
        // Parameters that were replaced by others leave what was packed of them behind.
        for known in states.iter().filter_map(Weak::upgrade) {
            if let Some(mut known) = known.try_lock()
                && known.is_orphaned()
            {
                known.forget();
            }
        }
        if !states
            .iter()
            .any(|known| std::ptr::eq(known.as_ptr(), &**state))
        {
            states.push(Arc::downgrade(state));
        }
    }

    /// Gives up all recorded programs that do not run at this moment; whether there were any. Where memory `is_short` they are
    /// recorded again a few times only.
    pub(super) fn forget(&self, is_short: bool) -> bool {
        let states = std::mem::take(&mut *self.states.lock());
        let mut any = false;
        for state in states.iter().filter_map(Weak::upgrade) {
            match state.try_lock() {
                Some(mut state) => {
                    let had_any = state.forget();
                    if had_any && is_short {
                        state.fail();
                    }
                    any |= had_any;
                }
                None => self.states.lock().push(Arc::downgrade(&state)),
            }
        }
        any
    }
}
