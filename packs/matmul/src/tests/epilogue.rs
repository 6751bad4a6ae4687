//! Plans of products with an epilogue: where its operands are bound, how they lie, and what is declined.

use super::{
    DIRECT, SHORT, SKINNY, TILED,
    ask::{PACK, Side},
};
use nx_vulkan_abi::{DType, DeviceInfo, Refusal, Slot};
use nx_vulkan_pack_kit::testing::{Ask, Tensor, defined, files, gpu, words};

const CORES: &str = "dot_cores";

fn product(
    kernel: &str,
    [m, n, k]: [u64; 3],
    dtype: DType,
    further: &[Tensor],
    text: &'static str,
) -> Ask {
    let (a, b) = (
        Side::new(&[m, k], &[], &[1]).of(dtype),
        Side::new(&[k, n], &[], &[0]).of(dtype),
    );
    let inputs = [&[a.tensor, b.tensor], further].concat();
    PACK.ask(kernel, &inputs, &[Tensor::new(dtype, &[m, n])])
        .on(gpu())
        .ints("batch_a", &[])
        .ints("batch_b", &[])
        .ints("contract_a", &[1])
        .ints("contract_b", &[0])
        .text("epilogue", text)
}

#[test]
fn operands_follow_the_result_with_their_strides() {
    let bias = Tensor::new(DType::F32, &[4096]);
    let rest = Tensor::new(DType::BF16, &[2048, 4096]).strided(&[1, 2048], 5);
    let ask = product(
        TILED,
        [2048, 4096, 512],
        DType::F32,
        &[bias, rest],
        "add(x, i2); multiply(%0, i3)",
    );
    let plan = ask.plan().unwrap();
    let slots: Vec<(Slot, u32)> = plan.steps[0]
        .args
        .iter()
        .map(|arg| (arg.slot, arg.index))
        .collect();
    assert_eq!(
        slots,
        [
            (Slot::INPUT, 0),
            (Slot::INPUT, 1),
            (Slot::OUTPUT, 0),
            (Slot::INPUT, 2),
            (Slot::INPUT, 3)
        ]
    );
    let push = words(&plan, 0);
    assert_eq!(push[push.len() - 8..], [0, 0, 0, 1, 5, 0, 1, 2048]);
    assert_eq!(
        (
            defined(&plan, 0, "E_FIRST"),
            defined(&plan, 0, "E_OPERANDS")
        ),
        ("3", "2")
    );
    assert!(defined(&plan, 0, "E_CODE").ends_with("return v1;"));
}

#[test]
fn operands_whose_neighbours_are_a_results_are_read_in_words() {
    let read = |operand: Tensor, n: u64| {
        let ask = product(TILED, [2048, n, 512], DType::F32, &[operand], "add(x, i2)");
        let plan = ask.plan().unwrap();
        let read = ["E_RUN", "E0_STORED"].map(|name| defined(&plan, 0, name).to_owned());
        read.join(" ")
    };
    let of = |dtype| Tensor::new(dtype, &[2048, 4096]);
    assert_eq!(read(of(DType::F32), 4096), "4 uvec4");
    assert_eq!(read(of(DType::BF16), 4096), "4 uvec2");
    assert_eq!(read(of(DType::U8), 4096), "4 uint");
    assert_eq!(read(Tensor::new(DType::F32, &[4096]), 4096), "4 uvec4");
    // Others are wider than words, lie elsewhere than where vectors begin, or have their neighbours in another row.
    assert_eq!(read(of(DType::F64), 4096), "1 double");
    let offset = of(DType::F32).strided(&[4096, 1], 2).within(1 << 26);
    assert_eq!(read(offset, 4096), "1 float");
    let step = of(DType::F32).strided(&[4098, 1], 0).within(1 << 26);
    assert_eq!(read(step, 4096), "1 float");
    let across = of(DType::F32).strided(&[1, 2048], 0);
    assert_eq!(read(across, 4096), "1 float");
    assert_eq!(read(Tensor::new(DType::F32, &[2048, 1]), 4096), "1 float");
    // Nor does the result itself begin there.
    assert_eq!(read(Tensor::new(DType::F32, &[4098]), 4098), "1 float");
}

/// A mask of each sequence is the same for all of its heads, and of each row for all queries that share a key.
#[test]
fn operands_may_lie_along_two_axes_of_batches_or_rows() {
    let ask = |mask: &[u64]| {
        let (a, b) = (
            Side::new(&[2, 12, 3, 64, 64], &[0, 1], &[4]).of(DType::F16),
            Side::new(&[2, 12, 64, 64], &[0, 1], &[2]).of(DType::F16),
        );
        let inputs = [a.tensor, b.tensor, Tensor::new(DType::F32, mask)];
        PACK.ask(
            CORES,
            &inputs,
            &[Tensor::new(DType::F16, &[2, 12, 3, 64, 64])],
        )
        .on(gpu())
        .ints("batch_a", &[0, 1])
        .ints("batch_b", &[0, 1])
        .ints("contract_a", &[4])
        .ints("contract_b", &[2])
        .text("epilogue", "add(x, i2)")
    };
    let of = |mask: &[u64]| {
        let plan = ask(mask).plan().unwrap();
        let last = plan.steps.len() - 1;
        let inner = ["E0_INNER0", "E0_INNER1", "E0_INNER2", "E_RUN"];
        let inner = inner.map(|name| defined(&plan, last, name).parse().unwrap());
        let push = words(&plan, last);
        let length: usize = defined(&plan, last, "EPILOGUE_WORDS").parse().unwrap();
        (inner, push[push.len() - length..].to_vec())
    };
    assert_eq!(
        of(&[2, 1, 1, 1, 64]),
        ([4, 0, 0, 8], vec![0, 64, 0, 1, 12, 0])
    );
    assert_eq!(
        of(&[12, 1, 64, 64]),
        ([4, 6, 0, 8], vec![0, 0, 0, 1, 12, 4096, 64, 64])
    );
    assert_eq!(of(&[2, 12, 1, 1, 1]), ([0, 0, 0, 1], vec![0, 1, 0, 0]));
    assert_eq!(of(&[3, 1, 1]), ([0, 4, 0, 1], vec![0, 0, 1, 0, 64, 0]));
}

#[test]
fn sums_stay_wide_until_the_result() {
    let bias = Tensor::new(DType::F16, &[4096]);
    let plan = product(TILED, [2048, 4096, 512], DType::F16, &[bias], "add(x, i2)")
        .plan()
        .unwrap();
    assert_eq!(defined(&plan, 0, "T_VALUE"), "float");
    assert_eq!(defined(&plan, 0, "R_IS_F16"), "1");
    assert!(defined(&plan, 0, "E_CODE").ends_with("return R_FROM(v0);"));
}

#[test]
fn what_is_exchanged_has_its_rows_for_columns() {
    let column = Tensor::new(DType::F32, &[4, 1]);
    let plan = product(SKINNY, [4, 5000, 512], DType::F32, &[column], "add(x, i2)")
        .plan()
        .unwrap();
    let push = words(&plan, 0);
    assert_eq!(push[push.len() - 4..], [0, 0, 0, 1]);
}

#[test]
fn splits_are_finished_when_they_are_added_up() {
    let bias = Tensor::new(DType::F32, &[64]);
    let plan = product(TILED, [64, 64, 50_000], DType::F32, &[bias], "add(x, i2)")
        .plan()
        .unwrap();
    assert_eq!(files(&plan), ["tile.comp", "splits.comp"]);
    let defines = &plan.shaders[0].defines;
    assert!(
        defines
            .iter()
            .all(|define| define.name.as_str() != "EPILOGUE")
    );
    assert_eq!(words(&plan, 1)[2..], [64, 64, 0, 0, 0, 1]);
}

#[test]
fn what_a_kernel_cannot_finish_is_declined_or_refused() {
    let scalar = Tensor::new(DType::F32, &[]);
    let declined = |ask: Ask, told: &str| match ask.plan() {
        Err(Refusal::Decline(why)) => assert!(why.contains(told), "{why}"),
        other => panic!("{other:?}"),
    };
    let many = "add(x, i2); add(%0, i3); add(%1, i4); add(%2, i5); add(%3, i6)";
    let five = vec![scalar.clone(); 5];
    declined(
        product(DIRECT, [4, 4, 4], DType::F32, &five, many),
        "kernels take 4",
    );
    let four = "add(x, i2); add(%0, i3); add(%1, i4); add(%2, i5)";
    declined(
        product(DIRECT, [4, 4, 4], DType::F32, &five[..4], four),
        "bytes of push constants",
    );
    declined(
        product(DIRECT, [4, 4, 0], DType::F32, &[], "exp(x)"),
        "sums of nothing",
    );
    let refused = |ask: Ask| assert!(matches!(ask.plan(), Err(Refusal::BadRequest(_))));
    refused(product(SHORT, [4, 4, 4], DType::F16, &[], "exp(x, x)"));
    refused(product(DIRECT, [4, 4, 4], DType::F32, &[scalar], "exp(x)"));
    refused(product(
        DIRECT,
        [4, 4, 4],
        DType::F32,
        &[Tensor::new(DType::F32, &[3])],
        "add(x, i2)",
    ));
}

#[test]
fn long_code_for_many_sums_is_a_dispatch_of_its_own() {
    let of = |m, text| {
        let ask = product(TILED, [m, 2048, 512], DType::F32, &[], text);
        let plan = ask.plan().unwrap();
        files(&plan).join(" ")
    };
    assert_eq!(of(2048, "erf(x)"), "tile.comp splits.comp");
    assert_eq!(of(2048, "max(x, 0)"), "tile.comp");
    let width = |n| {
        let ask = product(TILED, [2048, n, 512], DType::F32, &[], "erf(x)");
        defined(&ask.plan().unwrap(), 1, "WIDTH").to_owned()
    };
    assert_eq!([width(2048), width(2050)], ["4", "1"]);
}

/// Sums that one binding does not cover are finished where they are.
#[test]
fn sums_without_room_are_finished_in_the_kernel() {
    let device = DeviceInfo {
        max_buffer_range: 128 << 20,
        ..gpu()
    };
    for (kernel, file) in [(TILED, "tile.comp"), (CORES, "cores_pack.comp")] {
        let ask = product(kernel, [8192, 8192, 1024], DType::F16, &[], "erf(x)");
        let plan = ask.on(device).plan().unwrap();
        assert_eq!(files(&plan)[0], file);
        assert!(!files(&plan).contains(&"splits.comp"), "{kernel}");
    }
}
