//! Subgroups that share what one of them would own, a part of the contracted axis each: what is tried, and how long it takes.

use super::{COLUMNS, Way, cost::Shape, reading::Reading};
use crate::{problem::Problem, table::Rates};

/// What subgroups share.
#[derive(Debug, Clone, Copy)]
pub(super) struct Owned {
    pub(super) rows: u32,
    /// Subgroups that share it.
    pub(super) parts: u32,
    /// How many of it a workgroup has along m and n.
    pub(super) high: u32,
    pub(super) wide: u32,
}

pub(super) const fn owned(rows: u32, parts: u32, [high, wide]: [u32; 2]) -> Owned {
    Owned {
        rows,
        parts,
        high,
        wide,
    }
}

/// Where operands of f16 and bf16 are read where they lie.
const ALONE: &[Owned] = &[
    owned(16, 4, [1, 1]),
    owned(16, 8, [1, 1]),
    owned(32, 4, [1, 1]),
    owned(32, 8, [1, 1]),
    owned(48, 4, [1, 1]),
    owned(64, 4, [1, 1]),
    owned(64, 8, [1, 1]),
];
/// Where B is packed as well, and the seconds that a unit takes to start and for a pair of steps. Those beside each other load the
/// same rows or columns, from a nearer cache; with both operands where they lie that gained nothing.
const SIDE_BY_SIDE: &[(Owned, [f64; 2])] = &[
    (owned(48, 2, [2, 1]), [4.2e-6, 6.8e-7]),
    (owned(64, 2, [2, 2]), [6.3e-6, 7.4e-7]),
];
/// Rows from which on subgroups may share a product, and 48 rows of it or several side by side: with fewer that was not measured.
pub(super) const LEAST_SHARED: u32 = 4;
const LEAST_OF_48: u32 = 512;

/// What is tried.
pub(super) fn all(problem: &Problem, reading: Reading) -> impl Iterator<Item = Owned> + Clone {
    let beside: &[(Owned, _)] = match reading == Reading::InPlaceA && problem.m >= LEAST_OF_48 {
        true => SIDE_BY_SIDE,
        false => &[],
    };
    let many = problem.m >= LEAST_OF_48;
    let alone = ALONE.iter().filter(move |own| own.rows != 48 || many);
    let beside = beside.iter().map(|(own, _)| own);
    alone.chain(beside).copied()
}

impl Shape {
    /// Estimated seconds of subgroups that share a tile, fits to an H200 with driver 580.159.04 as all of these: they wait for what
    /// they load, or the caches do not bring more.
    pub(super) fn seconds_of_parts(
        &self,
        problem: &Problem,
        way: Way,
        rates: &Rates,
        units: f64,
    ) -> f64 {
        let rows = f64::from(self.rows);
        let jobs = self.jobs(problem) as f64;
        let pairs = f64::from((self.chunk / 2).div_ceil(self.parts));
        let (columns, depth) = (f64::from(COLUMNS), f64::from(self.chunk * way.depth()));
        let tiles = jobs * f64::from(self.high * self.wide);
        let multiplied = 2.0 * tiles * rows * columns * depth / (0.6e9 * rates.matrix * units);
        if self.high * self.wide > 1 {
            let seconds = self.seconds_side_by_side(jobs, pairs, units);
            return seconds.max(0.85 * multiplied) + self.seconds_of_sums(problem, units);
        }
        if self.reading == Reading::InPlaceA {
            let parts = f64::from(self.parts);
            let resident = (64.0 / (rows * parts / 8.0)).clamp(1.0, 4.0);
            let waited = (jobs / (resident * units)).ceil() * pairs * (5e-7 + 5e-9 * rows);
            // Each job has something to load before its first multiplication and after its last.
            let bytes = (rows + columns) * f64::from(4 * way.depth());
            let loaded = (jobs / units).ceil() * parts * (pairs + 1.8) * bytes / 9e10;
            let start = 2.2e-6 + 1.7e-7 * parts + 5e-8 * rows;
            let sums = self.seconds_of_sums(problem, units);
            return start + waited.max(loaded).max(0.85 * multiplied) + sums;
        }
        // Less to load than with 64 rows, where a unit has as many jobs and all at once: bf16 1024 x 768 x 768 took 11.0 us (12.0),
        // 1024 x 3072 x 768 25.4 (28.2), 512 x 768 x 768 8.3 (9.1), and where it has more 512 x 2048 x 2048 35 (21).
        if self.rows == 48 {
            let taller = Shape { rows: 64, ..*self };
            let rounds = |shape: &Shape| (shape.jobs(problem) as f64 / units).ceil();
            let gains = rounds(self) == rounds(&taller) && rounds(self) <= 2.0;
            let share = if gains { 0.88 } else { f64::INFINITY };
            return share * taller.seconds_of_parts(problem, way, rates, units);
        }
        // Weights come from memory, and what batches multiply was made just before.
        let far = problem.b.batches() == 1;
        let (pair, rate, resident) = match (self.parts, self.rows) {
            (..=4, _) if far => (8.7e-7 + 1.5e-9 * rows, 4e10, 2.0),
            (..=4, _) => (4e-7 + 3e-9 * rows, 4e10, 2.0),
            (_, ..=32) => (8e-7, 3.3e10, 2.0),
            _ => (8e-7, 3.3e10, 1.0),
        };
        let waited = (jobs / (resident * units)).ceil() * pairs * pair;
        let elements = jobs * (rows + columns) * depth;
        let loaded = elements * way.element.size() as f64 / (rate * units);
        let start = 2.6e-6 + 2.5e-7 * f64::from(self.parts) + 3.3e-8 * rows;
        start + waited.max(loaded).max(multiplied) + self.seconds_of_sums(problem, units)
    }

    /// The same of those that have others beside them, but for the sum of parts of another dispatch. H200, driver 580.159.04, bf16, with
    /// operands that are in no cache, beside the best of the others, us: 2048 x 1024 x 1024 (m x k x n) 20.4, others 23.7;
    /// 1300 x 3072 x 1280 46, others 49; 3136 x 1536 x 384 23.6, others 26.1; from caches the second one 32, others 43.
    fn seconds_side_by_side(&self, jobs: f64, pairs: f64, units: f64) -> f64 {
        const UNIT_HOLDS: f64 = 8.0;
        const ROUND: f64 = 8e-7;
        let resident = UNIT_HOLDS / f64::from(self.subgroups());
        let rounds = (jobs / (resident * units)).ceil();
        let known = SIDE_BY_SIDE.iter().find(|(own, _)| self.has(own));
        let [start, pair] = known.map_or([f64::INFINITY; 2], |(_, seconds)| *seconds);
        start + rounds * pairs * pair + (rounds - 1.0) * ROUND
    }

    fn has(&self, own: &Owned) -> bool {
        [self.rows, self.parts, self.high, self.wide] == [own.rows, own.parts, own.high, own.wide]
    }
}
