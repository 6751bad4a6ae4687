//! Plans in the making: workspaces in the precision that matrices are factored in, dispatches, repetitions.

use nx_vulkan_abi::{
    Access, BufArg, DType, Define, DeviceInfo, DeviceKind, Features, InputAs, Plan, Refusal,
    Request,
    glsl::{self, define},
    plan,
};
use nx_vulkan_pack_kit::{
    grid,
    operand::{supports, within_reach},
    steps::{self, Step, bytes_of, number, read},
};

/// Rows and columns of a block of a triangle.
const SIDE: u32 = 64;
/// Those where arithmetic takes many instructions, and compilers long over them: of complex numbers, and on a CPU.
const SMALL_SIDE: u32 = 32;
const LEAST_SIDE: u32 = 8;

/// The define that tells a shader how large full subgroups are.
pub(crate) const SUBGROUP: &str = "SUBGROUP";

/// Scratch buffers of a plan that are one workspace each; further ones share one.
const BUFFERS: usize = plan::MAX_SCRATCH - 1;

/// A plan whose operands are contiguous tensors of one float or complex type.
#[derive(Debug)]
pub(crate) struct Emit<'a> {
    pub(crate) request: &'a Request<'a>,
    /// The type of workspaces: that of the results, of f32 for narrower ones.
    wide: DType,
    /// The type of sums.
    sums: DType,
    plan: Plan,
    stores: Vec<(BufArg, u32)>,
    /// Rows and columns of a block of a triangle at most.
    most: u32,
    /// The buffer that workspaces share.
    shared: Option<BufArg>,
}

impl<'a> Emit<'a> {
    /// A plan for results whose type is that of the last one.
    pub(crate) fn new(what: &str, request: &'a Request<'a>) -> Result<Emit<'a>, Refusal> {
        let dtype = request.outputs.last().map_or(DType::F32, |out| out.dtype);
        Emit::of(what, request, dtype.register())
    }

    /// The same with workspaces in the type of sums.
    pub(crate) fn in_sums(what: &str, request: &'a Request<'a>) -> Result<Emit<'a>, Refusal> {
        let own = Emit::new(what, request);
        match own {
            Err(Refusal::InputsAs(_)) | Ok(_) if has_doubles(request.device) => {
                let is_complex = request.outputs.iter().any(|out| out.dtype.is_complex());
                Emit::of(what, request, doubles(is_complex))
            }
            _ => own,
        }
    }

    fn of(what: &str, request: &'a Request<'a>, wide: DType) -> Result<Emit<'a>, Refusal> {
        let results = request.outputs.iter().map(|out| out.dtype);
        for dtype in results.chain([wide]) {
            supports(what, dtype, request.device)?;
        }
        from_the_start(request, wide)?;
        within_reach(request)?;
        Ok(Emit {
            request,
            wide,
            sums: if has_doubles(request.device) {
                doubles(wide.is_complex())
            } else {
                wide
            },
            plan: Plan::default(),
            stores: Vec::new(),
            most: SIDE,
            shared: None,
        })
    }

    pub(crate) fn device(&self) -> &'a DeviceInfo<'a> {
        self.request.device
    }

    /// Invocations of a workgroup that meets often, up to `most`: on a CPU those of one vector, to which barriers cost nothing.
    pub(crate) fn threads(&self, most: u32) -> u32 {
        match self.device().kind {
            DeviceKind::CPU => grid::threads(self.device(), most.min(8)),
            _ => grid::threads(self.device(), most),
        }
    }

    /// Adds steps that compute with real numbers.
    pub(crate) fn in_reals<R>(&mut self, steps: impl FnOnce(&mut Self) -> R) -> R {
        let own = (self.wide, self.sums);
        (self.wide, self.sums) = (own.0.part(), own.1.part());
        let result = steps(self);
        (self.wide, self.sums) = own;
        result
    }

    /// Whether what stands in a row in a shader is long, once compiled.
    pub(crate) fn is_long(&self) -> bool {
        self.wide.is_complex() || self.device().kind == DeviceKind::CPU
    }

    /// Rows and columns of a block of a triangle.
    pub(crate) fn side(&self) -> u32 {
        let side = match self.is_long() {
            true => SMALL_SIDE,
            false => SIDE,
        };
        side.min(self.most)
    }

    /// Makes blocks of triangles no larger than those of `n` rows need.
    pub(crate) fn for_rows(&mut self, n: u32) {
        self.most = n.next_power_of_two().clamp(LEAST_SIDE, SIDE);
    }

    /// How many columns an invocation keeps, each of so many elements: half of the registers that it has among so many others.
    pub(crate) fn columns_in_registers(&self, rows: u32, threads: u32) -> u32 {
        let words = rows * (self.size() / 4) as u32;
        let most = if self.is_long() { 8 } else { 16 };
        1 << (32_768 / threads / words).clamp(4, most).ilog2()
    }

    /// Invocations that exchange values without shared memory, which are full subgroups where a shader is told of them; 1 where they
    /// cannot.
    pub(crate) fn subgroup(&self) -> u32 {
        match grid::has_full_subgroups(self.device(), u64::MAX) {
            true => self.device().subgroup_size,
            false => 1,
        }
    }

    /// The most invocations of a workgroup, up to `most`, whose shared memory has room for so many elements: each subgroup has sums of
    /// its own, and where invocations exchange nothing without shared memory each of them.
    pub(crate) fn summing(
        &self,
        most: u32,
        elements: impl Fn(u64, u64) -> u64,
    ) -> Result<u32, Refusal> {
        let (most, subgroup) = (most.max(self.subgroup()), self.subgroup());
        let halves = (0..=most.ilog2()).map(|times| most >> times);
        let sizes: Vec<u32> = halves.filter(|size| *size >= subgroup).collect();
        let groups = |size| size / u64::from(subgroup);
        self.fitting(&sizes, |size| self.size() * elements(size, groups(size)))
    }

    /// The type of sums.
    pub(crate) fn sums(&self) -> DType {
        self.sums
    }

    /// The largest of `sizes` with which a workgroup's shared memory is enough, `bytes` being what it takes.
    pub(crate) fn fitting(
        &self,
        sizes: &[u32],
        bytes: impl Fn(u64) -> u64,
    ) -> Result<u32, Refusal> {
        let shared = u64::from(self.device().shared_bytes);
        let fits = |size: &&u32| bytes(u64::from(**size)) <= shared;
        let largest = sizes.iter().filter(fits).max();
        largest.copied().ok_or_else(|| {
            Refusal::decline(format!(
                "{shared} bytes of shared memory are too few for a block"
            ))
        })
    }

    /// The type of workspaces.
    pub(crate) fn wide(&self) -> DType {
        self.wide
    }

    /// Bytes of an element of a workspace.
    pub(crate) fn size(&self) -> u64 {
        self.wide.size()
    }

    /// A workspace that becomes result `index`, to be written first.
    pub(crate) fn result(&mut self, index: u32) -> Result<BufArg, Refusal> {
        let out = &self.request.outputs[index as usize];
        if out.dtype == self.wide {
            return Ok(BufArg::output(index));
        }
        let from = self.scratch(out.elements())?;
        self.stores.push((read(from), index));
        Ok(from)
    }

    /// A workspace of so many elements, to be written first.
    pub(crate) fn scratch(&mut self, elements: u64) -> Result<BufArg, Refusal> {
        self.bytes(elements * self.wide.size())
    }

    /// A workspace of so many bytes, to be written first.
    pub(crate) fn bytes(&mut self, bytes: u64) -> Result<BufArg, Refusal> {
        if bytes > self.device().max_buffer_range {
            return Err(Refusal::decline(format!(
                "a workspace of {bytes} bytes is more than one buffer argument reaches"
            )));
        }
        match self.plan.scratch.len() < BUFFERS {
            true => Ok(steps::scratch(&mut self.plan, bytes)),
            false => Ok(self.shared(bytes)),
        }
    }

    /// A workspace in the buffer that is shared.
    fn shared(&mut self, bytes: u64) -> BufArg {
        let align = self.align();
        let plan = &mut self.plan;
        let shared = *self.shared.get_or_insert_with(|| steps::scratch(plan, 0));
        let size = &mut plan.scratch[shared.index as usize];
        let start = size.next_multiple_of(align);
        *size = start + bytes;
        shared.range(start, bytes)
    }

    /// Where a workspace may begin in a buffer.
    fn align(&self) -> u64 {
        self.device().buffer_align.max(256)
    }

    /// Workspaces of so many bytes each, which count as one buffer of the plan.
    pub(crate) fn pieces<const N: usize>(
        &mut self,
        sizes: [u64; N],
    ) -> Result<[BufArg; N], Refusal> {
        let most = self.device().max_buffer_range;
        if let Some(bytes) = sizes.iter().find(|bytes| **bytes > most) {
            return Err(Refusal::decline(format!(
                "a workspace of {bytes} bytes is more than one buffer argument reaches"
            )));
        }
        if self.plan.scratch.len() >= BUFFERS {
            return Ok(sizes.map(|bytes| self.shared(bytes)));
        }
        let align = self.align();
        let mut end = 0;
        let ranges = sizes.map(|bytes| {
            let start = end;
            end += bytes.next_multiple_of(align);
            (start, bytes)
        });
        let buffer = steps::scratch(&mut self.plan, end);
        Ok(ranges.map(|(start, bytes)| buffer.range(start, bytes)))
    }

    /// A dispatch of `groups` workgroups, whose number is the second word that is pushed.
    pub(crate) fn step(
        &mut self,
        file: &'static str,
        defines: Vec<Define>,
        args: Vec<BufArg>,
        push: &[u32],
        groups: u64,
    ) -> Result<(), Refusal> {
        let mut all = glsl::needs(self.sums);
        all.extend([
            define("WORK", name(self.wide)),
            define("WORK4", fours(self.wide)),
            define("REAL", name(self.wide.part())),
            define("REAL4", fours(self.wide.part())),
            define("SUM", name(self.sums)),
            number("SIDE", self.side()),
            // What a GPU keeps in registers lies in memory on a CPU, where code of that size takes long to compile.
            define(
                "UNROLL",
                if self.device().kind == DeviceKind::CPU {
                    ""
                } else {
                    "[[unroll]]"
                },
            ),
        ]);
        if self.wide.is_complex() {
            all.push(number("WORK_IS_COMPLEX", 1u32));
        }
        if self.wide.part() == DType::F64 {
            all.push(number("REAL_IS_F64", 1u32));
        }
        all.extend(defines);
        // A shader that knows their size has a place for each, so that no driver may choose another.
        let subgroup = all.iter().find(|define| define.name == SUBGROUP);
        let subgroup = subgroup.and_then(|define| define.value.parse::<u32>().ok());
        let step = Step {
            file,
            defines: all,
            args,
            push: bytes_of(push),
            groups: grid::spread(groups, self.device())?,
            subgroup_size: subgroup.filter(|size| *size > 1).unwrap_or(0),
            ..Step::default()
        };
        step.add_to(&mut self.plan);
        Ok(())
    }

    /// The number of the next step.
    pub(crate) fn place(&self) -> usize {
        self.plan.steps.len()
    }

    /// Runs the steps from `place` on so many times, word 2 of what is pushed being `by` more each time.
    pub(crate) fn repeat(&mut self, place: usize, times: u32, by: i32) {
        let count = (self.plan.steps.len() - place) as u32;
        for (at, step) in self.plan.steps.iter_mut().enumerate().skip(place) {
            let own = std::mem::take(step);
            let own = if at == place {
                own.repeated(count, times)
            } else {
                own
            };
            *step = own.counting(2, by as u32);
        }
    }

    /// The plan, with results of other types stored last.
    pub(crate) fn finish(mut self) -> Result<Plan, Refusal> {
        for (from, index) in std::mem::take(&mut self.stores) {
            let out = &self.request.outputs[index as usize];
            let (count, dtype) = (out.elements(), out.dtype);
            let mut defines = glsl::operand("R", dtype);
            defines.push(define("TO(x)", format!("nxv_to_{}(x)", dtype.name())));
            let groups = count.div_ceil(u64::from(COPIES));
            let push = [count as u32, groups as u32];
            let args = vec![from, BufArg::output(index)];
            self.step("store.comp", defines, args, &push, groups)?;
        }
        Ok(self.plan)
    }
}

/// The type of four numbers, of those that are computed with.
const FOURS: [(DType, &str); 4] = [
    (DType::F32, "vec4"),
    (DType::F64, "dvec4"),
    (DType::C64, "mat4x2"),
    (DType::C128, "dmat4x2"),
];

/// Its type in a register, or nothing for one that shaders do not compute with.
fn name(dtype: DType) -> &'static str {
    glsl::types(dtype).map_or("", |(_, register)| register)
}

fn fours(dtype: DType) -> &'static str {
    let of = FOURS.iter().find(|(known, _)| *known == dtype);
    of.map_or("", |(_, fours)| fours)
}

/// The type of numbers whose parts are f64.
fn doubles(is_complex: bool) -> DType {
    match is_complex {
        true => DType::C128,
        false => DType::F64,
    }
}

fn has_doubles(device: &DeviceInfo<'_>) -> bool {
    device.features.0 & Features::FP64.0 == Features::FP64.0
}

/// Asks the host for the operands that are not contiguous tensors of `dtype` from the first element of their buffers on.
fn from_the_start(request: &Request<'_>, dtype: DType) -> Result<(), Refusal> {
    let inputs = request.inputs.iter().zip(0..);
    let wanted = inputs
        .filter(|(x, _)| x.dtype != dtype || !x.is_contiguous() || x.offset != 0)
        .map(|(_, index)| InputAs::new(index, dtype));
    match wanted.collect::<Vec<_>>() {
        wanted if wanted.is_empty() => Ok(()),
        wanted => Err(Refusal::InputsAs(wanted)),
    }
}

/// The names that a shader has for a type and for four elements of it.
pub(crate) fn named(part: &str, dtype: DType) -> [Define; 2] {
    [
        define(part, name(dtype)),
        define(format!("{part}4"), fours(dtype)),
    ]
}

/// Invocations of a workgroup that moves elements.
pub(crate) const COPIES: u32 = 64;

/// The same buffer, to be read and written.
pub(crate) fn change(arg: BufArg) -> BufArg {
    BufArg {
        access: Access::READ_WRITE,
        ..arg
    }
}
