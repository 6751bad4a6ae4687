//! Scatters of windows: each window chooses an element, and its source is added there. The sums go in the order of the
//! windows, so that they have the same bits everywhere.

use super::element::{Register, by_register};
use super::number::{Number, Ring};
use super::operand::Operand;
use super::parallel;
use super::window::{Axis, axes, elements};
use crate::attrs::Attr;
use crate::view::{Out, Outcome, View};
use nx_vulkan_abi::layout::contiguous_strides;

/// Windows that one task chooses for.
const TASK: u64 = 4096;

pub(crate) fn max(_: &str, inputs: &[View], outputs: &mut [Out], attrs: &[Attr]) -> Outcome {
    scatter(inputs, outputs, attrs, true)
}

pub(crate) fn min(_: &str, inputs: &[View], outputs: &mut [Out], attrs: &[Attr]) -> Outcome {
    scatter(inputs, outputs, attrs, false)
}

fn scatter(inputs: &[View], outputs: &mut [Out], attrs: &[Attr], largest: bool) -> Outcome {
    let ([x, source, init], [out, ..]) = (inputs, outputs) else {
        return Err("expected three operands and a result".to_owned());
    };
    let windows = Windows {
        axes: axes(x.shape, attrs),
        positions: source.shape,
        steps: contiguous_strides(x.shape),
    };
    let mut chosen = Vec::new();
    by_register!(x.dtype, R => {
        chosen = windows.choose(&all::<R>(x), all::<R>(init)[0], largest);
        Ok(())
    })?;
    by_register!(out.dtype, R => {
        let mut sums = vec![all::<R>(init)[0]; x.shape.iter().product::<u64>() as usize];
        for (place, value) in chosen.iter().zip(all::<R>(source)) {
            if let Some(place) = place {
                sums[*place] = sums[*place].add(value);
            }
        }
        R::store(&sums, out.dtype, out.bytes);
        Ok(())
    })
}

fn all<R: Register>(x: &View) -> Vec<R> {
    let read = |from: &Operand, start: u64, to: &mut [R]| from.gather(0, start, to);
    elements(x, x.shape, x.strides.to_vec(), read)
}

struct Windows<'a> {
    axes: Vec<Axis>,
    positions: &'a [u64],
    /// Elements from one index of x to the next.
    steps: Vec<i64>,
}

impl Windows<'_> {
    /// The element that each window chooses; none where that is padding.
    fn choose<R: Number>(&self, x: &[R], init: R, largest: bool) -> Vec<Option<usize>> {
        let count: u64 = self.positions.iter().product();
        let tasks = parallel::collect(count.div_ceil(TASK) as usize, |task| {
            let first = task as u64 * TASK;
            let own = first..count.min(first + TASK);
            own.map(|window| self.choice(window, x, init, largest))
                .collect::<Vec<_>>()
        });
        tasks.concat()
    }

    fn choice<R: Number>(&self, mut window: u64, x: &[R], init: R, largest: bool) -> Option<usize> {
        let mut corner = vec![0i64; self.axes.len()];
        for (at, positions) in corner.iter_mut().zip(self.positions).rev() {
            (*at, window) = ((window % positions) as i64, window / positions);
        }
        let mut element = vec![0i64; self.axes.len()];
        let mut best = None;
        loop {
            let place = self.place(&corner, &element);
            let value = place.map_or(init, |place| x[place]);
            let wins = |best: R| {
                if largest {
                    value >= best
                } else {
                    value <= best
                }
            };
            if best.is_none_or(|(best, _)| wins(best)) {
                best = Some((value, place));
            }
            let next = (0..element.len()).rev().find(|k| {
                element[*k] = (element[*k] + 1) % self.axes[*k].window;
                element[*k] != 0
            });
            if next.is_none() {
                return best.and_then(|(_, place)| place);
            }
        }
    }

    fn place(&self, corner: &[i64], element: &[i64]) -> Option<usize> {
        let mut place = 0;
        for (k, axis) in self.axes.iter().enumerate() {
            let at = axis.place(corner[k], element[k]);
            if !(0..axis.extent).contains(&at) {
                return None;
            }
            place += at * self.steps[k];
        }
        Some(place as usize)
    }
}
