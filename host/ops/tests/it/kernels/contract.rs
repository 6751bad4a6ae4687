//! What is refused, and that nothing panics.

use super::{DType, Random};
use nx_vulkan_ops::attrs::Attr;
use nx_vulkan_ops::error::Kind;
use nx_vulkan_ops::kernels::{Desc, Out, View, check, run, supports};
use nx_vulkan_ops::ops;

const F32: DType = DType::F32;
const S32: DType = DType::S32;
const U8: DType = DType::U8;

type Shape = &'static [u64];

struct Case {
    op: &'static str,
    inputs: &'static [(DType, Shape)],
    output: (DType, Shape),
    attrs: Vec<Attr>,
    reason: &'static str,
}

fn case(
    op: &'static str,
    inputs: &'static [(DType, Shape)],
    output: (DType, Shape),
    attrs: &[Attr],
    reason: &'static str,
) -> Case {
    Case {
        op,
        inputs,
        output,
        attrs: attrs.to_vec(),
        reason,
    }
}

fn dot(batch: [&[i64]; 2], contract: [&[i64]; 2]) -> Vec<Attr> {
    vec![
        Attr::ints("batch_a", batch[0]),
        Attr::ints("batch_b", batch[1]),
        Attr::ints("contract_a", contract[0]),
        Attr::ints("contract_b", contract[1]),
    ]
}

#[rustfmt::skip]
fn refused() -> Vec<Case> {
    let axes = |axes: &[i64]| [Attr::ints("axes", axes)];
    let arg = |axis: &[i64], tie: &str| [Attr::ints("axis", axis), Attr::text("tie_break", tie)];
    const M: &[(DType, Shape)] = &[(F32, &[2, 3]), (F32, &[3, 4])];
    vec![
        case("add", &[(F32, &[2])], (F32, &[2]), &[], "expected 2 operands, got 1"),
        case("add", &[(F32, &[2]), (F32, &[3])], (F32, &[3]), &[], "[2] does not broadcast to [3]"),
        case("add", &[(F32, &[2, 2]), (F32, &[2])], (F32, &[2]), &[], "[2, 2] does not broadcast to [2]"),
        case("add", &[(F32, &[2]), (DType(99), &[2])], (F32, &[2]), &[], "unknown element type"),
        case("exp", &[(S32, &[2])], (S32, &[2]), &[], "the result must be a float"),
        case("exp", &[(F32, &[u64::MAX, 2])], (F32, &[u64::MAX, 2]), &[], "too many elements"),
        case("exp", &[(F32, &[1 << 62])], (F32, &[1 << 62]), &[], "too many elements"),
        case("abs", &[(S32, &[2])], (F32, &[2]), &[], "the operand's type"),
        case("bitwise_not", &[(F32, &[2])], (F32, &[2]), &[], "only integers"),
        case("quotient", &[(S32, &[2]), (F32, &[2])], (S32, &[2]), &[], "only integers"),
        case("quotient", &[(S32, &[2]), (S32, &[2])], (F32, &[2]), &[], "must be an integer"),
        case("less", &[(S32, &[2]), (S32, &[2])], (S32, &[2]), &[], "must be u8"),
        case("eye", &[], (F32, &[3]), &[], "two axes"),
        case("iota", &[], (F32, &[3]), &[Attr::ints("axis", [1])], "axis 1"),
        case("iota", &[], (F32, &[3]), &[Attr::ints("axis", [0, 0])], "one axis"),
        case("iota", &[], (DType::C64, &[3]), &[Attr::ints("axis", [-1])], "axis -1"),
        case("fill", &[], (F32, &[3]), &[], "bits must have 1"),
        case("fill", &[], (DType::C128, &[3]), &[Attr::ints("bits", [1])], "bits must have 2"),
        case("sum", &[(F32, &[2, 3])], (F32, &[2]), &axes(&[]), "at least one axis"),
        case("sum", &[(F32, &[2, 3])], (F32, &[]), &axes(&[1, 0]), "ascend"),
        case("sum", &[(F32, &[2, 3])], (F32, &[]), &axes(&[1, 1]), "ascend"),
        case("sum", &[(F32, &[2, 3])], (F32, &[2]), &axes(&[2]), "axis 2"),
        case("sum", &[(F32, &[2, 3])], (F32, &[3]), &axes(&[1]), "not reduced"),
        case("all", &[(F32, &[2])], (F32, &[]), &axes(&[0]), "must be u8"),
        case("argmax", &[(F32, &[2])], (S32, &[]), &arg(&[0], "first"), "tie_break"),
        case("argmax", &[(F32, &[2])], (S32, &[]), &arg(&[0], "low")[..1], "tie_break"),
        case("argmax", &[(F32, &[2])], (S32, &[2]), &arg(&[], "low"), "not reduced"),
        case("argmin", &[(F32, &[0])], (S32, &[]), &arg(&[0], "low"), "no elements"),
        case("dot", M, (F32, &[2, 4]), &dot([&[], &[]], [&[0], &[0]]), "different extents"),
        case("dot", M, (F32, &[4, 2]), &dot([&[], &[]], [&[1], &[0]]), "the result's shape"),
        case("dot", M, (F32, &[2, 4]), &dot([&[], &[]], [&[1], &[0, 1]]), "do not pair up"),
        case("dot", M, (F32, &[2, 4]), &dot([&[], &[]], [&[2], &[0]]), "axis 2"),
        case("dot", M, (F32, &[2, 4]), &dot([&[1], &[0]], [&[], &[]]), "leading axes"),
        case("dot", M, (F32, &[2, 4]), &dot([&[], &[]], [&[1, 1], &[0, 0]]), "repeats an axis"),
        case("dot", M, (F32, &[2, 4]), &[&dot([&[], &[]], [&[1], &[0]])[..], &[Attr::ints("lasting", [2])]].concat(), "names operand 2"),
        case("dot", M, (F32, &[2, 4]), &dot([&[0], &[0]], [&[0], &[0]]), "batch axis"),
        case("select", &[(U8, &[2]), (F32, &[3]), (F32, &[])], (F32, &[2]), &[], "does not broadcast"),
    ]
}

#[test]
fn broken_requests_are_refused_with_op_types_and_shapes() {
    for Case {
        op,
        inputs,
        output,
        attrs,
        reason,
    } in refused()
    {
        let inputs: Vec<Desc> = inputs
            .iter()
            .map(|&(dtype, shape)| Desc { dtype, shape })
            .collect();
        let error = check(
            op,
            &inputs,
            &[Desc {
                dtype: output.0,
                shape: output.1,
            }],
            &attrs,
        )
        .expect_err(op);
        let message = error.to_string();
        assert_eq!(error.kind(), Kind::BadInput, "{message}");
        assert!(
            message.starts_with(op) && message.contains(reason),
            "{reason:?} is not in: {message}"
        );
    }
    let two = [Desc {
        dtype: F32,
        shape: &[1],
    }; 2];
    assert!(
        check("exp", &two[..1], &two, &[])
            .unwrap_err()
            .to_string()
            .contains("one result, got 2")
    );
    assert_eq!(
        check("no_such_op", &[], &[], &[]).unwrap_err().kind(),
        Kind::Unsupported
    );
}

/// Others may run what the host does not, so only `supports` and `run` refuse it.
#[test]
fn types_the_host_does_not_compute_with_pass_the_check() {
    let c64 = [Desc {
        dtype: DType::C64,
        shape: &[2],
    }];
    check("floor", &c64, &c64, &[]).unwrap();
    assert_eq!(
        supports("floor", &[DType::C64], &[DType::C64]).unwrap_err(),
        "the host does not run floor on c64"
    );
    assert!(supports("as_type", &[DType(99)], &[DType(99)]).is_err());
    assert!(supports("as_type", &[DType::C128], &[DType::F8]).is_ok());
    assert!(supports("fill", &[], &[DType::U2]).is_ok());
    assert!(supports("nothing", &[], &[]).is_err());
    let mut bytes = [0; 16];
    let x = View {
        dtype: DType::C64,
        shape: &[2],
        strides: &[1],
        offset: 0,
        bytes: &[0; 16],
    };
    let out = Out {
        dtype: DType::C64,
        shape: &[2],
        bytes: &mut bytes,
    };
    assert_eq!(
        run("floor", &[x], &mut [out], &[]).unwrap_err().kind(),
        Kind::Unsupported
    );
}

#[test]
fn every_op_runs_on_all_types_that_its_row_names() {
    for op in ops() {
        let (name, arity, operands, gives) = (op.name, op.arity(), op.types(), op.gives);
        for dtype in DType::all().filter(|dtype| operands.has(*dtype)) {
            let out = if gives.allows(dtype, Some(dtype)) {
                dtype
            } else if gives.allows(dtype.part(), Some(dtype)) {
                dtype.part()
            } else {
                F32
            };
            let out = if gives.allows(out, Some(dtype)) {
                out
            } else {
                U8
            };
            let out = match gives {
                nx_vulkan_ops::op::Gives::Complex => DType::C64,
                _ => out,
            };
            assert!(gives.allows(out, Some(dtype)), "{name} {dtype}");
            assert_eq!(
                supports(name, &vec![dtype; arity], &[out]),
                Ok(()),
                "{name} {dtype}"
            );
        }
    }
}

#[test]
fn views_outside_of_their_bytes_are_refused() {
    for (shape, strides, offset) in [
        (&[3u64][..], &[1i64][..], 0u64),
        (&[2], &[1], 1),
        (&[2], &[-1], 0),
        (&[1], &[1], u64::MAX),
        (&[2], &[i64::MAX], 0),
        (&[2], &[i64::MIN], 1),
        (&[2, 1], &[1], 0),
        (&[1 << 40, 1 << 20], &[i64::MAX, i64::MAX], 0),
    ] {
        let mut bytes = vec![0; 8];
        let x = View {
            dtype: F32,
            shape,
            strides,
            offset,
            bytes: &[0; 8],
        };
        let out = Out {
            dtype: F32,
            shape,
            bytes: &mut bytes,
        };
        assert_eq!(
            run("negate", &[x], &mut [out], &[]).unwrap_err().kind(),
            Kind::BadInput,
            "{shape:?} {strides:?}"
        );
    }
    let x = View {
        dtype: F32,
        shape: &[2],
        strides: &[1],
        offset: 0,
        bytes: &[0; 8],
    };
    let short = Out {
        dtype: F32,
        shape: &[2],
        bytes: &mut [0; 7],
    };
    assert!(
        run("negate", &[x], &mut [short], &[])
            .unwrap_err()
            .to_string()
            .contains("the result has 7 bytes")
    );
    assert!(run("negate", &[x], &mut [], &[]).is_err());
}

/// Half of the requests are plausible, so that many get far.
#[test]
fn random_requests_never_panic() {
    let mut random = Random(18);
    let types: Vec<DType> = DType::all().chain([DType(0), DType(77)]).collect();
    let bytes: Vec<u8> = (0..4096).map(|_| random.next() as u8).collect();
    let mut succeeded = 0;
    let all: Vec<_> = ops().collect();
    for _ in 0..60_000 {
        let info = all[random.below(all.len() as u64) as usize];
        let wild = random.below(2) == 0;
        let dtype =
            |r: &mut Random| types[r.below(if wild { types.len() as u64 } else { 12 }) as usize];
        let extent = |r: &mut Random| {
            if wild && r.below(9) == 0 {
                r.next()
            } else {
                r.below(5)
            }
        };
        let shared: Vec<u64> = (0..random.below(4)).map(|_| extent(&mut random)).collect();
        let shape = |r: &mut Random| -> Vec<u64> {
            if r.below(8) != 0 {
                shared.clone()
            } else {
                (0..r.below(4)).map(|_| extent(r)).collect()
            }
        };
        let operands: Vec<(DType, Vec<u64>, Vec<i64>, u64)> = (0..if wild {
            random.below(4)
        } else {
            info.arity() as u64
        })
            .map(|_| {
                let shape = shape(&mut random);
                let stride = |r: &mut Random| {
                    if wild && r.below(9) == 0 {
                        r.next() as i64
                    } else {
                        r.below(9) as i64 - 2
                    }
                };
                let strides = (0..shape.len()).map(|_| stride(&mut random)).collect();
                (dtype(&mut random), shape, strides, random.below(60))
            })
            .collect();
        let views: Vec<View> = (operands.iter())
            .map(|(dtype, shape, strides, offset)| View {
                dtype: *dtype,
                shape,
                strides,
                offset: *offset,
                bytes: &bytes,
            })
            .collect();
        let mut ints = |name: &str| {
            Attr::ints(
                name,
                (0..random.below(3))
                    .map(|_| random.below(5) as i64 - 1)
                    .collect::<Vec<_>>(),
            )
        };
        let mut attrs: Vec<Attr> = [
            "axes",
            "axis",
            "batch_a",
            "batch_b",
            "bits",
            "contract_a",
            "contract_b",
        ]
        .map(&mut ints)
        .to_vec();
        attrs.push(Attr::text("tie_break", "low"));
        let (out_type, out_shape) = (
            dtype(&mut random),
            if info.arity() == 1 && random.below(2) == 0 {
                vec![]
            } else {
                shape(&mut random)
            },
        );
        let needed = out_shape
            .iter()
            .try_fold(out_type.size(), |n, e| n.checked_mul(*e))
            .filter(|n| *n <= 1 << 16);
        let mut result = vec![0; needed.unwrap_or(8) as usize];
        let out = Out {
            dtype: out_type,
            shape: &out_shape,
            bytes: &mut result,
        };
        succeeded += usize::from(run(info.name, &views, &mut [out], &attrs).is_ok());
    }
    assert!(
        succeeded > 2000,
        "only {succeeded} of the requests were valid"
    );
}
