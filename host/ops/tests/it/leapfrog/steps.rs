//! Steps by hand, and sums of many terms.

use nx_vulkan_abi::dtype::DType;
use nx_vulkan_abi::layout::contiguous_strides;
use nx_vulkan_ops::kernels::{Out, View, run};

fn bytes(values: &[f64]) -> Vec<u8> {
    values.iter().flat_map(|x| x.to_ne_bytes()).collect()
}

fn floats(bytes: &[u8]) -> Vec<f64> {
    let chunks = bytes.as_chunks::<8>().0.iter();
    chunks.map(|chunk| f64::from_ne_bytes(*chunk)).collect()
}

/// The four results of `leapfrog_normal` with mu 1 and sigma 2.
fn normal(
    [q, p, inv_mass]: [&[f64]; 3],
    [chains, steps, extent]: [u64; 3],
    epsilon: f64,
) -> [Vec<f64>; 4] {
    let (state, chain, logp) = ([chains, extent], [chains, steps, extent], [chains, steps]);
    let shapes: [&[u64]; 4] = [&state, &state, &state, &[3]];
    let strides = shapes.map(contiguous_strides);
    let data = [
        bytes(q),
        bytes(p),
        bytes(inv_mass),
        bytes(&[epsilon, 1.0, 2.0]),
    ];
    let inputs: Vec<View> = (0..4)
        .map(|i| View {
            dtype: DType::F64,
            shape: shapes[i],
            strides: &strides[i],
            offset: 0,
            bytes: &data[i],
        })
        .collect();
    let shapes: [&[u64]; 4] = [&chain, &chain, &chain, &logp];
    let mut results = shapes.map(|shape| vec![0; 8 * shape.iter().product::<u64>() as usize]);
    let mut outs: Vec<Out> = shapes
        .iter()
        .zip(&mut results)
        .map(|(shape, bytes)| Out {
            dtype: DType::F64,
            shape,
            bytes,
        })
        .collect();
    run("leapfrog_normal", &inputs, &mut outs, &[]).unwrap();
    results.map(|bytes| floats(&bytes))
}

#[test]
fn a_step_is_what_the_formula_says() {
    let (q, p, mass, epsilon) = (3.0, 0.5, 0.25, 0.1);
    let [qs, ps, gradients, logps] = normal([&[q], &[p], &[mass]], [1, 1, 1], epsilon);
    let gradient = |q: f64| -(q - 1.0) / 4.0;
    let half = p + 0.5 * epsilon * gradient(q);
    let next = q + epsilon * mass * half;
    let logp =
        -0.5 * ((next - 1.0) / 2.0f64).powi(2) - 2f64.ln() - 0.5 * std::f64::consts::TAU.ln();
    let expected = [
        next,
        half + 0.5 * epsilon * gradient(next),
        gradient(next),
        logp,
    ];
    for (got, expected) in [qs[0], ps[0], gradients[0], logps[0]].iter().zip(expected) {
        assert!((got - expected).abs() < 1e-15, "{got} {expected}");
    }
}

#[test]
fn rows_describe_the_state_after_their_own_step() {
    let (q, p, mass) = (
        [0.3, -2.0, 4.0, 1.0],
        [1.0, -0.5, 0.2, 0.0],
        [0.5, 1.0, 2.0, 3.0],
    );
    let all = normal([&q, &p, &mass], [2, 5, 2], 0.2);
    for chain in 0..2 {
        let (mut q, mut p) = (q[2 * chain..][..2].to_vec(), p[2 * chain..][..2].to_vec());
        for step in 0..5 {
            let one = normal([&q, &p, &mass[2 * chain..][..2]], [1, 1, 2], 0.2);
            let row = chain * 5 + step;
            for (all, one) in all[..3].iter().zip(&one) {
                assert_eq!(all[2 * row..][..2], one[..]);
            }
            assert_eq!(all[3][row], one[3][0]);
            (q, p) = (one[0].clone(), one[1].clone());
        }
    }
}

#[test]
fn sums_of_many_terms_keep_their_digits() {
    let extent = 70_001;
    let zeros = vec![0.0; extent];
    let start: Vec<f64> = (0..extent)
        .map(|i| 1.0 + f64::from(i as u32 % 7) * 0.1)
        .collect();
    let logp = normal([&start, &zeros, &zeros], [1, 1, extent as u64], 0.1)[3][0];
    let square = |i: f64| -0.5 * (0.1 * i / 2.0) * (0.1 * i / 2.0);
    let mut expected = extent as f64 * (-(2f64.ln()) - 0.5 * std::f64::consts::TAU.ln());
    expected += (0..7).map(|i| 10_000.0 * square(f64::from(i))).sum::<f64>();
    expected += square(0.0) - 0.0;
    assert!(
        (logp - expected).abs() < 1e-14 * expected.abs(),
        "{logp} {expected}"
    );
}
