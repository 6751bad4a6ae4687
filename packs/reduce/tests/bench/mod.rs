//! A device with this pack, operands in every layout, and the comparison with the host kernels.

use nx_vulkan_abi::DType;
use nx_vulkan_host::{Attr, Config, Request, Runtime, Tensor};
use nx_vulkan_ops::kernels::{self, Out, View};
use std::sync::Arc;

/// A runtime that finds this pack and no other.
pub(crate) struct Bench {
    runtime: Arc<Runtime>,
}

/// How an operand lies in its buffer.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Layout {
    Contiguous,
    /// The axes in reverse order of memory.
    Transposed,
    /// Steps and offsets on every axis.
    Sliced,
    /// The first and the last axis run backwards.
    Reversed,
    /// The second axis, or the only one, repeats one element.
    Broadcast,
}

impl Layout {
    pub(crate) const ALL: [Layout; 5] = [
        Layout::Contiguous,
        Layout::Transposed,
        Layout::Sliced,
        Layout::Reversed,
        Layout::Broadcast,
    ];
}

impl Bench {
    pub(crate) fn open() -> Bench {
        let test = std::env::current_exe().unwrap();
        // Beside the test itself: tests leave what a build put one folder up as it is.
        let folder = test.parent().unwrap();
        let only = std::env::temp_dir().join(format!("nxv-reduce-{}", std::process::id()));
        std::fs::create_dir_all(&only).unwrap();
        let name = format!(
            "{}nx_vulkan_pack_reduce{}",
            std::env::consts::DLL_PREFIX,
            std::env::consts::DLL_SUFFIX
        );
        let (from, to) = (folder.join(&name), only.join(&name));
        if !to.exists() {
            // Renamed into place, since tests of one process open the folder side by side.
            let half = only.join(format!("{name}.{:?}", std::thread::current().id()));
            std::fs::copy(&from, &half).unwrap_or_else(|e| panic!("{}: {e}", from.display()));
            std::fs::rename(&half, &to).unwrap();
        }
        let config = Config {
            packs: vec![only],
            ..Config::from_env()
        };
        Bench {
            runtime: Runtime::open(&config).unwrap(),
        }
    }

    /// A contiguous tensor.
    pub(crate) fn upload(&self, dtype: DType, shape: &[u64], values: &[f64]) -> Tensor {
        self.runtime
            .upload(dtype, shape, &cast(DType::F64, dtype, &bytes_of(values)))
            .unwrap()
    }

    /// The result's elements, as f64.
    pub(crate) fn run(
        &self,
        op: &str,
        x: &Tensor,
        result: DType,
        shape: &[u64],
        attrs: &[Attr],
    ) -> Vec<f64> {
        f64s(result, &self.bits(op, x, result, shape, attrs))
    }

    /// Runs `op` on the device; another server than this pack is a failure.
    fn bits(&self, op: &str, x: &Tensor, result: DType, shape: &[u64], attrs: &[Attr]) -> Vec<u8> {
        let ran = self
            .runtime
            .run_reported(&Request::new(op, &[x], &[(result, shape.to_vec())], attrs))
            .unwrap();
        let elements: u64 = shape.iter().product();
        assert!(
            elements == 0 || ran.served_by.starts_with("reduce/"),
            "{op} ran on {}",
            ran.served_by
        );
        self.runtime.download(&ran.outputs[0], None).unwrap()
    }

    /// An operand of `shape` with pseudo-random elements, some of them NaN or infinite where `special`.
    pub(crate) fn case(
        &self,
        dtype: DType,
        shape: &[u64],
        layout: Layout,
        special: bool,
    ) -> Case<'_> {
        let rank = shape.len();
        let base: Vec<u64> = match layout {
            Layout::Contiguous | Layout::Reversed => shape.to_vec(),
            Layout::Transposed => shape.iter().rev().copied().collect(),
            Layout::Sliced => shape.iter().map(|extent| extent * 2 + 3).collect(),
            Layout::Broadcast => (0..rank)
                .map(|k| if k == 1 % rank { 1 } else { shape[k] })
                .collect(),
        };
        let count = base.iter().product::<u64>() as usize;
        let values = random(dtype, count, special);
        let tensor = self.upload(dtype, &base, &values);
        let axes: Vec<usize> = (0..rank).collect();
        let view = match layout {
            Layout::Contiguous => tensor,
            Layout::Transposed => tensor
                .transpose(&axes.iter().rev().copied().collect::<Vec<_>>())
                .unwrap(),
            Layout::Sliced => tensor.slice(&vec![1; rank], shape, &vec![2; rank]).unwrap(),
            Layout::Reversed => tensor.reverse(&[0, rank - 1][..rank.min(2)]).unwrap(),
            Layout::Broadcast => tensor.broadcast(shape, &axes).unwrap(),
        };
        let bytes = cast(DType::F64, dtype, &bytes_of(&values));
        let magnitudes = values.iter().map(|x| x.abs()).collect::<Vec<_>>();
        let magnitudes = cast(
            dtype,
            DType::F64,
            &cast(DType::F64, dtype, &bytes_of(&magnitudes)),
        );
        Case {
            bench: self,
            layout,
            view,
            bytes,
            magnitudes,
        }
    }
}

/// One operand, on the device and on the host.
pub(crate) struct Case<'a> {
    bench: &'a Bench,
    layout: Layout,
    view: Tensor,
    bytes: Vec<u8>,
    magnitudes: Vec<u8>,
}

impl Case<'_> {
    /// Compares the device's answer with the host's.
    pub(crate) fn check(&self, op: &str, result: DType, gone: &[i64], attrs: &[Attr]) {
        let shape = self.kept(gone);
        let oracle = |op: &str, dtype: DType, bytes: &[u8], result: DType, attrs: &[Attr]| {
            let view = View {
                dtype,
                shape: self.view.shape(),
                strides: self.view.strides(),
                offset: self.view.offset(),
                bytes,
            };
            let mut out = vec![0; (shape.iter().product::<u64>() * result.size()) as usize];
            kernels::run(
                op,
                &[view],
                &mut [Out {
                    dtype: result,
                    shape: &shape,
                    bytes: &mut out,
                }],
                attrs,
            )
            .unwrap();
            out
        };
        let dtype = self.view.dtype();
        let got = self.bits(op, result, gone, attrs);
        let expected = oracle(op, dtype, &self.bytes, result, attrs);
        if got == expected {
            return;
        }
        // Integers that differ may still be equal as f64.
        assert!(
            result.is_float(),
            "{}: {got:?}, not {expected:?}",
            self.name(op, result, attrs)
        );
        let (got, expected) = (f64s(result, &got), f64s(result, &expected));
        let magnitudes = match op {
            "sum" => f64s(
                DType::F64,
                &oracle("sum", DType::F64, &self.magnitudes, DType::F64, attrs),
            ),
            _ => vec![0.0; expected.len()],
        };
        let extent = self.view.elements() / (shape.iter().product::<u64>()).max(1);
        for (k, (got, expected)) in got.iter().zip(&expected).enumerate() {
            let allowed = tolerance(op, result, extent, *expected, magnitudes[k]);
            // A product of some of the elements may be too small for the type, and 0 times infinity is NaN.
            let vanished = op == "product" && got.is_nan() && expected.is_infinite();
            let equal = got == expected || got.is_nan() && expected.is_nan() || vanished;
            assert!(
                equal || (got - expected).abs() <= allowed,
                "{}: result {k} is {got}, not {expected} (+-{allowed})",
                self.name(op, result, attrs)
            );
        }
    }

    fn name(&self, op: &str, result: DType, attrs: &[Attr]) -> String {
        let (dtype, shape, layout) = (self.view.dtype(), self.view.shape(), self.layout);
        format!("{op} {result} of {dtype}{shape:?} {layout:?} {attrs:?}")
    }

    /// The device's answer.
    pub(crate) fn bits(&self, op: &str, result: DType, gone: &[i64], attrs: &[Attr]) -> Vec<u8> {
        self.bench
            .bits(op, &self.view, result, &self.kept(gone), attrs)
    }

    fn kept(&self, gone: &[i64]) -> Vec<u64> {
        let axes = self.view.shape().iter().zip(0..);
        axes.filter(|(_, axis)| !gone.contains(axis))
            .map(|(extent, _)| *extent)
            .collect()
    }
}

/// How far a result of `extent` elements may be off. `magnitudes` is the sum of the elements' magnitudes.
pub(crate) fn tolerance(
    op: &str,
    result: DType,
    extent: u64,
    expected: f64,
    magnitudes: f64,
) -> f64 {
    // Spacing of the result's type, and what the type it is computed in loses of the sum of magnitudes.
    let (spacing, lost): (i32, i32) = match result {
        DType::F16 => (-10, -20),
        DType::BF16 => (-7, -20),
        DType::F32 => (-23, -42),
        DType::F64 => (-52, -48),
        _ => return 0.0,
    };
    let spacing = expected.abs() * 2f64.powi(spacing);
    match op {
        "sum" => spacing + magnitudes * 2f64.powi(lost),
        "product" => {
            let step = if result == DType::F64 {
                f64::EPSILON
            } else {
                f64::from(f32::EPSILON)
            };
            // What is lost where a product of some of the elements is too small for a normal number.
            let underflow = 2f64.powi(if result == DType::F16 { -24 } else { -100 });
            spacing + expected.abs() * step * extent as f64 + underflow
        }
        _ => 0.0,
    }
}

/// Elements as f64 that `dtype` can hold; few distinct ones, so that there are ties.
fn random(dtype: DType, count: usize, special: bool) -> Vec<f64> {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    (0..count)
        .map(|_| {
            let small = (next() % 201) as f64 - 100.0;
            match next() % 512 {
                0 if special => f64::NAN,
                1 if special => f64::INFINITY,
                2 if special => f64::NEG_INFINITY,
                _ if dtype.is_float() => small / 64.0,
                3..=10 => 0.0,
                _ if dtype.is_unsigned() => small.abs(),
                _ => small,
            }
        })
        .collect()
}

fn bytes_of(values: &[f64]) -> Vec<u8> {
    values.iter().flat_map(|x| x.to_le_bytes()).collect()
}

fn f64s(dtype: DType, bytes: &[u8]) -> Vec<f64> {
    cast(dtype, DType::F64, bytes)
        .as_chunks::<8>()
        .0
        .iter()
        .map(|x| f64::from_le_bytes(*x))
        .collect()
}

/// `as_type` of the host kernels.
fn cast(from: DType, to: DType, bytes: &[u8]) -> Vec<u8> {
    let shape = [bytes.len() as u64 / from.size()];
    let view = View {
        dtype: from,
        shape: &shape,
        strides: &[1],
        offset: 0,
        bytes,
    };
    let mut out = vec![0; (shape[0] * to.size()) as usize];
    kernels::run(
        "as_type",
        &[view],
        &mut [Out {
            dtype: to,
            shape: &shape,
            bytes: &mut out,
        }],
        &[],
    )
    .unwrap();
    out
}
