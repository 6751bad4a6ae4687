//! The benchmarks: names, requests, and the bytes and operations by which they are judged. Their names are stable;
//! where other libraries measure the same, they use the same name.

mod nx;

use crate::asked;
use nx_vulkan_host::{Attr, DType};
use nx_vulkan_ops::{Request, Spec};
use std::borrow::Cow;

/// How a workload is timed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Many times, then one wait: time per op.
    Batch,
    /// The calls alone, without waiting.
    Record,
    /// Each followed by a wait.
    Waited,
    /// Each followed by reading the result.
    Downloaded,
}

/// One benchmark.
#[derive(Debug, Clone)]
pub(crate) struct Workload {
    pub(crate) name: String,
    /// Workloads of one family differ in size only.
    pub(crate) family: String,
    pub(crate) op: Cow<'static, str>,
    /// Operands as they are stored.
    pub(crate) inputs: Vec<Spec>,
    /// Whether the first operand is read with its axes exchanged.
    pub(crate) transposed: bool,
    /// Result type where it is not the inferred one.
    pub(crate) result: Option<DType>,
    /// The results, where the workload was asked for.
    pub(crate) results: Vec<Spec>,
    pub(crate) attrs: Vec<Attr>,
    pub(crate) mode: Mode,
    /// Bytes read and written, where memory is what limits it.
    pub(crate) bytes: Option<u64>,
    /// Floating-point operations, where arithmetic is what limits it.
    pub(crate) flops: Option<u64>,
}

impl Workload {
    fn new(name: String, op: impl Into<Cow<'static, str>>, inputs: Vec<Spec>) -> Workload {
        let family = name
            .split(' ')
            .filter(|word| !word.starts_with(|c: char| c.is_ascii_digit()));
        Workload {
            family: family.collect::<Vec<_>>().join(" "),
            name,
            op: op.into(),
            inputs,
            transposed: false,
            result: None,
            results: Vec::new(),
            attrs: Vec::new(),
            mode: Mode::Batch,
            bytes: None,
            flops: None,
        }
    }

    /// The workload of a request that somebody asks for.
    pub(crate) fn of(text: &str, request: &Request<'static, Spec>) -> Workload {
        let flops = asked::operations(request).map(|flops| flops as u64);
        Workload {
            family: text.to_owned(),
            results: request.outputs.to_vec(),
            flops,
            bytes: Some(asked::traffic(request) as u64),
            attrs: request.attrs.to_vec(),
            ..Workload::new(text.to_owned(), request.op.clone(), request.inputs.to_vec())
        }
    }

    fn attrs(self, attrs: Vec<Attr>) -> Workload {
        Workload { attrs, ..self }
    }

    fn bytes(self, bytes: u64) -> Workload {
        Workload {
            bytes: Some(bytes),
            ..self
        }
    }

    fn flops(self, flops: u64) -> Workload {
        Workload {
            flops: Some(flops),
            ..self
        }
    }

    fn mode(self, mode: Mode) -> Workload {
        Workload { mode, ..self }
    }

    /// Bytes of the operands.
    pub(crate) fn stored(&self) -> u64 {
        self.inputs
            .iter()
            .map(|(dtype, shape)| dtype.size() * shape.iter().product::<u64>())
            .sum()
    }

    /// What its time is about proportional to within its family.
    pub(crate) fn work(&self) -> u64 {
        self.flops.or(self.bytes).unwrap_or(1)
    }
}

/// Every benchmark, smaller ones of a family first.
pub(crate) fn all() -> Vec<Workload> {
    let mut all = small();
    all.extend(elementwise());
    all.extend(reductions());
    all.extend(products());
    all.extend(nx::all());
    all
}

const F32: DType = DType::F32;

fn small() -> Vec<Workload> {
    let add = |name: &str, n: u64, mode| {
        let operand = (F32, vec![n]);
        Workload::new(name.to_owned(), "add", vec![operand.clone(), operand]).mode(mode)
    };
    vec![
        add("record add 64", 64, Mode::Record),
        add("small add async", 1000, Mode::Batch),
        add("small add sync", 1000, Mode::Waited),
        add("small add+download", 1000, Mode::Downloaded),
    ]
}

fn elementwise() -> Vec<Workload> {
    let mut all = Vec::new();
    for (power, n) in [(20, 1u64 << 20), (24, 1 << 24), (26, 1 << 26)] {
        let x = || (F32, vec![n]);
        let name = |op: &str| format!("{op} 2^{power} f32");
        all.push(Workload::new(name("add"), "add", vec![x(), x()]).bytes(12 * n));
        all.push(Workload::new(name("mul"), "multiply", vec![x(), x()]).bytes(12 * n));
        all.push(Workload::new(name("exp"), "exp", vec![x()]).bytes(8 * n));
        let pred = (DType::U8, vec![n]);
        all.push(Workload::new(name("select"), "select", vec![pred, x(), x()]).bytes(13 * n));
        let cast =
            Workload::new(format!("cast 2^{power} f32 f16"), "as_type", vec![x()]).bytes(6 * n);
        all.push(Workload {
            result: Some(DType::F16),
            ..cast
        });
        let side = 1u64 << (power / 2);
        let matrix = || (F32, vec![side, side]);
        let bcast = Workload::new(
            format!("bcast row add {side} f32"),
            "add",
            vec![matrix(), (F32, vec![side])],
        );
        all.push(bcast.bytes(8 * n));
        let transpose =
            Workload::new(format!("transpose {side} f32"), "as_type", vec![matrix()]).bytes(8 * n);
        all.push(Workload {
            transposed: true,
            result: Some(F32),
            ..transpose
        });
    }
    let n = 1u64 << 26;
    all.push(
        Workload::new(
            "exp 2^26 f64".to_owned(),
            "exp",
            vec![(DType::F64, vec![n])],
        )
        .bytes(16 * n),
    );
    let copy = |name: &str, n: u64| Workload {
        // A copy of the same type and layout still moves every byte.
        result: Some(F32),
        ..Workload::new(name.to_owned(), "as_type", vec![(F32, vec![n])]).bytes(8 * n)
    };
    all.push(copy("copy 256MiB f32", n));
    all.push(copy("copy 2GiB f32", 1 << 29));
    all
}

fn reductions() -> Vec<Workload> {
    let n = 1u64 << 26;
    let square = || vec![(F32, vec![8192, 8192])];
    let axes = |axes: &[i64]| vec![Attr::ints("axes", axes)];
    let of = |name: &str, op, inputs: Vec<Spec>, attrs: Vec<Attr>| {
        let workload = Workload::new(name.to_owned(), op, inputs).attrs(attrs);
        let bytes = workload.stored();
        workload.bytes(bytes)
    };
    let argmax = vec![Attr::ints("axis", [1]), Attr::text("tie_break", "low")];
    vec![
        of("sum all 2^26 f32", "sum", vec![(F32, vec![n])], axes(&[0])),
        of(
            "sum all 2^26 f64",
            "sum",
            vec![(DType::F64, vec![n])],
            axes(&[0]),
        ),
        of("sum axis0 8192 f32", "sum", square(), axes(&[0])),
        of("sum axis1 8192 f32", "sum", square(), axes(&[1])),
        of(
            "max all 2^26 f32",
            "reduce_max",
            vec![(F32, vec![n])],
            axes(&[0]),
        ),
        of("argmax axis1 8192 f32", "argmax", square(), argmax),
    ]
}

fn products() -> Vec<Workload> {
    let mut all = Vec::new();
    let contract = |a: i64, b: i64, batch: &[i64]| {
        vec![
            Attr::ints("batch_a", batch),
            Attr::ints("batch_b", batch),
            Attr::ints("contract_a", [a]),
            Attr::ints("contract_b", [b]),
        ]
    };
    let square = |n: u64, dtype: DType, suffix: &str, a, b| {
        let matrix = || (dtype, vec![n, n]);
        Workload::new(
            format!("matmul {n} {dtype}{suffix}"),
            "dot",
            vec![matrix(), matrix()],
        )
        .attrs(contract(a, b, &[]))
        .flops(2 * n * n * n)
    };
    for dtype in [F32, DType::F64, DType::F16, DType::BF16] {
        all.extend([256, 512, 1024, 2048, 4096, 8192].map(|n| square(n, dtype, "", 1, 0)));
    }
    all.push(square(4096, F32, " NT", 1, 1));
    all.push(square(4096, F32, " TN", 0, 0));
    let batch = || (F32, vec![64, 256, 256]);
    all.push(
        Workload::new("bmm 64x256 f32".to_owned(), "dot", vec![batch(), batch()])
            .attrs(contract(2, 1, &[0]))
            .flops(64 * 2 * 256 * 256 * 256),
    );
    let n = 8192;
    all.push(
        Workload::new(
            "matvec 8192 f32".to_owned(),
            "dot",
            vec![(F32, vec![n, n]), (F32, vec![n])],
        )
        .attrs(contract(1, 0, &[]))
        .bytes(4 * n * n),
    );
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn names_are_unique_and_those_of_the_peers() {
        let all = all();
        let names: HashSet<&str> = all.iter().map(|w| w.name.as_str()).collect();
        assert_eq!(names.len(), all.len());
        for name in [
            "add 2^26 f32",
            "exp 2^26 f32",
            "exp 2^26 f64",
            "copy 2GiB f32",
            "matmul 4096 f32",
            "matmul 8192 bf16",
            "bmm 64x256 f32",
            "sum all 2^26 f64",
            "sum axis0 8192 f32",
            "argmax axis1 8192 f32",
            "bcast row add 8192 f32",
            "transpose 8192 f32",
            "small add async",
            "small add sync",
            "small add+download",
        ] {
            assert!(names.contains(name), "{name}");
        }
    }

    #[test]
    fn families_join_sizes_of_one_op_and_type() {
        let all = all();
        let of = |name: &str| all.iter().find(|w| w.name == name).unwrap().family.clone();
        assert_eq!(of("matmul 256 f32"), of("matmul 8192 f32"));
        assert_ne!(of("matmul 256 f32"), of("matmul 256 f16"));
        assert_ne!(of("matmul 4096 f32"), of("matmul 4096 f32 NT"));
        assert_eq!(of("add 2^20 f32"), of("add 2^26 f32"));
    }
}
