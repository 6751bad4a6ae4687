//! Products straight from memory.

use super::ask::matrices;
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
