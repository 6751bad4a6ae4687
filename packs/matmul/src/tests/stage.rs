//! Results whose rows pass through shared memory.

use super::{ask::matrices, cores::h200};
use nx_vulkan_abi::{DType, DeviceInfo};

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
