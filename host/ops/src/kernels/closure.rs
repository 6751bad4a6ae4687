//! Reductions by an expression: an accumulator and one element after another, in row-major order, on blocks of results at
//! once.

use super::{
    expression::{Values, run},
    kernel::Sums,
    operand::BLOCK,
    parallel,
    window::{Axis, axes},
};
use crate::{
    attrs::{Attr, ints},
    expression::read,
    view::{Out, Outcome, View},
};

pub(crate) fn reduce(_: &str, inputs: &[View], outputs: &mut [Out], attrs: &[Attr]) -> Outcome {
    let ([x, acc], [out, ..]) = (inputs, outputs) else {
        return Err("expected two operands and a result".to_owned());
    };
    let reduced = ints(attrs, "axes");
    let axis = |(axis, &extent): (i64, &u64)| match reduced.contains(&axis) {
        true => Line::reduced(extent as i64),
        false => Line::kept(extent as i64),
    };
    let lines = (0..).zip(x.shape).map(axis).collect();
    fold(x, acc, out, attrs, lines)
}

pub(crate) fn window_reduce(
    _: &str,
    inputs: &[View],
    outputs: &mut [Out],
    attrs: &[Attr],
) -> Outcome {
    let ([x, acc], [out, ..]) = (inputs, outputs) else {
        return Err("expected two operands and a result".to_owned());
    };
    let lines = axes(x.shape, attrs).into_iter().map(|axis| Line {
        positions: axis.positions() as i64,
        axis,
    });
    fold(x, acc, out, attrs, lines.collect())
}

/// An axis: a window of some elements at each position.
struct Line {
    positions: i64,
    axis: Axis,
}

impl Line {
    fn reduced(extent: i64) -> Line {
        let axis = Axis::whole(extent);
        Line { positions: 1, axis }
    }

    fn kept(extent: i64) -> Line {
        let axis = Axis {
            window: 1,
            ..Axis::whole(extent)
        };
        let positions = extent;
        Line { positions, axis }
    }
}

fn fold(x: &View, acc: &View, out: &mut Out, attrs: &[Attr], lines: Vec<Line>) -> Outcome {
    let expression = read(attrs, &[x.dtype, acc.dtype], &[out.dtype])?;
    let size = out.dtype.size() as usize;
    let start = &acc.bytes[acc.offset as usize * size..][..size];
    let padding = match x.dtype == acc.dtype {
        true => start.to_vec(),
        false => {
            let mut cast = vec![0; x.dtype.size() as usize];
            let values = [(acc.dtype, start)];
            run("as_type", &values, (x.dtype, &[1]), &mut cast, Sums::Wide)?;
            cast
        }
    };
    let walk = Walk {
        x,
        padding,
        steps: lines.iter().map(|line| line.axis.window).product(),
        lines,
    };
    parallel::for_each_chunk(out.bytes, BLOCK * size, &|task, bytes| {
        let first = (task * BLOCK) as u64;
        bytes
            .chunks_mut(size)
            .for_each(|to| to.copy_from_slice(start));
        let count = bytes.len() / size;
        let corners: Vec<Vec<i64>> = (first..first + count as u64)
            .map(|index| walk.corner(index))
            .collect();
        let mut values = Values::new(&expression, count, Sums::Wide);
        let mut elements = Vec::new();
        for step in 0..walk.steps {
            walk.elements(step, &corners, &mut elements);
            values.compute(&expression, &[(x.dtype, &elements), (acc.dtype, bytes)])?;
            bytes.copy_from_slice(values.result(&expression, 0));
        }
        Ok(())
    })
}

/// How elements are visited.
struct Walk<'a> {
    x: &'a View<'a>,
    /// What lies outside of x.
    padding: Vec<u8>,
    /// Elements that make a result.
    steps: i64,
    lines: Vec<Line>,
}

impl Walk<'_> {
    /// The position of a result along each axis.
    fn corner(&self, index: u64) -> Vec<i64> {
        unravel(index as i64, self.lines.iter().map(|line| line.positions))
    }

    /// The elements that results at `corners` take at a step.
    fn elements(&self, step: i64, corners: &[Vec<i64>], to: &mut Vec<u8>) {
        to.clear();
        let within = unravel(step, self.lines.iter().map(|line| line.axis.window));
        let size = self.x.dtype.size() as usize;
        for corner in corners {
            let places = self.lines.iter().zip(corner).zip(&within);
            let mut places =
                places.map(|((line, at), element)| (line, line.axis.place(*at, *element)));
            let mut strides = self.x.strides.iter();
            let at = places.try_fold(self.x.offset as i64, |at, (line, place)| {
                let inside = (0..line.axis.extent).contains(&place);
                inside.then_some(at + place * strides.next()?)
            });
            match at {
                Some(at) => to.extend_from_slice(&self.x.bytes[at as usize * size..][..size]),
                None => to.extend_from_slice(&self.padding),
            }
        }
    }
}

/// The place along each axis of what lies at a row-major index.
fn unravel(mut index: i64, extents: impl DoubleEndedIterator<Item = i64>) -> Vec<i64> {
    let place = |extent: i64| {
        let place = index % extent;
        index /= extent;
        place
    };
    let mut places: Vec<i64> = extents.rev().map(place).collect();
    places.reverse();
    places
}
