//! Tensors by the address of their elements.

use nx_vulkan_host::{Config, DType, Kind, Runtime};
use std::sync::Arc;

fn open() -> Arc<Runtime> {
    Runtime::open(&Config {
        cache_dir: Some(env!("CARGO_TARGET_TMPDIR").into()),
        ..Config::from_env()
    })
    .unwrap()
}

fn bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|x| x.to_ne_bytes()).collect()
}

#[test]
fn the_host_reads_and_writes_an_exposed_tensor_in_place() {
    let runtime = open();
    let given = bytes(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let whole = runtime.upload(DType::F32, &[2, 3], &given).unwrap();
    let constant = runtime
        .constant(DType::F32, &[2, 2], &bytes(&[7.0]))
        .unwrap();
    let turned = whole.transpose(&[1, 0]).unwrap();
    let row = whole.slice(&[1, 0], &[1, 3], &[1, 1]).unwrap();
    let expected: [(_, &[f32]); 4] = [
        (&whole, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),
        (&turned, &[1.0, 4.0, 2.0, 5.0, 3.0, 6.0]),
        (&row, &[4.0, 5.0, 6.0]),
        (&constant, &[7.0; 4]),
    ];
    for (tensor, expected) in expected {
        let (exposed, address) = runtime.expose(tensor).unwrap();
        // SAFETY: so many floats lie there, complete, as long as `exposed` lives; nothing of the device touches them.
        let here = unsafe { std::slice::from_raw_parts_mut(address as *mut f32, expected.len()) };
        assert_eq!(here, expected);
        assert_eq!(runtime.expose(&exposed).unwrap().1, address);
        let last = [expected.len() as u64 - 1];
        let there = address + 4 * last[0] as usize;
        let same = runtime
            .tensor_at(address, DType::F32, exposed.shape())
            .unwrap();
        let end = runtime.tensor_at(there, DType::F32, &[]).unwrap();
        drop(exposed);
        here[expected.len() - 1] = 9.0;
        let written = [&expected[..expected.len() - 1], &[9.0]].concat();
        assert_eq!(runtime.download(&same, None).unwrap(), bytes(&written));
        assert_eq!(runtime.download(&end, None).unwrap(), bytes(&[9.0]));
        here[expected.len() - 1] = expected[expected.len() - 1];
    }
    let again = runtime.constant(DType::F32, &[], &bytes(&[7.0])).unwrap();
    assert_eq!(runtime.download(&again, None).unwrap(), bytes(&[7.0]));
}

#[test]
fn memory_that_no_tensor_has_any_more_is_refused() {
    let runtime = open();
    let given = runtime.upload(DType::U8, &[300], &[5; 300]).unwrap();
    let (exposed, address) = runtime.expose(&given).unwrap();
    let at = |address, len: u64| runtime.tensor_at(address, DType::U8, &[len]);
    assert_eq!(
        runtime.download(&at(address, 300).unwrap(), None).unwrap(),
        [5; 300]
    );
    assert!(runtime.tensor_at(address + 2, DType::F32, &[2]).is_err());
    assert!(at(address, 301).is_err());
    drop((given, exposed));
    let error = at(address, 300).unwrap_err();
    assert_eq!(error.kind(), Kind::BadInput);
    assert!(error.to_string().contains("no tensor lies"), "{error}");
}

#[test]
fn memory_of_others_is_copied() {
    let runtime = open();
    let mut here = [1u16, 2, 3];
    let copy = runtime
        .tensor_at(here.as_ptr() as usize, DType::U16, &[3])
        .unwrap();
    here[0] = 9;
    let expected: Vec<u8> = [1u16, 2, 3].iter().flat_map(|x| x.to_ne_bytes()).collect();
    assert_eq!(runtime.download(&copy, None).unwrap(), expected);
    assert_eq!(here, [9, 2, 3]);
    for address in [0, 8, usize::MAX] {
        let error = runtime.tensor_at(address, DType::U16, &[3]).unwrap_err();
        assert_eq!(error.kind(), Kind::BadInput, "{error}");
    }
}
