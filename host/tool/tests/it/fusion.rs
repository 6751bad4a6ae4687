//! Fused programs beside the same ones op by op: the same bits, the same errors, whoever runs them.

mod apart;
mod once;
mod rounds;

use crate::{folder::Folder, packs::copied};
use nx_vulkan_host::{
    Attr, Config, DType, DeviceChoice, Program, Request, Runtime, Spec, Step, Tensor, Value, View,
    device,
    fusion::{Input, fuse, inline},
};
use nx_vulkan_ops::values::{Domain, Rng, Values, elements};
use std::sync::Arc;

const TYPES: [DType; 8] = [
    DType::F32,
    DType::S32,
    DType::U8,
    DType::F16,
    DType::BF16,
    DType::S64,
    DType::U32,
    DType::F64,
];
const SHAPES: [&[u64]; 3] = [&[7, 12], &[12], &[]];

fn open(folder: &Folder, packs: &[&str], rules: &str) -> Arc<Runtime> {
    let device = std::env::var("NX_VULKAN_DEVICE").unwrap_or_else(|_| "llvmpipe".to_owned());
    let rules = format!("schema = 1\n{rules}");
    Runtime::open(&Config {
        device: DeviceChoice::parse(&device),
        packs: vec![copied(folder, packs)],
        registry: Some(folder.write("registry.toml", rules)),
        cache_dir: Some(folder.join("cache")),
        validation: true,
        ..Config::from_env()
    })
    .unwrap()
}

fn op(name: &'static str, inputs: &[Value], dtype: DType, shape: &[u64]) -> Step<'static> {
    Request::new(name, inputs.to_vec(), vec![(dtype, shape.to_vec())], &[]).into()
}

/// A program of random elementwise ops, with sums and views among them, and its inputs.
fn random(rng: &mut Rng) -> (Vec<Spec>, Program<'static>) {
    let inputs: Vec<Spec> = (0..6)
        .map(|_| (rng.pick(&TYPES), rng.pick(&SHAPES).to_vec()))
        .collect();
    let mut specs = inputs.clone();
    let mut steps: Vec<Step<'static>> = Vec::new();
    for _ in 0..16 {
        let shape = rng.pick(&SHAPES[..2]);
        let fits: Vec<Value> = (0..specs.len() as Value)
            .filter(|value| shape.ends_with(&specs[*value as usize].1))
            .collect();
        if fits.is_empty() {
            continue;
        }
        // What was made last is read soon.
        let [a, b, c] = [3, 8, 20].map(|last| rng.pick(&fits[fits.len().saturating_sub(last)..]));
        let [x, y, z] = [a, b, c].map(|value| specs[value as usize].0);
        let (xy, float) = (x.merge(y), if x.is_float() { x } else { DType::F32 });
        let whole = x.is_integer() && y.is_integer();
        let (step, spec) = match rng.below(14) {
            0 if specs[a as usize].1.len() == 2 => {
                let turned = specs[a as usize].1.iter().rev().copied().collect();
                (Step::View(a, View::Transpose(vec![1, 0])), (x, turned))
            }
            1 if specs[a as usize].1.len() == 1 => {
                let attrs = vec![Attr::ints("axes", [0])];
                let outputs = vec![(x, vec![])];
                let sum = Request::new("reduce_max", vec![a], outputs, attrs);
                (sum.into(), (x, vec![]))
            }
            kind => {
                let (name, inputs, dtype): (_, &[Value], _) = match kind {
                    2 => ("as_type", &[a], rng.pick(&TYPES)),
                    3 => ("exp", &[a], float),
                    4 => ("sin", &[a], float),
                    5 => ("less", &[a, b], DType::U8),
                    6 => ("select", &[a, b, c], y.merge(z)),
                    7 => ("negate", &[a], x),
                    8 => ("multiply", &[a, b], xy),
                    9 => ("subtract", &[a, b], xy),
                    10 => ("max", &[a, b], xy),
                    11 if whole => ("bitwise_xor", &[a, b], xy),
                    12 if xy.is_float() => ("divide", &[a, b], xy),
                    _ => ("add", &[a, b], xy),
                };
                (op(name, inputs, dtype, shape), (dtype, shape.to_vec()))
            }
        };
        steps.push(step);
        specs.push(spec);
    }
    let results: Vec<Value> = (0..3)
        .map(|_| rng.below(specs.len() as u64) as Value)
        .chain([specs.len() as Value - 1])
        .collect();
    let program = Program::new(inputs.len(), steps, results).unwrap();
    (inputs, program)
}

fn upload(runtime: &Runtime, spec: &Spec, rng: &mut Rng, values: Values) -> Tensor {
    let count = spec.1.iter().product::<u64>() as usize;
    let bytes = elements(Domain::Any, spec.0, values, count, rng);
    runtime.upload(spec.0, &spec.1, &bytes).unwrap()
}

fn download(runtime: &Runtime, tensor: &Tensor) -> Vec<u8> {
    runtime.download(tensor, None).unwrap()
}

fn random_programs(runtime: &Runtime, seeds: std::ops::Range<u64>) -> (usize, usize) {
    let (mut before, mut after) = (0, 0);
    let mut unlike = Vec::new();
    for seed in seeds {
        let mut rng = Rng(seed * 0x9e37_79b9);
        let (specs, program) = random(&mut rng);
        let values = rng.pick(&[Values::Finite, Values::Special]);
        let tensors: Vec<Tensor> = specs
            .iter()
            .map(|spec| upload(runtime, spec, &mut rng, values))
            .collect();
        // Half of the scalars are known.
        let inputs: Vec<Input> = specs
            .iter()
            .zip(&tensors)
            .map(|(spec, tensor)| {
                let is_known = spec.1.is_empty() && rng.below(2) == 0;
                Input {
                    spec: spec.clone(),
                    element: is_known.then(|| download(runtime, tensor)),
                }
            })
            .collect();
        let fused = fuse(program.clone(), &inputs).unwrap();
        before += program.steps().len();
        after += fused.steps().len();
        let fused = match seed % 2 {
            0 => fused,
            _ => inline(fused, &inputs).unwrap(),
        };
        let tensors: Vec<&Tensor> = tensors.iter().collect();
        let [apart, one] =
            [&program, &fused].map(|program| runtime.run_program(program, &tensors).unwrap());
        assert_eq!(apart.fallbacks.len(), one.fallbacks.len(), "seed {seed}");
        for (result, (apart, one)) in apart.results.iter().zip(&one.results).enumerate() {
            let [apart, one] = [apart, one].map(|tensor| download(runtime, tensor));
            if let Some(place) = (0..apart.len()).find(|&place| apart[place] != one[place]) {
                let apart = &apart[place..apart.len().min(place + 8)];
                let one = &one[place..one.len().min(place + 8)];
                unlike.push(format!(
                    "seed {seed}, result {result}, byte {place}: {apart:?} and {one:?} of {:?}",
                    fused.steps()
                ));
            }
        }
    }
    assert_eq!(unlike, [""; 0]);
    (before, after)
}

#[test]
fn random_programs_have_the_bits_of_their_ops_one_by_one() {
    let folder = Folder::new();
    let runtime = open(&folder, &["elementwise", "reduce"], "");
    let last = match runtime.device().summary().kind {
        "cpu" => 17,
        _ => 60,
    };
    let (before, after) = random_programs(&runtime, 1..last);
    assert!(4 * after < 3 * before, "{after} steps of {before}");
    let served = runtime.stats().served;
    let fused = |row: &&(String, String, u64)| row.0 == "fused" && row.1 == "elementwise/fused";
    assert!(served.iter().find(fused).is_some_and(|row| row.2 > 20));
    assert_eq!(device::validation_messages(), [""; 0]);
}

/// Whether elements are the same number: which NaN, and which zero is the least of two, is left to the device.
fn alike(dtype: DType, a: &[u8], b: &[u8]) -> bool {
    let infinity = match dtype {
        DType::F16 => 0x7c00,
        DType::BF16 => 0x7f80,
        DType::F32 => u64::from(f32::INFINITY.to_bits()),
        _ => f64::INFINITY.to_bits(),
    };
    let magnitude = |bytes: &[u8]| {
        let bits = bytes
            .iter()
            .rev()
            .fold(0, |bits, byte| bits << 8 | u64::from(*byte));
        bits & ((1 << (8 * bytes.len() - 1)) - 1)
    };
    let (x, y) = (magnitude(a), magnitude(b));
    a == b || x == 0 && y == 0 || x > infinity && y > infinity
}

/// What compilers make of a number that they know must not show in the result.
#[test]
fn numbers_of_an_expression_give_the_bits_of_numbers_in_memory() {
    let folder = Folder::new();
    let runtime = open(&folder, &["elementwise"], "");
    // Each is a shader of its own, which a CPU compiles for longer than it runs.
    let draws = match runtime.device().summary().kind {
        "cpu" => 1,
        _ => 12,
    };
    let ops = [
        "add", "subtract", "multiply", "divide", "pow", "atan2", "min",
    ];
    let mut rng = Rng(17);
    let mut unlike = Vec::new();
    for (dtype, name, is_first) in [DType::F32, DType::F64, DType::F16]
        .into_iter()
        .flat_map(|dtype| ops.map(|name| [(dtype, name, false), (dtype, name, true)]))
        .flatten()
    {
        for draw in 0..draws {
            let shape = [4096];
            let values = if draw % 3 == 0 {
                Values::Special
            } else {
                Values::Finite
            };
            let x = upload(&runtime, &(dtype, shape.to_vec()), &mut rng, values);
            let number = upload(&runtime, &(dtype, vec![]), &mut rng, values);
            let values = if is_first { [1, 0] } else { [0, 1] };
            let steps = [
                op(name, &values, dtype, &shape),
                op("negate", &[2], dtype, &shape),
            ];
            let program = Program::new(2, steps, [3]).unwrap();
            let element = download(&runtime, &number);
            let inputs =
                [(shape.to_vec(), None), (vec![], Some(element))].map(|(shape, element)| Input {
                    spec: (dtype, shape),
                    element,
                });
            let fused = fuse(program.clone(), &inputs).unwrap();
            assert_eq!(fused.steps().len(), 1);
            let [apart, one] = [&program, &fused].map(|program| {
                let ran = runtime.run_program(program, &[&x, &number]).unwrap();
                download(&runtime, &ran.results[0])
            });
            let size = dtype.size() as usize;
            let pairs = apart.chunks(size).zip(one.chunks(size));
            let differ = pairs.filter(|(apart, one)| !alike(dtype, apart, one));
            let differ = differ.count();
            if differ > 0 {
                unlike.push(format!("{differ} of {:?}", fused.steps()[0]));
            }
        }
    }
    assert_eq!(unlike, [""; 0]);
}

/// Nor must it show what stands beside a function: a product before it and a sum behind it are no part of it.
#[test]
fn functions_of_an_expression_give_the_bits_of_those_alone() {
    let folder = Folder::new();
    let runtime = open(&folder, &["elementwise"], "");
    let all = [DType::F32, DType::F64, DType::F16, DType::BF16];
    // Each is a shader of its own, which a CPU compiles for longer than it runs.
    let (dtypes, every) = match runtime.device().summary().kind {
        "cpu" => (&all[2..3], 8),
        _ => (&all[..], 1),
    };
    let names = "exp expm1 log log1p sigmoid sin cos tan sinh cosh tanh asinh acosh atanh asin acos atan sqrt rsqrt cbrt erf \
                 erfc erf_inv";
    let mut rng = Rng(29);
    let mut unlike = Vec::new();
    for (dtype, name) in dtypes.iter().flat_map(|dtype| {
        let names = names.split_whitespace().step_by(every);
        names.map(move |name| (*dtype, name))
    }) {
        let spec = (dtype, vec![1 << 16]);
        let [a, b] = [0; 2].map(|_| upload(&runtime, &spec, &mut rng, Values::Finite));
        let steps = [
            op("multiply", &[0, 1], dtype, &spec.1),
            op(name, &[2], dtype, &spec.1),
            op("subtract", &[3, 0], dtype, &spec.1),
        ];
        let program = Program::new(2, steps, [3, 4]).unwrap();
        let input = Input {
            spec,
            element: None,
        };
        let fused = fuse(program.clone(), &[input.clone(), input]).unwrap();
        assert_eq!(fused.steps().len(), 1);
        let [apart, one] = [&program, &fused].map(|program| {
            let ran = runtime.run_program(program, &[&a, &b]).unwrap();
            [0, 1].map(|result| download(&runtime, &ran.results[result]))
        });
        for (apart, one) in apart.iter().zip(&one) {
            let size = dtype.size() as usize;
            let pairs = apart.chunks(size).zip(one.chunks(size));
            let differ = pairs.filter(|(apart, one)| !alike(dtype, apart, one));
            match differ.count() {
                0 => {}
                count => unlike.push(format!("{name} of {dtype}: {count}")),
            }
        }
    }
    assert_eq!(unlike, [""; 0]);
}

/// Nor must it show that operands are the same: a NaN over itself is none.
#[test]
fn values_beside_themselves_give_the_bits_of_two_in_memory() {
    let folder = Folder::new();
    let runtime = open(&folder, &["elementwise"], "");
    let mut rng = Rng(23);
    for dtype in [DType::F32, DType::F64, DType::F16, DType::BF16] {
        let shape = [512];
        let x = upload(
            &runtime,
            &(dtype, shape.to_vec()),
            &mut rng,
            Values::Special,
        );
        let y = runtime
            .upload(dtype, &shape, &download(&runtime, &x))
            .unwrap();
        for name in [
            "subtract",
            "divide",
            "remainder",
            "equal",
            "less_equal",
            "max",
            "pow",
            "atan2",
        ] {
            let gives = match name {
                "equal" | "less_equal" => DType::U8,
                _ => dtype,
            };
            let steps = |other| {
                [
                    op(name, &[0, other], gives, &shape),
                    op("abs", &[2], gives, &shape),
                ]
            };
            let input = Input {
                spec: (dtype, shape.to_vec()),
                element: None,
            };
            let apart = Program::new(2, steps(1), [3]).unwrap();
            let one = fuse(
                Program::new(2, steps(0), [3]).unwrap(),
                &[input.clone(), input],
            )
            .unwrap();
            assert_eq!(one.steps().len(), 1);
            let [apart, one] = [&apart, &one].map(|program| {
                let ran = runtime.run_program(program, &[&x, &y]).unwrap();
                download(&runtime, &ran.results[0])
            });
            assert_eq!(apart, one, "{name} of {dtype}");
        }
    }
}

/// What is chosen by a comparison is not the least or greatest, as which a compiler may know it: neither of these is a NaN.
#[test]
fn choices_by_comparisons_give_the_bits_of_choices_by_truths_in_memory() {
    let folder = Folder::new();
    let runtime = open(&folder, &["elementwise"], "");
    let mut rng = Rng(31);
    for dtype in [DType::F32, DType::F64, DType::F16] {
        let shape = [512];
        let spec = (dtype, shape.to_vec());
        let [a, b] = [0; 2].map(|_| upload(&runtime, &spec, &mut rng, Values::Special));
        let input = Input {
            spec,
            element: None,
        };
        for comparison in ["less", "less_equal", "greater", "greater_equal"] {
            for chosen in [[2, 0, 1], [2, 1, 0]] {
                let steps = [
                    op(comparison, &[0, 1], DType::U8, &shape),
                    op("select", &chosen, dtype, &shape),
                ];
                let program = Program::new(2, steps, [3]).unwrap();
                let fused = fuse(program.clone(), &[input.clone(), input.clone()]).unwrap();
                assert_eq!(fused.steps().len(), 1);
                let [apart, one] = [&program, &fused].map(|program| {
                    let ran = runtime.run_program(program, &[&a, &b]).unwrap();
                    download(&runtime, &ran.results[0])
                });
                assert_eq!(apart, one, "{comparison} of {dtype}, {chosen:?}");
            }
        }
    }
}
