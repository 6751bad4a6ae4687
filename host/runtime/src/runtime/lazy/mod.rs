//! Results that nobody has asked for yet: elementwise ops run once somebody needs what they make, and those on the way to it with them.

mod defer;
mod graph;
mod lazies;
mod settle;

use crate::{
    Error, Kind, Result, Tensor,
    memory::Buffer,
    tensor::{Laid, Layout, Part},
};
pub(super) use lazies::Lazies;
use lazies::{Charge, Waiting};
use nx_vulkan_abi::DType;
use nx_vulkan_ops::{op::Op, show_shape};
use parking_lot::Mutex;
use smallvec::SmallVec;
use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

/// The result of an elementwise op, which may not have run yet.
#[derive(Debug)]
pub struct Lazy {
    /// How it will lie.
    layout: Layout,
    state: Mutex<State>,
    family: Family,
    /// Whether it was computed on the way to another result, and not kept. It is kept the next time.
    was_passed: AtomicBool,
}

#[derive(Debug)]
enum State {
    Owed(Owed),
    /// The memory counts as held by what waits for as long as this does.
    Made(
        Arc<Tensor>,
        #[expect(dead_code, reason = "it counts until it is dropped")] Charge,
    ),
}

/// What it takes to make a result.
#[derive(Debug)]
struct Owed {
    op: &'static Op,
    operands: SmallVec<[Operand; 2]>,
    #[expect(dead_code, reason = "it counts until it is dropped")]
    waiting: Waiting,
}

/// How many ops have come to wait for each other since the first of them: a result is of the family of its operands, or of a new one
/// of as many as theirs together. So it bounds how many ops a result waits for, and how deep these are nested.
type Family = Arc<AtomicUsize>;

/// An operand of an op that may wait.
#[derive(Debug, Clone)]
pub enum Operand {
    /// A tensor, with the bytes of its element where it has one alone that is known.
    Made(Arc<Tensor>, Option<SmallVec<[u8; 16]>>),
    /// A result that may be one to come.
    Lazy(Arc<Lazy>),
}

impl Lazy {
    /// The tensor, once it is there.
    pub fn made(&self) -> Option<Arc<Tensor>> {
        match &*self.state.lock() {
            State::Made(tensor, _) => Some(tensor.clone()),
            State::Owed(_) => None,
        }
    }

    fn make(&self, tensor: Tensor, charge: Charge) -> Result<()> {
        if !tensor.is_plain() || !tensor.is_laid_out_as(&self.layout) {
            let (dtype, shape) = (self.layout.dtype(), show_shape(self.layout.shape()));
            let why = format!("expected a result {dtype}{shape} without gaps");
            return Err(Error::new(Kind::Pack, why));
        }
        let mut state = self.state.lock();
        // Somebody else may have made it meanwhile, and told others.
        let made = match &*state {
            State::Made(..) => return Ok(()),
            State::Owed(_) => State::Made(Arc::new(tensor), charge),
        };
        let owed = std::mem::replace(&mut *state, made);
        // What it was to be made of is let go of outside of the lock, since others may hang on it.
        drop(state);
        drop(owed);
        Ok(())
    }

    /// Whether it is to be made of what lies in that buffer.
    fn reads(&self, buffer: &Arc<Buffer>) -> bool {
        match &*self.state.lock() {
            State::Owed(owed) => owed.operands.iter().any(|operand| operand.is_in(buffer)),
            State::Made(..) => false,
        }
    }
}

impl Owed {
    fn lazies(&self) -> impl Iterator<Item = &Arc<Lazy>> {
        self.operands.iter().filter_map(Operand::lazy)
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

    /// The bytes that it keeps from being given back.
    fn bytes(&self) -> u64 {
        match self {
            Operand::Made(tensor, _) => tensor.buffer.block(),
            Operand::Lazy(_) => 0,
        }
    }

    fn may_be_written(&self) -> bool {
        matches!(self, Operand::Made(tensor, _) if tensor.buffer.is_lent())
    }

    fn is_in(&self, buffer: &Arc<Buffer>) -> bool {
        match self {
            Operand::Made(tensor, _) => Arc::ptr_eq(&tensor.buffer, buffer),
            Operand::Lazy(lazy) => {
                let made = lazy.made();
                made.is_some_and(|made| Arc::ptr_eq(&made.buffer, buffer))
            }
        }
    }
}

/// How many ops wait in a family.
fn size(family: &Family) -> usize {
    family.load(Ordering::Relaxed)
}
