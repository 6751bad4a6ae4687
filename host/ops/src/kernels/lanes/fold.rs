//! Reductions of f32 numbers where they lie: into one, or into results side by side.

use super::{Cell, widest};
use crate::kernels::number::{Number, Ring};

/// How many cells become one `R`, and how cells side by side are taken into as many.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InPlace<R> {
    pub(in crate::kernels) run: fn(&[Cell]) -> R,
    pub(in crate::kernels) steps: fn(&mut [R], &[Cell]),
}

/// Accumulators that are independent of each other: as many as hide the latency of the widest vectors.
const LANES: usize = 64;

/// The lower half of the lanes, each with one of the upper half.
#[inline(always)]
fn halve<T: Copy, const N: usize, const HALF: usize>(
    lanes: [T; N],
    combine: impl Fn(T, T) -> T,
) -> [T; HALF] {
    let mut half = [lanes[0]; HALF];
    for (i, to) in half.iter_mut().enumerate() {
        *to = combine(lanes[i], lanes[i + HALF]);
    }
    half
}

/// Takes one cell after the other into each lane; what fills no row of lanes is left.
#[inline(always)]
fn take<T: Copy + From<f32>, const N: usize>(
    mut lanes: [T; N],
    cells: &[Cell],
    combine: impl Fn(T, T) -> T,
) -> ([T; N], &[Cell]) {
    let (chunks, rest) = cells.as_chunks::<N>();
    for chunk in chunks {
        for (lane, x) in lanes.iter_mut().zip(chunk) {
            *lane = combine(*lane, T::from(f32::from_ne_bytes(*x)));
        }
    }
    (lanes, rest)
}

macro_rules! folds {
    ($($public:ident = $run:ident, $steps:ident: $t:ty, $start:expr, $combine:expr;)*) => { $(
        pub(in crate::kernels) const $public: InPlace<$t> = InPlace { run: $run, steps: $steps };

        widest! {
            fn $run(cells: &[Cell]) -> $t {
                // Ever fewer lanes: a row is often short, and seldom fills all of them.
                let (lanes, rest) = take([$start; LANES], cells, $combine);
                let half: [$t; LANES / 2] = halve(lanes, $combine);
                let (lanes, rest) = take(halve::<_, _, 16>(half, $combine), rest, $combine);
                let half: [$t; 8] = halve(lanes, $combine);
                let (lanes, rest) = take(halve::<_, _, 4>(half, $combine), rest, $combine);
                let half: [$t; 2] = halve(lanes, $combine);
                take(halve::<_, _, 1>(half, $combine), rest, $combine).0[0]
            }

            fn $steps(states: &mut [$t], cells: &[Cell]) {
                for (state, x) in states.iter_mut().zip(cells) {
                    *state = $combine(*state, <$t>::from(f32::from_ne_bytes(*x)));
                }
            }
        }
    )* };
}
folds! {
    SUM = sum, add: f64, 0.0, Ring::add;
    PRODUCT = product, multiply: f64, 1.0, Ring::multiply;
    MAX = max, larger: f32, f32::NEG_INFINITY, Number::larger;
    MIN = min, smaller: f32, f32::INFINITY, Number::smaller;
}
