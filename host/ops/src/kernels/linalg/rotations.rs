//! Plane rotations of neighbouring rows: recorded while numbers are iterated, applied to many columns later.

use crate::kernels::{lanes::widest, parallel};

/// Columns of a panel: what a pass of rotations keeps in registers.
const WIDTH: usize = 32;

/// Recorded rotations from which on they are applied.
const MANY: usize = 1 << 17;

/// Columns and rotations from whose product on other cores help.
const TASK: usize = 1 << 17;

/// A cosine and a sine.
type Pair = [f64; 2];

/// Rotations each of a row and its neighbour, to which the next one moves on.
#[derive(Debug)]
struct Pass {
    first: usize,
    is_up: bool,
    count: usize,
}

#[derive(Debug, Default)]
pub(super) struct Rotations {
    passes: Vec<Pass>,
    pairs: Vec<Pair>,
}

impl Rotations {
    /// Begins a pass at row `first`, to rows of higher numbers or to those of lower ones.
    pub(super) fn begin(&mut self, first: usize, is_up: bool) {
        self.passes.push(Pass {
            first,
            is_up,
            count: 0,
        });
    }

    /// Makes row `x` of a pass `c x + s y`, and `y`, which is next, `c y - s x`.
    pub(super) fn push(&mut self, c: f64, s: f64) {
        self.pairs.push([c, s]);
        if let Some(pass) = self.passes.last_mut() {
            pass.count += 1;
        }
    }

    pub(super) fn are_many(&self) -> bool {
        self.pairs.len() >= MANY
    }

    /// Rotates the rows and forgets the rotations.
    pub(super) fn apply(&mut self, rows: &mut Panels) {
        let together = match self.pairs.len() * rows.columns < TASK {
            true => rows.cells.len(),
            false => rows.count,
        };
        parallel::for_each_part(&mut rows.cells, together, &|_, panels| {
            for panel in panels.chunks_mut(rows.count) {
                let mut start = 0;
                for pass in &self.passes {
                    let pairs = &self.pairs[start..start + pass.count];
                    rotate(panel, pass.first, pass.is_up, pairs);
                    start += pass.count;
                }
            }
        });
        self.passes.clear();
        self.pairs.clear();
    }
}

widest! {
    fn rotate(rows: &mut [Row], first: usize, is_up: bool, pairs: &[Pair]) {
        let (mut at, Row(mut x)) = (first, rows[first]);
        for [c, s] in pairs {
            let next = if is_up { at + 1 } else { at - 1 };
            let Row(y) = rows[next];
            let Row(to) = &mut rows[at];
            for k in 0..WIDTH {
                to[k] = s.mul_add(y[k], c * x[k]);
                x[k] = s.mul_add(-x[k], c * y[k]);
            }
            at = next;
        }
        rows[at] = Row(x);
    }
}

/// A row of a panel, aligned as vectors are.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
struct Row([f64; WIDTH]);

/// Rows in panels of a few columns, which a cache holds.
#[derive(Debug)]
pub(super) struct Panels {
    cells: Vec<Row>,
    count: usize,
    columns: usize,
}

impl Panels {
    /// Those of `rows`, which lie one after another.
    pub(super) fn new(rows: &[f64], columns: usize) -> Panels {
        let count = rows.len() / columns;
        let mut cells = vec![Row([0.0; WIDTH]); columns.div_ceil(WIDTH) * count];
        for (at, panel) in cells.chunks_mut(count).enumerate() {
            let width = WIDTH.min(columns - at * WIDTH);
            for (to, row) in panel.iter_mut().zip(rows.chunks(columns)) {
                to.0[..width].copy_from_slice(&row[at * WIDTH..][..width]);
            }
        }
        Panels {
            cells,
            count,
            columns,
        }
    }

    /// Row `i`.
    pub(super) fn row(&self, i: usize) -> Vec<f64> {
        let parts = self.cells.iter().skip(i).step_by(self.count);
        parts.flat_map(|row| row.0).take(self.columns).collect()
    }
}
