//! Discrete Fourier transforms in f64: by factors of the length, and by a convolution where one is a large prime (Bluestein
//! 1970).

use super::{
    element::{Complex, Register},
    lanes::stage::{LARGEST, Stage},
    operand::{BLOCK, Operand},
    parallel,
};
use crate::{
    attrs::{Attr, ints, number},
    view::{Out, Outcome, View},
};
use nx_vulkan_abi::{DType, dtype::Class};
use std::mem::swap;

type C = Complex<f64>;

/// Elements of the rows that are one piece of work.
const PIECE: usize = 1 << 14;

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
        let transform = Transform::new(length, inverse);
        field = match op {
            "Nx.Block.RFFT" => field.along(axis, length / 2 + 1, &|row| {
                clean(transform.run(fit(row, length)), eps)
            }),
            "Nx.Block.IRFFT" => field.along(axis, length, &|row| {
                clean(transform.run(mirror(row, length)), eps)
            }),
            _ => field.along(axis, length, &|row| {
                clean(transform.run(fit(row, length)), eps)
            }),
        };
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
    fn along(&self, axis: usize, extent: usize, of: &(dyn Fn(&[C]) -> Vec<C> + Sync)) -> Field {
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
        let row = |row: usize| {
            let start = row / inner * own * inner + row % inner;
            let own: Vec<C> = (0..own).map(|i| self.values[start + i * inner]).collect();
            of(&own)
        };
        if inner == 1 {
            parallel::for_each_part(&mut values, piece * extent, &|at, to| {
                for (to, at) in to.chunks_mut(extent).zip(at * piece..) {
                    let made = of(&self.values[at * own..][..own]);
                    to.copy_from_slice(&made[..extent]);
                }
            });
            return Field { shape, values };
        }
        let done = parallel::collect(rows.div_ceil(piece), |at| {
            let range = at * piece..rows.min((at + 1) * piece);
            range.map(row).collect::<Vec<_>>()
        });
        for (row, made) in done.into_iter().flatten().enumerate() {
            let start = row / inner * extent * inner + row % inner;
            let to = values[start..].iter_mut().step_by(inner);
            to.zip(made).for_each(|(to, value)| *to = value);
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

fn fit(row: &[C], length: usize) -> Vec<C> {
    let mut row = row[..row.len().min(length)].to_vec();
    row.resize(length, C::default());
    row
}

/// The whole spectrum of a real row of `length` elements from its first half.
fn mirror(row: &[C], length: usize) -> Vec<C> {
    let half = fit(row, length / 2 + 1);
    let other = (half.len()..length).map(|i| conjugate(half[length - i]));
    half.iter().copied().chain(other).collect()
}

fn clean(mut row: Vec<C>, eps: f64) -> Vec<C> {
    let part = |x: f64| if x.abs() <= eps { 0.0 } else { x };
    for value in &mut row {
        *value = C {
            re: part(value.re),
            im: part(value.im),
        };
    }
    row
}

/// A transform of one length in one direction.
struct Transform {
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

impl Transform {
    fn new(n: usize, inverse: bool) -> Transform {
        let factors = factors(n);
        let mut transform = Transform {
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

    fn run(&self, row: Vec<C>) -> Vec<C> {
        if !self.inverse {
            return self.forward(row);
        }
        let n = row.len() as f64;
        let row = self.forward(row.into_iter().map(conjugate).collect());
        let scaled = row.into_iter().map(|x| C {
            re: x.re / n,
            im: -x.im / n,
        });
        scaled.collect()
    }

    fn forward(&self, row: Vec<C>) -> Vec<C> {
        match &self.chirp {
            Some(chirp) => chirp.run(&row),
            None => self.by_factors(row),
        }
    }

    fn by_factors(&self, row: Vec<C>) -> Vec<C> {
        let mut from = [
            row.iter().map(|x| x.re).collect(),
            row.iter().map(|x| x.im).collect(),
        ];
        let mut to = [vec![0.0; row.len()], vec![0.0; row.len()]];
        for stage in &self.stages {
            stage.run(&from, &mut to);
            swap(&mut from, &mut to);
        }
        let [re, im] = from;
        re.into_iter()
            .zip(im)
            .map(|(re, im)| C { re, im })
            .collect()
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
        let filter = padded.run(filter);
        Chirp {
            values,
            filter,
            padded,
        }
    }

    fn run(&self, row: &[C]) -> Vec<C> {
        let (n, size) = (row.len(), self.filter.len());
        let pairs = row.iter().zip(&self.values);
        let mut long: Vec<C> = pairs.map(|(x, chirp)| multiply(*x, *chirp)).collect();
        long.resize(size, C::default());
        let spectrum = self.padded.run(long);
        let product = spectrum.iter().zip(&self.filter);
        let product = product.map(|(x, filter)| conjugate(multiply(*x, *filter)));
        let back = self.padded.run(product.collect());
        let each = back.iter().take(n).zip(&self.values);
        let scaled = each.map(|(x, chirp)| multiply(conjugate(*x), *chirp));
        scaled
            .map(|x| C {
                re: x.re / size as f64,
                im: x.im / size as f64,
            })
            .collect()
    }
}

fn factors(mut n: usize) -> Vec<usize> {
    let mut all = Vec::new();
    let mut factor = 4;
    while n > 1 {
        while n.is_multiple_of(factor) {
            all.push(factor);
            n /= factor;
        }
        factor = match factor {
            4 => 2,
            2 => 3,
            _ if factor * factor > n => n,
            _ => factor + 2,
        };
    }
    all
}

/// exp(-2πi k/n) for every k < n. An eighth of a circle holds them all.
fn roots(n: usize) -> Vec<C> {
    if !n.is_multiple_of(8) {
        return (0..n).map(|k| root(k as u64, n as u64)).collect();
    }
    let eighth: Vec<C> = (0..=n / 8).map(|k| root(k as u64, n as u64)).collect();
    let quarter = (0..n / 4).map(|k| match k <= n / 8 {
        true => eighth[k],
        false => C {
            re: -eighth[n / 4 - k].im,
            im: -eighth[n / 4 - k].re,
        },
    });
    let quarter: Vec<C> = quarter.collect();
    let turn = |turns: usize| {
        let of = move |x: &C| match turns {
            0 => *x,
            1 => C {
                re: x.im,
                im: -x.re,
            },
            2 => C {
                re: -x.re,
                im: -x.im,
            },
            _ => C {
                re: -x.im,
                im: x.re,
            },
        };
        quarter.iter().map(of)
    };
    (0..4).flat_map(turn).collect()
}

/// exp(-2πi k/n) for k < n, from an angle of at most an eighth of a circle.
fn root(k: u64, n: u64) -> C {
    let (quarter, rest) = ((4 * k) / n, (4 * k) % n);
    let angle = |of: u64| of as f64 / n as f64 * std::f64::consts::FRAC_PI_2;
    let (cos, sin) = match 2 * rest > n {
        true => (angle(n - rest).sin(), angle(n - rest).cos()),
        false => (angle(rest).cos(), angle(rest).sin()),
    };
    let (re, im) = match quarter {
        0 => (cos, -sin),
        1 => (-sin, -cos),
        2 => (-cos, sin),
        _ => (sin, cos),
    };
    C { re, im }
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
