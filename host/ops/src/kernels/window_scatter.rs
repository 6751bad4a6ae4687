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
/// Elements of a window whose places are listed.
const MOST_LISTED: i64 = 1 << 16;

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
        match largest {
            true => self.choose_by(x, init, |value, best| value >= best),
            false => self.choose_by(x, init, |value, best| value <= best),
        }
    }

    fn choose_by<R: Number>(
        &self,
        x: &[R],
        init: R,
        wins: impl Fn(R, R) -> bool + Sync,
    ) -> Vec<Option<usize>> {
        let count: u64 = self.positions.iter().product();
        let reach = self.reach();
        let tasks = parallel::collect(count.div_ceil(TASK) as usize, |task| {
            let first = task as u64 * TASK;
            let mut corner = self.corner(first);
            let mut chosen = Vec::new();
            for _ in first..count.min(first + TASK) {
                chosen.push(match self.inside(&corner).filter(|_| !reach.is_empty()) {
                    Some(begin) => {
                        let places = reach.iter().map(|place| (begin + place) as usize);
                        let values = places.map(|place| (x[place], place));
                        best(values, &wins).map(|(_, place)| place)
                    }
                    None => self.choice(&corner, x, init, &wins),
                });
                advance(&mut corner, |k| self.positions[k] as i64);
            }
            chosen
        });
        tasks.concat()
    }

    /// The place of a window along each axis.
    fn corner(&self, mut window: u64) -> Vec<i64> {
        let mut corner = vec![0i64; self.axes.len()];
        for (at, positions) in corner.iter_mut().zip(self.positions).rev() {
            (*at, window) = ((window % positions) as i64, window / positions);
        }
        corner
    }

    /// How far each element of a window lies from its first one; nothing where they are very many.
    fn reach(&self) -> Vec<i64> {
        let elements = |count: i64, axis: &Axis| count.saturating_mul(axis.window);
        if self.axes.iter().fold(1, elements) > MOST_LISTED {
            return Vec::new();
        }
        let mut reach = vec![0];
        for (axis, step) in self.axes.iter().zip(&self.steps) {
            let along = |first: i64| {
                let elements = 0..axis.window;
                elements.map(move |element| first + element * axis.dilation * step)
            };
            reach = reach.into_iter().flat_map(along).collect();
        }
        reach
    }

    /// Where a window without padding begins.
    fn inside(&self, corner: &[i64]) -> Option<i64> {
        let mut begin = 0;
        for ((axis, at), step) in self.axes.iter().zip(corner).zip(&self.steps) {
            let [first, last] = [0, axis.window - 1].map(|element| axis.place(*at, element));
            if first < 0 || last >= axis.extent {
                return None;
            }
            begin += first * step;
        }
        Some(begin)
    }

    /// The choice of a window with padding, or with very many elements.
    fn choice<R: Number>(
        &self,
        corner: &[i64],
        x: &[R],
        init: R,
        wins: impl Fn(R, R) -> bool,
    ) -> Option<usize> {
        let mut element = vec![0i64; self.axes.len()];
        let mut is_over = false;
        let values = std::iter::from_fn(|| {
            if is_over {
                return None;
            }
            let place = self.place(corner, &element);
            is_over = !advance(&mut element, |k| self.axes[k].window);
            Some((place.map_or(init, |place| x[place]), place))
        });
        best(values, wins).and_then(|(_, place)| place)
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

/// Goes on to the next place, of so many along each axis; false where that is the first one again.
fn advance(at: &mut [i64], extent: impl Fn(usize) -> i64) -> bool {
    (0..at.len()).rev().any(|k| {
        at[k] = (at[k] + 1) % extent(k);
        at[k] != 0
    })
}

/// The last of the values that win over all others, and what comes with it.
fn best<R: Copy, P>(
    values: impl Iterator<Item = (R, P)>,
    wins: impl Fn(R, R) -> bool,
) -> Option<(R, P)> {
    values.reduce(|best, other| if wins(other.0, best.0) { other } else { best })
}
