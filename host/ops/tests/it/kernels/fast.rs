//! Kernels that sum in their own precision, against those that sum in f64, which have oracles of their own.

use nx_vulkan_abi::{DType, layout::contiguous_strides};
use nx_vulkan_ops::kernels::{Out, View, run, run_fast, writes_all};
use nx_vulkan_ops::{Attr, values::Rng};

fn numbers(count: usize, rng: &mut Rng) -> Vec<u8> {
    let one = |_| (rng.below(2001) as f32 - 1000.0) / 512.0;
    (0..count).map(one).flat_map(f32::to_ne_bytes).collect()
}

/// Shape, strides, offset and bytes of an operand.
type Operand<'a> = (&'a [u64], Vec<i64>, u64, &'a [u8]);

/// The largest difference relative to the largest result.
fn apart(op: &str, operands: [Operand<'_>; 2], shape: &[u64], attrs: &[Attr]) -> f32 {
    let [exact, fast] = &both(op, &operands, shape, attrs);
    let largest = exact.iter().fold(0.0f32, |largest, x| largest.max(x.abs()));
    assert!(exact.len() == fast.len() && largest > 0.0);
    let differences = exact.iter().zip(fast).map(|(x, y)| (x - y).abs());
    differences.fold(0.0, f32::max) / largest
}

/// What both kernels give.
fn both(op: &str, operands: &[Operand<'_>], shape: &[u64], attrs: &[Attr]) -> [Vec<f32>; 2] {
    let views: Vec<View> = operands
        .iter()
        .map(|(shape, strides, offset, bytes)| View {
            dtype: DType::F32,
            shape,
            strides,
            offset: *offset,
            bytes,
        })
        .collect();
    [run, run_fast].map(|kernel| {
        // All of it is to be written.
        assert!(writes_all(op));
        let mut bytes = vec![0xff; 4 * shape.iter().product::<u64>() as usize];
        let mut out = [Out {
            dtype: DType::F32,
            shape,
            bytes: &mut bytes,
        }];
        kernel(op, &views, &mut out, attrs).unwrap();
        let cells = bytes.as_chunks().0.iter();
        cells
            .map(|cell| f32::from_ne_bytes(*cell))
            .collect::<Vec<_>>()
    })
}

fn dot(batch: u64, contract: [i64; 2]) -> Vec<Attr> {
    let batches = Vec::from_iter(0..batch as i64);
    vec![
        Attr::ints("batch_a", batches.clone()),
        Attr::ints("batch_b", batches),
        Attr::ints("contract_a", [contract[0]]),
        Attr::ints("contract_b", [contract[1]]),
    ]
}

#[test]
fn products_in_place_agree_with_wide_ones() {
    let mut rng = Rng(1);
    for (m, k, n) in [
        (1, 1, 1),
        (3, 700, 5),
        (130, 65, 77),
        (1, 300, 40),
        (64, 64, 1),
    ] {
        let (a, b) = (
            numbers((m * k) as usize, &mut rng),
            numbers((k * n) as usize, &mut rng),
        );
        let rows = |shape: &[u64]| contiguous_strides(shape);
        // Rows by rows, and both operands transposed.
        let straight = [
            (&[m, k][..], rows(&[m, k]), 0, &a[..]),
            (&[k, n], rows(&[k, n]), 0, &b),
        ];
        assert!(apart("dot", straight, &[m, n], &dot(0, [1, 0])) < 1e-5);
        let turned = [
            (&[k, m][..], vec![1, k as i64], 0, &a[..]),
            (&[n, k], vec![1, n as i64], 0, &b),
        ];
        assert!(apart("dot", turned, &[m, n], &dot(0, [0, 1])) < 1e-5);
    }
}

#[test]
fn batches_offsets_and_repeated_elements_agree_too() {
    let mut rng = Rng(2);
    let (a, b) = (
        numbers(7 + 3 * 20 * 33, &mut rng),
        numbers(33 * 9, &mut rng),
    );
    let operands = [
        (&[3, 20, 33][..], vec![660, 33, 1], 7, &a[..]),
        (&[3, 33, 9], vec![0, 9, 1], 0, &b),
    ];
    assert!(apart("dot", operands, &[3, 20, 9], &dot(1, [2, 1])) < 1e-5);
    let reversed = [
        (&[20, 33][..], vec![33, -1], 32, &a[..]),
        (&[33, 9], vec![9, 1], 0, &b),
    ];
    assert!(apart("dot", reversed, &[20, 9], &dot(0, [1, 0])) < 1e-5);
}

#[test]
fn convolutions_agree_with_wide_ones() {
    let mut rng = Rng(3);
    let ints = |name, list: &[i64]| Attr::ints(name, list);
    for (stride, dilation, holes, padding) in [
        (1, 1, 1, 1),
        (2, 1, 1, 2),
        (1, 2, 1, 0),
        (3, 1, 2, 3),
        (2, 2, 1, -1),
    ] {
        let (x, kernel) = (
            numbers(2 * 3 * 13 * 17, &mut rng),
            numbers(5 * 3 * 3 * 2, &mut rng),
        );
        let extent = |n: i64, window: i64| {
            ((n - 1) * holes + 1 + 2 * padding - (window - 1) * dilation - 1) / stride + 1
        };
        let extents = [2, 5, extent(13, 3) as u64, extent(17, 2) as u64];
        let (same, last) = ([0, 1, 2, 3], [0, 3, 1, 2]);
        // Also with filters as the innermost axis of the kernel.
        for (order, filters) in [(same, same), (last, same), (last, [3, 2, 0, 1])] {
            let ordered = |extents: [u64; 4], order: [i64; 4]| {
                let mut shape = [0; 4];
                for (axis, extent) in order.iter().zip(extents) {
                    shape[*axis as usize] = extent;
                }
                shape
            };
            let attrs = [
                ints("strides", &[stride; 2]),
                ints("padding", &[padding; 4]),
                ints("input_dilation", &[holes; 2]),
                ints("kernel_dilation", &[dilation; 2]),
                ints("feature_group_size", &[1]),
                ints("batch_group_size", &[1]),
                ints("input_permutation", &order),
                ints("kernel_permutation", &filters),
                ints("output_permutation", &order),
            ];
            let (image, window) = (
                ordered([2, 3, 13, 17], order),
                ordered([5, 3, 3, 2], filters),
            );
            let operands = [
                (&image[..], contiguous_strides(&image), 0, &x[..]),
                (&window, contiguous_strides(&window), 0, &kernel),
            ];
            assert!(apart("conv", operands, &ordered(extents, order), &attrs) < 1e-5);
        }
    }
}

#[test]
fn convolutions_in_groups_and_other_orders_of_axes_agree_too() {
    let mut rng = Rng(4);
    let ints = |name, list: &[i64]| Attr::ints(name, list);
    let (first, last) = ([0, 1, 2, 3], [0, 3, 1, 2]);
    for (groups, batch_groups, own) in [(1, 1, 6), (3, 1, 2), (6, 1, 1), (1, 2, 6)] {
        for (order, ordered) in [
            (first, [2, 6, 19, 23]),
            (last, [2, 19, 23, 6]),
            ([0, 1, 3, 2], [2, 6, 23, 19]),
        ] {
            let x = numbers(2 * 6 * 19 * 23, &mut rng);
            let kernel = numbers(6 * own * 3 * 3, &mut rng);
            let mut shape = [0; 4];
            let extents = [2 / batch_groups as u64, 6, 10, 12];
            for (axis, extent) in order.iter().zip(extents) {
                shape[*axis as usize] = extent;
            }
            let attrs = [
                ints("strides", &[2; 2]),
                ints("padding", &[1; 4]),
                ints("input_dilation", &[1; 2]),
                ints("kernel_dilation", &[1; 2]),
                ints("feature_group_size", &[groups]),
                ints("batch_group_size", &[batch_groups]),
                ints("input_permutation", &order),
                ints("kernel_permutation", &first),
                ints("output_permutation", &order),
            ];
            let window = [6, own as u64, 3, 3];
            let operands = [
                (&ordered[..], contiguous_strides(&ordered), 0, &x[..]),
                (&window[..], contiguous_strides(&window), 0, &kernel),
            ];
            assert!(apart("conv", operands, &shape, &attrs) < 1e-5);
        }
    }
}

#[test]
fn deep_and_wide_convolutions_agree_too() {
    let mut rng = Rng(5);
    let ints = |name, list: &[i64]| Attr::ints(name, list);
    let (x, kernel) = (
        numbers(200 * 31 * 37, &mut rng),
        numbers(4 * 200 * 9, &mut rng),
    );
    let order = [0, 1, 2, 3];
    let attrs = [
        ints("strides", &[1; 2]),
        ints("padding", &[1; 4]),
        ints("input_dilation", &[1; 2]),
        ints("kernel_dilation", &[1; 2]),
        ints("feature_group_size", &[1]),
        ints("batch_group_size", &[1]),
        ints("input_permutation", &order),
        ints("kernel_permutation", &order),
        ints("output_permutation", &order),
    ];
    let operands = [
        (
            &[1, 200, 31, 37][..],
            contiguous_strides(&[1, 200, 31, 37]),
            0,
            &x[..],
        ),
        (
            &[4, 200, 3, 3],
            contiguous_strides(&[4, 200, 3, 3]),
            0,
            &kernel,
        ),
    ];
    assert!(apart("conv", operands, &[1, 4, 31, 37], &attrs) < 1e-5);
}

/// A block of other numbers, NaN, infinities, zeros of both signs and denormals among them.
fn special(count: usize, rng: &mut Rng) -> Vec<u8> {
    let list = [
        0.0,
        -0.0,
        1.0,
        f32::NAN,
        f32::INFINITY,
        f32::NEG_INFINITY,
        1e-40,
        f32::MIN_POSITIVE,
        f32::MAX,
    ];
    let one = |_| match rng.below(4) {
        0 => rng.pick(&list),
        _ => (rng.below(2001) as f32 - 1000.0) / 512.0,
    };
    (0..count).map(one).flat_map(f32::to_ne_bytes).collect()
}

#[test]
fn elements_are_found_in_every_layout() {
    let mut rng = Rng(6);
    let bytes = special(3 * 1500 * 2 + 5, &mut rng);
    let layouts: [(&[u64], Vec<i64>, u64); 6] = [
        (&[3, 1500], vec![1500, 1], 5),
        (&[3, 1500], vec![1, 3], 0),
        (&[3, 1500], vec![3000, 2], 1),
        (&[3, 1500], vec![1500, -1], 1499),
        (&[1500], vec![1], 2),
        (&[], vec![], 7),
    ];
    for (shape, strides, offset) in &layouts {
        let x = (*shape, strides.clone(), *offset, &bytes[..]);
        let [exact, fast] = both("negate", std::slice::from_ref(&x), shape, &[]);
        assert_eq!(bits(&exact), bits(&fast), "{shape:?} {strides:?}");
        for op in ["add", "subtract", "multiply", "divide"] {
            for (shape, strides, offset) in &layouts {
                let y = (*shape, strides.clone(), *offset, &bytes[..]);
                for operands in [[x.clone(), y.clone()], [y, x.clone()]] {
                    let [exact, fast] = both(op, &operands, &[3, 1500], &[]);
                    assert_eq!(bits(&exact), bits(&fast), "{op} of {operands:?}");
                }
            }
        }
    }
}

/// Bits, but for those of NaN.
fn bits(numbers: &[f32]) -> Vec<u32> {
    let of = |x: &f32| if x.is_nan() { u32::MAX } else { x.to_bits() };
    numbers.iter().map(of).collect()
}

#[test]
fn reductions_agree_in_every_layout() {
    let mut rng = Rng(7);
    let shape = [5, 7, 4100];
    let many = 5 * 7 * 4100 + 3;
    for bytes in [numbers(many, &mut rng), special(many, &mut rng)] {
        for strides in [vec![28_700, 4100, 1], vec![7, 1, 35], vec![28_700, 4100, 0]] {
            for axes in [&[0][..], &[1], &[2], &[0, 2], &[0, 1, 2]] {
                let kept = (0..3).filter(|axis| !axes.contains(&(*axis as i64)));
                let result: Vec<u64> = kept.map(|axis| shape[axis]).collect();
                let x = [(&shape[..], strides.clone(), 3, &bytes[..])];
                for op in ["sum", "product", "reduce_max", "reduce_min"] {
                    let attrs = [Attr::ints("axes", axes)];
                    let [exact, fast] = both(op, &x, &result, &attrs);
                    for (x, y) in exact.iter().zip(&fast) {
                        let same = x == y || x.is_nan() && y.is_nan();
                        let near = op == "sum" && (x - y).abs() <= 1e-6 * x.abs().max(1.0)
                            || op == "product" && (x - y).abs() <= 1e-6 * x.abs();
                        assert!(same || near, "{op} of {axes:?}, {strides:?}: {y} for {x}");
                    }
                }
            }
        }
    }
}

#[test]
fn rows_of_every_length_reduce_to_what_they_hold() {
    let special = [
        f32::NAN,
        f32::INFINITY,
        f32::NEG_INFINITY,
        -0.0,
        1e-40,
        f32::MAX,
    ];
    let mut rng = Rng(8);
    for columns in (1..200usize).chain([1000, 1023, 2049]) {
        // Each row has something special at another place, the first one nothing.
        let mut x: Vec<f32> = (0..20 * columns)
            .map(|_| rng.below(33) as f32 - 16.0)
            .collect();
        for row in 1..20 {
            x[row * columns + rng.below(columns as u64) as usize] = rng.pick(&special);
        }
        let bytes: Vec<u8> = x.iter().flat_map(|x| x.to_ne_bytes()).collect();
        let shape = [20, columns as u64];
        let operand = [(&shape[..], contiguous_strides(&shape), 0, &bytes[..])];
        let fast = |op| {
            let [_, fast] = both(op, &operand, &[20], &[Attr::ints("axes", [1])]);
            fast
        };
        let rows: Vec<&[f32]> = x.chunks(columns).collect();
        let want = |f: fn(f64, f64) -> f64| {
            let one = |row: &&[f32]| row.iter().map(|x| f64::from(*x)).reduce(f).unwrap() as f32;
            rows.iter().map(one).collect::<Vec<_>>()
        };
        // Zeros of either sign are as large as each other.
        let same = |got: Vec<f32>, want: Vec<f32>| {
            let pairs = got.iter().zip(&want);
            pairs
                .into_iter()
                .all(|(x, y)| x == y || x.is_nan() && y.is_nan())
        };
        // Of NaN and a number x + y is NaN.
        let larger = |x: f64, y: f64| {
            if x.is_nan() || y.is_nan() {
                x + y
            } else {
                x.max(y)
            }
        };
        let smaller = |x: f64, y: f64| {
            if x.is_nan() || y.is_nan() {
                x + y
            } else {
                x.min(y)
            }
        };
        assert!(same(fast("sum"), want(|x, y| x + y)), "sum of {columns}");
        assert!(same(fast("reduce_max"), want(larger)), "max of {columns}");
        assert!(same(fast("reduce_min"), want(smaller)), "min of {columns}");
    }
}
