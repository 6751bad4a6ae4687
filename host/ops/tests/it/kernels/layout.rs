//! Every op on every kind of view gives what it gives on a contiguous copy of that view.

use nx_vulkan_abi::dtype::DTypeSet;
use nx_vulkan_abi::layout::contiguous_strides;

use super::{DType, Random, Tensor, bytes_of, tensor};
use nx_vulkan_ops::attrs::Attr;
use nx_vulkan_ops::op::{Gives, Op};
use nx_vulkan_ops::{find, ops};

const SHAPE: [u64; 3] = [3, 4, 10];

/// Small positive values, exact in every type, whose sums and products are exact too.
fn buffer(dtype: DType, random: &mut Random) -> Vec<u8> {
    let mut values = Vec::new();
    let small = dtype.row().is_some_and(|row| row.bits < 8);
    let all: &[u8] = if small { &[1] } else { &[1, 2, 1, 4] };
    let picks: Vec<u8> = (0..1000)
        .map(|_| all[random.below(all.len() as u64) as usize])
        .collect();
    let source = tensor(&[1000], &picks);
    values.extend(bytes_of("as_type", &[&source], dtype, &[1000], &[]).unwrap());
    values
}

/// Views of the same shape: strides, and where the first element lies.
fn views() -> Vec<(&'static str, [i64; 3], u64)> {
    vec![
        ("contiguous", [40, 10, 1], 0),
        ("offset", [40, 10, 1], 7),
        ("transposed", [1, 3, 12], 0),
        ("inner axes swapped", [40, 1, 4], 3),
        ("sliced", [100, 22, 2], 5),
        ("reversed", [-40, -10, -1], 119),
        ("middle reversed", [40, -10, 1], 30),
        ("broadcast inner", [4, 1, 0], 0),
        ("broadcast outer", [0, 10, 1], 0),
        ("one element", [0, 0, 0], 9),
    ]
}

fn view(dtype: DType, bytes: &[u8], strides: [i64; 3], offset: u64) -> Tensor {
    Tensor {
        dtype,
        shape: SHAPE.to_vec(),
        strides: strides.to_vec(),
        offset,
        bytes: bytes.to_vec(),
    }
}

fn contiguous(t: &Tensor) -> Tensor {
    let size = t.dtype.size() as usize;
    let mut bytes = Vec::new();
    for i in 0..SHAPE[0] as i64 {
        for j in 0..SHAPE[1] as i64 {
            for k in 0..SHAPE[2] as i64 {
                let at = t.offset as i64 + i * t.strides[0] + j * t.strides[1] + k * t.strides[2];
                bytes.extend(&t.bytes[at as usize * size..][..size]);
            }
        }
    }
    Tensor {
        dtype: t.dtype,
        shape: t.shape.clone(),
        strides: contiguous_strides(&SHAPE),
        offset: 0,
        bytes,
    }
}

/// Result shapes and attributes to try.
fn requests(info: &Op) -> Vec<(Vec<u64>, Vec<Attr>)> {
    let kept = |axes: &[i64]| {
        (0..3)
            .filter(|axis| !axes.contains(axis))
            .map(|axis| SHAPE[axis as usize])
            .collect()
    };
    let is = |name: &str| find(name).is_some_and(|op| op.contract.title == info.contract.title);
    match () {
        () if is("sum") => {
            let sets: [&[i64]; 7] = [&[0], &[1], &[2], &[0, 1], &[0, 2], &[1, 2], &[0, 1, 2]];
            sets.iter()
                .map(|axes| (kept(axes), vec![Attr::ints("axes", *axes)]))
                .collect()
        }
        () if is("argmax") => {
            let axis =
                |axes: &[i64]| vec![Attr::ints("axis", axes), Attr::text("tie_break", "high")];
            let one = (0..3).map(|i| (kept(&[i]), axis(&[i])));
            one.chain([(vec![], axis(&[]))]).collect()
        }
        () if is("dot") => {
            let axes = |batch: &[i64], contract: &[i64]| {
                let names = [
                    ("batch_a", batch),
                    ("batch_b", batch),
                    ("contract_a", contract),
                    ("contract_b", contract),
                ];
                names.map(|(name, axes)| Attr::ints(name, axes)).to_vec()
            };
            vec![
                (vec![3, 4, 4], axes(&[0], &[2])),
                (vec![3, 10, 10], axes(&[0], &[1])),
                (vec![4, 4], axes(&[], &[2, 0])),
                (vec![3, 4], axes(&[0, 1], &[2])),
                (vec![3, 4, 3, 4], axes(&[], &[2])),
            ]
        }
        () => vec![(SHAPE.to_vec(), vec![])],
    }
}

fn result_types(info: &Op, dtype: DType) -> Vec<DType> {
    match info.gives {
        Gives::Bool => vec![DType::U8],
        Gives::Complex => vec![DType::C64, DType::C128],
        Gives::OwnPart | Gives::Part => vec![dtype.part()],
        Gives::Float if dtype.is_integer() => vec![DType::F32, DType::BF16],
        Gives::Any => DType::all().filter(|d| DTypeSet::REAL.has(*d)).collect(),
        _ => vec![dtype],
    }
}

#[test]
fn views_and_copies_agree_for_every_op_and_type() {
    let mut random = Random(3);
    let mut compared = 0;
    // Ops that run in a way of their own have tests of their own.
    let families = ["sum", "argmax", "dot"].map(|op| find(op).unwrap().contract.title);
    let single = |info: &&Op| info.is_elementwise() || families.contains(&info.contract.title);
    for info in ops().filter(single) {
        let computed = |dtype: &DType| info.types().has(*dtype) && DTypeSet::NUMBER.has(*dtype);
        for dtype in DType::all().filter(computed) {
            let buffers: Vec<Vec<u8>> = (0..info.arity())
                .map(|_| buffer(dtype, &mut random))
                .collect();
            for (i, _) in views().iter().enumerate() {
                let mixed: Vec<Tensor> = (buffers.iter().zip(0..))
                    .map(|(bytes, operand)| {
                        let (_, strides, offset) = views()[(i + operand * 3) % views().len()];
                        view(dtype, bytes, strides, offset)
                    })
                    .collect();
                let copies: Vec<Tensor> = mixed.iter().map(contiguous).collect();
                for (shape, attrs) in requests(info) {
                    for result in result_types(info, dtype) {
                        let of = |t: &[Tensor]| {
                            bytes_of(
                                info.name,
                                &t.iter().collect::<Vec<_>>(),
                                result,
                                &shape,
                                &attrs,
                            )
                        };
                        assert_eq!(
                            of(&mixed).unwrap(),
                            of(&copies).unwrap(),
                            "{} {dtype} {}",
                            info.name,
                            views()[i].0
                        );
                        compared += 1;
                    }
                }
            }
        }
    }
    assert!(compared > 10_000, "only {compared} requests compared");
}

/// Blocks begin and end in the middle of rows, and rows of the innermost axis are shorter and longer than blocks.
#[test]
fn long_views_wrap_around_rows() {
    for (rows, columns) in [(3000u64, 7u64), (7, 3000), (1500, 1030)] {
        let values: Vec<u32> = (0..(rows * columns) as u32).collect();
        let mut t = tensor(&[columns, rows], &values);
        t.shape.reverse();
        t.strides.reverse();
        let bytes = bytes_of(
            "add",
            &[&t, &tensor(&[columns], &vec![1u32; columns as usize])],
            DType::U32,
            &t.shape,
            &[],
        );
        let expected: Vec<u8> = (0..rows)
            .flat_map(|r| (0..columns).map(move |c| (c * rows + r + 1) as u32))
            .flat_map(u32::to_ne_bytes)
            .collect();
        assert!(bytes.unwrap() == expected, "{rows} by {columns}");
    }
}

#[test]
fn operands_may_lie_at_any_address() {
    let padded: Vec<u8> = [0xff]
        .into_iter()
        .chain([1.5f64, 2.5].iter().flat_map(|x| x.to_ne_bytes()))
        .collect();
    let mut out = [0u8; 17];
    let x = super::View {
        dtype: DType::F64,
        shape: &[2],
        strides: &[1],
        offset: 0,
        bytes: &padded[1..],
    };
    let result = super::Out {
        dtype: DType::F64,
        shape: &[2],
        bytes: &mut out[1..],
    };
    nx_vulkan_ops::kernels::run("add", &[x, x], &mut [result], &[]).unwrap();
    assert_eq!(out[1..], [3.0f64, 5.0].map(f64::to_ne_bytes).concat());
}

#[test]
fn operands_broadcast_to_the_result() {
    let column = tensor(&[3, 1], &[1i32, 2, 3]);
    let row = tensor(&[2], &[10i32, 20]);
    assert_eq!(
        super::run::<i32>("add", &[&column, &row], &[3, 2], &[]),
        [11, 21, 12, 22, 13, 23]
    );
    assert_eq!(
        super::run::<i32>("add", &[&column, &tensor(&[], &[1i32])], &[2, 3, 1], &[]),
        [2, 3, 4, 2, 3, 4]
    );
    assert!(
        super::run::<i32>(
            "add",
            &[&tensor::<i32>(&[0], &[]), &tensor(&[1], &[1i32])],
            &[0],
            &[]
        )
        .is_empty()
    );
}
