//! `conv` of f32 numbers in f32: products of matrices, each written where its part of the result lies.

use std::borrow::Cow;

use nx_vulkan_abi::dtype::DType;
use nx_vulkan_abi::layout::{collapse, contiguous_strides};

use super::conv::{Axes, permuted};
use super::direct;
use super::parallel;
use super::patches::Patches;
use super::product::{Matmul as _, Matrix, Parallelism};
use super::window::elements;
use crate::attrs::{Attr, ints};
use crate::view::{Out, View};

/// Elements of x that are laid out at a time: half of a second-level cache. Depth and positions of such a tile depend on the
/// request alone, since they fix the order of summation.
const CELLS: usize = 1 << 17;
const DEPTH: usize = 768;
/// Positions of a tile are multiples of it: the width of the widest vectors.
const WIDTH: usize = 16;

/// Convolves, unless types or the result's layout ask for more than this.
pub(super) fn run(x: &View, kernel: &View, out: &mut Out, attrs: &[Attr]) -> bool {
    let all_f32 = [x.dtype, kernel.dtype, out.dtype] == [DType::F32; 3];
    all_f32 && convolve(x, kernel, out, attrs).is_some()
}

fn convolve(x: &View, kernel: &View, out: &mut Out, attrs: &[Attr]) -> Option<()> {
    let axes = Axes::new(x.shape, kernel.shape, attrs);
    let shape = axes.canonical();
    let strides = permuted(
        &contiguous_strides(out.shape),
        ints(attrs, "output_permutation"),
    );
    let space = collapse(&shape[2..], &[strides[2..].to_vec()]);
    let step = match space.strides[0][..] {
        [] => 1,
        [step] => step as usize,
        _ => return None,
    };
    let (batch_step, filter_step) = (strides[0] as usize, strides[1] as usize);
    let results = Results::new(out.bytes)?;

    let cells = canonical(x, ints(attrs, "input_permutation"));
    let patches = Patches::new(&axes, &shape[2..], cells);
    let filters = canonical(kernel, ints(attrs, "kernel_permutation"));
    let rows = (axes.filters / axes.groups) as usize;
    let positions = shape[2..].iter().product::<u64>() as usize;
    let depth = patches.depth();
    let length = depth.div_ceil(depth.div_ceil(DEPTH));
    let tiles = positions.div_ceil((CELLS / length).max(4 * WIDTH));
    let width = positions.div_ceil(tiles).next_multiple_of(WIDTH);
    let tiles = positions.div_ceil(width);

    let batches = shape[0] as usize;
    let one = |cells: &mut Vec<f32>, job: usize| {
        let (tile, image) = (job % tiles, job / tiles);
        let (batch, group) = (image % batches, image / batches);
        let first = tile * width;
        let width = width.min(positions - first);
        let columns = batch * positions + first..batch * positions + first + width;
        let to = batch * batch_step + group * rows * filter_step + first * step;
        for start in (0..depth).step_by(length) {
            let length = length.min(depth - start);
            cells.resize(length * width, 0.0);
            for (row, at) in cells.chunks_mut(width).zip(start..) {
                patches.row(group, at, columns.clone(), row);
            }
            let filters = &filters[group * rows * depth + start..];
            let reach = to + (rows - 1) * filter_step + (width - 1) * step;
            assert!(
                (rows - 1) * depth + length <= filters.len() && reach < results.count,
                "groups and positions lie within their tensors"
            );
            // SAFETY: the assertion holds the largest index into the filters and the results, and `cells` has `length` rows
            // of `width`. No other job writes the positions of this tile in these filters and this part of the batch: the
            // result's axes do not overlap. The results are borrowed mutably, so they do not overlap the operands.
            unsafe {
                let to = Matrix::new(
                    results.start().add(to),
                    [step as isize, filter_step as isize],
                );
                let a = Matrix::new(filters.as_ptr(), [1, depth as isize]);
                let b = Matrix::new(cells.as_ptr(), [1, width as isize]);
                let extents = [rows, width, length];
                f32::matmul(extents, to, [a, b], start > 0, Parallelism::None);
            }
        }
    };
    let jobs = axes.groups as usize * batches * tiles;
    parallel::for_each_with(jobs, Vec::new, &one);
    Some(())
}

/// A result that many write to, each to elements of its own.
struct Results<'a> {
    start: *mut f32,
    count: usize,
    _bytes: std::marker::PhantomData<&'a mut [u8]>,
}

// SAFETY: those who write through the pointer write to elements of their own, and nobody reads through it before they
// are done.
unsafe impl Sync for Results<'_> {}

impl<'a> Results<'a> {
    /// `None` where the bytes are not aligned.
    fn new(bytes: &'a mut [u8]) -> Option<Results<'a>> {
        // SAFETY: every bit pattern is a float, and `align_to_mut` looks after alignment and length.
        let (before, cells, after) = unsafe { bytes.align_to_mut::<f32>() };
        (before.is_empty() && after.is_empty()).then_some(Results {
            start: cells.as_mut_ptr(),
            count: cells.len(),
            _bytes: std::marker::PhantomData,
        })
    }

    fn start(&self) -> *mut f32 {
        self.start
    }
}

/// The elements of an operand in that order of its axes: where they lie, if that is the order.
pub(super) fn canonical<'a>(view: &View<'a>, axes: &[i64]) -> Cow<'a, [f32]> {
    let (shape, strides) = (permuted(view.shape, axes), permuted(view.strides, axes));
    if strides == contiguous_strides(&shape)
        && let Some(cells) = direct::cells::<f32>(view.bytes)
    {
        let count = shape.iter().product::<u64>() as usize;
        return Cow::Borrowed(&cells[view.offset as usize..][..count]);
    }
    let read = |from: &super::operand::Operand, start: u64, to: &mut [f32]| {
        from.gather(0, start, to);
    };
    Cow::Owned(elements(view, &shape, strides, read))
}
