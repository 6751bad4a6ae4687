//! Products that take along what follows them, beside sums in f64 that this file makes.

use crate::{folder::Folder, packs::copied};
use nx_vulkan_host::{
    Attr, Config, DType, DeviceChoice, Program, Request, Runtime, Spec, Step, Tensor, Value,
    device,
    fusion::{Input, fuse, take_along},
};
use nx_vulkan_ops::values::Rng;
use std::sync::Arc;

fn open(folder: &Folder) -> Arc<Runtime> {
    open_with(folder, &["elementwise", "matmul"])
}

/// A runtime with these packs of ours.
pub(crate) fn open_with(folder: &Folder, packs: &[&str]) -> Arc<Runtime> {
    let device = std::env::var("NX_VULKAN_DEVICE").unwrap_or_else(|_| "llvmpipe".to_owned());
    Runtime::open(&Config {
        device: DeviceChoice::parse(&device),
        packs: vec![copied(folder, packs)],
        registry: Some(folder.write("registry.toml", "schema = 1\n")),
        cache_dir: Some(folder.join("cache")),
        validation: true,
        ..Config::from_env()
    })
    .unwrap()
}

/// Random numbers of a type, and what they are.
pub(crate) fn random(
    runtime: &Runtime,
    (dtype, shape): &Spec,
    rng: &mut Rng,
) -> (Tensor, Vec<f64>) {
    let count = shape.iter().product::<u64>();
    let bytes: Vec<u8> = (0..count)
        .flat_map(|_| rng.between(-2.0, 2.0).to_ne_bytes())
        .collect();
    let exact = runtime.upload(DType::F64, shape, &bytes).unwrap();
    let tensor = as_type(runtime, &exact, *dtype);
    let numbers = numbers(runtime, &tensor);
    (tensor, numbers)
}

fn as_type(runtime: &Runtime, tensor: &Tensor, dtype: DType) -> Tensor {
    let outputs = vec![(dtype, tensor.shape().to_vec())];
    let request = Request::new("as_type", vec![tensor], outputs, &[]);
    runtime.run(&request).unwrap().remove(0)
}

/// What the elements of a tensor are.
pub(crate) fn numbers(runtime: &Runtime, tensor: &Tensor) -> Vec<f64> {
    let exact = as_type(runtime, tensor, DType::F64);
    let bytes = runtime.download(&exact, None).unwrap();
    let (numbers, _) = bytes.as_chunks();
    numbers.iter().map(|x| f64::from_ne_bytes(*x)).collect()
}

/// An op that may follow: its name, and what it makes of a sum and of an element of another operand.
type Follower = (&'static str, fn(f64, f64) -> f64);
const FOLLOWERS: [Follower; 5] = [
    ("add", |x, y| x + y),
    ("subtract", |x, y| x - y),
    ("multiply", |x, y| x * y),
    ("max", f64::max),
    ("min", f64::min),
];

#[test]
fn products_with_what_follows_them_are_what_they_are_by_themselves() {
    let folder = Folder::new();
    let runtime = open(&folder);
    let (seeds, most) = match runtime.device().summary().kind {
        "cpu" => (10, 70),
        _ => (200, 700),
    };
    for seed in 0..seeds {
        let mut rng = Rng(seed * 0x9e37_79b9 + 1);
        let dtype = rng.pick(&[DType::F32, DType::BF16, DType::F16, DType::F64]);
        let [m, k, n] = [0; 3].map(|_| 1 + rng.below(most));
        let shape = vec![m, n];
        let mut specs: Vec<Spec> = vec![(dtype, vec![m, k]), (dtype, vec![k, n])];
        let product = [
            ("batch_a", None),
            ("batch_b", None),
            ("contract_a", Some(1)),
            ("contract_b", Some(0)),
        ];
        let attrs = product.map(|(name, axis)| Attr::ints(name, Vec::from_iter(axis)));
        let followers: Vec<Follower> = (0..1 + rng.below(3))
            .map(|_| rng.pick(&FOLLOWERS))
            .collect();
        // All of them rows, columns, elements, or one.
        for _ in &followers {
            let shapes = [vec![n], vec![m, 1], shape.clone(), vec![]];
            specs.push((dtype, shapes[rng.below(4) as usize].clone()));
        }
        let inputs = specs.len() as Value;
        let output = vec![(dtype, shape.clone())];
        let dot = Request::new("dot", vec![0, 1], output.clone(), attrs.to_vec());
        let mut steps: Vec<Step<'static>> = vec![dot.into()];
        for ((name, _), at) in followers.iter().zip(0..) {
            let operands = vec![inputs + at, 2 + at];
            steps.push(Request::new(*name, operands, output.clone(), &[]).into());
        }
        let last = inputs + followers.len() as Value;
        let program = Program::new(specs.len(), steps, [last]).unwrap();
        let of: Vec<Input> = specs
            .iter()
            .map(|spec| Input {
                spec: spec.clone(),
                element: None,
            })
            .collect();
        let taken = fuse(program, &of)
            .and_then(|fused| take_along(fused, &of))
            .unwrap();
        assert_eq!(taken.steps().len(), 1, "{specs:?}");

        let all: Vec<(Tensor, Vec<f64>)> = specs
            .iter()
            .map(|spec| random(&runtime, spec, &mut rng))
            .collect();
        let tensors: Vec<&Tensor> = all.iter().map(|(tensor, _)| tensor).collect();
        let ran = runtime.run_program(&taken, &tensors).unwrap();
        let given = numbers(&runtime, &ran.results[0]);
        let epsilon = match dtype {
            DType::F64 => 1e-13,
            DType::F32 => 2e-5,
            DType::F16 => 2e-3,
            _ => 1e-2,
        };
        let (a, b) = (&all[0].1, &all[1].1);
        for (at, given) in given.into_iter().enumerate() {
            let (row, column) = (at / n as usize, at % n as usize);
            let terms =
                (0..k as usize).map(|i| a[row * k as usize + i] * b[i * n as usize + column]);
            let (mut sum, mut size) =
                terms.fold((0.0, 1.0), |(sum, size), x| (sum + x, size + x.abs()));
            for ((_, follow), ((_, shape), (_, numbers))) in
                followers.iter().zip(specs[2..].iter().zip(&all[2..]))
            {
                let other = match shape[..] {
                    [] => numbers[0],
                    [_] => numbers[column],
                    [_, 1] => numbers[row],
                    _ => numbers[at],
                };
                sum = follow(sum, other);
                size = 2.0 * size + 2.0 * other.abs();
            }
            assert!(
                (given - sum).abs() <= epsilon * size,
                "{seed}: {given} for {sum} at {row}, {column} of {:?}",
                taken.steps()
            );
        }
    }
    assert_eq!(device::validation_messages(), [""; 0]);
}
