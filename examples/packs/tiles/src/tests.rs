//! Plans are data: what they hold is looked at without a device.

use crate::{KERNELS, describe, plan};
use nx_vulkan_abi::{DType, DeviceInfo, RSlice};
use nx_vulkan_pack_kit::testing::{Ask, Pack, Tensor, cpu, gpu};

const STAGED: &str = "staged_f16";
const WORKGROUP: &str = "workgroup_f16";

fn product(kernel: &str, m: u64, k: u64, n: u64) -> Ask {
    let of = |shape: [u64; 2]| Tensor::new(DType::F16, &shape);
    let pack = Pack { describe, plan };
    let ask = pack.ask(kernel, &[of([m, k]), of([k, n])], &[of([m, n])]);
    ask.ints("contract_a", &[1]).ints("contract_b", &[0])
}

#[test]
fn every_kernel_says_what_it_needs() {
    let said = describe().unwrap();
    assert_eq!(said.kernels.len(), KERNELS.len());
    for row in &said.kernels {
        assert!(gpu().features.has(row.needs), "{}", row.id);
        assert!(!DeviceInfo::default().features.has(row.needs), "{}", row.id);
    }
}

#[test]
fn tiles_cover_the_result() {
    let plan = product(STAGED, 256, 64, 384).plan().unwrap();
    let step = &plan.steps[0];
    assert_eq!(step.groups, [3, 2, 1]);
    assert_eq!(plan.shaders[0].subgroup_size, 32);
    let words: Vec<u8> = [256u32, 384, 64, 0, 0]
        .iter()
        .flat_map(|w| w.to_le_bytes())
        .collect();
    assert_eq!(step.push.as_slice(), words);
}

#[test]
fn what_does_not_fit_is_declined_with_the_reason() {
    let why = |ask: Ask| ask.reason();
    assert!(why(product(STAGED, 256, 64, 100)).contains("multiples of its tiles"));
    assert!(why(product(STAGED, 0, 64, 128)).contains("without elements"));
    let small = DeviceInfo {
        shared_bytes: 32 << 10,
        ..gpu()
    };
    assert!(why(product(STAGED, 128, 32, 128).on(small)).contains("bytes of shared memory"));
    let other = DeviceInfo {
        facts: RSlice::EMPTY,
        ..gpu()
    };
    for device in [other, cpu()] {
        let asked = |kernel| why(product(kernel, 128, 32, 128).on(device));
        assert!(asked(STAGED).contains("the driver lists no product"));
        assert!(asked(WORKGROUP).contains("no product of a workgroup"));
    }
}
