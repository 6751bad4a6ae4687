//! Plans, without a device.

use super::*;
use nx_vulkan_abi::{DType, DeviceInfo, Features, Matrix};
use nx_vulkan_pack_kit::testing::{Ask, Pack, Tensor, cpu, defined, files, gpu, with_fact};

const PACK: Pack = Pack { describe, plan };

fn windows(op: &str, dtype: DType, shape: &[u64], out: &[u64], window: &[i64]) -> Ask {
    let [x, out] = [shape, out].map(|shape| Tensor::new(dtype, shape));
    let ones = vec![1; window.len()];
    PACK.ask(op, &[x], &[out])
        .ints("window", window)
        .ints("padding", &vec![0; 2 * window.len()])
        .ints("strides", &ones)
        .ints("window_dilations", &ones)
}

fn conv(kernel: &str, dtype: DType, [x, w, out]: [&[u64]; 3]) -> Ask {
    let [x, w, out] = [x, w, out].map(|shape| Tensor::new(dtype, shape));
    let rank = out.shape.len();
    let (ones, order) = (vec![1; rank - 2], Vec::from_iter(0..rank as i64));
    PACK.ask(kernel, &[x, w], &[out])
        .ints("batch_group_size", &[1])
        .ints("feature_group_size", &[1])
        .ints("input_dilation", &ones)
        .ints("kernel_dilation", &ones)
        .ints("strides", &ones)
        .ints("padding", &vec![0; 2 * (rank - 2)])
        .ints("input_permutation", &order)
        .ints("kernel_permutation", &order)
        .ints("output_permutation", &order)
}

/// A device whose fragments the pack knows.
fn nvidia() -> DeviceInfo<'static> {
    DeviceInfo {
        vendor: 0x10de,
        ..gpu()
    }
}

fn matrix(dtype: DType, shapes: [&[u64]; 3]) -> Ask {
    let kernel = match dtype {
        DType::F16 => "conv_matrix",
        _ => "conv_matrix_bf16",
    };
    conv(kernel, dtype, shapes).on(nvidia())
}

fn with(mut ask: Ask, name: &'static str, list: &[i64]) -> Ask {
    ask.ints.retain(|(known, _)| *known != name);
    ask.ints(name, list)
}

#[test]
fn every_row_plans_for_every_type() {
    for row in table::rows().unwrap() {
        for dtype in DType::all().filter(|dtype| row.gives.has(*dtype)) {
            let ask = match &row.way {
                Way::Fold(_) => windows(&row.op, dtype, &[8, 9], &[7, 7], &[2, 3]),
                Way::Scatter(_) => {
                    let mut ask = windows(&row.op, dtype, &[8, 9], &[8, 9], &[2, 3]);
                    ask.inputs.push(Tensor::new(dtype, &[7, 7]));
                    ask.inputs.push(Tensor::new(dtype, &[]));
                    ask
                }
                Way::Conv(table::Method::Tiled) if dtype.is_complex() => continue,
                Way::Conv(method) => {
                    let [small, large]: [[&[u64]; 3]; 2] = [
                        [&[2, 8, 9, 9], &[16, 8, 3, 3], &[2, 16, 7, 7]],
                        [&[32, 64, 58, 58], &[64, 64, 3, 3], &[32, 64, 56, 56]],
                    ];
                    let (shapes, device) = match method {
                        table::Method::Cpu => (small, cpu()),
                        table::Method::Matrix => (large, nvidia()),
                        table::Method::Tiled | table::Method::Direct => (small, gpu()),
                    };
                    conv(&row.described().id, dtype, shapes).on(device)
                }
            };
            let plan = ask.plan();
            assert!(plan.is_ok(), "{} {dtype}: {plan:?}", row.op);
        }
    }
}

#[test]
fn axes_without_windows_merge_and_large_windows_go_axis_by_axis() {
    let pool = windows(
        "window_max",
        DType::F32,
        &[8, 3, 32, 32],
        &[8, 3, 31, 31],
        &[1, 1, 2, 2],
    );
    let plan = pool.plan().unwrap();
    assert_eq!(files(&plan), ["window.comp"]);
    assert_eq!(
        (defined(&plan, 0, "RANK"), defined(&plan, 0, "WINDOWED")),
        ("3", "6")
    );
    let large = windows(
        "window_sum",
        DType::F16,
        &[3, 90, 80],
        &[3, 82, 71],
        &[1, 9, 10],
    );
    let plan = large.plan().unwrap();
    assert_eq!(files(&plan), ["window.comp"; 2]);
    assert_eq!(plan.scratch.len(), 1);
    assert_eq!(
        (defined(&plan, 0, "R_IS_F32"), defined(&plan, 1, "R_IS_F16")),
        ("1", "1")
    );
}

#[test]
fn convolutions_are_split_until_the_device_is_busy() {
    let whole = conv(
        "conv_tiled",
        DType::F32,
        [&[32, 64, 56, 56], &[64, 64, 3, 3], &[32, 64, 54, 54]],
    );
    assert_eq!(files(&whole.plan().unwrap()), ["tile.comp"]);
    let gradient = conv(
        "conv_tiled",
        DType::F32,
        [&[64, 32, 58, 58], &[64, 32, 56, 56], &[64, 64, 3, 3]],
    );
    let plan = gradient.plan().unwrap();
    assert_eq!(files(&plan), ["tile.comp", "splits.comp"]);
    assert_eq!(defined(&plan, 0, "RESULT"), "T_VALUE");
    let few = conv(
        "conv_tiled",
        DType::F32,
        [&[1, 4, 9, 9], &[4, 4, 3, 3], &[1, 4, 7, 7]],
    );
    assert!(few.reason().contains("too few"));
    let depthwise = conv(
        "conv_direct",
        DType::F32,
        [&[1, 32, 58, 58], &[1, 32, 56, 56], &[1, 1, 3, 3]],
    );
    assert_eq!(
        files(&depthwise.plan().unwrap()),
        ["direct.comp", "splits.comp"]
    );
}

const LARGE: [&[u64]; 3] = [&[32, 64, 58, 58], &[64, 64, 3, 3], &[32, 64, 56, 56]];

#[test]
fn matrix_units_multiply_what_is_packed() {
    let plan = matrix(DType::F16, LARGE).plan().unwrap();
    let packed = ["matrix_lines.comp", "matrix_kernel.comp"];
    assert_eq!(files(&plan), [packed[0], packed[1], "product.comp"]);
    assert_eq!(
        ["BLOCK", "PIECE", "WIDTH", "ALONG_FILTERS"].map(|name| defined(&plan, 2, name)),
        ["32", "8", "8", "0"]
    );
    // Two bytes of 64 channels of 58 x 58 pixels, and a piece of zeros.
    assert_eq!(plan.scratch[0], 32 * 64 * 58 * 58 * 2 + 16);
    let last = ["input", "kernel", "output"].map(|of| format!("{of}_permutation"));
    let mut ask = matrix(
        DType::BF16,
        [&[32, 58, 58, 64], &[3, 3, 64, 64], &[32, 56, 56, 64]],
    );
    ask.ints
        .retain(|(name, _)| !last.iter().any(|known| known == name));
    let ask = ask
        .ints("input_permutation", &[0, 3, 1, 2])
        .ints("kernel_permutation", &[3, 2, 0, 1])
        .ints("output_permutation", &[0, 3, 1, 2]);
    let plan = ask.plan().unwrap();
    assert_eq!(files(&plan)[0], "matrix_x.comp");
    assert_eq!(defined(&plan, 2, "ALONG_FILTERS"), "1");
}

#[test]
fn packed_is_what_positions_and_kernel_meet() {
    let first: [&[u64]; 3] = [&[32, 3, 224, 224], &[64, 3, 7, 7], &[32, 64, 112, 112]];
    let ask = with(matrix(DType::F16, first), "strides", &[2, 2]);
    let plan = with(ask, "padding", &[3; 4]).plan().unwrap();
    assert_eq!(
        ["BLOCK", "PIECE", "WHOLE"].map(|name| defined(&plan, 2, name)),
        ["4", "4", "0"]
    );
    assert_eq!(plan.scratch[0], (32 * 229 * 229 + 1) * 8);
    // With one element of a kernel, those between the positions are left out.
    let strided: [&[u64]; 3] = [&[32, 256, 56, 56], &[512, 256, 1, 1], &[32, 512, 28, 28]];
    let plan = with(matrix(DType::F16, strided), "strides", &[2, 2])
        .plan()
        .unwrap();
    assert_eq!(plan.scratch[0], 32 * 256 * 28 * 28 * 2 + 16);
}

#[test]
fn gradients_of_kernels_are_packed_along_their_axes_and_split() {
    let exchanged = [1, 0, 2, 3];
    let mut ask = matrix(
        DType::F16,
        [&[32, 64, 56, 56], &[32, 64, 56, 56], &[64, 64, 3, 3]],
    );
    for name in [
        "input_permutation",
        "kernel_permutation",
        "output_permutation",
    ] {
        ask = with(ask, name, &exchanged);
    }
    let plan = with(ask, "padding", &[1; 4]).plan().unwrap();
    assert_eq!(
        files(&plan),
        [
            "matrix_lines.comp",
            "matrix_taps.comp",
            "product.comp",
            "splits.comp"
        ]
    );
}

#[test]
fn matrix_units_decline_what_gains_nothing() {
    let depthwise: [&[u64]; 3] = [&[32, 128, 58, 58], &[128, 1, 3, 3], &[32, 128, 56, 56]];
    let depthwise = with(matrix(DType::F16, depthwise), "feature_group_size", &[128]);
    assert_eq!(
        depthwise.reason(),
        "too few filters, positions or elements for matrix units"
    );
    let small = matrix(DType::F16, [&[1, 8, 9, 9], &[16, 8, 3, 3], &[1, 16, 7, 7]]);
    assert_eq!(small.reason(), "tiles on the general units take less");
    for unknown in [gpu(), with_fact(nvidia(), "driver_id", &[24])] {
        let reason = matrix(DType::F16, LARGE).on(unknown).reason();
        assert!(reason.contains("NVIDIA's own driver"), "{reason}");
    }
    let without = with_fact(nvidia(), Matrix::FACT, &[]);
    for dtype in [DType::F16, DType::BF16] {
        let reason = matrix(dtype, LARGE).on(without).reason();
        let expected = format!("the driver lists no product of {dtype} with sums of f32");
        assert!(reason.starts_with(&expected), "{reason}");
    }
    let narrow = DeviceInfo {
        min_subgroup_size: 64,
        max_subgroup_size: 64,
        ..nvidia()
    };
    assert!(matrix(DType::F16, LARGE).on(narrow).reason().contains("32"));
}

#[test]
fn matrix_units_take_an_eighth_of_the_memory_at_most() {
    let having = |bytes: u64| with_fact(nvidia(), "memory_bytes", &[bytes as i64]);
    let whole: u64 = matrix(DType::F16, LARGE)
        .plan()
        .unwrap()
        .scratch
        .iter()
        .sum();
    assert!(
        matrix(DType::F16, LARGE)
            .on(having(8 * whole))
            .plan()
            .is_ok()
    );
    let reason = matrix(DType::F16, LARGE).on(having(4 * whole)).reason();
    assert!(reason.contains(&(whole / 2).to_string()), "{reason}");
    assert!(
        reason.contains("packed operands and partial results take"),
        "{reason}"
    );
    // Parts are left out before the whole is declined.
    let deep: [&[u64]; 3] = [&[64, 512, 9, 9], &[128, 512, 3, 3], &[64, 128, 7, 7]];
    let split = matrix(DType::F16, deep).plan().unwrap().scratch;
    assert_eq!(split.len(), 4);
    let packed: u64 = split[..3].iter().sum();
    let fewer = matrix(DType::F16, deep).on(having(8 * packed + 8)).plan();
    assert!(fewer.is_ok_and(|plan| plan.scratch.len() == 3));
}

#[test]
fn filters_of_a_single_channel_take_runs() {
    let depthwise = |kernel: u64| {
        let extent = 57 - kernel;
        let shapes: [&[u64]; 3] = [
            &[2, 128, 56, 56],
            &[128, 1, kernel, kernel],
            &[2, 128, extent, extent],
        ];
        let ask = conv("conv_direct", DType::F32, shapes);
        with(ask, "feature_group_size", &[128]).plan().unwrap()
    };
    let plan = depthwise(3);
    assert_eq!(files(&plan), ["plane.comp"]);
    assert_eq!(defined(&plan, 0, "RUN"), "8");
    assert_eq!(plan.steps[0].groups[0], (2 * 128 * 7 * 54u32).div_ceil(256));
    assert_eq!(files(&depthwise(7)), ["direct.comp"]);
}

#[test]
fn tiles_and_splits_share_the_work_out_evenly() {
    let tile = |[filters, channels, extent]: [u64; 3]| {
        let shapes: [&[u64]; 3] = [
            &[32, channels, extent + 2, extent + 2],
            &[filters, channels, 3, 3],
            &[32, filters, extent, extent],
        ];
        let plan = conv("conv_tiled", DType::F32, shapes).plan().unwrap();
        let block = ["BLOCK_M", "BLOCK_N"].map(|name| defined(&plan, 0, name).to_owned());
        (block.join("x"), plan.steps[0].groups[0])
    };
    assert_eq!(tile([256, 256, 14]), ("64x128".to_owned(), 4 * 49 * 2));
    assert_eq!(tile([512, 512, 7]), ("128x128".to_owned(), 4 * 13 * 5));
}

#[test]
fn operands_of_other_types_are_asked_for() {
    let mut ask = conv(
        "conv_direct",
        DType::F32,
        [&[1, 2, 5], &[3, 2, 2], &[1, 3, 4]],
    );
    ask.inputs[1].dtype = DType::S32;
    let wish = ask.plan();
    assert!(
        matches!(&wish, Err(Refusal::InputsAs(wanted)) if wanted.len() == 1),
        "{wish:?}"
    );
    let mut scatter = windows("window_scatter_max", DType::F32, &[4], &[4], &[2]);
    scatter
        .inputs
        .push(Tensor::new(DType::F32, &[3]).strided(&[2], 0));
    scatter.inputs.push(Tensor::new(DType::F32, &[]));
    assert!(matches!(scatter.plan(), Err(Refusal::InputsAs(_))));
}

#[test]
fn what_a_device_lacks_and_what_is_too_large_is_declined() {
    let without = |features: Features| DeviceInfo {
        features: Features(!features.0),
        ..gpu()
    };
    let sum = windows("window_sum", DType::F64, &[4], &[3], &[2]);
    assert_eq!(
        sum.on(without(Features::FP64)).reason(),
        "window_sum on f64 needs fp64"
    );
    let half = conv(
        "conv_direct",
        DType::F16,
        [&[1, 2, 5], &[3, 2, 2], &[1, 3, 4]],
    );
    assert_eq!(
        half.on(without(Features::STORAGE16)).reason(),
        "conv on f16 needs storage16"
    );
    let long = windows("window_sum", DType::F32, &[1 << 23], &[1], &[1 << 23]);
    assert!(long.reason().contains("too long"));
    let direct = conv("conv_cpu", DType::F32, [&[1, 2, 5], &[3, 2, 2], &[1, 3, 4]]);
    assert_eq!(direct.reason(), "the device is not a CPU");
}

#[test]
fn requests_that_break_the_contract_are_refused() {
    let bad = |ask: Ask| matches!(ask.plan(), Err(Refusal::BadRequest(_)));
    let sum = || windows("window_sum", DType::F32, &[4], &[3], &[2]);
    assert!(bad(with(sum(), "strides", &[0])) && bad(with(sum(), "padding", &[0])));
    let one = || {
        conv(
            "conv_direct",
            DType::F32,
            [&[1, 2, 5], &[3, 2, 2], &[1, 3, 4]],
        )
    };
    assert!(bad(with(one(), "strides", &[1, 1])));
    assert!(bad(with(one(), "input_permutation", &[0, 1, 3])));
    assert!(bad(with(one(), "feature_group_size", &[0])));
}
