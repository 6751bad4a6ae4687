//! Products on matrix units whose operands are read where they lie.

use super::{
    ask::{Side, ask, matrices},
    cores::{CORES, CORES_BF16, EAGER, h200},
};
use nx_vulkan_abi::{DType, DeviceInfo, Slot};
use nx_vulkan_pack_kit::testing::{Tensor, defined, files, words};

#[test]
fn aligned_operands_are_read_where_they_lie_while_packing_costs_more() {
    let a = Side::new(&[512, 1024], &[], &[1]).of(DType::BF16);
    let b = Side::new(&[1024, 768], &[], &[0]).of(DType::BF16);
    let (at, bt) = (
        a.clone().strided(&[1, 512], 0),
        b.clone().strided(&[1, 1024], 0),
    );
    let plan = |a: &Side, b: &Side| {
        let mut ask = ask(CORES_BF16, h200(), a, b);
        ask.pack = EAGER;
        ask.plan().unwrap()
    };
    for (a, b, along_k) in [
        (&a, &b, [true, false]),
        (&a, &bt, [true, true]),
        (&at, &b, [false, false]),
        (&at, &bt, [false, true]),
    ] {
        let plan = plan(a, b);
        assert_eq!(files(&plan)[0], "cores_direct.comp");
        assert_eq!([0, 1].map(|arg| plan.steps[0].args[arg].index), [0, 1]);
        let number = |flag: bool| if flag { "1" } else { "0" };
        let names = ["A_PACKED", "A_ALONG_K", "B_ALONG_K", "TAIL"];
        let defined = names.map(|name| defined(&plan, 0, name));
        let [a_along_k, b_along_k] = along_k.map(number);
        assert_eq!(defined, ["0", a_along_k, b_along_k, "0"]);
        // In units of 8 elements: offset, batches, and rows or columns, or k.
        let step = |along_k, free: u32| if along_k { 1024 / 8 } else { free / 8 };
        let [a_step, b_step] = [step(along_k[0], 512), step(along_k[1], 768)];
        assert_eq!(words(&plan, 0)[10..], [0, 0, a_step, 0, 0, b_step]);
        assert_eq!(plan.derived().count(), 0);
    }
    let large = matrices(CORES_BF16, h200(), [8192; 3], DType::BF16);
    assert_eq!(files(&large.plan().unwrap())[2], "cores.comp");

    // Loads of 8 elements that would cross a row or begin between two.
    let odd = |extents: [u64; 2], contract, strides: [i64; 2], offset| {
        let side = Side::new(&extents, &[], &[contract]).of(DType::BF16);
        side.strided(&strides, offset).within(1 << 22)
    };
    for (a, b) in [
        (odd([508, 1024], 1, [1, 512], 0), b.clone()),
        (odd([512, 1024], 1, [1028, 1], 0), b.clone()),
        (odd([512, 1024], 1, [1024, 1], 4), b.clone()),
        (a.clone(), odd([1024, 768], 0, [770, 1], 0)),
        (a.clone(), odd([1024, 764], 0, [768, 1], 0)),
        (
            odd([512, 1012], 1, [1016, 1], 0),
            odd([1012, 768], 0, [768, 1], 0),
        ),
    ] {
        let plan = plan(&a, &b);
        let product = plan
            .steps
            .iter()
            .position(|step| step.args.len() == 3)
            .unwrap();
        let read = [0, 1].map(|arg| plan.steps[product].args[arg].slot);
        assert_ne!(read[0], Slot::INPUT, "{a:?} {b:?}");
    }
    // Ends along k are read as zeros, whole loads of them where these are along k.
    for (k, a) in [
        (1008, odd([512, 1008], 1, [1008, 1], 0)),
        (483, odd([512, 483], 1, [1, 512], 0)),
    ] {
        let plan = plan(&a, &odd([k, 768], 0, [768, 1], 0));
        assert_eq!(files(&plan)[0], "cores_direct.comp");
        assert_eq!(defined(&plan, 0, "TAIL"), "1");
        assert_eq!(words(&plan, 0)[5], k as u32);
    }
    // Rows that are loaded with their neighbours are of whole loads.
    let tiles = |size: [u64; 3]| {
        let a = Side::new(&[size[0], size[2]], &[], &[1]).strided(&[1, size[0] as i64], 0);
        let b = Side::new(&[size[2], size[1]], &[], &[0]);
        let plan = plan(&a.of(DType::BF16), &b.of(DType::BF16));
        assert_eq!(files(&plan)[0], "cores_direct.comp", "{size:?}");
        defined(&plan, 0, "WARP_M").to_owned()
    };
    for size in [[16, 4096, 4096], [96, 768, 768], [848, 304, 512], [1024; 3]] {
        let rows = tiles(size);
        assert!(["16", "32", "64"].contains(&&*rows), "{size:?}: {rows}");
    }
    // Rows that lie backwards are as aligned as others.
    let back = a.strided(&[-1024, 1], 511 * 1024);
    let words = words(&plan(&back, &b), 0);
    assert_eq!(words[10..13], [511 * 128, 0, 128u32.wrapping_neg()]);
}

#[test]
fn subgroups_share_a_tile_where_few_have_one() {
    let of = |device, size| matrices(CORES_BF16, device, size, DType::BF16);
    for size in [[128, 768, 768], [4, 8192, 2048], [64, 2048, 2048]] {
        let plan = of(h200(), size).plan().unwrap();
        assert_eq!(files(&plan)[0], "cores_direct.comp");
        let [rows, parts] = ["WARP_M", "PARTS"].map(|name| defined(&plan, 0, name).parse::<u64>());
        let (rows, parts) = (rows.unwrap(), parts.unwrap());
        assert!(parts >= 4 && plan.derived().count() == 0, "{size:?}");
        let tiles = size[0].div_ceil(rows) * size[1].div_ceil(64);
        let groups: u64 = plan.steps[0].groups.map(u64::from).iter().product();
        assert_eq!(groups % tiles, 0, "a workgroup has one tile of a split");
        // 16 rows of 17 vectors of each pass through shared memory.
        let device = DeviceInfo {
            shared_bytes: parts as u32 * 16 * 17 * 16 - 1,
            ..h200()
        };
        let others = of(device, size).plan();
        let others = others.map_or(0, |plan| defined(&plan, 0, "PARTS").parse().unwrap_or(1));
        assert!(others < parts, "{size:?} {others}");
    }
    let large = of(h200(), [2048; 3]).plan().unwrap();
    assert_eq!(defined(&large, large.steps.len() - 1, "PARTS"), "1");
    assert!(of(h200(), [3, 8192, 2048]).reason().contains("too few"));
}

/// On an H200 with driver 580.159.04 128 x 2229 x 1936 took 13 us where eight subgroups shared a tile and 20 in eight parts, and
/// 547 x 7544 x 336 27 us packed and 35 in place.
#[test]
fn parts_along_k_read_in_place_have_to_be_much_faster() {
    let of = |[m, k, n]: [u64; 3], a_strides: [i64; 2]| {
        let a = Side::new(&[m, k], &[], &[1]).strided(&a_strides, 0);
        let b = Side::new(&[k, n], &[], &[0]);
        let ask = ask(CORES_BF16, h200(), &a.of(DType::BF16), &b.of(DType::BF16));
        ask.plan().unwrap()
    };
    let plan = of([128, 2229, 1936], [1, 128]);
    assert_eq!(files(&plan), ["cores_direct.comp"]);
    assert_eq!(defined(&plan, 0, "PARTS"), "8");
    let plan = of([547, 7544, 336], [7544, 1]);
    assert!(files(&plan).contains(&"cores.comp"));
}

#[test]
fn what_lasts_is_packed_once_and_the_other_operand_is_read_where_it_lies() {
    let lasting = |[m, n, k]: [u64; 3]| {
        matrices(CORES_BF16, h200(), [m, n, k], DType::BF16).ints("lasting", &[1])
    };
    for (size, rows, parts) in [
        ([128, 768, 768], "16", "8"),
        ([1024, 768, 768], "48", "4"),
        ([512, 2048, 2048], "64", "4"),
    ] {
        let plan = lasting(size).plan().unwrap();
        assert_eq!(files(&plan), ["cores_pack.comp", "cores_direct.comp"]);
        assert_eq!(plan.steps[0].args[0].index, 1);
        let names = ["A_PACKED", "B_PACKED", "WARP_M", "PARTS"];
        let defined = names.map(|name| defined(&plan, 1, name));
        assert_eq!(defined, ["0", "1", rows, parts]);
        // A in units of 8 elements: offset, batches, rows.
        assert_eq!(words(&plan, 1)[10..13], [0, 0, size[2] as u32 / 8]);
        // Where it is kept nothing is left to do first.
        assert_eq!(plan.derived().count(), 1);
        let once = matrices(CORES_BF16, h200(), size, DType::BF16);
        assert_eq!(files(&once.plan().unwrap()), ["cores_direct.comp"]);
    }
    // The same form of B for any number of rows, and where both are packed.
    let pack = |size| {
        let plan = lasting(size).plan().unwrap();
        let step = plan.steps.iter().find(|step| step.args[0].index == 1);
        let step = step.unwrap();
        (
            plan.shaders[step.shader as usize].clone(),
            step.push.clone(),
        )
    };
    assert_eq!(files(&lasting([4096, 2048, 2048]).plan().unwrap()).len(), 3);
    assert_eq!(pack([512, 2048, 2048]), pack([4096, 2048, 2048]));
    assert_eq!(pack([512, 2048, 2048]), pack([20, 2048, 2048]));

    // A that has to be packed is.
    let a = Side::new(&[512, 2048], &[], &[1]).of(DType::BF16).aside();
    let b = Side::new(&[2048, 2048], &[], &[0]).of(DType::BF16);
    let ask = ask(CORES_BF16, h200(), &a, &b).ints("lasting", &[1]);
    assert_eq!(ask.plan().unwrap().steps[0].args[0].index, 0);
}

#[test]
fn an_epilogue_of_four_operands_fits_beside_operands_in_place() {
    for (kernel, dtype) in [(CORES, DType::F16), (CORES_BF16, DType::BF16)] {
        let mut ask = matrices(kernel, h200(), [512; 3], dtype);
        let further = Tensor::new(dtype, &[512, 512]);
        ask.inputs.extend(vec![further; 4]);
        let text = "add(x, i2); add(%0, i3); add(%1, i4); add(%2, i5)";
        let plan = ask.text("epilogue", text).plan().unwrap();
        assert_eq!(files(&plan), ["cores_direct.comp"]);
        assert_eq!(words(&plan, 0).len(), 32);
    }
}

/// On an H200 with driver 580.159.04, see `cost`.
#[test]
fn subgroups_own_fewer_rows_where_units_have_as_many_jobs() {
    for ([m, k, n], expected) in [
        ([1024, 768, 768], "48"),
        ([1024, 3072, 768], "48"),
        ([512, 768, 768], "48"),
        ([512, 2048, 2048], "64"),
        ([32, 4096, 4096], "32"),
    ] {
        let plan = matrices(CORES_BF16, h200(), [m, n, k], DType::BF16).plan();
        let plan = plan.expect("matrix units take it");
        assert_eq!(files(&plan), ["cores_direct.comp"], "{m} x {k} x {n}");
        assert_eq!(defined(&plan, 0, "WARP_M"), expected, "{m} x {k} x {n}");
    }
    // With weights that were packed before, too.
    for ([m, k, n], expected) in [
        ([1024, 768, 768], "48"),
        ([192, 768, 4096], "32"),
        ([33, 4096, 2048], "32"),
    ] {
        let ask = matrices(CORES_BF16, h200(), [m, n, k], DType::BF16).ints("lasting", &[1]);
        let plan = ask.plan().expect("matrix units take it");
        assert_eq!(defined(&plan, 1, "WARP_M"), expected, "{m} x {k} x {n}");
    }
}

#[test]
fn subgroups_that_share_stand_side_by_side_where_weights_are_packed() {
    for ([m, k, n], own) in [
        ([1500, 128, 131], ["48", "2", "2", "1"]),
        ([600, 256, 2500], ["64", "2", "2", "2"]),
        ([3136, 1536, 384], ["48", "2", "2", "1"]),
        ([4096, 384, 384], ["48", "2", "2", "1"]),
        ([2048, 1024, 1024], ["64", "2", "2", "2"]),
        ([1300, 3072, 1280], ["64", "2", "2", "2"]),
        // Others are as fast.
        ([1024, 768, 768], ["48", "4", "1", "1"]),
        ([1024, 3072, 768], ["48", "4", "1", "1"]),
        ([512, 768, 768], ["32", "4", "1", "1"]),
    ] {
        let lasting = matrices(CORES_BF16, h200(), [m, n, k], DType::BF16).ints("lasting", &[1]);
        let plan = lasting.plan().unwrap();
        assert_eq!(files(&plan), ["cores_pack.comp", "cores_direct.comp"]);
        let names = ["WARP_M", "PARTS", "WARPS_M", "WARPS_N"];
        assert_eq!(
            names.map(|name| defined(&plan, 1, name)),
            own,
            "{m} x {k} x {n}"
        );
        let [rows, _, high, wide] = own.map(|number| number.parse::<u64>().unwrap());
        let groups: u64 = plan.steps[1].groups.map(u64::from).iter().product();
        assert_eq!(groups, m.div_ceil(rows * high) * n.div_ceil(64 * wide));
    }
}
