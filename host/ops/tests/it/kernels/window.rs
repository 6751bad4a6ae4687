//! Windows: against their definition, element by element, and values of numpy and scipy.

use half::f16;
use nx_vulkan_abi::layout::contiguous_strides;

use super::{DType, Random, bytes_of, refusal, run, tensor, vector};
use nx_vulkan_ops::attrs::Attr;

fn windows(window: &[i64], padding: &[i64], strides: &[i64], dilations: &[i64]) -> [Attr; 4] {
    [
        Attr::ints("padding", padding),
        Attr::ints("strides", strides),
        Attr::ints("window", window),
        Attr::ints("window_dilations", dilations),
    ]
}

/// Every index of a shape, in order.
pub(super) fn indices(shape: &[u64]) -> Vec<Vec<i64>> {
    shape.iter().fold(vec![vec![]], |all, &extent| {
        let longer =
            |index: Vec<i64>| (0..extent as i64).map(move |at| [index.as_slice(), &[at]].concat());
        all.into_iter().flat_map(longer).collect()
    })
}

/// The row-major place of an index, if it is in the shape.
pub(super) fn place(shape: &[u64], index: &[i64]) -> Option<usize> {
    let inside = |(at, extent): (&i64, &u64)| (0..*extent as i64).contains(at);
    let steps = contiguous_strides(shape);
    let place = index
        .iter()
        .zip(&steps)
        .map(|(at, step)| at * step)
        .sum::<i64>();
    index
        .iter()
        .zip(shape)
        .all(inside)
        .then_some(place as usize)
}

type Combine = fn(i64, i64) -> i64;

/// The definition: all elements of each window, those in the padding being `identity`.
fn defined(
    (shape, x): (&[u64], &[i64]),
    out: &[u64],
    attrs: &[Attr; 4],
    (identity, combine): (i64, Combine),
) -> Vec<i64> {
    let list = |index: usize| match &attrs[index].value {
        nx_vulkan_ops::attrs::AttrValue::Ints(list) => list.clone(),
        other => panic!("{other:?}"),
    };
    let [padding, strides, window, dilations] = [0, 1, 2, 3].map(list);
    let extents: Vec<u64> = window.iter().map(|&n| n as u64).collect();
    let value = |at: &Vec<i64>| {
        let elements = indices(&extents).into_iter().map(|element| {
            let along = |k: usize| at[k] * strides[k] + element[k] * dilations[k] - padding[2 * k];
            let index: Vec<i64> = (0..at.len()).map(along).collect();
            place(shape, &index).map_or(identity, |place| x[place])
        });
        elements.fold(identity, combine)
    };
    indices(out).iter().map(value).collect()
}

#[test]
fn windows_are_what_their_definition_says() {
    type Case = (&'static [u64], &'static [u64], [&'static [i64]; 4]);
    let cases: [Case; 13] = [
        (&[6, 7], &[5, 4], [&[2, 3], &[0, 0, 1, 1], &[1, 2], &[1, 1]]),
        (&[10], &[10], [&[3], &[4, 0], &[1], &[2]]),
        (&[10], &[3], [&[2], &[-3, -1], &[2], &[1]]),
        (
            &[2, 3, 4],
            &[2, 2, 3],
            [&[2, 2, 3], &[1, 0, 0, 0, 3, 3], &[1, 1, 2], &[1, 1, 2]],
        ),
        (&[3, 4], &[9, 1], [&[2, 4], &[4, 4, 0, 0], &[1, 1], &[2, 1]]),
        (&[0, 2], &[3, 1], [&[2, 2], &[2, 2, 0, 0], &[1, 1], &[1, 1]]),
        // Lines of elements two, three and five apart, which end with their row or before, and more than are taken at a time.
        (&[40], &[20], [&[3], &[1, 1], &[2], &[1]]),
        (&[3, 75], &[3, 37], [&[1, 2], &[0; 4], &[1, 2], &[1, 1]]),
        (&[3, 130], &[2, 43], [&[2, 3], &[0; 4], &[1, 3], &[1, 1]]),
        (&[101], &[19], [&[7], &[0, 0], &[5], &[1]]),
        (
            &[4, 300],
            &[3, 291],
            [&[2, 300], &[0, 0, 290, 0], &[1, 1], &[1, 1]],
        ),
        (&[6, 16], &[3, 1], [&[2, 16], &[0; 4], &[2, 16], &[1, 1]]),
        (
            &[2, 1, 16, 40],
            &[2, 1, 3, 2],
            [&[1, 1, 8, 20], &[0; 8], &[1, 1, 4, 20], &[1; 4]],
        ),
    ];
    let ops: [(&str, i64, Combine); 4] = [
        ("window_sum", 0, |a, b| a + b),
        ("window_product", 1, |a, b| a.wrapping_mul(b)),
        ("window_max", i64::MIN, i64::max),
        ("window_min", i64::MAX, i64::min),
    ];
    let mut random = Random(7);
    for (shape, out, [window, padding, strides, dilations]) in cases {
        let count = shape.iter().product::<u64>() as usize;
        let x: Vec<i64> = (0..count).map(|_| random.below(19) as i64 - 9).collect();
        let attrs = windows(window, padding, strides, dilations);
        for (op, identity, combine) in ops {
            assert_eq!(
                run::<i64>(op, &[&tensor(shape, &x)], out, &attrs),
                defined((shape, &x), out, &attrs, (identity, combine)),
                "{op} {shape:?}"
            );
        }
    }
}

/// Small windows of all forms, of tensors that are one slab and of some that are several.
#[test]
fn windows_of_any_form_are_what_their_definition_says() {
    let mut random = Random(11);
    let mut below = |n: usize| random.below(n as u64) as i64;
    for round in 0..300 {
        let rank = 1 + below(4) as usize;
        let most = [4000, 90, 16, 9][rank - 1];
        let shape: Vec<u64> = (0..rank).map(|_| 1 + below(most) as u64).collect();
        let window: Vec<i64> = (0..rank).map(|_| 1 + below(2) * below(9)).collect();
        let dilations: Vec<i64> = (0..rank).map(|_| 1 + below(2) * below(3)).collect();
        let strides: Vec<i64> = (0..rank).map(|_| 1 + below(2) * below(5)).collect();
        let padding: Vec<i64> = (0..2 * rank).map(|_| below(2) * (below(9) - 3)).collect();
        let positions = |k: usize| {
            let reach = (window[k] - 1) * dilations[k] + 1;
            let room = shape[k] as i64 + padding[2 * k] + padding[2 * k + 1] - reach;
            (room / strides[k] + 1).max(0)
        };
        let out: Vec<u64> = (0..rank).map(|k| positions(k) as u64).collect();
        let attrs = windows(&window, &padding, &strides, &dilations);
        let count = shape.iter().product::<u64>() as usize;
        let x: Vec<i64> = (0..count).map(|_| below(19) - 9).collect();
        let floats: Vec<f32> = x.iter().map(|x| *x as f32).collect();
        let of = |op: (i64, Combine)| defined((&shape, &x), &out, &attrs, op);
        let case = format!("{round}: {shape:?} {attrs:?}");
        let sums = run::<i64>("window_sum", &[&tensor(&shape, &x)], &out, &attrs);
        assert_eq!(sums, of((0, |a, b| a + b)), "{case}");
        let products = run::<i64>("window_product", &[&tensor(&shape, &x)], &out, &attrs);
        assert_eq!(products, of((1, i64::wrapping_mul)), "{case}");
        let sums = run::<f32>("window_sum", &[&tensor(&shape, &floats)], &out, &attrs);
        let expected = of((0, |a, b| a + b));
        assert!(
            sums.iter().zip(expected).all(|(x, y)| *x == y as f32),
            "{case}"
        );
        let most = run::<f32>("window_max", &[&tensor(&shape, &floats)], &out, &attrs);
        let expected = of((i64::MIN, i64::max)).into_iter();
        let expected = expected.map(|x| {
            if x == i64::MIN {
                f32::NEG_INFINITY
            } else {
                x as f32
            }
        });
        assert!(most.into_iter().eq(expected), "{case}");
    }
}

/// The first of equal elements is taken, in row-major order, and a sum of negative zeros is positive.
#[test]
fn zeros_of_windows_have_the_sign_that_row_major_order_gives() {
    let (shape, out) = ([20, 70], [18, 68]);
    let mut random = Random(5);
    let values: Vec<f32> = (0..1400)
        .map(|_| [0.0, -0.0][random.below(2) as usize])
        .collect();
    let attrs = windows(&[3, 3], &[0; 4], &[1, 1], &[1, 1]);
    let x = tensor(&shape, &values);
    for op in ["window_max", "window_min"] {
        let zeros = run::<f32>(op, &[&x], &out, &attrs);
        let first: Vec<f32> = (0..18 * 68).map(|i| values[i / 68 * 70 + i % 68]).collect();
        let bits = |x: &[f32]| x.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(&zeros), bits(&first), "{op}");
    }
    let negative = tensor(&shape, &[-0.0f32; 1400]);
    for window in [[3, 3], [1, 1]] {
        let attrs = windows(&window, &[0; 4], &[1, 1], &[1, 1]);
        let out = [21 - window[0] as u64, 71 - window[1] as u64];
        let sums = run::<f32>("window_sum", &[&negative], &out, &attrs);
        assert!(sums.iter().all(|x| x.to_bits() == 0));
    }
}

/// `scipy.ndimage.maximum_filter1d` and `numpy.convolve(x, ones(3), "same")`, scipy 1.17.1 and numpy 2.4.6.
#[test]
fn filters_of_scipy_and_numpy() {
    let x = vector(&[2.5f32, -1.0, 4.0, 4.0, -7.5, 0.0, 3.0, 1.0]);
    let three = windows(&[3], &[1, 1], &[1], &[1]);
    assert_eq!(
        run::<f32>("window_max", &[&x], &[8], &three),
        [2.5, 4.0, 4.0, 4.0, 4.0, 3.0, 3.0, 3.0]
    );
    assert_eq!(
        run::<f32>("window_sum", &[&x], &[8], &three),
        [1.5, 5.5, 7.0, 0.5, -3.5, -4.5, 4.0, 4.0]
    );
}

#[test]
fn nan_spreads_and_padding_is_lower_than_everything() {
    let x = vector(&[f32::NEG_INFINITY, 1.0, f32::NAN, 2.0, 3.0]);
    let two = windows(&[2], &[1, 0], &[1], &[1]);
    let max = run::<f32>("window_max", &[&x], &[5], &two);
    assert_eq!(max[..2], [f32::NEG_INFINITY, 1.0]);
    assert!(
        max[2].is_nan() && max[3].is_nan() && max[4] == 3.0,
        "{max:?}"
    );
    let padding = windows(&[1], &[1, 0], &[1], &[1]);
    assert_eq!(
        run::<i8>("window_max", &[&vector(&[5i8])], &[2], &padding),
        [-128, 5]
    );
    assert_eq!(
        run::<u8>("window_min", &[&vector(&[5u8])], &[2], &padding),
        [255, 5]
    );
}

#[test]
fn sums_wrap_in_the_type_and_floats_accumulate_wider() {
    let all = windows(&[3], &[0, 0], &[1], &[1]);
    assert_eq!(
        run::<u8>("window_sum", &[&vector(&[200u8, 100, 1])], &[1], &all),
        [45]
    );
    let ones = vec![f16::ONE; 4096];
    let all = windows(&[4096], &[0, 0], &[1], &[1]);
    assert_eq!(
        run::<f16>("window_sum", &[&vector(&ones)], &[1], &all),
        [f16::from_f32(4096.0)]
    );
}

/// A window of so many elements must not take as many steps.
#[test]
fn what_lies_in_the_padding_costs_nothing() {
    let most = i64::from(i32::MAX);
    let attrs = windows(
        &[most, most],
        &[most, most, most, most],
        &[most, most],
        &[1, 1],
    );
    let x = tensor(&[2, 2], &[1, 2, 3, 4]);
    assert_eq!(
        run::<i32>("window_sum", &[&x], &[2, 2], &attrs),
        [0, 0, 0, 10]
    );
}

#[test]
fn bad_windows_are_refused() {
    let x = vector(&[1.0f32, 2.0, 3.0]);
    let refuse = |attrs: &[Attr], out: &[u64]| {
        refusal(bytes_of("window_sum", &[&x], DType::F32, out, attrs))
    };
    let why = refuse(&windows(&[2], &[0], &[1], &[1]), &[2]);
    assert!(
        why.contains("window_sum of (f32[3])") && why.contains("padding"),
        "{why}"
    );
    assert!(refuse(&windows(&[0], &[0, 0], &[1], &[1]), &[3]).contains("attribute window "));
    assert!(refuse(&windows(&[1], &[0, 0], &[0], &[1]), &[3]).contains("attribute strides"));
    assert!(refuse(&windows(&[1], &[0, 0], &[1], &[1 << 40]), &[3]).contains("window_dilations"));
    let why = refuse(&windows(&[2], &[0, 0], &[1], &[1]), &[3]);
    assert!(why.contains("the windows give [2]"), "{why}");
}

/// Elements are taken one after the other: some of them, or those of a row, may come to more than the type holds.
#[test]
fn results_overflow_where_all_of_a_window_does() {
    let (large, small) = (1e200, 1e-200);
    let line = [
        large, small, small, large, large, small, small, large, large,
    ];
    for (op, shape, values, expected) in [
        ("window_product", &[9][..], &line[..], large),
        (
            "window_product",
            &[2, 2],
            &[small, 1.0, large, large],
            large,
        ),
        (
            "window_sum",
            &[2, 2],
            &[-1.5e308, 0.0, 1.5e308, 1.5e308],
            1.5e308,
        ),
    ] {
        let window: Vec<i64> = shape.iter().map(|extent| *extent as i64).collect();
        let ones = vec![1; window.len()];
        let attrs = windows(&window, &vec![0; 2 * window.len()], &ones, &ones);
        let out = vec![1; window.len()];
        let whole = run::<f64>(op, &[&tensor(shape, values)], &out, &attrs)[0];
        assert!((whole / expected - 1.0).abs() < 1e-12, "{op} {whole}");
    }
}
