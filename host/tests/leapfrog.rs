//! The leapfrog pack on a device, row by row against the host kernels, and what chains promise beyond one request.

mod folder;

use folder::Folder;
use nx_vulkan_host::{
    Config, DType, Kind, Result, Runtime, Tensor,
    kernels::{self, FAMILIES, Family, Out, View},
};
use std::{
    env, fs,
    path::Path,
    process::Command,
    sync::{Arc, OnceLock},
};

/// A runtime that finds this pack and no other.
fn runtime() -> Arc<Runtime> {
    static OPEN: OnceLock<Arc<Runtime>> = OnceLock::new();
    let open = || {
        let folder = Folder::new();
        let own = env::current_exe().unwrap();
        let target = own.ancestors().nth(3).unwrap();
        let built = Command::new(env!("CARGO"))
            .args(["build", "--release", "--quiet"])
            .arg("--package=nx-vulkan-pack-leapfrog")
            .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(".."))
            .env("CARGO_TARGET_DIR", target)
            .status()
            .unwrap();
        assert!(built.success(), "the pack does not build");
        let (prefix, suffix) = (env::consts::DLL_PREFIX, env::consts::DLL_SUFFIX);
        let file = format!("{prefix}nx_vulkan_pack_leapfrog{suffix}");
        let to = folder.write(&format!("packs/{file}"), "");
        fs::copy(target.join("release").join(file), to).unwrap();
        let config = Config {
            packs: vec![folder.join("packs")],
            cache_dir: Some(folder.join("cache")),
            validation: true,
            ..Config::from_env()
        };
        Runtime::open(&config).unwrap()
    };
    OPEN.get_or_init(open).clone()
}

/// A problem of one family. States, inverse masses and momenta have another scale in every coordinate.
#[derive(Debug, Clone)]
struct Problem {
    family: &'static Family,
    dtype: DType,
    chains: usize,
    steps: usize,
    extent: usize,
    scalars: Vec<f64>,
    q: Vec<f64>,
    p: Vec<f64>,
    inv_mass: Vec<f64>,
}

const PARAMETERS: [(&str, &[f64]); 9] = [
    ("leapfrog_normal", &[0.5, 2.0]),
    ("leapfrog_exponential", &[1.5]),
    ("leapfrog_studentt", &[-0.5, 1.5, 3.0]),
    ("leapfrog_cauchy", &[0.25, 1.25]),
    ("leapfrog_halfnormal", &[1.75]),
    ("leapfrog_weibull", &[1.5, 2.0]),
    ("leapfrog_beta", &[2.5, 1.5]),
    ("leapfrog_gamma", &[3.5, 2.0]),
    ("leapfrog_lognormal", &[-0.25, 0.75]),
];

fn problems(dtype: DType, [chains, steps, extent]: [usize; 3]) -> impl Iterator<Item = Problem> {
    FAMILIES.iter().map(move |family| {
        let row = PARAMETERS.iter().find(|row| row.0 == family.op).unwrap();
        let mut state = 0x9e37_79b9_u32 ^ (chains * 7919 + steps * 104_729 + extent) as u32;
        let mut draw = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            f64::from(state >> 8) / f64::from(1 << 23) - 1.0
        };
        let round = |x: f64| match dtype {
            DType::F32 => f64::from(x as f32),
            _ => x,
        };
        let count = chains * extent;
        // Rounding errors of the positions become errors of the phase, which grow with the time that a chain takes: a
        // long one has smaller steps.
        let epsilon = 0.04f64.min(10.0 / steps as f64);
        let inv_mass = |i: usize| round(0.2 + 0.3 * (i % 4) as f64);
        let p = |i: usize, draw: f64| round(draw / inv_mass(i).sqrt());
        Problem {
            family,
            dtype,
            chains,
            steps,
            extent,
            scalars: [epsilon].iter().chain(row.1).map(|x| round(*x)).collect(),
            q: (0..count)
                .map(|i| round(draw() * (0.3 + 0.2 * (i % 5) as f64)))
                .collect(),
            p: (0..count).map(|i| p(i, draw())).collect(),
            inv_mass: (0..count).map(inv_mass).collect(),
        }
    })
}

/// q_chain, p_chain, grad_chain and logp_chain.
type Chains = [Vec<f64>; 4];

impl Problem {
    fn outputs(&self) -> Vec<(DType, Vec<u64>)> {
        let [chains, steps, extent] = [self.chains, self.steps, self.extent].map(|n| n as u64);
        let chain = (self.dtype, vec![chains, steps, extent]);
        let logp = (self.dtype, vec![chains, steps]);
        vec![chain.clone(), chain.clone(), chain, logp]
    }

    fn inputs(&self) -> [(Vec<u64>, Vec<u8>); 4] {
        let state = vec![self.chains as u64, self.extent as u64];
        let encoded = |values: &[f64]| encode(self.dtype, values);
        [
            (state.clone(), encoded(&self.q)),
            (state.clone(), encoded(&self.p)),
            (state, encoded(&self.inv_mass)),
            (vec![self.scalars.len() as u64], encoded(&self.scalars)),
        ]
    }

    /// Runs on the device; another server than the pack is a failure.
    fn on_device(&self) -> Chains {
        let runtime = runtime();
        let inputs = self.inputs();
        let tensors =
            inputs.map(|(shape, bytes)| runtime.upload(self.dtype, &shape, &bytes).unwrap());
        self.run(&runtime, &tensors.each_ref()).unwrap()
    }

    fn run(&self, runtime: &Runtime, inputs: &[&Tensor; 4]) -> Result<Chains> {
        let ran = runtime.run_reported(self.family.op, inputs, &self.outputs(), &[])?;
        assert_eq!(&*ran.served_by, format!("leapfrog/{}", self.family.op));
        let read = |i: usize| {
            decode(
                self.dtype,
                &runtime.download(&ran.outputs[i], None).unwrap(),
            )
        };
        Ok([read(0), read(1), read(2), read(3)])
    }

    fn on_host(&self) -> Chains {
        let inputs = self.inputs();
        let strides = |shape: &[u64]| match shape {
            [_, extent] => vec![*extent as i64, 1],
            _ => vec![1],
        };
        let strides: Vec<Vec<i64>> = inputs.iter().map(|(shape, _)| strides(shape)).collect();
        let views: Vec<View> = inputs
            .iter()
            .zip(&strides)
            .map(|((shape, bytes), strides)| View {
                dtype: self.dtype,
                shape,
                strides,
                offset: 0,
                bytes,
            })
            .collect();
        let outputs = self.outputs();
        let size = |shape: &[u64]| (shape.iter().product::<u64>() * self.dtype.size()) as usize;
        let mut bytes: Vec<Vec<u8>> = outputs
            .iter()
            .map(|(_, shape)| vec![0; size(shape)])
            .collect();
        let mut outs: Vec<Out> = outputs
            .iter()
            .zip(&mut bytes)
            .map(|((dtype, shape), bytes)| Out {
                dtype: *dtype,
                shape,
                bytes,
            })
            .collect();
        kernels::run(self.family.op, &views, &mut outs, &[]).unwrap();
        let read = |i: usize| decode(self.dtype, &bytes[i]);
        [read(0), read(1), read(2), read(3)]
    }

    /// The problem of one chain.
    fn chain(&self, chain: usize) -> Problem {
        let own = |all: &[f64]| all[chain * self.extent..][..self.extent].to_vec();
        Problem {
            chains: 1,
            q: own(&self.q),
            p: own(&self.p),
            inv_mass: own(&self.inv_mass),
            ..self.clone()
        }
    }

    /// The largest error of `got` in a result whose rows have `extent` elements. It is relative to the largest magnitude
    /// that the quantity has in its chain: along a chain every one of them crosses zero.
    fn error(&self, got: &[f64], expected: &[f64], extent: usize) -> f64 {
        let rows = self.steps * extent;
        let chains = got.chunks_exact(rows).zip(expected.chunks_exact(rows));
        let error = |(got, expected): (&[f64], &[f64])| {
            let scale = expected.iter().fold(0f64, |scale, x| scale.max(x.abs()));
            let errors = got.iter().zip(expected).map(|(a, b)| (a - b).abs() / scale);
            errors.fold(0.0, |a: f64, b| if b > a || b.is_nan() { b } else { a })
        };
        chains
            .map(error)
            .fold(0.0, |a: f64, b| if b > a || b.is_nan() { b } else { a })
    }

    /// The errors of all four results.
    fn errors(&self, got: &Chains, expected: &Chains) -> [f64; 4] {
        let extents = [self.extent, self.extent, self.extent, 1];
        [0, 1, 2, 3].map(|i| self.error(&got[i], &expected[i], extents[i]))
    }
}

fn encode(dtype: DType, values: &[f64]) -> Vec<u8> {
    match dtype {
        DType::F32 => values
            .iter()
            .flat_map(|x| (*x as f32).to_ne_bytes())
            .collect(),
        _ => values.iter().flat_map(|x| x.to_ne_bytes()).collect(),
    }
}

fn decode(dtype: DType, bytes: &[u8]) -> Vec<f64> {
    match dtype {
        DType::F32 => {
            let words = bytes.as_chunks::<4>().0.iter();
            words.map(|word| f32::from_ne_bytes(*word).into()).collect()
        }
        _ => {
            let words = bytes.as_chunks::<8>().0.iter();
            words.map(|word| f64::from_ne_bytes(*word)).collect()
        }
    }
}

const TYPES: [(DType, f64); 2] = [(DType::F32, 1e-5), (DType::F64, 1e-13)];

#[test]
fn every_row_is_that_of_the_host_kernel() {
    for (dtype, allowed) in TYPES {
        let mut worst = [
            (0.0, String::new()),
            (0.0, String::new()),
            (0.0, String::new()),
            (0.0, String::new()),
        ];
        for steps in [1, 2, 32, 1024] {
            for extent in [1, 3, 256, 257, 1000] {
                let chains = if steps * extent < 100_000 { 3 } else { 1 };
                for problem in problems(dtype, [chains, steps, extent]) {
                    let errors = problem.errors(&problem.on_device(), &problem.on_host());
                    let text =
                        format!("{} {dtype}[{chains}, {steps}, {extent}]", problem.family.op);
                    for (worst, error) in worst.iter_mut().zip(errors) {
                        if error > worst.0 {
                            *worst = (error, text.clone());
                        }
                    }
                    assert!(
                        errors.iter().all(|error| *error <= allowed),
                        "{text}: {errors:?}"
                    );
                }
            }
        }
        eprintln!("{dtype}: largest errors of q, p, gradient, logp: {worst:?}");
    }
}

/// The comparison above is one that can fail: rows of another step, another sign, a constant left out.
#[test]
fn wrong_rows_are_told_from_right_ones() {
    for problem in problems(DType::F64, [2, 32, 3]) {
        let right = problem.on_device();
        for result in 0..4 {
            let row = if result == 3 { 1 } else { 3 };
            let mut late = right.clone();
            late[result].rotate_right(row);
            assert!(problem.errors(&late, &right)[result] > 1e-4, "{problem:?}");
        }
        let mut without = right.clone();
        without[3].iter_mut().for_each(|logp| *logp += 1e-10);
        assert!(problem.errors(&without, &right)[3] > 1e-13);
    }
}

#[test]
fn the_first_rows_of_a_longer_chain_are_the_shorter_chain() {
    for (dtype, _) in TYPES {
        for long in problems(dtype, [2, 40, 259]) {
            let short = Problem {
                steps: 7,
                ..long.clone()
            };
            let (of_long, of_short) = (long.on_device(), short.on_device());
            for (result, extent) in [(0, 259), (1, 259), (2, 259), (3, 1)] {
                for chain in 0..2 {
                    let first = &of_long[result][chain * 40 * extent..][..7 * extent];
                    let all = &of_short[result][chain * 7 * extent..][..7 * extent];
                    assert_eq!(bits(first), bits(all), "{} {dtype}", long.family.op);
                }
            }
        }
    }
}

#[test]
fn a_batch_is_its_chains_and_a_repetition_has_the_same_bits() {
    for (dtype, _) in TYPES {
        for problem in problems(dtype, [5, 9, 70]) {
            let (batch, again) = (problem.on_device(), problem.on_device());
            for chain in 0..5 {
                let single = problem.chain(chain).on_device();
                for (result, rows) in [(0, 9 * 70), (1, 9 * 70), (2, 9 * 70), (3, 9)] {
                    let own = &batch[result][chain * rows..][..rows];
                    assert_eq!(
                        bits(own),
                        bits(&single[result]),
                        "{} {dtype}",
                        problem.family.op
                    );
                }
            }
            for (batch, again) in batch.iter().zip(&again) {
                assert_eq!(bits(batch), bits(again), "{} {dtype}", problem.family.op);
            }
        }
    }
}

fn bits(values: &[f64]) -> Vec<u64> {
    values.iter().map(|x| x.to_bits()).collect()
}

/// The largest change of energy along a chain of `steps` steps over a fixed time.
fn energy_error(problem: &Problem, steps: usize) -> f64 {
    let epsilon = 1.6 / steps as f64;
    let with = |epsilon: f64, steps: usize| {
        let mut scaled = Problem {
            steps,
            ..problem.clone()
        };
        scaled.scalars[0] = epsilon;
        scaled.on_device()
    };
    let kinetic = |p: &[f64]| -> f64 {
        p.iter()
            .zip(&problem.inv_mass)
            .map(|(p, inv_mass)| 0.5 * p * p * inv_mass)
            .sum()
    };
    // A step of length 0 gives the log density at the start.
    let start = with(0.0, 1)[3][0] - kinetic(&problem.p);
    let chain = with(epsilon, steps);
    let rows = chain[1].chunks_exact(problem.extent).zip(&chain[3]);
    rows.map(|(p, logp)| (logp - kinetic(p) - start).abs())
        .fold(0.0, f64::max)
}

#[test]
fn the_error_of_the_energy_shrinks_as_the_square_of_the_step() {
    for problem in problems(DType::F64, [1, 1, 5]) {
        let (coarse, fine) = (energy_error(&problem, 64), energy_error(&problem, 128));
        let ratio = coarse / fine;
        assert!(
            (3.8..4.2).contains(&ratio),
            "{}: {coarse} {fine}",
            problem.family.op
        );
    }
}

#[test]
fn a_negative_step_goes_back() {
    for problem in problems(DType::F64, [2, 50, 33]) {
        let there = problem.on_device();
        let last = |all: &[f64]| -> Vec<f64> {
            let chains = all.chunks_exact(50 * 33);
            chains.flat_map(|chain| chain[49 * 33..].to_vec()).collect()
        };
        let mut back = Problem {
            q: last(&there[0]),
            p: last(&there[1]),
            ..problem.clone()
        };
        back.scalars[0] = -problem.scalars[0];
        let back = back.on_device();
        for (got, start) in [(last(&back[0]), &problem.q), (last(&back[1]), &problem.p)] {
            let error = got
                .iter()
                .zip(start)
                .map(|(a, b)| (a - b).abs())
                .fold(0.0, f64::max);
            assert!(error < 1e-11, "{}: {error}", problem.family.op);
        }
    }
}

#[test]
fn parameters_out_of_range_give_nan() {
    for (dtype, _) in TYPES {
        for mut problem in problems(dtype, [1, 3, 2]) {
            for index in problem.family.positive..problem.family.parameters.len() {
                for bad in [0.0, -2.0, f64::NAN] {
                    let good = std::mem::replace(&mut problem.scalars[1 + index], bad);
                    for results in [problem.on_device(), problem.on_host()] {
                        let all = results.iter().flatten();
                        assert!(
                            all.clone().all(|x| x.is_nan()),
                            "{} {bad}",
                            problem.family.op
                        );
                    }
                    problem.scalars[1 + index] = good;
                }
            }
        }
    }
}

#[test]
fn extreme_states_and_parameters_end_and_are_those_of_the_host() {
    for (dtype, _) in TYPES {
        let far = if dtype == DType::F32 { 1e30 } else { 1e250 };
        for mut problem in problems(dtype, [1, 4, 6]) {
            problem.q = vec![far, -far, f64::INFINITY, f64::NAN, 60.0, -60.0];
            let (got, expected) = (problem.on_device(), problem.on_host());
            for (got, expected) in got[..3].iter().zip(&expected) {
                for (a, b) in got.iter().zip(expected) {
                    let same = a == b || a.is_nan() && b.is_nan();
                    let close = (a - b).abs() <= 1e-4 * b.abs();
                    assert!(same || close, "{} {dtype}: {a} {b}", problem.family.op);
                }
            }
            assert!(got[3].iter().all(|logp| logp.is_nan()));
        }
    }
}

#[test]
fn views_are_read_in_place() {
    let runtime = runtime();
    for problem in problems(DType::F64, [4, 6, 4]) {
        let inputs = problem.inputs();
        let mut tensors =
            inputs.map(|(shape, bytes)| runtime.upload(problem.dtype, &shape, &bytes).unwrap());
        let masses = runtime.upload(
            problem.dtype,
            &[4],
            &encode(problem.dtype, &[0.3, 0.5, 0.7, 1.1]),
        );
        tensors[0] = tensors[0].transpose(&[1, 0]).unwrap();
        tensors[1] = tensors[1].reverse(&[0, 1]).unwrap();
        tensors[2] = masses.unwrap().broadcast(&[4, 4], &[1]).unwrap();
        let views = problem.run(&runtime, &tensors.each_ref()).unwrap();
        let packed = tensors
            .each_ref()
            .map(|tensor| runtime.copy(tensor).unwrap());
        let copies = problem.run(&runtime, &packed.each_ref()).unwrap();
        for (view, copy) in views.iter().zip(&copies) {
            assert_eq!(bits(view), bits(copy), "{}", problem.family.op);
        }
    }
}

#[test]
fn another_step_size_makes_no_other_plan() {
    let runtime = runtime();
    for mut problem in problems(DType::F64, [1, 11, 13]) {
        problem.on_device();
        let plans = runtime.stats().plans;
        problem.scalars.iter_mut().for_each(|scalar| *scalar *= 0.9);
        problem.on_device();
        // Other tests run beside this one and make plans of their own, of other shapes.
        let inputs = problem.inputs();
        let tensors =
            inputs.map(|(shape, bytes)| runtime.upload(problem.dtype, &shape, &bytes).unwrap());
        let cached = runtime
            .try_run_cached(
                problem.family.op,
                &tensors.each_ref(),
                &problem.outputs(),
                &[],
            )
            .unwrap();
        assert!(cached.is_some() && plans > 0);
    }
}

#[test]
fn broken_requests_are_errors_that_name_op_types_and_shapes() {
    let runtime = runtime();
    let f64s = |shape: &[u64]| runtime.zeros(DType::F64, shape).unwrap();
    let (state, scalars) = (f64s(&[2, 3]), f64s(&[3]));
    let outputs = |steps: u64| {
        let chain = (DType::F64, vec![2, steps, 3]);
        vec![
            chain.clone(),
            chain.clone(),
            chain,
            (DType::F64, vec![2, steps]),
        ]
    };
    let singles = runtime.zeros(DType::F32, &[2, 3]).unwrap();
    let integers = runtime.zeros(DType::S32, &[2, 3]).unwrap();
    let flat = f64s(&[6]);
    let few = f64s(&[2]);
    let cases: [(&str, [&Tensor; 4], u64); 6] = [
        ("f32", [&state, &singles, &state, &scalars], 5),
        ("f32", [&integers, &integers, &integers, &scalars], 5),
        ("{chains, d}", [&flat, &state, &state, &scalars], 5),
        (
            "must have shape [2, 3]",
            [&state, &state, &flat, &scalars],
            5,
        ),
        ("epsilon, mu, sigma", [&state, &state, &state, &few], 5),
        ("at least 1", [&state, &state, &state, &scalars], 0),
    ];
    for (reason, inputs, steps) in cases {
        let error = runtime
            .run("leapfrog_normal", &inputs, &outputs(steps), &[])
            .unwrap_err();
        let message = error.to_string();
        assert_eq!(error.kind(), Kind::BadInput, "{message}");
        let named = ["leapfrog_normal", "f64[", reason];
        assert!(
            named.iter().all(|part| message.contains(part)),
            "{reason:?}: {message}"
        );
    }
    let fine = runtime.run(
        "leapfrog_normal",
        &[&state, &state, &state, &scalars],
        &outputs(5),
        &[],
    );
    assert_eq!(fine.unwrap().len(), 4);
}
