//! `dot` on every type, layout and kernel, on a real device, against the host kernels.

mod bench;

use bench::{Axes, Bench, Layout, tolerance};
use nx_vulkan_abi::{DType, DTypeSet};

fn reals() -> impl Iterator<Item = DType> {
    DType::all().filter(|dtype| DTypeSet::REAL.has(*dtype))
}

fn plain() -> Axes {
    Axes {
        batch: 0,
        contract: [vec![1], vec![0]],
    }
}

/// A product of matrices with the given layouts.
fn check(bench: &Bench, [m, n, k]: [u64; 3], dtype: DType, layouts: [Layout; 2], server: &str) {
    let a = bench.operand(dtype, &[m, k], layouts[0], m * 7 + k);
    let b = bench.operand(dtype, &[k, n], layouts[1], n * 5 + k);
    bench.check(&a, &b, &plain(), dtype, server);
}

/// Every pair of layouts in which each layout is on each side.
fn layouts() -> impl Iterator<Item = [Layout; 2]> {
    let all = Layout::ALL;
    let straight = [Layout::Contiguous, Layout::Transposed];
    straight
        .into_iter()
        .flat_map(move |a| straight.map(|b| [a, b]))
        .chain((2..all.len()).map(move |i| [all[i], all[(i + 1) % all.len()]]))
}

#[test]
fn the_packs_own_order_on_every_type_and_layout() {
    let bench = Bench::open(&[]);
    for dtype in reals() {
        for layouts in layouts() {
            check(&bench, [33, 65, 70], dtype, layouts, "matmul/");
            check(&bench, [64, 32, 16], dtype, layouts, "matmul/");
        }
    }
}

#[test]
fn tiles_on_every_type_and_layout() {
    let bench = Bench::open(&["dot_tiled"]);
    for dtype in reals() {
        check(
            &bench,
            [68, 132, 52],
            dtype,
            [Layout::Contiguous; 2],
            "dot_tiled",
        );
        check(
            &bench,
            [67, 35, 45],
            dtype,
            [Layout::Transposed, Layout::Sliced],
            "dot_tiled",
        );
    }
    for dtype in [DType::F32, DType::F64] {
        for layouts in layouts() {
            for size in [
                [64, 128, 16],
                [132, 36, 60],
                [33, 100, 17],
                [40, 41, 16],
                [129, 127, 131],
            ] {
                check(&bench, size, dtype, layouts, "dot_tiled");
            }
        }
    }
}

#[test]
fn deep_tiles_are_split() {
    let bench = Bench::open(&["dot_tiled"]);
    for dtype in [DType::F32, DType::U8, DType::BF16, DType::S64] {
        check(
            &bench,
            [40, 36, 30_000],
            dtype,
            [Layout::Contiguous; 2],
            "dot_tiled",
        );
        check(
            &bench,
            [33, 37, 29_999],
            dtype,
            [Layout::Transposed, Layout::Transposed],
            "dot_tiled",
        );
    }
}

#[test]
fn skinny_products_on_every_type_and_layout() {
    let bench = Bench::open(&["dot_skinny"]);
    for dtype in reals() {
        for (size, layouts) in [
            ([1, 1, 20_000], [Layout::Contiguous; 2]),
            ([1, 1, 9_999], [Layout::Reversed, Layout::Sliced]),
            ([300, 1, 132], [Layout::Contiguous, Layout::Contiguous]),
            ([300, 2, 132], [Layout::Transposed, Layout::Contiguous]),
            ([3, 301, 133], [Layout::Contiguous, Layout::Transposed]),
            ([8, 40, 1_000], [Layout::Transposed, Layout::Contiguous]),
            ([5, 64, 64], [Layout::Broadcast, Layout::Reversed]),
        ] {
            check(&bench, size, dtype, layouts, "dot_skinny");
        }
    }
}

#[test]
fn the_last_resort_takes_any_size() {
    let bench = Bench::open(&["dot_direct"]);
    for dtype in [DType::F32, DType::S64, DType::F16] {
        for m in [0, 1, 3, 8, 17] {
            for n in [0, 1, 4, 5, 40] {
                for k in [0, 1, 4, 7, 600] {
                    let layout = Layout::ALL[(m + n + k) as usize % 2];
                    check(
                        &bench,
                        [m, n, k],
                        dtype,
                        [layout, Layout::Contiguous],
                        "dot_direct",
                    );
                }
            }
        }
    }
}

#[test]
fn batches_and_several_axes() {
    let own = Bench::open(&[]);
    let tiled = Bench::open(&["dot_tiled", "dot_direct"]);
    for bench in [&own, &tiled] {
        for (dtype, layout) in Layout::ALL
            .iter()
            .flat_map(|l| [(DType::F32, *l), (DType::U16, *l)])
        {
            for (a, b, axes) in [
                (
                    vec![3, 40, 20],
                    vec![3, 20, 33],
                    Axes {
                        batch: 1,
                        contract: [vec![2], vec![1]],
                    },
                ),
                (
                    vec![2, 3, 17, 5],
                    vec![2, 3, 9, 5],
                    Axes {
                        batch: 2,
                        contract: [vec![3], vec![3]],
                    },
                ),
                (
                    vec![6, 5, 7],
                    vec![7, 4, 6],
                    Axes {
                        batch: 0,
                        contract: [vec![0, 2], vec![2, 0]],
                    },
                ),
                (
                    vec![6, 40, 7],
                    vec![6, 7, 50],
                    Axes {
                        batch: 0,
                        contract: [vec![2, 0], vec![1, 0]],
                    },
                ),
                (
                    vec![4, 5],
                    vec![3, 2],
                    Axes {
                        batch: 0,
                        contract: [vec![], vec![]],
                    },
                ),
                (
                    vec![500, 4],
                    vec![500, 4],
                    Axes {
                        batch: 1,
                        contract: [vec![1], vec![1]],
                    },
                ),
                (
                    vec![],
                    vec![3],
                    Axes {
                        batch: 0,
                        contract: [vec![], vec![]],
                    },
                ),
                (
                    vec![2, 2, 2, 3, 2],
                    vec![3, 2, 2, 5],
                    Axes {
                        batch: 0,
                        contract: [vec![3, 1], vec![0, 2]],
                    },
                ),
            ] {
                let b_layout = if layout == Layout::Transposed {
                    Layout::Contiguous
                } else {
                    layout
                };
                let a = bench.operand(
                    dtype,
                    &a,
                    if a.is_empty() {
                        Layout::Contiguous
                    } else {
                        layout
                    },
                    3,
                );
                let b = bench.operand(dtype, &b, b_layout, 4);
                bench.check(&a, &b, &axes, dtype, "matmul/");
            }
        }
    }
}

#[test]
fn operands_of_other_types_are_cast_first() {
    let bench = Bench::open(&[]);
    for (a, b, result) in [
        (DType::U8, DType::F32, DType::F32),
        (DType::S32, DType::U8, DType::S64),
        (DType::F16, DType::BF16, DType::F32),
        (DType::F32, DType::F64, DType::F64),
    ] {
        let a = bench.operand(a, &[20, 30], Layout::Sliced, 1);
        let b = bench.operand(b, &[30, 10], Layout::Contiguous, 2);
        let depth = Axes {
            batch: 0,
            contract: [vec![1], vec![0]],
        };
        bench.check(&a, &b, &depth, result, "matmul/");
    }
}

#[test]
fn the_tolerance_can_fail() {
    assert!(tolerance(DType::F32, 1024, 100.0) < 1e-4);
    assert_eq!(tolerance(DType::S32, 1024, 100.0), 0.0);
}
