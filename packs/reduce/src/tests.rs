//! Plans, without a device.

mod ask;

use super::*;
use ask::{Ask, defines, files};
use nx_vulkan_abi::{DType, Slot, layout::contiguous_strides};

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
                    Ask::new(&row.op.op, dtype, shape, axes).checked();
                }
            }
        }
    }
}

#[test]
fn the_pattern_follows_the_layout() {
    let sum = |shape: &[u64], axes: &[i64]| Ask::new("sum", DType::F32, shape, axes).checked();
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
    let mut transposed = Ask::new("sum", DType::F32, &[8192, 4096], &[0]);
    transposed.strides = vec![1, 8192];
    assert_eq!(files(&transposed.checked()), ["rows.comp"]);
    let mut reversed = Ask::new("sum", DType::F32, &[70_000], &[0]);
    (reversed.strides, reversed.offset) = (vec![-1], 69_999);
    assert_eq!(files(&reversed.checked())[0], "rows.comp");
    // A maximum over a repeated axis is one over a single copy of it.
    let mut repeated = Ask::new("reduce_max", DType::F32, &[1000, 64], &[0, 1]);
    repeated.strides = vec![0, 1];
    assert_eq!(files(&repeated.checked()), ["rows.comp"]);
}

#[test]
fn vectors_need_alignment_in_columns_only() {
    let width = |offset: u64, columns: u64, axis: i64| {
        let mut ask = Ask::new("sum", DType::F32, &[512, columns], &[axis]);
        ask.offset = offset;
        defines(&ask.checked(), 0, "WIDTH").unwrap().to_owned()
    };
    assert_eq!(
        [width(0, 512, 0), width(1, 512, 0), width(0, 513, 0)],
        ["4", "1", "1"]
    );
    assert_eq!(
        [width(0, 512, 1), width(1, 512, 1), width(0, 513, 1)],
        ["4", "4", "4"]
    );
    assert_eq!(
        defines(
            &Ask::new("sum", DType::F64, &[512], &[0]).checked(),
            0,
            "WIDTH"
        ),
        Some("2")
    );
}

#[test]
fn subgroups_are_used_where_they_are_full() {
    let mut ask = Ask::new("sum", DType::F32, &[512, 512], &[1]);
    let plan = ask.checked();
    assert_eq!(defines(&plan, 0, "SUBGROUPS"), Some("1"));
    assert_eq!(plan.shaders[0].subgroup_size, 32);
    ask.device.features = Features(!Features::SUBGROUP_SIZE_CONTROL.0);
    let plan = ask.checked();
    assert_eq!(defines(&plan, 0, "SUBGROUPS"), None);
    assert_eq!(plan.shaders[0].subgroup_size, 0);
}

#[test]
fn large_operands_are_bound_in_ranges() {
    let mut ask = Ask::new("sum", DType::F32, &[1 << 26], &[0]);
    ask.device.max_buffer_range = 128 << 20;
    ask.device.max_groups = [65535; 3];
    let inputs = |plan: &Plan| {
        let args = plan.steps.iter().flat_map(|step| step.args.iter());
        args.filter(|arg| arg.slot == Slot::INPUT)
            .map(|arg| (arg.offset, arg.len))
            .collect::<Vec<_>>()
    };
    // Ranges follow one another without a gap.
    for (shape, axes) in [
        (vec![1u64 << 26], vec![0i64]),
        (vec![8192, 8192], vec![0]),
        (vec![8192, 8192], vec![1]),
    ] {
        let plan = Ask {
            shape: shape.clone(),
            strides: contiguous_strides(&shape),
            axes: axes.clone(),
            ..ask.clone()
        }
        .checked();
        let ranges = inputs(&plan);
        assert!(ranges.len() > 1, "{shape:?} {axes:?}");
        let end = ranges.iter().fold(0, |end, &(offset, len)| {
            assert!(offset <= end, "{ranges:?}");
            offset + len
        });
        assert_eq!(end, 4 << 26, "{shape:?} {axes:?}");
    }
    // Two rows that are too far apart for one range, and too many results for partial ones.
    let wide = [2, 1 << 26];
    let refused = Ask {
        shape: wide.to_vec(),
        strides: contiguous_strides(&wide),
        ..ask.clone()
    }
    .plan();
    assert!(
        matches!(&refused, Err(Refusal::Decline(why)) if why.contains("134217728")),
        "{refused:?}"
    );
    let strided = Ask {
        shape: vec![2, 1 << 24],
        strides: vec![1 << 26, 3],
        ..ask
    }
    .plan();
    assert!(matches!(strided, Err(Refusal::InputsAs(_))), "{strided:?}");
}

#[test]
fn what_a_device_lacks_is_named() {
    let decline = |dtype: DType, without: Features| {
        let mut ask = Ask::new("sum", dtype, &[8], &[0]);
        ask.device.features = Features(!without.0);
        match ask.plan() {
            Err(Refusal::Decline(why)) => why,
            other => panic!("{other:?}"),
        }
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
    let huge = Ask {
        strides: vec![0],
        ..Ask::new("sum", DType::F32, &[1 << 31], &[0])
    };
    assert!(matches!(huge.plan(), Err(Refusal::Decline(why)) if why.contains("2^31")));
}

#[test]
fn requests_that_break_the_contract_are_refused() {
    let bad = |ask: Ask| matches!(ask.plan(), Err(Refusal::BadRequest(_)));
    let ask = |axes: &[i64]| Ask::new("sum", DType::F32, &[2, 3], axes);
    assert!(bad(ask(&[2])) && bad(ask(&[-1])) && bad(ask(&[0, 0])));
    assert!(bad(Ask {
        tie: "first",
        ..Ask::new("argmax", DType::F32, &[2, 3], &[0])
    }));
    assert!(bad(Ask::new("argmax", DType::F32, &[2, 3], &[0, 1])));
    assert!(bad(Ask::new("argmax", DType::F32, &[2, 0], &[1])));
    assert!(bad(Ask {
        result: DType::F64,
        ..Ask::new("reduce_max", DType::F32, &[2, 3], &[0])
    }));
    assert!(!bad(ask(&[1])));
    assert_eq!(
        Ask::new("sum", DType::F32, &[0, 3], &[1]).plan(),
        Ok(Plan::default())
    );
}
