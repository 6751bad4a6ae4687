//! Plans, without a device.

mod finish;
mod matrix;
mod pointwise;
mod shape;

use super::*;
use nx_vulkan_abi::{DType, DeviceInfo, Features, Matrix};
use nx_vulkan_pack_kit::testing::{
    Ask, Pack, Tensor, cpu, defined, files, gpu, with_fact, without, words,
};

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
        DType::F32 => "conv_parts",
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
                Way::Conv(table::Method::Tiled | table::Method::Few) if dtype.is_complex() => {
                    continue;
                }
                // Factors of f16 are another kernel's.
                Way::Conv(_) if row.described().id == "conv_matrix_bf16" && dtype == DType::F16 => {
                    continue;
                }
                Way::Conv(method) => {
                    let [small, large]: [[&[u64]; 3]; 2] = [
                        [&[2, 8, 9, 9], &[16, 8, 3, 3], &[2, 16, 7, 7]],
                        [&[32, 64, 58, 58], &[64, 64, 3, 3], &[32, 64, 56, 56]],
                    ];
                    let (shapes, device) = match method {
                        table::Method::Cpu => (small, cpu()),
                        table::Method::Matrix => (large, nvidia()),
                        table::Method::Tiled | table::Method::Few | table::Method::Direct => {
                            (small, gpu())
                        }
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
    assert_eq!(files(&plan), ["runs.comp"]);
    let of = |name| defined(&plan, 0, name);
    assert_eq!(["RANK", "ALONG", "INNER"].map(of), ["3", "1", "2"]);
    assert_eq!(["RUN", "TAPS_0", "STRIDE"].map(of), ["4", "2", "1"]);
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
fn windows_that_do_not_overlap_share_little() {
    let pool = |dtype: DType, extent: u64, size: u64, stride: i64, padding: i64| {
        let (size, positions) = (
            size as i64,
            (extent as i64 + padding - size as i64) / stride + 1,
        );
        let shapes = [extent, positions as u64].map(|extent| [64, 10, extent, extent]);
        let ask = windows(
            "window_sum",
            dtype,
            &shapes[0],
            &shapes[1],
            &[1, 1, size, size],
        );
        let ask = with(ask, "strides", &[1, 1, stride, stride]);
        let ask = with(ask, "padding", &[0, 0, 0, 0, padding, 0, padding, 0]);
        let plan = ask.on(nvidia()).plan().unwrap();
        assert_eq!(files(&plan), ["runs.comp"]);
        assert_eq!(defined(&plan, 0, "NXV_NATIVE_HALF"), "1");
        ["RUN", "CHECKS_0", "CHECKS_1"].map(|name| defined(&plan, 0, name).to_owned())
    };
    assert_eq!(pool(DType::F16, 500, 5, 5, 0), ["1", "0", "0"]);
    assert_eq!(pool(DType::F32, 512, 2, 2, 0), ["4", "0", "0"]);
    assert_eq!(pool(DType::F32, 513, 3, 2, 0), ["4", "0", "0"]);
    assert_eq!(pool(DType::F32, 512, 3, 1, 1), ["4", "1", "1"]);
    // The last run reaches beyond the axis.
    assert_eq!(pool(DType::F32, 509, 2, 2, 0), ["4", "1", "0"]);
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
    let few = |shapes| conv("conv_tiled", DType::F32, shapes).reason();
    let positions: [&[u64]; 3] = [&[1, 4, 4, 4], &[4, 4, 3, 3], &[1, 4, 2, 2]];
    assert!(few(positions).contains("too few"));
    // Invocations of their own have what they multiply sooner than a tile, unless there is too much of it.
    let filters: [&[u64]; 3] = [&[1, 8, 200, 200], &[2, 8, 3, 3], &[1, 2, 198, 198]];
    let plan = conv("conv_few", DType::F32, filters).plan().unwrap();
    assert_eq!(files(&plan), ["direct.comp"]);
    let deep: [&[u64]; 3] = [&[1, 512, 20, 20], &[5, 512, 3, 3], &[1, 5, 18, 18]];
    assert_eq!(
        conv("conv_few", DType::F32, deep).reason(),
        "tiles take less"
    );
    let plan = conv("conv_tiled", DType::F32, deep).plan().unwrap();
    assert_eq!(defined(&plan, 0, "BLOCK_M"), "16");
    // Arithmetic in f64 takes longer than what it waits for.
    assert!(
        conv("conv_tiled", DType::F64, deep)
            .reason()
            .contains("too few")
    );
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
    assert_eq!(files(&depthwise(7)), ["plane.comp"]);
    assert_eq!(files(&depthwise(9)), ["direct.comp"]);
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

#[test]
fn tiles_store_vectors_of_what_registers_hold() {
    let stores = |dtype: DType, extent: u64| {
        let shapes: [&[u64]; 3] = [
            &[32, 16, extent + 2, extent + 2],
            &[32, 16, 3, 3],
            &[32, 32, extent, extent],
        ];
        let plan = conv("conv_tiled", dtype, shapes).plan().unwrap();
        defined(&plan, 0, "WIDE_STORES").to_owned()
    };
    assert_eq!(
        [DType::F32, DType::F64, DType::F16, DType::BF16].map(|dtype| stores(dtype, 28)),
        ["1"; 4]
    );
    // Runs of positions that do not begin where vectors do, and bytes.
    assert_eq!(stores(DType::F32, 27), "0");
    assert_eq!(stores(DType::F8, 28), "0");
}
