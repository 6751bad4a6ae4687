//! Discrete Fourier transforms in f64: by factors of the length, and by a convolution where one is a large prime (Bluestein
//! 1970).

mod roots;

use super::{
    element::{Complex, Register},
    lanes::stage::{LARGEST, Parts, Stage},
    operand::{BLOCK, Operand},
    parallel,
};
use crate::{
    attrs::{Attr, ints, number},
    view::{Out, Outcome, View},
};
use nx_vulkan_abi::{DType, dtype::Class};
use roots::{factors, root, roots};
use std::{
    mem::swap,
    sync::{Arc, Mutex, PoisonError},
};

type C = Complex<f64>;

/// Elements of the rows that are one piece of work.
const PIECE: usize = 1 << 14;
/// Rows along an axis that is not the last which are read together.
const COLUMNS: usize = 16;

pub(crate) fn run(op: &str, inputs: &[View], outputs: &mut [Out], attrs: &[Attr]) -> Outcome {
    let ([x], [out]) = (inputs, outputs) else {
        return Err("expected one operand and one result".to_owned());
    };
    let eps = number(attrs, "eps").unwrap_or(0.0);
    let inverse = matches!(op, "ifft" | "Nx.Block.IFFT2" | "Nx.Block.IRFFT");
    let mut field = Field::read(x);
    let (axes, lengths) = match ints(attrs, "axes") {
        [] => (ints(attrs, "axis"), ints(attrs, "length")),
        axes => (axes, ints(attrs, "lengths")),
    };
    for (&axis, &length) in axes.iter().zip(lengths).rev() {
        let (axis, length) = (axis as usize, length as usize);
        let transform = Transform::kept(length, inverse);
        let extent = match op {
            "Nx.Block.RFFT" => length / 2 + 1,
            _ => length,
        };
        field = field.along(axis, extent, &|row, work, to| {
            match op {
                "Nx.Block.IRFFT" => transform.run(&mirror(row, length), work, to),
                _ => transform.run(row, work, to),
            }
            clean(to, eps);
        });
    }
    field.write(out)
}

/// A tensor in row-major order.
struct Field {
    shape: Vec<u64>,
    values: Vec<C>,
}

impl Field {
    fn read(x: &View) -> Field {
        let shape = x.shape.to_vec();
        let count = shape.iter().product::<u64>() as usize;
        if count == 0 {
            let values = Vec::new();
            return Field { shape, values };
        }
        // A complex number is an axis of two floats.
        let parts = if is_complex(x.dtype) { 2 } else { 1 };
        let all = [x.shape, &[parts]].concat();
        let mut strides: Vec<i64> = x.strides.iter().map(|s| s * parts as i64).collect();
        strides.push(1);
        let view = View {
            dtype: x.dtype.part(),
            shape: &all,
            strides: &strides,
            offset: x.offset * parts,
            bytes: x.bytes,
        };
        let mut floats = vec![0f64; count * parts as usize];
        Operand::new(&view, &all, strides.clone()).gather(0, 0, &mut floats);
        let value = |part: &[f64]| C {
            re: part[0],
            im: part.get(1).copied().unwrap_or(0.0),
        };
        let values = floats.chunks_exact(parts as usize).map(value).collect();
        Field { shape, values }
    }

    /// The rows along `axis` as `of` makes them, of `extent` elements each.
    fn along(&self, axis: usize, extent: usize, of: &Rows) -> Field {
        let own = self.shape[axis] as usize;
        let inner = self.shape[axis + 1..].iter().product::<u64>() as usize;
        let outer = self.shape[..axis].iter().product::<u64>() as usize;
        let mut shape = self.shape.clone();
        shape[axis] = extent as u64;
        let rows = outer * inner;
        let mut values = vec![C::default(); rows * extent];
        if rows == 0 {
            return Field { shape, values };
        }
        let piece = (PIECE / extent).clamp(1, rows);
        if inner == 1 {
            parallel::for_each_part(&mut values, piece * extent, &|at, to| {
                let mut work = Work::default();
                for (to, at) in to.chunks_mut(extent).zip(at * piece..) {
                    of(&self.values[at * own..][..own], &mut work, to);
                }
            });
            return Field { shape, values };
        }
        // Neighbours are read and stored together.
        let columns = COLUMNS.min(inner);
        let strips = inner.div_ceil(columns);
        let done = parallel::collect(outer * strips, |at| {
            let first = at % strips * columns;
            let count = columns.min(inner - first);
            let start = at / strips * own * inner + first;
            let mut block = vec![C::default(); count * own];
            // An axis may be empty: its rows are zeros.
            let from = self.values.get(start..).unwrap_or_default();
            for (i, row) in from.chunks(inner).take(own).enumerate() {
                let to = block[i..].iter_mut().step_by(own);
                to.zip(&row[..count]).for_each(|(to, value)| *to = *value);
            }
            let mut made = vec![C::default(); count * extent];
            let mut work = Work::default();
            for (i, to) in made.chunks_mut(extent).enumerate() {
                of(&block[i * own..][..own], &mut work, to);
            }
            made
        });
        for (at, made) in done.into_iter().enumerate() {
            let start = at / strips * extent * inner + at % strips * columns;
            let count = made.len() / extent;
            for (i, to) in values[start..].chunks_mut(inner).take(extent).enumerate() {
                let from = made[i..].iter().step_by(extent);
                to[..count]
                    .iter_mut()
                    .zip(from)
                    .for_each(|(to, value)| *to = *value);
            }
        }
        Field { shape, values }
    }

    fn write(&self, out: &mut Out) -> Outcome {
        let parts = if is_complex(out.dtype) { 2 } else { 1 };
        let (dtype, size) = (out.dtype.part(), out.dtype.size() as usize);
        parallel::for_each_chunk(out.bytes, PIECE * size, &|at, bytes| {
            let values = &self.values[at * PIECE..][..bytes.len() / size];
            let mut floats = [0.0; BLOCK];
            let blocks = bytes.chunks_mut(BLOCK / 2 * size);
            for (values, bytes) in values.chunks(BLOCK / 2).zip(blocks) {
                for (to, value) in floats.chunks_exact_mut(parts).zip(values) {
                    let both = [value.re, value.im];
                    to.copy_from_slice(&both[..parts]);
                }
                f64::store(&floats[..values.len() * parts], dtype, bytes);
            }
            Ok(())
        })
    }
}

/// Whether it has two parts, computed with elsewhere or not.
fn is_complex(dtype: DType) -> bool {
    dtype.class() == Some(Class::Complex)
}

/// The whole spectrum of a real row of `length` elements from its first half.
fn mirror(row: &[C], length: usize) -> Vec<C> {
    let half = length / 2 + 1;
    let mut row = row[..row.len().min(half)].to_vec();
    row.resize(half, C::default());
    row.extend(
        (half..length)
            .map(|i| length - i)
            .map(|i| conjugate(row[i]))
            .collect::<Vec<_>>(),
    );
    row
}

fn clean(row: &mut [C], eps: f64) {
    let part = |x: f64| if x.abs() <= eps { 0.0 } else { x };
    for value in row {
        *value = C {
            re: part(value.re),
            im: part(value.im),
        };
    }
}

/// What becomes of a row.
type Rows<'a> = dyn Fn(&[C], &mut Work, &mut [C]) + Sync + 'a;

/// What a transform computes in: what a stage reads, and what it makes of that.
#[derive(Default)]
struct Work {
    from: Parts,
    to: Parts,
}

/// A transform of one length in one direction.
struct Transform {
    length: usize,
    inverse: bool,
    stages: Vec<Stage>,
    chirp: Option<Box<Chirp>>,
}

/// exp(-πi j²/n), and the transform of its conjugate.
struct Chirp {
    values: Vec<C>,
    filter: Vec<C>,
    padded: Transform,
}

/// Transforms that were used last, the latest one first.
static KEPT: Mutex<Vec<Arc<Transform>>> = Mutex::new(Vec::new());
/// Transforms that are kept, and elements of the longest, of its padded rows if it has any: about 40 bytes each.
const MOST_KEPT: usize = 8;
const LONGEST_KEPT: usize = 1 << 16;

impl Transform {
    /// One that was used before, or a new one.
    fn kept(n: usize, inverse: bool) -> Arc<Transform> {
        let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
        let is_it = |of: &Arc<Transform>| (of.length, of.inverse) == (n, inverse);
        if let Some(at) = kept.iter().position(is_it) {
            kept[..=at].rotate_right(1);
            return kept[0].clone();
        }
        drop(kept);
        let made = Arc::new(Transform::new(n, inverse));
        let chirp = made.chirp.as_ref();
        if chirp.map_or(n, |chirp| chirp.filter.len()) <= LONGEST_KEPT {
            let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
            kept.truncate(MOST_KEPT - 1);
            kept.insert(0, made.clone());
        }
        made
    }

    fn new(n: usize, inverse: bool) -> Transform {
        let factors = factors(n);
        let mut transform = Transform {
            length: n,
            inverse,
            stages: Vec::new(),
            chirp: None,
        };
        if factors.iter().any(|factor| *factor > LARGEST) {
            transform.chirp = Some(Box::new(Chirp::new(n)));
            return transform;
        }
        let (roots, mut done) = (roots(n), 1);
        for factor in factors {
            transform.stages.push(Stage::new(factor, done, &roots));
            done *= factor;
        }
        transform
    }

    /// The first elements of the transform of a row, which is cut or goes on with zeros.
    fn run(&self, row: &[C], work: &mut Work, to: &mut [C]) {
        let n = self.length;
        let row = &row[..row.len().min(n)];
        if let Some(chirp) = &self.chirp {
            let conjugated = |x: &C| if self.inverse { conjugate(*x) } else { *x };
            let mut whole: Vec<C> = row.iter().map(conjugated).collect();
            whole.resize(n, C::default());
            to.copy_from_slice(&chirp.run(&whole, work)[..to.len()]);
        } else {
            let sign = if self.inverse { -1.0 } else { 1.0 };
            let [re, im] = &mut work.from;
            re.clear();
            re.extend(row.iter().map(|x| x.re));
            im.clear();
            im.extend(row.iter().map(|x| sign * x.im));
            for part in [re, im] {
                part.resize(n, 0.0);
            }
            for part in &mut work.to {
                part.resize(n, 0.0);
            }
            for stage in &self.stages {
                stage.run(&work.from, &mut work.to);
                swap(&mut work.from, &mut work.to);
            }
            let [re, im] = &work.from;
            for ((to, re), im) in to.iter_mut().zip(re).zip(im) {
                *to = C { re: *re, im: *im };
            }
        }
        if self.inverse {
            let n = n as f64;
            for x in to {
                *x = C {
                    re: x.re / n,
                    im: -x.im / n,
                };
            }
        }
    }
}

impl Chirp {
    fn new(n: usize) -> Chirp {
        let size = (2 * n - 1).next_power_of_two();
        let padded = Transform::new(size, false);
        let whole = 2 * n as u128;
        let value = |j: usize| root(((j as u128).pow(2) % whole) as u64, whole as u64);
        let values: Vec<C> = (0..n).map(value).collect();
        let mut filter = vec![C::default(); size];
        for (j, value) in values.iter().enumerate() {
            filter[j] = conjugate(*value);
            filter[(size - j) % size] = filter[j];
        }
        let mut transformed = vec![C::default(); size];
        padded.run(&filter, &mut Work::default(), &mut transformed);
        let filter = transformed;
        Chirp {
            values,
            filter,
            padded,
        }
    }

    fn run(&self, row: &[C], work: &mut Work) -> Vec<C> {
        let (n, size) = (row.len(), self.filter.len());
        let pairs = row.iter().zip(&self.values);
        let long: Vec<C> = pairs.map(|(x, chirp)| multiply(*x, *chirp)).collect();
        let mut spectrum = vec![C::default(); size];
        self.padded.run(&long, work, &mut spectrum);
        for (x, filter) in spectrum.iter_mut().zip(&self.filter) {
            *x = conjugate(multiply(*x, *filter));
        }
        let mut back = vec![C::default(); n];
        self.padded.run(&spectrum, work, &mut back);
        for (x, chirp) in back.iter_mut().zip(&self.values) {
            let scaled = multiply(conjugate(*x), *chirp);
            *x = C {
                re: scaled.re / size as f64,
                im: scaled.im / size as f64,
            };
        }
        back
    }
}

fn conjugate(x: C) -> C {
    C {
        re: x.re,
        im: -x.im,
    }
}

fn multiply(a: C, b: C) -> C {
    C {
        re: a.re * b.re - a.im * b.im,
        im: a.re * b.im + a.im * b.re,
    }
}
