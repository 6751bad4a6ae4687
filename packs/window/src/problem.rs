//! A convolution as shaders want to know it: groups of filters, positions and kernel elements, and the steps between them.

mod lies;

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

    /// The first element of x.
    pub(crate) fn first(&self) -> u64 {
        self.x[0] as u64
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

    pub(crate) fn dims(&self) -> u64 {
        self.spatial.len() as u64
    }

    /// First elements and steps of x, the kernel and the result.
    pub(crate) fn places(&self) -> impl Iterator<Item = u32> {
        let all = self.x.iter().chain(&self.kernel).chain(&self.result);
        all.map(|n| *n as u32)
    }

    /// Steps of group and batch in x.
    pub(crate) fn x_steps(&self) -> [u64; 2] {
        [self.x[1] as u64, self.x[2] as u64]
    }

    /// The `Params` of `conv.glsl`, of a dispatch from that workgroup on.
    pub(crate) fn words(&self, first: u64, cut: Cut) -> Vec<u32> {
        let word = |n: &i64| *n as u32;
        let counts = [
            first,
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
