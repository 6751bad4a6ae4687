//! Rows that are reduced as one request, beside what this file makes of them in f64.

use crate::{
    folder::Folder,
    follow::{numbers, open_with, random},
};
use nx_vulkan_host::{
    Attr, DType, Program, Request, Spec, Step, Tensor, Value, device,
    fusion::{Input, fuse, rows},
};
use nx_vulkan_ops::values::Rng;

/// What is made of the rows of x (0), a scale (1) and a shift (2) of each place in them, and a number of each row (3).
#[derive(Debug, Clone, Copy)]
enum Kind {
    Softmax,
    Normalized,
    /// The root of the mean square of x and the number of its row; that sum is a result too.
    RootMeanSquare,
    LogSumExp,
}

const EPSILON: f64 = 0.125;

impl Kind {
    fn steps(self, dtype: DType, shape: &[u64]) -> (Vec<Step<'static>>, Vec<Value>) {
        let length = shape[shape.len() - 1];
        let mut column = shape.to_vec();
        column[shape.len() - 1] = 1;
        let mut steps: Vec<Step<'static>> = Vec::new();
        let mut push = |op: &'static str, inputs: &[Value], shape: &[u64], attrs: Vec<Attr>| {
            let outputs = vec![(dtype, shape.to_vec())];
            steps.push(Request::new(op, inputs.to_vec(), outputs, attrs).into());
            3 + steps.len() as Value
        };
        let along = || vec![Attr::ints("axes", [shape.len() as i64 - 1])];
        let number = |value: f64| {
            let bits = match dtype {
                DType::F64 => value.to_bits() as i64,
                DType::F32 => i64::from((value as f32).to_bits()),
                // All of them are exact in 8 digits.
                DType::BF16 => i64::from((value as f32).to_bits() >> 16),
                _ => i64::from(half(value)),
            };
            vec![Attr::ints("bits", [bits])]
        };
        let all = |result: Value| vec![result];
        let results = match self {
            Kind::Softmax => {
                let max = push("reduce_max", &[0], &column, along());
                let less = push("subtract", &[0, max], shape, vec![]);
                let exp = push("exp", &[less], shape, vec![]);
                let sum = push("sum", &[exp], &column, along());
                all(push("divide", &[exp, sum], shape, vec![]))
            }
            Kind::Normalized => {
                let count = push("fill", &[], &[], number(length as f64));
                let small = push("fill", &[], &[], number(EPSILON));
                let sum = push("sum", &[0], &column, along());
                let mean = push("divide", &[sum, count], &column, vec![]);
                let centered = push("subtract", &[0, mean], shape, vec![]);
                let square = push("multiply", &[centered, centered], shape, vec![]);
                let sum = push("sum", &[square], &column, along());
                let variance = push("divide", &[sum, count], &column, vec![]);
                let more = push("add", &[variance, small], &column, vec![]);
                let root = push("rsqrt", &[more], &column, vec![]);
                let one = push("multiply", &[centered, root], shape, vec![]);
                let scaled = push("multiply", &[one, 1], shape, vec![]);
                all(push("add", &[scaled, 2], shape, vec![]))
            }
            Kind::RootMeanSquare => {
                let count = push("fill", &[], &[], number(length as f64));
                let x = push("add", &[0, 3], shape, vec![]);
                let square = push("multiply", &[x, x], shape, vec![]);
                let sum = push("sum", &[square], &column, along());
                let mean = push("divide", &[sum, count], &column, vec![]);
                let root = push("sqrt", &[mean], &column, vec![]);
                let scaled = push("multiply", &[x, 1], shape, vec![]);
                let result = push("divide", &[scaled, root], shape, vec![]);
                vec![x, root, result]
            }
            Kind::LogSumExp => {
                let max = push("reduce_max", &[0], &column, along());
                let less = push("subtract", &[0, max], shape, vec![]);
                let exp = push("exp", &[less], shape, vec![]);
                let sum = push("sum", &[exp], &column, along());
                let log = push("log", &[sum], &column, vec![]);
                all(push("add", &[log, max], &column, vec![]))
            }
        };
        (steps, results)
    }

    /// The results for one row.
    fn expected(self, x: &[f64], scale: &[f64], shift: &[f64], own: f64) -> Vec<Vec<f64>> {
        let count = x.len() as f64;
        let max = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let exp: Vec<f64> = x.iter().map(|x| (x - max).exp()).collect();
        let sum: f64 = exp.iter().sum();
        match self {
            Kind::Softmax => vec![exp.iter().map(|x| x / sum).collect()],
            Kind::LogSumExp => vec![vec![sum.ln() + max]],
            Kind::Normalized => {
                let mean = x.iter().sum::<f64>() / count;
                let variance = x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / count;
                let root = (variance + EPSILON).sqrt();
                let places = x.iter().zip(scale.iter().zip(shift));
                vec![
                    places
                        .map(|(x, (a, b))| (x - mean) / root * a + b)
                        .collect(),
                ]
            }
            Kind::RootMeanSquare => {
                let x: Vec<f64> = x.iter().map(|x| x + own).collect();
                let root = (x.iter().map(|x| x * x).sum::<f64>() / count).sqrt();
                let scaled = x.iter().zip(scale).map(|(x, a)| x * a / root);
                let scaled = scaled.collect();
                vec![x, vec![root], scaled]
            }
        }
    }
}

/// The bits of an f16 that is exact and not subnormal.
fn half(value: f64) -> u16 {
    let bits = (value as f32).to_bits();
    let exponent = (bits >> 23) as i32 - 127 + 15;
    (exponent as u16) << 10 | (bits >> 13 & 0x3ff) as u16
}

#[test]
fn softmaxes_and_normalizations_are_one_request_and_right() {
    let folder = Folder::new();
    let runtime = open_with(&folder, &["elementwise", "reduce", "closure"]);
    let is_cpu = runtime.device().summary().kind == "cpu";
    let (seeds, longest) = if is_cpu { (16, 300) } else { (200, 8192) };
    for seed in 0..seeds {
        let mut rng = Rng(seed * 0x9e37_79b9 + 5);
        let dtype = rng.pick(&[DType::F32, DType::BF16, DType::F16, DType::F64]);
        let kind = rng.pick(&[
            Kind::Softmax,
            Kind::Normalized,
            Kind::RootMeanSquare,
            Kind::LogSumExp,
        ]);
        let lengths = [1 + rng.below(9), 1 + rng.below(70), 1 + rng.below(longest)];
        // What is divided by has to be a number of each type.
        let length = rng.pick(&lengths);
        let length = length.next_power_of_two() / if length > 2 { 2 } else { 1 };
        let shape = match rng.below(3) {
            0 => vec![1 + rng.below(4), 1 + rng.below(9), length],
            1 => vec![1 + rng.below(400), length],
            _ => vec![length],
        };
        let mut column = shape.clone();
        column[shape.len() - 1] = 1;
        let specs: Vec<Spec> = [shape.clone(), vec![length], vec![length], column]
            .into_iter()
            .map(|shape| (dtype, shape))
            .collect();
        let of: Vec<Input> = specs
            .iter()
            .map(|spec| Input {
                spec: spec.clone(),
                element: None,
            })
            .collect();
        let (steps, results) = kind.steps(dtype, &shape);
        let program = Program::new(4, steps, results).unwrap();
        let taken = fuse(program, &of)
            .and_then(|fused| rows(fused, &of))
            .unwrap();
        let ops: Vec<&str> = taken
            .steps()
            .iter()
            .map(Step::op)
            .filter(|op| *op != "fill")
            .collect();
        assert_eq!(ops, ["fused_rows"], "{kind:?} {specs:?}");

        let mut all: Vec<(Tensor, Vec<f64>)> = specs
            .iter()
            .map(|spec| random(&runtime, spec, &mut rng))
            .collect();
        if shape.len() == 2 && rng.below(2) == 0 {
            // The same rows, from columns.
            let turned = (dtype, vec![shape[1], shape[0]]);
            let (tensor, _) = random(&runtime, &turned, &mut rng);
            let tensor = tensor.transpose(&[1, 0]).unwrap();
            let own = numbers(&runtime, &tensor);
            all[0] = (tensor, own);
        }
        let tensors: Vec<&Tensor> = all.iter().map(|(tensor, _)| tensor).collect();
        let ran = runtime.run_program(&taken, &tensors).unwrap();
        let by = ran.served_by.iter().any(|by| &**by == "closure/fused_rows");
        assert!(by, "{:?}", ran.served_by);
        let given: Vec<Vec<f64>> = ran.results.iter().map(|r| numbers(&runtime, r)).collect();
        let epsilon = match dtype {
            DType::F64 => 1e-12,
            DType::F32 => 2e-5,
            DType::F16 => 2e-2,
            _ => 1.5e-1,
        };
        let [x, scale, shift, own] = [0, 1, 2, 3].map(|at| &all[at].1);
        for (row, x) in x.chunks(length as usize).enumerate() {
            let expected = kind.expected(x, scale, shift, own[row]);
            for (given, expected) in given.iter().zip(&expected) {
                let given = &given[row * expected.len()..][..expected.len()];
                let most = expected.iter().fold(1e-30f64, |most, x| most.max(x.abs()));
                for (given, expected) in given.iter().zip(expected) {
                    assert!(
                        (given - expected).abs() <= epsilon * most,
                        "seed {seed}, {kind:?} {dtype} {shape:?}, row {row}: {given}, not {expected}"
                    );
                }
            }
        }
    }
    assert_eq!(device::validation_messages(), [""; 0]);
}
