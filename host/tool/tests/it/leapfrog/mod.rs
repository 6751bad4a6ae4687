//! The leapfrog pack on a device, row by row against the host kernels, and what chains promise beyond one request.

mod problem;

use nx_vulkan_host::{DType, Kind, Request, Tensor};
use problem::{Problem, encode, problems, runtime};

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
            let chains = all.as_chunks::<{ 50 * 33 }>().0;
            let chains = chains.iter();
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
            .try_run_cached(&Request::new(
                problem.family.op,
                &tensors.each_ref(),
                problem.outputs(),
                &[],
            ))
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
            .run(&Request::new(
                "leapfrog_normal",
                &inputs,
                outputs(steps),
                &[],
            ))
            .unwrap_err();
        let message = error.to_string();
        assert_eq!(error.kind(), Kind::BadInput, "{message}");
        let named = ["leapfrog_normal", "f64[", reason];
        assert!(
            named.iter().all(|part| message.contains(part)),
            "{reason:?}: {message}"
        );
    }
    let fine = runtime.run(&Request::new(
        "leapfrog_normal",
        &[&state, &state, &state, &scalars],
        outputs(5),
        &[],
    ));
    assert_eq!(fine.unwrap().len(), 4);
}
