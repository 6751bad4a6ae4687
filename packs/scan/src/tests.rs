//! Plans as data.

use crate::{describe, plan};
use nx_vulkan_abi::{DType, DeviceInfo, InputAs, Refusal};
use nx_vulkan_pack_kit::testing::{Ask, Pack, Tensor, defined, files, gpu, words};

fn ask(shape: &[u64], axis: i64) -> Ask {
    let x = Tensor::new(DType::F32, shape);
    let pack = Pack { describe, plan };
    pack.ask(
        "cumulative_sum",
        std::slice::from_ref(&x),
        std::slice::from_ref(&x),
    )
    .ints("axis", &[axis])
}

#[test]
fn many_lines_take_one_dispatch_and_long_ones_three() {
    for (shape, axis, file) in [
        ([8192, 8192], 1, "rows.comp"),
        ([8192, 8192], 0, "columns.comp"),
        ([1 << 16, 128], 1, "scan.comp"),
    ] {
        assert_eq!(files(&ask(&shape, axis).plan().unwrap()), [file]);
    }
    let along = ["totals.comp", "scan.comp", "rows.comp"];
    for (shape, axis, in_turn) in [
        (&[50_000_000][..], 0, along),
        (&[3, 1 << 20], 1, along),
        (&[1 << 20, 3], 0, ["scan.comp"; 3]),
    ] {
        let plan = ask(shape, axis).plan().unwrap();
        assert_eq!(files(&plan), in_turn, "{shape:?}");
    }
    assert_eq!(ask(&[0, 3], 1).plan().unwrap().steps.len(), 0);
}

#[test]
fn little_shared_memory_means_fewer_invocations() {
    let small = DeviceInfo {
        shared_bytes: 16 << 10,
        ..gpu()
    };
    let workgroup = |dtype, device| {
        let x = Tensor::new(dtype, &[1 << 16, 128]);
        let pack = Pack { describe, plan };
        let all = std::slice::from_ref(&x);
        let plan = pack
            .ask("cumulative_sum", all, all)
            .ints("axis", &[1])
            .on(device)
            .plan()
            .unwrap();
        defined(&plan, 0, "WORKGROUP").parse::<u64>().unwrap()
    };
    for dtype in [DType::F32, DType::F64, DType::C64, DType::C128] {
        let size = dtype.size();
        let bytes = |workgroup: u64| workgroup * (8 + 2 * size) + workgroup * 8 * 33 / 32 * size;
        let few = workgroup(dtype, small);
        assert!(bytes(few) <= 16 << 10, "{dtype}: {few}");
        assert_eq!(workgroup(dtype, gpu()), 256);
    }
}

/// A zero in front keeps its sign.
#[test]
fn sums_of_floats_start_at_the_zero_that_changes_nothing() {
    let start = |dtype| {
        let x = Tensor::new(dtype, &[100]);
        let pack = Pack { describe, plan };
        let all = std::slice::from_ref(&x);
        let plan = pack
            .ask("cumulative_sum", all, all)
            .ints("axis", &[0])
            .plan()
            .unwrap();
        defined(&plan, 0, "START").to_owned()
    };
    assert_eq!(
        [DType::F16, DType::C64, DType::S32].map(start),
        ["-0.0", "-0.0", "0"]
    );
}

#[test]
fn parts_are_many_and_their_totals_few() {
    for (shape, axis, parts) in [
        (&[50_000_000][..], 0, 3052),
        (&[1 << 24], 0, 2048),
        (&[1 << 20], 0, 1024),
        (&[2, 1 << 20], 1, 512),
    ] {
        let plan = ask(shape, axis).plan().unwrap();
        assert_eq!(words(&plan, 0)[5], parts, "{shape:?}");
        let elements = words(&plan, 0)[6] * 4 * parts;
        assert!(u64::from(elements) >= shape[axis as usize], "{shape:?}");
    }
    assert_eq!(files(&ask(&[30_000], 0).plan().unwrap()), ["rows.comp"]);
}

#[test]
fn vectors_are_as_wide_as_lines_are_aligned() {
    let width = |shape: [u64; 2], axis: i64| {
        let plan = ask(&shape, axis).plan().unwrap();
        defined(&plan, 0, "WIDTH").to_owned()
    };
    assert_eq!(
        [8192, 5002, 5001].map(|n| width([8192, n], 1)),
        ["4", "2", "1"]
    );
    assert_eq!(
        [8192, 8190, 8191].map(|n| width([8192, n], 0)),
        ["4", "2", "1"]
    );
}

#[test]
fn a_reverse_scan_starts_at_the_last_element() {
    let plan = ask(&[5, 7], 1).ints("reverse", &[1]).plan().unwrap();
    assert_eq!(words(&plan, 0)[..4], [6, u32::MAX, 6, u32::MAX]);
}

#[test]
fn operands_in_a_bad_order_are_asked_for_in_theirs() {
    let mut ask = ask(&[1000, 1000], 1);
    ask.inputs[0] = ask.inputs[0].clone().strided(&[1, 1000], 0);
    let asked = Refusal::InputsAs(vec![InputAs::new(0, DType::F32)]);
    assert_eq!(ask.plan(), Err(asked));
}

#[test]
fn what_is_no_scan_is_refused() {
    assert!(ask(&[5], 1).reason().contains("no such axis"));
    assert!(ask(&[5], -1).reason().contains("no such axis"));
    let mut other = ask(&[5], 0);
    other.outputs[0] = Tensor::new(DType::F32, &[6]);
    assert!(other.reason().contains("its operand"));
}
