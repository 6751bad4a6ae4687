//! Reductions of shapes and sizes at which this pack's passes differ, on a real device. What any pack is asked,
//! `nxv check` asks.

use nx_vulkan_abi::DType;
use nx_vulkan_conformance::{
    session::Session,
    sweep::{Own, check},
};
use nx_vulkan_host::{Request, Runtime};
use nx_vulkan_ops::{
    Attr,
    layout::{
        LAYOUTS,
        Layout::{self, Contiguous, Sliced, Transposed},
    },
    op::Types,
    values::Values,
};

/// Layouts of any rank, with elements.
const VIEWS: &[Layout] = LAYOUTS.split_at(5).0;
const FOLDS: [&str; 6] = ["sum", "product", "all", "any", "reduce_max", "reduce_min"];
const PICKS: [&str; 2] = ["argmax", "argmin"];

/// An operand with its type, shape and layout.
type Operand<'a> = (DType, &'a [u64], Layout);

fn reduction(op: &'static str, (dtype, shape, layout): Operand<'_>, attrs: Vec<Attr>) -> Own {
    Own {
        op,
        types: Types {
            inputs: vec![dtype],
            output: None,
        },
        operands: vec![(shape.to_vec(), layout)],
        attrs,
        values: Values::Finite,
    }
}

/// Every fold over `axes`, sums and products also in the operand's type, in which integers wrap.
fn folds(operand: Operand<'_>, axes: &[i64]) -> Vec<Own> {
    let of = |op| reduction(op, operand, vec![Attr::ints("axes", axes)]);
    let mut all: Vec<Own> = FOLDS.map(of).into();
    for mut own in ["sum", "product"].map(of) {
        own.types.output = Some(operand.0);
        all.push(own);
    }
    all
}

/// Every pick along `axis`, or from all elements.
fn picks(operand: Operand<'_>, axis: &[i64]) -> Vec<Own> {
    let of = |op| {
        ["low", "high"].map(|tie| {
            let attrs = vec![Attr::ints("axis", axis), Attr::text("tie_break", tie)];
            reduction(op, operand, attrs)
        })
    };
    PICKS.map(of).into_iter().flatten().collect()
}

/// Every non-empty set of axes.
fn axis_sets(rank: usize) -> impl Iterator<Item = Vec<i64>> {
    let axes = move |bits: usize| (0..rank as i64).filter(move |axis| bits >> axis & 1 == 1);
    (1..1usize << rank).map(move |bits| axes(bits).collect())
}

fn everything(operand: Operand<'_>) -> Vec<Own> {
    let rank = operand.1.len();
    let mut all: Vec<Own> = axis_sets(rank)
        .flat_map(|axes| folds(operand, &axes))
        .collect();
    if !operand.1.contains(&0) {
        let axes = (0..rank as i64).map(|axis| vec![axis]);
        all.extend(axes.chain([vec![]]).flat_map(|axis| picks(operand, &axis)));
    }
    all
}

#[test]
fn every_layout_and_axis() {
    // `nxv check` runs every type; here are one that has NaN and one that a 32-bit register holds.
    let operands = VIEWS
        .iter()
        .flat_map(|l| [(DType::F32, *l), (DType::S16, *l)]);
    let all = operands.flat_map(|(dtype, layout)| everything((dtype, &[4, 33, 72], layout)));
    let special = all.map(|own| Own {
        values: Values::Special,
        ..own
    });
    check("reduce", None, special);
}

#[test]
fn shapes_from_scalar_to_rank_eight() {
    let shapes: [&[u64]; 9] = [
        &[],
        &[1],
        &[1, 1, 1],
        &[4097],
        &[2, 3, 2, 3, 2, 3, 2, 3],
        &[0],
        &[3, 0, 2],
        &[300, 3],
        &[3, 700],
    ];
    let types = [DType::F32, DType::S64].into_iter();
    let operands = types.flat_map(|dtype| shapes.map(|shape| (dtype, shape, Contiguous)));
    // One type stands for all where there are hundreds of sets of axes.
    let operands = operands.filter(|operand| operand.1.len() < 8 || operand.0 == DType::F32);
    check("reduce", None, operands.flat_map(everything));
}

#[test]
fn large_tensors_take_several_passes() {
    let shapes: [(&[u64], &[i64]); 9] = [
        (&[3_000_017], &[0]),
        (&[3, 500_009], &[1]),
        (&[500_009, 3], &[0]),
        (&[700, 1000, 3], &[0, 2]),
        (&[7, 40, 3001], &[0, 2]),
        (&[40, 7, 3001], &[0, 1]),
        (&[2, 90_000, 4], &[1]),
        (&[17, 30_011], &[0]),
        (&[5, 5, 20_000], &[0, 1]),
    ];
    let mut all = Vec::new();
    for dtype in [DType::F32, DType::U8, DType::BF16] {
        for (shape, axes) in shapes {
            for layout in [Contiguous, Transposed, Sliced] {
                let operand = (dtype, shape, layout);
                let fold = |op| reduction(op, operand, vec![Attr::ints("axes", axes)]);
                all.extend(["sum", "reduce_max"].map(fold));
                if axes.len() == 1 {
                    let attrs = vec![Attr::ints("axis", axes), Attr::text("tie_break", "high")];
                    all.push(reduction("argmin", operand, attrs));
                }
            }
        }
    }
    check("reduce", None, all);
}

#[test]
fn operands_beyond_the_buffer_range_are_bound_in_parts() {
    // A little more than 128 MiB, the least range that devices have in practice.
    let operand = (DType::F64, &[4097, 4099][..], Contiguous);
    let sum = |axes| reduction("sum", operand, vec![Attr::ints("axes", axes)]);
    let attrs = vec![Attr::ints("axis", []), Attr::text("tie_break", "high")];
    let pick = reduction("argmax", operand, attrs);
    check("reduce", None, axis_sets(2).map(sum).chain([pick]));
}

/// A runtime with this pack alone.
fn open() -> (Session, std::sync::Arc<Runtime>) {
    let session = Session::of_test("reduce").unwrap();
    let runtime = session.runtime().unwrap();
    (session, runtime)
}

/// The only result of an op on f32, as its bytes.
fn result(runtime: &Runtime, op: &str, values: &[f32], to: DType, attrs: &[Attr]) -> Vec<u8> {
    let shape = [values.len() as u64];
    let bytes: Vec<u8> = values.iter().flat_map(|x| x.to_le_bytes()).collect();
    let tensor = runtime.upload(DType::F32, &shape, &bytes).unwrap();
    let (inputs, outputs) = ([&tensor], [(to, vec![])]);
    let request = Request::new(op, &inputs, &outputs, attrs);
    let ran = runtime.run_reported(&request).unwrap();
    assert!(ran.served_by.starts_with("reduce/"), "{}", ran.served_by);
    runtime.download(&ran.outputs[0], None).unwrap()
}

#[test]
fn sums_of_f32_are_compensated() {
    let (_session, runtime) = open();
    let sum = |values: &[f32]| {
        let bytes = result(
            &runtime,
            "sum",
            values,
            DType::F32,
            &[Attr::ints("axes", [0])],
        );
        f32::from_le_bytes(bytes.try_into().unwrap())
    };
    // Large values that cancel leave the small ones, which plain f32 sums of any order lose.
    let values: Vec<f32> = [3e4, 0.1, -3e4, 0.1].repeat(1 << 20);
    let (got, expected) = (sum(&values), 0.1 * (1 << 21) as f32);
    assert!((got - expected).abs() <= expected * f32::EPSILON, "{got}");
    for (values, expected) in [
        ([f32::INFINITY, 1.0], f32::INFINITY),
        ([f32::NEG_INFINITY, 1.0], f32::NEG_INFINITY),
        ([3e38, 3e38], f32::INFINITY),
        ([-0.0, -0.0], 0.0),
    ] {
        assert_eq!(sum(&values), expected, "{values:?}");
    }
}

#[test]
fn the_last_nan_wins_and_ties_break_as_asked() {
    let (_session, runtime) = open();
    let pick = |op: &str, values: &[f32], tie: &str| {
        let attrs = [Attr::ints("axis", []), Attr::text("tie_break", tie)];
        let bytes = result(&runtime, op, values, DType::S32, &attrs);
        i32::from_le_bytes(bytes.try_into().unwrap())
    };
    let nan = f32::NAN;
    let values = [1.0, 7.0, nan, 7.0, nan, 0.0, f32::NEG_INFINITY, 7.0];
    for (from, until, op, tie, expected) in [
        (0, 8, "argmax", "low", 4),
        (0, 8, "argmax", "high", 4),
        (0, 8, "argmin", "high", 4),
        (5, 8, "argmax", "low", 2),
        (0, 2, "argmin", "low", 0),
        (6, 7, "argmax", "low", 0),
        (6, 7, "argmax", "high", 0),
    ] {
        let some = &values[from..until];
        assert_eq!(pick(op, some, tie), expected, "{op} {tie} of {some:?}");
    }
    let equal = [f32::NEG_INFINITY; 5000];
    assert_eq!(
        ["low", "high"].map(|tie| pick("argmax", &equal, tie)),
        [0, 4999]
    );
}
