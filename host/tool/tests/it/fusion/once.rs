//! What is rounded once, beside what it stands for in f64: the functions that need fewer digits keep their range.

use super::{op, open};
use crate::{folder::Folder, follow::numbers};
use nx_vulkan_host::{
    Attr, DType, Program, Request, Runtime, Step, Tensor, Value, device,
    fusion::{Input, fuse, rounded_once, rows},
};

/// Elements of a type nearest to these.
fn tensor(runtime: &Runtime, dtype: DType, shape: &[u64], values: &[f64]) -> Tensor {
    let bytes: Vec<u8> = values.iter().flat_map(|x| x.to_ne_bytes()).collect();
    let exact = runtime.upload(DType::F64, shape, &bytes).unwrap();
    let outputs = vec![(dtype, shape.to_vec())];
    let request = Request::new("as_type", vec![&exact], outputs, &[]);
    runtime.run(&request).unwrap().remove(0)
}

/// Steps on x of that shape and on numbers behind it, as one request that rounds once: what x is, and what it gives.
fn run(
    runtime: &Runtime,
    dtype: DType,
    (shape, x): (&[u64], &[f64]),
    scalars: &[f64],
    steps: Vec<Step<'static>>,
) -> [Vec<f64>; 2] {
    let x = tensor(runtime, dtype, shape, x);
    let scalars = scalars.iter();
    let scalars: Vec<Tensor> = scalars
        .map(|&number| tensor(runtime, dtype, &[], &[number]))
        .collect();
    let input = |tensor: &Tensor, is_known: bool| Input {
        spec: (dtype, tensor.shape().to_vec()),
        element: is_known.then(|| runtime.download(tensor, None).unwrap()),
    };
    let mut inputs = vec![input(&x, false)];
    inputs.extend(scalars.iter().map(|number| input(number, true)));
    let last = (inputs.len() + steps.len() - 1) as Value;
    let program = Program::new(inputs.len(), steps, [last]).unwrap();
    let fused = rows(fuse(program, &inputs).unwrap(), &inputs).unwrap();
    let once = rounded_once(fused, &inputs).unwrap();
    let [Step::Request(request)] = once.steps() else {
        panic!("{:?}", once.steps());
    };
    assert!(request.attrs.contains(&Attr::text("precision", "high")));
    let all: Vec<&Tensor> = [&x].into_iter().chain(&scalars).collect();
    let ran = runtime.run_program(&once, &all).unwrap();
    [&x, &ran.results[0]].map(|tensor| numbers(runtime, tensor))
}

/// From -60 to 60, closest around 0, and the ends.
fn grid() -> Vec<f64> {
    let near = (-2400..=2400).map(|place| f64::from(place) * 0.0025);
    let far = (-60..=60).map(f64::from);
    near.chain(far).chain([-1e4, 1e4]).collect()
}

/// 1 + erf(x) to 1e-12 of it or better: Simpson's rule over the density.
fn one_plus_erf(x: f64) -> f64 {
    if x < -7.0 {
        return 0.0;
    }
    let (from, parts) = (-8.0, 4000);
    let step = (x.min(8.0) - from) / f64::from(parts);
    let at = |place: i32| (-(from + step * f64::from(place)).powi(2)).exp();
    let inner = (1..parts).map(|place| if place % 2 == 0 { 2.0 } else { 4.0 } * at(place));
    let sum = at(0) + at(parts) + inner.sum::<f64>();
    sum * step / 3.0 * 2.0 / std::f64::consts::PI.sqrt()
}

#[test]
fn a_gelu_keeps_its_tails() {
    let folder = Folder::new();
    let runtime = open(&folder, &["elementwise"], "");
    for (dtype, digits) in [(DType::BF16, 8), (DType::F16, 11)] {
        let x = grid();
        let shape = &[x.len() as u64][..];
        let name = |name, inputs: &[Value]| op(name, inputs, dtype, shape);
        let steps = vec![
            name("divide", &[0, 1]),   // 4
            name("erf", &[4]),         // 5
            name("add", &[5, 2]),      // 6
            name("multiply", &[6, 0]), // 7
            name("divide", &[7, 3]),   // 8
        ];
        let [x, given] = run(&runtime, dtype, (shape, &x), &[1.4140625, 1.0, 2.0], steps);
        for (x, given) in x.into_iter().zip(given) {
            let expected = x / 2.0 * one_plus_erf(x / 1.4140625);
            // Half a digit of the result, and 2^-16 of the larger term of the sum, by what it is multiplied by.
            let most = 0.51 * expected.abs() * f64::exp2(f64::from(1 - digits)) + x.abs() * 1.6e-5;
            assert!(
                (given - expected).abs() <= most,
                "{dtype}: {given} for {expected} at {x}"
            );
            assert!(x >= 0.0 || given <= 0.0, "{dtype}: {given} at {x}");
            assert!(x >= -6.0 || given == 0.0, "{dtype}: {given} at {x}");
        }
    }
    assert_eq!(device::validation_messages(), [""; 0]);
}

#[test]
fn roots_of_what_is_left_of_1_are_numbers() {
    let folder = Folder::new();
    let runtime = open(&folder, &["elementwise"], "");
    for (dtype, function) in [DType::BF16, DType::F16]
        .into_iter()
        .flat_map(|dtype| ["erf", "tanh", "sin", "cos", "sigmoid"].map(|name| (dtype, name)))
    {
        let x = grid();
        let shape = &[x.len() as u64][..];
        let name = |name, inputs: &[Value]| op(name, inputs, dtype, shape);
        let steps = vec![
            name(function, &[0]),      // 2
            name("subtract", &[1, 2]), // 3
            name("sqrt", &[3]),        // 4
        ];
        let [x, given] = run(&runtime, dtype, (shape, &x), &[1.0], steps);
        let wrong = x.iter().zip(&given).find(|(_, given)| given.is_nan());
        assert_eq!(wrong, None, "{dtype} {function}");
    }
}

#[test]
fn a_softmax_is_within_half_a_digit() {
    let folder = Folder::new();
    let runtime = open(&folder, &["elementwise", "closure", "reduce"], "");
    for (dtype, digits) in [(DType::BF16, 8), (DType::F16, 11)] {
        let (rows, length) = (3, 500);
        let (shape, column) = ([rows, length], [rows, 1]);
        let x: Vec<f64> = (0..rows * length)
            .map(|at| (at as f64 * 0.7).sin() * 6.0)
            .collect();
        let reduce = |name: &'static str, value: Value| {
            let attrs = [Attr::ints("axes", [1])];
            let outputs = vec![(dtype, column.to_vec())];
            Step::from(Request::new(name, vec![value], outputs, attrs.to_vec()))
        };
        let steps = vec![
            reduce("reduce_max", 0),                // 1
            op("subtract", &[0, 1], dtype, &shape), // 2
            op("exp", &[2], dtype, &shape),         // 3
            reduce("sum", 3),                       // 4
            op("divide", &[3, 4], dtype, &shape),   // 5
        ];
        let [x, given] = run(&runtime, dtype, (&shape, &x), &[], steps);
        let rows = x.chunks(length as usize).zip(given.chunks(length as usize));
        for (x, given) in rows {
            let sum: f64 = x.iter().map(|x| x.exp()).sum();
            for (x, given) in x.iter().zip(given) {
                let expected = x.exp() / sum;
                // A number of f16 below 2^-14 has fewer digits.
                let digit = f64::exp2(f64::from(1 - digits))
                    * expected.max(if dtype == DType::F16 { 6.2e-5 } else { 0.0 });
                assert!(
                    (given - expected).abs() <= 0.6 * digit,
                    "{dtype}: {given} for {expected}"
                );
            }
        }
    }
    assert_eq!(device::validation_messages(), [""; 0]);
}
