//! The loops of the elementwise ops whose elements are computed where they lie. The functions are in `lanes`.

use super::elementwise;
use super::lanes::{self, Cast, Cell, Each, Lane, Loop, Short};
use super::operand::{BLOCK, Operand};
use crate::expression::{element, number};
use crate::view::{Out, Outcome, View};
use nx_vulkan_abi::DType;
use nx_vulkan_abi::expression::{Number, holds};
use std::sync::atomic::{AtomicBool, Ordering};

/// Runs the loop of that lane for these types, where there is one; else nothing is done.
pub(super) fn run(lane: Lane, inputs: &[View], out: &mut Out) -> Option<Outcome> {
    let own = as_others(lane, inputs);
    let inputs = inputs.iter().zip(&own).map(|(x, own)| match own {
        None => *x,
        Some((dtype, bytes)) => View {
            dtype: *dtype,
            offset: 0,
            bytes: &bytes[..dtype.size() as usize],
            ..*x
        },
    });
    let inputs: Vec<View> = inputs.collect();
    let types: Vec<_> = inputs.iter().map(|x| x.dtype).collect();
    let (taken, found) = lane.of(&types, out.dtype)?;
    let operands = inputs.iter().map(|x| Operand::broadcast(x, out.shape));
    let operands = operands.collect::<Option<Vec<_>>>();
    let Some(operands) = operands else {
        return Some(Err("shapes do not fit".to_owned()));
    };
    let operands = operands.iter().map(|operand| Taken { operand, taken });
    let operands: Vec<Taken> = operands.collect();
    Some(match (found, &operands[..]) {
        (Loop::Floats(f), _) => cells(f, &operands, out),
        (Loop::Bytes(f), _) => each(f, &operands, out),
        (Loop::Shorts(f), _) => each(f, &operands, out),
        (Loop::Words(f), _) => each(f, &operands, out),
        (Loop::Longs(f), _) => each(f, &operands, out),
        (Loop::Cast(f), [x]) => cast(f, x.operand, out),
        (Loop::Select, [pred, a, b]) => match out.dtype.size() {
            1 => select(pred.operand, [a, b], out, lanes::select_bytes),
            2 => select(pred.operand, [a, b], out, lanes::select_shorts),
            4 => select(pred.operand, [a, b], out, lanes::select),
            8 => select(pred.operand, [a, b], out, lanes::select_longs),
            _ => return None,
        },
        _ => wrong_number(),
    })
}

/// By operand what stands for it, where it has one element and another type has that number, in which the loops are faster.
pub(super) fn as_others(lane: Lane, inputs: &[View]) -> Vec<Option<(DType, [u8; 8])>> {
    let is_float = |x: &View| x.dtype == DType::F32 || lanes::is_narrow(x.dtype);
    let is_double = |x: &View| x.dtype == DType::F64;
    let elements = |x: &&View| x.shape.iter().product::<u64>();
    let largest = inputs.iter().max_by_key(elements);
    let one = |x: &View| match lane {
        Lane::Select if !inputs.iter().any(is_float) => None,
        Lane::Select => float_of_one(x),
        _ if inputs.iter().any(is_double) => double_of_one(x),
        _ if inputs.iter().any(is_float) => float_of_one(x),
        _ => integer_of_one(x, largest?.dtype),
    };
    inputs.iter().map(one).collect()
}

fn wrong_number() -> Outcome {
    Err("wrong number of operands".to_owned())
}

/// An operand and the type that its elements are taken as.
#[derive(Clone, Copy)]
struct Taken<'a> {
    operand: &'a Operand<'a>,
    taken: DType,
}

/// Of elements of `N` bytes.
fn each<const N: usize>(f: Each<N>, operands: &[Taken], out: &mut Out) -> Outcome {
    match (f, operands) {
        (Each::Map(f), [x]) => blocks([*x], out, |[x], to| f(x, to)),
        (Each::Test(f), [x]) => blocks([*x], out, |[x], to| f(x, to)),
        (Each::Zip(f), [a, b]) => blocks([*a, *b], out, |[x, y], to| f(x, y, to)),
        (Each::Relation(f), [a, b]) => blocks([*a, *b], out, |[x, y], to| f(x, y, to)),
        (Each::Choice(f), [x, a, b]) => blocks([*x, *a, *b], out, |[x, a, b], to| f(x, a, b, to)),
        (Each::Partly(f, lacks), [a, b]) => {
            let defined = AtomicBool::new(true);
            blocks([*a, *b], out, |[x, y], to| {
                if !f(x, y, to) {
                    defined.store(false, Ordering::Relaxed);
                }
            })?;
            match defined.into_inner() {
                true => Ok(()),
                false => Err(lacks.reason.to_owned()),
            }
        }
        _ => wrong_number(),
    }
}

/// Of f32, to f32 or to a float of 16 bits that they are rounded to.
fn cells(f: Each<4>, operands: &[Taken], out: &mut Out) -> Outcome {
    if !lanes::is_narrow(out.dtype) {
        return each(f, operands, out);
    }
    match (f, operands) {
        (Each::Map(f), [x]) => rounded([*x], out, |[x], to| f(x, to)),
        (Each::Zip(f), [a, b]) => rounded([*a, *b], out, |[x, y], to| f(x, y, to)),
        (Each::Choice(f), [x, a, b]) => rounded([*x, *a, *b], out, |[x, a, b], to| f(x, a, b, to)),
        _ => wrong_number(),
    }
}

/// The bytes of an operand's only element.
fn only<'a>(x: &View<'a>) -> Option<&'a [u8]> {
    let is_one = x.shape.iter().all(|extent| *extent == 1);
    let size = x.dtype.size() as usize;
    let start = x.offset as usize * size;
    x.bytes.get(start..start + size).filter(|_| is_one)
}

/// A single s32 as f32, where that is the same number: `x * 2` is a product of f32 then.
fn float_of_one(x: &View) -> Option<(DType, [u8; 8])> {
    let bytes = only(x).filter(|_| x.dtype == DType::S32)?;
    let integer = i32::from_ne_bytes(bytes.try_into().ok()?);
    let float = integer as f32;
    let is_same = float as i64 == i64::from(integer);
    is_same.then(|| (DType::F32, padded(&float.to_ne_bytes())))
}

/// A single number as f64, where it is the same.
fn double_of_one(x: &View) -> Option<(DType, [u8; 8])> {
    if x.dtype == DType::F64 || x.dtype.is_complex() {
        return None;
    }
    let double = match number(x.dtype, only(x)?)? {
        Number::Float(float) => float,
        Number::Integer(integer) if integer.unsigned_abs() < 1 << 53 => integer as f64,
        Number::Integer(_) => return None,
    };
    Some((DType::F64, double.to_ne_bytes()))
}

/// A single integer as one of another type, where it is the same number.
fn integer_of_one(x: &View, to: DType) -> Option<(DType, [u8; 8])> {
    if x.dtype == to || !x.dtype.is_integer() || !to.is_integer() {
        return None;
    }
    let number = number(x.dtype, only(x)?)?;
    let is_same = matches!(number, Number::Integer(integer) if holds(to, integer));
    is_same.then(|| (to, padded(&element(number, to))))
}

fn padded(bytes: &[u8]) -> [u8; 8] {
    std::array::from_fn(|index| bytes.get(index).copied().unwrap_or(0))
}

/// A u8 for each element that says which operand it is taken from.
pub(super) type Selecting<const N: usize> = fn(&[[u8; 1]], &[[u8; N]], &[[u8; N]], &mut [[u8; N]]);

fn select<const N: usize>(
    pred: &Operand,
    operands: [&Taken; 2],
    out: &mut Out,
    f: Selecting<N>,
) -> Outcome {
    tasks(out, &|start, to| {
        let most = to.len().min(BLOCK);
        let mut truths = Reader::new(pred, most);
        let [mut a, mut b] = operands.map(|x| Source::new(*x, most));
        for (to, start) in to.chunks_mut(BLOCK).zip((start..).step_by(BLOCK)) {
            let n = to.len();
            f(
                truths.next(start, n),
                a.next(start, n),
                b.next(start, n),
                to,
            );
        }
    })
}

/// Elements of a row from which on a block ends with it: of an operand that is repeated, it lies in memory then.
pub(super) const LONG: u64 = 256;

/// Operands of `N` bytes an element to a result of `M`.
fn blocks<const K: usize, const N: usize, const M: usize>(
    operands: [Taken; K],
    out: &mut Out,
    f: impl Fn([&[[u8; N]]; K], &mut [[u8; M]]) + Sync,
) -> Outcome {
    let row = operands.iter().filter_map(|x| x.operand.row()).min();
    let row = row.filter(|extent| *extent >= LONG);
    tasks(out, &|start, to| {
        let most = to.len().min(BLOCK);
        let mut readers = operands.map(|x| Source::new(x, most));
        let (mut start, mut rest) = (start, to);
        while !rest.is_empty() {
            let left = row.map_or(u64::MAX, |extent| extent - start % extent);
            let (to, others) = rest.split_at_mut(rest.len().min(BLOCK).min(left as usize));
            f(readers.each_mut().map(|x| x.next(start, to.len())), to);
            (start, rest) = (start + to.len() as u64, others);
        }
    })
}

/// Operands of f32 to a float of 16 bits.
fn rounded<const K: usize>(
    operands: [Taken; K],
    out: &mut Out,
    f: impl Fn([&[Cell]; K], &mut [Cell]) + Sync,
) -> Outcome {
    let dtype = out.dtype;
    blocks(operands, out, |from, to: &mut [Short]| {
        let mut made = [Cell::default(); BLOCK];
        let made = &mut made[..to.len()];
        f(from, made);
        lanes::narrow(dtype, made, to);
    })
}

/// Elements of another type; floats of 16 bits are f32 on either side.
fn cast(f: Cast, x: &Operand, out: &mut Out) -> Outcome {
    let dtype = out.dtype;
    elementwise::for_each_task(out, &|start, bytes| {
        let size = dtype.size() as usize;
        let mut reader = numbers(x, BLOCK.min(bytes.len() / size));
        for (to, start) in bytes.chunks_mut(BLOCK * size).zip((start..).step_by(BLOCK)) {
            let count = to.len() / size;
            let from = reader.bytes(start, count);
            if !lanes::is_narrow(dtype) {
                f(from, to);
                continue;
            }
            let mut made = [Cell::default(); BLOCK];
            let made = &mut made[..count];
            f(from, made.as_flattened_mut());
            lanes::narrow(dtype, made, to.as_chunks_mut().0);
        }
    })
}

/// The bytes of consecutive elements.
trait Blocks {
    fn bytes(&mut self, start: u64, count: usize) -> &[u8];
}

impl<const N: usize> Blocks for Reader<'_, N> {
    fn bytes(&mut self, start: u64, count: usize) -> &[u8] {
        self.next(start, count).as_flattened()
    }
}

impl Blocks for Widened<'_> {
    fn bytes(&mut self, start: u64, count: usize) -> &[u8] {
        let to = &mut self.to[..count];
        lanes::widen(self.from.from.dtype, self.from.next(start, count), to);
        to.as_flattened()
    }
}

/// Blocks of an operand as it is, of floats of 16 bits as f32.
fn numbers<'a>(from: &'a Operand<'a>, most: usize) -> Box<dyn Blocks + 'a> {
    match from.dtype.size() {
        2 if lanes::is_narrow(from.dtype) => Box::new(Widened {
            from: Reader::new(from, most),
            to: vec![Cell::default(); most],
        }),
        1 => Box::new(Reader::<1>::new(from, most)),
        2 => Box::new(Reader::<2>::new(from, most)),
        4 => Box::new(Reader::<4>::new(from, most)),
        _ => Box::new(Reader::<8>::new(from, most)),
    }
}

/// Calls `work(start, elements)` for consecutive stretches of a result of `N` bytes an element.
fn tasks<const N: usize>(out: &mut Out, work: &(dyn Fn(u64, &mut [[u8; N]]) + Sync)) -> Outcome {
    elementwise::for_each_task(out, &|start, bytes| work(start, bytes.as_chunks_mut().0))
}

/// Blocks of an operand, of elements of `N` bytes.
struct Reader<'a, const N: usize> {
    from: &'a Operand<'a>,
    /// What does not lie side by side; one element that stands for all, as often as a block has elements.
    own: Vec<[u8; N]>,
    is_constant: bool,
}

impl<'a, const N: usize> Reader<'a, N> {
    /// Of blocks of at most so many elements.
    fn new(from: &'a Operand<'a>, most: usize) -> Reader<'a, N> {
        let constant = from.constant();
        Reader {
            from,
            own: constant.map_or_else(Vec::new, |element| vec![element; most]),
            is_constant: constant.is_some(),
        }
    }

    /// The elements from `start` on.
    fn next(&mut self, start: u64, count: usize) -> &[[u8; N]] {
        if self.is_constant {
            return &self.own[..count];
        }
        if let Some(cells) = self.from.side_by_side(0, start, count) {
            return cells;
        }
        self.own.resize(count, [0; N]);
        self.from
            .copy_cells::<N>(start, self.own.as_flattened_mut());
        &self.own
    }
}

/// Blocks of floats of 16 bits, which become f32.
struct Widened<'a> {
    from: Reader<'a, 2>,
    to: Vec<Cell>,
}

/// Blocks of an operand, of elements of `N` bytes of the type that it is taken as.
enum Source<'a, const N: usize> {
    As(Reader<'a, N>),
    Numbers(Box<dyn Blocks + 'a>),
    Of(Box<dyn Blocks + 'a>, Cast, Vec<[u8; N]>),
}

impl<'a, const N: usize> Source<'a, N> {
    fn new(Taken { operand, taken }: Taken<'a>, most: usize) -> Source<'a, N> {
        let Some(cast) = lanes::cast(operand.dtype, taken) else {
            return Source::As(Reader::new(operand, most));
        };
        let mut numbers = numbers(operand, most);
        if !operand.is_constant() {
            return match lanes::is_narrow(operand.dtype) && taken == DType::F32 {
                true => Source::Numbers(numbers),
                false => Source::Of(numbers, cast, vec![[0; N]; most]),
            };
        }
        let mut one = [0; N];
        cast(numbers.bytes(0, 1), &mut one);
        Source::As(Reader {
            from: operand,
            own: vec![one; most],
            is_constant: true,
        })
    }

    fn next(&mut self, start: u64, count: usize) -> &[[u8; N]] {
        match self {
            Source::As(reader) => reader.next(start, count),
            Source::Numbers(numbers) => numbers.bytes(start, count).as_chunks().0,
            Source::Of(numbers, cast, to) => {
                let to = &mut to[..count];
                cast(numbers.bytes(start, count), to.as_flattened_mut());
                to
            }
        }
    }
}
