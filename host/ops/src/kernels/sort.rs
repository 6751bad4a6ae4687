//! Sorting: the order of the elements of each line, then results that follow from it.

use super::element::{Register, by_register};
use super::number::Number;
use super::operand::Operand;
use super::parallel;
use crate::attrs::{Attr, ints, text};
use crate::view::{Out, Outcome, View};
use std::cmp::Ordering;

pub(crate) fn sort(_: &str, inputs: &[View], outputs: &mut [Out], attrs: &[Attr]) -> Outcome {
    let lines = Lines::new(inputs, ints(attrs, "axis"), text(attrs, "direction"))?;
    by_register!(lines.x.dtype, R => {
        lines.each(&mut outputs[0], |line, order, out: &mut [R]| {
            out.iter_mut().zip(order).for_each(|(out, at)| *out = line[*at as usize]);
        })
    })
}

pub(crate) fn argsort(_: &str, inputs: &[View], outputs: &mut [Out], attrs: &[Attr]) -> Outcome {
    let lines = Lines::new(inputs, ints(attrs, "axis"), text(attrs, "direction"))?;
    lines.indices(&mut outputs[0])
}

pub(crate) fn top(_: &str, inputs: &[View], outputs: &mut [Out], _: &[Attr]) -> Outcome {
    let last = inputs[0].shape.len() as i64 - 1;
    let lines = Lines::new(inputs, &[last], Some("desc"))?;
    by_register!(lines.x.dtype, R => {
        lines.each(&mut outputs[0], |line, order, out: &mut [R]| {
            out.iter_mut().zip(order).for_each(|(out, at)| *out = line[*at as usize]);
        })
    })?;
    lines.indices(&mut outputs[1])
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

    fn indices(&self, out: &mut Out) -> Outcome {
        by_register!(self.x.dtype, R => match out.dtype.is_float() {
            true => self.each(out, |_: &[R], order, out: &mut [f64]| {
                out.iter_mut().zip(order).for_each(|(out, at)| *out = f64::from(*at));
            }),
            false => self.each(out, |_: &[R], order, out: &mut [i64]| {
                out.iter_mut().zip(order).for_each(|(out, at)| *out = i64::from(*at));
            }),
        })
    }

    /// Writes what `give` makes of a line and its order, for each line.
    fn each<R: Number, T: Register>(
        &self,
        out: &mut Out,
        give: impl Fn(&[R], &[u32], &mut [T]) + Sync,
    ) -> Outcome {
        let (x, axis, dtype) = (&self.x, self.axis, out.dtype);
        let (extent, kept) = (x.shape[axis] as usize, out.shape[axis] as usize);
        let size = dtype.size() as usize;
        let beside = x.shape[axis + 1..].iter().product::<u64>() as usize;
        let others: Vec<usize> = (0..x.shape.len()).filter(|other| *other != axis).collect();
        let shape: Vec<u64> = others.iter().map(|other| x.shape[*other]).collect();
        let starts = Operand::new(x, &shape, others.iter().map(|i| x.strides[*i]).collect());
        let along = Operand::new(x, &x.shape[axis..=axis], vec![x.strides[axis]]);
        // Lines beside each other share their bytes with the same lines before and after, so they are sorted together.
        parallel::for_each_chunk(out.bytes, kept * beside * size, &|outer, bytes| {
            let sorted = parallel::collect(beside, |inner| {
                let mut line = vec![R::default(); extent];
                let shift = starts.distance((outer * beside + inner) as u64);
                along.gather(shift, 0, &mut line);
                let mut order: Vec<u32> = (0..extent as u32).collect();
                order.sort_by(|a, b| self.compare(line[*a as usize], line[*b as usize]));
                let mut sorted = vec![T::default(); kept];
                give(&line, &order, &mut sorted);
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
