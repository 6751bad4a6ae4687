//! Weights: products are told of them where all may be kept in another form, and not where they would be packed anew in each run.

use super::unary;
use crate::{folder::Folder, packs::copied};
use nx_vulkan_host::{
    Attr, Config, DType, DeviceChoice, MemoryBudget, Program, Request, Routine, Runtime, Step,
    fusion,
};

const SHAPE: [u64; 2] = [4, 4];
const BYTES: u64 = 64;

/// exp(x) w, as it is compiled for a GPU.
fn layer() -> Program<'static> {
    let attrs = [
        Attr::ints("batch_a", []),
        Attr::ints("batch_b", []),
        Attr::ints("contract_a", [1]),
        Attr::ints("contract_b", [0]),
    ];
    let outputs = vec![(DType::F32, SHAPE.to_vec())];
    let dot: Step<'static> = Request::new("dot", vec![2, 1], outputs, attrs.to_vec()).into();
    let program = Program::new(2, vec![unary("exp", 0, &SHAPE), dot], [3]).unwrap();
    let input = fusion::Input {
        spec: (DType::F32, SHAPE.to_vec()),
        element: None,
    };
    fusion::lasting(program, &[input.clone(), input]).unwrap()
}

/// Whether runs of the layer have the plans of one whose product is told, and of one whose product is not, where so many bytes may be
/// kept.
fn plans(kept: u64) -> [bool; 2] {
    let device = std::env::var("NX_VULKAN_DEVICE").unwrap_or_else(|_| "llvmpipe".to_owned());
    let folder = Folder::new();
    let runtime = Runtime::open(&Config {
        device: DeviceChoice::parse(&device),
        packs: vec![copied(&folder, &["elementwise", "matmul"])],
        cache_dir: Some(folder.join("cache")),
        kept: MemoryBudget::Bytes(kept),
        ..Config::from_env()
    });
    let runtime = runtime.unwrap();
    let one = runtime.upload(DType::F32, &SHAPE, &[0; BYTES as usize]);
    let one = one.unwrap();
    let routine = Routine::from(layer());
    for _ in 0..3 {
        let ran = runtime.run_routine(&routine, &[&one, &one]).unwrap();
        let result = runtime.download(&ran.results[0], None).unwrap();
        assert_eq!(result, vec![0; BYTES as usize]);
    }
    let known = runtime.stats().plans;
    assert_eq!(known, 2);
    let untold = fusion::untold(&layer()).unwrap();
    [layer(), untold].map(|program| {
        let before = runtime.stats().plans;
        runtime.run_program(&program, &[&one, &one]).unwrap();
        runtime.stats().plans == before
    })
}

#[test]
fn products_are_told_of_weights_that_may_be_kept() {
    assert_eq!(plans(BYTES), [true, false]);
    assert_eq!(plans(BYTES - 1), [false, true]);
    assert_eq!(plans(0), [false, true]);
}
