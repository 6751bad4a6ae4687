//! What a pack answers: a plan as data, a refusal with its reason, or an error.

use crate::DType;
use abi_stable::{
    StableAbi,
    std_types::{RString, RVec},
};

/// Most steps, and most shaders, of one plan.
pub const MAX_STEPS: usize = 64;
/// Most dispatches that the steps of one plan stand for, with their repetitions.
pub const MAX_DISPATCHES: usize = 16_384;
/// Most buffers that one dispatch binds.
pub const MAX_BINDINGS: usize = 16;
/// Most scratch buffers of one plan.
pub const MAX_SCRATCH: usize = 16;
/// Most bytes of all scratch buffers of one plan together, whatever the device.
pub const MAX_SCRATCH_BYTES: u64 = 1 << 40;
/// Most bytes of [`Plan::params`].
pub const MAX_PARAMS: usize = 65_536;
/// Most scratch buffers of one plan that [`Plan::derive`] names.
pub const MAX_DERIVED: usize = 4;

/// Compute dispatches that together produce every output byte of a request.
///
/// Steps run in order; the host puts a barrier between two steps that touch the same bytes. The host copies
/// what it keeps, so nothing the pack allocated outlives the call.
#[repr(C)]
#[derive(StableAbi, Debug, Clone, Default, PartialEq)]
pub struct Plan {
    /// Shaders the steps refer to, by index. At most [`MAX_STEPS`]. \[moved\]
    pub shaders: RVec<ShaderVariant>,
    /// Sizes in bytes of scratch buffers that live for this plan only, at most [`MAX_SCRATCH`] with [`MAX_SCRATCH_BYTES`] together, none 0. Their content
    /// is undefined at the start. \[moved\]
    pub scratch: RVec<u64>,
    /// Constant bytes, at most [`MAX_PARAMS`], that the host uploads once per plan and binds where a step names
    /// [`Slot::PARAMS`]. \[moved\]
    pub params: RVec<u8>,
    /// Dispatches, in order. At most [`MAX_STEPS`]. \[moved\]
    pub steps: RVec<Dispatch>,
    /// Zero in ABI 1.0. From 1.1 on what [`Plan::derive`] sets.
    pub spare: [u64; 4],
}

impl Plan {
    /// Says that scratch buffer `scratch` depends on input `input` alone: the steps that write it write nothing else, read
    /// nothing but that input, params and the buffer itself, do not repeat, and come before all that read it. The host may
    /// keep such a buffer with the tensor and leave these steps out the next time. It refuses a plan whose steps differ from
    /// what is said. No effect once [`MAX_DERIVED`] are named. From ABI 1.1 on; a host of ABI 1.0 refuses the plan.
    pub fn derive(&mut self, scratch: u32, input: u32) {
        if let Some(free) = self.spare.iter_mut().find(|word| **word == 0) {
            *free = (u64::from(scratch) + 1) << 32 | (u64::from(input) + 1);
        }
    }

    /// Scratch buffers that depend on one input alone, with that input. `None` for a field that says something else.
    pub fn derived(&self) -> impl Iterator<Item = Option<(u32, u32)>> {
        let said = self.spare.iter().filter(|word| **word != 0);
        said.map(|word| {
            let scratch = ((word >> 32) as u32).checked_sub(1)?;
            Some((scratch, (*word as u32).checked_sub(1)?))
        })
    }
}

/// One source file of the pack, compiled with a set of defines.
#[repr(C)]
#[derive(StableAbi, Debug, Clone, Default, PartialEq)]
pub struct ShaderVariant {
    /// Name of a [`crate::Source`] of the same pack. \[moved\]
    pub file: RString,
    /// `#define`s put in front of the source, in order. Ignored for SPIR-V. \[moved\]
    pub defines: RVec<Define>,
    /// Storage buffers the shader declares: set 0, bindings `0..bindings`. At most [`MAX_BINDINGS`].
    pub bindings: u32,
    /// Bytes of push constants the shader declares; 0 or a multiple of 4.
    pub push_bytes: u32,
    /// Subgroup size the shader requires, with full subgroups: a power of two within
    /// [`crate::DeviceInfo::min_subgroup_size`] and [`crate::DeviceInfo::max_subgroup_size`], and a divisor
    /// of the first extent of workgroups; 0 for any.
    pub subgroup_size: u32,
    /// Zero in ABI 1.
    pub spare: u32,
}

/// One `#define name value`.
#[repr(C)]
#[derive(StableAbi, Debug, Clone, Default, PartialEq)]
pub struct Define {
    /// Name, with its parameter list where it takes parameters: `LOAD(x)`. \[moved\]
    pub name: RString,
    /// Replacement text, on one line. \[moved\]
    pub value: RString,
}

/// One compute dispatch.
#[repr(C)]
#[derive(StableAbi, Debug, Clone, Default, PartialEq)]
pub struct Dispatch {
    /// Index into [`Plan::shaders`].
    pub shader: u32,
    /// Workgroup counts. A dispatch with a count of 0 is skipped.
    pub groups: [u32; 3],
    /// Specialization constants, each id once. \[moved\]
    pub spec: RVec<SpecConst>,
    /// Buffer of each binding, in order; exactly [`ShaderVariant::bindings`] of them. \[moved\]
    pub args: RVec<BufArg>,
    /// Push constants; exactly [`ShaderVariant::push_bytes`] bytes. \[moved\]
    pub push: RVec<u8>,
    /// Zero in ABI 1.0. From 1.1 on what [`Dispatch::repeated`] and [`Dispatch::counting`] set.
    pub spare: [u64; 2],
}

impl Dispatch {
    /// This step and those after it, `steps` in all, run `times` times, one repetition after the other. Ranges of steps that
    /// repeat neither nest nor overlap. From ABI 1.1 on; a host of ABI 1.0 refuses the plan.
    #[must_use]
    pub fn repeated(mut self, steps: u32, times: u32) -> Dispatch {
        self.spare[0] = u64::from(steps) << 32 | u64::from(times);
        self
    }

    /// In each repetition after the first the word of the push constants with that number is greater by `by`, modulo 2^32.
    /// From ABI 1.1 on.
    #[must_use]
    pub fn counting(mut self, word: u32, by: u32) -> Dispatch {
        self.spare[1] = (u64::from(word) + 1) << 32 | u64::from(by);
        self
    }

    /// Steps and times of a range that begins here.
    pub fn repetition(&self) -> Option<(u32, u32)> {
        let [range, _] = self.spare;
        (range != 0).then_some(((range >> 32) as u32, range as u32))
    }

    /// Number of the word of the push constants that grows with each repetition, and by how much.
    pub fn counter(&self) -> Option<(u32, u32)> {
        let [_, counter] = self.spare;
        let word = ((counter >> 32) as u32).checked_sub(1)?;
        Some((word, counter as u32))
    }
}

/// A 32-bit specialization constant (int, uint, float or bool, by its bits).
#[repr(C)]
#[derive(StableAbi, Debug, Clone, Copy, PartialEq)]
pub struct SpecConst {
    /// `constant_id` in the shader.
    pub id: u32,
    /// Value, as bits.
    pub value: u32,
}

/// Where a buffer argument comes from. Open integer.
#[repr(transparent)]
#[derive(StableAbi, Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot(pub u32);

impl Slot {
    /// An input of the request.
    pub const INPUT: Slot = Slot(1);
    /// An output of the request.
    pub const OUTPUT: Slot = Slot(2);
    /// A scratch buffer of the plan.
    pub const SCRATCH: Slot = Slot(3);
    /// The plan's `params`; the index is 0.
    pub const PARAMS: Slot = Slot(4);
}

/// How a dispatch uses a buffer argument. Open integer.
#[repr(transparent)]
#[derive(StableAbi, Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access(pub u32);

impl Access {
    /// Loads only.
    pub const READ: Access = Access(1);
    /// Stores only. The plan as a whole must store every byte of every output.
    pub const WRITE: Access = Access(2);
    /// Loads and stores.
    pub const READ_WRITE: Access = Access(3);
}

/// A byte range of a buffer, bound to one binding.
#[repr(C)]
#[derive(StableAbi, Debug, Clone, Copy, PartialEq)]
pub struct BufArg {
    /// Which kind of buffer.
    pub slot: Slot,
    /// Which one of that kind.
    pub index: u32,
    /// First byte, counted from the start of the buffer (not from the tensor's offset); a multiple of
    /// [`crate::DeviceInfo::buffer_align`].
    pub offset: u64,
    /// Bytes; 0 means up to the end of the buffer.
    pub len: u64,
    /// How the dispatch uses it. Inputs and params are read only.
    pub access: Access,
    /// Zero in ABI 1.0. From 1.1 on what [`BufArg::counts`] sets.
    pub spare: u32,
}

impl BufArg {
    /// The whole of input `index`, read.
    pub fn input(index: u32) -> BufArg {
        BufArg::new(Slot::INPUT, index, Access::READ)
    }

    /// The whole of output `index`, written.
    pub fn output(index: u32) -> BufArg {
        BufArg::new(Slot::OUTPUT, index, Access::WRITE)
    }

    /// The whole of scratch buffer `index`.
    pub fn scratch(index: u32, access: Access) -> BufArg {
        BufArg::new(Slot::SCRATCH, index, access)
    }

    /// The plan's params, read.
    pub fn params() -> BufArg {
        BufArg::new(Slot::PARAMS, 0, Access::READ)
    }

    /// The same bytes, whose first three words are the workgroup counts of the dispatch, read when it runs; the host takes
    /// no more than [`Dispatch::groups`]. One argument of a dispatch at most, which is only read. From ABI 1.1 on.
    #[must_use]
    pub fn counts(self) -> BufArg {
        BufArg { spare: 1, ..self }
    }

    /// The same buffer, restricted to `len` bytes from `offset`.
    #[must_use]
    pub fn range(self, offset: u64, len: u64) -> BufArg {
        BufArg {
            offset,
            len,
            ..self
        }
    }

    fn new(slot: Slot, index: u32, access: Access) -> BufArg {
        BufArg {
            slot,
            index,
            offset: 0,
            len: 0,
            access,
            spare: 0,
        }
    }
}

/// What a reply is. Open integer.
#[repr(transparent)]
#[derive(StableAbi, Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outcome(pub u32);

impl Outcome {
    /// [`Reply::plan`] runs the request.
    pub const PLAN: Outcome = Outcome(1);
    /// The pack does not run this request; [`Reply::message`] says why. The host asks the next kernel.
    pub const DECLINE: Outcome = Outcome(2);
    /// The host shall materialise the inputs named in [`Reply::inputs_as`] as contiguous tensors and ask again.
    pub const INPUTS_AS: Outcome = Outcome(3);
    /// The request or the pack is broken; [`Reply::message`] says how and [`Reply::fault`] whose fault it is.
    pub const ERROR: Outcome = Outcome(4);
}

/// Who is to blame for an error. Open integer.
#[repr(transparent)]
#[derive(StableAbi, Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault(pub u32);

impl Fault {
    /// Nobody.
    pub const NONE: Fault = Fault(0);
    /// The request breaks the op's contract.
    pub const HOST: Fault = Fault(1);
    /// The pack reached a state it should not reach.
    pub const PACK: Fault = Fault(2);
    /// A pack function panicked; the guard caught it.
    pub const PANIC: Fault = Fault(3);
}

/// An input that the host shall hand over in another form.
#[repr(C)]
#[derive(StableAbi, Debug, Clone, Copy, PartialEq, Eq)]
pub struct InputAs {
    /// Which input.
    pub index: u32,
    /// Element type it shall be cast to, with the semantics of `as_type`.
    pub dtype: DType,
    /// Zero in ABI 1.
    pub spare: [u32; 2],
}

impl InputAs {
    /// Input `index`, contiguous and of type `dtype`.
    pub const fn new(index: u32, dtype: DType) -> InputAs {
        InputAs {
            index,
            dtype,
            spare: [0; 2],
        }
    }
}

/// A pack's answer to one request.
#[repr(C)]
#[derive(StableAbi, Debug, Clone)]
pub struct Reply {
    /// Which of the fields below counts.
    pub outcome: Outcome,
    /// Blame, for an error.
    pub fault: Fault,
    /// Reason of a decline or an error, as a sentence; with a plan why it is as it is, or nothing. \[moved\]
    pub message: RString,
    /// Inputs to be made contiguous and cast. \[moved\]
    pub inputs_as: RVec<InputAs>,
    /// The plan. \[moved\]
    pub plan: Plan,
    /// Zero in ABI 1.
    pub spare: [u64; 2],
}

/// Success, or an error with its reason.
#[repr(C)]
#[derive(StableAbi, Debug, Clone, PartialEq)]
pub struct Status {
    /// [`Fault::NONE`] for success.
    pub fault: Fault,
    /// Zero in ABI 1.
    pub spare: u32,
    /// Reason, as a sentence. \[moved\]
    pub message: RString,
}
