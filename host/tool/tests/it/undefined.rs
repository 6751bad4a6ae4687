//! Integers for which an op has no result: on the device the error comes when a result that depends on them is read.

use crate::folder::Folder;
use crate::packs::copied;
use nx_vulkan_host::{
    Config, DType, DeviceChoice, Error, Kind, Request, Result, Runtime, Tensor, device,
};
use std::{sync::Arc, time::Duration};

fn open(folder: &Folder, checked: bool) -> Arc<Runtime> {
    let device = std::env::var("NX_VULKAN_DEVICE").unwrap_or_else(|_| "llvmpipe".to_owned());
    Runtime::open(&Config {
        device: DeviceChoice::parse(&device),
        packs: vec![copied(folder, &["elementwise", "reduce"])],
        cache_dir: Some(folder.join("cache")),
        validation: true,
        checked,
        ..Config::from_env()
    })
    .unwrap()
}

fn upload(runtime: &Runtime, values: &[i32]) -> Tensor {
    let bytes: Vec<u8> = values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect();
    runtime
        .upload(DType::S32, &[values.len() as u64], &bytes)
        .unwrap()
}

fn run(runtime: &Runtime, op: &str, operands: &[&Tensor]) -> Tensor {
    let output = (DType::S32, operands[0].shape().to_vec());
    let ran = runtime
        .run_reported(&Request::new(op, operands, &[output], &[]))
        .unwrap();
    assert_ne!(&*ran.served_by, "host");
    ran.outputs.into_iter().next().unwrap()
}

fn read(runtime: &Runtime, tensor: &Tensor) -> Result<Vec<i32>> {
    let bytes = runtime.download(tensor, None)?;
    let words = bytes.as_chunks().0.iter();
    Ok(words.map(|word| i32::from_le_bytes(*word)).collect())
}

const OPS: [(&str, i32, Kind, &str); 5] = [
    ("quotient", 0, Kind::Arithmetic, "integer division by zero"),
    ("remainder", 0, Kind::Arithmetic, "integer division by zero"),
    ("pow", -1, Kind::Arithmetic, "negative exponent"),
    ("left_shift", -1, Kind::BadInput, "negative shift"),
    ("right_shift", -7, Kind::BadInput, "negative shift"),
];

#[track_caller]
fn refused<T: std::fmt::Debug>(result: Result<T>, op: &str, kind: Kind, reason: &str) {
    let error: Error = result.unwrap_err();
    let text = error.to_string();
    assert_eq!(error.kind(), kind, "{text}");
    assert!(text.contains(reason) && text.contains(op), "{text}");
}

fn integers_without_a_result(checked: bool) {
    let folder = Folder::new();
    let runtime = open(&folder, checked);
    for (op, bad, kind, reason) in OPS {
        // More than one workgroup, more than one vector of a thread, and one bad element near the end.
        let mut amounts = vec![1; 100_000];
        let x = upload(&runtime, &amounts);
        let good = upload(&runtime, &amounts);
        amounts[99_998] = bad;
        let wrong = run(&runtime, op, &[&x, &upload(&runtime, &amounts)]);
        let right = run(&runtime, op, &[&x, &good]);
        refused(read(&runtime, &wrong), op, kind, reason);
        assert!(read(&runtime, &right).is_ok(), "{op}");

        // It stays with views, copies and whatever is computed from it, and with nothing else.
        let part = wrong.slice(&[0], &[5], &[2]).unwrap();
        refused(read(&runtime, &part), op, kind, reason);
        refused(
            read(&runtime, &runtime.copy(&part).unwrap()),
            op,
            kind,
            reason,
        );
        let sum = run(&runtime, "add", &[&wrong, &right]);
        let sum = run(&runtime, "multiply", &[&sum, &x]);
        refused(read(&runtime, &sum), op, kind, reason);
        let budget = Duration::from_secs(5);
        refused(
            runtime.try_download(&sum, Some(1), budget),
            op,
            kind,
            reason,
        );
        assert!(read(&runtime, &run(&runtime, "add", &[&right, &x])).is_ok());
        assert_eq!(
            runtime.try_download(&right, Some(0), budget).unwrap(),
            Some(Vec::new())
        );
    }
    assert_eq!(device::validation_messages(), [""; 0]);
}

#[test]
fn reading_a_result_that_does_not_exist_is_an_error() {
    integers_without_a_result(false);
}

#[test]
fn it_is_an_error_in_checked_mode_too() {
    integers_without_a_result(true);
}

#[test]
fn floats_and_unsigned_amounts_have_results() {
    let folder = Folder::new();
    let runtime = open(&folder, false);
    let x = runtime.upload(DType::F32, &[2], &[0; 8]).unwrap();
    let amount = runtime.upload(DType::U8, &[2], &[255, 8]).unwrap();
    for (op, a, b, dtype) in [
        ("remainder", &x, &x, DType::F32),
        ("pow", &x, &x, DType::F32),
        ("left_shift", &amount, &amount, DType::U8),
        ("pow", &amount, &amount, DType::U8),
    ] {
        let y = runtime
            .run(&Request::new(op, &[a, b], &[(dtype, vec![2])], &[]))
            .unwrap();
        assert!(runtime.download(&y[0], None).is_ok(), "{op}");
    }
}

/// An op of an operand that many others may have gone wrong for set the last word of these, so that the operand was an error too.
#[test]
fn what_is_wrong_late_leaves_what_it_was_made_of() {
    let folder = Folder::new();
    let runtime = open(&folder, false);
    let ones = upload(&runtime, &[1, 1, 1]);
    let zeros = upload(&runtime, &[1, 0, 1]);
    let mut right = ones.clone();
    for step in 0..60 {
        right = run(&runtime, "quotient", &[&right, &ones]);
        if step % 7 == 0 {
            let wrong = run(&runtime, "quotient", &[&right, &zeros]);
            let worse = run(&runtime, "quotient", &[&wrong, &ones]);
            assert_eq!(read(&runtime, &right).unwrap(), [1, 1, 1], "{step}");
            for wrong in [wrong, worse] {
                let read = read(&runtime, &wrong);
                refused(read, "quotient", Kind::Arithmetic, "by zero");
            }
        }
    }
    // Nothing is read on the way.
    for _ in 0..60 {
        right = run(&runtime, "quotient", &[&right, &ones]);
    }
    let wrong = run(&runtime, "quotient", &[&right, &zeros]);
    assert!(read(&runtime, &wrong).is_err());
    assert_eq!(read(&runtime, &right).unwrap(), [1, 1, 1]);
}

/// A loop that never reads has its words looked at on the way; what is wrong at its start is still there at its end.
#[test]
fn long_programs_keep_what_was_wrong_and_nothing_else() {
    let folder = Folder::new();
    let runtime = open(&folder, false);
    let ones = upload(&runtime, &[1, 1, 1]);
    let (mut right, mut wrong) = (
        ones.clone(),
        run(
            &runtime,
            "quotient",
            &[&ones, &upload(&runtime, &[1, 0, 1])],
        ),
    );
    for _ in 0..500 {
        right = run(&runtime, "quotient", &[&right, &ones]);
        wrong = run(&runtime, "quotient", &[&wrong, &ones]);
    }
    assert_eq!(read(&runtime, &right).unwrap(), [1, 1, 1]);
    refused(
        read(&runtime, &wrong),
        "quotient",
        Kind::Arithmetic,
        "by zero",
    );
    assert!(
        runtime.stats().memory.buffers < 20,
        "{:?}",
        runtime.stats().memory
    );
}
