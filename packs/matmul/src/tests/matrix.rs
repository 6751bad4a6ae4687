//! Products staged for matrix units of any driver: what tiles are made of, what the shader is told, and what is declined.

use super::ask::{PACK, Side, ask, matrices};
use super::cores::{EAGER, h200};
use nx_vulkan_abi::{DType, DeviceInfo, Features, Matrix, MatrixScope, Plan};
use nx_vulkan_pack_kit::testing::{Ask, Tensor, defined, files, gpu, with_fact, without, words};

const MATRIX: &str = "dot_matrix";
const MATRIX_BF16: &str = "dot_matrix_bf16";

/// A device whose driver lists these products of subgroups: extents, types of operands and of sums.
fn device(lanes: [u32; 3], listed: &[([u32; 3], DType, DType)]) -> DeviceInfo<'static> {
    let ints = listed.iter().flat_map(|(extents, element, sum)| {
        let product = Matrix {
            extents: *extents,
            a: *element,
            b: *element,
            c: *sum,
            result: *sum,
            scope: MatrixScope::SUBGROUP,
            saturates: false,
            invocations: 0,
        };
        product.to_ints()
    });
    let [subgroup_size, min_subgroup_size, max_subgroup_size] = lanes;
    let device = DeviceInfo {
        subgroup_size,
        min_subgroup_size,
        max_subgroup_size,
        compute_units: 48,
        shared_bytes: 64 << 10,
        ..without(gpu(), Features::COOPMAT_ORDER)
    };
    with_fact(device, Matrix::FACT, &Vec::from_iter(ints))
}

fn amd() -> DeviceInfo<'static> {
    DeviceInfo {
        vendor: 0x1002,
        ..device([64, 32, 64], &[([16; 3], DType::F16, DType::F32)])
    }
}

fn intel() -> DeviceInfo<'static> {
    let listed = [
        ([8, 16, 16], DType::F16, DType::F32),
        ([8, 16, 16], DType::BF16, DType::F32),
        ([8, 16, 32], DType::S8, DType::S32),
        ([8, 16, 32], DType::U8, DType::U32),
    ];
    DeviceInfo {
        vendor: 0x8086,
        ..device([32, 16, 32], &listed)
    }
}

/// A product of any size on units that always pay.
fn eager(
    kernel: &str,
    device: DeviceInfo<'static>,
    [m, n, k]: [u64; 3],
    [a, b, c]: [DType; 3],
) -> Ask {
    let (a, b) = (
        Side::new(&[m, k], &[], &[1]).of(a),
        Side::new(&[k, n], &[], &[0]).of(b),
    );
    let mut ask = ask(kernel, device, &a, &b);
    ask.outputs[0].dtype = c;
    Ask { pack: EAGER, ..ask }
}

fn numbers<const N: usize>(plan: &Plan, names: [&str; N]) -> [u32; N] {
    names.map(|name| defined(plan, 0, name).parse().unwrap())
}

/// What a tile has to keep, whatever it is made of, by what the shader is told alone. Gives the bytes of shared memory.
fn check(plan: &Plan, device: &DeviceInfo<'_>, bytes: u32) -> u32 {
    let [bm, bn, bk] = numbers(plan, ["BM", "BN", "BK"]);
    let [wm, wn, lanes] = numbers(plan, ["WM", "WN", "LANES"]);
    let [fm, fn_, fk] = numbers(plan, ["FM", "FN", "FK"]);
    let [a_along_k, b_along_k] = numbers(plan, ["A_ALONG_K", "B_ALONG_K"]);
    let listed = device.matrices().any(|own| own.extents == [fm, fn_, fk]);
    assert!(listed, "{fm} x {fn_} x {fk}");
    for (part, whole) in [
        (fm, wm),
        (fn_, wn),
        (2 * fk, bk),
        (wm, bm),
        (wn, bn),
        (4, fn_),
    ] {
        assert_eq!(whole % part, 0, "{part} of {whole}");
    }
    let subgroups = bm / wm * (bn / wn);
    let threads = subgroups * lanes;
    assert!(threads <= device.max_invocations);
    let item = 16 / bytes;
    let mut shared = 0;
    for (edge, along_k, fragment) in [(bm, a_along_k, fm), (bn, b_along_k, fn_)] {
        assert_eq!(edge * bk / item % threads, 0, "items of an invocation");
        let start = if along_k == 1 { fk } else { fragment };
        assert_eq!(start % item, 0, "a fragment begins within an item");
        let (rows, row) = if along_k == 1 { (edge, bk) } else { (bk, edge) };
        shared += 2 * rows * (row / item + 1) * 16;
    }
    let shared = shared.max(subgroups * fm * (wn / 4 + 1) * 16);
    assert!(shared <= device.shared_bytes, "{shared}");
    let step = &plan.steps[0];
    assert_eq!(plan.shaders[step.shader as usize].subgroup_size, lanes);
    shared
}

const F16: [DType; 3] = [DType::F16; 3];

#[test]
fn tiles_are_made_of_what_a_driver_lists() {
    for (device, fragment, lanes) in [
        (amd(), [16; 3], 64),
        (intel(), [8, 16, 16], 32),
        (h200(), [16; 3], 32),
    ] {
        let plan = eager(MATRIX, device, [4096; 3], F16).plan().unwrap();
        assert_eq!(files(&plan), ["matrix.comp"]);
        assert_eq!(numbers(&plan, ["FM", "FN", "FK"]), fragment);
        assert_eq!(
            numbers(&plan, ["BM", "BN", "BK", "WM", "WN"]),
            [128, 128, 32, 64, 64]
        );
        assert_eq!(numbers(&plan, ["LANES"]), [lanes]);
        check(&plan, &device, 2);
    }
    let narrow = DeviceInfo {
        subgroup_size: 16,
        ..intel()
    };
    // An invocation holds at most 128 sums.
    let plan = eager(MATRIX, narrow, [4096; 3], F16).plan().unwrap();
    assert_eq!(numbers(&plan, ["LANES", "WM", "WN"]), [16, 64, 32]);
    check(&plan, &narrow, 2);
    // The largest of several.
    let all =
        [[16, 8, 8], [16, 16, 16], [16, 8, 16]].map(|extents| (extents, DType::F16, DType::F32));
    let several = device([32; 3], &all);
    let plan = eager(MATRIX, several, [4096; 3], F16).plan().unwrap();
    assert_eq!(numbers(&plan, ["FM", "FN", "FK"]), [16; 3]);
}

#[test]
fn every_type_and_layout_is_staged() {
    let [f16, bf16, f32, s8, u8] = [DType::F16, DType::BF16, DType::F32, DType::S8, DType::U8];
    for (kernel, types, sum, raw) in [
        (MATRIX, [f16, f16, f16], "float", ["1", "1"]),
        (MATRIX, [f16, f16, f32], "float", ["1", "1"]),
        (MATRIX, [f32, f16, f16], "float", ["0", "1"]),
        (MATRIX, [bf16, f32, f16], "float", ["0", "0"]),
        (MATRIX_BF16, [bf16, bf16, f32], "float", ["1", "1"]),
        (MATRIX_BF16, [f32, bf16, bf16], "float", ["0", "1"]),
        (MATRIX, [s8, s8, DType::S32], "int", ["1", "1"]),
        (MATRIX, [s8, s8, s8], "int", ["1", "1"]),
        (MATRIX, [u8, u8, DType::U32], "uint", ["1", "1"]),
    ] {
        let plan = eager(kernel, intel(), [512, 768, 1024], types)
            .plan()
            .unwrap();
        assert_eq!(defined(&plan, 0, "SUM"), sum, "{types:?}");
        assert_eq!(
            ["A_RAW", "B_RAW"].map(|name| defined(&plan, 0, name)),
            raw,
            "{types:?}"
        );
        // Fragments of 8 x 32 bytes cannot begin at 16 bytes along m, so that A would lie along k there.
        assert_eq!(
            ["A_ALONG_K", "B_ALONG_K"].map(|name| defined(&plan, 0, name)),
            ["1", "0"]
        );
        assert_eq!(
            ["A_WIDE", "B_WIDE"].map(|name| defined(&plan, 0, name)),
            ["1", "1"]
        );
        check(
            &plan,
            &intel(),
            types[2].size().min(types[0].size()).min(2) as u32,
        );
    }
    let layouts = |device, dtype| {
        let a = Side::new(&[512, 1024], &[], &[1])
            .of(dtype)
            .strided(&[1, 512], 0);
        let b = Side::new(&[1024, 512], &[], &[0])
            .of(dtype)
            .strided(&[1, 1024], 0);
        let mut ask = ask(MATRIX, device, &a, &b);
        (ask.outputs[0].dtype, ask.pack) = (if dtype == s8 { DType::S32 } else { dtype }, EAGER);
        let plan = ask.plan().unwrap();
        let names = ["A_ALONG_K", "B_ALONG_K", "A_WIDE", "B_WIDE"];
        names.map(|name| defined(&plan, 0, name).to_owned())
    };
    assert_eq!(layouts(intel(), f16), ["0", "1", "1", "1"]);
    assert_eq!(layouts(h200(), s8), ["0", "1", "1", "1"]);
    // Transposed as it is loaded, an element at a time.
    assert_eq!(layouts(intel(), s8), ["1", "1", "0", "1"]);
    let odd = Side::new(&[512, 1024], &[], &[1]).of(f16).aside();
    let b = Side::new(&[1024, 512], &[], &[0]).of(f16);
    let mut unaligned = ask(MATRIX, amd(), &odd, &b);
    unaligned.pack = EAGER;
    let plan = unaligned.plan().unwrap();
    assert_eq!(
        ["A_WIDE", "B_WIDE"].map(|name| defined(&plan, 0, name)),
        ["0", "1"]
    );
    assert_eq!(words(&plan, 0)[4..8], [4, 0, 1024, 1]);
}

#[test]
fn little_shared_memory_has_a_smaller_tile_or_none() {
    for device in [amd(), intel()] {
        let small = DeviceInfo {
            shared_bytes: 16 << 10,
            ..device
        };
        let plan = eager(MATRIX, small, [4096; 3], F16).plan().unwrap();
        assert_eq!(numbers(&plan, ["BM", "BN"]), [32, 64]);
        let shared = check(&plan, &small, 2);
        let reason = |device| eager(MATRIX, device, [4096; 3], F16).reason();
        let less = reason(DeviceInfo {
            shared_bytes: shared - 1,
            ..small
        });
        let told = format!("its least tile takes {shared} bytes of shared memory");
        assert!(less.contains(&told), "{less}");
        let few = reason(DeviceInfo {
            max_invocations: 32,
            ..small
        });
        assert!(few.contains("and 32"), "{few}");
    }
}

#[test]
fn parts_are_whole_steps_and_are_added_up() {
    let plan = eager(MATRIX, amd(), [256, 256, 50_001], F16)
        .plan()
        .unwrap();
    assert_eq!(files(&plan), ["matrix.comp", "splits.comp"]);
    let [k, chunk] = [2, 12].map(|at| words(&plan, 0)[at]);
    assert_eq!((k, chunk % 32), (50_001, 0));
    let splits = u64::from(k.div_ceil(chunk));
    assert!(splits > 1);
    assert_eq!(plan.scratch.as_slice(), [splits * 256 * 256 * 4]);
    assert_eq!(defined(&plan, 0, "T_IS_F32"), "1");
    let bias = Tensor::new(DType::F32, &[256]);
    let mut finished = eager(MATRIX, amd(), [256, 256, 50_001], F16).text("epilogue", "add(x, i2)");
    finished.inputs.push(bias.clone());
    let plan = finished.plan().unwrap();
    assert_eq!(
        [0, 1].map(|step| defined(&plan, step, "EPILOGUE")),
        ["", "1"]
    );
    let mut whole = eager(MATRIX, amd(), [4096; 3], F16).text("epilogue", "add(x, i2)");
    whole.inputs.push(Tensor::new(DType::F32, &[4096]));
    let plan = whole.plan().unwrap();
    assert_eq!((plan.steps.len(), defined(&plan, 0, "EPILOGUE")), (1, "1"));
    assert_eq!(words(&plan, 0)[16..], [0, 0, 0, 1]);
}

#[test]
fn blocks_cover_ragged_edges_and_batches() {
    let a = Side::new(&[6, 130, 77], &[0], &[2]).of(DType::F16);
    let b = Side::new(&[6, 77, 257], &[0], &[1]).of(DType::F16);
    let mut ask = ask(MATRIX, amd(), &a, &b);
    ask.pack = EAGER;
    let plan = ask.plan().unwrap();
    let words = words(&plan, 0);
    let [bm, bn] = numbers(&plan, ["BM", "BN"]);
    let [m, n, k, batches] = std::array::from_fn(|i| words[i]);
    assert_eq!([m, n, k, batches], [130, 257, 77, 6]);
    let splits = k.div_ceil(words[12]);
    assert_eq!(words[13..15], [m.div_ceil(bm), n.div_ceil(bn)]);
    assert_eq!(words[15], words[13] * words[14] * batches * splits);
    let groups = plan.steps[0].groups;
    assert!(groups[0] * groups[1] >= words[15]);
    assert_eq!(defined(&plan, 0, "C_WIDE"), "0");
}

#[test]
fn what_is_declined() {
    let reason = |device, size, types| eager(MATRIX, device, size, types).reason();
    let bf16 = eager(MATRIX_BF16, amd(), [4096; 3], [DType::BF16; 3]).reason();
    assert!(
        bf16.contains("the driver lists no product of bf16 and bf16"),
        "{bf16}"
    );
    let s8 = reason(amd(), [4096; 3], [DType::S8, DType::S8, DType::S32]);
    assert!(
        s8.contains("lists no product of s8 and s8 of a subgroup with sums of s32"),
        "{s8}"
    );
    let other = reason(amd(), [4096; 3], [DType::F32; 3]);
    assert!(other.contains("matrix units do not take"), "{other}");
    let small = matrices(MATRIX, amd(), [64; 3], DType::F16).reason();
    assert!(small.contains("too few"), "{small}");
    let types = [DType::F16, DType::F16, DType::F32];
    let slow = Ask {
        pack: PACK,
        ..eager(MATRIX, amd(), [130; 3], types)
    };
    let slow = slow.reason();
    assert!(slow.contains("the general ones"), "{slow}");
    // Where `cores` is asked before, it has to be twice as fast.
    let known = DeviceInfo {
        features: gpu().features,
        ..amd()
    };
    let at = |device| matrices(MATRIX, device, [256, 256, 512], DType::F16);
    assert!(at(amd()).plan().is_ok());
    assert!(at(known).reason().contains("the general ones"));
    let odd = device([32; 3], &[([12, 12, 12], DType::F16, DType::F32)]);
    let odd = reason(odd, [4096; 3], F16);
    assert!(odd.contains("no tile is made of the products"), "{odd}");
    let one = DeviceInfo {
        subgroup_size: 4,
        ..amd()
    };
    assert!(reason(one, [4096; 3], F16).contains("subgroups have 4"));
    let lacking = without(amd(), Features::MEMORY_MODEL);
    assert!(reason(lacking, [4096; 3], F16).contains("lacks memory_model"));
}

#[test]
fn a_driver_that_takes_no_wish_is_given_none() {
    let fixed = without(amd(), Features::SUBGROUP_SIZE_CONTROL);
    let plan = eager(MATRIX, fixed, [4096; 3], F16).plan().unwrap();
    assert_eq!(plan.shaders[0].subgroup_size, 0);
    assert_eq!(defined(&plan, 0, "LANES"), "64");
}
