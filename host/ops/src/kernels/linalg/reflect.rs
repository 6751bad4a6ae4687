//! QR of large matrices: the reflections that `qr` makes one by one, many at a time (Schreiber and Van Loan, "A
//! storage-efficient WY representation for products of Householder transformations", 1989).

use super::{blocked::columns, field::Field, part::Part, qr::mirror};
use crate::kernels::product::Parallelism;

/// Columns that are reflected at a time.
const WIDTH: usize = 16;

/// Reflections one after another, `1 - v t vᴴ`.
struct Reflections<T> {
    /// The first row that they change.
    first: usize,
    /// How many they are, and how many rows they change.
    extents: [usize; 2],
    /// `vᵀ`, and its conjugate.
    v: [Vec<T>; 2],
    /// The upper triangle, negative.
    less_t: Vec<T>,
}

/// As `qr`.
pub(super) fn qr<T: Field>(
    mut a: Vec<T>,
    [m, n, wide]: [usize; 3],
    eps: f64,
    threads: Parallelism,
) -> [Vec<T>; 2] {
    let count = m.min(n);
    let mut all = Vec::new();
    for first in (0..count).step_by(WIDTH) {
        let end = count.min(first + WIDTH);
        let reflections = reflect(&mut a, [m, n], [first, end], eps, threads);
        reflections.apply(true, &mut a[first * n..], n, [end, n], threads);
        all.push(reflections);
    }
    let mut q = vec![T::ZERO; m * wide];
    (0..wide).for_each(|j| q[j * wide + j] = T::ONE);
    for reflections in all.iter().rev() {
        let first = reflections.first;
        reflections.apply(false, &mut q[first * wide..], wide, [first, wide], threads);
    }
    let mut r = a;
    r.resize(wide * n, T::ZERO);
    for (i, row) in r.chunks_exact_mut(n).enumerate() {
        row[..i.min(n)].fill(T::ZERO);
    }
    [q, r]
}

/// Makes those columns of `a` what they are in `r`, from the row of the first one on.
fn reflect<T: Field>(
    a: &mut [T],
    [m, n]: [usize; 2],
    [first, end]: [usize; 2],
    eps: f64,
    threads: Parallelism,
) -> Reflections<T> {
    let (count, height) = (end - first, m - first);
    let mut v = columns(a, n, [first, end]);
    let mut taus = Vec::with_capacity(count);
    for k in 0..count {
        let (done, rest) = v.split_at_mut((k + 1) * height);
        let column = &mut done[k * height..];
        let is_last = m == n && first + k + 1 == n;
        let squares = |below: &[T]| T::dot(below, below).real();
        let (tau, to) = mirror(&mut column[k..], squares, eps, is_last);
        for (i, x) in column[..k].iter_mut().enumerate() {
            a[(first + i) * n + first + k] = *x;
            *x = T::ZERO;
        }
        a[(first + k) * n + first + k] = to;
        taus.push(tau);
        for other in rest.chunks_exact_mut(height) {
            let share = T::dot(&column[k..], &other[k..]).scaled(tau);
            T::subtract(&mut other[k..], share, &column[k..]);
        }
    }
    let conjugate: Vec<T> = v.iter().map(|x| x.conjugate()).collect();
    let factors = [
        Part::new(&conjugate, [count, height], height),
        Part::new(&v, [count, height], height).turned(),
    ];
    let mut products = vec![T::ZERO; count * count];
    T::add_product(&mut products, count, factors, threads);
    Reflections {
        first,
        extents: [count, height],
        less_t: triangle(&taus, &products),
        v: [v, conjugate],
    }
}

/// The triangle of reflections of those factors, of which `products` has the products `vᴴ v`; negative.
fn triangle<T: Field>(taus: &[f64], products: &[T]) -> Vec<T> {
    let n = taus.len();
    let mut less_t = vec![T::ZERO; n * n];
    for (j, tau) in taus.iter().enumerate() {
        for i in 0..j {
            let terms = (i..j).map(|k| less_t[i * n + k] * products[k * n + j]);
            less_t[i * n + j] = T::sum(terms).scaled(-tau);
        }
        less_t[j * n + j] = T::of(-tau);
    }
    less_t
}

impl<T: Field> Reflections<T> {
    /// Reflects the columns from `first` on of what begins `a`, in the order that undoes what the other one does.
    fn apply(
        &self,
        undoes: bool,
        a: &mut [T],
        n: usize,
        [first, end]: [usize; 2],
        threads: Parallelism,
    ) {
        let ([count, height], width) = (self.extents, end - first);
        if width == 0 {
            return;
        }
        let product = |factors: [Part<T>; 2]| {
            let mut product = vec![T::ZERO; count * width];
            T::add_product(&mut product, width, factors, threads);
            product
        };
        let adjoint = Part::new(&self.v[1], self.extents, height);
        let shares = product([adjoint, Part::new(&a[first..], [height, width], n)]);
        let less_t = match undoes {
            true => self.turned_t(),
            false => self.less_t.clone(),
        };
        let less = product([
            Part::new(&less_t, [count, count], count),
            Part::new(&shares, [count, width], width),
        ]);
        let factors = [
            Part::new(&self.v[0], self.extents, height).turned(),
            Part::new(&less, [count, width], width),
        ];
        T::add_product(&mut a[first..], n, factors, threads);
    }

    /// The adjoint of the triangle.
    fn turned_t(&self) -> Vec<T> {
        let [count, _] = self.extents;
        let turned = Part::new(&self.less_t, [count, count], count).turned();
        turned.map(|x| x.conjugate())
    }
}
