//! Householder's reflectors, many of them applied at once by products of matrices. Schreiber and Van Loan (1989), A
//! storage-efficient WY representation for products of Householder transformations.

use super::{
    field::Field,
    part::{Part, add_product},
};
use crate::kernels::{crew, parallel, product::Parallelism};

/// Reflectors of a block.
pub(super) const BLOCK: usize = 32;

/// Multiplications from which on other cores help.
const TASK: usize = 1 << 18;

/// What is smaller does not count beside a matrix of norm 1; squares of what is not smaller do not underflow.
pub(super) const TINY: f64 = 1e-140;

/// Makes a reflector of a vector that leaves only its `head`, which is 1 then; gives its factor and what is left.
pub(super) fn mirror<T: Field>(head: &mut T, others: &mut [T]) -> (f64, T) {
    let x = std::mem::replace(head, T::ONE);
    let tail: f64 = others.iter().map(|x| x.square()).sum();
    if tail <= TINY * TINY {
        return (0.0, x);
    }
    let norm = (tail + x.square()).sqrt();
    let reach = x.magnitude() + norm;
    let inverse = x.phase().conjugate().scaled(1.0 / reach);
    others.iter_mut().for_each(|x| *x = *x * inverse);
    let tau = 2.0 * reach * reach / (tail + reach * reach);
    (tau, x.phase().scaled(-norm))
}

/// A product of reflectors `I - tau v vᵀ`.
#[derive(Debug)]
pub(super) struct Block {
    /// One after another.
    vectors: Vec<f64>,
    len: usize,
    /// What makes `I + vectorsᵀ factor vectors` of them.
    factor: Vec<f64>,
    count: usize,
}

impl Block {
    /// Of vectors of `len` elements, in the order in which they are applied.
    pub(super) fn new(vectors: Vec<f64>, len: usize, taus: &[f64]) -> Block {
        let count = taus.len();
        let mut products = vec![0.0; count * count];
        let all = Part::new(&vectors, [count, len], len);
        add_product(&mut products, count, [all, all.turned()], Parallelism::None);
        let mut factor = vec![0.0; count * count];
        for (j, tau) in taus.iter().enumerate() {
            for i in 0..j {
                let terms = (i..j).map(|l| factor[i * count + l] * products[l * count + j]);
                factor[i * count + j] = -tau * terms.sum::<f64>();
            }
            factor[j * count + j] = -tau;
        }
        Block {
            vectors,
            len,
            factor,
            count,
        }
    }

    /// Multiplies by it, or by its transpose, the elements from `first` on of each row; rows lie `stride` apart.
    pub(super) fn apply(&self, rows: &mut [f64], stride: usize, first: usize, transposed: bool) {
        let Block { len, count, .. } = *self;
        let vectors = Part::new(&self.vectors, [count, len], len);
        let factor = Part::new(&self.factor, [count, count], count);
        let factor = if transposed { factor.turned() } else { factor };
        let all = rows.len().div_ceil(stride).max(1);
        let together = match all * len * count < TASK {
            true => all,
            false => all.div_ceil(2 * crew::cores()).max(8),
        };
        parallel::for_each_part(rows, together * stride, &|_, rows| {
            let own = rows.len().div_ceil(stride);
            let product = |factors: [Part<f64>; 2]| {
                let mut product = vec![0.0; own * count];
                add_product(&mut product, count, factors, Parallelism::None);
                product
            };
            let within = product([
                Part::new(&rows[first..], [own, len], stride),
                vectors.turned(),
            ]);
            let shares = product([Part::new(&within, [own, count], count), factor]);
            let factors = [Part::new(&shares, [own, count], count), vectors];
            add_product(&mut rows[first..], stride, factors, Parallelism::None);
        });
    }
}
