//! `conv`: for each group a product of matrices, filters by kernel elements and kernel elements by positions, tile by
//! tile. The second one is laid out from x as its tiles are needed.

use std::ops::Range;

use nx_vulkan_abi::layout::contiguous_strides;

use super::dot::{Packed, Strides, Tile, float_tile, ring_tile};
use super::element::{Complex, Register};
use super::elementwise::is_single;
use super::kernel::Sums;
use super::operand::Operand;
use super::window::{Axis, elements};
use super::{convert, parallel};
use crate::attrs::{Attr, ints};
use crate::view::{Out, Outcome, View};

/// Columns and depth of a tile. They fix the order of summation, so they depend on nothing.
const COLUMNS: usize = 256;
const DEPTH: usize = 256;

/// The extents of a convolution.
#[derive(Debug)]
pub(crate) struct Axes {
    pub(crate) batch: u64,
    pub(crate) channels: u64,
    pub(crate) filters: u64,
    /// Channels of the kernel.
    pub(crate) own_channels: u64,
    pub(crate) batch_groups: u64,
    pub(crate) groups: u64,
    /// The kernel along each spatial axis of x, whose extent is that of the dilated one.
    spatial: Vec<Axis>,
    /// Steps between elements of x along each spatial axis.
    holes: Vec<i64>,
}

impl Axes {
    /// Of a request whose attributes are complete and as many as there are axes.
    pub(crate) fn new(x: &[u64], kernel: &[u64], attrs: &[Attr]) -> Axes {
        let own = |shape: &[u64], name: &str| permuted(shape, ints(attrs, name));
        let (x, kernel) = (
            own(x, "input_permutation"),
            own(kernel, "kernel_permutation"),
        );
        let at = |name: &str, index: usize| ints(attrs, name).get(index).copied().unwrap_or(1);
        let group = |name| at(name, 0) as u64;
        let axis = |k: usize| Axis {
            extent: (x[k + 2] as i64 - 1).max(-1) * at("input_dilation", k) + 1,
            window: kernel[k + 2] as i64,
            stride: at("strides", k),
            dilation: at("kernel_dilation", k),
            low: at("padding", 2 * k),
            high: at("padding", 2 * k + 1),
        };
        Axes {
            batch: x[0],
            channels: x[1],
            filters: kernel[0],
            own_channels: kernel[1],
            batch_groups: group("batch_group_size"),
            groups: group("batch_group_size").max(group("feature_group_size")),
            spatial: (0..x.len() - 2).map(axis).collect(),
            holes: (0..x.len() - 2).map(|k| at("input_dilation", k)).collect(),
        }
    }

    /// The shape of the result whose axes lie in the order of `permutation`.
    pub(crate) fn output(&self, permutation: &[i64]) -> Vec<u64> {
        let mut shape = vec![0; self.spatial.len() + 2];
        for (axis, extent) in permutation.iter().zip(self.canonical()) {
            shape[*axis as usize] = extent;
        }
        shape
    }

    fn canonical(&self) -> Vec<u64> {
        let spatial = self.spatial.iter().map(Axis::positions);
        let batch = self.batch / self.batch_groups;
        [batch, self.filters].into_iter().chain(spatial).collect()
    }
}

fn permuted<T: Copy>(of: &[T], axes: &[i64]) -> Vec<T> {
    axes.iter().map(|axis| of[*axis as usize]).collect()
}

pub(crate) fn run(x: &View, kernel: &View, out: &mut Out, attrs: &[Attr], sums: Sums) -> Outcome {
    if x.shape.contains(&0) || kernel.shape.contains(&0) {
        out.bytes.fill(0);
        return Ok(());
    }
    let single = is_single(out.dtype);
    match out.dtype.is_complex() {
        true => {
            let read =
                |from: &Operand, start: u64, to: &mut [Complex<f64>]| from.gather(0, start, to);
            convolve(x, kernel, out, attrs, read, &ring_tile)
        }
        false if single && sums == Sums::Own => {
            let read = |from: &Operand, start: u64, to: &mut [f32]| from.gather(0, start, to);
            convolve(x, kernel, out, attrs, read, &float_tile::<f32>)
        }
        false => {
            let read =
                |from: &Operand, start: u64, to: &mut [f64]| from.gather_wide(single, 0, start, to);
            convolve(x, kernel, out, attrs, read, &float_tile::<f64>)
        }
    }
}

fn convolve<R: Register>(
    x: &View,
    kernel: &View,
    out: &mut Out,
    attrs: &[Attr],
    read: impl Fn(&Operand, u64, &mut [R]) + Sync,
    tile: Tile<R>,
) -> Outcome {
    let all = |view: &View, name: &str| {
        let axes = ints(attrs, name);
        elements(
            view,
            &permuted(view.shape, axes),
            permuted(view.strides, axes),
            &read,
        )
    };
    let axes = Axes::new(x.shape, kernel.shape, attrs);
    let shape = axes.canonical();
    let patches = Patches::new(&axes, &shape[2..], all(x, "input_permutation"));
    let filters = all(kernel, "kernel_permutation");

    let rows = (axes.filters / axes.groups) as usize;
    let (columns, depth) = (patches.columns as usize, patches.depth());
    let blocks = columns.div_ceil(COLUMNS);
    let tiles = parallel::collect(axes.groups as usize * blocks, |job| {
        let (group, first) = (job / blocks, job % blocks * COLUMNS);
        let width = COLUMNS.min(columns - first);
        let mut sums = vec![R::default(); rows * width];
        let mut cells = Vec::new();
        for start in (0..depth).step_by(DEPTH) {
            let length = DEPTH.min(depth - start);
            cells.clear();
            cells.resize(length * width, R::default());
            for (row, at) in cells.chunks_mut(width).zip(start..) {
                patches.row(group, at, first..first + width, row);
            }
            let left = Packed {
                cells: &filters[group * rows * depth + start..],
                strides: Strides {
                    free: depth,
                    depth: 1,
                },
                free: rows,
            };
            let right = Packed {
                cells: &cells,
                strides: Strides {
                    free: 1,
                    depth: width,
                },
                free: width,
            };
            tile(left, right, length, &mut sums);
        }
        sums
    });

    let mut results = vec![R::default(); shape.iter().product::<u64>() as usize];
    let positions = shape[2..].iter().product::<u64>() as usize;
    for (job, tile) in tiles.iter().enumerate() {
        let (group, first) = (job / blocks, job % blocks * COLUMNS);
        let width = tile.len() / rows;
        for (filter, row) in tile.chunks(width).enumerate() {
            let mut at = 0;
            while at < width {
                let (batch, position) = ((first + at) / positions, (first + at) % positions);
                let run = (positions - position).min(width - at);
                let plane = batch * axes.filters as usize + group * rows + filter;
                let to = plane * positions + position;
                results[to..to + run].copy_from_slice(&row[at..at + run]);
                at += run;
            }
        }
    }
    store(&results, &shape, out, ints(attrs, "output_permutation"))
}

/// Writes results in the order batch, filters, spatial axes to where `permutation` has them.
fn store<R: Register>(results: &[R], shape: &[u64], out: &mut Out, permutation: &[i64]) -> Outcome {
    if permutation.iter().copied().eq(0..shape.len() as i64) {
        R::store(results, out.dtype, out.bytes);
        return Ok(());
    }
    let size = out.dtype.size() as usize;
    let mut bytes = vec![0; results.len() * size];
    R::store(results, out.dtype, &mut bytes);
    let mut strides = vec![0; shape.len()];
    for (axis, step) in permutation.iter().zip(contiguous_strides(shape)) {
        strides[*axis as usize] = step;
    }
    let view = View {
        dtype: out.dtype,
        shape: out.shape,
        strides: &strides,
        offset: 0,
        bytes: &bytes,
    };
    convert::as_type(&[Operand::new(&view, out.shape, strides.clone())], out)
}

/// The elements of x that each element of the kernel meets: a matrix for each group, kernel elements by positions.
struct Patches<'a, R> {
    axes: &'a Axes,
    positions: &'a [u64],
    /// Positions in all parts of the batch that one group has.
    columns: u64,
    x: Vec<R>,
    /// Elements of x from one index of a spatial axis to the next, and from one channel to the next.
    steps: Vec<i64>,
    channel: i64,
}

impl<'a, R: Register> Patches<'a, R> {
    fn new(axes: &'a Axes, positions: &'a [u64], x: Vec<R>) -> Patches<'a, R> {
        let along = axes.spatial.iter().zip(&axes.holes);
        let extents: Vec<u64> = along
            .map(|(axis, holes)| ((axis.extent - 1) / holes + 1) as u64)
            .collect();
        Patches {
            axes,
            positions,
            columns: axes.batch / axes.batch_groups * positions.iter().product::<u64>(),
            x,
            steps: contiguous_strides(&extents),
            channel: extents.iter().product::<u64>() as i64,
        }
    }

    fn depth(&self) -> usize {
        let taps = self.axes.spatial.iter().map(|axis| axis.window as u64);
        (self.axes.own_channels * taps.product::<u64>()) as usize
    }

    /// What the kernel element number `depth` meets at the positions of `columns`.
    fn row(&self, group: usize, depth: usize, columns: Range<usize>, row: &mut [R]) {
        let mut taps = vec![0; self.axes.spatial.len()];
        let mut channel = depth as i64;
        for (tap, axis) in taps.iter_mut().zip(&self.axes.spatial).rev() {
            (*tap, channel) = (channel % axis.window, channel / axis.window);
        }
        let batches = (self.axes.batch / self.axes.batch_groups) as i64;
        let (mut first, own) = (0, self.axes.own_channels as i64);
        if self.axes.batch_groups > 1 {
            first = group as i64 * batches;
        } else {
            channel += group as i64 * own;
        }
        let inner = self.positions.last().copied().unwrap_or(1);
        let mut at = columns.start as u64;
        while at < columns.end as u64 {
            let (mut outer, column) = (at / inner, at % inner);
            let run = (inner - column).min(columns.end as u64 - at);
            let to = &mut row[at as usize - columns.start..][..run as usize];
            let mut base = Some(0);
            let before = self.positions.len().saturating_sub(1);
            for k in (0..before).rev() {
                let position = outer % self.positions[k];
                outer /= self.positions[k];
                let place = self.place(k, position as i64, taps[k]);
                base = base
                    .zip(place)
                    .map(|(base, place)| base + place * self.steps[k]);
            }
            let plane = (first + outer as i64) * self.axes.channels as i64 + channel;
            match (base, taps.last()) {
                (None, _) => to.fill(R::default()),
                (Some(base), None) => to.fill(self.x[(plane * self.channel + base) as usize]),
                (Some(base), Some(tap)) => {
                    self.line(plane * self.channel + base, *tap, column as i64, to);
                }
            }
            at += run;
        }
    }

    /// What a tap of the last axis meets at consecutive positions from `column` on, in the line of x that begins at `start`.
    fn line(&self, start: i64, tap: i64, column: i64, to: &mut [R]) {
        let k = self.positions.len() - 1;
        let (axis, holes) = (&self.axes.spatial[k], self.axes.holes[k]);
        if holes > 1 {
            for (to, position) in to.iter_mut().zip(column..) {
                let place = self.place(k, position, tap);
                *to = place.map_or(R::default(), |place| self.x[(start + place) as usize]);
            }
            return;
        }
        // Positions inside are one stretch.
        let range = axis.inside(tap, &(column..column + to.len() as i64));
        let length = (range.end - range.start).max(0) as usize;
        let (before, rest) = to.split_at_mut((range.start - column) as usize);
        let (inside, after) = rest.split_at_mut(length);
        before.fill(R::default());
        after.fill(R::default());
        if inside.is_empty() {
            return;
        }
        let from = &self.x[(start + axis.place(range.start, tap)) as usize..];
        if axis.stride == 1 {
            inside.copy_from_slice(&from[..inside.len()]);
        } else {
            let every = from.iter().step_by(axis.stride as usize);
            inside.iter_mut().zip(every).for_each(|(to, x)| *to = *x);
        }
    }

    /// The index along spatial axis `k` that a tap meets at a position, if there is an element.
    fn place(&self, k: usize, position: i64, tap: i64) -> Option<i64> {
        let (axis, holes) = (&self.axes.spatial[k], self.axes.holes[k]);
        let place = axis.place(position, tap);
        let inside = (0..axis.extent).contains(&place) && (holes == 1 || place % holes == 0);
        inside.then(|| if holes == 1 { place } else { place / holes })
    }
}
