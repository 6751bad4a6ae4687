//! Scans: values by their definition, wrapping, special floats, refusals.

use half::f16;

use super::{DType, Random, bytes_of, refusal, run, tensor, vector};
use nx_vulkan_ops::attrs::Attr;

fn along(axis: i64, reverse: bool) -> [Attr; 2] {
    [
        Attr::ints("axis", [axis]),
        Attr::ints("reverse", [i64::from(reverse)]),
    ]
}

/// Each result from all elements up to it, as the definition has it.
fn defined(shape: &[u64], axis: usize, reverse: bool, x: &[i32]) -> Vec<i32> {
    let step: u64 = shape[axis + 1..].iter().product();
    let line = |at: u64| {
        (
            at / step % shape[axis],
            at / (step * shape[axis]),
            at % step,
        )
    };
    let sum = |at: u64| {
        let (index, outer, inner) = line(at);
        let before = (0..x.len() as u64).filter(|&other| {
            let (i, o, n) = line(other);
            (o, n) == (outer, inner) && if reverse { i >= index } else { i <= index }
        });
        before.map(|other| x[other as usize]).sum()
    };
    (0..x.len() as u64).map(sum).collect()
}

#[test]
fn sums_are_those_of_the_definition_on_every_axis() {
    let mut random = Random(5);
    for shape in [
        &[7u64][..],
        &[3, 5],
        &[2, 3, 4],
        &[1, 1],
        &[2, 1100],
        &[5, 2, 1],
    ] {
        let count = shape.iter().product::<u64>();
        let x: Vec<i32> = (0..count).map(|_| random.next() as i32 % 100).collect();
        for axis in 0..shape.len() {
            for reverse in [false, true] {
                let attrs = along(axis as i64, reverse);
                let got = run::<i32>(
                    "Nx.Block.CumulativeSum",
                    &[&tensor(shape, &x)],
                    shape,
                    &attrs,
                );
                assert_eq!(
                    got,
                    defined(shape, axis, reverse, &x),
                    "{shape:?} {axis} {reverse}"
                );
            }
        }
    }
}

#[test]
fn integers_wrap_and_floats_round_once() {
    let start = along(0, false);
    let wrapped = run::<u8>(
        "Nx.Block.CumulativeSum",
        &[&vector(&[200u8, 100, 1])],
        &[3],
        &start,
    );
    assert_eq!(wrapped, [200, 44, 45]);
    let wrapped = run::<i8>(
        "Nx.Block.CumulativeProduct",
        &[&vector(&[-128i8, 3, -1])],
        &[3],
        &start,
    );
    assert_eq!(wrapped, [-128, -128, -128]);
    // np.cumsum(np.float64([2048, 1, 1, 1])).astype(np.float16): rounding each sum would stay at 2048.
    let x = [2048.0, 1.0, 1.0, 1.0].map(f16::from_f32);
    let sums = run::<f16>("Nx.Block.CumulativeSum", &[&vector(&x)], &[4], &start);
    assert_eq!(
        sums.iter().map(|x| x.to_f32()).collect::<Vec<_>>(),
        [2048.0, 2048.0, 2050.0, 2052.0]
    );
}

#[test]
fn nan_lasts_and_infinities_meet_as_in_numpy() {
    let (nan, inf) = (f32::NAN, f32::INFINITY);
    let bits = |x: Vec<f32>| {
        x.iter()
            .map(|x| if x.is_nan() { f32::NAN } else { *x }.to_bits())
            .collect::<Vec<_>>()
    };
    // np.cumsum, np.cumprod, np.maximum.accumulate and np.minimum.accumulate of numpy 2.4.6.
    let x = vector(&[1.0, inf, 2.0, -inf, nan, 3.0]);
    let of = |op: &str| bits(run::<f32>(op, &[&x], &[6], &along(0, false)));
    assert_eq!(
        of("Nx.Block.CumulativeSum"),
        bits(vec![1.0, inf, inf, nan, nan, nan])
    );
    assert_eq!(
        of("Nx.Block.CumulativeProduct"),
        bits(vec![1.0, inf, inf, -inf, nan, nan])
    );
    assert_eq!(
        of("Nx.Block.CumulativeMax"),
        bits(vec![1.0, inf, inf, inf, nan, nan])
    );
    assert_eq!(
        of("Nx.Block.CumulativeMin"),
        bits(vec![1.0, 1.0, 1.0, -inf, nan, nan])
    );
}

#[test]
fn requests_that_are_no_scans_are_refused() {
    let x = vector(&[1i32, 2]);
    let of = |shape: &[u64], attrs: &[Attr]| {
        refusal(bytes_of(
            "Nx.Block.CumulativeSum",
            &[&x],
            DType::S32,
            shape,
            attrs,
        ))
    };
    assert!(of(&[2], &along(1, false)).contains("names axis 1"));
    assert!(of(&[2], &along(-1, false)).contains("names axis -1"));
    assert!(of(&[3], &along(0, false)).contains("shape"));
    assert!(of(&[2], &[Attr::ints("axis", [0, 1])]).contains("one axis"));
    let twice = [Attr::ints("axis", [0]), Attr::ints("reverse", [2])];
    assert!(of(&[2], &twice).contains("0 or 1"));
    assert_eq!(
        run::<i32>(
            "Nx.Block.CumulativeSum",
            &[&tensor::<i32>(&[0, 3], &[])],
            &[0, 3],
            &along(0, true)
        ),
        []
    );
}
