//! Plans are data, and tested as such.

use crate::{describe, plan};
use nx_vulkan_abi::{DType, Features, InputAs, Refusal};
use nx_vulkan_pack_kit::testing::{Ask, Pack, Tensor, cpu, defined, gpu};

fn ask(kernel: &str, dtype: DType, shape: &[u64], axis: usize, length: u64) -> Ask {
    let mut kept = shape.to_vec();
    kept[axis] = if kernel == "rfft" {
        length / 2 + 1
    } else {
        length
    };
    let result = match (kernel, dtype.part()) {
        ("irfft", part) => part,
        (_, DType::F64) => DType::C128,
        _ => DType::C64,
    };
    Pack { describe, plan }
        .ask(
            kernel,
            &[Tensor::new(dtype, shape)],
            &[Tensor::new(result, &kept)],
        )
        .ints("axis", &[axis as i64])
        .ints("length", &[length as i64])
}

#[test]
fn every_length_and_type_has_a_plan() {
    for device in [gpu(), cpu()] {
        let long = [
            4097u64, 9261, 10_000, 10_201, 70_001, 131_071, 300_007, 500_009, 2_000_003,
        ];
        let round = (10..23)
            .map(|bits| 1 << bits)
            .chain((8..13).map(|threes| 3u64.pow(threes)));
        for length in (1..300).chain(long).chain(round) {
            for (kernel, dtype) in [
                ("fft", DType::U8),
                ("ifft", DType::C64),
                ("rfft", DType::F32),
                ("fft", DType::C128),
                ("ifft", DType::F64),
            ] {
                for (shape, axis) in [([3, length], 1), ([length, 5], 0)] {
                    let plan = ask(kernel, dtype, &shape, axis, length).on(device).plan();
                    assert!(plan.is_ok(), "{kernel} {dtype} {shape:?}: {plan:?}");
                }
            }
            let half = ask("irfft", DType::C64, &[2, length / 2 + 1], 1, length);
            assert!(half.on(device).plan().is_ok());
        }
    }
}

#[test]
fn every_plane_has_a_plan_on_small_devices_as_well() {
    let mut small = cpu();
    small.shared_bytes = 16 << 10;
    small.max_invocations = 128;
    small.max_workgroup_size = [128, 128, 64];
    let lengths = [
        7, 509, 1000, 1021, 1024, 1023, 2000, 2003, 2047, 2048, 2187, 3001, 4096, 5003, 9261,
    ];
    for device in [gpu(), cpu(), small] {
        for rows in lengths {
            for columns in lengths {
                for (dtype, result) in [(DType::C64, DType::C64), (DType::F64, DType::C128)] {
                    let plane = [rows, columns];
                    let ask = Pack { describe, plan }
                        .ask(
                            "fft2",
                            &[Tensor::new(dtype, &plane)],
                            &[Tensor::new(result, &plane)],
                        )
                        .ints("axes", &[0, 1])
                        .ints("lengths", &plane.map(|length| length as i64));
                    let plan = ask.on(device).plan();
                    assert!(plan.is_ok(), "{dtype} {plane:?}: {plan:?}");
                }
            }
        }
        let long = ask("fft", DType::C64, &[67_319_517], 0, 67_319_517);
        assert!(long.on(device).plan().is_ok());
    }
}

#[test]
fn a_row_that_fits_a_workgroup_takes_one_pass_and_a_longer_one_two() {
    let passes = |shape: [u64; 2], axis: usize| {
        let ask = ask("fft", DType::C64, &shape, axis, shape[axis]);
        ask.plan().unwrap().steps.len()
    };
    assert_eq!(passes([64, 4096], 1), 1);
    assert_eq!(passes([64, 65_536], 1), 2);
    assert_eq!(passes([1, 1 << 20], 1), 2);
    assert_eq!(passes([1, 1 << 22], 1), 2);
    assert_eq!(passes([1, 1 << 24], 1), 3);
    assert_eq!(passes([64, 10_000], 1), 2);
    assert_eq!(passes([1024, 64], 0), 1);
    assert_eq!(passes([4096, 64], 0), 2);
    // There and back in one; the filter of a long one, and there and back with the pass in the middle in common.
    assert_eq!(passes([64, 1009], 1), 1);
    assert_eq!(passes([64, 3001], 1), 2 + 3);
}

#[test]
fn short_transforms_are_computed_in_f64_where_the_device_has_it() {
    let few = ask("fft", DType::F32, &[4, 30], 1, 30);
    assert_eq!(defined(&few.plan().unwrap(), 0, "REAL"), "double");
    let mut single = gpu();
    single.features = Features(!Features::FP64.0);
    assert_eq!(defined(&few.on(single).plan().unwrap(), 0, "REAL"), "float");
    let many = ask("fft", DType::F32, &[400, 30], 1, 30);
    assert_eq!(defined(&many.plan().unwrap(), 0, "REAL"), "float");
    let wide = ask("fft", DType::F64, &[400, 30], 1, 30);
    assert!(wide.on(single).reason().contains("fp64"));
}

#[test]
fn a_view_is_asked_for_in_order() {
    let mut turned = ask("fft", DType::F32, &[4, 30], 1, 30);
    turned.inputs[0] = Tensor::new(DType::F32, &[4, 30]).strided(&[1, 4], 0);
    let wanted = Refusal::InputsAs(vec![InputAs::new(0, DType::F32)]);
    assert_eq!(turned.plan(), Err(wanted));
}

#[test]
fn what_does_not_fit_is_refused() {
    let good = ask("fft", DType::F32, &[4, 30], 1, 30);
    for (why, bad) in [
        ("axis", good.clone().ints("axis", &[2])),
        ("2^27", good.clone().ints("length", &[1 << 40])),
        ("2^27", good.clone().ints("length", &[0])),
        ("shape", good.clone().ints("length", &[31])),
        ("axes", good.clone().ints("length", &[30, 30])),
    ] {
        let mut bad = bad;
        bad.ints.reverse();
        assert!(bad.reason().contains(why), "{why}: {}", bad.reason());
    }
    let huge = ask("fft", DType::F32, &[1 << 12, 1 << 20], 1, 1 << 20);
    assert!(huge.reason().contains("too large"));
}
