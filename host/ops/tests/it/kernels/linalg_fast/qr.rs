//! QR.

use super::{SIZES, TYPES, assert_near, both, matrices, numbers};
use crate::kernels::linalg_complex::{C, adjoint, product, times, unit};
use nx_vulkan_abi::DType;
use nx_vulkan_ops::{Attr, values::Rng};

#[test]
fn qr_is_orthogonal_and_like_single_steps() {
    let mut rng = Rng(7);
    let squares = SIZES.map(|n| (n, n));
    let others = [
        (100, 17),
        (17, 100),
        (65, 33),
        (33, 65),
        (300, 40),
        (300, 9),
        (5, 40),
        (31, 32),
    ];
    let shapes: Vec<(usize, usize)> = squares.into_iter().chain(others).collect();
    for (dtype, (m, n)) in TYPES
        .iter()
        .flat_map(|dtype| shapes.iter().map(|x| (*dtype, *x)))
    {
        let kinds = matrices(dtype, m, n, &mut rng);
        let (mode, wide) = [("reduced", m.min(n)), ("complete", m)][(m + n) % 2];
        let attrs = [Attr::text("mode", mode)];
        let shapes: [&[usize]; 2] = [&[m, wide], &[wide, n]];
        let count = kinds.len();
        for (kind, a) in kinds.into_iter().enumerate() {
            let [steps, blocks] = both("QR", dtype, &[(&[m, n], &a)], &shapes, &attrs);
            let (steps, blocks) = (steps.unwrap(), blocks.unwrap());
            let [q, r] = &blocks[..] else { unreachable!() };
            let steps_allowed = 10.0 * m.max(n) as f64;
            assert_near(dtype, &product(q, r, m, wide, n), &a, steps_allowed);
            let gram = product(&adjoint(q, m, wide), q, wide, m, wide);
            assert_near(dtype, &gram, &unit(wide), steps_allowed);
            assert!((0..wide * n).all(|at| at / n <= at % n || r[at] == (0.0, 0.0)));
            // What has no rank to speak of is anything beyond it.
            if kind + 1 == count {
                assert_near(dtype, r, &steps[1], 1e4);
                assert_near(dtype, q, &steps[0], 1e5);
            }
        }
    }
}

#[test]
fn diagonals_of_r_keep_their_signs_where_hardly_anything_is_below() {
    let n = 40;
    let sign = |i: usize| if i.is_multiple_of(2) { 1.0 } else { -1.0 };
    let cell = |at: usize| match (at / n, at % n) {
        (i, j) if i == j => (sign(i), 0.0),
        (i, j) if i == j + 1 => (1e-7, 0.0),
        _ => (0.0, 0.0),
    };
    let a: Vec<C> = (0..n * n).map(cell).collect();
    let attrs = [Attr::text("mode", "reduced"), Attr::float("eps", 1e-10)];
    for dtype in TYPES {
        let [steps, blocks] = both("QR", dtype, &[(&[n, n], &a)], &[&[n, n][..]; 2], &attrs);
        let (steps, blocks) = (steps.unwrap(), blocks.unwrap());
        for (blocks, steps) in blocks.iter().zip(&steps) {
            assert_near(dtype, blocks, steps, 100.0);
        }
    }
}

/// Sums of squares of such numbers are too large or too small for f64.
#[test]
fn scales_change_nothing() {
    let mut rng = Rng(9);
    for (dtype, scale) in [DType::F64, DType::C128]
        .iter()
        .flat_map(|dtype| [1e-290, 1e-160, 1e160, 1e290].map(|scale| (*dtype, scale)))
    {
        let (m, n) = (50, 33);
        let a = numbers(dtype, m * n, &mut rng);
        let a: Vec<C> = a.iter().map(|x| times(*x, (scale, 0.0))).collect();
        let attrs = [Attr::text("mode", "reduced")];
        let shapes: [&[usize]; 2] = [&[m, n], &[n, n]];
        for factors in both("QR", dtype, &[(&[m, n], &a)], &shapes, &attrs) {
            let [q, r] = &factors.unwrap()[..] else {
                unreachable!()
            };
            assert_near(dtype, &product(q, r, m, n, n), &a, 10.0 * m as f64);
            let gram = product(&adjoint(q, m, n), q, n, m, n);
            assert_near(dtype, &gram, &unit(n), 10.0 * m as f64);
        }
    }
}
