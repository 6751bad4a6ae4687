//! Plans, without a device.

mod ask;

use super::*;
use ask::{Operand, ask, ask_on, check, define, device, files};
use nx_vulkan_abi::{
    DType, DTypeSet, DeviceInfo, DeviceKind, Features, layout::contiguous_strides,
};

#[test]
fn the_table_has_every_op_once() {
    let kernels = describe().unwrap().kernels;
    let ids: std::collections::HashSet<&str> = kernels.iter().map(|row| row.id.as_str()).collect();
    let ops: std::collections::HashSet<&str> = kernels.iter().map(|row| row.op.as_str()).collect();
    assert_eq!(ids.len(), kernels.len());
    let (unary, binary, others, creation) = (37, 24, 3, 3);
    assert_eq!(
        ops.len(),
        unary + binary + others + creation,
        "docs/ops.md lists them"
    );
}

#[test]
fn every_row_plans_every_type_it_accepts() {
    let all: Vec<DType> = DType::all()
        .filter(|dtype| DTypeSet::REAL.has(*dtype))
        .collect();
    for row in Table::get()
        .unwrap()
        .rows
        .iter()
        .filter(|row| row.family == Family::Map)
    {
        let arity = row.takes.len();
        // Operand types count through all tuples; a third operand takes the types of the first two in turn.
        for tuple in 0..all.len().pow(arity.min(2) as u32) {
            let (first, second) = (all[tuple % all.len()], all[tuple / all.len() % all.len()]);
            let types = [first, second, if tuple % 2 == 0 { first } else { second }];
            let taken = types
                .iter()
                .zip(&row.takes)
                .all(|(dtype, takes)| takes.has(*dtype));
            for result in all.iter().filter(|dtype| row.gives.has(**dtype)) {
                let inputs: Vec<Operand> = types[..arity]
                    .iter()
                    .map(|dtype| Operand::new(*dtype, &[5, 7]))
                    .collect();
                match ask(&row.op.op, &inputs, (*result, &[5, 7])) {
                    Ok(plan) => check(&plan, &device(), 35 * result.size()),
                    Err(refusal) => assert!(
                        !taken && matches!(refusal, Refusal::Decline(_)),
                        "{refusal:?}"
                    ),
                }
            }
        }
    }
}

#[test]
fn contiguous_and_scalar_operands_take_the_flat_path() {
    let (a, scalar) = (
        Operand::new(DType::F32, &[64, 64, 3]),
        Operand::new(DType::F32, &[]),
    );
    let plan = ask("add", &[a.clone(), scalar], (DType::F32, &[64, 64, 3])).unwrap();
    assert_eq!(files(&plan), ["contiguous.comp"]);
    assert_eq!(define(&plan, &plan.steps[0], "A_READ"), Some("READ_VECTOR"));
    assert_eq!(define(&plan, &plan.steps[0], "B_READ"), Some("READ_SCALAR"));
    let plan = ask("exp", &[a.at(2)], (DType::F32, &[64, 64, 3])).unwrap();
    assert_eq!(define(&plan, &plan.steps[0], "A_READ"), Some("READ_STEPS"));
}

#[test]
fn rows_and_columns_broadcast_in_vectors() {
    let all = Operand::new(DType::F32, &[8192, 8192]);
    for (other, read) in [(&[8192][..], "READ_VECTOR"), (&[8192, 1], "READ_SCALAR")] {
        let inputs = [all.clone(), Operand::new(DType::F32, other)];
        let plan = ask("add", &inputs, (DType::F32, &[8192, 8192])).unwrap();
        let step = &plan.steps[0];
        assert_eq!(files(&plan), ["strided.comp"]);
        assert_eq!(define(&plan, step, "RANK"), Some("2"));
        assert_eq!(define(&plan, step, "WIDTH"), Some("4"));
        assert_eq!(define(&plan, step, "A_READ"), Some("READ_VECTOR"));
        assert_eq!(define(&plan, step, "B_READ"), Some(read));
    }
}

#[test]
fn threads_take_more_where_an_invocation_is_dear() {
    let gpu = device();
    let cpu = DeviceInfo {
        kind: DeviceKind::CPU,
        ..device()
    };
    let vectors = |device, op: &str, count: u64, inputs: usize| {
        let a = Operand::new(DType::F32, &[count]);
        let plan = ask_on(device, op, &vec![a; inputs], (DType::F32, &[count]), None).unwrap();
        check(&plan, device, count * 4);
        let vectors = define(&plan, &plan.steps[0], "VECTORS");
        vectors.unwrap().parse::<u64>().unwrap()
    };
    assert_eq!(vectors(&cpu, "exp", 1_000_003, 1), 4);
    assert_eq!(vectors(&cpu, "add", 1_000_003, 2), 2);
    assert_eq!(vectors(&cpu, "exp", 1000, 1), 1);
    assert_eq!(vectors(&gpu, "exp", 1_000_003, 1), 1);
    assert_eq!(vectors(&gpu, "exp", 1 << 22, 1), 2);
}

#[test]
fn many_axes_move_their_parameters_into_the_params_buffer() {
    let shape = [2, 3, 2, 3, 2, 3, 2, 3];
    let reversed: Vec<i64> = contiguous_strides(&shape)
        .iter()
        .map(|stride| -stride)
        .collect();
    let mixed: Vec<i64> = [0, 1, 0, 4, 0, 16, 0, 64].to_vec();
    let a = Operand::new(DType::F32, &shape)
        .with_strides(&reversed)
        .at(1295);
    let b = Operand::new(DType::F32, &shape).with_strides(&mixed);
    let plan = ask("multiply", &[a, b], (DType::F32, &shape)).unwrap();
    assert_eq!(define(&plan, &plan.steps[0], "RANK"), Some("8"));
    assert_eq!(define(&plan, &plan.steps[0], "PARAMS_BINDING"), Some("3"));
    assert!(plan.steps[0].push.is_empty() && plan.params.len() > 128);
    check(&plan, &device(), 1296 * 4);
}

#[test]
fn tensors_beyond_the_buffer_range_are_cut_into_steps() {
    let device = DeviceInfo {
        max_buffer_range: 1 << 20,
        max_groups: [16, 1000, 1],
        ..device()
    };
    for (count, offset) in [(1_000_003, 0), (262_144, 3), (262_145, 0), (999, 0)] {
        let a = Operand::new(DType::F32, &[count]).at(offset);
        let b = Operand::new(DType::U8, &[count]).at(1);
        let plan = ask_on(&device, "add", &[a, b], (DType::F32, &[count]), None).unwrap();
        assert_eq!(
            plan.steps.len() > 1,
            count > 262_144 || offset > 0 && count > 999,
            "{count}"
        );
        check(&plan, &device, count * 4);
    }
    let row = Operand::new(DType::F32, &[1000]);
    let plan = ask_on(
        &device,
        "add",
        &[Operand::new(DType::F32, &[3000, 1000]), row],
        (DType::F32, &[3000, 1000]),
        None,
    );
    check(&plan.unwrap(), &device, 12_000_000);
}

#[test]
fn one_index_beyond_the_buffer_range_declines() {
    let device = DeviceInfo {
        max_buffer_range: 1 << 20,
        ..device()
    };
    let spread = Operand::new(DType::F32, &[300, 300]).with_strides(&[2, 4000]);
    let refusal = ask_on(&device, "exp", &[spread], (DType::F32, &[300, 300]), None).unwrap_err();
    assert!(
        matches!(&refusal, Refusal::Decline(why) if why.contains("1048576 bytes")),
        "{refusal:?}"
    );
}

#[test]
fn more_steps_than_a_plan_may_have_decline() {
    let device = DeviceInfo {
        max_buffer_range: 1 << 16,
        ..device()
    };
    let long = Operand::new(DType::F32, &[2_000_000]);
    let refusal = ask_on(&device, "exp", &[long], (DType::F32, &[2_000_000]), None).unwrap_err();
    assert!(
        matches!(&refusal, Refusal::Decline(why) if why.contains("steps")),
        "{refusal:?}"
    );
}

#[test]
fn more_than_two_to_the_31_elements_take_wide_indices() {
    let count = 3 << 30;
    let even = Operand::new(DType::U8, &[count]).with_strides(&[2]);
    let device = DeviceInfo {
        max_buffer_range: u64::MAX,
        ..device()
    };
    let plan = ask_on(&device, "negate", &[even], (DType::U8, &[count]), None).unwrap();
    check(&plan, &device, count);
    let crossed = Operand::new(DType::U8, &[2, count]).with_strides(&[2, 3]);
    let plan = ask_on(
        &device,
        "negate",
        &[crossed],
        (DType::U8, &[2, count]),
        None,
    )
    .unwrap();
    assert_eq!(define(&plan, &plan.steps[0], "INDEX"), Some("uint64_t"));
    check(&plan, &device, 2 * count);
}

#[test]
fn zero_elements_need_no_steps() {
    let none = Operand::new(DType::F32, &[0, 3]);
    assert_eq!(
        ask("exp", std::slice::from_ref(&none), (DType::F32, &[0, 3])).unwrap(),
        Plan::default()
    );
    assert_eq!(
        ask("as_type", &[none], (DType::F32, &[0, 3])).unwrap(),
        Plan::default()
    );
    assert_eq!(
        ask("iota", &[], (DType::F32, &[0])).unwrap(),
        Plan::default()
    );
}

#[test]
fn missing_features_are_named() {
    let device = DeviceInfo {
        features: Features::NONE,
        ..device()
    };
    for (dtype, feature) in [
        (DType::F64, "fp64"),
        (DType::U8, "storage8"),
        (DType::BF16, "storage16"),
        (DType::S64, "int64"),
    ] {
        let operand = Operand::new(dtype, &[4]);
        let refusal = ask_on(
            &device,
            "add",
            &[operand.clone(), operand],
            (dtype, &[4]),
            None,
        )
        .unwrap_err();
        assert!(
            matches!(&refusal, Refusal::Decline(why) if why.contains(feature)),
            "{refusal:?}"
        );
    }
    let pairs = Operand::new(DType::C64, &[4]);
    check(
        &ask_on(&device, "as_type", &[pairs], (DType::C64, &[4]), None).unwrap(),
        &device,
        32,
    );
}

#[test]
fn large_transposed_operands_are_asked_for_contiguous() {
    let a = Operand::new(DType::BF16, &[1024, 1024]);
    let b = a.clone().with_strides(&[1, 1024]);
    let refusal = ask("add", &[a, b], (DType::BF16, &[1024, 1024])).unwrap_err();
    let wanted = nx_vulkan_abi::InputAs::new(1, DType::BF16);
    assert_eq!(refusal, Refusal::InputsAs(vec![wanted]));
}

#[test]
fn copies_move_the_largest_elements_that_fit() {
    for (dtype, count, offset, storage) in [
        (DType::U8, 64, 16, "uvec4"),
        (DType::U8, 64, 4, "uint"),
        (DType::F8, 63, 0, "uint8_t"),
        (DType::BF16, 30, 0, "uint"),
        (DType::C64, 31, 0, "uvec2"),
        (DType::C128, 31, 1, "uvec4"),
    ] {
        let plan = ask(
            "as_type",
            &[Operand::new(dtype, &[count]).at(offset)],
            (dtype, &[count]),
        )
        .unwrap();
        assert_eq!(
            define(&plan, &plan.steps[0], "A_STORAGE"),
            Some(storage),
            "{dtype}"
        );
        check(&plan, &device(), count * dtype.size());
    }
    let refusal = ask(
        "as_type",
        &[Operand::new(DType::C128, &[2])],
        (DType::F64, &[2]),
    )
    .unwrap_err();
    assert!(matches!(refusal, Refusal::Decline(_)));
}

#[test]
fn permutations_pass_through_tiles() {
    for dtype in DType::all() {
        let flipped = Operand::new(dtype, &[100, 70]).with_strides(&[1, 100]);
        let plan = ask("as_type", &[flipped], (dtype, &[100, 70])).unwrap();
        assert_eq!(files(&plan), ["transpose.comp"], "{dtype}");
        check(&plan, &device(), 7000 * dtype.size());
    }
    let channels_last = Operand::new(DType::F32, &[2, 3, 64, 63]).with_strides(&[12096, 1, 189, 3]);
    let plan = ask("as_type", &[channels_last], (DType::F32, &[2, 3, 64, 63])).unwrap();
    assert_eq!(
        files(&plan),
        ["strided.comp"],
        "three channels are too few for a tile"
    );
    let heads = Operand::new(DType::F32, &[2, 16, 64, 32]).with_strides(&[32768, 1, 16, 1024]);
    let plan = ask("as_type", &[heads], (DType::F32, &[2, 16, 64, 32])).unwrap();
    assert_eq!(files(&plan), ["transpose.comp"]);
    check(&plan, &device(), 65536 * 4);
}

#[test]
fn creation_covers_its_result() {
    for dtype in DType::all() {
        let bits: &[i64] = if dtype.size() == 16 { &[1, 2] } else { &[1] };
        for count in [1, 2, 63, 4096] {
            let plan = ask_on(
                &device(),
                "fill",
                &[],
                (dtype, &[count]),
                Some(("bits", bits)),
            )
            .unwrap();
            check(&plan, &device(), count * dtype.size());
        }
        if DTypeSet::REAL.has(dtype) {
            let plan = ask_on(
                &device(),
                "iota",
                &[],
                (dtype, &[3, 5, 7]),
                Some(("axis", &[1])),
            )
            .unwrap();
            check(&plan, &device(), 105 * dtype.size());
            check(
                &ask("eye", &[], (dtype, &[2, 9, 7])).unwrap(),
                &device(),
                126 * dtype.size(),
            );
        }
    }
    let refusal = ask_on(
        &device(),
        "iota",
        &[],
        (DType::F32, &[3]),
        Some(("axis", &[1])),
    )
    .unwrap_err();
    assert!(matches!(refusal, Refusal::BadRequest(_)));
}
