//! What a runtime knows of results to come: how many there are, what they hold, and which graphs of them have come before.

use super::{Lazy, State, graph::Graph};
use crate::{
    Program, Result,
    memory::{Buffer, Patience, would_wait},
};
use nx_vulkan_ops::fusion;
use parking_lot::Mutex;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::{
    Arc, Weak,
    atomic::{AtomicU64, AtomicUsize, Ordering},
};

/// Graphs that are known; with more of them all are forgotten.
const MOST_KNOWN: usize = 1_024;
/// Times that the ops of a graph run one by one: what hardly comes again is not worth a shader.
const ONE_BY_ONE: u32 = 2;
/// Part of the memory that what waits may keep from being given back.
const SHARE: u64 = 8;
/// Results to come that are looked through on a scheduler of a VM.
const FEW: usize = 256;

/// The results to come of a runtime.
#[derive(Debug)]
pub(in crate::runtime) struct Lazies {
    pub(super) is_on: bool,
    /// Bytes that what waits keeps from being given back.
    held: Arc<AtomicU64>,
    most_held: u64,
    /// How many there are.
    waiting: Arc<AtomicUsize>,
    alive: Mutex<Alive>,
    known: Mutex<FxHashMap<Vec<u8>, Known>>,
}

#[derive(Debug, Default)]
struct Alive {
    all: Vec<Weak<Lazy>>,
    /// How many there may be before those that are gone or made are looked for.
    room: usize,
}

/// A graph that has come before.
#[derive(Debug, Clone)]
enum Known {
    /// So often.
    Seen(u32),
    Fused(Arc<Program<'static>>),
}

/// Bytes that count as held until this is dropped.
#[derive(Debug)]
pub(super) struct Charge {
    all: Arc<AtomicU64>,
    own: u64,
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.all.fetch_sub(self.own, Ordering::Relaxed);
    }
}

/// A result that counts as one to come until this is dropped.
#[derive(Debug)]
pub(super) struct Waiting {
    all: Arc<AtomicUsize>,
    #[expect(dead_code, reason = "it counts until it is dropped")]
    operands: Charge,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.all.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Lazies {
    pub(in crate::runtime) fn new(is_on: bool, memory: u64) -> Lazies {
        Lazies {
            is_on,
            held: Arc::default(),
            most_held: memory / SHARE,
            waiting: Arc::default(),
            alive: Mutex::default(),
            known: Mutex::default(),
        }
    }

    /// Counts bytes as held.
    pub(super) fn charge(&self, own: u64) -> Charge {
        self.held.fetch_add(own, Ordering::Relaxed);
        let all = self.held.clone();
        Charge { all, own }
    }

    /// Counts a result as one to come that holds so many bytes, where there is room for that.
    pub(super) fn wait(&self, bytes: u64) -> Option<Waiting> {
        let operands = self.charge(bytes);
        if self.held.load(Ordering::Relaxed) > self.most_held {
            return None;
        }
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let all = self.waiting.clone();
        Some(Waiting { all, operands })
    }

    pub(super) fn note(&self, lazy: &Arc<Lazy>) {
        let mut alive = self.alive.lock();
        if alive.all.len() >= alive.room {
            alive.prune();
        }
        alive.all.push(Arc::downgrade(lazy));
    }

    /// Whether nothing waits for `sync` to run it; false too where finding out takes long.
    pub(in crate::runtime) fn are_settled(&self) -> bool {
        match self.waiting.load(Ordering::Relaxed) {
            0 => true,
            1..=FEW => self.last().is_empty(),
            _ => false,
        }
    }

    fn all(&self) -> Vec<Arc<Lazy>> {
        let mut alive = self.alive.lock();
        alive.prune();
        alive.all.iter().filter_map(Weak::upgrade).collect()
    }

    /// Those that nothing else which waits is made of, and that nobody passed over.
    pub(super) fn last(&self) -> Vec<Arc<Lazy>> {
        let mut all = self.all();
        let read = |lazy: &Arc<Lazy>| match &*lazy.state.lock() {
            State::Owed(owed) => owed.lazies().map(Arc::as_ptr).collect(),
            State::Made(..) => Vec::new(),
        };
        let read: FxHashSet<*const Lazy> = all.iter().flat_map(read).collect();
        all.retain(|lazy| {
            let was_passed = lazy.was_passed.load(Ordering::Relaxed);
            !was_passed && lazy.made().is_none() && !read.contains(&Arc::as_ptr(lazy))
        });
        all
    }

    /// Those that are to be made of what lies in that buffer.
    pub(super) fn readers(&self, buffer: &Arc<Buffer>) -> Vec<Arc<Lazy>> {
        let mut all = self.all();
        all.retain(|lazy| lazy.reads(buffer));
        all
    }

    /// All of them.
    pub(super) fn pending(&self) -> Vec<Arc<Lazy>> {
        let mut all = self.all();
        all.retain(|lazy| lazy.made().is_none());
        all
    }

    /// The program of a graph. Without patience none is fused.
    pub(super) fn program(
        &self,
        graph: &Graph,
        patience: Patience,
    ) -> Result<Arc<Program<'static>>> {
        let key = graph.key();
        let known = self.known.lock().get(&key).cloned();
        let (program, known) = match known.unwrap_or(Known::Seen(0)) {
            Known::Fused(program) => return Ok(program),
            Known::Seen(times) if times < ONE_BY_ONE => {
                (Arc::new(graph.program()?), Known::Seen(times + 1))
            }
            Known::Seen(_) if patience == Patience::Never => return Err(would_wait()),
            Known::Seen(_) => {
                let program = Arc::new(fusion::fuse(graph.program()?, &graph.inputs())?);
                (program.clone(), Known::Fused(program))
            }
        };
        let mut all = self.known.lock();
        if all.len() >= MOST_KNOWN {
            all.clear();
        }
        all.insert(key, known);
        Ok(program)
    }
}

impl Alive {
    /// Forgets those that are gone or made.
    fn prune(&mut self) {
        let waits = |lazy: &Weak<Lazy>| {
            let lazy = lazy.upgrade();
            lazy.is_some_and(|lazy| lazy.made().is_none())
        };
        self.all.retain(waits);
        self.room = 2 * self.all.len() + FEW;
    }
}
