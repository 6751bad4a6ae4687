//! Tables and plans as data, without a device: what they say, what is wrong with them, and hostile numbers.

mod expressions;
mod mistakes;
mod plans;

use super::*;
use nx_vulkan_abi::{
    Access, Attr, AttrKind, BufArg, DType, DeviceInfo, Features, InputAs, Matrix, MatrixScope,
    Outcome, RSlice, RStr, Reply, Request, TensorDesc, layout,
};
use std::sync::LazyLock;

const HEAD: &str = "[pack]\nid = \"p\"\nversion = \"1.0.0\"\nabi = \"1\"\n";

fn device() -> DeviceInfo<'static> {
    DeviceInfo {
        vendor: 7,
        subgroup_size: 32,
        max_groups: [65535, 1000, 10],
        features: Features::STORAGE16.with(Features::INT16),
        facts: facts(),
        ..DeviceInfo::default()
    }
}

/// A product of f16 with sums in f32, 16 x 8 x 16, and another fact.
fn facts() -> RSlice<'static, Attr<'static>> {
    static FACTS: LazyLock<[Attr<'static>; 2]> = LazyLock::new(|| {
        let product = Matrix {
            extents: [16, 8, 16],
            a: DType::F16,
            b: DType::F16,
            c: DType::F32,
            result: DType::F32,
            scope: MatrixScope::SUBGROUP,
            saturates: false,
            invocations: 0,
        };
        let product = Vec::from(product.to_ints()).leak();
        [
            ints(Matrix::FACT, product),
            ints("subgroups_per_unit", &[48]),
        ]
    });
    FACTS[..].into()
}

/// One operand or result: type, shape, strides, offset.
type Layout<'a> = (DType, &'a [u64], Option<&'a [i64]>, u64);

fn f32(shape: &[u64]) -> Layout<'_> {
    (DType::F32, shape, None, 0)
}

fn ask(table: &Table, inputs: &[Layout<'_>], outputs: &[Layout<'_>], attrs: &[Attr<'_>]) -> Reply {
    let strides = |list: &[Layout<'_>]| -> Vec<Vec<i64>> {
        list.iter()
            .map(|l| {
                l.2.map_or_else(|| layout::contiguous_strides(l.1), <[i64]>::to_vec)
            })
            .collect()
    };
    let (own, results) = (strides(inputs), strides(outputs));
    fn descs<'a>(list: &[Layout<'a>], strides: &'a [Vec<i64>]) -> Vec<TensorDesc<'a>> {
        let desc = |(l, strides): (&Layout<'a>, &'a Vec<i64>)| TensorDesc {
            dtype: l.0,
            spare: 0,
            shape: l.1.into(),
            strides: strides[..].into(),
            offset: l.3,
            storage_len: 4096,
            reserved: [0; 2],
        };
        list.iter().zip(strides).map(desc).collect()
    }
    let (inputs, outputs) = (descs(inputs, &own), descs(outputs, &results));
    let device = device();
    let request = Request {
        op: "op".into(),
        inputs: inputs[..].into(),
        outputs: outputs[..].into(),
        attrs: attrs.into(),
        device: &device,
        spare: [0; 4],
    };
    table.plan(0, &request).unwrap()
}

fn ints<'a>(name: &'a str, ints: &'a [i64]) -> Attr<'a> {
    Attr {
        name: name.into(),
        kind: AttrKind::INTS,
        spare: 0,
        ints: ints.into(),
        floats: [][..].into(),
        text: RStr::from_str(""),
    }
}

fn read(text: &str) -> Result<Table, String> {
    let files = ["k.comp", "other.comp", "h.glsl"];
    Table::parse(Path::new("pack.toml"), text, &files)
}

/// A table with one kernel on all types that has these further lines.
fn kernel(lines: &str) -> Result<Table, String> {
    let start = "[[kernel]]\nid = \"k\"\nop = \"op\"\ninputs = [\"all\"]\noutputs = [\"all\"]\n";
    read(&format!("{HEAD}{start}{lines}"))
}
