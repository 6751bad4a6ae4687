//! Loops over rows of matrices.

use crate::kernels::{element::Complex, lanes::widest};

type C = Complex<f64>;

widest! {
    /// Takes `by` times `row` from `to`.
    pub(super) fn subtract(to: &mut [f64], by: f64, row: &[f64]) {
        for (to, x) in to.iter_mut().zip(row) {
            *to -= by * x;
        }
    }

    /// The same of complex numbers.
    pub(super) fn subtract_complex(to: &mut [C], by: C, row: &[C]) {
        for (to, x) in to.iter_mut().zip(row) {
            to.re -= by.re * x.re - by.im * x.im;
            to.im -= by.re * x.im + by.im * x.re;
        }
    }

    /// The sum of products.
    pub(super) fn dot(a: &[f64], b: &[f64]) -> f64 {
        let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<32>(), b.as_chunks::<32>());
        let mut sums = [0.0; 32];
        for (a, b) in a.iter().zip(b) {
            sums.iter_mut().zip(a.iter().zip(b)).for_each(|(sum, (x, y))| *sum += x * y);
        }
        let rest = a_rest.iter().zip(b_rest).map(|(x, y)| x * y);
        sums.iter().sum::<f64>() + rest.sum::<f64>()
    }

    /// The sum of products of the conjugates of `a` with `b`.
    pub(super) fn dot_complex(a: &[C], b: &[C]) -> C {
        let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<8>(), b.as_chunks::<8>());
        let mut sums = [[0.0; 2]; 8];
        for (a, b) in a.iter().zip(b) {
            for (sum, (x, y)) in sums.iter_mut().zip(a.iter().zip(b)) {
                sum[0] += x.re * y.re + x.im * y.im;
                sum[1] += x.re * y.im - x.im * y.re;
            }
        }
        let rest = a_rest.iter().zip(b_rest);
        let rest = rest.map(|(x, y)| [x.re * y.re + x.im * y.im, x.re * y.im - x.im * y.re]);
        let add = |all: [f64; 2], one: [f64; 2]| [all[0] + one[0], all[1] + one[1]];
        let [re, im] = sums.into_iter().chain(rest).fold([0.0; 2], add);
        C { re, im }
    }
}
