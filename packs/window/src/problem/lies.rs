//! How the operands and the result of a convolution lie in memory: what is next to what, and what may be taken at once.

use super::{Problem, Spatial};

impl Problem {
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

    /// Whether kernels have a single element for each channel, and each position of x is one of the result, or each second, third or
    /// so of them.
    fn is_pointwise(&self) -> bool {
        let meets_all = |axis: &Spatial| axis.positions == axis.extent.div_ceil(axis.stride as u64);
        self.groups == 1
            && !self.spatial.is_empty()
            && self.meets_x()
            && self.spatial.iter().all(meets_all)
    }

    /// Whether positions of x are left out. What is met is copied, so that it lies as one likes.
    pub(crate) fn is_strided(&self) -> bool {
        self.spatial.iter().any(|axis| axis.stride > 1)
    }

    /// Whether the convolution is a product of two matrices as they lie, or as the one from x is copied: rows of x's channels, and of
    /// the result's filters.
    pub(crate) fn is_product(&self) -> bool {
        let mut rows = self.channels as i64;
        let mut lies_in_rows = |axis: &Spatial| {
            let fits = axis.steps[0] == rows;
            rows *= axis.extent as i64;
            fits
        };
        let [_, _, batch, channel] = self.x;
        let lie = self.spatial.iter().rev().all(&mut lies_in_rows)
            && channel == 1
            && (batch == rows || self.batches() == 1);
        self.filters_inner() && self.is_pointwise() && (self.is_strided() || lie)
    }

    /// Whether the convolution is a product of the kernel with a matrix as it lies or is copied, or one for each of the batch, that are
    /// not small: rows of x's positions, a channel each, and of the result's, a filter each.
    pub(crate) fn is_product_of_planes(&self) -> bool {
        /// Positions of several products.
        const LEAST: u64 = 32;
        let mut run = None;
        let mut lies_in_row = |axis: &Spatial| {
            let fits = axis.steps[0] > 0 && run.is_none_or(|run| axis.steps[0] == run);
            run = Some(axis.steps[0] * axis.extent as i64);
            fits
        };
        let mut axes = self.spatial.iter().rev().filter(|axis| axis.extent > 1);
        let positions = self.columns / self.batches();
        let is_large = self.batches() == 1 || positions == 1 || positions >= LEAST;
        is_large && self.is_pointwise() && (self.is_strided() || axes.all(&mut lies_in_row))
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

    /// Whether neighbours in x are those along groups.
    pub(crate) fn groups_inner(&self) -> bool {
        self.x[1].unsigned_abs() == 1 && self.groups > 1
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
}

fn in_line(steps: &[i64], width: u64) -> bool {
    steps.iter().all(|step| step.unsigned_abs() % width == 0)
}
