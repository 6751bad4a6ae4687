//! `conv` of f32 numbers whose result has its channels side by side: what the kernel meets at a position is a row, copied as many
//! channels at a time as lie together, and rows times filters are rows of the result.

use std::borrow::Cow;

use nx_vulkan_abi::dtype::DType;
use nx_vulkan_abi::layout::contiguous_strides;

use super::conv::{Axes, permuted};
use super::conv_in_place::canonical;
use super::parallel;
use super::product::{Matmul as _, Matrix, Parallelism};
use crate::attrs::{Attr, ints};
use crate::view::{Out, View};

/// Elements of x that are laid out at a time: half of a second-level cache.
const CELLS: usize = 1 << 17;
/// Spatial axes at most: each takes some of the stack.
const MOST_AXES: usize = 32;
/// Rows of a tile are multiples of it.
const HEIGHT: usize = 16;

/// Convolves, unless types, groups or the result's layout ask for more than this.
pub(super) fn run(x: &View, kernel: &View, out: &mut Out, attrs: &[Attr]) -> bool {
    let all_f32 = [x.dtype, kernel.dtype, out.dtype] == [DType::F32; 3];
    all_f32 && convolve(x, kernel, out, attrs).is_some()
}

fn convolve(x: &View, kernel: &View, out: &mut Out, attrs: &[Attr]) -> Option<()> {
    let axes = Axes::new(x.shape, kernel.shape, attrs);
    let order = channels_last(ints(attrs, "output_permutation"));
    let is_last = permuted(&contiguous_strides(out.shape), &order)
        == contiguous_strides(&permuted(out.shape, &order));
    let is_flat = (1..=MOST_AXES).contains(&axes.spatial.len());
    if axes.groups != 1 || !is_flat || !is_last {
        return None;
    }
    // SAFETY: every bit pattern is a float, and `align_to_mut` looks after alignment and length.
    let (before, results, after) = unsafe { out.bytes.align_to_mut::<f32>() };
    if !before.is_empty() || !after.is_empty() {
        return None;
    }
    let rows = Rows::new(
        &axes,
        canonical(x, &channels_last(ints(attrs, "input_permutation"))),
    );
    let [filter, channel, spatial @ ..] = ints(attrs, "kernel_permutation") else {
        return None;
    };
    let filters = canonical(kernel, &[spatial, &[*channel, *filter]].concat());
    let (depth, width) = (filters.len() / axes.filters as usize, axes.filters as usize);
    let height = (CELLS / depth).max(4 * HEIGHT).next_multiple_of(HEIGHT);
    parallel::for_each_part(results, height * width, &|part, to| {
        let (first, height) = (part * height, to.len() / width);
        let cells = rows.at(first, height, depth);
        assert!(
            cells.len() == height * depth && filters.len() == depth * width,
            "rows are as long as filters are deep"
        );
        let to = Matrix::new(to.as_mut_ptr(), [1, width as isize]);
        let a = Matrix::new(cells.as_ptr(), [1, depth as isize]);
        let b = Matrix::new(filters.as_ptr(), [1, width as isize]);
        // SAFETY: the assertion holds the extents of all three; the result is borrowed mutably, so it does not overlap the
        // operands.
        unsafe {
            f32::matmul([height, width, depth], to, [a, b], false, Parallelism::None);
        }
    });
    Some(())
}

/// Axes in the order batch, spatial axes, channels.
fn channels_last(permutation: &[i64]) -> Vec<i64> {
    match permutation {
        [batch, channels, spatial @ ..] => [&[*batch], spatial, &[*channels]].concat(),
        _ => permutation.to_vec(),
    }
}

/// What the kernel meets at each position of each part of the batch.
struct Rows<'a> {
    axes: &'a Axes,
    positions: Vec<u64>,
    x: Cow<'a, [f32]>,
    /// Elements of x from one index to the next along the batch and each spatial axis.
    steps: Vec<i64>,
}

impl<'a> Rows<'a> {
    fn new(axes: &'a Axes, x: Cow<'a, [f32]>) -> Rows<'a> {
        let along = axes.spatial.iter().zip(&axes.holes);
        let extents = along.map(|(axis, holes)| ((axis.extent - 1) / holes + 1) as u64);
        let shape: Vec<u64> = [axes.batch]
            .into_iter()
            .chain(extents)
            .chain([axes.channels])
            .collect();
        Rows {
            axes,
            positions: axes.canonical()[2..].to_vec(),
            x,
            steps: contiguous_strides(&shape),
        }
    }

    /// So many rows from the one number `first` on.
    fn at(&self, first: usize, height: usize, depth: usize) -> Cow<'_, [f32]> {
        let is_x =
            self.axes.spatial.iter().all(|axis| {
                [axis.window, axis.stride] == [1; 2] && [axis.low, axis.high] == [0; 2]
            });
        if is_x && self.axes.holes.iter().all(|holes| *holes == 1) {
            return Cow::Borrowed(&self.x[first * depth..][..height * depth]);
        }
        let mut cells = vec![0.0; height * depth];
        for (row, at) in cells.chunks_mut(depth).zip(first..) {
            let mut place = vec![0; self.positions.len()];
            let mut outer = at as u64;
            for (place, extent) in place.iter_mut().zip(&self.positions).rev() {
                (*place, outer) = ((outer % extent) as i64, outer / extent);
            }
            self.taps(0, outer as i64 * self.steps[0], &place, row);
        }
        Cow::Owned(cells)
    }

    /// What taps of the spatial axes from number `axis` on meet at a position, in x from `start` on.
    fn taps(&self, axis: usize, start: i64, position: &[i64], to: &mut [f32]) {
        let (along, step) = (&self.axes.spatial[axis], self.steps[axis + 1]);
        let each = to.len() / along.window as usize;
        if axis + 1 < position.len() {
            for (tap, to) in (0..).zip(to.chunks_mut(each)) {
                if let Some(place) = self.axes.place(axis, position[axis], tap) {
                    self.taps(axis + 1, start + place * step, position, to);
                }
            }
            return;
        }
        if along.dilation == 1 && self.axes.holes[axis] == 1 {
            // Taps inside are one stretch.
            let first = along.place(position[axis], 0);
            let inside =
                first.clamp(0, along.extent)..(first + along.window).clamp(0, along.extent);
            if inside.is_empty() {
                return;
            }
            let from = &self.x
                [(start + inside.start * step) as usize..(start + inside.end * step) as usize];
            to[(inside.start - first) as usize * each..][..from.len()].copy_from_slice(from);
            return;
        }
        for (tap, to) in (0..).zip(to.chunks_mut(each)) {
            if let Some(place) = self.axes.place(axis, position[axis], tap) {
                to.copy_from_slice(&self.x[(start + place * step) as usize..][..each]);
            }
        }
    }
}
