//! Products straight from memory.

use super::ask::{Side, ask, matrices};
use nx_vulkan_abi::DType;
use nx_vulkan_pack_kit::testing::{cpu, defined, gpu};

const DIRECT: &str = "dot_direct";

/// Neighbours store neighbours where packs do not fit; the more results there are, the more share what is loaded.
#[test]
fn columns_of_an_invocation_lie_apart_where_rows_are_odd() {
    for (size, device, apart, own_m) in [
        ([6618, 509, 1], gpu(), "32", "4"),
        ([6618, 6509, 1], gpu(), "32", "8"),
        ([6618, 6508, 1], gpu(), "1", "8"),
        ([6618, 31, 1], gpu(), "1", "2"),
        ([6618, 509, 1], cpu(), "1", "16"),
    ] {
        let plan = matrices(DIRECT, device, size, DType::F32).plan().unwrap();
        let found = ["APART", "OWN_M"].map(|name| defined(&plan, 0, name));
        assert_eq!(found, [apart, own_m], "{size:?}");
    }
}

/// Columns that lie along k are loaded in packs along k, neighbours by neighbours: then 2500 x 7288 x 12 of f32 took 39 us in place of
/// 78 on an H200 with driver 580.159.04.
#[test]
fn columns_along_k_are_loaded_in_packs() {
    let plan = |device, k: u64, dtype| {
        let a = Side::new(&[2500, k], &[], &[1]).of(dtype);
        let b = Side::new(&[7288, k], &[], &[1]).of(dtype);
        ask(DIRECT, device, &a, &b).plan().unwrap()
    };
    for (device, k, dtype, expected) in [
        (gpu(), 12, DType::F32, ["1", "1", "32", "0"]),
        (gpu(), 6, DType::F32, ["0", "0", "32", "0"]),
        (gpu(), 6, DType::F64, ["1", "1", "32", "0"]),
        (cpu(), 12, DType::F32, ["1", "0", "1", "1"]),
    ] {
        let plan = plan(device, k, dtype);
        let found = ["A_WIDE", "B_WIDE", "APART", "C_WIDE"].map(|name| defined(&plan, 0, name));
        assert_eq!(found, expected, "{k} {dtype}");
    }
}
