//! A convolution as shaders want to know it: groups of filters, positions and kernel elements, and the steps between them.

use crate::finish::Finish;
use nx_vulkan_abi::{DType, InputAs, Plan, Refusal, Request, TensorDesc};
use nx_vulkan_pack_kit::{
    axes::divisor,
    operand::{supports, within_reach},
};

/// Indices and places that shaders compute in 32 bits stay below this.
const MOST: u64 = 1 << 30;

/// One spatial axis.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spatial {
    pub(crate) positions: u64,
    pub(crate) taps: u64,
    pub(crate) stride: i64,
    pub(crate) low: i64,
    pub(crate) dilation: i64,
    pub(crate) extent: u64,
    pub(crate) holes: i64,
    /// Elements from one index to the next, of x, the kernel and the result.
    pub(crate) steps: [i64; 3],
}

/// Two spatial axes, of which shaders are told the steps along the first one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plane {
    pub(crate) positions: [u64; 2],
    pub(crate) taps: [u64; 2],
    pub(crate) stride: i64,
    pub(crate) dilation: i64,
}

/// A convolution.
#[derive(Debug)]
pub(crate) struct Problem {
    /// Type of x and the kernel.
    pub(crate) dtype: DType,
    pub(crate) groups: u64,
    /// Filters of a group.
    pub(crate) filters: u64,
    /// Positions in a group's part of the batch.
    pub(crate) columns: u64,
    /// Channels of a filter.
    pub(crate) channels: u64,
    /// Elements of a filter.
    pub(crate) depth: u64,
    pub(crate) results: u64,
    /// First element, then steps of group, batch and channel.
    x: [i64; 4],
    /// First element, then steps of group, filter and channel.
    kernel: [i64; 4],
    /// Steps of group, batch and filter.
    result: [i64; 3],
    pub(crate) spatial: Vec<Spatial>,
    /// What becomes of the sums before they are stored.
    pub(crate) finish: Option<Finish>,
}

/// What a dispatch adds to a problem.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Cut {
    pub(crate) jobs: u64,
    pub(crate) blocks: [u64; 2],
    pub(crate) chunk: u64,
}

impl Problem {
    /// The convolution that a request asks for; the plan itself where it has no results.
    ///
    /// # Errors
    /// A bad request where attributes do not fit, a wish for operands of the type that they are multiplied in, a decline of
    /// what the device or 32-bit indices cannot do.
    pub(crate) fn new(request: &Request<'_>) -> Result<Result<Problem, Plan>, Refusal> {
        let (x, kernel, out) = (&request.inputs[0], &request.inputs[1], &request.outputs[0]);
        let finish = Finish::of(request)?;
        let dtype = match &finish {
            None => out.dtype,
            Some(finish) => multiplied([x.dtype, kernel.dtype], finish.sum()),
        };
        supports("conv", dtype, request.device)?;
        let factors = [x, kernel].into_iter().zip(0..);
        let others = factors.filter(|(factor, _)| factor.dtype != dtype);
        let casts: Vec<InputAs> = others
            .map(|(_, index)| InputAs::new(index, dtype))
            .collect();
        let rank = out.rank();
        if rank < 2 || x.rank() != rank || kernel.rank() != rank {
            return Err(Refusal::BadRequest("conv: ranks differ".to_owned()));
        }
        let [xs, ks, os] = [
            order(request, "input_permutation", x)?,
            order(request, "kernel_permutation", kernel)?,
            order(request, "output_permutation", out)?,
        ];
        let list = |name: &str, each: usize| match request.ints(name) {
            list if list.len() == each * (rank - 2) => Ok(list),
            list => Err(Refusal::BadRequest(format!(
                "conv: attribute {name} {list:?}"
            ))),
        };
        let (strides, padding) = (list("strides", 1)?, list("padding", 2)?);
        let (holes, dilations) = (list("input_dilation", 1)?, list("kernel_dilation", 1)?);
        let group = |name: &str| match request.ints(name) {
            [size] if *size > 0 => Ok(*size as u64),
            list => Err(Refusal::BadRequest(format!(
                "conv: attribute {name} {list:?}"
            ))),
        };
        let (features, batches) = (group("feature_group_size")?, group("batch_group_size")?);
        if out.elements() == 0 {
            return Ok(Err(Plan::default()));
        }
        let spatial = |k: usize| Spatial {
            positions: os[k + 2].0,
            taps: ks[k + 2].0,
            stride: strides[k],
            low: padding[2 * k],
            dilation: dilations[k],
            extent: xs[k + 2].0,
            holes: holes[k],
            steps: [xs[k + 2].1, ks[k + 2].1, os[k + 2].1],
        };
        let spatial: Vec<Spatial> = (0..rank - 2).map(spatial).collect();
        let groups = features.max(batches);
        let filters = ks[0].0 / groups;
        let positions: u64 = spatial.iter().map(|axis| axis.positions).product();
        let taps = spatial
            .iter()
            .fold(1u64, |all, axis| all.saturating_mul(axis.taps));
        let x_group = if batches > 1 {
            (xs[0].0 / batches) as i64 * xs[0].1
        } else {
            ks[1].0 as i64 * xs[1].1
        };
        let problem = Problem {
            dtype,
            groups,
            filters,
            columns: os[0].0 * positions,
            channels: ks[1].0,
            depth: ks[1].0.saturating_mul(taps),
            results: out.elements(),
            x: [x.offset as i64, x_group, xs[0].1, xs[1].1],
            kernel: [
                kernel.offset as i64,
                filters as i64 * ks[0].1,
                ks[0].1,
                ks[1].1,
            ],
            result: [filters as i64 * os[1].1, os[0].1, os[1].1],
            spatial,
            finish,
        };
        let is_empty = problem.depth == 0 || x.elements() == 0;
        if is_empty && problem.finish.is_some() {
            return Err(Refusal::decline("an epilogue of sums of nothing"));
        }
        if is_empty {
            return Ok(Err(crate::fold::fill("0", request)?));
        }
        within_reach(request)?;
        problem.fits()?;
        match casts.is_empty() {
            true => Ok(Ok(problem)),
            false => Err(Refusal::InputsAs(casts)),
        }
    }

    fn fits(&self) -> Result<(), Refusal> {
        let ends = self.spatial.iter().flat_map(|axis| {
            let reach = |count: u64, step: i64| count.saturating_mul(step.unsigned_abs());
            [
                reach(axis.positions, axis.stride),
                reach(axis.taps, axis.dilation),
                reach(axis.extent, axis.holes),
                axis.low.unsigned_abs(),
            ]
        });
        let counts = [self.depth, self.columns, self.results];
        match ends.chain(counts).all(|end| end < MOST) {
            true => Ok(()),
            false => Err(Refusal::decline("conv reaches beyond 32-bit places")),
        }
    }

    /// The type that results are summed in.
    pub(crate) fn register(&self) -> DType {
        self.dtype.register()
    }

    /// The type of the result.
    pub(crate) fn result(&self) -> DType {
        self.finish.as_ref().map_or(self.dtype, Finish::result)
    }

    /// Whether sums go to memory first: those of each of several splits, or to be finished apart.
    pub(crate) fn is_partial(&self, splits: u64) -> bool {
        let finish = self.finish.as_ref();
        splits > 1 || finish.is_some_and(|finish| finish.stands_apart(self.results))
    }

    /// Whether neighbours in x, in the kernel and in the result are those along channels, channels and filters.
    pub(crate) fn channels_last(&self) -> bool {
        let last = self.spatial.iter().map(|axis| axis.steps[0].unsigned_abs());
        let nearest = last.min().unwrap_or(u64::MAX);
        self.channels > 1 && self.x[3].unsigned_abs() < nearest
    }

    /// Whether neighbours in the kernel, in the order in which its elements are taken, are neighbours in memory.
    pub(crate) fn kernel_along_depth(&self) -> bool {
        self.kernel[2].unsigned_abs() != 1
    }

    /// Whether neighbours in x are those along its last spatial axis, which is long.
    pub(crate) fn x_along_axis(&self) -> bool {
        let last = self.spatial.last();
        last.is_some_and(|axis| axis.steps[0].unsigned_abs() == 1 && axis.extent >= 8)
    }

    /// Whether `width` neighbouring channels lie together in x, all of them in line.
    pub(crate) fn x_along_channels(&self, width: u64) -> bool {
        let [first, group, batch, channel] = self.x;
        let axes = self.spatial.iter().map(|axis| axis.steps[0]);
        let steps: Vec<i64> = axes.chain([first, group, batch]).collect();
        channel == 1 && self.channels.is_multiple_of(width) && in_line(&steps, width)
    }

    /// Whether x is a matrix whose rows are channels at positions, in whole pieces of `width`: kernels have a single element for
    /// each channel, and every position meets x.
    pub(crate) fn x_in_place(&self, width: u64) -> bool {
        let [_, group, batch, _] = self.x;
        let axes = self.spatial.iter().map(|axis| axis.steps[0]);
        let mut steps = axes.chain([group, batch]);
        self.x_along_channels(width) && self.meets_x() && steps.all(|step| step >= 0)
    }

    /// Whether kernels have a single element for each channel, and every position meets x.
    fn meets_x(&self) -> bool {
        self.spatial.iter().all(|axis| {
            let last = (axis.positions - 1) as i64 * axis.stride;
            axis.taps == 1 && axis.holes == 1 && axis.low == 0 && last < axis.extent as i64
        })
    }

    /// Whether the convolution is a product of two matrices as they lie: rows of x's channels, and of the result's filters.
    pub(crate) fn is_product(&self) -> bool {
        let mut rows = self.channels as i64;
        let mut lies_in_rows = |axis: &Spatial| {
            let fits = axis.stride == 1 && axis.positions == axis.extent && axis.steps[0] == rows;
            rows *= axis.extent as i64;
            fits
        };
        let [_, _, batch, channel] = self.x;
        self.groups == 1
            && self.filters_inner()
            && !self.spatial.is_empty()
            && self.meets_x()
            && channel == 1
            && self.spatial.iter().rev().all(&mut lies_in_rows)
            && (batch == rows || self.batches() == 1)
    }

    /// The first element of x.
    pub(crate) fn first(&self) -> u64 {
        self.x[0] as u64
    }

    /// Whether neighbours in the kernel are those along its last spatial axis, which is long.
    pub(crate) fn kernel_along_taps(&self) -> bool {
        let last = self.spatial.last();
        last.is_some_and(|axis| axis.steps[1].unsigned_abs() == 1 && axis.taps >= 8)
    }

    /// Whether neighbours in the result are those of filters.
    pub(crate) fn filters_inner(&self) -> bool {
        self.result[2] == 1 && self.filters > 1
    }

    /// Whether x has nothing between its elements.
    pub(crate) fn is_whole(&self) -> bool {
        self.spatial.iter().all(|axis| axis.holes == 1)
    }

    /// The first and the last of two spatial axes along which x has a single channel for each filter and no holes.
    pub(crate) fn plane(&self) -> Option<Plane> {
        let [first, last] = self.spatial.as_slice() else {
            return None;
        };
        (self.channels == 1 && self.is_whole()).then_some(Plane {
            positions: [first.positions, last.positions],
            taps: [first.taps, last.taps],
            stride: first.stride,
            dilation: first.dilation,
        })
    }

    /// Parts of the batch that a group's positions are in.
    pub(crate) fn batches(&self) -> u64 {
        let positions: u64 = self.spatial.iter().map(|axis| axis.positions).product();
        self.columns / positions.max(1)
    }

    /// Whether neighbours in x are those along groups.
    pub(crate) fn groups_inner(&self) -> bool {
        self.x[1].unsigned_abs() == 1 && self.groups > 1
    }

    pub(crate) fn dims(&self) -> u64 {
        self.spatial.len() as u64
    }

    /// First elements and steps of x, the kernel and the result.
    pub(crate) fn places(&self) -> impl Iterator<Item = u32> {
        let all = self.x.iter().chain(&self.kernel).chain(&self.result);
        all.map(|n| *n as u32)
    }

    /// Whether results come in runs of `width` that lie together, along filters or along positions, each in line.
    pub(crate) fn runs(&self, width: u64, along_filters: bool) -> bool {
        let [group, batch, filter] = self.result;
        let mut steps = vec![group, batch];
        let mut axes = self.spatial.iter().rev();
        if along_filters {
            steps.extend(axes.map(|axis| axis.steps[2]));
            return filter == 1 && self.filters.is_multiple_of(width) && in_line(&steps, width);
        }
        steps.push(filter);
        // Axes that follow each other in the result are one.
        let mut run = 1;
        for axis in axes.by_ref() {
            if axis.steps[2] != run && axis.positions > 1 {
                steps.push(axis.steps[2]);
                break;
            }
            run *= axis.positions as i64;
        }
        steps.extend(axes.map(|axis| axis.steps[2]));
        (run as u64).is_multiple_of(width) && in_line(&steps, width)
    }

    /// How many elements of x that lie together are those of one channel at positions that follow each other, where kernels have
    /// a single element for each channel and every position meets x.
    pub(crate) fn pointwise(&self) -> Option<u64> {
        if self.spatial.is_empty() || !self.meets_x() {
            return None;
        }
        let mut steps = self.x.to_vec();
        let mut run = 1;
        let mut axes = self.spatial.iter().rev().filter(|axis| axis.positions > 1);
        for axis in axes.by_ref() {
            if axis.steps[0] * axis.stride != run {
                steps.push(axis.steps[0] * axis.stride);
                break;
            }
            run *= axis.positions as i64;
        }
        steps.extend(axes.map(|axis| axis.steps[0] * axis.stride));
        let widths = [8, 4, 2].into_iter();
        let mut widths = widths.filter(|width| (8..=16).contains(&(width * self.dtype.size())));
        let fits = |width: &u64| (run as u64).is_multiple_of(*width) && in_line(&steps, *width);
        widths.find(fits)
    }

    /// Steps of group and batch in x.
    pub(crate) fn x_steps(&self) -> [u64; 2] {
        [self.x[1] as u64, self.x[2] as u64]
    }

    /// The `Params` of `conv.glsl`.
    pub(crate) fn words(&self, cut: Cut) -> Vec<u32> {
        let word = |n: &i64| *n as u32;
        let counts = [
            cut.jobs,
            self.groups,
            self.filters,
            self.columns,
            self.depth,
            self.channels,
        ];
        let mut words: Vec<u32> = counts.iter().map(|n| *n as u32).collect();
        for extent in [self.channels, self.filters, self.columns] {
            words.extend(divisor(extent));
        }
        words.extend(
            self.x
                .iter()
                .chain(&self.kernel)
                .chain(&self.result)
                .map(word),
        );
        let ends = [cut.blocks[0], cut.blocks[1], cut.chunk, self.results];
        words.extend(ends.map(|n| n as u32));
        for axis in &self.spatial {
            words.push(axis.positions as u32);
            words.extend(divisor(axis.positions));
            words.push(axis.taps as u32);
            words.extend(divisor(axis.taps));
            words.extend([axis.stride, axis.low, axis.dilation].iter().map(word));
            words.extend([axis.extent as u32, axis.holes as u32]);
            words.extend(divisor(axis.holes as u64));
            words.extend(axis.steps.iter().map(word));
        }
        if self.spatial.is_empty() {
            words.extend([0; 16]);
        }
        words
    }
}

/// The type in which x and the kernel are multiplied where sums have type `sum`: their own where registers hold it as such.
fn multiplied([x, kernel]: [DType; 2], sum: DType) -> DType {
    match x == kernel && x.is_float() && x.register() == sum {
        true => x,
        false => sum,
    }
}

fn in_line(steps: &[i64], width: u64) -> bool {
    steps.iter().all(|step| step.unsigned_abs() % width == 0)
}

/// Extent and step of each axis, in the order that an attribute gives.
fn order(
    request: &Request<'_>,
    name: &str,
    tensor: &TensorDesc<'_>,
) -> Result<Vec<(u64, i64)>, Refusal> {
    let axes = request.ints(name);
    let of = |axis: &i64| {
        let axis = usize::try_from(*axis).ok()?;
        Some((*tensor.shape.get(axis)?, *tensor.strides.get(axis)?))
    };
    let all: Option<Vec<_>> = axes.iter().map(of).collect();
    all.filter(|all| all.len() == tensor.rank())
        .ok_or_else(|| Refusal::BadRequest(format!("conv: attribute {name} {axes:?}")))
}
