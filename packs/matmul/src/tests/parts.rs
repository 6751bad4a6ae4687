//! How exact sums of bf16 are: the arithmetic of `split.glsl` and `split.comp`, with matrix units as they are measured. Products
//! and sums of them are exact but for what is cut off below 2^-25 of the largest product, and below the result's last place.

use nx_vulkan_ops::values::Rng;

fn nearest(x: f32) -> f32 {
    let bits = x.to_bits();
    f32::from_bits((bits + 0x7fff + (bits >> 16 & 1)) & 0xffff_0000)
}

fn parts(x: f32) -> [f32; 3] {
    let first = nearest(x);
    let rest = x - first;
    let second = nearest(rest);
    [first, second, rest - second]
}

/// A multiple of 2^`unit`, towards zero.
fn cut(x: f64, unit: i32) -> f64 {
    (x * 2f64.powi(-unit)).trunc() * 2f64.powi(unit)
}

fn exponent(x: f64) -> i32 {
    (x.to_bits() >> 52 & 0x7ff) as i32 - 1023
}

/// sum + Σ a b, of 16 products.
fn multiply_add(a: &[f32], b: &[f32], sum: f32) -> f32 {
    let products = a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b));
    let all: Vec<f64> = products.chain([f64::from(sum)]).collect();
    let largest = all.iter().fold(0f64, |most, x| most.max(x.abs()));
    if largest == 0.0 {
        return 0.0;
    }
    let unit = exponent(largest) - 25;
    let sum: f64 = all.iter().map(|x| cut(*x, unit)).sum();
    if sum == 0.0 {
        return 0.0;
    }
    cut(sum, exponent(sum) - 23) as f32
}

fn split(a: &[f32], b: &[f32]) -> f32 {
    let planes = |x: &[f32]| [0, 1, 2].map(|p| x.iter().map(|x| parts(*x)[p]).collect());
    let mut total = 0f32;
    for (a, b) in a.chunks(16).zip(b.chunks(16)) {
        let (a, b): ([Vec<f32>; 3], [Vec<f32>; 3]) = (planes(a), planes(b));
        let pairs = [[2, 0], [0, 2], [1, 1], [1, 0], [0, 1], [0, 0]];
        let all = pairs.into_iter();
        total += all.fold(0f32, |sum, [p, q]| multiply_add(&a[p], &b[q], sum));
    }
    total
}

fn plain(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).fold(0f32, |sum, (a, b)| a.mul_add(*b, sum))
}

/// Σ a b and Σ |a b| with twice the digits of f64: products are exact, and the error of each addition is kept.
fn exact(a: &[f32], b: &[f32]) -> [f64; 2] {
    let (mut sum, mut left, mut size) = (0f64, 0f64, 0f64);
    for (a, b) in a.iter().zip(b) {
        let product = f64::from(*a) * f64::from(*b);
        let next = sum + product;
        let rounded = next - sum;
        left += (sum - (next - rounded)) + (product - rounded);
        sum = next;
        size += product.abs();
    }
    [sum + left, size]
}

#[test]
fn three_parts_are_the_number() {
    let mut random = Rng(7);
    let edges = [
        0u32,
        0x0d80_0000,
        0x5d7f_ffff,
        0x3fff_ffff,
        0x3f80_7fff,
        0x3f80_8000,
    ];
    let edges = edges.map(f32::from_bits);
    let least = 2f32.powi(-100);
    let many = (0..1_000_000).map(|_| f32::from_bits(random.bits() as u32));
    let many = many.filter(|x| (least..2f32.powi(60)).contains(&x.abs()));
    for x in many.chain(edges) {
        let all = parts(x);
        assert_eq!(
            all.map(f64::from).iter().sum::<f64>(),
            f64::from(x),
            "{x:e}"
        );
        let are_bf16 = all.iter().all(|part| part.to_bits() & 0xffff == 0);
        let are_normal = all.iter().all(|part| *part == 0.0 || part.is_normal());
        assert!(are_bf16 && are_normal, "{x:e} {all:?}");
        // What bounds the products that are left out.
        assert!(f64::from(all[1].abs()) <= f64::from(x.abs()) / 256.0);
        assert!(f64::from(all[2].abs()) <= f64::from(x.abs()) / 65_536.0);
    }
}

#[test]
fn errors_are_no_larger_than_those_of_multiply_adds() {
    type Of = fn(&mut Rng, usize, usize) -> f32;
    let kinds: [(&str, Of); 6] = [
        ("signed", |random, _, _| random.between(-1.0, 1.0) as f32),
        ("positive", |random, _, _| {
            random.between(-1.0, 1.0).abs() as f32
        }),
        ("graded", |random, side, at| {
            let exponent = (at % 120) as i32 - 60;
            (random.between(-1.0, 1.0) * 2f64.powi(if side == 0 { exponent } else { -exponent }))
                as f32
        }),
        ("rows", |random, side, _| {
            (random.between(-1.0, 1.0) * [2f64.powi(60), 2f64.powi(-55)][side]) as f32
        }),
        ("cancelling", |random, side, at| {
            let sign = if side == 0 && at % 2 == 1 { -1.0 } else { 1.0 };
            (sign * (1.0 + random.between(-1.0, 1.0) * 1e-4)) as f32
        }),
        ("spread", |random, _, _| {
            let exponent = (random.bits() % 20) as i32 - 10;
            (random.between(-1.0, 1.0) * 2f64.powi(exponent)) as f32
        }),
    ];
    for (name, value) in kinds {
        for k in [64, 512, 4096] {
            let mut random = Rng(0x9e37_79b9_7f4a_7c15);
            let mut squares = [0f64; 2];
            for _ in 0..120 {
                let [a, b] = [0, 1].map(|side| {
                    let all = (0..k).map(|at| value(&mut random, side, at));
                    all.collect::<Vec<f32>>()
                });
                let [truth, size] = exact(&a, &b);
                let errors =
                    [split(&a, &b), plain(&a, &b)].map(|x| (f64::from(x) - truth).abs() / size);
                for (sum, error) in squares.iter_mut().zip(errors) {
                    *sum += error * error;
                }
            }
            let [split, plain] = squares.map(|sum| (sum / 120.0).sqrt());
            println!("{name} {k}: {split:.2e} {plain:.2e}");
            assert!(split <= plain, "{name} {k}: {split:e} {plain:e}");
        }
    }
}
