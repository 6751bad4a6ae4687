//! The iteration space of a request: its collapsed axes, and its division into steps whose buffers the device can bind.

use crate::dispatch::INDEX_LIMIT;
use nx_vulkan_abi::{
    BufArg, Define, DeviceInfo, Features, Refusal, Request, TensorDesc, glsl::define, layout,
};
use nx_vulkan_pack_kit::span::{ALIGN, Span};

/// Shorter axes are not worth a tile of a transposition.
const MIN_TILED: u64 = 8;
/// A plan has no more steps than this.
const MAX_PARTS: u64 = 64;

/// A tensor as it is walked through.
#[derive(Debug, Clone)]
pub(crate) struct Walk {
    /// First element, in elements from the start of the buffer.
    pub(crate) offset: i64,
    /// Step of each axis of the space, in elements.
    pub(crate) strides: Vec<i64>,
    /// Bytes of one element.
    pub(crate) size: u64,
}

/// An iteration space and how operands and result walk through it.
#[derive(Debug, Clone)]
pub(crate) struct Space {
    /// Extents, outermost first, as few as possible.
    pub(crate) shape: Vec<u64>,
    /// Operands.
    pub(crate) inputs: Vec<Walk>,
    /// The result, contiguous.
    pub(crate) output: Walk,
    /// Further results.
    pub(crate) others: Vec<Walk>,
}

/// A part of a space: some indices of its outermost axis.
#[derive(Debug, Clone)]
pub(crate) struct Part {
    /// Its first element, counted in the whole result.
    pub(crate) start: u64,
    /// Elements.
    pub(crate) count: u64,
    /// Extents, outermost first.
    pub(crate) shape: Vec<u64>,
    /// Buffer ranges of the operands, then of the results.
    pub(crate) args: Vec<BufArg>,
    /// First element of each, from the start of its range.
    pub(crate) at: Vec<u64>,
    /// The largest element index of all ranges, plus one.
    reach: u64,
    /// Whether indices take 64 bits.
    pub(crate) wide: bool,
}

impl Space {
    /// The space of a request, operands broadcast to the shape of its results, which have one.
    pub(crate) fn of(request: &Request<'_>) -> Result<Space, Refusal> {
        let output = &request.outputs.as_slice()[0];
        let shape = output.shape.as_slice();
        let mut strides = vec![layout::contiguous_strides(shape)];
        for input in request.inputs.as_slice() {
            let own = (input.shape.as_slice(), input.strides.as_slice());
            strides.push(
                layout::broadcast_strides(own.0, own.1, shape).ok_or_else(|| {
                    Refusal::BadRequest(format!(
                        "expected a shape that broadcasts to {shape:?}, got: {:?}",
                        own.0
                    ))
                })?,
            );
        }
        let collapsed = layout::collapse(shape, &strides);
        let mut strides = collapsed.strides.into_iter();
        let mut walk = |tensor: &TensorDesc<'_>| Walk {
            offset: tensor.offset as i64,
            strides: strides.next().unwrap_or_default(),
            size: tensor.dtype.size(),
        };
        let output = walk(output);
        let others = request.outputs.iter().skip(1).map(|other| Walk {
            offset: other.offset as i64,
            strides: output.strides.clone(),
            size: other.dtype.size(),
        });
        let others = others.collect();
        Ok(Space {
            shape: collapsed.shape,
            inputs: request.inputs.iter().map(walk).collect(),
            output,
            others,
        })
    }

    /// Elements of the result.
    pub(crate) fn count(&self) -> u64 {
        self.shape.iter().product()
    }

    /// Number of axes.
    pub(crate) fn rank(&self) -> usize {
        self.shape.len()
    }

    /// Extent of the innermost axis.
    pub(crate) fn columns(&self) -> u64 {
        self.shape[self.rank() - 1]
    }

    /// Whether every operand is contiguous or one repeated element.
    pub(crate) fn is_flat(&self) -> bool {
        self.rank() == 1
            && self
                .inputs
                .iter()
                .all(|input| matches!(input.strides[0], 0 | 1))
    }

    /// Operands, then the results.
    pub(crate) fn walks(&self) -> impl Iterator<Item = &Walk> {
        self.inputs.iter().chain(self.results())
    }

    fn results(&self) -> impl Iterator<Item = &Walk> {
        [&self.output].into_iter().chain(&self.others)
    }

    /// Elements that a thread handles at once: 16 bytes of the widest type, at most 4.
    pub(crate) fn width(&self) -> u64 {
        let widest = self.walks().map(|walk| walk.size).max().unwrap_or(4);
        (16 / widest).clamp(1, 4)
    }

    /// Parts that one dispatch each can bind and index, in order. Declines where not even the smallest fits.
    pub(crate) fn parts(&self, device: &DeviceInfo<'_>) -> Result<Vec<Part>, Refusal> {
        match self.cut(INDEX_LIMIT, device.max_buffer_range) {
            Err(_) if device.features.has(Features::INT64) => {
                self.cut(u64::MAX, device.max_buffer_range)
            }
            narrow => narrow,
        }
    }

    fn cut(&self, limit: u64, max_range: u64) -> Result<Vec<Part>, Refusal> {
        let whole = self.part(0, self.shape[0]);
        if whole.fits(limit, max_range) {
            return Ok(vec![whole]);
        }
        // Parts of one axis keep their alignment, so that vectors still fit.
        let unit = if self.rank() == 1 { ALIGN } else { 1 };
        let mut rows = self.shape[0];
        while !self.part(0, rows).fits(limit, max_range - ALIGN) {
            if rows <= unit {
                return Err(Refusal::decline(format!(
                    "one index of the outermost of the axes {:?} spans more than the {max_range} bytes or \
                     {limit} elements that one dispatch reaches",
                    self.shape
                )));
            }
            rows = (rows / 2).next_multiple_of(unit);
        }
        if self.shape[0].div_ceil(rows) > MAX_PARTS {
            let (shape, count) = (&self.shape, self.shape[0].div_ceil(rows));
            return Err(Refusal::decline(format!(
                "{shape:?} takes {count} steps, a plan has at most {MAX_PARTS}"
            )));
        }
        let starts = (0..self.shape[0]).step_by(rows as usize);
        Ok(starts
            .map(|start| self.part(start, rows.min(self.shape[0] - start)))
            .collect())
    }

    fn part(&self, start: u64, rows: u64) -> Part {
        let mut shape = self.shape.clone();
        shape[0] = rows;
        let inner: u64 = shape[1..].iter().product();
        let (mut args, mut at, mut reach) = (Vec::new(), Vec::new(), 0);
        let inputs = self.inputs.iter().zip((0..).map(BufArg::input));
        let results = self.results().zip((0..).map(BufArg::output));
        for (walk, arg) in inputs.chain(results) {
            let first = walk.offset + start as i64 * walk.strides[0];
            let axes = shape.iter().copied().zip(walk.strides.iter().copied());
            let range = Span::of(first, axes).bytes(walk.size).unwrap_or_default();
            let base = range.start / walk.size;
            args.push(arg.range(range.start, range.end - range.start));
            at.push(first as u64 - base);
            reach = reach.max(range.end / walk.size - base);
        }
        let wide = rows * inner >= INDEX_LIMIT || reach >= INDEX_LIMIT;
        Part {
            start: start * inner,
            count: rows * inner,
            shape,
            args,
            at,
            reach,
            wide,
        }
    }
}

impl Part {
    fn fits(&self, limit: u64, max_range: u64) -> bool {
        self.count < limit && self.reach < limit && self.args.iter().all(|arg| arg.len <= max_range)
    }

    /// The defines that select the index type.
    pub(crate) fn index_defines(&self) -> Vec<Define> {
        let wide = [define("NXV_NEEDS_INT64", "1"), define("INDEX", "uint64_t")];
        if self.wide { wide.into() } else { Vec::new() }
    }
}

impl Walk {
    /// The axis whose neighbours are neighbours in memory, where that is not the innermost one and both are long
    /// enough to be worth a transposition.
    pub(crate) fn swapped_axis(&self, shape: &[u64]) -> Option<usize> {
        let (last, outer) = self.strides.split_last()?;
        let axis = outer.iter().position(|stride| stride.abs() == 1)?;
        let long = [shape[axis], shape[outer.len()]]
            .iter()
            .all(|extent| *extent >= MIN_TILED);
        (last.abs() > 1 && long).then_some(axis)
    }

    /// The same bytes as elements of twice the size, where offset, strides and `columns` allow it.
    pub(crate) fn widened(&self) -> Option<Walk> {
        let (last, outer) = self.strides.split_last()?;
        let even = self.offset % 2 == 0 && outer.iter().all(|stride| stride % 2 == 0);
        (*last == 1 && even).then(|| Walk {
            offset: self.offset / 2,
            strides: outer.iter().map(|stride| stride / 2).chain([1]).collect(),
            size: self.size * 2,
        })
    }
}
