//! Series of passes over lines.

use crate::{
    line::{Line, computed},
    roots::{Powers, Roots},
    split,
};
use nx_vulkan_abi::{BufArg, DType, DeviceInfo, Features, Plan, Refusal, Request};
use nx_vulkan_pack_kit::{
    operand,
    steps::{read, scratch},
};

/// Elements that any device transforms in f64 within the time of a dispatch.
const FEW: u64 = 1 << 13;

/// Elements in memory, and where they begin.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    pub(crate) arg: BufArg,
    /// Their type; pairs of parts, as they are computed, where there is none.
    pub(crate) dtype: Option<DType>,
    pub(crate) offset: u64,
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

/// What is made of a line.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Of {
    /// Its transform.
    Transform,
    /// The spectrum of a chirp, in f32 or f64.
    Filter,
    /// A convolution with a chirp, whose spectrum begins at an offset.
    Convolution(BufArg, u32),
}

/// What a series of passes transforms, and what becomes of it beside the transform.
#[derive(Debug, Clone)]
pub(crate) struct Series {
    pub(crate) line: Line,
    /// Length of the transform: that of the line, or of the convolution.
    pub(crate) length: u64,
    pub(crate) of: Of,
    pub(crate) chirp: Option<Powers>,
    /// Nothing for the filter of a convolution.
    pub(crate) from: Option<Place>,
    to: Place,
}

/// One pass of a series.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pass<'a> {
    pub(crate) series: &'a Series,
    pub(crate) extent: u32,
    /// Elements that earlier passes have transformed, and those that this one takes for transformed where it stores.
    pub(crate) loaded: u64,
    pub(crate) stored: u64,
    /// Whether it reads what the series transforms, and whether it makes its result.
    pub(crate) begins: bool,
    pub(crate) ends: bool,
    /// Whether it transforms, multiplies with a filter and transforms back.
    pub(crate) convolves: bool,
}

/// Bytes of a table of roots; and where they are too many in all, as with lengths of many millions.
const TABLES: [u64; 2] = [8192, 1024];

/// The plan of `lines`, one after the other.
pub(crate) fn plan(lines: &[Line], request: &Request<'_>) -> Result<Plan, Refusal> {
    let [large, small] = TABLES;
    plan_with(lines, request, large).or_else(|_| plan_with(lines, request, small))
}

fn plan_with(lines: &[Line], request: &Request<'_>, table: u64) -> Result<Plan, Refusal> {
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
        roots: Roots::of(part, lines.len(), table / lines.len() as u64),
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
    passes.plan.params = passes.roots.params()?;
    Ok(passes.plan)
}

pub(crate) struct Passes<'a> {
    pub(crate) plan: Plan,
    pub(crate) roots: Roots,
    pub(crate) device: &'a DeviceInfo<'a>,
    /// The type of the parts of numbers.
    pub(crate) part: DType,
}

impl Passes<'_> {
    fn line(&mut self, line: &Line, from: Place, to: Place) -> Result<(), Refusal> {
        let transform = Series {
            line: *line,
            length: line.length,
            of: Of::Transform,
            chirp: None,
            from: Some(from),
            to,
        };
        if split::is_smooth(line.length) {
            return self.series(&transform);
        }
        // Bluestein: jk = (j² + k² - (k - j)²) / 2 makes a convolution of the transform.
        let length = split::padded(2 * line.length - 1);
        let convolution = Series {
            length,
            chirp: Some(self.roots.powers(2 * line.length)),
            ..transform
        };
        let filter = match self.roots.filter(line.length, length) {
            Some(first) => Of::Convolution(BufArg::params(), first),
            None => {
                let filter = self.scratch(length)?;
                self.series(&Series {
                    line: Line {
                        outer: 1,
                        inner: 1,
                        ..*line
                    },
                    of: Of::Filter,
                    from: None,
                    to: filter,
                    ..convolution
                })?;
                Of::Convolution(read(filter.arg), 0)
            }
        };
        self.series(&Series {
            of: filter,
            ..convolution
        })
    }

    fn series(&mut self, series: &Series) -> Result<(), Refusal> {
        let extents = self.extents(series)?;
        let passes = passes(series, &extents);
        let pairs = series.line.outer * series.line.inner * series.length;
        let mut places = Vec::new();
        for _ in 1..passes.len().min(3) {
            places.push(self.scratch(pairs)?);
        }
        for (index, pass) in passes.iter().enumerate() {
            let from = match index {
                0 => series.from,
                _ => Some(Place::scratch(read(places[(index - 1) % places.len()].arg))),
            };
            let to = match pass.ends {
                true => series.to,
                false => places[index % places.len()],
            };
            self.pass(pass, from, to)?;
        }
        Ok(())
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

/// The passes over these extents. The last one of a transform and the first one of the transform back, with the extents in
/// the other order, have the same elements together, and so are one.
fn passes<'a>(series: &'a Series, extents: &[u32]) -> Vec<Pass<'a>> {
    let (&last, others) = extents.split_last().unwrap_or((&1, &[]));
    let is_back = matches!(series.of, Of::Convolution(..));
    let mut passes = Vec::new();
    let mut pass = |extent, loaded, stored, convolves| {
        passes.push(Pass {
            series,
            extent,
            loaded,
            stored,
            convolves,
            begins: false,
            ends: false,
        });
    };
    let mut done = 1;
    for &extent in others {
        pass(extent, done, done, false);
        done *= u64::from(extent);
    }
    pass(last, done, if is_back { 1 } else { done }, is_back);
    done = u64::from(last);
    for &extent in others.iter().rev().filter(|_| is_back) {
        pass(extent, done, done, false);
        done *= u64::from(extent);
    }
    let count = passes.len();
    passes[0].begins = true;
    passes[count - 1].ends = true;
    passes
}
