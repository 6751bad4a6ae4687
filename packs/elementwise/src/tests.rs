//! Plans, without a device.

mod ask;
mod fused;

use super::*;
use ask::{ask, checked};
use nx_vulkan_abi::{DType, DTypeSet, DeviceInfo, Features, layout::contiguous_strides};
use nx_vulkan_pack_kit::testing::{Tensor, cpu, defined, files, gpu};

#[test]
fn the_table_has_every_op_once() {
    let kernels = describe().unwrap().kernels;
    let ids: std::collections::HashSet<&str> = kernels.iter().map(|row| row.id.as_str()).collect();
    let ops: std::collections::HashSet<&str> = kernels.iter().map(|row| row.op.as_str()).collect();
    assert_eq!(ids.len(), kernels.len());
    let (unary, binary, others, creation, fused) = (37, 24, 3, 3, 1);
    assert_eq!(
        ops.len(),
        unary + binary + others + creation + fused,
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
        // Tensor types count through all tuples; a third operand takes the types of the first two in turn.
        for tuple in 0..all.len().pow(arity.min(2) as u32) {
            let (first, second) = (all[tuple % all.len()], all[tuple / all.len() % all.len()]);
            let types = [first, second, if tuple % 2 == 0 { first } else { second }];
            let taken = types
                .iter()
                .zip(&row.takes)
                .all(|(dtype, takes)| takes.has(*dtype));
            for result in all.iter().filter(|dtype| row.gives.has(**dtype)) {
                let inputs: Vec<Tensor> = types[..arity]
                    .iter()
                    .map(|dtype| Tensor::new(*dtype, &[5, 7]))
                    .collect();
                let ask = ask(&row.op.op, &inputs, (*result, &[5, 7]));
                if taken {
                    checked(&ask);
                } else {
                    assert!(matches!(ask.plan(), Err(Refusal::Decline(_))), "{ask:?}");
                }
            }
        }
    }
}

#[test]
fn contiguous_and_scalar_operands_take_the_flat_path() {
    let shape = [64, 64, 3];
    let (a, scalar) = (
        Tensor::new(DType::F32, &shape),
        Tensor::new(DType::F32, &[]),
    );
    let plan = checked(&ask("add", &[a.clone(), scalar], (DType::F32, &shape)));
    assert_eq!(files(&plan), ["contiguous.comp"]);
    let reads = ["A_READ", "B_READ"].map(|name| defined(&plan, 0, name));
    assert_eq!(reads, ["READ_VECTOR", "READ_SCALAR"]);
    let later = Tensor { offset: 2, ..a };
    let plan = checked(&ask("exp", &[later], (DType::F32, &shape)));
    assert_eq!(defined(&plan, 0, "A_READ"), "READ_STEPS");
}

#[test]
fn rows_and_columns_broadcast_in_vectors() {
    let all = Tensor::new(DType::F32, &[8192, 8192]);
    for (other, read) in [(&[8192][..], "READ_VECTOR"), (&[8192, 1], "READ_SCALAR")] {
        let inputs = [all.clone(), Tensor::new(DType::F32, other)];
        let plan = checked(&ask("add", &inputs, (DType::F32, &[8192, 8192])));
        assert_eq!(files(&plan), ["strided.comp"]);
        let given = ["RANK", "WIDTH", "A_READ", "B_READ"].map(|name| defined(&plan, 0, name));
        assert_eq!(given, ["2", "4", "READ_VECTOR", read]);
    }
}

#[test]
fn threads_take_more_where_an_invocation_is_dear() {
    let vectors = |device, op: &str, count: u64, inputs: usize| {
        let a = Tensor::new(DType::F32, &[count]);
        let ask = ask(op, &vec![a; inputs], (DType::F32, &[count]));
        defined(&checked(&ask.on(device)), 0, "VECTORS").to_owned()
    };
    assert_eq!(vectors(cpu(), "exp", 1_000_003, 1), "4");
    assert_eq!(vectors(cpu(), "add", 1_000_003, 2), "2");
    assert_eq!(vectors(cpu(), "exp", 1000, 1), "1");
    assert_eq!(vectors(gpu(), "exp", 1_000_003, 1), "1");
    assert_eq!(vectors(gpu(), "exp", 1 << 22, 1), "2");
}

#[test]
fn an_element_for_all_takes_no_share_of_what_a_thread_loads() {
    let (all, one) = (
        Tensor::new(DType::F32, &[1 << 22]),
        Tensor::new(DType::F32, &[]),
    );
    let inputs = [all, one.clone(), one];
    let ask = ask("clip", &inputs, (DType::F32, &[1 << 22]));
    assert_eq!(defined(&checked(&ask.on(gpu())), 0, "VECTORS"), "2");
}

#[test]
fn many_axes_move_their_parameters_into_the_params_buffer() {
    let shape = [2, 3, 2, 3, 2, 3, 2, 3];
    let reversed = contiguous_strides(&shape).into_iter().map(|stride| -stride);
    let a = Tensor::new(DType::F32, &shape).strided(&Vec::from_iter(reversed), 1295);
    let b = Tensor::new(DType::F32, &shape).strided(&[0, 1, 0, 4, 0, 16, 0, 64], 0);
    let plan = checked(&ask("multiply", &[a, b], (DType::F32, &shape)));
    assert_eq!(defined(&plan, 0, "RANK"), "8");
    assert_eq!(defined(&plan, 0, "PARAMS_BINDING"), "3");
    assert!(plan.steps[0].push.is_empty() && plan.params.len() > 128);
}

#[test]
fn tensors_beyond_the_buffer_range_are_cut_into_steps() {
    let device = DeviceInfo {
        max_buffer_range: 1 << 20,
        max_groups: [16, 1000, 1],
        ..gpu()
    };
    for (count, offset) in [(1_000_003, 0), (262_144, 3), (262_145, 0), (999, 0)] {
        let a = Tensor::new(DType::F32, &[count]).strided(&[1], offset);
        let b = Tensor::new(DType::U8, &[count]).strided(&[1], 1);
        let plan = checked(&ask("add", &[a, b], (DType::F32, &[count])).on(device));
        assert_eq!(
            plan.steps.len() > 1,
            count > 262_144 || offset > 0 && count > 999,
            "{count}"
        );
    }
    let (rows, row) = ([3000, 1000], Tensor::new(DType::F32, &[1000]));
    let inputs = [Tensor::new(DType::F32, &rows), row];
    checked(&ask("add", &inputs, (DType::F32, &rows)).on(device));
}

#[test]
fn one_index_beyond_the_buffer_range_declines() {
    let device = DeviceInfo {
        max_buffer_range: 1 << 20,
        ..gpu()
    };
    let spread = Tensor::new(DType::F32, &[300, 300]).strided(&[2, 4000], 0);
    let why = ask("exp", &[spread], (DType::F32, &[300, 300]))
        .on(device)
        .reason();
    assert!(why.contains("1048576 bytes"), "{why}");
}

#[test]
fn more_steps_than_a_plan_may_have_decline() {
    let device = DeviceInfo {
        max_buffer_range: 1 << 16,
        ..gpu()
    };
    let long = Tensor::new(DType::F32, &[2_000_000]);
    let why = ask("exp", &[long], (DType::F32, &[2_000_000]))
        .on(device)
        .reason();
    assert!(why.contains("steps"), "{why}");
}

#[test]
fn more_than_two_to_the_31_elements_take_wide_indices() {
    let count = 3 << 30;
    let device = DeviceInfo {
        max_buffer_range: u64::MAX,
        ..gpu()
    };
    let even = Tensor::new(DType::U8, &[count]).strided(&[2], 0);
    checked(&ask("negate", &[even], (DType::U8, &[count])).on(device));
    let crossed = Tensor::new(DType::U8, &[2, count]).strided(&[2, 3], 0);
    let plan = checked(&ask("negate", &[crossed], (DType::U8, &[2, count])).on(device));
    assert_eq!(defined(&plan, 0, "INDEX"), "uint64_t");
}

#[test]
fn zero_elements_need_no_steps() {
    let none = Tensor::new(DType::F32, &[0, 3]);
    for (op, inputs) in [
        ("exp", &[none.clone()][..]),
        ("as_type", &[none]),
        ("iota", &[]),
    ] {
        let plan = checked(&ask(op, inputs, (DType::F32, &[0, 3])));
        assert_eq!(plan, Plan::default(), "{op}");
    }
}

#[test]
fn missing_features_are_named() {
    let device = DeviceInfo {
        features: Features::NONE,
        ..gpu()
    };
    for (dtype, feature) in [
        (DType::F64, "fp64"),
        (DType::U8, "storage8"),
        (DType::BF16, "storage16"),
        (DType::S64, "int64"),
    ] {
        let operand = Tensor::new(dtype, &[4]);
        let ask = ask("add", &[operand.clone(), operand], (dtype, &[4]));
        let why = ask.on(device).reason();
        assert!(why.contains(feature), "{why}");
    }
    let pairs = Tensor::new(DType::C64, &[4]);
    checked(&ask("as_type", &[pairs], (DType::C64, &[4])).on(device));
}

#[test]
fn large_transposed_operands_are_asked_for_contiguous() {
    let shape = [1024, 1024];
    let a = Tensor::new(DType::BF16, &shape);
    let b = a.clone().strided(&[1, 1024], 0);
    let wanted = nx_vulkan_abi::InputAs::new(1, DType::BF16);
    assert_eq!(
        ask("add", &[a, b], (DType::BF16, &shape)).plan(),
        Err(Refusal::InputsAs(vec![wanted]))
    );
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
        let operand = Tensor::new(dtype, &[count]).strided(&[1], offset);
        let plan = checked(&ask("as_type", &[operand], (dtype, &[count])));
        assert_eq!(defined(&plan, 0, "A_STORAGE"), storage, "{dtype}");
    }
    let pair = Tensor::new(DType::C128, &[2]);
    checked(&ask("as_type", &[pair], (DType::F64, &[2])));
}

#[test]
fn permutations_pass_through_tiles() {
    let files_of = |dtype, shape: &[u64], strides: &[i64]| {
        let operand = Tensor::new(dtype, shape).strided(strides, 0);
        files(&checked(&ask("as_type", &[operand], (dtype, shape)))).join(" ")
    };
    for dtype in DType::all() {
        let file = files_of(dtype, &[100, 70], &[1, 100]);
        assert_eq!(file, "transpose.comp", "{dtype}");
    }
    assert_eq!(
        files_of(DType::F32, &[2, 3, 64, 63], &[12096, 1, 189, 3]),
        "strided.comp",
        "three channels are too few for a tile"
    );
    let (wide, narrow) = ((DType::F32, &[100, 70][..]), DType::BF16);
    let operand = Tensor::new(narrow, wide.1).strided(&[1, 100], 0);
    let plan = checked(&ask("as_type", &[operand], wide));
    assert_eq!(files(&plan), ["transpose.comp"]);
    let heads = files_of(DType::F32, &[2, 16, 64, 32], &[32768, 1, 16, 1024]);
    assert_eq!(heads, "transpose.comp");
}

#[test]
fn creation_covers_its_result() {
    for dtype in DType::all() {
        let bits: &[i64] = if dtype.size() == 16 { &[1, 2] } else { &[1] };
        for count in [1, 2, 63, 4096] {
            checked(&ask("fill", &[], (dtype, &[count])).ints("bits", bits));
        }
        if DTypeSet::REAL.has(dtype) {
            checked(&ask("iota", &[], (dtype, &[3, 5, 7])).ints("axis", &[1]));
            checked(&ask("eye", &[], (dtype, &[2, 9, 7])));
        }
    }
    let answer = ask("iota", &[], (DType::F32, &[3]))
        .ints("axis", &[1])
        .plan();
    assert!(matches!(answer, Err(Refusal::BadRequest(_))));
}
