//! Every op against tables that no code of this project has a part in: `oracle/make.py` makes them of exact integers and
//! rationals, and of mpmath's functions. So it is seen when device and host agree on a wrong answer.

use crate::folder::Folder;
use crate::packs::copied;
use nx_vulkan_host::{Attr, Config, DType, DeviceChoice, Request, Runtime, Tensor};
use nx_vulkan_ops::{
    find,
    kernels::{self, Out, View},
    op::AttributeKind,
};
use std::sync::Arc;

const TABLES: &str = include_str!("../oracle/tables.txt");
/// The ops that a row of `order` stands for, with what each gives for less, equal, greater and without order.
const COMPARISONS: [(&str, [u8; 4]); 6] = [
    ("equal", [0, 1, 0, 0]),
    ("not_equal", [1, 0, 1, 1]),
    ("greater", [0, 0, 1, 0]),
    ("less", [1, 0, 0, 0]),
    ("greater_equal", [0, 1, 1, 0]),
    ("less_equal", [1, 1, 0, 0]),
];

/// Elements as little-endian bytes.
#[derive(Debug, Clone)]
struct Column {
    dtype: DType,
    bytes: Vec<u8>,
}

#[derive(Debug, Clone)]
struct Case {
    op: &'static str,
    operands: Vec<Column>,
    expected: Column,
}

fn column(text: &str) -> Column {
    let (name, hex) = text.split_once(':').unwrap();
    let pairs = hex.as_bytes().chunks(2);
    let byte = |pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    Column {
        dtype: DType::from_name(name).unwrap(),
        bytes: pairs.map(byte).collect(),
    }
}

/// The rows of the table. Each comparison of each pair of types is a shader: of the six, only every `part`th is taken.
fn cases(part: usize) -> Vec<Case> {
    let case = |line: &'static str| {
        let (op, columns) = line.split_once(' ').unwrap();
        let mut operands: Vec<Column> = columns.split(' ').map(column).collect();
        let expected = operands.pop().unwrap();
        Case {
            op,
            operands,
            expected,
        }
    };
    let expand = |(index, case): (usize, Case)| {
        let both = [("equal", [0, 1, 0, 0]), ("not_equal", [1, 0, 0, 0])];
        let taken = COMPARISONS.into_iter().skip(index % part).step_by(part);
        match case.op {
            "order" => taken
                .map(|(op, table)| compared(&case, op, table))
                .collect(),
            "equality" => both
                .into_iter()
                .map(|(op, table)| compared(&case, op, table))
                .collect(),
            _ => vec![case],
        }
    };
    TABLES
        .lines()
        .map(case)
        .enumerate()
        .flat_map(expand)
        .collect()
}

fn compared(case: &Case, op: &'static str, table: [u8; 4]) -> Case {
    let mut case = Case { op, ..case.clone() };
    let verdicts = case.expected.bytes.iter_mut();
    verdicts.for_each(|order| *order = table[*order as usize]);
    case
}

impl Column {
    fn count(&self) -> u64 {
        self.bytes.len() as u64 / self.dtype.size()
    }

    /// Its shape where that is all that an op with these attributes gives: one that has any reduces.
    fn shape(&self, attrs: &[Attr]) -> Vec<u64> {
        match attrs {
            [] => vec![self.count()],
            _ => Vec::new(),
        }
    }

    /// Parts of elements as integers that are one apart where floats are neighbours; nothing for NaN.
    fn steps(&self) -> Vec<Option<i128>> {
        let dtype = self.dtype.part();
        let size = dtype.size() as usize;
        let step = |element: &[u8]| {
            let mut word = [0; 8];
            word[..size].copy_from_slice(element);
            let (bits, top) = (u64::from_le_bytes(word), 8 * size as u32 - 1);
            if !dtype.is_float() {
                return Some(i128::from(bits));
            }
            let magnitude = bits & !(1 << top);
            let precision = dtype.row().unwrap().digits;
            let infinity = ((1u64 << (top - precision + 1)) - 1) << (precision - 1);
            let signed = i128::from(magnitude) * if bits >> top == 1 { -1 } else { 1 };
            (magnitude <= infinity).then_some(signed)
        };
        self.bytes.chunks(size).map(step).collect()
    }
}

impl Case {
    fn attrs(&self) -> Vec<Attr> {
        let attributes = find(self.op).unwrap().contract.attributes.iter();
        let first = attributes.map(|attribute| match attribute.kind {
            AttributeKind::Ints => Attr::ints(attribute.name, [0]),
            AttributeKind::Number => Attr::float(attribute.name, 0.0),
            AttributeKind::Word(words) | AttributeKind::Choice(words) => {
                Attr::text(attribute.name, words[0])
            }
            AttributeKind::Text => Attr::text(attribute.name, ""),
        });
        first.collect()
    }

    /// What is wrong with `bytes` as the result.
    fn complaint(&self, who: &str, bytes: &[u8], ulp: i128) -> Option<String> {
        let got = Column {
            dtype: self.expected.dtype,
            bytes: bytes.to_vec(),
        };
        let pairs = got.steps().into_iter().zip(self.expected.steps());
        let far =
            |(index, (got, expected)): (usize, (Option<i128>, Option<i128>))| match (got, expected)
            {
                (None, None) => None,
                (Some(got), Some(expected)) if (got - expected).abs() <= ulp => None,
                pair => Some((index, pair)),
            };
        let (index, (got, expected)) = pairs.enumerate().find_map(far)?;
        let size = |column: &Column| column.dtype.size() as usize;
        let index = if self.expected.dtype.is_complex() {
            index / 2
        } else {
            index
        };
        let operands: Vec<String> = self
            .operands
            .iter()
            .map(|column| {
                format!(
                    "{} {:02x?}",
                    column.dtype,
                    column.bytes.chunks(size(column)).nth(index)
                )
            })
            .collect();
        let (op, dtype) = (self.op, self.expected.dtype);
        Some(format!(
            "{op} to {dtype} by the {who}, element {index} of {}: {got:?} for {expected:?}, allowed {ulp}",
            operands.join(", ")
        ))
    }
}

/// How far a result may be from the exact one, rounded: what host and device may differ by. Sums are rounded once, since
/// they are carried along, those of 60 f64 once for each.
fn allowed(case: &Case, types: &[DType]) -> i128 {
    let op = find(case.op).unwrap();
    let ulp = op.tolerance(types, case.expected.dtype).ulp as i128;
    match case.op {
        "sum" | "product" if case.expected.dtype == DType::F64 => ulp + 60,
        "product" => ulp + 6,
        "sum" => ulp + 1,
        // A polynomial that Nx defines: near 1, what 1 - x has lost counts.
        "erf_inv" if case.expected.dtype == DType::F64 => ulp + 4,
        _ => ulp,
    }
}

fn open(folder: &Folder) -> Arc<Runtime> {
    let device = std::env::var("NX_VULKAN_DEVICE").unwrap_or_else(|_| "llvmpipe".to_owned());
    Runtime::open(&Config {
        device: DeviceChoice::parse(&device),
        packs: vec![copied(folder, &["elementwise", "reduce"])],
        cache_dir: Some(env!("CARGO_TARGET_TMPDIR").into()),
        ..Config::from_env()
    })
    .unwrap()
}

/// Fails with what is wrong with the results of `run`.
fn judge(who: &str, part: usize, run: impl Fn(&Case, &[Attr]) -> Vec<u8>) {
    let complaint = |case: &Case| {
        let types: Vec<DType> = case.operands.iter().map(|operand| operand.dtype).collect();
        let bytes = run(case, &case.attrs());
        case.complaint(who, &bytes, allowed(case, &types))
    };
    let cases = cases(part);
    assert!(cases.len() > 600, "{} cases", cases.len());
    let complaints: Vec<String> = cases.iter().filter_map(complaint).collect();
    assert!(
        complaints.is_empty(),
        "{} wrong:\n{}",
        complaints.len(),
        complaints.join("\n")
    );
}

#[test]
fn the_host_agrees_with_the_tables() {
    judge("host", 1, on_host);
}

#[test]
fn the_device_agrees_with_the_tables() {
    let folder = Folder::new();
    let runtime = open(&folder);
    judge("device", 3, |case, attrs| on_device(&runtime, case, attrs));
}

fn on_host(case: &Case, attrs: &[Attr]) -> Vec<u8> {
    let shapes: Vec<[u64; 1]> = case
        .operands
        .iter()
        .map(|operand| [operand.count()])
        .collect();
    let operands = case.operands.iter().zip(&shapes);
    let views: Vec<View<'_>> = operands
        .map(|(operand, shape)| View {
            dtype: operand.dtype,
            shape,
            strides: &[1],
            offset: 0,
            bytes: &operand.bytes,
        })
        .collect();
    let mut bytes = vec![0; case.expected.bytes.len()];
    let mut out = [Out {
        dtype: case.expected.dtype,
        shape: &case.expected.shape(attrs),
        bytes: &mut bytes,
    }];
    kernels::run(case.op, &views, &mut out, attrs).unwrap();
    bytes
}

fn on_device(runtime: &Runtime, case: &Case, attrs: &[Attr]) -> Vec<u8> {
    let upload = |operand: &Column| {
        runtime
            .upload(operand.dtype, &[operand.count()], &operand.bytes)
            .unwrap()
    };
    let operands: Vec<Tensor> = case.operands.iter().map(upload).collect();
    let operands: Vec<&Tensor> = operands.iter().collect();
    let outputs = [(case.expected.dtype, case.expected.shape(attrs))];
    let ran = runtime
        .run_reported(&Request::new(case.op, &operands, &outputs, attrs))
        .unwrap();
    assert_ne!(&*ran.served_by, "host", "{} {operands:?}", case.op);
    runtime.download(&ran.outputs[0], None).unwrap()
}
