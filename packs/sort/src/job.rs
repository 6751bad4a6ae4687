//! A sort without the way it is done: lines, how much of them is wanted, and what shaders know of the elements.

use crate::Gives;
use nx_vulkan_abi::{
    BufArg, DType, Define, DeviceInfo, Features, Plan, RVec, Refusal, Request,
    dtype::Class,
    glsl::{self, define},
};
use nx_vulkan_pack_kit::{
    grid,
    lines::Lines,
    steps::{Step, bytes_of, number},
};

/// A sort.
#[derive(Debug, Clone)]
pub(crate) struct Job {
    pub(crate) lines: Lines,
    /// Elements of each line that are wanted.
    pub(crate) keep: u64,
    pub(crate) dtype: DType,
    /// What moves elements in GLSL, and the type that needs the same features.
    pub(crate) raw: (&'static str, DType),
    /// The result that takes the elements.
    pub(crate) values: Option<u32>,
    /// The result that takes where they come from, and its type.
    pub(crate) indices: Option<(u32, DType)>,
    descends: bool,
}

impl Job {
    pub(crate) fn new(gives: Gives, request: &Request<'_>) -> Result<Job, Refusal> {
        let (x, out) = (&request.inputs[0], &request.outputs[0]);
        let axis = match gives {
            Gives::Both => x.rank() as i64 - 1,
            Gives::Values | Gives::Indices => request.ints("axis").first().copied().unwrap_or(0),
        };
        let lines = Lines::new(request, axis)?;
        let keep = out.shape[axis as usize];
        let is_whole = gives == Gives::Both || keep == lines.extent;
        let values = (gives != Gives::Indices).then_some(0);
        let index = match gives {
            Gives::Values => None,
            Gives::Indices => Some(0),
            Gives::Both => Some(1),
        };
        let same = request.outputs.iter().all(|other| other.shape == out.shape);
        if keep > lines.extent || !is_whole || !same || values.is_some() && out.dtype != x.dtype {
            return Err(Refusal::BadRequest(format!(
                "{} of {}{:?} does not give {}{:?}",
                request.op, x.dtype, x.shape, out.dtype, out.shape
            )));
        }
        let raw = match x.dtype.size() {
            1 => ("uint8_t", DType::U8),
            2 => ("uint16_t", DType::U16),
            4 => ("uint", DType::U32),
            _ => ("uvec2", DType::U32),
        };
        Ok(Job {
            lines,
            keep,
            dtype: x.dtype,
            raw,
            values,
            indices: index.map(|index| (index, request.outputs[index as usize].dtype)),
            descends: gives == Gives::Both || request.text("direction") == Some("desc"),
        })
    }

    /// Whether neighbours in a workgroup would read neighbours in memory.
    pub(crate) fn is_read_in_order(&self) -> bool {
        self.lines.strides[0].unsigned_abs() <= 1 || self.lines.beside().1
    }

    /// The bits of the largest float without its sign, infinity where there is one: what lies beyond is NaN. Nothing for f64,
    /// which shaders take in halves.
    fn largest(&self) -> Option<u64> {
        let is_word = self.dtype.is_float() && self.dtype.size() <= 4;
        let row = self.dtype.row().filter(|_| is_word)?;
        let infinity = ((1 << (row.bits - row.digits)) - 1) << (row.digits - 1);
        // All but one pattern of the greatest exponent are numbers.
        let has_infinity = self.dtype != DType::F8_E4M3FN;
        Some(if has_infinity { infinity } else { infinity | 6 })
    }

    /// What every shader that looks at elements is told, and what else an index of that type takes.
    pub(crate) fn defines(&self, index: Option<DType>) -> Vec<Define> {
        let kind = match self.dtype.class() {
            Some(Class::Float) => Some("FLOATS"),
            Some(Class::Signed) => Some("SIGNED"),
            Some(Class::Unsigned | Class::Complex) | None => None,
        };
        let mut defines = vec![
            define("RAW", self.raw.0),
            number("RAW_BITS", self.dtype.size() * 8),
        ];
        defines.extend(kind.map(|kind| number(kind, 1u64)));
        defines.extend(
            self.largest()
                .map(|bits| glsl::define("LARGEST_BITS", format!("0x{bits:x}u"))),
        );
        defines.extend(self.descends.then(|| number("DESCENDS", 1u64)));
        let mut own = glsl::needs(self.raw.1);
        if let Some(dtype) = index {
            own.extend(glsl::operand("I", dtype));
            own.push(define("I_CAST(x)", format!("nxv_to_{}(x)", dtype.name())));
        }
        // Elements and indices of one size ask for the same NXV_NEEDS_* switch.
        for new in own {
            if defines.iter().all(|define| define.name != new.name) {
                defines.push(new);
            }
        }
        defines
    }
}

/// Invocations of a subgroup, at most 32 and all of them there in a workgroup; 0 where the device does not promise that.
pub(crate) fn subgroup(device: &DeviceInfo<'_>, needed: Features, workgroup: u64) -> u32 {
    let needed = needed.with(Features::SUBGROUP_SIZE_CONTROL);
    let lanes = device.subgroup_size.min(32);
    let sizes = device.min_subgroup_size..=device.max_subgroup_size;
    let fits = lanes.is_power_of_two() && sizes.contains(&lanes) && u64::from(lanes) <= workgroup;
    if device.features.has(needed) && fits {
        lanes
    } else {
        0
    }
}

/// A plan in the making, whose params are the axes of the lines.
#[derive(Debug)]
pub(crate) struct Steps<'a> {
    pub(crate) plan: Plan,
    pub(crate) device: &'a DeviceInfo<'a>,
    pub(crate) axes_count: u32,
}

impl<'a> Steps<'a> {
    pub(crate) fn new(job: &Job, device: &'a DeviceInfo<'a>) -> Steps<'a> {
        let (params, axes_count): (RVec<u8>, u32) = job.lines.params();
        let plan = Plan {
            params,
            ..Plan::default()
        };
        Steps {
            plan,
            device,
            axes_count,
        }
    }

    /// `lanes` are the invocations of a subgroup where the shader works with subgroups, else 0.
    pub(crate) fn dispatch(
        &mut self,
        file: &'static str,
        mut defines: Vec<Define>,
        words: &[u32],
        args: Vec<BufArg>,
        groups: u64,
        lanes: u32,
    ) -> Result<(), Refusal> {
        defines.extend((lanes > 0).then(|| number("SUBGROUPS", lanes)));
        let step = Step {
            file,
            defines,
            args,
            push: bytes_of(words),
            subgroup_size: lanes,
            groups: grid::spread(groups, self.device)?,
            ..Step::default()
        };
        step.add_to(&mut self.plan);
        Ok(())
    }

    /// A new scratch buffer, where one argument reaches it.
    pub(crate) fn scratch(&mut self, bytes: u64) -> Result<BufArg, Refusal> {
        if bytes > self.device.max_buffer_range {
            return Err(Refusal::decline(format!(
                "the sort needs {bytes} bytes at a stretch, and the device binds at most {}",
                self.device.max_buffer_range
            )));
        }
        Ok(nx_vulkan_pack_kit::steps::scratch(&mut self.plan, bytes))
    }
}
