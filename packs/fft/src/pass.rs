//! Passes of lines as dispatches.

use crate::{
    code,
    line::{Line, computed},
    roots::{Powers, Roots},
    split,
};
use nx_vulkan_abi::{BufArg, DType, DeviceInfo, Features, Plan, Refusal, Request, SpecConst, glsl};
use nx_vulkan_pack_kit::{
    grid, operand,
    steps::{Step, bytes_of, number, read, scratch},
};

/// Elements that any device transforms in f64 within the time of a dispatch.
const FEW: u64 = 1 << 13;
/// The longest pass over columns side by side: several have to fit a workgroup.
const LONGEST_BESIDE: u32 = 1024;
/// Elements of a workgroup, where there are so many.
const WORKGROUP: u64 = 4096;

/// Elements in memory, and where they begin.
#[derive(Debug, Clone, Copy)]
struct Place {
    arg: BufArg,
    /// Their type; pairs of parts, as they are computed, where there is none.
    dtype: Option<DType>,
    offset: u64,
}

impl Place {
    fn scratch(arg: BufArg) -> Place {
        Place {
            arg,
            dtype: None,
            offset: 0,
        }
    }
}

/// What a series of passes transforms, and what becomes of it beside the transform.
#[derive(Debug, Clone)]
struct Series {
    line: Line,
    /// Length of the transform: that of the line, or of the convolution.
    length: u64,
    inverse: bool,
    /// Nothing for the filter of a convolution.
    from: Option<Place>,
    to: Place,
    /// With which the first pass multiplies.
    filter: Option<BufArg>,
    chirp: Option<Powers>,
    chirp_first: bool,
    /// Whether it ends the line.
    last: bool,
}

/// The plan of `lines`, one after the other.
pub(crate) fn plan(lines: &[Line], request: &Request<'_>) -> Result<Plan, Refusal> {
    let (input, output) = (&request.inputs[0], &request.outputs[0]);
    let device = request.device;
    let mut part = computed(input.dtype, output.dtype);
    let most = lines
        .iter()
        .map(|line| line.outer * line.inner * line.length)
        .max();
    if part == DType::F32
        && most <= Some(FEW)
        && device.features.has(Features::for_dtype(DType::F64))
    {
        part = DType::F64;
    }
    for dtype in [part, input.dtype.part(), output.dtype.part()] {
        operand::supports("a transform", dtype, device)?;
    }
    let mut passes = Passes {
        plan: Plan::default(),
        roots: Roots::default(),
        device,
        part,
    };
    let mut from = Place {
        arg: BufArg::input(0),
        dtype: Some(input.dtype),
        offset: input.offset,
    };
    for (index, line) in lines.iter().enumerate() {
        let to = if index + 1 == lines.len() {
            Place {
                arg: BufArg::output(0),
                dtype: Some(output.dtype),
                offset: 0,
            }
        } else {
            passes.scratch(line.outer * line.inner * line.kept)?
        };
        passes.line(line, from, to)?;
        from = Place {
            arg: read(to.arg),
            ..to
        };
    }
    passes.plan.params = passes.roots.params(part)?;
    Ok(passes.plan)
}

struct Passes<'a> {
    plan: Plan,
    roots: Roots,
    device: &'a DeviceInfo<'a>,
    /// The type of the parts of numbers.
    part: DType,
}

impl Passes<'_> {
    fn line(&mut self, line: &Line, from: Place, to: Place) -> Result<(), Refusal> {
        let whole = Series {
            line: *line,
            length: line.length,
            inverse: line.inverse,
            from: Some(from),
            to,
            filter: None,
            chirp: None,
            chirp_first: false,
            last: true,
        };
        if split::passes(line.length, 7).is_some() {
            return self.series(&whole);
        }
        // Bluestein: jk = (j² + k² - (k - j)²) / 2 makes a convolution of the transform.
        if !self.device.features.has(Features::INT64) {
            return Err(Refusal::decline(format!(
                "a length of {} needs int64",
                line.length
            )));
        }
        let length = split::padded(2 * line.length - 1);
        let chirp = Some(self.roots.powers(2 * line.length));
        let filter = self.scratch(length)?;
        let spectrum = self.scratch(line.outer * line.inner * length)?;
        self.series(&Series {
            line: Line {
                outer: 1,
                inner: 1,
                ..*line
            },
            length,
            inverse: false,
            from: None,
            to: filter,
            chirp,
            last: false,
            ..whole
        })?;
        self.series(&Series {
            length,
            inverse: false,
            to: spectrum,
            chirp,
            chirp_first: true,
            last: false,
            ..whole
        })?;
        self.series(&Series {
            length,
            inverse: true,
            from: Some(Place::scratch(read(spectrum.arg))),
            filter: Some(read(filter.arg)),
            chirp,
            ..whole
        })
    }

    fn series(&mut self, series: &Series) -> Result<(), Refusal> {
        let beside = series.line.inner > 1;
        let pair = 2 * self.part.size();
        let room = u64::from(self.device.shared_bytes) / pair * 8 / 9;
        let longest = room.clamp(2, WORKGROUP).ilog2();
        let longest = 1u32 << longest;
        let alone = split::passes(series.length, longest).filter(|passes| {
            passes.len() == 1 && (!beside || passes[0] <= LONGEST_BESIDE.min(longest / 4))
        });
        let passes =
            alone.or_else(|| split::passes(series.length, (longest / 4).clamp(8, LONGEST_BESIDE)));
        let passes = passes.ok_or_else(|| Refusal::decline("its length has no small factors"))?;
        let rows = series.line.outer * series.line.inner;
        let between = |passes: &mut Self| passes.scratch(rows * series.length);
        let mut places = Vec::new();
        for _ in 1..passes.len().min(3) {
            places.push(between(self)?);
        }
        let mut done = 1;
        for (index, &extent) in passes.iter().enumerate() {
            let is_last = index + 1 == passes.len();
            let from = match index {
                0 => series.from,
                _ => Some(Place::scratch(read(places[(index - 1) % places.len()].arg))),
            };
            let to = if is_last {
                series.to
            } else {
                places[index % places.len()]
            };
            let pass = Pass {
                series,
                extent,
                done,
                is_first: index == 0,
                is_last,
            };
            self.pass(&pass, from, to, room)?;
            done *= u64::from(extent);
        }
        Ok(())
    }

    fn pass(
        &mut self,
        pass: &Pass<'_>,
        from: Option<Place>,
        to: Place,
        room: u64,
    ) -> Result<(), Refusal> {
        let Pass {
            series,
            extent,
            done,
            is_first,
            is_last,
        } = *pass;
        let Line { outer, inner, .. } = series.line;
        let span = series.length / u64::from(extent) * inner;
        let count = outer * span;
        let (loads_rows, stores_rows) = (span == 1, done * inner == 1 && !is_last || span == 1);
        let stages = split::stages(extent);
        let mut columns = columns(extent, count, room, loads_rows);
        let staged = |columns| match (stages.len(), loads_rows && stores_rows) {
            (1, _) => 0,
            (_, true) => columns * (extent + extent / 8),
            (_, false) => extent * (columns + u32::from(stores_rows)),
        };
        while columns > 1
            && u64::from(staged(columns)) * 2 * self.part.size()
                > u64::from(self.device.shared_bytes)
        {
            columns /= 2;
        }
        let largest = stages.iter().copied().max().unwrap_or(1);
        // Whole subgroups, and no more: a workgroup waits for the idle ones too.
        let threads = (extent * columns).div_ceil(largest);
        let threads = threads.next_multiple_of(self.device.subgroup_size.max(32));
        let threads = threads.min(grid::threads(self.device, u32::MAX));
        let convolves = series.chirp.is_some();
        let begins = is_first && series.filter.is_none();
        let ends = is_last && series.last;
        let mut defines = code::types(
            self.part,
            from.map(|from| from.dtype),
            to.dtype.filter(|_| ends),
        );
        for (name, value) in [
            ("THREADS", threads),
            ("COLUMNS", columns),
            ("EXTENT", extent),
            ("STAGED", staged(columns)),
            ("LOADS_ROWS", u32::from(loads_rows)),
            ("STORES_ROWS", u32::from(stores_rows)),
            ("INVERSE", u32::from(series.inverse)),
            (
                "SWAPPED",
                u32::from(convolves && begins && from.is_some() && series.line.inverse),
            ),
            (
                "SWAPPED_BACK",
                u32::from(convolves && ends && series.line.inverse),
            ),
            ("CHIRP_FIRST", u32::from(series.chirp_first && is_first)),
            ("CHIRP_LAST", u32::from(convolves && ends)),
            ("FILTERED", u32::from(is_first && series.filter.is_some())),
            (
                "MIRRORED",
                u32::from(begins && from.is_some() && series.line.mirrored),
            ),
            ("LAST", u32::from(ends)),
        ] {
            defines.push(number(name, value));
        }
        let chirped = convolves && (is_first && series.filter.is_none() || ends);
        defines.push(number("CHIRPED", u32::from(chirped)));
        if chirped && self.part != DType::F64 {
            defines.extend(glsl::needs(DType::U64));
        }
        defines.push(glsl::define("STAGES", code::stages(&stages)));
        let twiddles = match done {
            1 => Powers::default(),
            _ => self.roots.powers(done * u64::from(extent)),
        };
        let roots = self.roots.all(u64::from(extent));
        let mut constants = vec![span as u32, inner as u32, done as u32, roots];
        constants.extend([twiddles.first, twiddles.bits, twiddles.tables]);
        if let (true, Some(chirp)) = (chirped, series.chirp) {
            constants.extend([chirp.first, chirp.bits, chirp.tables]);
        }
        let mut args = vec![BufArg::params(), to.arg];
        args.extend(from.map(|from| from.arg));
        args.extend(series.filter.filter(|_| is_first));
        let step = Step {
            subgroup_size: 0,
            file: "pass.comp",
            defines,
            constants: (0..)
                .zip(constants)
                .map(|(id, value)| SpecConst { id, value })
                .collect(),
            args,
            push: bytes_of(&self.words(pass, from, count)),
            groups: grid::spread(count.div_ceil(u64::from(columns)), self.device)?,
        };
        step.add_to(&mut self.plan);
        Ok(())
    }

    fn words(&self, pass: &Pass<'_>, from: Option<Place>, count: u64) -> Vec<u32> {
        let Pass {
            series,
            is_first,
            is_last,
            ..
        } = *pass;
        let line = &series.line;
        let ends = is_last && series.last;
        let inverse = if line.inverse {
            line.length as f64
        } else {
            1.0
        };
        let convolution = if series.chirp.is_some() {
            series.length as f64
        } else {
            1.0
        };
        let scale = 1.0 / (inverse * convolution);
        let begins = is_first && series.filter.is_none();
        let extent = if begins { line.extent } else { series.length };
        let limit = match (begins, line.mirrored) {
            (true, true) => line.extent.min(line.length / 2 + 1),
            (true, false) => line.extent.min(line.length),
            (false, _) => extent,
        };
        let kept = if ends { line.kept } else { series.length };
        let mut words = Vec::new();
        for value in [scale, line.eps] {
            match self.part == DType::F64 {
                true => words.extend([value.to_bits() as u32, (value.to_bits() >> 32) as u32]),
                false => words.push((value as f32).to_bits()),
            }
        }
        let offset = from.map_or(0, |from| from.offset);
        let rest = [count, extent, limit, kept, offset, line.length];
        words.extend(rest.map(|word| word as u32));
        words
    }

    /// A new buffer of so many pairs.
    fn scratch(&mut self, pairs: u64) -> Result<Place, Refusal> {
        let bytes = pairs.checked_mul(2 * self.part.size());
        let bytes = bytes.filter(|bytes| *bytes <= self.device.max_buffer_range && pairs < 1 << 31);
        let bytes =
            bytes.ok_or_else(|| Refusal::decline("what it keeps on the way is too large"))?;
        Ok(Place::scratch(scratch(&mut self.plan, bytes)))
    }
}

/// One pass of a series.
#[derive(Debug, Clone, Copy)]
struct Pass<'a> {
    series: &'a Series,
    extent: u32,
    /// Elements that earlier passes have transformed.
    done: u64,
    is_first: bool,
    is_last: bool,
}

/// Columns of a workgroup: a power of two where they lie side by side.
fn columns(extent: u32, count: u64, room: u64, rows: bool) -> u32 {
    let most = match rows {
        true => WORKGROUP / 4,
        false => WORKGROUP,
    };
    let fit = most.min(room) / u64::from(extent);
    1 << fit.min(64).min(count).max(1).ilog2()
}
