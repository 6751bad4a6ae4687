//! Tests of the CPU kernels: published values, edge cases, layouts, contracts. Helpers are here.

mod along;
mod attention;
mod bits;
mod calls;
mod casts;
mod cells;
mod closure;
mod complex;
mod contract;
mod conv;
mod conv_product;
mod convert;
mod dot;
mod elementwise;
mod epilogue;
mod fast;
mod folds;
mod fourier;
mod functions;
mod lanes;
mod layout;
mod linalg;
mod linalg_complex;
mod linalg_fast;
mod mixed;
mod movement;
mod places;
mod products;
mod reduce;
mod ring;
mod room;
mod scan;
mod small;
mod sort;
mod spectra_fast;
mod typed;
mod updates;
mod window;
mod window_scatter;

use half::{bf16, f16};
use nx_vulkan_abi::dtype::DType;
use nx_vulkan_abi::layout::contiguous_strides;

use nx_vulkan_ops::attrs::Attr;
use nx_vulkan_ops::error::Result;
use nx_vulkan_ops::kernels::{self, Out, View};

/// A Rust type that stands for an element type.
trait Sample: Copy + PartialEq + std::fmt::Debug {
    const DTYPE: DType;

    fn push(self, bytes: &mut Vec<u8>);
    fn pop(bytes: &[u8]) -> Self;
}

macro_rules! samples {
    ($($t:ty, $dtype:ident;)*) => { $(impl Sample for $t {
        const DTYPE: DType = DType::$dtype;

        fn push(self, bytes: &mut Vec<u8>) {
            bytes.extend(self.to_ne_bytes());
        }

        fn pop(bytes: &[u8]) -> $t {
            <$t>::from_ne_bytes(bytes.try_into().unwrap())
        }
    })* };
}
samples! {
    u8, U8; u16, U16; u32, U32; u64, U64; i8, S8; i16, S16; i32, S32; i64, S64;
    f16, F16; bf16, BF16; f32, F32; f64, F64;
}

#[derive(Debug, Clone)]
struct Tensor {
    dtype: DType,
    shape: Vec<u64>,
    strides: Vec<i64>,
    offset: u64,
    bytes: Vec<u8>,
}

impl Tensor {
    fn view(&self) -> View<'_> {
        let Tensor {
            dtype,
            shape,
            strides,
            offset,
            bytes,
        } = self;
        View {
            dtype: *dtype,
            shape,
            strides,
            offset: *offset,
            bytes,
        }
    }
}

fn tensor<S: Sample>(shape: &[u64], values: &[S]) -> Tensor {
    let mut bytes = Vec::new();
    values.iter().for_each(|value| value.push(&mut bytes));
    Tensor {
        dtype: S::DTYPE,
        shape: shape.to_vec(),
        strides: contiguous_strides(shape),
        offset: 0,
        bytes,
    }
}

fn vector<S: Sample>(values: &[S]) -> Tensor {
    tensor(&[values.len() as u64], values)
}

fn bytes_of(
    op: &str,
    inputs: &[&Tensor],
    dtype: DType,
    shape: &[u64],
    attrs: &[Attr],
) -> Result<Vec<u8>> {
    let views: Vec<View> = inputs.iter().map(|t| t.view()).collect();
    let mut bytes = vec![0xa5; (shape.iter().product::<u64>() * dtype.size()) as usize];
    kernels::run(
        op,
        &views,
        &mut [Out {
            dtype,
            shape,
            bytes: &mut bytes,
        }],
        attrs,
    )?;
    Ok(bytes)
}

fn try_run<S: Sample>(
    op: &str,
    inputs: &[&Tensor],
    shape: &[u64],
    attrs: &[Attr],
) -> Result<Vec<S>> {
    let bytes = bytes_of(op, inputs, S::DTYPE, shape, attrs)?;
    Ok(bytes.chunks(size_of::<S>()).map(S::pop).collect())
}

fn run<S: Sample>(op: &str, inputs: &[&Tensor], shape: &[u64], attrs: &[Attr]) -> Vec<S> {
    try_run(op, inputs, shape, attrs).unwrap_or_else(|error| panic!("{error}"))
}

/// An op of vectors of one length.
fn unary<A: Sample, S: Sample>(op: &str, x: &[A]) -> Vec<S> {
    run(op, &[&vector(x)], &[x.len() as u64], &[])
}

fn binary<A: Sample, B: Sample, S: Sample>(op: &str, a: &[A], b: &[B]) -> Vec<S> {
    run(op, &[&vector(a), &vector(b)], &[a.len() as u64], &[])
}

fn refusal(result: Result<Vec<u8>>) -> String {
    result.expect_err("a refusal").to_string()
}

/// A small generator (Marsaglia's xorshift64), so that runs repeat.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}
