//! Plans without a device: layouts, types, degenerate sizes, limits, reasons to decline.

mod ask;
mod attention;
mod cores;
mod direct;
mod epilogue;
mod in_place;
mod matrix;
mod parts;
mod skinny;
mod split;
mod stage;
mod table;
mod tiled;

use ask::{PACK, Side, ask, matrices};
use nx_vulkan_abi::{DType, DTypeSet, DeviceInfo, DeviceKind, Features, InputAs, Refusal};
use nx_vulkan_pack_kit::testing::{cpu, defined, files, gpu, words};

const SHORT: &str = "dot_short";
const SKINNY: &str = "dot_skinny";
const CPU: &str = "dot_cpu";
const TILED: &str = "dot_tiled";
const DIRECT: &str = "dot_direct";

#[test]
fn layouts_are_read_along_their_fast_axis() {
    let a = Side::new(&[256, 512], &[], &[1]);
    let b = Side::new(&[512, 384], &[], &[0]);
    let (at, bt) = (
        a.clone().strided(&[1, 256], 0),
        b.clone().strided(&[1, 512], 0),
    );
    for (a, b, along) in [
        (&a, &b, "10"),
        (&at, &b, "00"),
        (&a, &bt, "11"),
        (&at, &bt, "01"),
    ] {
        let plan = ask(TILED, gpu(), a, b).plan().unwrap();
        assert_eq!(
            defined(&plan, 0, "A_ALONG_K").to_owned() + defined(&plan, 0, "B_ALONG_K"),
            along
        );
        assert_eq!(
            (defined(&plan, 0, "A_WIDE"), defined(&plan, 0, "B_WIDE")),
            ("1", "1")
        );
    }
}

#[test]
fn packs_need_alignment_in_every_direction() {
    let b = Side::new(&[64, 64], &[], &[0]);
    for (shape, strides, offset, wide) in [
        ([64, 64], [64, 1], 0, "1"),
        ([64, 64], [64, 1], 4, "1"),
        ([64, 64], [64, 1], 2, "0"),
        ([64, 64], [68, 1], 0, "1"),
        ([64, 64], [66, 1], 0, "0"),
        ([64, 64], [128, 2], 0, "0"),
        ([64, 64], [-64, 1], 63 * 64, "1"),
        ([64, 64], [64, -1], 63, "0"),
        ([64, 64], [0, 1], 0, "1"),
    ] {
        let a = Side::new(&shape, &[], &[1])
            .strided(&strides, offset)
            .within(1 << 20);
        let plan = ask(TILED, gpu(), &a, &b).plan().unwrap();
        assert_eq!(defined(&plan, 0, "A_WIDE"), wide, "{strides:?} at {offset}");
    }
    let odd = matrices(TILED, gpu(), [65, 67, 129], DType::F32)
        .plan()
        .unwrap();
    assert_eq!(
        ["A_WIDE", "B_WIDE", "C_WIDE"].map(|name| defined(&odd, 0, name)),
        ["0"; 3]
    );
}

#[test]
fn every_type_plans_in_every_way() {
    for dtype in DType::all().filter(|dtype| DTypeSet::REAL.has(*dtype)) {
        for (row, size, file) in [
            (SKINNY, [4096, 1, 512], "skinny.comp"),
            (TILED, [512, 512, 512], "tile.comp"),
            (DIRECT, [33, 9, 5], "direct.comp"),
        ] {
            let plan = matrices(row, gpu(), size, dtype).plan().unwrap();
            assert_eq!(files(&plan)[0], file, "{dtype}");
            assert_eq!(
                defined(&plan, 0, "WIDTH"),
                if dtype.size() == 8 { "2" } else { "4" }
            );
            matrices(DIRECT, cpu(), size, dtype).plan().unwrap();
        }
    }
}

#[test]
fn the_last_resort_takes_every_degenerate_size() {
    for size in [0, 1, 2].iter().flat_map(|m| [0, 1, 2].map(|n| (*m, n))) {
        for (k, device) in [0, 1, 2].iter().flat_map(|k| [(*k, gpu()), (*k, cpu())]) {
            let plan = matrices(DIRECT, device, [size.0, size.1, k], DType::F32)
                .plan()
                .unwrap();
            assert_eq!(
                plan.steps.len(),
                usize::from(size.0 * size.1 > 0),
                "{size:?} {k}"
            );
        }
    }
    let scalars = ask(
        DIRECT,
        gpu(),
        &Side::new(&[], &[], &[]),
        &Side::new(&[], &[], &[]),
    )
    .plan()
    .unwrap();
    assert_eq!(files(&scalars), ["direct.comp"]);
}

#[test]
fn axes_that_collapse_are_read_in_place() {
    let a = Side::new(&[2, 3, 40, 5, 8], &[0, 1], &[3, 4]);
    let b = Side::new(&[2, 3, 5, 8, 7, 10], &[0, 1], &[2, 3]);
    let plan = ask(TILED, gpu(), &a, &b).plan().unwrap();
    assert_eq!(files(&plan), ["tile.comp"]);
    assert_eq!(words(&plan, 0)[..4], [40, 70, 40, 6]);
    // The order of the pairs does not matter when another one collapses.
    let turned = [
        Side {
            contract: vec![4, 3],
            ..a
        },
        Side {
            contract: vec![3, 2],
            ..b
        },
    ];
    let other = ask(TILED, gpu(), &turned[0], &turned[1]).plan().unwrap();
    assert_eq!(plan, other);
}

#[test]
fn axes_that_do_not_collapse_are_gathered_first() {
    let a = Side::new(&[8, 30, 8], &[], &[0, 2]);
    let b = Side::new(&[8, 40, 8], &[], &[0, 2]);
    let plan = ask(TILED, gpu(), &a, &b).plan().unwrap();
    assert_eq!(files(&plan), ["gather.comp", "gather.comp", "tile.comp"]);
    assert_eq!(plan.scratch.as_slice(), [4 * 8 * 30 * 8, 4 * 8 * 40 * 8]);
    for contract in [[0, 1], [1, 0]] {
        let b = Side::new(&[8, 8, 40], &[], &contract);
        let plan = ask(TILED, gpu(), &a, &b).plan().unwrap();
        assert_eq!(files(&plan), ["gather.comp", "tile.comp"]);
    }
}

#[test]
fn other_types_are_converted_where_that_loses_nothing() {
    let a = Side::new(&[4, 4], &[], &[1]).of(DType::U8);
    let b = Side::new(&[4, 4], &[], &[0]);
    let to = |device, result, b: &Side| {
        let mut ask = ask(DIRECT, device, &a, b);
        ask.outputs[0].dtype = result;
        ask.plan()
    };
    let asked = |indices: &[u32], dtype| {
        let wished = indices.iter().map(|&index| InputAs::new(index, dtype));
        Err(Refusal::InputsAs(wished.collect()))
    };
    assert_eq!(to(cpu(), DType::F32, &b), asked(&[0], DType::F32));
    assert_eq!(to(cpu(), DType::S32, &a), asked(&[0, 1], DType::S32));
    assert_eq!(to(gpu(), DType::C64, &b), asked(&[0, 1], DType::C64));
    assert_eq!(to(gpu(), DType::F16, &b), asked(&[1], DType::F16));
    let narrow = DeviceInfo {
        features: Features(!Features::STORAGE8.0),
        ..gpu()
    };
    assert_eq!(to(narrow, DType::F32, &b), asked(&[0], DType::F32));
    let plan = to(gpu(), DType::F32, &b).unwrap();
    assert_eq!(defined(&plan, 0, "A_PACK"), "u8vec4");
    assert_eq!(defined(&plan, 0, "A_GET(x)"), "nxv_to_f32(A_LOAD(x))");
    assert_eq!(defined(&plan, 0, "B_GET(x)"), "B_LOAD(x)");
}

#[test]
fn a_small_device_has_a_kernel_for_every_shape() {
    let small = DeviceInfo {
        kind: DeviceKind::INTEGRATED,
        subgroup_size: 16,
        shared_bytes: 16 << 10,
        max_invocations: 256,
        max_workgroup_size: [256, 256, 64],
        compute_units: 0,
        ..gpu()
    };
    for dtype in [DType::F32, DType::F64, DType::BF16] {
        for size in [[512; 3], [64, 64, 65_536], [32, 4096, 4096]] {
            let plan = matrices(TILED, small, size, dtype).plan().unwrap();
            assert!(plan.steps.len() <= 2, "{dtype} {size:?}");
        }
        for size in [[1, 4096, 4096], [4096, 8, 4096], [1, 1, 1 << 20]] {
            matrices(SKINNY, small, size, dtype).plan().unwrap();
        }
    }
}

#[test]
fn tiles_are_chosen_to_fill_the_device() {
    let block = |size| {
        let plan = matrices(TILED, gpu(), size, DType::F32).plan().unwrap();
        defined(&plan, 0, "BLOCK_M").to_owned()
    };
    assert_eq!(block([4096, 4096, 4096]), "128");
    assert_eq!(block([256, 256, 256]), "32");
    let deep = matrices(TILED, gpu(), [256, 256, 65536], DType::F32)
        .plan()
        .unwrap();
    assert_eq!(files(&deep), ["tile.comp", "splits.comp"]);
    let splits = deep.scratch[0] / (256 * 256 * 4);
    assert!((8..=132).contains(&splits), "{splits}");
    assert_eq!(defined(&deep, 0, "PARTIAL"), "1");
    let batched = ask(
        TILED,
        gpu(),
        &Side::new(&[64, 256, 256], &[0], &[2]),
        &Side::new(&[64, 256, 256], &[0], &[1]),
    );
    assert_eq!(defined(&batched.plan().unwrap(), 0, "BLOCK_M"), "128");
}

#[test]
fn small_products_of_narrow_floats_are_summed_in_f64() {
    for dtype in [DType::F32, DType::F16, DType::BF16] {
        let plan = matrices(SHORT, gpu(), [16, 32, 64], dtype).plan().unwrap();
        assert_eq!(files(&plan), ["short.comp"], "{dtype}");
    }
    let plain = DeviceInfo {
        features: Features::NONE,
        ..gpu()
    };
    for (device, size, dtype, part) in [
        (gpu(), [4; 3], DType::F64, "narrower"),
        (gpu(), [4; 3], DType::S32, "narrower"),
        (gpu(), [4, 4, 65], DType::F32, "65 for each"),
        (gpu(), [64, 64, 32], DType::F32, "131072 multiplications"),
        (plain, [4; 3], DType::F32, "FP64"),
    ] {
        assert!(matrices(SHORT, device, size, dtype).reason().contains(part));
    }
}

#[test]
fn each_way_says_why_it_declines() {
    assert!(
        matrices(CPU, gpu(), [512; 3], DType::F32)
            .reason()
            .contains("not a CPU")
    );
    assert!(matrices(CPU, cpu(), [512; 3], DType::F32).plan().is_ok());
    assert!(
        matrices(TILED, gpu(), [512, 512, 3], DType::F32)
            .reason()
            .contains("smaller than a tile")
    );
    let small = DeviceInfo {
        shared_bytes: 1024,
        ..gpu()
    };
    assert!(
        matrices(TILED, small, [512; 3], DType::F32)
            .reason()
            .contains("no tile fits")
    );
    let plain = DeviceInfo {
        features: Features::NONE,
        ..gpu()
    };
    assert!(
        matrices(DIRECT, plain, [4; 3], DType::F64)
            .reason()
            .contains("fp64")
    );
    assert!(
        matrices(DIRECT, plain, [4; 3], DType::U8)
            .reason()
            .contains("storage8")
    );
    assert!(matrices(DIRECT, plain, [4; 3], DType::F32).plan().is_ok());
}

#[test]
fn buffers_beyond_the_range_are_windowed_or_declined() {
    let device = DeviceInfo {
        max_buffer_range: 1 << 20,
        ..gpu()
    };
    let b = Side::new(&[64, 64], &[], &[0]);
    let a = Side::new(&[64, 64], &[], &[1])
        .strided(&[64, 1], 100_000_003)
        .within(1 << 30);
    let plan = ask(DIRECT, device, &a, &b).plan().unwrap();
    let arg = plan.steps[0].args[0];
    assert_eq!((arg.offset, arg.len), (400_000_000, 12 + 64 * 64 * 4 + 4));
    assert_eq!(words(&plan, 0)[4], 3);
    let spread = Side::new(&[64, 64], &[], &[1])
        .strided(&[1 << 20, 1], 0)
        .within(1 << 30);
    assert!(
        ask(DIRECT, device, &spread, &b)
            .reason()
            .contains("binds at most 1048576")
    );
    assert!(
        matrices(DIRECT, device, [1024, 1024, 1], DType::F32)
            .reason()
            .contains("the result")
    );
    let outside = b.clone().within(16);
    assert!(
        ask(DIRECT, device, &outside, &b)
            .reason()
            .contains("reaches outside")
    );
}

#[test]
fn parts_have_no_more_results_than_one_binding_covers() {
    // Operands of one row and one column, which are all of them.
    let a = Side::new(&[256, 65_536], &[], &[1]).strided(&[0, 1], 0);
    let b = Side::new(&[65_536, 256], &[], &[0]).strided(&[1, 0], 0);
    let on = |device| ask(TILED, device, &a, &b).plan().unwrap();
    let split = on(gpu()).scratch[0];
    let device = DeviceInfo {
        max_buffer_range: split - 1,
        ..gpu()
    };
    let fewer = on(device).scratch;
    assert!(fewer.len() == 1 && fewer[0] < split, "{fewer:?} {split}");
}

#[test]
fn many_workgroups_wrap_into_the_second_dimension() {
    let a = Side::new(&[100_000, 32, 32], &[0], &[2]);
    let b = Side::new(&[100_000, 32, 32], &[0], &[1]);
    let plan = ask(TILED, gpu(), &a, &b).plan().unwrap();
    assert_eq!(plan.steps[0].groups, [50000, 2, 1]);
    assert_eq!(words(&plan, 0)[16], 100_000);
    let narrow = DeviceInfo {
        max_groups: [100; 3],
        ..gpu()
    };
    assert!(ask(TILED, narrow, &a, &b).reason().contains("workgroups"));
}

#[test]
fn broken_requests_are_the_hosts_fault() {
    let b = Side::new(&[4, 4], &[], &[0]);
    for (a, part) in [
        (Side::new(&[4, 5], &[], &[1]), "differ in extent"),
        (Side::new(&[4, 4], &[], &[7]), "no axis 7"),
        (Side::new(&[4, 4], &[], &[1, 1]), "two roles"),
    ] {
        let answer = ask(DIRECT, gpu(), &a, &b).plan();
        assert!(
            matches!(&answer, Err(Refusal::BadRequest(why)) if why.contains(part)),
            "{answer:?}"
        );
    }
}

#[test]
fn a_request_without_operands_is_refused() {
    let answer = PACK.ask(DIRECT, &[], &[]).plan();
    assert!(matches!(answer, Err(Refusal::BadRequest(_))));
}
