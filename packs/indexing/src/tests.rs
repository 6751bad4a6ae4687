//! Plans, without a device.

use super::*;
use nx_vulkan_abi::DType;
use nx_vulkan_pack_kit::testing::{Ask, Pack, Tensor, defined, files};

const PACK: Pack = Pack { describe, plan };
const F32: DType = DType::F32;
const S32: DType = DType::S32;

fn gather(tensor: Tensor, indices: Tensor, shape: &[u64]) -> Ask {
    let result = Tensor::new(tensor.dtype, shape);
    PACK.ask("gather", &[tensor, indices], &[result])
        .ints("axes", &[0])
}

#[test]
fn rows_are_moved_in_the_widest_elements_that_are_aligned() {
    let moved = |columns: u64, dtype: DType| {
        let tensor = Tensor::new(dtype, &[100, columns]);
        let ask = gather(tensor, Tensor::new(S32, &[7, 1]), &[7, columns]);
        defined(&ask.plan().unwrap(), 0, "MOVED").to_owned()
    };
    assert_eq!(moved(64, F32), "uvec4");
    assert_eq!(moved(6, F32), "uvec2");
    assert_eq!(moved(5, F32), "uint");
    assert_eq!(moved(16, DType::F8), "uvec4");
    assert_eq!(moved(3, DType::BF16), "uint16_t");
}

#[test]
fn narrow_indices_are_wanted_wider() {
    let ask = |dtype| {
        gather(
            Tensor::new(F32, &[9, 4]),
            Tensor::new(dtype, &[5, 1]),
            &[5, 4],
        )
    };
    for dtype in [DType::S32, DType::U32, DType::S64, DType::U64] {
        assert_eq!(files(&ask(dtype).plan().unwrap()), ["move.comp"]);
    }
    for dtype in [DType::S8, DType::U8, DType::S16, DType::U16] {
        assert!(matches!(ask(dtype).plan(), Err(Refusal::InputsAs(_))));
    }
    assert_eq!(ask(DType::U4).reason(), "indices of u4 are not read");
}
