//! One factor of a Fourier transform, of rows whose real and imaginary parts lie apart.

use super::widest;
use crate::kernels::element::Complex;

/// Elements that are transformed at a time.
const STEP: usize = 64;
/// The largest factor.
pub(in crate::kernels) const LARGEST: usize = 31;

/// Real and imaginary parts.
pub(in crate::kernels) type Parts = [Vec<f64>; 2];

/// What one factor of a length takes.
#[derive(Debug)]
pub(in crate::kernels) struct Stage {
    factor: usize,
    /// The product of the factors before it.
    done: usize,
    /// What each term is multiplied by, as often as fits into a step: of each term `period` elements.
    twiddles: Parts,
    period: usize,
    /// Powers of exp(-2πi/factor).
    roots: Parts,
}

impl Stage {
    /// Of a transform whose roots of unity are `roots`.
    pub(in crate::kernels) fn new(factor: usize, done: usize, roots: &[Complex<f64>]) -> Stage {
        let n = roots.len();
        let period = if done < STEP {
            STEP / done * done
        } else {
            done
        };
        let twiddle =
            |t: usize| (0..period).map(move |j| roots[t * (j % done) * (n / (done * factor))]);
        let split = |all: &[Complex<f64>]| {
            [
                all.iter().map(|x| x.re).collect(),
                all.iter().map(|x| x.im).collect(),
            ]
        };
        let powers: Vec<_> = (0..factor).map(|k| roots[k * (n / factor)]).collect();
        Stage {
            factor,
            done,
            twiddles: split(&(0..factor).flat_map(twiddle).collect::<Vec<_>>()),
            period,
            roots: split(&powers),
        }
    }

    /// Stockham's order, which needs no sorting of indices: Van Loan 1992, section 1.7.
    pub(in crate::kernels) fn run(&self, from: &Parts, to: &mut Parts) {
        match self.factor {
            2 => two(self, from, to),
            3 => three(self, from, to),
            4 => four(self, from, to),
            5 => five(self, from, to),
            _ => any_factor(self, from, to),
        }
    }
}

widest! {
    fn two(stage: &Stage, from: &Parts, to: &mut Parts) {
        run(stage, 2, &mut [[[0.0; STEP]; 2]; 2], from, to);
    }

    fn three(stage: &Stage, from: &Parts, to: &mut Parts) {
        run(stage, 3, &mut [[[0.0; STEP]; 2]; 3], from, to);
    }

    fn four(stage: &Stage, from: &Parts, to: &mut Parts) {
        run(stage, 4, &mut [[[0.0; STEP]; 2]; 4], from, to);
    }

    fn five(stage: &Stage, from: &Parts, to: &mut Parts) {
        run(stage, 5, &mut [[[0.0; STEP]; 2]; 5], from, to);
    }

    fn any_factor(stage: &Stage, from: &Parts, to: &mut Parts) {
        run(stage, stage.factor, &mut [[[0.0; STEP]; 2]; LARGEST], from, to);
    }
}

/// `factor` is that of the stage: where it is a constant, the loops over it are none.
#[inline(always)]
fn run(stage: &Stage, factor: usize, terms: &mut [[[f64; STEP]; 2]], from: &Parts, to: &mut Parts) {
    let (done, stride) = (stage.done, from[0].len() / factor);
    let mut start = 0;
    while start < stride {
        // Whole rows of `done` elements, or a part of one.
        let k = start % done;
        let most = if done < STEP {
            stage.period
        } else {
            STEP.min(done - k)
        };
        let length = most.min(stride - start);
        for (t, [re, im]) in terms.iter_mut().enumerate().take(factor) {
            let x = [0, 1].map(|part: usize| &from[part][t * stride + start..][..length]);
            if t == 0 || done == 1 {
                re[..length].copy_from_slice(x[0]);
                im[..length].copy_from_slice(x[1]);
                continue;
            }
            let w =
                [0, 1].map(|part: usize| &stage.twiddles[part][t * stage.period + k..][..length]);
            for i in 0..length {
                re[i] = x[0][i] * w[0][i] - x[1][i] * w[1][i];
                im[i] = x[0][i] * w[1][i] + x[1][i] * w[0][i];
            }
        }
        let place = Place {
            first: (start - k) * factor + k,
            done,
            factor,
            length,
        };
        match (factor, &mut *terms) {
            (2, [a, b]) => {
                for part in 0..2 {
                    for i in 0..STEP {
                        (a[part][i], b[part][i]) =
                            (a[part][i] + b[part][i], a[part][i] - b[part][i]);
                    }
                }
                place.store(0, a, to);
                place.store(1, b, to);
            }
            (4, [a, b, c, d]) => {
                for part in 0..2 {
                    for i in 0..STEP {
                        let (even, odd) = (a[part][i] + c[part][i], b[part][i] + d[part][i]);
                        let (rest, other) = (a[part][i] - c[part][i], b[part][i] - d[part][i]);
                        (a[part][i], c[part][i]) = (even + odd, even - odd);
                        (b[part][i], d[part][i]) = (rest, other);
                    }
                }
                // The other half times -i and i.
                let ([b_re, b_im], [d_re, d_im]) = (&mut *b, &mut *d);
                for i in 0..STEP {
                    let (re, im) = (d_im[i], -d_re[i]);
                    (d_re[i], d_im[i]) = (b_re[i] - re, b_im[i] - im);
                    (b_re[i], b_im[i]) = (b_re[i] + re, b_im[i] + im);
                }
                if done == 1 {
                    for (part, to) in to.iter_mut().enumerate() {
                        let to = to[4 * start..][..4 * length].chunks_exact_mut(4);
                        for (i, to) in to.enumerate() {
                            to.copy_from_slice(&[a[part][i], b[part][i], c[part][i], d[part][i]]);
                        }
                    }
                } else {
                    place.store(0, a, to);
                    place.store(1, b, to);
                    place.store(2, c, to);
                    place.store(3, d, to);
                }
            }
            _ => {
                for q in 0..factor {
                    let mut sums = [[0.0; STEP]; 2];
                    let [re, im] = &mut sums;
                    for i in 0..STEP {
                        let mut sum = (0.0, 0.0);
                        for (t, [x, y]) in terms.iter().enumerate().take(factor) {
                            let at = q * t % factor;
                            let w = (stage.roots[0][at], stage.roots[1][at]);
                            sum.0 += x[i] * w.0 - y[i] * w.1;
                            sum.1 += x[i] * w.1 + y[i] * w.0;
                        }
                        (re[i], im[i]) = sum;
                    }
                    place.store(q, &sums, to);
                }
            }
        }
        start += length;
    }
}

/// Where the elements of a step go.
struct Place {
    first: usize,
    done: usize,
    factor: usize,
    length: usize,
}

impl Place {
    /// Stores the sums for the power `q`: rows of `done` elements, `done * factor` apart.
    #[inline(always)]
    fn store(&self, q: usize, sums: &[[f64; STEP]; 2], to: &mut Parts) {
        let (done, step) = (self.done, self.done * self.factor);
        let first = self.first + q * done;
        for (to, sums) in to.iter_mut().zip(sums) {
            let sums = &sums[..self.length];
            match done {
                1 => rows::<1>(&mut to[first..], sums, step),
                2 => rows::<2>(&mut to[first..], sums, step),
                4 => rows::<4>(&mut to[first..], sums, step),
                8 => rows::<8>(&mut to[first..], sums, step),
                16 => rows::<16>(&mut to[first..], sums, step),
                _ => {
                    for (sums, at) in sums.chunks(done).zip((first..).step_by(step)) {
                        to[at..at + sums.len()].copy_from_slice(sums);
                    }
                }
            }
        }
    }
}

/// Copies rows of `N` elements: short ones would be calls.
#[inline(always)]
fn rows<const N: usize>(to: &mut [f64], sums: &[f64], step: usize) {
    let (sums, _) = sums.as_chunks::<N>();
    for (sums, to) in sums.iter().zip(to.chunks_mut(step)) {
        to[..N].copy_from_slice(sums);
    }
}
