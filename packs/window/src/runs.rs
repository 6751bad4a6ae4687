//! Windows along two axes that are small enough to be unrolled: an invocation folds several behind each other.

use nx_vulkan_abi::{Define, layout::contiguous_strides};
use nx_vulkan_pack_kit::axes::{Axis, divisor};
use nx_vulkan_pack_kit::steps::number;

/// Windows that an invocation folds, and the elements of them at most where windows do not overlap: they gain nothing from
/// each other but the arithmetic of places, and code for many elements does not stay in an instruction cache.
const RUN: u64 = 4;
const APART: u64 = 32;
/// Elements of a window, at most.
const MOST: u64 = 32;
/// Rows of elements that a run lies in, at most.
const REACH: u64 = 32;

/// How windows are shared out.
#[derive(Debug)]
pub(crate) struct Runs<'a> {
    axes: &'a [Axis],
    along: usize,
    inner: usize,
    run: u64,
}

impl<'a> Runs<'a> {
    /// The runs of windows along two of these axes, where that suits.
    pub(crate) fn of(axes: &'a [Axis]) -> Option<Runs<'a>> {
        let windowed = Vec::from_iter((0..axes.len()).filter(|k| !axes[*k].is_plain()));
        let [along, inner] = windowed[..] else {
            return None;
        };
        let outer = &axes[along];
        let reach = |run: u64| (run - 1) * outer.stride + (outer.window - 1) * outer.dilation + 1;
        let size = outer.window.saturating_mul(axes[inner].window);
        let is_apart = outer.stride > (outer.window - 1) * outer.dilation;
        let most = if is_apart { APART / size } else { RUN };
        let run = most.clamp(1, RUN).min(outer.positions);
        (size <= MOST && reach(run) <= REACH).then_some(Runs {
            axes,
            along,
            inner,
            run,
        })
    }

    /// How many runs there are.
    pub(crate) fn count(&self) -> u64 {
        (0..self.axes.len()).map(|k| self.positions(k)).product()
    }

    fn positions(&self, k: usize) -> u64 {
        let positions = self.axes[k].positions;
        if k == self.along {
            positions.div_ceil(self.run)
        } else {
            positions
        }
    }

    pub(crate) fn defines(&self) -> Vec<Define> {
        let (outer, inner) = (&self.axes[self.along], &self.axes[self.inner]);
        vec![
            number("RANK", self.axes.len() as u64),
            number("ALONG", self.along as u64),
            number("INNER", self.inner as u64),
            number("RUN", self.run),
            number("TAPS_0", outer.window),
            number("TAPS_1", inner.window),
            number("STRIDE", outer.stride),
            number("DILATION", outer.dilation),
            number("CHECKS_0", u64::from(self.leaves(self.along))),
            number("CHECKS_1", u64::from(self.leaves(self.inner))),
        ]
    }

    /// Whether windows, or what goes beyond the last one of the last run, have elements outside of an axis.
    fn leaves(&self, k: usize) -> bool {
        let axis = &self.axes[k];
        let run = if k == self.along { self.run } else { 1 };
        let last = (self.positions(k) * run).max(1) - 1;
        let end = (last * axis.stride + (axis.window - 1) * axis.dilation) as i64 - axis.low;
        axis.low > 0 || end >= axis.extent as i64
    }

    /// Its params; `first` is the element that the first window begins with.
    pub(crate) fn words(&self, first: i64) -> Vec<u32> {
        let shape = Vec::from_iter(self.axes.iter().map(|axis| axis.positions));
        let results = contiguous_strides(&shape);
        let mut words = vec![
            self.count() as u32,
            first as u32,
            shape[self.along] as u32,
            results[self.along] as u32,
        ];
        for (k, run) in [(self.along, self.run), (self.inner, 1)] {
            let axis = &self.axes[k];
            words.extend([
                (axis.stride * run) as u32,
                axis.low as u32,
                axis.extent as u32,
                axis.dilation as u32,
            ]);
            let apart = if k == self.along {
                1
            } else {
                axis.dilation as i64
            };
            words.push((apart * axis.step) as u32);
        }
        for (k, axis) in self.axes.iter().enumerate() {
            let run = if k == self.along { self.run as i64 } else { 1 };
            let [magic, shift] = divisor(self.positions(k));
            words.extend([
                self.positions(k) as u32,
                magic,
                shift,
                (axis.stride_step() * run) as u32,
                (results[k] * run) as u32,
            ]);
        }
        words
    }
}
