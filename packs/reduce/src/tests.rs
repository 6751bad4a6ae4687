//! Plans, without a device.

mod ask;

use super::*;
use ask::ask;
use nx_vulkan_abi::{DType, DeviceInfo, Features, Slot};
use nx_vulkan_pack_kit::testing::{Ask, defined, files, gpu};

#[test]
fn every_row_plans_for_every_type_and_rank() {
    let table = Table::get().unwrap();
    let shapes: [&[u64]; 8] = [
        &[],
        &[1],
        &[70_000],
        &[3, 4],
        &[1, 1, 9],
        &[2, 0, 3],
        &[2, 3, 2, 3, 2, 3, 2, 3],
        &[64, 3, 56, 56],
    ];
    for row in &table.rows {
        for dtype in DType::all().filter(|dtype| row.takes.has(*dtype)) {
            for shape in shapes {
                let all: Vec<i64> = (0..shape.len() as i64).collect();
                let some: Vec<i64> = all.iter().copied().filter(|axis| axis % 2 == 1).collect();
                let one: Vec<i64> = all.iter().copied().take(1).collect();
                let sets = if row.picks() {
                    vec![vec![], one]
                } else {
                    vec![all, some, one]
                };
                for axes in sets
                    .iter()
                    .filter(|axes| row.picks() || !axes.is_empty() || shape.is_empty())
                {
                    if row.picks() && shape.contains(&0) {
                        continue;
                    }
                    ask(&row.op.op, dtype, shape, axes).plan().unwrap();
                }
            }
        }
    }
}

#[test]
fn the_pattern_follows_the_layout() {
    let sum = |shape: &[u64], axes: &[i64]| ask("sum", DType::F32, shape, axes).plan().unwrap();
    assert_eq!(files(&sum(&[1 << 26], &[0])), ["rows.comp", "columns.comp"]);
    assert_eq!(files(&sum(&[8192, 8192], &[1])), ["rows.comp"]);
    assert_eq!(
        files(&sum(&[8192, 8192], &[0])),
        ["columns.comp", "columns.comp"]
    );
    assert_eq!(
        files(&sum(&[64, 256, 3136], &[0, 2])),
        ["rows.comp", "columns.comp"]
    );
    assert_eq!(files(&sum(&[64, 3, 2, 3], &[1, 3])), ["columns.comp"]);
    // Where narrower columns fill the device, no second pass.
    assert_eq!(files(&sum(&[64, 300, 77], &[1])), ["columns.comp"]);
    let mut transposed = ask("sum", DType::F32, &[8192, 4096], &[0]);
    transposed.inputs[0].strides = vec![1, 8192];
    assert_eq!(files(&transposed.plan().unwrap()), ["rows.comp"]);
    let mut reversed = ask("sum", DType::F32, &[70_000], &[0]);
    let operand = reversed.inputs.remove(0);
    reversed.inputs.push(operand.strided(&[-1], 69_999));
    assert_eq!(files(&reversed.plan().unwrap())[0], "rows.comp");
    // A maximum over a repeated axis is one over a single copy of it.
    let mut repeated = ask("reduce_max", DType::F32, &[1000, 64], &[0, 1]);
    repeated.inputs[0].strides = vec![0, 1];
    assert_eq!(files(&repeated.plan().unwrap()), ["rows.comp"]);
}

/// Sixteen loads of four elements by each of 256 invocations, or of one by each of eight, take one pass.
#[test]
fn a_second_pass_has_to_pay() {
    let passes = |op: &str, shape: &[u64], axes: &[i64]| {
        let plan = ask(op, DType::F32, shape, axes).plan().unwrap();
        (plan.steps.len(), defined(&plan, 0, "UNROLL").to_owned())
    };
    for op in ["sum", "reduce_max"] {
        assert_eq!(passes(op, &[16_384], &[0]), (1, "8".to_owned()), "{op}");
        assert_eq!(passes(op, &[128, 234], &[0]).0, 1, "{op}");
        assert_eq!(passes(op, &[65_536], &[0]).0, 2, "{op}");
    }
    assert_eq!(passes("argmax", &[65_536], &[0]).0, 2);
    // Narrower columns keep units busy, also where nothing is split.
    let plan = ask("sum", DType::F32, &[256, 16_384], &[0]).plan().unwrap();
    assert_eq!((plan.steps.len(), plan.steps[0].groups), (1, [512, 1, 1]));
    // Of many rows others have loads in flight.
    assert_eq!(passes("reduce_max", &[4096, 16_384], &[1]).1, "4");
}

#[test]
fn vectors_need_alignment_in_columns_only() {
    let width = |offset: u64, columns: u64, axis: i64| {
        let mut ask = ask("sum", DType::F32, &[512, columns], &[axis]);
        ask.inputs[0].offset = offset;
        defined(&ask.plan().unwrap(), 0, "WIDTH").to_owned()
    };
    assert_eq!(
        [width(0, 512, 0), width(1, 512, 0), width(0, 513, 0)],
        ["4", "1", "1"]
    );
    assert_eq!(
        [width(0, 512, 1), width(1, 512, 1), width(0, 513, 1)],
        ["4", "4", "4"]
    );
    let double = ask("sum", DType::F64, &[512], &[0]).plan().unwrap();
    assert_eq!(defined(&double, 0, "WIDTH"), "2");
}

#[test]
fn few_elements_of_many_columns_are_an_invocation_s_own() {
    let columns = |op: &str, dtype: DType, shape: &[u64], axes: &[i64]| {
        let plan = ask(op, dtype, shape, axes).plan().unwrap();
        assert_eq!(files(&plan), ["columns.comp"], "{op} {dtype} {shape:?}");
        let spec = plan.steps[0].spec.iter().map(|spec| spec.value);
        (Vec::from_iter(spec), plan.steps[0].groups[0])
    };
    for (op, dtype) in [
        ("sum", DType::F32),
        ("sum", DType::BF16),
        ("argmax", DType::S64),
    ] {
        let own = columns(op, dtype, &[17, 1_000_003], &[0]);
        assert_eq!(own, (vec![256, 0], 3907), "{op} {dtype}");
    }
    let wide = columns("reduce_max", DType::F32, &[5, 5, 1_000_000], &[0, 1]);
    assert_eq!(wide, (vec![256, 0], 977));
    // Of few columns elements are shared out, whatever they are.
    assert_eq!(columns("sum", DType::F32, &[17, 4096], &[0]).0, [64, 0]);
    let apart = columns("sum", DType::F32, &[64, 3, 2, 3], &[1, 3]).0;
    assert_eq!(apart[1], 1);
}

#[test]
fn subgroups_are_used_where_they_are_full() {
    let mut ask = ask("sum", DType::F32, &[512, 512], &[1]);
    let plan = ask.plan().unwrap();
    assert_eq!(defined(&plan, 0, "SUBGROUPS"), "1");
    assert_eq!(plan.shaders[0].subgroup_size, 32);
    ask.device.features = Features(!Features::SUBGROUP_SIZE_CONTROL.0);
    let plan = ask.plan().unwrap();
    assert_eq!(defined(&plan, 0, "SUBGROUPS"), "");
    assert_eq!(plan.shaders[0].subgroup_size, 0);
}

#[test]
fn large_operands_are_bound_in_ranges() {
    let device = DeviceInfo {
        max_buffer_range: 128 << 20,
        ..gpu()
    };
    let sum = |shape: &[u64], axes: &[i64]| ask("sum", DType::F32, shape, axes).on(device);
    let inputs = |plan: &Plan| {
        let args = plan.steps.iter().flat_map(|step| step.args.iter());
        args.filter(|arg| arg.slot == Slot::INPUT)
            .map(|arg| (arg.offset, arg.len))
            .collect::<Vec<_>>()
    };
    // Ranges follow one another without a gap.
    for (shape, axis) in [(&[1 << 26][..], 0), (&[8192, 8192], 0), (&[8192, 8192], 1)] {
        let ranges = inputs(&sum(shape, &[axis]).plan().unwrap());
        assert!(ranges.len() > 1, "{shape:?} {axis}");
        let end = ranges.iter().fold(0, |end, &(offset, len)| {
            assert!(offset <= end, "{ranges:?}");
            offset + len
        });
        assert_eq!(end, 4 << 26, "{shape:?} {axis}");
    }
    // Two rows that are too far apart for one range, and too many results for partial ones.
    let why = sum(&[2, 1 << 26], &[0]).reason();
    assert!(why.contains("134217728"), "{why}");
    let mut strided = sum(&[2, 1 << 24], &[0]);
    strided.inputs[0].strides = vec![1 << 26, 3];
    let wish = strided.plan();
    assert!(matches!(wish, Err(Refusal::InputsAs(_))), "{wish:?}");
}

#[test]
fn what_a_device_lacks_is_named() {
    let decline = |dtype: DType, without: Features| {
        let mut ask = ask("sum", dtype, &[8], &[0]);
        ask.device.features = Features(!without.0);
        ask.reason()
    };
    assert_eq!(decline(DType::F64, Features::FP64), "sum on f64 needs fp64");
    assert_eq!(
        decline(DType::S64, Features::INT64),
        "sum on s64 needs int64"
    );
    assert_eq!(
        decline(DType::F16, Features::STORAGE16),
        "sum on f16 needs storage16"
    );
    assert_eq!(
        decline(DType::U8, Features::STORAGE8.with(Features::INT8)),
        "sum on u8 needs int8 and storage8"
    );
    let mut huge = ask("sum", DType::F32, &[1 << 31], &[0]);
    huge.inputs[0].strides = vec![0];
    assert!(huge.reason().contains("2^31"));
}

#[test]
fn requests_that_break_the_contract_are_refused() {
    let bad = |ask: Ask| matches!(ask.plan(), Err(Refusal::BadRequest(_)));
    let sum = |axes: &[i64]| ask("sum", DType::F32, &[2, 3], axes);
    assert!(bad(sum(&[2])) && bad(sum(&[-1])) && bad(sum(&[0, 0])));
    let pick = |shape, axes| ask("argmax", DType::F32, shape, axes);
    assert!(bad(pick(&[2, 3], &[0]).text("tie_break", "first")));
    assert!(bad(pick(&[2, 3], &[0, 1])) && bad(pick(&[2, 0], &[1])));
    let mut cast = ask("reduce_max", DType::F32, &[2, 3], &[0]);
    cast.outputs[0].dtype = DType::F64;
    assert!(bad(cast));
    assert!(!bad(sum(&[1])));
    let none = ask("sum", DType::F32, &[0, 3], &[1]);
    assert_eq!(none.plan(), Ok(Plan::default()));
}
