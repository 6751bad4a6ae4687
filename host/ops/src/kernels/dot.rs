//! `dot`: products of matrices, tile by tile. Each tile of the operands is converted and packed, then multiplied.

use nx_vulkan_abi::dtype::{Class, DType};

use super::convert::Factor;
use super::direct;
use super::element::{Complex, Register};
use super::elementwise::is_single;
use super::kernel::Sums;
use super::lanes::{AddProducts, TERMS};
use super::number::Ring;
use super::operand::Operand;
use super::parallel;
use super::product::{Matmul, Matrix, Parallelism};
use super::widened;
use crate::attrs::{Attr, ints};
use crate::view::{Out, Outcome, View};

/// Rows, columns and depth of a tile. They fix the order of summation, so they depend on nothing.
const ROWS: usize = 128;
const COLUMNS: usize = 256;
const DEPTH: usize = 1024;
/// Multiplications, of so many matrices at most, up to which sums are wide whoever asks: at most some us more.
const FEW: u64 = 1 << 16;
const FEW_MATRICES: u64 = 32;

pub(crate) fn run(a: &View, b: &View, out: &mut Out, attrs: &[Attr], sums: Sums) -> Outcome {
    if a.shape.contains(&0) || b.shape.contains(&0) {
        out.bytes.fill(0);
        return Ok(());
    }
    let (a, b) = (Factor::new(a, out.dtype)?, Factor::new(b, out.dtype)?);
    let (a, b) = (&a.view(), &b.view());
    let batch = ints(attrs, "batch_a").len();
    let contracted = ints(attrs, "contract_a").iter();
    let depth: u64 = contracted.map(|axis| a.shape[*axis as usize]).product();
    let matrices: u64 = out.shape.iter().take(batch).product();
    let work = out.shape.iter().product::<u64>().saturating_mul(depth);
    let sums = match work <= FEW && matrices <= FEW_MATRICES {
        true => Sums::Wide,
        false => sums,
    };
    if sums == Sums::Own && (direct::run(a, b, out, attrs) || widened::run(a, b, out, attrs)) {
        return Ok(());
    }
    let a = Matrices::new(a, batch, ints(attrs, "contract_a"));
    let b = Matrices::new(b, batch, ints(attrs, "contract_b"));
    let dtype = out.dtype;
    match (dtype.class(), dtype.size()) {
        (Some(Class::Unsigned | Class::Signed), 8) => {
            multiply(&a, &b, out, &read::<i64>, &integer_tile::<i64>)
        }
        (Some(Class::Unsigned | Class::Signed), _) => {
            multiply(&a, &b, out, &read::<i32>, &integer_tile::<i32>)
        }
        (Some(Class::Float), 0..=4) if sums == Sums::Own => {
            multiply(&a, &b, out, &read::<f32>, &float_tile::<f32>)
        }
        (Some(Class::Float), _) => {
            let single = is_single(dtype);
            let wide =
                |from: &Operand, start: u64, to: &mut [f64]| from.gather_wide(single, 0, start, to);
            multiply(&a, &b, out, &wide, &float_tile::<f64>)
        }
        (Some(Class::Complex), size) => {
            let single = |from: &Operand, start: u64, to: &mut [Complex<f64>]| match size {
                8 => from.gather_through::<Complex<f32>, _>(0, start, to),
                _ => from.gather(0, start, to),
            };
            multiply(&a, &b, out, &single, &ring_tile::<Complex<f64>>)
        }
        (None, _) => Err(format!("it is not computed in {dtype}")),
    }
}

/// An operand as a batch of matrices: free axes by contracted axes, whichever order reads memory in stride.
struct Matrices<'a> {
    operand: Operand<'a>,
    free: usize,
    depth: usize,
    /// Whether the contracted axes are the outer ones.
    depth_first: bool,
}

impl<'a> Matrices<'a> {
    fn new(x: &View<'a>, batch: usize, contract: &[i64]) -> Matrices<'a> {
        let contracted: Vec<usize> = contract.iter().map(|axis| *axis as usize).collect();
        let free: Vec<usize> = (batch..x.shape.len())
            .filter(|axis| !contracted.contains(axis))
            .collect();
        let product =
            |axes: &[usize]| axes.iter().map(|axis| x.shape[*axis]).product::<u64>() as usize;
        let step = |axes: &[usize]| {
            let moving = axes.iter().rev().find(|axis| x.shape[**axis] > 1);
            moving.map_or(u64::MAX, |axis| x.strides[*axis].unsigned_abs())
        };
        let depth_first = step(&free) < step(&contracted);
        let mut order: Vec<usize> = (0..batch).collect();
        let (outer, inner) = if depth_first {
            (&contracted, &free)
        } else {
            (&free, &contracted)
        };
        order.extend(outer.iter().chain(inner));
        let shape: Vec<u64> = order.iter().map(|axis| x.shape[*axis]).collect();
        let operand = Operand::new(
            x,
            &shape,
            order.iter().map(|axis| x.strides[*axis]).collect(),
        );
        Matrices {
            operand,
            free: product(&free),
            depth: product(&contracted),
            depth_first,
        }
    }

    /// Packs the tile of the matrix number `batch` that starts at `free` and `depth`.
    fn pack<R>(
        &self,
        batch: usize,
        free: Range,
        depth: Range,
        read: Read<R>,
        to: &mut Vec<R>,
    ) -> Strides
    where
        R: Register,
    {
        let (outer, inner, width) = if self.depth_first {
            (depth, free, self.free)
        } else {
            (free, depth, self.depth)
        };
        to.resize(outer.len * inner.len, R::default());
        let corner = batch * self.free * self.depth + inner.start;
        for (i, row) in to.chunks_mut(inner.len).enumerate() {
            read(
                &self.operand,
                (corner + (outer.start + i) * width) as u64,
                row,
            );
        }
        let (free, depth) = if self.depth_first {
            (1, inner.len)
        } else {
            (inner.len, 1)
        };
        Strides { free, depth }
    }
}

#[derive(Debug, Clone, Copy)]
struct Range {
    start: usize,
    len: usize,
}

impl Range {
    /// Stretches of at most `step` that cover `0..length`.
    fn split(length: usize, step: usize) -> impl Iterator<Item = Range> + Clone {
        (0..length).step_by(step).map(move |start| Range {
            start,
            len: step.min(length - start),
        })
    }
}

/// How far elements of a packed tile lie apart along its free and its contracted axis.
#[derive(Debug, Clone, Copy)]
pub(super) struct Strides {
    pub(super) free: usize,
    pub(super) depth: usize,
}

type Read<'a, R> = &'a (dyn Fn(&Operand, u64, &mut [R]) + Sync);

/// Adds the product of two packed tiles of that depth to the rows of a third.
pub(super) type Tile<'a, R> = &'a (dyn Fn(Packed<R>, Packed<R>, usize, &mut [R]) + Sync);

/// A packed tile.
#[derive(Debug, Clone, Copy)]
pub(super) struct Packed<'a, R> {
    pub(super) cells: &'a [R],
    pub(super) strides: Strides,
    pub(super) free: usize,
}

/// Wrapping arithmetic agrees in the bits that a narrower result keeps, so all integers are read as wide ones.
fn read<R: Register>(from: &Operand, start: u64, to: &mut [R]) {
    from.gather(0, start, to);
}

fn multiply<R: Register>(
    a: &Matrices,
    b: &Matrices,
    out: &mut Out,
    read: Read<R>,
    tile: Tile<R>,
) -> Outcome {
    let (dtype, row_bytes) = (out.dtype, b.free * out.dtype.size() as usize);
    let columns: Vec<Range> = Range::split(b.free, COLUMNS).collect();
    parallel::for_each_chunk(out.bytes, a.free * row_bytes, &|batch, matrix| {
        parallel::for_each_chunk(matrix, ROWS * row_bytes, &|panel, bytes| {
            let rows = Range {
                start: panel * ROWS,
                len: bytes.len() / row_bytes,
            };
            let one = |i: usize| one_tile(a, b, batch, [rows, columns[i]], read, tile);
            store(
                &parallel::collect(columns.len(), one),
                &columns,
                bytes,
                row_bytes,
                dtype,
            );
            Ok(())
        })
    })
}

fn one_tile<R: Register>(
    a: &Matrices,
    b: &Matrices,
    batch: usize,
    [rows, columns]: [Range; 2],
    read: Read<R>,
    tile: Tile<R>,
) -> Vec<R> {
    let mut sums = vec![R::default(); rows.len * columns.len];
    let (mut left, mut right) = (Vec::new(), Vec::new());
    for depth in Range::split(a.depth, DEPTH) {
        let strides = a.pack(batch, rows, depth, read, &mut left);
        let x = Packed {
            cells: &left,
            strides,
            free: rows.len,
        };
        let strides = b.pack(batch, columns, depth, read, &mut right);
        let y = Packed {
            cells: &right,
            strides,
            free: columns.len,
        };
        tile(x, y, depth.len, &mut sums);
    }
    sums
}

fn store<R: Register>(
    tiles: &[Vec<R>],
    columns: &[Range],
    panel: &mut [u8],
    row_bytes: usize,
    dtype: DType,
) {
    let size = dtype.size() as usize;
    for (i, row) in panel.chunks_mut(row_bytes).enumerate() {
        for (tile, columns) in tiles.iter().zip(columns) {
            let cells = &tile[i * columns.len..(i + 1) * columns.len];
            R::store(
                cells,
                dtype,
                &mut row[columns.start * size..(columns.start + columns.len) * size],
            );
        }
    }
}

pub(super) fn float_tile<T: Matmul>(a: Packed<T>, b: Packed<T>, depth: usize, sums: &mut [T]) {
    let fits = |x: &Packed<T>| {
        (x.free - 1) * x.strides.free + (depth - 1) * x.strides.depth < x.cells.len()
    };
    assert!(
        fits(&a) && fits(&b) && a.free * b.free == sums.len(),
        "a tile is as large as its strides say"
    );
    let to = Matrix::new(sums.as_mut_ptr(), [1, b.free as isize]);
    let left = Matrix::new(
        a.cells.as_ptr(),
        [a.strides.depth as isize, a.strides.free as isize],
    );
    let right = Matrix::new(
        b.cells.as_ptr(),
        [b.strides.free as isize, b.strides.depth as isize],
    );
    let extents = [a.free, b.free, depth];
    // SAFETY: the assertion holds the largest index that m, n, k and the strides reach within each slice, and
    // `sums` is borrowed mutably, so it does not overlap the operands.
    unsafe {
        T::matmul(extents, to, [left, right], true, Parallelism::None);
    }
}

pub(super) fn ring_tile<R: Ring>(a: Packed<R>, b: Packed<R>, depth: usize, sums: &mut [R]) {
    for (i, row) in sums.chunks_mut(b.free).enumerate() {
        for k in 0..depth {
            let x = a.cells[i * a.strides.free + k * a.strides.depth];
            let line = &b.cells[k * b.strides.depth..];
            let add = |(sum, y): (&mut R, &R)| *sum = sum.add(x.multiply(*y));
            match b.strides.free {
                1 => row.iter_mut().zip(line).for_each(add),
                step => row.iter_mut().zip(line.iter().step_by(step)).for_each(add),
            }
        }
    }
}

/// The same of integers, which wrap: in whatever order.
fn integer_tile<R: AddProducts>(a: Packed<R>, b: Packed<R>, depth: usize, sums: &mut [R]) {
    let width = b.free;
    let turned: Vec<R>;
    let (lines, apart) = match b.strides.free {
        1 => (b.cells, b.strides.depth),
        free => {
            let cell = |at: usize| b.cells[at % width * free + at / width * b.strides.depth];
            turned = (0..depth * width).map(cell).collect();
            (&turned[..], width)
        }
    };
    // Terms beyond the last are the last line, taken 0 times.
    let line = |k: usize| &lines[k.min(depth - 1) * apart..][..width];
    let factor = |i: usize, k: usize| match k < depth {
        true => a.cells[i * a.strides.free + k * a.strides.depth],
        false => R::ZERO,
    };
    let terms = |i: usize, k: usize| std::array::from_fn(|term| factor(i, k + term));
    let near = |k: usize| std::array::from_fn(|term| line(k + term));
    for (block, rows) in sums.chunks_mut(4 * width).enumerate() {
        let first = 4 * block;
        for k in (0..depth).step_by(TERMS) {
            let all: Vec<&mut [R]> = rows.chunks_exact_mut(width).collect();
            match <[&mut [R]; 4]>::try_from(all) {
                Ok(all) => R::to_four(all, std::array::from_fn(|i| terms(first + i, k)), near(k)),
                Err(fewer) => {
                    for (i, row) in fewer.into_iter().enumerate() {
                        R::to_one(row, terms(first + i, k), near(k));
                    }
                }
            }
        }
    }
}
