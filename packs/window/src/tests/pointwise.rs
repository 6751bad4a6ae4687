//! Convolutions whose kernels have one element for each channel: products, or on matrix units with x as it is.

use super::{matrix::channels_last, *};
use nx_vulkan_abi::{BufArg, DeviceKind, Refusal};

#[test]
fn products_of_matrices_are_left_to_dot() {
    let of = |dtype, channels: u64, filters: u64| {
        let (x, out) = ([8, 28, 28, channels], [8, 28, 28, filters]);
        channels_last(dtype, [&x, &[1, 1, channels, filters], &out])
    };
    let is_left = |ask: Ask| match ask.plan() {
        Err(Refusal::Decline(reason)) => reason.contains("`dot`"),
        plan => plan.map(|_| false).expect("it is planned"),
    };
    assert!(is_left(of(DType::F32, 256, 64)));
    assert!(is_left(of(DType::BF16, 256, 256)));
    // Units store few filters faster.
    assert!(!is_left(of(DType::BF16, 256, 64)));
    assert!(!is_left(with(of(DType::F32, 256, 64), "padding", &[1; 4])));
    let mut rows = of(DType::F32, 256, 64);
    let steps = [28 * 30 * 256, 30 * 256, 256, 1];
    rows.inputs[0] = Tensor::new(DType::F32, &[8, 28, 28, 256]).strided(&steps, 0);
    assert!(!is_left(rows));
    let cpu = DeviceInfo {
        kind: DeviceKind::CPU,
        ..nvidia()
    };
    assert!(!is_left(of(DType::F32, 256, 64).on(cpu)));
    // With channels behind the batch, each plane of positions is a row.
    let planes = |channels: u64, filters: u64| {
        let [x, out] = [channels, filters].map(|axis| [8, axis, 28, 28]);
        matrix(DType::F16, [&x, &[filters, channels, 1, 1], &out])
    };
    assert!(is_left(planes(256, 64)));
    let finished = |further: &[u64]| {
        let mut ask = planes(64, 256);
        ask.inputs.push(Tensor::new(DType::F16, further));
        ask.text("epilogue", "add(x, i2)")
    };
    assert!(is_left(finished(&[256, 1, 1])));
    let many = (2..6).fold(planes(64, 256), |mut ask, _| {
        ask.inputs.push(Tensor::new(DType::F16, &[256, 1, 1]));
        ask
    });
    let text = "add(x, i2); add(%0, i3); add(%1, i4); add(%2, i5)";
    assert!(!is_left(many.text("epilogue", text)));
    // A product for each of many small planes would read the kernel for each; a single position is a row.
    let small = |n: u64| {
        matrix(
            DType::F32,
            [&[512, 256, n, n], &[64, 256, 1, 1], &[512, 64, n, n]],
        )
    };
    assert_eq!([1, 3, 8].map(|n| is_left(small(n))), [true, false, true]);
    assert!(!is_left(finished(&[256, 28, 1])));
    let mut apart = with(planes(256, 64), "strides", &[2, 2]);
    apart.outputs[0] = Tensor::new(DType::F16, &[8, 64, 14, 14]);
    assert!(!is_left(apart));
    // What is met is copied first, where that is worth it: wide rows of f32, results that lie in no pairs.
    let strided = |dtype, [n, channels, filters]: [u64; 3], axis: u64| {
        let met = axis.div_ceil(2);
        let (x, out) = ([n, channels, axis, axis], [n, filters, met, met]);
        let ask = matrix(dtype, [&x, &[filters, channels, 1, 1], &out]);
        is_left(with(ask, "strides", &[2, 2]))
    };
    assert!(strided(DType::F32, [16, 256, 512], 56));
    assert!(!strided(DType::F32, [16, 64, 512], 56));
    assert!(strided(DType::F16, [32, 29, 256], 98));
    assert!(!strided(DType::F16, [32, 29, 256], 96));
    assert!(!strided(DType::F16, [2, 8, 114], 53));
    let mut columns = planes(256, 64);
    columns.inputs[0] =
        Tensor::new(DType::F16, &[8, 256, 28, 28]).strided(&[256 * 784, 784, 1, 28], 0);
    assert!(!is_left(columns));
    for kernel in ["conv_tiled", "conv_direct"] {
        let mut ask = of(DType::F64, 4, 64);
        ask.kernel = kernel.to_owned();
        assert!(is_left(ask), "{kernel}");
    }
}

/// Kernels of one element, in two groups, since a single one would be left to `dot`.
pub(super) fn pointwise(
    dtype: DType,
    [batch, channels, filters]: [u64; 3],
    plane: [u64; 2],
) -> Ask {
    let [x, out] = [channels, filters].map(|axis| [batch, axis, plane[0], plane[1]]);
    let ask = matrix(dtype, [&x, &[filters, channels / 2, 1, 1], &out]);
    with(ask, "feature_group_size", &[2])
}

#[test]
fn kernels_of_one_element_take_x_as_it_is() {
    let of = pointwise;
    let loaded = |plan: &Plan, product: usize| {
        let names = ["LOADED", "LOADED_TYPE"];
        names.map(|name| defined(plan, product, name).to_owned())
    };
    for (dtype, plane, run, vector) in [
        (DType::F16, [56, 56], "8", "uvec4"),
        (DType::BF16, [54, 54], "4", "uvec2"),
        (DType::F32, [56, 56], "4", "vec4"),
        (DType::F32, [54, 55], "2", "vec2"),
    ] {
        let plan = of(dtype, [32, 200, 400], plane).plan().unwrap();
        let files = files(&plan);
        let product = files.iter().position(|file| *file == "pointwise.comp");
        let product = product.unwrap();
        // Where there are several parts, a step of its own says that nothing is to be computed anew so far.
        let before = ["matrix_kernel.comp", "matrix_counts.comp"];
        let parts = usize::from(dtype == DType::F32);
        assert_eq!(files[..product], before[..=parts]);
        assert_eq!(loaded(&plan, product), [run, vector]);
        assert_eq!(plan.steps[product].args[1], BufArg::input(0));
        // Steps of group and batch are those of x, and so are those from one position to the next.
        let words = plan.params.as_chunks().0.iter();
        let words: Vec<u32> = words.map(|word| u32::from_le_bytes(*word)).collect();
        let pixels = plane[0] * plane[1];
        assert_eq!(
            words[1..3],
            [100, 200].map(|channels| channels * pixels as u32)
        );
    }
    let packs = |ask: Ask| files(&ask.plan().unwrap())[0] != "matrix_kernel.comp";
    // Rows of odd length, padding, steps between positions.
    let large = || of(DType::F16, [32, 128, 256], [56, 56]);
    assert!(!packs(large()));
    assert!(packs(of(DType::F16, [32, 128, 256], [55, 55])));
    let mut padded = with(large(), "padding", &[1; 4]);
    padded.outputs[0] = Tensor::new(DType::F16, &[32, 256, 58, 58]);
    assert!(packs(padded));
    let mut odd = large();
    odd.inputs[0] =
        Tensor::new(DType::F16, &[32, 128, 56, 56]).strided(&[128 * 3136, 3136, 56, 1], 3);
    assert!(packs(odd));
    let small = DeviceInfo {
        shared_bytes: 16 << 10,
        ..nvidia()
    };
    let plan = of(DType::F32, [32, 128, 256], [56, 56])
        .on(small)
        .plan()
        .unwrap();
    assert_eq!(defined(&plan, 2, "WARPS_N"), "1");
}
