//! Which tile a product through shared memory takes.

use super::*;

/// The m and n of the tile of a product of f32.
fn tile(m: u64, n: u64, k: u64) -> [String; 2] {
    tile_of(DType::F32, [m, n, k])
}

fn tile_of(dtype: DType, size: [u64; 3]) -> [String; 2] {
    let plan = matrices(TILED, gpu(), size, dtype).plan().unwrap();
    ["BLOCK_M", "BLOCK_N"].map(|name| defined(&plan, 0, name).to_owned())
}

#[test]
fn few_columns_are_not_padded_to_many() {
    assert_eq!(tile(4479, 28, 5699), ["128", "32"]);
    assert_eq!(tile(4479, 12, 5699), ["128", "16"]);
}

#[test]
fn an_operand_without_packs_has_no_tile_whose_registers_spill() {
    assert_ne!(tile(2175, 96, 6246), ["128", "128"]);
    assert_ne!(tile(4384, 118, 2974), ["128", "128"]);
    assert_eq!(tile(8192, 8192, 8192), ["128", "256"]);
}

#[test]
fn a_short_contracted_axis_takes_many_small_workgroups() {
    assert_eq!(tile(1146, 1952, 68), ["64", "64"]);
    assert_eq!(tile(2366, 22, 51), ["32", "32"]);
}

/// On an H200 with driver 580.159.04 2500 x 7288 x 8 took 29 us in tiles and 34 straight from memory, 2501 x 7287 x 12 48 and 42.
#[test]
fn tiles_of_a_very_short_contracted_axis_are_of_packs_alone() {
    let reason = |size| matrices(TILED, gpu(), size, DType::F32).reason();
    assert_eq!(tile(2500, 7288, 8), ["128", "128"]);
    for size in [[2500, 7288, 7], [2500, 7287, 12], [700, 900, 8]] {
        assert!(reason(size).contains("smaller than a tile"), "{size:?}");
    }
}

/// On an H200 1024 x 1024 x 1024 took 107 us in two parts of large tiles and 113 in whole small ones.
#[test]
fn parts_of_large_tiles_of_f64_are_taken_before_whole_small_ones() {
    assert_eq!(tile_of(DType::F64, [1024; 3]), ["128", "128"]);
    assert_eq!(tile_of(DType::F64, [4096; 3]), ["128", "128"]);
    assert_eq!(tile_of(DType::F64, [512; 3]), ["64", "64"]);
}

/// On an H200 with driver 580.159.04 256 x 512 x 512 took 12.0 us in parts that another dispatch sums up, 9.2 in slices; 392 x 768 x 768
/// took 21 and 27.
#[test]
fn slices_share_k_where_tiles_are_few() {
    let slices = |m, k, n| {
        let plan = matrices(TILED, gpu(), [m, n, k], DType::F32)
            .plan()
            .unwrap();
        let slices = defined(&plan, 0, "SLICES").to_owned();
        assert!(slices == "1" || plan.steps.len() == 1, "{m} x {k} x {n}");
        slices
    };
    for [m, k, n] in [
        [256, 256, 256],
        [512, 512, 512],
        [128, 512, 512],
        [256, 512, 512],
        [64, 512, 2048],
    ] {
        assert_eq!(slices(m, k, n), "8", "{m} x {k} x {n}");
    }
    for [m, k, n] in [
        [1024, 1024, 1024],
        [392, 768, 768],
        [384, 1024, 768],
        [128, 2048, 512],
        [128, 60, 128],
    ] {
        assert_eq!(slices(m, k, n), "1", "{m} x {k} x {n}");
    }
    let small = DeviceInfo {
        shared_bytes: 32 << 10,
        ..gpu()
    };
    let steps = |device, size| {
        let plan = matrices(TILED, device, size, DType::F32).plan().unwrap();
        defined(&plan, 0, "BLOCK_K").to_owned()
    };
    for size in [[128, 128, 128], [256, 256, 256], [512, 512, 512]] {
        assert_eq!(steps(gpu(), size), "8", "{size:?}");
    }
    assert_eq!(steps(small, [256, 256, 256]), "4");
}

#[test]
fn a_device_that_others_wait_for_gets_long_products_in_turns() {
    let integrated = DeviceInfo {
        kind: DeviceKind::INTEGRATED,
        compute_units: 8,
        ..gpu()
    };
    let plan = |device, size, dtype| matrices(TILED, device, size, dtype).plan().unwrap();
    let turns = plan(integrated, [8192; 3], DType::F32);
    assert_eq!(turns.steps.len(), 16);
    let mut done = 0;
    for at in 0..16 {
        let words = words(&turns, at);
        let [columns, rows, _] = turns.steps[at].groups;
        // Those of its jobs that earlier dispatches have not done.
        assert_eq!(words[18], done);
        done = words[16];
        assert!(columns * rows >= done - words[18], "{words:?}");
    }
    assert_eq!(done, 8192 / 128 * (8192 / 256));
    let one = plan(integrated, [3000; 3], DType::F32);
    // Push constants are few, and an epilogue has what is left of them.
    assert_eq!((one.steps.len(), words(&one, 0).len()), (1, 18));
    assert_eq!(plan(gpu(), [4096; 3], DType::F64).steps.len(), 1);
    assert_eq!(plan(gpu(), [8192; 3], DType::F64).steps.len(), 8);
}
