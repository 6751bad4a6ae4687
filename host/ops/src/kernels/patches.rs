//! What `conv` multiplies its kernel by: the elements of x that each element of the kernel meets, laid out as they are needed.

use std::borrow::Cow;
use std::ops::Range;

use nx_vulkan_abi::layout::contiguous_strides;

use super::conv::Axes;
use super::element::Register;

/// A matrix for each group: kernel elements by positions.
pub(super) struct Patches<'a, R: Clone> {
    axes: &'a Axes,
    positions: &'a [u64],
    /// Positions in all parts of the batch that one group has.
    pub(super) columns: u64,
    x: Cow<'a, [R]>,
    /// Elements of x from one index of a spatial axis to the next, and from one channel to the next.
    steps: Vec<i64>,
    channel: i64,
}

impl<'a, R: Register> Patches<'a, R> {
    pub(super) fn new(axes: &'a Axes, positions: &'a [u64], x: Cow<'a, [R]>) -> Patches<'a, R> {
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

    pub(super) fn depth(&self) -> usize {
        let taps = self.axes.spatial.iter().map(|axis| axis.window as u64);
        (self.axes.own_channels * taps.product::<u64>()) as usize
    }

    /// What the kernel element number `depth` meets at the positions of `columns`.
    pub(super) fn row(&self, group: usize, depth: usize, columns: Range<usize>, row: &mut [R]) {
        let mut taps = vec![0; self.axes.spatial.len()];
        let mut channel = depth as i64;
        for (tap, axis) in taps.iter_mut().zip(&self.axes.spatial).rev() {
            (*tap, channel) = (channel % axis.window, channel / axis.window);
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
                let place = self.axes.place(k, position as i64, taps[k]);
                base = base
                    .zip(place)
                    .map(|(base, place)| base + place * self.steps[k]);
            }
            let plane = self.plane(group, outer as i64, channel);
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

    /// The plane of x that a group's channel has in a part of its batch.
    fn plane(&self, group: usize, batch: i64, channel: i64) -> i64 {
        let batches = (self.axes.batch / self.axes.batch_groups) as i64;
        let group = group as i64;
        match self.axes.batch_groups > 1 {
            true => (group * batches + batch) * self.axes.channels as i64 + channel,
            false => {
                let channel = channel + group * self.axes.own_channels as i64;
                batch * self.axes.channels as i64 + channel
            }
        }
    }

    /// What the kernel elements number `depths` meet at the position that `column` is.
    pub(super) fn column(&self, group: usize, column: usize, depths: Range<usize>, to: &mut [R]) {
        let mut position = vec![0; self.positions.len()];
        let mut batch = column as u64;
        for (at, count) in position.iter_mut().zip(self.positions).rev() {
            (*at, batch) = ((batch % count) as i64, batch / count);
        }
        let (Some((last, before)), Some(along)) =
            (self.axes.spatial.split_last(), position.last().copied())
        else {
            let planes = depths.map(|channel| self.plane(group, batch as i64, channel as i64));
            to.iter_mut().zip(planes).for_each(|(to, plane)| {
                *to = self.x[(plane * self.channel) as usize];
            });
            return;
        };
        let mut at = depths.start;
        while at < depths.end {
            let (mut channel, tap) = (at as i64 / last.window, at as i64 % last.window);
            let run = (last.window - tap).min((depths.end - at) as i64);
            let to = &mut to[at - depths.start..][..run as usize];
            let mut base = Some(0);
            for (k, axis) in before.iter().enumerate().rev() {
                let place = self.axes.place(k, position[k], channel % axis.window);
                channel /= axis.window;
                base = base
                    .zip(place)
                    .map(|(base, place)| base + place * self.steps[k]);
            }
            match base {
                None => to.fill(R::default()),
                Some(base) => {
                    let plane = self.plane(group, batch as i64, channel);
                    self.taps(plane * self.channel + base, along, tap, to);
                }
            }
            at += run as usize;
        }
    }

    /// What consecutive taps of the last axis from `tap` on meet at a position, in the line of x that begins at `start`.
    fn taps(&self, start: i64, position: i64, tap: i64, to: &mut [R]) {
        let k = self.positions.len() - 1;
        let (axis, holes) = (&self.axes.spatial[k], self.axes.holes[k]);
        if holes > 1 {
            for (to, tap) in to.iter_mut().zip(tap..) {
                let place = self.axes.place(k, position, tap);
                *to = place.map_or(R::default(), |place| self.x[(start + place) as usize]);
            }
            return;
        }
        let range = axis.elements_inside(position, &(tap..tap + to.len() as i64));
        self.stretch(to, tap, range.clone(), axis.dilation, || {
            start + axis.place(position, range.start)
        });
    }

    /// What a tap of the last axis meets at consecutive positions from `column` on, in the line of x that begins at `start`.
    fn line(&self, start: i64, tap: i64, column: i64, to: &mut [R]) {
        let k = self.positions.len() - 1;
        let (axis, holes) = (&self.axes.spatial[k], self.axes.holes[k]);
        if holes > 1 {
            for (to, position) in to.iter_mut().zip(column..) {
                let place = self.axes.place(k, position, tap);
                *to = place.map_or(R::default(), |place| self.x[(start + place) as usize]);
            }
            return;
        }
        let range = axis.inside(tap, &(column..column + to.len() as i64));
        self.stretch(to, column, range.clone(), axis.stride, || {
            start + axis.place(range.start, tap)
        });
    }

    /// Elements of x for the places of `range`, which are one stretch of those from `first` on: the first one where `begin` says, and
    /// so many further on from each to the next.
    fn stretch(
        &self,
        to: &mut [R],
        first: i64,
        range: Range<i64>,
        step: i64,
        begin: impl FnOnce() -> i64,
    ) {
        let length = (range.end - range.start).max(0) as usize;
        let (before, rest) = to.split_at_mut((range.start - first) as usize);
        let (inside, after) = rest.split_at_mut(length);
        before.fill(R::default());
        after.fill(R::default());
        if inside.is_empty() {
            return;
        }
        let from = &self.x[begin() as usize..];
        if step == 1 {
            inside.copy_from_slice(&from[..inside.len()]);
        } else {
            let every = from.iter().step_by(step as usize);
            inside.iter_mut().zip(every).for_each(|(to, x)| *to = *x);
        }
    }
}
