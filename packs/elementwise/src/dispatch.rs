//! From an iteration space and a shader's code to a plan: which shader, how wide, how many workgroups, which parameters.

use crate::space::{Part, Space, Walk};
use nx_vulkan_abi::{
    BufArg, Define, DeviceInfo, DeviceKind, Plan, Refusal,
    glsl::{self, define},
};
use nx_vulkan_pack_kit::{grid, steps};

/// Invocations of a workgroup.
pub(crate) const WORKGROUP: u64 = 256;
/// 32-bit indices serve below this many elements; `nxv_divide` is exact there.
pub(crate) const INDEX_LIMIT: u64 = 1 << 31;
/// Operand names in shaders.
const NAMES: [&str; 3] = ["A", "B", "C"];
/// Measured on an H200: with 16 bytes the memory is not busy all the time.
const ON_GPU: Share = Share {
    from: 1 << 20,
    bytes: 32,
};
/// Measured on lavapipe with 2 cores: each invocation costs as much as 30 bytes of loads. exp of 10^6 f32 takes 1.3 ms
/// with 4 vectors, 1.8 ms with one.
const ON_CPU: Share = Share {
    from: 1 << 16,
    bytes: 64,
};

/// How much of the work a thread takes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Share {
    /// From this many elements on, threads handle several vectors.
    from: u64,
    /// Bytes that a thread should then load before it uses the first of them.
    bytes: u64,
}

impl Share {
    pub(crate) fn on(device: &DeviceInfo<'_>) -> Share {
        match device.kind {
            DeviceKind::CPU => ON_CPU,
            _ => ON_GPU,
        }
    }

    /// Vectors that a thread handles, at most so many, so that in a large tensor it loads the bytes of its share at once: each
    /// takes so many.
    pub(crate) fn vectors(self, part: &Part, loads: u64, most: u64) -> u64 {
        if part.count < self.from {
            1
        } else {
            (self.bytes / loads.max(1)).clamp(1, most)
        }
    }
}

/// What a shader does with one element of each operand.
#[derive(Debug)]
pub(crate) struct Code {
    /// GLSL types of the operands in memory, then of the result.
    pub(crate) storage: Vec<&'static str>,
    /// The most elements that a thread handles at once: 1, 2 or 4.
    pub(crate) width: u64,
    /// The most vectors of that width that a thread handles.
    pub(crate) vectors: u64,
    /// Defines that do not depend on the layout.
    pub(crate) defines: Vec<Define>,
}

/// A dispatch before it is part of a plan.
#[derive(Debug)]
pub(crate) struct Step {
    pub(crate) file: &'static str,
    pub(crate) defines: Vec<Define>,
    pub(crate) args: Vec<BufArg>,
    pub(crate) params: Params,
    pub(crate) groups: u64,
}

/// A plan that runs `code` over `space`.
pub(crate) fn plan(space: &Space, code: &Code, device: &DeviceInfo<'_>) -> Result<Plan, Refusal> {
    let parts = space.parts(device)?;
    let step = if space.is_flat() { contiguous } else { strided };
    let share = Share::on(device);
    assemble(
        device,
        parts.iter().map(|part| step(space, part, code, share)),
    )
}

fn contiguous(space: &Space, part: &Part, code: &Code, share: Share) -> Step {
    let width = code.width;
    let vectors = vectors(space, part, code, width, share);
    let mut params = Params::new(part, space);
    space
        .inputs
        .iter()
        .for_each(|input| params.index(input.strides[0]));
    let mut defines = layout_defines(space, part, code, width);
    defines.push(define("VECTORS", vectors.to_string()));
    Step {
        file: "contiguous.comp",
        defines,
        args: part.args.clone(),
        params,
        groups: part.count.div_ceil(WORKGROUP * width * vectors),
    }
}

fn strided(space: &Space, part: &Part, code: &Code, share: Share) -> Step {
    let width = width(space, code.width);
    let vectors = vectors(space, part, code, width, share);
    let mut params = Params::new(part, space);
    params.axes(part, space);
    let mut defines = layout_defines(space, part, code, width);
    defines.push(define("VECTORS", vectors.to_string()));
    defines.push(define("RANK", space.rank().to_string()));
    Step {
        file: "strided.comp",
        defines,
        args: part.args.clone(),
        params,
        groups: part.count.div_ceil(WORKGROUP * width * vectors),
    }
}

/// Elements that a thread handles at once, at most so many: as many as divide the innermost axis.
pub(crate) fn width(space: &Space, most: u64) -> u64 {
    let fits = |width: &u64| *width <= most && space.columns().is_multiple_of(*width);
    [4, 2].into_iter().find(fits).unwrap_or(1)
}

fn vectors(space: &Space, part: &Part, code: &Code, width: u64, share: Share) -> u64 {
    let narrowest = space.walks().map(|walk| walk.size).min().unwrap_or(4);
    // One element for all is in a cache.
    let inputs = space.inputs.iter();
    let read = inputs.filter(|input| input.strides.iter().any(|stride| *stride != 0));
    let loads = read.count() as u64 * width * narrowest;
    share.vectors(part, loads, code.vectors)
}

fn layout_defines(space: &Space, part: &Part, code: &Code, width: u64) -> Vec<Define> {
    let mut defines = part.index_defines();
    defines.extend(code.defines.iter().cloned());
    defines.push(define("WORKGROUP", WORKGROUP.to_string()));
    defines.push(define("WIDTH", width.to_string()));
    defines.push(define("INPUTS", space.inputs.len().to_string()));
    let names = NAMES[..space.inputs.len()].iter().chain(&["R"]);
    for (name, storage) in names.zip(&code.storage) {
        defines.push(define(
            format!("{name}_VECTOR"),
            glsl::vector(storage, width).unwrap_or(storage),
        ));
    }
    for ((name, input), at) in NAMES.iter().zip(&space.inputs).zip(&part.at) {
        defines.push(define(format!("{name}_READ"), read(input, *at, width)));
    }
    defines
}

/// The macro of `reads.glsl` that reads `width` elements of an operand whose first element is `at`.
pub(crate) fn read(input: &Walk, at: u64, width: u64) -> &'static str {
    let aligned = |step: i64| step.unsigned_abs().is_multiple_of(width);
    match input.strides.split_last() {
        Some((0, _)) => "READ_SCALAR",
        Some((1, outer)) if at.is_multiple_of(width) && outer.iter().all(|s| aligned(*s)) => {
            "READ_VECTOR"
        }
        _ => "READ_STEPS",
    }
}

/// Bytes of a `Params` block, in std430 layout.
#[derive(Debug)]
pub(crate) struct Params {
    bytes: Vec<u8>,
    wide: bool,
}

impl Params {
    /// Starts with the element count, then the first element of the results and of each operand.
    pub(crate) fn new(part: &Part, space: &Space) -> Params {
        let mut params = Params {
            bytes: Vec::new(),
            wide: part.wide,
        };
        let (inputs, results) = part.at.split_at(space.inputs.len());
        params.index(part.count as i64);
        let all = results.iter().chain(inputs);
        all.for_each(|at| params.index(*at as i64));
        params
    }

    /// The axes of a space, the innermost first: extents, and each operand's strides.
    pub(crate) fn axes(&mut self, part: &Part, space: &Space) {
        for axis in (0..space.rank()).rev() {
            self.axis(part.shape[axis]);
            let inputs = space.inputs.iter();
            inputs.for_each(|input| self.index(input.strides[axis]));
        }
    }

    /// An `INDEX`. A negative stride wraps.
    pub(crate) fn index(&mut self, value: i64) {
        match self.wide {
            true => self.bytes.extend(value.to_le_bytes()),
            false => self.bytes.extend((value as u32).to_le_bytes()),
        }
    }

    /// A 32-bit word.
    pub(crate) fn word(&mut self, value: u32) {
        self.bytes.extend(value.to_le_bytes());
    }

    /// The extent of an axis and its `NxvDivisor`.
    pub(crate) fn axis(&mut self, extent: u64) {
        let shift = extent.max(2).next_power_of_two().trailing_zeros() - 1;
        let magic = (1u128 << (32 + shift)) / u128::from(extent.max(2)) + 1;
        self.index(extent as i64);
        self.word(magic as u32);
        self.word(shift);
    }
}

/// A plan of those steps.
pub(crate) fn assemble(
    device: &DeviceInfo<'_>,
    steps: impl Iterator<Item = Step>,
) -> Result<Plan, Refusal> {
    let mut plan = Plan::default();
    for step in steps {
        let step = steps::Step {
            file: step.file,
            defines: step.defines,
            args: step.args,
            push: step.params.bytes.into(),
            groups: grid::spread(step.groups, device)?,
            ..steps::Step::default()
        };
        step.add_within(&mut plan, device.push_bytes);
    }
    Ok(plan)
}
