//! Results that nobody has asked for yet: elementwise ops run once somebody needs what they make, and those on the way to it with them.

mod graph;

use super::{Progress, Runtime, key::with_key};
use crate::{
    Error, Kind, Program, Request, Result, Spec, Tensor,
    memory::{Patience, would_wait},
    route::Route,
    tensor::{Laid, Layout, Part, byte_len},
};
use graph::Graph;
use nx_vulkan_abi::DType;
use nx_vulkan_ops::{find, fusion, op::Op, show_shape};
use parking_lot::Mutex;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use std::sync::{
    Arc, Weak,
    atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
};

/// Most ops that run together; the depth to which they may be nested.
const MOST: usize = 48;
/// Graphs that are known before that starts anew.
const MOST_KNOWN: usize = 1_024;
/// Part of the memory that operands may take which only results to come still need.
const SHARE: u64 = 8;

/// The result of an elementwise op, which may not have run yet.
#[derive(Debug)]
pub struct Lazy {
    /// How it will lie.
    layout: Layout,
    state: Mutex<State>,
    family: Family,
    /// Whether it was computed on the way to another result, and not kept.
    was_passed: AtomicBool,
}

#[derive(Debug)]
enum State {
    Owed(Owed),
    Made(Arc<Tensor>),
}

/// What it takes to make a result.
#[derive(Debug)]
struct Owed {
    op: &'static Op,
    operands: SmallVec<[Operand; 2]>,
    #[expect(dead_code, reason = "it counts until it is dropped")]
    held: Held,
}

/// How many ops have come to wait for each other.
type Family = Arc<AtomicUsize>;

/// An operand of an op that may wait.
#[derive(Debug, Clone)]
pub enum Operand {
    /// A tensor, with the bytes of each of its elements where all are known to be the same.
    Made(Arc<Tensor>, Option<SmallVec<[u8; 16]>>),
    /// A result that may be one to come.
    Lazy(Arc<Lazy>),
}

/// Bytes of operands that a result to come holds.
#[derive(Debug)]
struct Held {
    all: Arc<AtomicU64>,
    own: u64,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.all.fetch_sub(self.own, Ordering::Relaxed);
    }
}

/// What a runtime knows of results to come.
#[derive(Debug)]
pub(super) struct Lazies {
    is_on: bool,
    /// Bytes of operands that they hold.
    held: Arc<AtomicU64>,
    most_held: u64,
    alive: Mutex<Alive>,
    known: Mutex<FxHashMap<Vec<u8>, Known>>,
}

#[derive(Debug, Default)]
struct Alive {
    all: Vec<Weak<Lazy>>,
    /// How many there may be before those that are gone are looked for.
    room: usize,
}

/// A graph that was met: at first its ops run one by one, for what never comes again is not worth a shader.
#[derive(Debug, Clone)]
enum Known {
    Once,
    Fused(Arc<Program<'static>>),
}

impl Lazies {
    pub(super) fn new(is_on: bool, memory: u64) -> Lazies {
        Lazies {
            is_on,
            held: Arc::default(),
            most_held: memory / SHARE,
            alive: Mutex::default(),
            known: Mutex::default(),
        }
    }

    /// What a result of these operands will hold, where there is room for that.
    fn hold(&self, operands: &[Operand]) -> Option<Held> {
        let bytes = operands.iter().map(|operand| match operand {
            Operand::Made(tensor, _) => tensor.part().len,
            Operand::Lazy(_) => 0,
        });
        let own = bytes.sum();
        let before = self.held.fetch_add(own, Ordering::Relaxed);
        let all = self.held.clone();
        let held = Held { all, own };
        (before.saturating_add(own) <= self.most_held).then_some(held)
    }

    fn note(&self, lazy: &Arc<Lazy>) {
        let mut alive = self.alive.lock();
        if alive.all.len() >= alive.room {
            alive.all.retain(|lazy| lazy.strong_count() > 0);
            alive.room = 2 * alive.all.len() + MOST;
        }
        alive.all.push(Arc::downgrade(lazy));
    }

    /// The results to come that no other one is made of.
    fn last(&self) -> Vec<Arc<Lazy>> {
        let alive = self.alive.lock();
        let alive: Vec<_> = alive.all.iter().filter_map(Weak::upgrade).collect();
        let read = |lazy: &Arc<Lazy>| match &*lazy.state.lock() {
            State::Owed(owed) => owed.lazies().map(Arc::as_ptr).collect(),
            State::Made(_) => Vec::new(),
        };
        let read: FxHashSet<*const Lazy> = alive.iter().flat_map(read).collect();
        let is_last =
            |lazy: &Arc<Lazy>| lazy.made().is_none() && !read.contains(&Arc::as_ptr(lazy));
        alive.into_iter().filter(is_last).collect()
    }

    /// The program of a graph. Without patience none is fused.
    fn program(&self, graph: &Graph, patience: Patience) -> Result<Arc<Program<'static>>> {
        let key = graph.key();
        let known = self.known.lock().get(&key).cloned();
        let (program, known) = match known {
            Some(Known::Fused(program)) => return Ok(program),
            Some(Known::Once) if patience == Patience::Never => return Err(would_wait()),
            Some(Known::Once) => {
                let program = Arc::new(fusion::fuse(graph.program()?, &graph.inputs())?);
                (program.clone(), Known::Fused(program))
            }
            None => (Arc::new(graph.program()?), Known::Once),
        };
        let mut all = self.known.lock();
        if all.len() >= MOST_KNOWN {
            all.clear();
        }
        all.insert(key, known);
        Ok(program)
    }
}

impl Lazy {
    /// The tensor, once it is there.
    pub fn made(&self) -> Option<Arc<Tensor>> {
        match &*self.state.lock() {
            State::Made(tensor) => Some(tensor.clone()),
            State::Owed(_) => None,
        }
    }

    fn make(&self, tensor: Tensor) -> Result<()> {
        if !tensor.is_plain() || !tensor.is_laid_out_as(&self.layout) {
            let (dtype, shape) = (self.layout.dtype(), show_shape(self.layout.shape()));
            let why = format!("expected a result {dtype}{shape} without gaps");
            return Err(Error::new(Kind::Pack, why));
        }
        let made = State::Made(Arc::new(tensor));
        // What it was to be made of is let go of outside of the lock, since others may hang on it.
        let owed = std::mem::replace(&mut *self.state.lock(), made);
        drop(owed);
        Ok(())
    }
}

impl Owed {
    fn lazies(&self) -> impl Iterator<Item = &Arc<Lazy>> {
        self.operands.iter().filter_map(Operand::lazy)
    }

    /// The family that it joins, its operands' where that is one; `None` where that would be too large.
    fn family(&self) -> Option<Family> {
        let first = self.lazies().next().map(|lazy| &lazy.family);
        let size = |family: &Family| family.load(Ordering::Relaxed);
        let Some(first) = first else {
            return Some(Family::new(1.into()));
        };
        if self.lazies().all(|lazy| Arc::ptr_eq(&lazy.family, first)) {
            let before = first.fetch_add(1, Ordering::Relaxed);
            return (before < MOST).then(|| first.clone());
        }
        let all: usize = self.lazies().map(|lazy| size(&lazy.family)).sum();
        (all < MOST).then(|| Family::new((all + 1).into()))
    }
}

impl Laid for Operand {
    fn dtype(&self) -> DType {
        self.laid().dtype()
    }

    fn shape(&self) -> &[u64] {
        self.laid().shape()
    }

    fn strides(&self) -> &[i64] {
        self.laid().strides()
    }

    fn part(&self) -> Part {
        self.laid().part()
    }
}

impl Operand {
    fn lazy(&self) -> Option<&Arc<Lazy>> {
        match self {
            Operand::Lazy(lazy) => Some(lazy),
            Operand::Made(..) => None,
        }
    }

    /// The operand as what it is by now.
    fn by_now(self) -> Operand {
        match self.lazy().and_then(|lazy| lazy.made()) {
            Some(tensor) => Operand::Made(tensor, None),
            None => self,
        }
    }

    /// How it lies.
    fn laid(&self) -> &dyn Laid {
        match self {
            Operand::Made(tensor, _) => &**tensor,
            Operand::Lazy(lazy) => &lazy.layout,
        }
    }

    fn may_be_written(&self) -> bool {
        matches!(self, Operand::Made(tensor, _) if tensor.buffer.is_lent())
    }
}

impl Runtime {
    /// Whether a result of that type and shape may wait.
    pub fn may_wait(&self, (dtype, shape): &Spec) -> bool {
        self.lazies.is_on && byte_len(*dtype, shape).is_ok_and(|bytes| bytes > 0)
    }

    /// The result of an op that waits until somebody needs it; `None` where the op has to run now: it is no elementwise one, did
    /// not run on the device before, or there is no room for what it would hold.
    pub fn defer(
        &self,
        op: &str,
        operands: impl IntoIterator<Item = Operand>,
        output: &Spec,
    ) -> Option<Arc<Lazy>> {
        let op = find(op).filter(|op| op.is_elementwise())?;
        if !self.may_wait(output) {
            return None;
        }
        let operands = operands.into_iter().map(Operand::by_now);
        let operands: SmallVec<[Operand; 2]> = operands.collect();
        let fits = |lazy: &Arc<Lazy>| lazy.layout.shape() == output.1;
        let is_for_it = operands.iter().filter_map(Operand::lazy).all(fits)
            && !operands.iter().any(Operand::may_be_written)
            && self.serves(op, &operands, output);
        let held = self.lazies.hold(&operands).filter(|_| is_for_it)?;
        let owed = Owed { op, operands, held };
        let family = match owed.family() {
            Some(family) => family,
            None => {
                let lazies: SmallVec<[Arc<Lazy>; 2]> = owed.lazies().cloned().collect();
                self.settle_by(&lazies, Patience::Never).ok()?;
                Family::new(1.into())
            }
        };
        let lazy = Arc::new(Lazy {
            layout: Layout::contiguous(output.0, &output.1),
            state: Mutex::new(State::Owed(owed)),
            family,
            was_passed: AtomicBool::new(false),
        });
        self.lazies.note(&lazy);
        Some(lazy)
    }

    /// Whether the device is known to run it.
    fn serves(&self, op: &Op, operands: &[Operand], output: &Spec) -> bool {
        let operands: SmallVec<[&Operand; 2]> = operands.iter().collect();
        let outputs = std::slice::from_ref(output);
        let request = Request::new(op.name, &operands[..], outputs, &[]);
        let route = with_key(&request, |key| self.cached(key));
        route.is_some_and(|route| matches!(&*route, Route::Device { .. }))
    }

    /// Runs what these results wait for.
    ///
    /// # Errors
    /// As [`Runtime::run_program`].
    pub fn settle(&self, lazies: &[Arc<Lazy>]) -> Result<()> {
        self.settle_by(lazies, Patience::Waits)
    }

    /// As [`Runtime::settle`], without waiting or compiling; false where that is needed.
    ///
    /// # Errors
    /// As [`Runtime::settle`].
    pub fn try_settle(&self, lazies: &[Arc<Lazy>]) -> Result<bool> {
        match self.settle_by(lazies, Patience::Never) {
            Err(e) if matches!(e.kind(), Kind::WouldWait | Kind::OutOfMemory) => Ok(false),
            settled => settled.map(|()| true),
        }
    }

    /// Whether no result waits for somebody who needs it.
    pub(super) fn is_settled(&self) -> bool {
        self.lazies.last().is_empty()
    }

    /// Runs all that waits, but what was only on the way to something else.
    ///
    /// # Errors
    /// As [`Runtime::settle`].
    pub fn settle_all(&self) -> Result<()> {
        let last = self.lazies.last();
        last.iter()
            .try_for_each(|lazy| self.settle(std::slice::from_ref(lazy)))
    }

    fn settle_by(&self, lazies: &[Arc<Lazy>], patience: Patience) -> Result<()> {
        let graph = Graph::of(lazies);
        if graph.ops() == 0 {
            return Ok(());
        }
        let inputs: SmallVec<[&Tensor; 8]> = graph.leaves().collect();
        if let Some((lazy, request)) = graph.only(&inputs) {
            let ran = self.run_by(&request, patience)?;
            let made = ran.outputs.into_iter().next();
            return made.map_or(Ok(()), |tensor| lazy.make(tensor));
        }
        let program = self.lazies.program(&graph, patience)?;
        let mut progress = Progress::default();
        progress.advance(&program, &inputs, &mut (self, patience))?;
        let ran = progress.finish(&program, &inputs)?;
        for (lazy, tensor) in graph.results().zip(ran.results) {
            lazy.make(tensor)?;
        }
        graph.passed().for_each(|lazy| {
            lazy.was_passed.store(true, Ordering::Relaxed);
        });
        Ok(())
    }
}
