//! Scatters of windows: values of Nx's own examples, ties, padding and NaN.

use half::bf16;

use super::{DType, Random, bytes_of, refusal, run, tensor, vector};
use nx_vulkan_ops::attrs::Attr;

fn windows(window: &[i64], padding: &[i64], strides: &[i64]) -> [Attr; 3] {
    [
        Attr::ints("padding", padding),
        Attr::ints("strides", strides),
        Attr::ints("window", window),
    ]
}

/// The examples of `Nx.window_scatter_max/5` and `Nx.window_scatter_min/5`, 0.13.
#[test]
fn examples_of_nx() {
    #[rustfmt::skip]
    let x = tensor(&[4, 6], &[
        7, 2, 5, 3, 10, 2,
        3, 8, 9, 3, 4, 2,
        1, 5, 7, 5, 6, 1,
        0, 6, 2, 7, 2, 8,
    ]);
    let source = tensor(&[2, 2], &[2, 6, 3, 1]);
    let init = tensor(&[], &[0]);
    let attrs = windows(&[2, 3], &[0; 4], &[2, 3]);
    #[rustfmt::skip]
    assert_eq!(run::<i32>("window_scatter_max", &[&x, &source, &init], &[4, 6], &attrs), [
        0, 0, 0, 0, 6, 0,
        0, 0, 2, 0, 0, 0,
        0, 0, 3, 0, 0, 0,
        0, 0, 0, 0, 0, 1,
    ]);
    #[rustfmt::skip]
    assert_eq!(run::<i32>("window_scatter_min", &[&x, &source, &init], &[4, 6], &attrs), [
        0, 2, 0, 0, 0, 0,
        0, 0, 0, 0, 0, 6,
        0, 0, 0, 0, 0, 1,
        3, 0, 0, 0, 0, 0,
    ]);
}

/// Windows inside and at the edges, beside a loop over all of their elements that is written here.
#[test]
fn windows_of_any_kind_choose_what_a_loop_does() {
    let mut random = Random(5);
    for round in 0..60 {
        let extents = [
            1 + random.below(3),
            3 + random.below(40),
            3 + random.below(90),
        ];
        let axes = extents.map(|extent| {
            let window = 1 + random.below(extent.min(4)) as i64;
            let [low, high] = [(); 2].map(|()| random.below(window as u64) as i64);
            (window, 1 + random.below(3) as i64, low, high)
        });
        let positions = |(extent, (window, stride, low, high)): (&u64, &(i64, i64, i64, i64))| {
            ((*extent as i64 + low + high - window) / stride + 1) as u64
        };
        let shape: Vec<u64> = extents.iter().zip(&axes).map(positions).collect();
        let [elements, windows_of] =
            [&extents[..], &shape].map(|shape| shape.iter().product::<u64>());
        let x: Vec<f32> = (0..elements).map(|_| random.below(9) as f32).collect();
        let source: Vec<f32> = (0..windows_of).map(|_| random.below(50) as f32).collect();
        let is_max = round % 2 == 0;
        let init = [4.0, -1.0, 100.0][random.below(3) as usize];

        let mut expected = vec![init; x.len()];
        let strides = [extents[1] * extents[2], extents[2], 1];
        for (at, value) in source.iter().enumerate() {
            let mut rest = at as u64;
            let mut corner = [0_i64; 3];
            for k in (0..3).rev() {
                corner[k] = (rest % shape[k]) as i64 * axes[k].1 - axes[k].2;
                rest /= shape[k];
            }
            let mut best: Option<(f32, Option<u64>)> = None;
            for a in 0..axes[0].0 {
                for b in 0..axes[1].0 {
                    for c in 0..axes[2].0 {
                        let place = [corner[0] + a, corner[1] + b, corner[2] + c];
                        let inside = place
                            .iter()
                            .zip(extents)
                            .all(|(at, extent)| (0..extent as i64).contains(at));
                        let place = inside.then(|| {
                            place
                                .iter()
                                .zip(strides)
                                .map(|(at, step)| *at as u64 * step)
                                .sum()
                        });
                        let own = place.map_or(init, |place: u64| x[place as usize]);
                        let wins = |best: f32| if is_max { own >= best } else { own <= best };
                        if best.is_none_or(|(best, _)| wins(best)) {
                            best = Some((own, place));
                        }
                    }
                }
            }
            if let Some((_, Some(place))) = best {
                expected[place as usize] += value;
            }
        }
        let window = axes.map(|axis| axis.0);
        let attrs = windows(
            &window,
            &axes.map(|axis| [axis.2, axis.3]).concat(),
            &axes.map(|axis| axis.1),
        );
        let op = if is_max {
            "window_scatter_max"
        } else {
            "window_scatter_min"
        };
        let operands = [
            tensor(&extents, &x),
            tensor(&shape, &source),
            tensor(&[], &[init]),
        ];
        let got = run::<f32>(op, &operands.each_ref(), &extents, &attrs);
        assert!(got == expected, "{extents:?} {axes:?}");
    }
}

/// What `Nx.BinaryBackend` of 0.13 gives.
#[test]
fn the_last_of_equal_elements_wins_and_padding_takes_part() {
    let x = vector(&[3.0f32, 3.0, 1.0, -2.0]);
    let (source, init) = (vector(&[1.0f32, 2.0, 4.0]), tensor(&[], &[0.5f32]));
    let two = windows(&[2], &[0, 0], &[1]);
    assert_eq!(
        run::<f32>("window_scatter_max", &[&x, &source, &init], &[4], &two),
        [0.5, 3.5, 4.5, 0.5]
    );
    let source = vector(&[1.0f32, 2.0, 4.0]);
    let padded = windows(&[2], &[0, 2], &[2]);
    assert_eq!(
        run::<f32>("window_scatter_min", &[&x, &source, &init], &[4], &padded),
        [0.5, 1.5, 0.5, 2.5]
    );
}

#[test]
fn nan_is_chosen_only_as_the_first() {
    let x = vector(&[f32::NAN, 1.0, f32::NAN, 0.0]);
    let (source, init) = (vector(&[1.0f64, 2.0, 4.0]), tensor(&[], &[0.0f64]));
    assert_eq!(
        run::<f64>(
            "window_scatter_max",
            &[&x, &source, &init],
            &[4],
            &windows(&[2], &[0, 0], &[1])
        ),
        [1.0, 2.0, 4.0, 0.0]
    );
}

#[test]
fn sums_go_in_order_and_wrap() {
    let x = vector(&[0u8, 9, 0]);
    let all = windows(&[2], &[0, 0], &[1]);
    let init = tensor(&[], &[1u8]);
    let sums = run::<u8>(
        "window_scatter_max",
        &[&x, &vector(&[200u8, 100]), &init],
        &[3],
        &all,
    );
    assert_eq!(sums, [1, 45, 1]);
    // In bf16 itself 256 + 1 would stay 256.
    let init = tensor(&[], &[bf16::from_f32(256.0)]);
    let source = vector(&[bf16::ONE, bf16::ONE]);
    let sums = run::<bf16>("window_scatter_max", &[&x, &source, &init], &[3], &all);
    assert_eq!(sums[1], bf16::from_f32(258.0));
}

#[test]
fn bad_scatters_are_refused() {
    let (x, init) = (vector(&[1.0f32, 2.0, 3.0]), tensor(&[], &[0.0f32]));
    let refuse = |source: usize, init: &super::Tensor, attrs: &[Attr]| {
        let source = vector(&vec![0.0f32; source]);
        refusal(bytes_of(
            "window_scatter_max",
            &[&x, &source, init],
            DType::F32,
            &[3],
            attrs,
        ))
    };
    let two = windows(&[2], &[0, 0], &[1]);
    assert!(refuse(3, &init, &two).contains("shape of the windows, [2]"));
    assert!(refuse(2, &x, &two).contains("init must be a scalar"));
    assert!(refuse(2, &init, &windows(&[0], &[0, 0], &[1])).contains("attribute window"));
}
