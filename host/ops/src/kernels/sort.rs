//! Sorting: the order of the elements of each line, then results that follow from it.

use super::element::{Register, by_register};
use super::number::Number;
use super::operand::Operand;
use super::{crew::cores, parallel, room};
use crate::attrs::{Attr, ints, text};
use crate::view::{Out, Outcome, View};
use std::cmp::Ordering;

/// Bytes that a sorted line takes beside its elements.
const PER_LINE: usize = 96;

pub(crate) fn sort(_: &str, inputs: &[View], outputs: &mut [Out], attrs: &[Attr]) -> Outcome {
    let lines = Lines::new(inputs, ints(attrs, "axis"), text(attrs, "direction"))?;
    by_register!(lines.x.dtype, R => lines.each(&mut outputs[0], size_of::<R>(), |line: &mut Vec<R>, out: &mut [R]| {
        line.sort_by(|a, b| lines.compare(*a, *b));
        out.copy_from_slice(line);
    }))
}

pub(crate) fn argsort(_: &str, inputs: &[View], outputs: &mut [Out], attrs: &[Attr]) -> Outcome {
    let lines = Lines::new(inputs, ints(attrs, "axis"), text(attrs, "direction"))?;
    by_register!(lines.x.dtype, R => lines.indices(&mut outputs[0], |line: &[R]| {
        let mut order = numbered(line);
        order.sort_by(|a, b| lines.compare(a.0, b.0));
        order
    }))
}

pub(crate) fn top(_: &str, inputs: &[View], outputs: &mut [Out], _: &[Attr]) -> Outcome {
    let last = inputs[0].shape.len() as i64 - 1;
    let lines = Lines::new(inputs, &[last], Some("desc"))?;
    let [values, indices] = outputs else {
        return Err("expected two results".to_owned());
    };
    let (extent, kept) = (lines.x.shape[last as usize], values.shape[last as usize]);
    by_register!(lines.x.dtype, R => {
        let (starts, along) = lines.operands();
        let count = (lines.x.shape.iter().product::<u64>() / extent) as usize;
        let firsts = count.saturating_mul(kept as usize * 4 * size_of::<(R, i64)>() + PER_LINE);
        room::take(firsts.saturating_add(cores() * extent as usize * size_of::<R>()))?;
        let first = parallel::collect(count, |line| {
            let mut elements = vec![R::default(); extent as usize];
            along.gather(starts.distance(line as u64), 0, &mut elements);
            lines.first(&elements, kept as usize)
        });
        let (elements, places): (Vec<R>, Vec<i64>) =
            first.into_iter().flatten().map(|(x, at)| (x, i64::from(at))).unzip();
        R::store(&elements, values.dtype, values.bytes);
        i64::store(&places, indices.dtype, indices.bytes);
        Ok(())
    })
}

/// Elements of a line with their indices.
fn numbered<R: Number>(line: &[R]) -> Vec<(R, u32)> {
    line.iter().copied().zip(0..).collect()
}

/// The lines of an operand along an axis.
struct Lines<'a> {
    x: View<'a>,
    axis: usize,
    descends: bool,
}

impl<'a> Lines<'a> {
    fn new(
        inputs: &[View<'a>],
        axis: &[i64],
        direction: Option<&str>,
    ) -> Result<Lines<'a>, String> {
        let ([x], [axis]) = (inputs, axis) else {
            return Err("expected one operand and one axis".to_owned());
        };
        Ok(Lines {
            x: *x,
            axis: *axis as usize,
            descends: direction == Some("desc"),
        })
    }

    /// Where lines begin, and one of them.
    fn operands(&self) -> (Operand<'a>, Operand<'a>) {
        let (x, axis) = (&self.x, self.axis);
        let others: Vec<usize> = (0..x.shape.len()).filter(|other| *other != axis).collect();
        let shape: Vec<u64> = others.iter().map(|other| x.shape[*other]).collect();
        let starts = Operand::new(x, &shape, others.iter().map(|i| x.strides[*i]).collect());
        let along = Operand::new(x, &x.shape[axis..=axis], vec![x.strides[axis]]);
        (starts, along)
    }

    /// Writes the indices of what `order` makes of each line.
    fn indices<R: Number>(
        &self,
        out: &mut Out,
        order: impl Fn(&[R]) -> Vec<(R, u32)> + Sync,
    ) -> Outcome {
        // And as many while they are sorted.
        let taken = 2 * size_of::<(R, u32)>();
        match out.dtype.is_float() {
            true => self.each(out, taken, |line: &mut Vec<R>, out: &mut [f64]| {
                let order = order(line);
                out.iter_mut()
                    .zip(order)
                    .for_each(|(out, (_, at))| *out = at.into());
            }),
            false => self.each(out, taken, |line: &mut Vec<R>, out: &mut [i64]| {
                let order = order(line);
                out.iter_mut()
                    .zip(order)
                    .for_each(|(out, (_, at))| *out = at.into());
            }),
        }
    }

    /// The first `kept` elements of a line in descending order, with their indices. Those that may be among them are gathered, and thinned
    /// out whenever there are twice as many as that.
    fn first<R: Number>(&self, line: &[R], kept: usize) -> Vec<(R, u32)> {
        let order = |a: &(R, u32), b: &(R, u32)| self.compare(a.0, b.0).then(a.1.cmp(&b.1));
        let mut first = Vec::with_capacity(2 * kept);
        let mut last = None;
        for (x, at) in line.iter().copied().zip(0..) {
            // Most elements are below the last one that is kept.
            if last.is_some_and(|last| x <= last || self.compare(x, last).is_ge()) {
                continue;
            }
            first.push((x, at));
            if first.len() == 2 * kept {
                first.select_nth_unstable_by(kept - 1, order);
                first.truncate(kept);
                last = Some(first[kept - 1].0);
            }
        }
        first.sort_unstable_by(order);
        first.truncate(kept);
        first
    }

    /// Writes what `give` makes of each line, for which it takes so many bytes for each element.
    fn each<R: Number, T: Register>(
        &self,
        out: &mut Out,
        taken: usize,
        give: impl Fn(&mut Vec<R>, &mut [T]) + Sync,
    ) -> Outcome {
        let (x, axis, dtype) = (&self.x, self.axis, out.dtype);
        let (extent, kept) = (x.shape[axis] as usize, out.shape[axis] as usize);
        let size = dtype.size() as usize;
        let beside = x.shape[axis + 1..].iter().product::<u64>() as usize;
        let (starts, along) = self.operands();
        let lines = out.bytes.len() / (kept * size).max(1);
        let together = lines.min(beside * cores());
        let sorted = together.saturating_mul(kept * size_of::<T>() + PER_LINE);
        let line = extent * (size_of::<R>() + taken);
        room::take(
            lines
                .min(cores())
                .saturating_mul(line)
                .saturating_add(sorted),
        )?;
        // Lines beside each other share their bytes with the same lines before and after, so they are sorted together.
        parallel::for_each_chunk(out.bytes, kept * beside * size, &|outer, bytes| {
            let sorted = parallel::collect(beside, |inner| {
                let mut line = vec![R::default(); extent];
                let shift = starts.distance((outer * beside + inner) as u64);
                along.gather(shift, 0, &mut line);
                let mut sorted = vec![T::default(); kept];
                give(&mut line, &mut sorted);
                sorted
            });
            if let [line] = sorted.as_slice() {
                T::store(line, dtype, bytes);
                return Ok(());
            }
            let mut row = vec![T::default(); beside];
            for (step, bytes) in bytes.chunks_mut(beside * size).enumerate() {
                row.iter_mut()
                    .zip(&sorted)
                    .for_each(|(to, line)| *to = line[step]);
                T::store(&row, dtype, bytes);
            }
            Ok(())
        })
    }

    fn compare<R: Number>(&self, a: R, b: R) -> Ordering {
        let order = a.is_nan().cmp(&b.is_nan());
        let order = order.then(a.partial_cmp(&b).unwrap_or(Ordering::Equal));
        if self.descends {
            order.reverse()
        } else {
            order
        }
    }
}
