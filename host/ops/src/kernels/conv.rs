//! `conv`: for each group a product of matrices, filters by kernel elements and kernel elements by positions, tile by
//! tile. The second one is laid out from x as its tiles are needed.

use nx_vulkan_abi::layout::contiguous_strides;
use std::ops::RangeInclusive;

use super::dot::{Packed, Strides, Tile, float_tile, ring_tile};
use super::element::{Complex, Register};
use super::elementwise::is_single;
use super::kernel::Sums;
use super::operand::Operand;
use super::patches::Patches;
use super::window::{Axis, elements};
use super::{conv_in_place, conv_last};
use super::{
    convert::{self, Factor},
    parallel,
};
use crate::attrs::{Attr, ints};
use crate::view::{Out, Outcome, View};

/// Columns and depth of a tile. They fix the order of summation, so they depend on the request alone.
const COLUMNS: usize = 256;
const DEPTH: usize = 256;
/// Depth and columns of a tile where there are few positions.
const DEEP: usize = 1024;
const FEW_COLUMNS: RangeInclusive<usize> = 16..=64;

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
    /// The kernel along each spatial axis of x, whose extent is that of the dilated one, at most `i64::MAX`.
    pub(super) spatial: Vec<Axis>,
    /// Steps between elements of x along each spatial axis.
    pub(super) holes: Vec<i64>,
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
            extent: dilated(x[k + 2], at("input_dilation", k)),
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

    /// Whether x has more elements along an axis than can be counted, once it is dilated.
    pub(crate) fn is_endless(&self) -> bool {
        self.spatial.iter().any(|axis| axis.extent == i64::MAX)
    }

    /// The shape of the result whose axes lie in the order of `permutation`.
    pub(crate) fn output(&self, permutation: &[i64]) -> Vec<u64> {
        let mut shape = vec![0; self.spatial.len() + 2];
        for (axis, extent) in permutation.iter().zip(self.canonical()) {
            shape[*axis as usize] = extent;
        }
        shape
    }

    /// The index along spatial axis `k` that a tap meets at a position, if there is an element.
    pub(super) fn place(&self, k: usize, position: i64, tap: i64) -> Option<i64> {
        let (axis, holes) = (&self.spatial[k], self.holes[k]);
        let place = axis.place(position, tap);
        let inside = (0..axis.extent).contains(&place) && (holes == 1 || place % holes == 0);
        inside.then(|| if holes == 1 { place } else { place / holes })
    }

    pub(super) fn canonical(&self) -> Vec<u64> {
        let spatial = self.spatial.iter().map(Axis::positions);
        let batch = self.batch / self.batch_groups;
        [batch, self.filters].into_iter().chain(spatial).collect()
    }
}

/// An extent with holes between its elements; `i64::MAX` where it is larger.
fn dilated(extent: u64, dilation: i64) -> i64 {
    let last = extent
        .checked_sub(1)
        .map(|last| i64::try_from(last).unwrap_or(i64::MAX));
    last.map_or(0, |last| last.saturating_mul(dilation).saturating_add(1))
}

pub(super) fn permuted<T: Copy>(of: &[T], axes: &[i64]) -> Vec<T> {
    axes.iter().map(|axis| of[*axis as usize]).collect()
}

pub(crate) fn run(x: &View, kernel: &View, out: &mut Out, attrs: &[Attr], sums: Sums) -> Outcome {
    if x.shape.contains(&0) || kernel.shape.contains(&0) {
        out.bytes.fill(0);
        return Ok(());
    }
    let (x, kernel) = (Factor::new(x, out.dtype)?, Factor::new(kernel, out.dtype)?);
    let (x, kernel) = (&x.view(), &kernel.view());
    let single = is_single(out.dtype);
    let few = has_few_positions(&Axes::new(x.shape, kernel.shape, attrs));
    match out.dtype.is_complex() {
        true => {
            let read =
                |from: &Operand, start: u64, to: &mut [Complex<f64>]| from.gather(0, start, to);
            convolve(x, kernel, out, attrs, read, &ring_tile)
        }
        false if sums == Sums::Own && conv_last::run(x, kernel, out, attrs) => Ok(()),
        false if sums == Sums::Own && !few && conv_in_place::run(x, kernel, out, attrs) => Ok(()),
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

/// Whether more elements of x lie side by side for a position than for an element of the kernel.
fn has_few_positions(axes: &Axes) -> bool {
    let last = axes.spatial.last();
    last.is_some_and(|axis| axis.window as u64 > axis.positions())
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
    let patches = Patches::new(&axes, &shape[2..], all(x, "input_permutation").into());
    let filters = all(kernel, "kernel_permutation");

    let rows = (axes.filters / axes.groups) as usize;
    let (columns, depth) = (patches.columns as usize, patches.depth());
    // What lies side by side in x is copied together.
    let by_column = !out.dtype.is_complex() && has_few_positions(&axes);
    let (most, deep) = match by_column {
        true => (
            (columns / 8).clamp(*FEW_COLUMNS.start(), *FEW_COLUMNS.end()),
            DEEP,
        ),
        false => (COLUMNS, DEPTH),
    };
    let blocks = columns.div_ceil(most);
    let tiles = parallel::collect(axes.groups as usize * blocks, |job| {
        let (group, first) = (job / blocks, job % blocks * most);
        let width = most.min(columns - first);
        let mut sums = vec![R::default(); rows * width];
        let mut cells = Vec::new();
        for start in (0..depth).step_by(deep) {
            let length = deep.min(depth - start);
            cells.clear();
            cells.resize(length * width, R::default());
            if by_column {
                for (column, at) in cells.chunks_mut(length).zip(first..) {
                    patches.column(group, at, start..start + length, column);
                }
            } else {
                for (row, at) in cells.chunks_mut(width).zip(start..) {
                    patches.row(group, at, first..first + width, row);
                }
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
                strides: match by_column {
                    true => Strides {
                        free: length,
                        depth: 1,
                    },
                    false => Strides {
                        free: 1,
                        depth: width,
                    },
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
        let (group, first) = (job / blocks, job % blocks * most);
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
