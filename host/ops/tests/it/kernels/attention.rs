//! Attention: beside loops in f64 that are written here, in cases whose result is known, and what is no attention.

use super::{Out, Random, Sample, Tensor, tensor, try_run};
use half::{bf16, f16};
use nx_vulkan_ops::{Request, Spec, attrs::Attr, kernels::run_program, split::split};

/// Batches, rows, elements of a row, keys, and elements of a result.
type Extents = (usize, usize, usize, usize, usize);

fn scores(text: &str) -> Vec<Attr> {
    let text = (!text.is_empty()).then(|| Attr::text("scores", text));
    text.into_iter().collect()
}

fn attention<S: Sample>(operands: &[&Tensor], text: &str) -> Result<Vec<S>, String> {
    let (q, v) = (&operands[0].shape, &operands[2].shape);
    let mut shape = q.clone();
    *shape.last_mut().unwrap() = *v.last().unwrap();
    let got = try_run("attention", operands, &shape, &scores(text));
    got.map_err(|error| error.to_string())
}

/// What it is, with what becomes of the score of a batch, a row and a key.
fn expected(
    [q, k, v]: [&[f64]; 3],
    (batches, rows, depth, keys, width): Extents,
    score: impl Fn([usize; 3], f64) -> f64,
) -> Vec<f64> {
    let mut result = Vec::new();
    for batch in 0..batches {
        for row in 0..rows {
            let q = &q[(batch * rows + row) * depth..][..depth];
            let mut weights = Vec::new();
            for key in 0..keys {
                let k = &k[(batch * keys + key) * depth..][..depth];
                let product: f64 = q.iter().zip(k).map(|(q, k)| q * k).sum();
                weights.push(score([batch, row, key], product).exp());
            }
            let total: f64 = weights.iter().sum();
            for column in 0..width {
                let each = weights.iter().enumerate();
                let mean = each
                    .map(|(key, weight)| weight / total * v[(batch * keys + key) * width + column]);
                result.push(mean.sum());
            }
        }
    }
    result
}

/// Numbers of 1/16 from -1 to 1, which every type has.
fn sixteenths(count: usize, seed: u64) -> Vec<f64> {
    let mut random = Random(seed);
    let each = (0..count).map(|_| random.below(33) as f64 / 16.0 - 1.0);
    each.collect()
}

fn of<S: Sample>(shape: &[u64], values: &[f64], convert: impl Fn(f64) -> S) -> Tensor {
    let values: Vec<S> = values.iter().map(|value| convert(*value)).collect();
    tensor(shape, &values)
}

/// Fails unless each result is that near to what is expected, by itself and with scores that are finished.
fn near<S: Sample>(
    operands: &[(Vec<u64>, Vec<f64>)],
    expected: [&[f64]; 2],
    convert: fn(f64) -> S,
    back: fn(S) -> f64,
    error: f64,
) {
    let all = operands.iter().map(|(shape, x)| of(shape, x, convert));
    let all: Vec<Tensor> = all.collect();
    let all: Vec<&Tensor> = all.iter().collect();
    let plain = attention::<S>(&all[..3], "");
    let finished = attention::<S>(&all, "multiply(x, 0.375); add(i3, %0)");
    for (got, expected) in [plain, finished].into_iter().zip(expected) {
        for (got, expected) in got.unwrap().into_iter().zip(expected) {
            let apart = (back(got) - expected).abs();
            assert!(apart <= error, "{got:?} {expected}, {:?}", all[0].shape);
        }
    }
}

#[test]
fn it_is_what_loops_say() {
    // Batch axes, axes of rows, and the other extents; the mask is one of each batch and key.
    for (seed, (batch, rows, [depth, keys, width])) in (1..).zip([
        (&[][..], &[5][..], [7, 9, 4]),
        (&[2], &[3], [8, 6, 5]),
        (&[2, 3], &[4], [5, 7, 3]),
        (&[2], &[3, 2], [4, 1, 2]),
        (&[2, 2], &[2, 3], [64, 77, 40]),
        (&[], &[2, 1, 3], [3, 130, 1]),
    ]) {
        let count = |shape: &[u64]| shape.iter().product::<u64>() as usize;
        let [d, n, e] = [depth, keys, width].map(|extent| extent as usize);
        let extents = (count(batch), count(rows), d, n, e);
        let shapes = [
            [batch, rows, &[depth]].concat(),
            [batch, &[keys, depth]].concat(),
            [batch, &[keys, width]].concat(),
            [batch, &vec![1; rows.len()], &[keys]].concat(),
        ];
        let operands: Vec<(Vec<u64>, Vec<f64>)> = (4 * seed..)
            .zip(shapes)
            .map(|(seed, shape)| (shape.clone(), sixteenths(count(&shape), seed)))
            .collect();
        let [q, k, v, mask] = [0, 1, 2, 3].map(|index| &operands[index].1[..]);
        let plain = expected([q, k, v], extents, |_, x| x);
        let finish = |[batch, _, key]: [usize; 3], x| 0.375 * x + mask[batch * n + key];
        let finished = expected([q, k, v], extents, finish);
        let both = [&plain[..], &finished];
        near::<f64>(&operands, both, |x| x, |x| x, 1e-14);
        near::<f32>(&operands, both, |x| x as f32, f64::from, 1e-6);
        near::<f16>(
            &operands,
            both,
            f16::from_f64,
            f64::from,
            2f64.powi(-12) + 1e-6,
        );
        near::<bf16>(
            &operands,
            both,
            bf16::from_f64,
            f64::from,
            2f64.powi(-9) + 1e-6,
        );
    }
}

#[test]
fn what_it_stands_for_is_the_same_but_for_roundings() {
    let shapes: [&[u64]; 4] = [&[2, 2, 5, 8], &[2, 70, 8], &[2, 70, 3], &[5, 70]];
    let numbers = shapes.map(|shape| sixteenths(shape.iter().product::<u64>() as usize, 7));
    let all = [0, 1, 2, 3].map(|index| of(shapes[index], &numbers[index], f16::from_f64));
    let views: Vec<_> = all.iter().map(Tensor::view).collect();
    let specs: Vec<Spec> = all.iter().map(|x| (x.dtype, x.shape.clone())).collect();
    let outputs = vec![(f16::DTYPE, vec![2, 2, 5, 3])];
    let text = "add(x, i3)";
    let request = Request::new("attention", specs, outputs, scores(text));
    let program = split(&request).unwrap().unwrap();
    let ops: Vec<&str> = program.steps().iter().map(|step| step.op()).collect();
    assert_eq!(ops, ["dot", "fused_rows", "dot"]);
    let mut bytes = vec![0; 2 * 2 * 5 * 3 * 2];
    let mut outs = [Out {
        dtype: f16::DTYPE,
        shape: &[2, 2, 5, 3],
        bytes: &mut bytes,
    }];
    run_program(&program, &views, &mut outs).unwrap();
    let whole = attention::<f16>(&all.each_ref(), text).unwrap();
    for (apart, whole) in bytes.chunks(2).map(f16::pop).zip(whole) {
        let far = (apart.to_f32() - whole.to_f32()).abs();
        assert!(far < 4e-3, "{apart} {whole}");
    }
}

#[test]
fn equal_scores_give_the_mean_and_a_great_one_its_row() {
    let q = tensor(&[1, 2], &[0f32, 0.0]);
    let k = tensor(&[4, 2], &[1f32, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]);
    let v = tensor(&[4, 3], &(1..13).map(|x| x as f32).collect::<Vec<_>>());
    let mean = attention::<f32>(&[&q, &k, &v], "").unwrap();
    assert_eq!(mean, [5.5, 6.5, 7.5]);
    let q = tensor(&[1, 2], &[1000f32, 1000.0]);
    let one = attention::<f32>(&[&q, &k, &v], "").unwrap();
    assert_eq!(one, [10.0, 11.0, 12.0]);
    let first = attention::<f32>(&[&q, &k, &v], "negate(x)").unwrap();
    assert_eq!(first, [1.0, 2.0, 3.0]);
    // Two weights of e and 1: the first is the logistic function of 1.
    let (q, k) = (tensor(&[1, 1], &[1f64]), tensor(&[2, 1], &[1f64, 0.0]));
    let v = tensor(&[2, 1], &[1f64, 0.0]);
    let logistic = attention::<f64>(&[&q, &k, &v], "").unwrap()[0];
    assert!((logistic - 0.731_058_578_630_004_9).abs() < 1e-15);
}

#[test]
fn keys_that_are_masked_do_not_count() {
    let q = tensor(&[2, 1], &[1f32, 2.0]);
    let k = tensor(&[3, 1], &[0f32, 50.0, 0.0]);
    let v = tensor(&[3, 1], &[1f32, 100.0, 3.0]);
    let none = f32::NEG_INFINITY;
    let mask = tensor(&[3], &[0f32, none, 0.0]);
    let got = attention::<f32>(&[&q, &k, &v, &mask], "add(x, i3)").unwrap();
    assert_eq!(got, [2.0, 2.0]);
    let mask = tensor(&[2, 3], &[0u8, 0, 1, 0, 0, 0]);
    let text = "not_equal(i3, 0); select(%0, x, -inf)";
    let got = attention::<f32>(&[&q, &k, &v, &mask], text).unwrap();
    assert_eq!(got[0], 3.0);
    assert!(got[1].is_nan());
}

#[test]
fn no_keys_give_zeros() {
    let (q, k) = (tensor(&[2, 3], &[1f32; 6]), tensor::<f32>(&[0, 3], &[]));
    let v = tensor::<f32>(&[0, 2], &[]);
    assert_eq!(attention::<f32>(&[&q, &k, &v], "").unwrap(), [0.0; 4]);
    let (q, k) = (tensor::<f32>(&[1, 0], &[]), tensor::<f32>(&[2, 0], &[]));
    let v = tensor(&[2, 1], &[1f32, 2.0]);
    assert_eq!(attention::<f32>(&[&q, &k, &v], "").unwrap(), [1.5]);
}

#[test]
fn what_is_no_attention_is_refused_by_name() {
    let zeros = |shape: &[u64]| tensor(shape, &vec![0f32; shape.iter().product::<u64>() as usize]);
    let refused = |shapes: &[&[u64]], text: &str, told: &str| {
        let all: Vec<Tensor> = shapes.iter().map(|shape| zeros(shape)).collect();
        let all: Vec<&Tensor> = all.iter().collect();
        let error = try_run::<f32>("attention", &all, &[2, 4], &scores(text)).unwrap_err();
        assert!(error.to_string().contains(told), "{shapes:?}: {error}");
    };
    let own: [&[u64]; 3] = [&[2, 3], &[5, 3], &[5, 4]];
    let [q, k, v] = own;
    refused(&[q, &[3], v], "", "k must have an axis of keys");
    refused(&[q, k, &[1, 5, 4]], "", "v must have as many axes as k");
    refused(&[&[3], k, v], "", "q must have at least as many axes as k");
    refused(&[&[2, 4], k, v], "", "equally long, got 4 and 3");
    refused(&[q, k, &[6, 4]], "", "a row for each of k, got 6 for 5");
    refused(
        &[q, k, &[5, 3]],
        "",
        "must have the shape [2, 3], not [2, 4]",
    );
    refused(
        &[&[2, 1, 3], &[2, 5, 3], &[1, 5, 4]],
        "",
        "the same batches",
    );
    refused(&[q, k], "", "expected at least 3 operands, got 2");
    refused(
        &[q, k, v, &[5]],
        "",
        "expected 3 operands without the attribute scores",
    );
    let with = |mask: &'static [u64]| [q, k, v, mask];
    refused(
        &own,
        "add(x, i3)",
        "it uses i3, and the request has no operands",
    );
    refused(&with(&[5]), "exp(x)", "nothing uses i3");
    refused(&with(&[5]), "add(x, i2)", "it uses i2");
    refused(
        &with(&[4]),
        "add(x, i3)",
        "i3, f32[4], does not broadcast to the scores, [2, 5]",
    );
    refused(&own, "dot(x, x)", "attribute scores: `dot(x, x)`");
    let (a, b) = (zeros(&[2, 2]), tensor(&[2, 2], &[f16::ONE; 4]));
    let error = try_run::<f32>("attention", &[&a, &b, &a], &[2, 2], &[]).unwrap_err();
    let told = "q, k and v must have one type, got f32, f16 and f32";
    assert!(error.to_string().contains(told), "{error}");
    let error = try_run::<f16>("attention", &[&a, &a, &a], &[2, 2], &[]).unwrap_err();
    assert!(error.to_string().contains("operand's type"), "{error}");
    let whole = tensor(&[2, 2], &[1i32; 4]);
    assert!(try_run::<i32>("attention", &[&whole; 3], &[2, 2], &[]).is_err());
}
