//! Products with few rows or columns.

use super::ask::{Side, ask, matrices};
use nx_vulkan_abi::DType;
use nx_vulkan_pack_kit::testing::{cpu, defined, files, gpu, words};

const SKINNY: &str = "dot_skinny";

#[test]
fn small_sides_are_skinny_whichever_they_are() {
    for (size, columns) in [
        ([4096, 1, 4096], "1"),
        ([1, 4096, 4096], "1"),
        ([5, 3000, 999], "5"),
    ] {
        let plan = matrices(SKINNY, gpu(), size, DType::F32).plan().unwrap();
        assert_eq!(defined(&plan, 0, "COLUMNS"), columns);
        let m = size[0].max(size[1]) as u32;
        assert_eq!(words(&plan, 0)[0], m);
        let c_strides = if size[0] > size[1] {
            [size[1] as u32, 1]
        } else {
            [1, m]
        };
        assert_eq!(words(&plan, 0)[12..14], c_strides);
    }
    let inner = matrices(SKINNY, gpu(), [1, 1, 1 << 24], DType::F32)
        .plan()
        .unwrap();
    assert_eq!(files(&inner), ["skinny.comp", "splits.comp"]);
    for size in [[9, 9, 63], [1000, 33, 64], [300, 9, 2048]] {
        let declined = matrices(SKINNY, gpu(), size, DType::F32).reason();
        assert!(declined.contains("more than 8"), "{size:?}: {declined}");
    }
    let lone = matrices(SKINNY, gpu(), [2, 2, 395], DType::F32);
    assert_eq!(files(&lone.plan().unwrap()), ["skinny.comp"]);
    assert!(
        matrices(SKINNY, gpu(), [1, 9, 9], DType::F32)
            .reason()
            .contains("too little")
    );
}

/// Small products with more columns than an invocation has sums of are shared out by columns, too.
#[test]
fn small_products_are_blocks_of_few_columns() {
    for (size, columns, blocks) in [
        ([42, 13, 130], "7", 2),
        ([80, 15, 1136], "8", 2),
        ([9, 9, 4096], "5", 2),
        ([128, 128, 128], "8", 16),
    ] {
        let plan = matrices(SKINNY, gpu(), size, DType::F16).plan().unwrap();
        assert_eq!(defined(&plan, 0, "COLUMNS"), columns, "{size:?}");
        assert_eq!(words(&plan, 0)[15], blocks, "{size:?}");
    }
    assert_eq!(
        files(
            &matrices(SKINNY, gpu(), [691, 12, 128], DType::F16)
                .plan()
                .unwrap()
        ),
        ["skinny.comp"]
    );
    assert!(
        matrices(SKINNY, gpu(), [691, 12, 80], DType::F16)
            .reason()
            .contains("more than 8")
    );
    let on_a_cpu = matrices(SKINNY, cpu(), [42, 13, 130], DType::F16);
    assert!(on_a_cpu.reason().contains("more than 8"));
}

#[test]
fn skinny_products_load_the_most_that_is_whole_and_aligned() {
    for (dtype, n, words, elements) in [
        (DType::F32, 4096, "4", "4"),
        (DType::BF16, 4096, "4", "8"),
        (DType::S8, 4096, "4", "16"),
        (DType::F64, 4096, "4", "2"),
        (DType::BF16, 4092, "2", "4"),
        (DType::BF16, 4094, "1", "2"),
        (DType::BF16, 4095, "0", "1"),
        (DType::S8, 4094, "0", "1"),
    ] {
        let plan = matrices(SKINNY, gpu(), [1, n, 4096], dtype).plan().unwrap();
        let load = ["A_WORDS", "A_ELEMENTS"].map(|name| defined(&plan, 0, name));
        assert_eq!(load, [words, elements], "{dtype} {n}");
    }
}

#[test]
fn more_rows_than_the_largest_power_of_two_are_no_surprise() {
    // Rows that overlap, the same ones in every batch.
    let a = Side::new(&[3, 1 << 30, 32], &[0], &[2]).of(DType::U8);
    let a = a.strided(&[0, 1, 2], 0);
    let b = Side::new(&[3, 32, 1], &[0], &[1]).of(DType::U8);
    let plan = ask(SKINNY, gpu(), &a, &b).plan().unwrap();
    assert_eq!(files(&plan), ["skinny.comp"]);
    assert_eq!(defined(&plan, 0, "A_ALONG_K"), "0");
}

/// What lanes that share k would load far from each other is copied first, where enough rows share the copy.
#[test]
fn columns_that_do_not_lie_along_k_are_copied() {
    let of = |n: u64, b: &Side| {
        let a = Side::new(&[4096, 4096], &[], &[1]);
        let plan = ask(SKINNY, gpu(), &a, b).plan().unwrap();
        let file = plan.steps.len() - 1;
        assert_eq!(defined(&plan, file, "B_ALONG_K") == "1", n != 2, "{n}");
        files(&plan).join(" ")
    };
    let across = |n| Side::new(&[4096, n], &[], &[0]);
    assert_eq!(of(8, &across(8)), "gather.comp skinny.comp");
    assert_eq!(of(2, &across(2)), "skinny.comp");
    assert_eq!(of(8, &Side::new(&[8, 4096], &[], &[1])), "skinny.comp");
}

/// Batches keep a device busy as rows do: what shares a short k besides adds up more sums than it multiplies.
#[test]
fn many_batches_share_k_among_few() {
    let along = |(batches, k)| {
        let a = Side::new(&[batches, 2268, k], &[0], &[2]).of(DType::F16);
        let b = Side::new(&[batches, k, 7], &[0], &[1]).of(DType::F16);
        let plan = ask(SKINNY, gpu(), &a, &b).plan().unwrap();
        let along = defined(&plan, plan.steps.len() - 1, "ALONG");
        along.parse::<u32>().unwrap()
    };
    assert_eq!([(1, 266), (21, 266), (21, 4096)].map(along), [128, 8, 32]);
}

/// Sums of many short rows would take longer to meet than their loads.
#[test]
fn rows_are_shared_among_fewer_where_there_are_many() {
    let along = |(size, dtype)| {
        let plan = matrices(SKINNY, gpu(), size, dtype).plan().unwrap();
        defined(&plan, 0, "ALONG").parse::<u32>().unwrap()
    };
    let asked = [
        ([20_000, 6, 69], DType::F32),
        ([1_024, 1, 1_024], DType::F32),
        ([2_000, 5, 300], DType::F64),
        ([700, 2, 900], DType::F64),
    ];
    assert_eq!(asked.map(along), [8, 256, 64, 256]);
}

/// Rows that are loaded one by one are spread over a device that has too few, unless parts of the contracted axis are.
#[test]
fn few_rows_are_spread_one_by_one() {
    let own = |device, [m, n, k]: [u64; 3]| {
        let plan = matrices(SKINNY, device, [m, n, k], DType::F32);
        defined(&plan.plan().unwrap(), 0, "OWN_M").to_owned()
    };
    assert_eq!(own(gpu(), [4, 99, 2_006]), "1");
    assert_eq!(own(gpu(), [3, 777, 5_000]), "1");
    assert_eq!(own(gpu(), [2, 31, 100_000]), "4");
    assert_eq!(own(gpu(), [1, 39, 15_039]), "4");
    assert_eq!(own(gpu(), [4, 20_001, 2_006]), "4");
    assert_eq!(own(cpu(), [4, 99, 2_006]), "4");
}
