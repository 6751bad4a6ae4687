//! Cholesky, LU, and what is solved by them.

use super::{Matrix, SIZES, TYPES, assert_near, both, fast, matrices, numbers, rounded};
use crate::kernels::linalg_complex::{C, adjoint, product, times, unit};
use nx_vulkan_abi::DType;
use nx_vulkan_ops::{Attr, values::Rng};

fn positive(dtype: DType, n: usize, rng: &mut Rng) -> Vec<C> {
    let a = numbers(dtype, n * n, rng);
    let mut positive = product(&a, &adjoint(&a, n, n), n, n, n);
    (0..n).for_each(|i| positive[i * (n + 1)].0 += 1.0);
    rounded(dtype, &positive)
}

const NAN: C = (f64::NAN, 0.0);

/// The matrix with NaN above the diagonal.
fn lower(a: &[C], n: usize) -> Vec<C> {
    let cell = |at: usize| if at / n < at % n { NAN } else { a[at] };
    (0..n * n).map(cell).collect()
}

#[test]
fn cholesky_gives_its_matrix_back() {
    let mut rng = Rng(1);
    for (dtype, n) in TYPES.iter().flat_map(|dtype| SIZES.map(|n| (*dtype, n))) {
        let a = positive(dtype, n, &mut rng);
        let mut read = lower(&a, n);
        (0..n).for_each(|i| read[i * (n + 1)].1 = 7.0);
        let l = &fast("Cholesky", dtype, &[(&[n, n], &read)], &[&[n, n]], &[])[0];
        assert_near(
            dtype,
            &product(l, &adjoint(l, n, n), n, n, n),
            &a,
            10.0 * n as f64,
        );
        assert!((0..n * n).all(|at| at / n >= at % n || l[at] == (0.0, 0.0)));
        let two = [&read[..], &read].concat();
        let pair = &fast("Cholesky", dtype, &[(&[2, n, n], &two)], &[&[2, n, n]], &[])[0];
        assert_near(dtype, &pair[n * n..], l, n as f64);
    }
}

#[test]
fn what_is_not_positive_definite_is_not_so_in_the_same_places() {
    let mut rng = Rng(2);
    for (dtype, bad) in TYPES
        .iter()
        .flat_map(|dtype| [0, 15, 16, 40, 69].map(|i| (*dtype, i)))
    {
        let (n, mut a) = (70, positive(dtype, 70, &mut rng));
        a[bad * (n + 1)] = (-1.0, 0.0);
        let [steps, blocks] = both("Cholesky", dtype, &[(&[n, n], &a)], &[&[n, n]], &[]);
        let (steps, blocks) = (&steps.unwrap()[0], &blocks.unwrap()[0]);
        let places = |l: &[C]| l.iter().map(|x| x.0.is_nan()).collect::<Vec<_>>();
        assert_eq!(places(steps), places(blocks), "{dtype:?} {bad}");
        assert_near(dtype, &blocks[..bad * n], &steps[..bad * n], 1e4);
        // A pivot of 0 divides as a tiny one, and ends nothing.
        let mut a = unit(n);
        a[bad * (n + 1)].0 = 0.0;
        a[(n - 1) * n + bad].0 = if bad + 1 < n { 1e-12 } else { 0.0 };
        let [steps, blocks] = both("Cholesky", dtype, &[(&[n, n], &a)], &[&[n, n]], &[]);
        assert_near(dtype, &blocks.unwrap()[0], &steps.unwrap()[0], 4.0);
    }
}

#[test]
fn lu_gives_its_matrix_back() {
    let mut rng = Rng(3);
    for (dtype, n) in TYPES.iter().flat_map(|dtype| SIZES.map(|n| (*dtype, n))) {
        for a in matrices(dtype, n, n, &mut rng) {
            let [p, l, u] = &fast("LU", dtype, &[(&[n, n], &a)], &[&[n, n][..]; 3], &[])[..] else {
                unreachable!()
            };
            let back = product(&product(p, l, n, n, n), u, n, n, n);
            assert_near(dtype, &back, &a, 10.0 * n as f64);
            assert_eq!(product(p, &adjoint(p, n, n), n, n, n), unit(n));
            assert!(l.iter().all(|x| x.0.hypot(x.1) <= 1.0 + 1e-15));
            assert!((0..n).all(|i| l[i * (n + 1)] == (1.0, 0.0)));
        }
        let a = numbers(dtype, n * n, &mut rng);
        let [steps, blocks] = both("LU", dtype, &[(&[n, n], &a)], &[&[n, n][..]; 3], &[]);
        assert_eq!(steps.unwrap()[0], blocks.unwrap()[0], "{dtype:?} {n}");
    }
}

#[test]
fn determinants_have_signs_and_zeros() {
    let mut rng = Rng(4);
    for (dtype, n) in TYPES
        .iter()
        .flat_map(|dtype| SIZES[3..9].iter().map(|n| (*dtype, *n)))
    {
        let mut a = numbers(dtype, n * n, &mut rng);
        a.iter_mut().for_each(|x| *x = times(*x, (0.25, 0.0)));
        let batch = [&a[..], &unit(n), &adjoint(&a, n, n)].concat();
        let [steps, blocks] = both("Determinant", dtype, &[(&[3, n, n], &batch)], &[&[3]], &[]);
        let (steps, blocks) = (&steps.unwrap()[0], &blocks.unwrap()[0]);
        for (blocks, steps) in blocks.iter().zip(steps) {
            assert_near(dtype, &[*blocks], &[*steps], 1e4);
        }
        let turned: Vec<C> = (0..n * n)
            .map(|at| unit(n)[(at / n + 1) % n * n + at % n])
            .collect();
        let sign = if n.is_multiple_of(2) { -1.0 } else { 1.0 };
        let d = fast("Determinant", dtype, &[(&[n, n], &turned)], &[&[]], &[]);
        assert_eq!(d[0], [(sign, 0.0)]);
        (0..n).for_each(|i| a[i * n + 5] = (0.0, 0.0));
        let d = fast("Determinant", dtype, &[(&[n, n], &a)], &[&[]], &[]);
        assert_eq!(d[0], [(0.0, 0.0)]);
    }
}

#[test]
fn solutions_leave_little() {
    let mut rng = Rng(5);
    for (dtype, n) in TYPES.iter().flat_map(|dtype| SIZES.map(|n| (*dtype, n))) {
        let (a, b) = (
            numbers(dtype, n * n, &mut rng),
            numbers(dtype, n * n.max(10), &mut rng),
        );
        for shape in [&[n][..], &[n, 1], &[n, 10], &[n, n]] {
            let count: usize = shape[1..].iter().product();
            let b = &b[..n * count];
            let x = &fast("Solve", dtype, &[(&[n, n], &a), (shape, b)], &[shape], &[])[0];
            let most = x.iter().fold(1f64, |most, x| most.max(x.0.hypot(x.1)));
            assert_near(
                dtype,
                &product(&a, x, n, n, count),
                b,
                10.0 * n as f64 * most,
            );
            let shape = [&[2], shape].concat();
            let two = [&a[..], &a].concat();
            let sides = [b, b].concat();
            let inputs: [Matrix<'_>; 2] = [(&[2, n, n], &two), (&shape, &sides)];
            let pair = &fast("Solve", dtype, &inputs, &[&shape], &[])[0];
            assert_near(dtype, &pair[n * count..], x, 1e4 * most);
        }
        let mut a = a;
        (0..n).for_each(|i| a[i * n + n / 2] = (0.0, 0.0));
        let inputs: [Matrix<'_>; 2] = [(&[n, n], &a), (&[n], &b[..n])];
        for result in both("Solve", dtype, &inputs, &[&[n]], &[]) {
            assert!(
                result
                    .unwrap_err()
                    .ends_with("can't solve for singular matrix")
            );
        }
    }
}

#[test]
fn triangles_are_solved_from_both_sides() {
    let mut rng = Rng(6);
    let ways = ["none", "transpose", "conjugate"];
    let ways = ways
        .iter()
        .flat_map(|way| (0..4).map(move |bits| (way, bits & 1, bits >> 1)));
    for (way, is_lower, is_left) in ways {
        for (dtype, n) in TYPES
            .iter()
            .flat_map(|dtype| [17, 33, 64, 100].map(|n| (*dtype, n)))
        {
            let mut a = numbers(dtype, n * n, &mut rng);
            (0..n).for_each(|i| a[i * (n + 1)].0 = n as f64);
            let mut read = lower(&a, n);
            if is_lower == 0 {
                read = (0..n * n).map(|at| read[at % n * n + at / n]).collect();
            }
            let b = numbers(dtype, n * 9, &mut rng);
            let attrs = [
                Attr::ints("left_side", [is_left]),
                Attr::ints("lower", [is_lower]),
                Attr::text("transform_a", way),
            ];
            let matrix = if is_left == 1 { [n, 9] } else { [9, n] };
            for shape in [&matrix[..], &[n]] {
                let b = &b[..shape.iter().product()];
                let inputs: [Matrix<'_>; 2] = [(&[n, n], &read), (shape, b)];
                let [steps, blocks] = both("triangular_solve", dtype, &inputs, &[shape], &attrs);
                let steps = &steps.unwrap()[0];
                assert!(steps.iter().all(|x| x.0.is_finite()));
                assert_near(dtype, &blocks.unwrap()[0], steps, 10.0);
            }
            read[(n - 1) * (n + 1)] = (0.0, 0.0);
            let inputs: [Matrix<'_>; 2] = [(&[n, n], &read), (&[n], &b[..n])];
            for result in both("triangular_solve", dtype, &inputs, &[&[n]], &attrs) {
                assert!(
                    result
                        .unwrap_err()
                        .ends_with("can't solve for singular matrix")
                );
            }
        }
    }
}

#[test]
fn what_is_not_finite_or_not_there_ends() {
    let mut rng = Rng(8);
    let n = 50;
    for (dtype, bad) in TYPES
        .iter()
        .flat_map(|x| [f64::NAN, f64::INFINITY].map(|bad| (*x, bad)))
    {
        let mut a = numbers(dtype, n * n, &mut rng);
        a[20 * n + 21].0 = bad;
        a[21 * n + 20].0 = bad;
        let square: [Matrix<'_>; 1] = [(&[n, n], &a)];
        let [steps, blocks] = both("LU", dtype, &square, &[&[n, n][..]; 3], &[]);
        let (steps, blocks) = (steps.unwrap(), blocks.unwrap());
        let places = |x: &[C]| x.iter().map(|x| x.0.is_finite()).collect::<Vec<_>>();
        assert_eq!(places(&steps[1]), places(&blocks[1]), "{dtype:?} {bad}");
        fast(
            "QR",
            dtype,
            &square,
            &[&[n, n][..]; 2],
            &[Attr::text("mode", "reduced")],
        );
        fast("Cholesky", dtype, &square, &[&[n, n]], &[]);
        fast("Determinant", dtype, &square, &[&[]], &[]);
        let nothing: [Matrix<'_>; 1] = [(&[0, n, n], &[])];
        fast("LU", dtype, &nothing, &[&[0, n, n][..]; 3], &[]);
        fast("Determinant", dtype, &nothing, &[&[0]], &[]);
    }
}

/// Sums of squares of such numbers are too large or too small for f64.
#[test]
fn scales_change_nothing() {
    let mut rng = Rng(9);
    let n = 50;
    let a = positive(DType::F64, n, &mut rng);
    for scale in [1e290, 1e-290] {
        let scaled: Vec<C> = a.iter().map(|x| (x.0 * scale, 0.0)).collect();
        let b: Vec<C> = scaled[..n].to_vec();
        let inputs: [Matrix<'_>; 2] = [(&[n, n], &scaled), (&[n], &b)];
        let x = &fast("Solve", DType::F64, &inputs, &[&[n]], &[])[0];
        let first = |i: usize| (f64::from(u8::from(i == 0)), 0.0);
        assert_near(DType::F64, x, &(0..n).map(first).collect::<Vec<C>>(), 1e8);
        let l = &fast("Cholesky", DType::F64, &inputs[..1], &[&[n, n]], &[])[0];
        let root = (1.0 / scale.sqrt(), 0.0);
        let l: Vec<C> = l.iter().map(|x| times(*x, root)).collect();
        let back = product(&l, &adjoint(&l, n, n), n, n, n);
        assert_near(DType::F64, &back, &a, 500.0);
    }
}
