//! How a convolution on matrix units is shared out.

use super::{matrix::channels_last, *};
use nx_vulkan_abi::DeviceKind;

/// Many subgroups of a unit take few registers each, few load further ahead.
#[test]
fn many_subgroups_are_told_from_few() {
    let of = |x: [u64; 4], kernel: u64, filters: u64| {
        let shapes = [
            &x[..],
            &[kernel, kernel, x[3], filters],
            &[x[0], x[1], x[2], filters],
        ];
        let padding = [kernel as i64 / 2; 4];
        let plan = with(channels_last(DType::F16, shapes), "padding", &padding)
            .plan()
            .unwrap();
        let product = files(&plan)
            .iter()
            .position(|file| *file == "product.comp")
            .unwrap();
        ["TILE_M", "TILE_N", "MANY"].map(|name| defined(&plan, product, name).to_owned())
    };
    assert_eq!(of([32, 56, 56, 64], 3, 64), ["4", "2", "1"]);
    assert_eq!(of([32, 14, 14, 256], 3, 256), ["2", "2", "0"]);
    assert_eq!(of([2, 128, 128, 64], 5, 64), ["4", "2", "0"]);
    assert_eq!(of([1, 56, 56, 64], 3, 64), ["2", "2", "0"]);
}

/// On an H200 with driver 580.159.04 32 x 38 x 102 x 102 to 20 filters took 181 us of three parts and 115 in tiles.
#[test]
fn positions_that_are_apart_have_to_be_worth_packing() {
    let plan = |x: [u64; 4], filters: u64| {
        let results = x[2].div_ceil(2);
        let shapes = [
            &x[..],
            &[filters, x[1], 3, 3],
            &[x[0], filters, results, results],
        ];
        let ask = with(matrix(DType::F32, shapes), "strides", &[2, 2]);
        with(ask, "padding", &[1; 4]).plan()
    };
    for (x, filters) in [([32, 38, 102, 102], 20), ([32, 64, 102, 102], 20)] {
        assert!(plan(x, filters).is_err(), "{x:?}");
    }
    for (x, filters) in [([32, 64, 56, 56], 128), ([16, 512, 29, 29], 73)] {
        assert!(plan(x, filters).is_ok(), "{x:?}");
    }
}

#[test]
fn a_device_that_others_wait_for_gets_long_convolutions_in_turns() {
    let shapes: [&[u64]; 3] = [&[1, 512, 514, 514], &[512, 512, 3, 3], &[1, 512, 512, 512]];
    let on = |device| {
        let ask = conv("conv_tiled", DType::F32, shapes).on(device);
        ask.plan().unwrap()
    };
    assert_eq!(on(gpu()).steps.len(), 3);
    let integrated = DeviceInfo {
        kind: DeviceKind::INTEGRATED,
        ..gpu()
    };
    let plan = on(integrated);
    assert_eq!(plan.steps.len(), 19);
    let mut done = 0;
    for step in &plan.steps {
        let at = step.args[0].offset as usize;
        let word = |k: usize| {
            let bytes = plan.params[at + 4 * k..][..4].try_into().unwrap();
            u32::from_le_bytes(bytes)
        };
        let [columns, rows, _] = step.groups;
        assert_eq!(word(0), done);
        done = word(1);
        assert!(columns * rows >= done - word(0));
    }
    assert_eq!(done, 512 / 128 * (512 * 512 / 128));
}
