//! The loops of the elementwise ops whose elements are computed where they lie. The functions are in `lanes`.

use super::elementwise::TASK;
use super::lanes::{self, Cell, Lane};
use super::operand::{BLOCK, Operand};
use super::parallel;
use crate::view::{Out, Outcome, View};

/// Runs `op`, where there is a function of it; else nothing is done.
pub(super) fn run(op: &str, inputs: &[View], out: &mut Out) -> Option<Outcome> {
    let types: Vec<_> = inputs.iter().map(|x| x.dtype).collect();
    let lane = lanes::find(op, &types, out.dtype)?;
    let operands = inputs.iter().map(|x| Operand::broadcast(x, out.shape));
    let operands = operands.collect::<Option<Vec<_>>>();
    Some(match (lane, operands.as_deref()) {
        (Lane::Map(f), Some([x])) => blocks([x], out, |[x], to| f(x, to)),
        (Lane::Zip(f), Some([a, b])) => blocks([a, b], out, |[x, y], to| f(x, y, to)),
        (Lane::Relation(f), Some([a, b])) => blocks([a, b], out, |[x, y], to| f(x, y, to)),
        (Lane::Select, Some([pred, a, b])) => select(pred, [a, b], out),
        _ => Err("shapes do not fit".to_owned()),
    })
}

fn select(pred: &Operand, operands: [&Operand; 2], out: &mut Out) -> Outcome {
    tasks(out, &|start, to| {
        let mut truths = Reader::new(pred);
        let [mut a, mut b] = operands.map(Reader::new);
        for (to, start) in to.chunks_mut(BLOCK).zip((start..).step_by(BLOCK)) {
            let n = to.len();
            lanes::select(
                truths.next(start, n),
                a.next(start, n),
                b.next(start, n),
                to,
            );
        }
    })
}

/// Operands of four bytes an element to a result of `N`.
fn blocks<const K: usize, const N: usize>(
    operands: [&Operand; K],
    out: &mut Out,
    f: impl Fn([&[Cell]; K], &mut [[u8; N]]) + Sync,
) -> Outcome {
    tasks(out, &|start, to| {
        let mut readers = operands.map(Reader::new);
        for (to, start) in to.chunks_mut(BLOCK).zip((start..).step_by(BLOCK)) {
            f(readers.each_mut().map(|x| x.next(start, to.len())), to);
        }
    })
}

/// Calls `work(start, elements)` for consecutive stretches of a result of `N` bytes an element.
fn tasks<const N: usize>(out: &mut Out, work: &(dyn Fn(u64, &mut [[u8; N]]) + Sync)) -> Outcome {
    parallel::for_each_chunk(out.bytes, TASK * N, &|task, bytes| {
        work((task * TASK) as u64, bytes.as_chunks_mut().0);
        Ok(())
    })
}

/// Blocks of an operand, of elements of `N` bytes.
struct Reader<'a, const N: usize> {
    from: &'a Operand<'a>,
    /// What does not lie side by side.
    own: [[u8; N]; BLOCK],
}

impl<'a, const N: usize> Reader<'a, N> {
    fn new(from: &'a Operand<'a>) -> Reader<'a, N> {
        Reader {
            from,
            own: [[0; N]; BLOCK],
        }
    }

    /// The elements from `start` on.
    fn next(&mut self, start: u64, count: usize) -> &[[u8; N]] {
        self.from.lend(0, start, &mut self.own[..count])
    }
}
