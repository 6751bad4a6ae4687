//! Every op on every type, layout and set of axes, on a real device, against the host kernels.

mod bench;

use bench::{Bench, Layout, tolerance};
use nx_vulkan_abi::DType;
use nx_vulkan_host::Attr;

const FOLDS: [&str; 6] = ["sum", "product", "all", "any", "reduce_max", "reduce_min"];
const PICKS: [&str; 2] = ["argmax", "argmin"];

/// Result types to ask for: those that Nx infers, and the operand's own for sums and products that wrap.
fn results(op: &str, operand: DType) -> Vec<DType> {
    match op {
        "all" | "any" => vec![DType::U8],
        "argmax" | "argmin" => vec![DType::S32],
        "sum" if operand.is_unsigned() => vec![DType::U32.max(operand), operand],
        "sum" if operand.is_signed() => vec![DType::S32.max(operand), operand],
        _ => vec![operand],
    }
}

/// Every non-empty set of axes.
fn axis_sets(rank: usize) -> impl Iterator<Item = Vec<i64>> {
    (1..1usize << rank).map(move |bits| {
        (0..rank as i64)
            .filter(|axis| bits >> axis & 1 == 1)
            .collect()
    })
}

fn check_all(bench: &Bench, operand: DType, shape: &[u64], layout: Layout, special: bool) {
    let case = bench.case(operand, shape, layout, special);
    for axes in axis_sets(shape.len()) {
        for op in FOLDS {
            for result in results(op, operand) {
                case.check(op, result, &axes, &[Attr::ints("axes", axes.clone())]);
            }
        }
    }
    if shape.contains(&0) {
        return;
    }
    let each = (0..shape.len() as i64).map(|axis| vec![axis]);
    for axis in each.chain([Vec::new()]) {
        let gone = if axis.is_empty() {
            (0..shape.len() as i64).collect()
        } else {
            axis.clone()
        };
        for (op, tie) in PICKS.iter().flat_map(|op| [(op, "low"), (op, "high")]) {
            let attrs = [
                Attr::ints("axis", axis.clone()),
                Attr::text("tie_break", tie),
            ];
            case.check(op, results(op, operand)[0], &gone, &attrs);
        }
    }
}

#[test]
fn every_layout_and_axis() {
    let bench = &Bench::open();
    std::thread::scope(|scope| {
        // `nxv check` runs every type; here are one that has NaN and one that a 32-bit register holds.
        for operand in [DType::F32, DType::S16] {
            scope.spawn(move || {
                for layout in Layout::ALL {
                    check_all(bench, operand, &[4, 33, 72], layout, operand.is_float());
                }
            });
        }
    });
}

#[test]
fn shapes_from_scalar_to_rank_eight() {
    let bench = Bench::open();
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
    for operand in [DType::F32, DType::S16, DType::F64] {
        for shape in shapes {
            check_all(&bench, operand, shape, Layout::Contiguous, false);
        }
    }
}

#[test]
fn large_tensors_take_several_passes() {
    let bench = Bench::open();
    let shapes: [(&[u64], &[i64]); 7] = [
        (&[3_000_017], &[0]),
        (&[3, 500_009], &[1]),
        (&[500_009, 3], &[0]),
        (&[700, 1000, 3], &[0, 2]),
        (&[7, 40, 3001], &[0, 2]),
        (&[40, 7, 3001], &[0, 1]),
        (&[2, 90_000, 4], &[1]),
    ];
    for operand in [DType::F32, DType::U8, DType::BF16, DType::F64, DType::S64] {
        for (shape, axes) in shapes {
            for layout in [Layout::Contiguous, Layout::Transposed, Layout::Sliced] {
                let case = bench.case(operand, shape, layout, false);
                for op in ["sum", "reduce_max"] {
                    case.check(
                        op,
                        results(op, operand)[0],
                        axes,
                        &[Attr::ints("axes", axes)],
                    );
                }
                if axes.len() == 1 {
                    let attrs = [Attr::ints("axis", axes), Attr::text("tie_break", "high")];
                    case.check("argmin", DType::S32, axes, &attrs);
                }
            }
        }
    }
}

#[test]
fn operands_beyond_the_buffer_range_are_bound_in_parts() {
    let bench = Bench::open();
    // A little more than 128 MiB, the least range that devices have in practice.
    let case = bench.case(DType::F64, &[4097, 4099], Layout::Contiguous, false);
    for axes in axis_sets(2) {
        case.check(
            "sum",
            DType::F64,
            &axes,
            &[Attr::ints("axes", axes.clone())],
        );
    }
    let attrs = [Attr::ints("axis", []), Attr::text("tie_break", "high")];
    case.check("argmax", DType::S32, &[0, 1], &attrs);
}

#[test]
fn sums_of_f32_are_compensated() {
    let bench = Bench::open();
    let (shape, count) = ([1u64 << 22], 1 << 22);
    // Large values that cancel leave the small ones, which plain f32 sums of any order lose.
    let values: Vec<f64> = (0..count)
        .map(|i| match i % 4 {
            0 => 3e4,
            2 => -3e4,
            _ => 0.1,
        })
        .collect();
    let tensor = bench.upload(DType::F32, &shape, &values);
    let got = bench.run("sum", &tensor, DType::F32, &[], &[Attr::ints("axes", [0])]);
    let expected = f64::from(0.1f32) * f64::from(count / 2);
    assert!(
        (got[0] - expected).abs() <= expected * f64::from(f32::EPSILON),
        "{} {expected}",
        got[0]
    );
    for (values, expected) in [
        ([f64::INFINITY, 1.0], f64::INFINITY),
        ([f64::NEG_INFINITY, 1.0], f64::NEG_INFINITY),
        ([3e38, 3e38], f64::INFINITY),
        ([-0.0, -0.0], 0.0),
    ] {
        let tensor = bench.upload(DType::F32, &[2], &values);
        let got = bench.run("sum", &tensor, DType::F32, &[], &[Attr::ints("axes", [0])]);
        assert_eq!(got[0], expected, "{values:?}");
    }
}

#[test]
fn the_same_request_gives_the_same_bits() {
    let bench = Bench::open();
    let case = bench.case(DType::F32, &[300, 2000], Layout::Contiguous, false);
    for axes in axis_sets(2) {
        let attrs = [Attr::ints("axes", axes.clone())];
        let first = case.bits("product", DType::F32, &axes, &attrs);
        for _ in 0..3 {
            assert_eq!(
                case.bits("product", DType::F32, &axes, &attrs),
                first,
                "{axes:?}"
            );
        }
    }
}

#[test]
fn the_last_nan_wins_and_ties_break_as_asked() {
    let bench = Bench::open();
    let values = [
        1.0,
        7.0,
        f64::NAN,
        7.0,
        f64::NAN,
        0.0,
        f64::NEG_INFINITY,
        7.0,
    ];
    for (from, until, op, tie, expected) in [
        (0, 8, "argmax", "low", 4.0),
        (0, 8, "argmax", "high", 4.0),
        (0, 8, "argmin", "high", 4.0),
        (5, 8, "argmax", "low", 2.0),
        (0, 2, "argmin", "low", 0.0),
        (6, 7, "argmax", "low", 0.0),
        (6, 7, "argmax", "high", 0.0),
    ] {
        let tensor = bench.upload(
            DType::F32,
            &[until - from],
            &values[from as usize..until as usize],
        );
        let attrs = [Attr::ints("axis", []), Attr::text("tie_break", tie)];
        let got = bench.run(op, &tensor, DType::S32, &[], &attrs);
        assert_eq!(
            got,
            [expected],
            "{op} {tie} of {:?}",
            &values[from as usize..until as usize]
        );
    }
    let equal = vec![f64::NEG_INFINITY; 5000];
    let tensor = bench.upload(DType::F64, &[5000], &equal);
    for (tie, expected) in [("low", 0.0), ("high", 4999.0)] {
        let attrs = [Attr::ints("axis", [0]), Attr::text("tie_break", tie)];
        assert_eq!(
            bench.run("argmax", &tensor, DType::S64, &[], &attrs),
            [expected],
            "{tie}"
        );
    }
}

#[test]
fn the_tolerance_can_fail() {
    assert!(tolerance("sum", DType::F32, 1000, 10.0, 100.0) < 1e-4);
    assert_eq!(tolerance("reduce_max", DType::F32, 1000, 10.0, 100.0), 0.0);
    assert_eq!(tolerance("sum", DType::S32, 1000, 10.0, 100.0), 0.0);
}
