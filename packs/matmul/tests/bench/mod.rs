//! A device with this pack, operands in every layout, and the comparison with the host kernels.

use nx_vulkan_abi::DType;
use nx_vulkan_host::{Attr, Config, Request, Runtime, Tensor};
use nx_vulkan_ops::kernels::{self, Out, View};
use std::{path::PathBuf, sync::Arc};

/// A runtime that finds this pack and no other, and asks one of its kernels first.
pub(crate) struct Bench {
    runtime: Arc<Runtime>,
}

/// How an operand lies in its buffer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Layout {
    Contiguous,
    /// The axes in reverse order of memory.
    Transposed,
    /// Steps and offsets on every axis.
    Sliced,
    /// The first and the last axis run backwards.
    Reversed,
    /// The last axis repeats one element.
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

/// One operand, on the device and on the host.
pub(crate) struct Operand {
    pub(crate) view: Tensor,
    bytes: Vec<u8>,
    layout: Layout,
}

/// The axes of a product.
#[derive(Debug, Clone, Default)]
pub(crate) struct Axes {
    pub(crate) batch: i64,
    pub(crate) contract: [Vec<i64>; 2],
}

impl Bench {
    /// `kernels` are the ids that the registry asks, in this order; none for the pack's own order.
    pub(crate) fn open(kernels: &[&str]) -> Bench {
        let test = std::env::current_exe().unwrap();
        let folder: PathBuf = test.ancestors().nth(2).unwrap().into();
        let only = std::env::temp_dir().join(format!("nxv-matmul-{}", std::process::id()));
        std::fs::create_dir_all(&only).unwrap();
        let name = format!(
            "{}nx_vulkan_pack_matmul{}",
            std::env::consts::DLL_PREFIX,
            std::env::consts::DLL_SUFFIX
        );
        let uses: Vec<String> = kernels
            .iter()
            .map(|id| format!("\"matmul/{id}\""))
            .collect();
        let rule = format!(
            "schema = 1\n[[op]]\nname = \"dot\"\nuse = [{}]\n",
            uses.join(", ")
        );
        let registry = only.join(format!("{}.toml", kernels.join("-")));
        place(&registry, |to| std::fs::write(to, &rule));
        place(&only.join(&name), |to| {
            std::fs::copy(folder.join(&name), to).map(|_| ())
        });
        let registry = (!kernels.is_empty()).then_some(registry);
        let config = Config {
            packs: vec![only],
            registry,
            ..Config::from_env()
        };
        Bench {
            runtime: Runtime::open(&config).unwrap(),
        }
    }

    /// An operand of `shape` with small pseudo-random elements.
    pub(crate) fn operand(
        &self,
        dtype: DType,
        shape: &[u64],
        layout: Layout,
        seed: u64,
    ) -> Operand {
        let rank = shape.len();
        let base: Vec<u64> = match layout {
            Layout::Contiguous | Layout::Reversed => shape.to_vec(),
            Layout::Transposed => shape.iter().rev().copied().collect(),
            Layout::Sliced => shape.iter().map(|extent| extent * 2 + 3).collect(),
            Layout::Broadcast => (0..rank)
                .map(|k| if k + 1 == rank { 1 } else { shape[k] })
                .collect(),
        };
        let bytes = random(dtype, base.iter().product::<u64>() as usize, seed);
        let tensor = self.runtime.upload(dtype, &base, &bytes).unwrap();
        let axes: Vec<usize> = (0..rank).collect();
        let view = match layout {
            Layout::Contiguous => tensor,
            Layout::Transposed => tensor
                .transpose(&axes.iter().rev().copied().collect::<Vec<_>>())
                .unwrap(),
            Layout::Sliced => tensor.slice(&vec![1; rank], shape, &vec![2; rank]).unwrap(),
            Layout::Reversed => tensor
                .reverse(&[0, rank.max(1) - 1][..rank.min(2)])
                .unwrap(),
            Layout::Broadcast => tensor.broadcast(shape, &axes).unwrap(),
        };
        Operand {
            view,
            bytes,
            layout,
        }
    }

    /// Compares the device's product with the host's; `server` is the kernel that must have run it.
    pub(crate) fn check(&self, a: &Operand, b: &Operand, axes: &Axes, result: DType, server: &str) {
        let attrs = axes.attrs();
        let shape = axes.shape(a.view.shape(), b.view.shape());
        let name = || {
            let side =
                |x: &Operand| format!("{}{:?} {:?}", x.view.dtype(), x.view.shape(), x.layout);
            format!("{} . {} {axes:?} on {server}", side(a), side(b))
        };
        let ran = self
            .runtime
            .run_reported(&Request::new(
                "dot",
                &[&a.view, &b.view],
                &[(result, shape.clone())],
                &attrs,
            ))
            .unwrap_or_else(|e| panic!("{}: {e}", name()));
        let elements: u64 = shape.iter().product();
        assert!(
            elements == 0 || ran.served_by.contains(server),
            "{}: ran on {}",
            name(),
            ran.served_by
        );
        let got = self.runtime.download(&ran.outputs[0], None).unwrap();
        let mut expected = vec![0; (elements * result.size()) as usize];
        let out = Out {
            dtype: result,
            shape: &shape,
            bytes: &mut expected,
        };
        kernels::run("dot", &[a.on_host(), b.on_host()], &mut [out], &attrs).unwrap();
        if got == expected {
            return;
        }
        assert!(result.is_float(), "{}: {got:?}, not {expected:?}", name());
        let depth = axes.contract[0]
            .iter()
            .map(|axis| a.view.shape()[*axis as usize])
            .product();
        let (got, expected) = (f64s(result, &got), f64s(result, &expected));
        for (k, (got, expected)) in got.iter().zip(&expected).enumerate() {
            let allowed = tolerance(result, depth, *expected);
            let equal = got == expected || got.is_nan() && expected.is_nan();
            assert!(
                equal || (got - expected).abs() <= allowed,
                "{}: result {k} is {got}, not {expected} (+-{allowed})",
                name()
            );
        }
    }
}

impl Operand {
    fn on_host(&self) -> View<'_> {
        View {
            dtype: self.view.dtype(),
            shape: self.view.shape(),
            strides: self.view.strides(),
            offset: self.view.offset(),
            bytes: &self.bytes,
        }
    }
}

impl Axes {
    fn attrs(&self) -> [Attr; 4] {
        let batch: Vec<i64> = (0..self.batch).collect();
        [
            Attr::ints("batch_a", batch.clone()),
            Attr::ints("batch_b", batch),
            Attr::ints("contract_a", self.contract[0].clone()),
            Attr::ints("contract_b", self.contract[1].clone()),
        ]
    }

    fn shape(&self, a: &[u64], b: &[u64]) -> Vec<u64> {
        let free = |shape: &[u64], contract: &[i64]| -> Vec<u64> {
            let axes = shape.iter().zip(0..).skip(self.batch as usize);
            axes.filter(|(_, axis)| !contract.contains(axis))
                .map(|(extent, _)| *extent)
                .collect()
        };
        let batch = a[..self.batch as usize].to_vec();
        [
            batch,
            free(a, &self.contract[0]),
            free(b, &self.contract[1]),
        ]
        .concat()
    }
}

/// How far a result of `depth` products of magnitude at most 4 may be off: a few ulp of the accumulator for each step of a
/// random walk, and the spacing of the result's type.
pub(crate) fn tolerance(result: DType, depth: u64, expected: f64) -> f64 {
    let (spacing, step): (i32, i32) = match result {
        DType::F16 => (-10, -23),
        DType::BF16 => (-7, -23),
        DType::F32 => (-23, -23),
        DType::F64 => (-52, -52),
        _ => return 0.0,
    };
    let walk = (depth as f64).sqrt() * 4.0;
    expected.abs() * 2f64.powi(spacing) + 4.0 * walk.max(expected.abs()) * 2f64.powi(step)
}

/// Makes a file by another name and renames it, since tests of one process open the folder side by side.
fn place(path: &PathBuf, make: impl Fn(&PathBuf) -> std::io::Result<()>) {
    if path.exists() {
        return;
    }
    let mut half = path.clone().into_os_string();
    half.push(format!(".{:?}", std::thread::current().id()));
    let half = PathBuf::from(half);
    make(&half)
        .and_then(|()| std::fs::rename(&half, path))
        .unwrap_or_else(|e| panic!("{}: {e}", path.display()));
}

/// Elements between -2 and 2 in steps of 1/64; integers of any value.
fn random(dtype: DType, count: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    if dtype.is_integer() {
        let size = dtype.size() as usize;
        return (0..count)
            .flat_map(|_| next().to_le_bytes()[..size].to_vec())
            .collect();
    }
    let values: Vec<u8> = (0..count)
        .flat_map(|_| ((next() % 257) as f64 / 64.0 - 2.0).to_le_bytes())
        .collect();
    cast(DType::F64, dtype, &values)
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
