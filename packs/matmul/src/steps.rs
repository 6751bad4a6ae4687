//! Building blocks of plans: shader variants, push constants, dispatches; it knows no shape heuristics.

use crate::problem::{Gather, Problem, check_range};
use nx_vulkan_abi::{BufArg, DType, Define, DeviceInfo, Plan, Refusal, dtype::Class, glsl};
pub(crate) use nx_vulkan_pack_kit::steps::number;
use nx_vulkan_pack_kit::{
    epilogue::Run,
    grid,
    steps::{Step, bytes_of, read, scratch},
    vendor,
};

/// Invocations per workgroup of shaders that need no other number: a power of two.
pub(crate) fn threads(device: &DeviceInfo<'_>) -> u32 {
    grid::threads(device, 256)
}

/// Elements of a pack of results: as many as 16 bytes of registers hold.
pub(crate) fn width(dtype: DType) -> u32 {
    // A complex number is a vector itself.
    match dtype.is_complex() {
        true => 1,
        false => 16 / register(dtype),
    }
}

/// The GLSL type of a pack of `width` elements in memory.
pub(crate) fn pack(dtype: DType, width: u32) -> &'static str {
    let glsl = glsl::of(dtype);
    glsl.and_then(|glsl| glsl::vector(glsl.storage, width.into()))
        .or(glsl.map(|glsl| glsl.storage))
        .unwrap_or("vec4")
}

/// Defines for an operand that is converted as it is loaded: its type, and `{name}_GET(x)` from memory to the result's
/// registers.
pub(crate) fn converted(name: &str, operand: DType, result: DType) -> Vec<Define> {
    let mut defines = glsl::operand(name, operand);
    let get = match operand.register() == result.register() {
        true => format!("{name}_LOAD(x)"),
        false => format!("nxv_to_{}({name}_LOAD(x))", result.register()),
    };
    defines.push(glsl::define(format!("{name}_GET(x)"), get));
    defines
}

/// Bytes of an element in registers.
pub(crate) fn register(dtype: DType) -> u32 {
    dtype.register().size().max(4) as u32
}

/// Bytes of the results of so many parts, where there are several.
pub(crate) fn partial_bytes(problem: &Problem, splits: u32) -> u64 {
    match splits {
        1 => 0,
        splits => problem.elements() * u64::from(splits) * u64::from(register(problem.dtype)),
    }
}

/// How a product is cut up.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Cut {
    /// Blocks of C along m and n.
    pub(crate) blocks: [u32; 2],
    /// Parts of the contracted axis.
    pub(crate) splits: u32,
    /// Elements of one part; only the last may be shorter.
    pub(crate) chunk: u32,
    /// Jobs that make up one workgroup.
    pub(crate) jobs_per_group: u32,
}

impl Cut {
    /// At most `splits` parts, each a multiple of `unit` elements.
    pub(crate) fn split(self, k: u32, splits: u64, unit: u32) -> Cut {
        let chunk = u64::from(k)
            .div_ceil(splits.max(1))
            .next_multiple_of(u64::from(unit))
            .max(1);
        let splits = u64::from(k).div_ceil(chunk).max(1) as u32;
        Cut {
            splits,
            chunk: if splits == 1 { k } else { chunk as u32 },
            ..self
        }
    }
}

/// The complete plan of a product: gathers, the product itself with shader `file` in subgroups of that size (0 for any), and the
/// sum of its splits.
pub(crate) fn product(
    problem: &Problem,
    device: &DeviceInfo<'_>,
    (file, subgroup): (&'static str, u32),
    cut: Cut,
    wide: [bool; 3],
    own: Vec<Define>,
) -> Result<Plan, Refusal> {
    let mut steps = Steps::of(problem, device)?;
    let jobs = u64::from(cut.blocks[0])
        * u64::from(cut.blocks[1])
        * u64::from(problem.batches)
        * u64::from(cut.splits);
    let bits = u32::try_from(jobs)
        .map_err(|_| Refusal::decline("the product has more than 2^32 blocks"))?;
    let is_partial = cut.splits > 1 || problem.finishes_apart();
    let result = match is_partial {
        false => BufArg::output(0),
        true => {
            let register = u64::from(register(problem.dtype));
            let partials = problem.elements() * u64::from(cut.splits) * register;
            check_range("the partial results", partials, device)?;
            scratch(&mut steps.plan, partials)
        }
    };
    let mut push = vec![problem.m, problem.n, problem.k, problem.batches];
    push.extend(problem.a.words());
    push.extend(problem.b.words());
    push.extend(problem.c_strides);
    push.extend(cut.blocks);
    let each = u64::from(cut.jobs_per_group);
    let groups = jobs.div_ceil(each);
    let multiply_adds = problem.elements().saturating_mul(u64::from(problem.k)) / groups.max(1);
    let bytes = problem.dtype.register().size();
    let turns = Vec::from_iter(grid::turns(groups, multiply_adds, bytes, device));
    let [jobs_at, first_at] = [push.len(), push.len() + 2];
    push.extend([bits, cut.chunk]);
    // Words are few, so that one dispatch has none for where it begins.
    push.extend((turns.len() > 1).then_some(0));
    let mut args = vec![problem.a.arg, problem.b.arg, result];
    let finish = problem.finish.as_ref().filter(|_| !is_partial);

    let width = width(problem.dtype);
    let packed = |dtype| pack(dtype, width);
    let fma = match problem.dtype.class() {
        Some(Class::Float) => "fma((a), (b), (c))",
        Some(Class::Complex) => "(nxv_complex_product((a), (b)) + (c))",
        Some(Class::Unsigned | Class::Signed) | None => "((a) * (b) + (c))",
    };
    let mut wide = wide.map(|wide| wide && width > 1);
    let is_packed = |dtype| {
        glsl::of(dtype).is_some_and(|glsl| glsl::vector(glsl.storage, width.into()).is_some())
    };
    wide[2] &= is_partial || is_packed(problem.result());
    let mut defines = vec![
        glsl::define("A_PACK", packed(problem.a.dtype)),
        glsl::define("B_PACK", packed(problem.b.dtype)),
        glsl::define("PACK", packed(problem.dtype)),
        glsl::define("VEC", packed(problem.dtype.register())),
        glsl::define("FMA(a, b, c)", fma),
        number("WIDTH", width),
        number("A_ALONG_K", problem.a.is_along_k()),
        number("B_ALONG_K", problem.b.is_along_k()),
        number("A_WIDE", wide[0]),
        number("B_WIDE", wide[1]),
        number("C_WIDE", wide[2]),
        number("PARTIAL", is_partial),
        number("TURNS", turns.len() > 1),
    ];
    defines.extend(converted("A", problem.a.dtype, problem.dtype));
    defines.extend(converted("B", problem.b.dtype, problem.dtype));
    defines.extend(own);
    match finish {
        Some(finish) => {
            let finish = match problem.is_exchanged {
                true => finish.clone().exchanged(),
                false => finish.clone(),
            };
            let run = Run::Columns(if wide[2] { width } else { 1 });
            defines.extend(finish.defines(args.len() as u32, run));
            defines.push(glsl::define("R_PACK", packed(finish.result)));
            args.extend(finish.args());
            push.extend(finish.words());
            check_push(&push)?;
        }
        None => defines.extend(vendor::defines(vendor::is_nvidia(device), false)),
    }
    for turn in &turns {
        push[jobs_at] = jobs.min(turn.end * each) as u32;
        if turns.len() > 1 {
            push[first_at] = turn.start as u32;
        }
        let (defines, push, args) = (defines.clone(), push.clone(), args.clone());
        let groups = turn.end - turn.start;
        steps.dispatch_in(subgroup, (file, problem.dtype), defines, push, args, groups)?;
    }
    if is_partial {
        steps.sum_splits(problem, cut.splits, result)?;
    }
    Ok(steps.plan)
}

/// The plan of a product over no contracted elements, whose operands are empty and cannot be bound.
pub(crate) fn zeros(problem: &Problem, device: &DeviceInfo<'_>) -> Result<Plan, Refusal> {
    let mut steps = Steps {
        plan: Plan::default(),
        device,
        dtype: problem.dtype,
    };
    let count = problem.elements();
    let threads = threads(device);
    let defines = vec![number("THREADS", threads)];
    let groups = count.div_ceil(u64::from(threads));
    steps.dispatch(
        ("zeros.comp", problem.dtype),
        defines,
        vec![count as u32],
        vec![BufArg::output(0)],
        groups,
    )?;
    Ok(steps.plan)
}

/// Bytes of push constants that every device has.
const PUSH: usize = 128;
/// Invocations that keep a compute unit busy where each adds up a few numbers.
const BUSY: u32 = 1024;

pub(crate) fn check_push(push: &[u32]) -> Result<(), Refusal> {
    let bytes = size_of_val(push);
    if bytes <= PUSH {
        return Ok(());
    }
    Err(Refusal::decline(format!(
        "it has {bytes} bytes of push constants, more than the {PUSH} that every device has, most of them its epilogue's"
    )))
}

/// A plan under construction.
pub(crate) struct Steps<'a> {
    pub(crate) plan: Plan,
    pub(crate) device: &'a DeviceInfo<'a>,
    /// Type of the result.
    pub(crate) dtype: DType,
}

impl<'a> Steps<'a> {
    /// A plan that begins with the problem's copies.
    pub(crate) fn of(problem: &Problem, device: &'a DeviceInfo<'a>) -> Result<Steps<'a>, Refusal> {
        let mut steps = Steps {
            plan: Plan::default(),
            device,
            dtype: problem.dtype,
        };
        for gather in &problem.gathers {
            steps.gather(gather)?;
        }
        Ok(steps)
    }

    fn gather(&mut self, gather: &Gather) -> Result<(), Refusal> {
        const MOST_AXES: usize = 15; // as many as 128 bytes of push constants hold
        let axes = gather.extents.len();
        if axes > MOST_AXES {
            return Err(Refusal::decline(format!(
                "a view of {axes} axes that do not collapse"
            )));
        }
        let count: u64 = gather.extents.iter().product();
        let to = scratch(&mut self.plan, count * gather.dtype.size());
        let mut push = vec![count as u32, gather.offset as u32];
        push.extend(gather.extents.iter().map(|&extent| extent as u32));
        push.extend(gather.strides.iter().map(|&stride| stride as u32));
        let threads = threads(self.device);
        let defines = vec![number("THREADS", threads), number("AXES", axes as u32)];
        let groups = count.div_ceil(u64::from(threads));
        self.dispatch(
            ("gather.comp", gather.dtype),
            defines,
            push,
            vec![BufArg::input(gather.input), to],
            groups,
        )
    }

    pub(crate) fn sum_splits(
        &mut self,
        problem: &Problem,
        splits: u32,
        partials: BufArg,
    ) -> Result<(), Refusal> {
        let count = problem.elements() as u32;
        let threads = threads(self.device);
        // Few elements of many splits would leave the device idle, so that then more invocations share one. Neighbours load
        // neighbouring elements, which are to be as many as the device can do with.
        let busy = (BUSY.saturating_mul(self.device.compute_units.max(4)) / count.max(1))
            .next_power_of_two();
        let along = if count >= 1 << 16 {
            1
        } else {
            (splits / 4)
                .next_power_of_two()
                .min(busy.max(8))
                .clamp(1, threads)
        };
        let (rows, columns) = match problem.is_exchanged {
            true => (problem.n, problem.m),
            false => (problem.m, problem.n),
        };
        let four = |dtype| glsl::of(dtype).and_then(|glsl| glsl::vector(glsl.storage, 4));
        let vectors = [four(self.dtype.register()), four(problem.result())];
        let (width, vectors) = match vectors {
            [Some(sums), Some(results)] if along == 1 && columns.is_multiple_of(4) => {
                (4, vec![("T_VALUE4", sums), ("RESULT4", results)])
            }
            _ => (1, Vec::new()),
        };
        let mut defines = vec![
            number("THREADS", threads),
            number("ALONG", along),
            number("WIDTH", width),
        ];
        let vectors = vectors.into_iter();
        defines.extend(vectors.map(|(name, vector)| glsl::define(name, vector)));
        let mut args = vec![read(partials), BufArg::output(0)];
        let mut push = vec![count, splits];
        if let Some(finish) = &problem.finish {
            defines.extend(finish.defines(args.len() as u32, Run::Columns(width)));
            args.extend(finish.args());
            push.extend([rows, columns]);
            push.extend(finish.words());
        }
        let groups = u64::from(count.div_ceil(threads / along * width));
        self.dispatch(("splits.comp", self.dtype), defines, push, args, groups)
    }

    fn dispatch(
        &mut self,
        shader: (&'static str, DType),
        defines: Vec<Define>,
        push: Vec<u32>,
        args: Vec<BufArg>,
        groups: u64,
    ) -> Result<(), Refusal> {
        self.dispatch_in(0, shader, defines, push, args, groups)
    }

    fn dispatch_in(
        &mut self,
        subgroup_size: u32,
        (file, dtype): (&'static str, DType),
        defines: Vec<Define>,
        push: Vec<u32>,
        args: Vec<BufArg>,
        groups: u64,
    ) -> Result<(), Refusal> {
        let mut all = glsl::operand("T", dtype);
        all.extend(defines);
        let step = Step {
            file,
            defines: all,
            args,
            push: bytes_of(&push),
            groups: grid::spread(groups, self.device)?,
            subgroup_size,
            ..Step::default()
        };
        step.add_to(&mut self.plan);
        Ok(())
    }
}
