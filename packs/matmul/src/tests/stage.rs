//! Results whose rows pass through shared memory.

use super::{ask::matrices, cores::h200};
use nx_vulkan_abi::{DType, DeviceInfo};
use nx_vulkan_pack_kit::testing::{defined, files};

#[test]
fn rows_that_vectors_do_not_fit_need_shared_memory() {
    let little = DeviceInfo {
        shared_bytes: 16 << 10,
        ..h200()
    };
    for (kernel, dtype) in [("dot_cores", DType::F16), ("dot_split", DType::F32)] {
        let of = |n| matrices(kernel, little, [2048, n, 2048], dtype);
        assert!(of(2048).plan().is_ok(), "{kernel}");
        let reason = of(2047).reason();
        assert!(reason.contains("17408 bytes of shared memory"), "{reason}");
    }
}

#[test]
fn elements_of_two_bytes_are_stored_in_pairs_where_rows_have_whole_ones() {
    for (kernel, dtype, n, expected) in [
        ("dot_cores", DType::F16, 2046, ["0", "1"]),
        ("dot_cores", DType::F16, 2047, ["0", "0"]),
        ("dot_split", DType::F32, 2046, ["0", "0"]),
    ] {
        let plan = matrices(kernel, h200(), [2048, n, 2048], dtype);
        let plan = plan.plan().unwrap();
        let last = plan.steps.len() - 1;
        let found = ["C_WIDE", "C_PAIRS"].map(|name| defined(&plan, last, name));
        assert_eq!(found, expected, "{kernel} {n}");
    }
}

/// On an H200 with driver 580.159.04 f16 takes, with packing, in these and in others: 2048 50 us (53 to 57), 3072 165 (174 to 221), 4096 394
/// (400 to 433), 8192 2,784 (2,819 to 3,087).
#[test]
fn workgroups_are_as_large_as_fills_the_device() {
    let shape = |size: u64, device: DeviceInfo<'static>| {
        let plan = matrices("dot_cores", device, [size; 3], DType::F16).plan();
        let plan = plan.expect("matrix units take it");
        let step = plan.steps.len() - 1;
        assert_eq!(files(&plan)[step], "cores.comp");
        ["WARP_M", "WARPS_M"].map(|name| defined(&plan, step, name).to_owned())
    };
    for (size, expected) in [
        (2048, ["64", "4"]),
        (3072, ["48", "2"]),
        (4096, ["64", "2"]),
        (8192, ["80", "2"]),
    ] {
        assert_eq!(shape(size, h200()), expected, "{size}");
    }
    // Where rows are not whole vectors, 8 subgroups hand on 16 rows of 17 of them each.
    let little = DeviceInfo {
        shared_bytes: 32 << 10,
        ..h200()
    };
    assert_eq!(shape(2048, little)[1], "2");
}
