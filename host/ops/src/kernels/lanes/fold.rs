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

macro_rules! folds {
    ($($public:ident = $run:ident, $steps:ident: $t:ty, $start:expr, |$all:ident, $x:ident| $body:expr;)*) => { $(
        pub(in crate::kernels) const $public: InPlace<$t> = InPlace { run: $run, steps: $steps };

        widest! {
            fn $run(cells: &[Cell]) -> $t {
                let (chunks, rest) = cells.as_chunks::<LANES>();
                let mut lanes: [$t; LANES] = [$start; LANES];
                for chunk in chunks {
                    for (lane, x) in lanes.iter_mut().zip(chunk) {
                        let ($all, $x) = (*lane, <$t>::from(f32::from_ne_bytes(*x)));
                        *lane = $body;
                    }
                }
                for (lane, x) in lanes.iter_mut().zip(rest) {
                    let ($all, $x) = (*lane, <$t>::from(f32::from_ne_bytes(*x)));
                    *lane = $body;
                }
                // Halves onto each other: one after the other they would take longer than a short row.
                let mut half = LANES / 2;
                while half > 0 {
                    let (low, high) = lanes.split_at_mut(half);
                    for (low, high) in low.iter_mut().zip(high) {
                        let ($all, $x) = (*low, *high);
                        *low = $body;
                    }
                    half /= 2;
                }
                lanes[0]
            }

            fn $steps(states: &mut [$t], cells: &[Cell]) {
                for (state, x) in states.iter_mut().zip(cells) {
                    let ($all, $x) = (*state, <$t>::from(f32::from_ne_bytes(*x)));
                    *state = $body;
                }
            }
        }
    )* };
}
folds! {
    SUM = sum, add: f64, 0.0, |all, x| Ring::add(all, x);
    PRODUCT = product, multiply: f64, 1.0, |all, x| Ring::multiply(all, x);
    MAX = max, larger: f32, f32::NEG_INFINITY, |all, x| Number::larger(all, x);
    MIN = min, smaller: f32, f32::INFINITY, |all, x| Number::smaller(all, x);
}
