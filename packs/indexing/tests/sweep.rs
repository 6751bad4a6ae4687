//! Moves and updates of shapes at which this pack's ways differ, on a real device. What any pack is asked, `nxv check` asks.

use nx_vulkan_abi::DType;
use nx_vulkan_conformance::sweep::{Own, check};
use nx_vulkan_ops::{
    Attr,
    layout::Layout::{Contiguous, Reversed, Scalar, Transposed},
    op::Types,
    values::Values,
};

const DEALT: [(&str, &str); 2] = [
    ("indexed_add", "indexing/indexed_add_dealt"),
    ("indexed_put", "indexing/indexed_put_dealt"),
];

fn added(dtype: DType, shape: Vec<u64>, rows: u64, axes: &[i64]) -> Own {
    let part = shape[axes.len()..].to_vec();
    Own {
        op: "indexed_add",
        types: Types {
            inputs: vec![dtype, DType::S32, dtype],
            output: None,
        },
        operands: vec![
            (shape, Contiguous),
            (vec![rows, axes.len() as u64], Contiguous),
            ([vec![rows], part].concat(), Contiguous),
        ],
        attrs: vec![Attr::ints("axes", axes)],
        values: Values::Finite,
    }
}

/// The same of a tensor whose elements are all one, as gradients begin with.
fn of_one(own: &Own) -> Own {
    let mut own = own.clone();
    own.operands[0].1 = Scalar;
    own
}

const NUMBERS: [DType; 6] = [
    DType::S32,
    DType::U8,
    DType::F32,
    DType::BF16,
    DType::C64,
    DType::C128,
];

/// Indices along both axes are below 2, so that every update goes to one of four places.
#[test]
fn few_of_many_places_have_long_lists() {
    let mut all = Vec::new();
    for dtype in NUMBERS {
        for (rows, part) in [
            (9, 1),
            (120, 3),
            (520, 65),
            (550, 300),
            (2000, 4),
            (19_999, 1),
        ] {
            all.push(added(dtype, vec![2, 5000, part], rows, &[0, 1]));
        }
        all.push(added(dtype, vec![2, 20_000], 1500, &[0, 1]));
    }
    let of_one: Vec<Own> = all.iter().step_by(5).map(of_one).collect();
    all.extend(of_one);
    check_lists(all);
}

#[test]
fn places_have_few_updates_or_many() {
    let mut all = Vec::new();
    for dtype in NUMBERS {
        for (places, rows) in [(1, 3), (5, 5000), (16, 1024), (2000, 1), (2000, 1025)] {
            all.push(added(dtype, vec![places], rows, &[0]));
        }
        for rows in [700, 3000, 9000, 30_000] {
            all.push(added(dtype, vec![3001], rows, &[0]));
        }
        all.push(added(dtype, vec![3, 33], 2100, &[0]));
        all.push(added(dtype, vec![300, 2, 7], 900, &[0]));
        all.push(added(dtype, vec![2, 256], 1100, &[0]));
        // Wide places, in vectors and not, with lists of every length and with chunks.
        for (places, rows) in [(1400, 600), (90, 514), (40, 570), (50, 900)] {
            for part in [20, 33, 300, 1024] {
                all.push(added(dtype, vec![places, part], rows, &[0]));
            }
        }
    }
    // Several vectors of each invocation, of one element and of four.
    for dtype in [DType::F32, DType::BF16, DType::C64] {
        for part in [1001, 1000] {
            all.push(added(dtype, vec![4300, part], 600, &[0]));
        }
    }
    let of_one: Vec<Own> = all.iter().step_by(7).map(of_one).collect();
    all.extend(of_one);
    check_lists(all);
}

/// Places of several elements by the kernel that lists updates, also where those are few.
fn check_lists(all: Vec<Own>) {
    let is_wide = |own: &Own| own.operands[2].0.get(1).is_some_and(|part| *part > 1);
    let (wide, narrow): (Vec<Own>, Vec<Own>) = all.into_iter().partition(is_wide);
    check("indexing", Some("indexing/indexed_add"), wide);
    check("indexing", None, narrow);
}

#[test]
fn few_updates_are_looked_for_by_every_workgroup() {
    for (op, kernel) in [
        ("indexed_add", "indexing/indexed_add_few"),
        ("indexed_put", "indexing/indexed_put_few"),
    ] {
        let mut all = Vec::new();
        let moved = [DType::F8, DType::S64]
            .into_iter()
            .filter(|_| op == "indexed_put");
        for dtype in NUMBERS.into_iter().chain(moved) {
            for (shape, axes, rows) in [
                (vec![1], 1, 64),
                (vec![2000], 1, 1),
                (vec![3001], 1, 63),
                (vec![3, 7], 2, 40),
                (vec![5, 3], 1, 64),
                (vec![2, 5000, 1], 2, 40),
                (vec![2, 300, 65], 2, 400),
                (vec![5, 128], 1, 512),
                (vec![700, 64], 1, 61),
                (vec![90, 1001], 1, 33),
                (vec![3, 2048], 1, 5),
                (vec![300, 2, 2, 2], 1, 29),
                // Several vectors of each invocation.
                (vec![1100, 1000], 1, 200),
                (vec![300_000], 1, 64),
            ] {
                let axes: Vec<i64> = (0..axes).collect();
                all.push(Own {
                    op,
                    ..added(dtype, shape, rows, &axes)
                });
            }
        }
        let of_one: Vec<Own> = all.iter().step_by(3).map(of_one).collect();
        all.extend(of_one);
        let special = all.iter().filter(|_| op == "indexed_put").cloned();
        let special = Vec::from_iter(special.map(|own| Own {
            values: Values::Special,
            ..own
        }));
        check("indexing", Some(kernel), all.into_iter().chain(special));
    }
}

#[test]
fn updates_are_dealt_to_buckets() {
    let narrow = [DType::U8, DType::S16, DType::F16, DType::BF16];
    for (op, kernel) in DEALT {
        let mut all = Vec::new();
        let of_32_bits = [DType::F32, DType::S32, DType::U32].into_iter();
        for dtype in of_32_bits.chain(narrow.into_iter().filter(|_| op == "indexed_add")) {
            // More than others look for.
            for (places, rows) in [
                (515, 514),
                (563, 563),
                (2000, 513),
                (2001, 1025),
                (40_000, 9001),
            ] {
                all.push(added(dtype, vec![places], rows, &[0]));
            }
            // Many updates of a place, of one bucket and of a few.
            all.push(added(dtype, vec![2, 20_000], 15_001, &[0, 1]));
            all.push(added(dtype, vec![60, 1000], 40_000, &[0, 1]));
        }
        all.iter_mut().for_each(|own| own.op = op);
        let of_one: Vec<Own> = all.iter().step_by(3).map(of_one).collect();
        all.extend(of_one);
        let special = all.iter().filter(|_| op == "indexed_put").cloned();
        let special = Vec::from_iter(special.map(|own| Own {
            values: Values::Special,
            ..own
        }));
        check("indexing", Some(kernel), all.into_iter().chain(special));
    }
}

#[test]
fn padding_at_every_alignment() {
    let mut all = Vec::new();
    for dtype in [DType::U8, DType::BF16, DType::F32, DType::C64, DType::C128] {
        for (place, (shape, low, high, interior)) in [
            (vec![700], vec![3], vec![5], vec![0]),
            (vec![40, 33], vec![1, 1], vec![1, 1], vec![0, 0]),
            (vec![40, 64], vec![-3, 16], vec![2, -16], vec![0, 0]),
            (vec![17, 9], vec![0, 2], vec![1, -3], vec![2, 1]),
            (vec![3, 5, 7], vec![1, 0, -2], vec![0, 2, 4], vec![0, 1, 0]),
            (vec![2, 70, 4], vec![0, 1, 0], vec![0, 1, 0], vec![0, 0, 0]),
        ]
        .into_iter()
        .enumerate()
        {
            all.push(Own {
                op: "pad",
                types: Types {
                    inputs: vec![dtype, dtype],
                    output: None,
                },
                operands: vec![
                    (shape, [Contiguous, Transposed, Reversed][place % 3]),
                    (Vec::new(), Contiguous),
                ],
                attrs: vec![
                    Attr::ints("high", high),
                    Attr::ints("interior", interior),
                    Attr::ints("low", low),
                ],
                values: Values::Special,
            });
        }
    }
    check("indexing", None, all);
}

/// Parts of one width or of many, along every axis, in every layout, in one dispatch and in several.
#[test]
fn joins_of_many_parts() {
    let mut all = Vec::new();
    for dtype in NUMBERS {
        for widths in [
            vec![1000, 37, 999],
            vec![64; 8],
            vec![16, 0, 7, 512, 1, 1, 4, 90, 33],
            Vec::from_iter(1..=19),
            vec![70_000, 70_001],
        ] {
            for axis in 0..3 {
                let of = |width: u64| {
                    let mut shape = vec![3, 2, 5];
                    shape[axis] = width;
                    shape
                };
                let parts = widths.iter().zip(
                    [Contiguous, Transposed, Contiguous, Reversed]
                        .into_iter()
                        .cycle(),
                );
                all.push(Own {
                    op: "concatenate",
                    types: Types {
                        inputs: vec![dtype; widths.len()],
                        output: Some(dtype),
                    },
                    operands: parts.map(|(width, layout)| (of(*width), layout)).collect(),
                    attrs: vec![Attr::ints("axis", [axis as i64])],
                    values: Values::Finite,
                });
            }
        }
        for (parts, axis) in [(2, 2), (3, 0), (9, 1)] {
            all.push(Own {
                op: "stack",
                types: Types {
                    inputs: vec![dtype; parts],
                    output: Some(dtype),
                },
                operands: vec![(vec![100, 99], Contiguous); parts],
                attrs: vec![Attr::ints("axis", [axis])],
                values: Values::Finite,
            });
        }
    }
    check("indexing", None, all);
}
