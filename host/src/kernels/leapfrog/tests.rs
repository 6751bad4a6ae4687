//! Tests of the leapfrog kernels: densities against published formulas, numeric derivatives and integrals; steps by hand.

use super::super::{Desc, Out, View, check, run};
use super::density::{Density, FAMILIES, Family};
use super::real::{lbeta, lgamma_half_step, lgamma_peak};
use nx_vulkan_abi::dtype::DType;
use nx_vulkan_abi::layout::contiguous_strides;

/// Family, parameters, z, log density and its derivative, computed with 80 digits.
const REFERENCE: &[(&str, &[f64], f64, f64, f64)] = &[
    (
        "leapfrog_normal",
        &[0.5, 2.0],
        -3.5,
        -3.612085713764618,
        1.0,
    ),
    (
        "leapfrog_normal",
        &[0.5, 2.0],
        0.125,
        -1.629663838764618,
        0.09375,
    ),
    (
        "leapfrog_normal",
        &[0.5, 2.0],
        1.75,
        -1.807398213764618,
        -0.3125,
    ),
    (
        "leapfrog_exponential",
        &[1.5],
        -3.5,
        -3.1398309670253135,
        0.9547039248665222,
    ),
    (
        "leapfrog_exponential",
        &[1.5],
        0.125,
        -1.169257571492075,
        -0.6997226796002395,
    ),
    (
        "leapfrog_exponential",
        &[1.5],
        1.75,
        -6.476438905900431,
        -7.631904014008596,
    ),
    (
        "leapfrog_studentt",
        &[-0.5, 1.5, 3.0],
        -3.5,
        -3.1009496785060815,
        0.7619047619047619,
    ),
    (
        "leapfrog_studentt",
        &[-0.5, 1.5, 3.0],
        0.125,
        -1.518869563031863,
        -0.350109409190372,
    ),
    (
        "leapfrog_studentt",
        &[-0.5, 1.5, 3.0],
        1.75,
        -2.5255855336025195,
        -0.7619047619047619,
    ),
    (
        "leapfrog_cauchy",
        &[0.25, 1.25],
        -3.5,
        -3.6704585301576556,
        0.48,
    ),
    (
        "leapfrog_cauchy",
        &[0.25, 1.25],
        0.125,
        -1.377823768016778,
        0.15841584158415842,
    ),
    (
        "leapfrog_cauchy",
        &[0.25, 1.25],
        1.75,
        -2.2598714764687204,
        -0.7868852459016393,
    ),
    (
        "leapfrog_halfnormal",
        &[1.75],
        -3.5,
        -4.285556019268404,
        0.9997022426234924,
    ),
    (
        "leapfrog_halfnormal",
        &[1.75],
        0.125,
        -0.8700439433046794,
        0.5807263945509415,
    ),
    (
        "leapfrog_halfnormal",
        &[1.75],
        1.75,
        -4.442011541999303,
        -9.813208802838307,
    ),
    (
        "leapfrog_weibull",
        &[1.5, 2.0],
        -3.5,
        -5.886110940653984,
        1.4972170831166534,
    ),
    (
        "leapfrog_weibull",
        &[1.5, 2.0],
        0.125,
        -0.8732224572507116,
        0.8602998082215629,
    ),
    (
        "leapfrog_weibull",
        &[1.5, 2.0],
        1.75,
        -2.8899096719121573,
        -5.820981013770606,
    ),
    (
        "leapfrog_beta",
        &[2.5, 1.5],
        -3.5,
        -7.241142836700101,
        2.3827510769945746,
    ),
    (
        "leapfrog_beta",
        &[2.5, 1.5],
        0.125,
        -1.0900373048782952,
        0.37516250650497496,
    ),
    (
        "leapfrog_beta",
        &[2.5, 1.5],
        1.75,
        -1.6380377653619678,
        -0.9078112078732421,
    ),
    (
        "leapfrog_gamma",
        &[3.5, 2.0],
        -3.5,
        -11.085353237231903,
        3.439605233155363,
    ),
    (
        "leapfrog_gamma",
        &[3.5, 2.0],
        0.125,
        -0.6037553765209183,
        1.2337030938663474,
    ),
    (
        "leapfrog_gamma",
        &[3.5, 2.0],
        1.75,
        -4.159163822398726,
        -8.009205352011461,
    ),
    (
        "leapfrog_lognormal",
        &[-0.25, 0.75],
        -3.5,
        -10.02014534964178,
        5.777777777777778,
    ),
    (
        "leapfrog_lognormal",
        &[-0.25, 0.75],
        0.125,
        -0.7562564607528918,
        -0.6666666666666666,
    ),
    (
        "leapfrog_lognormal",
        &[-0.25, 0.75],
        1.75,
        -4.186812016308448,
        -3.5555555555555554,
    ),
    (
        "leapfrog_studentt",
        &[0.0, 1.0, 2.0],
        1e+200,
        -1381.5510557964274,
        -3e-200,
    ),
    (
        "leapfrog_studentt",
        &[0.0, 2.0, 10000000.0],
        3.0,
        -2.7370857247021245,
        -0.7499999062500211,
    ),
    (
        "leapfrog_cauchy",
        &[0.0, 1.0],
        -1e+180,
        -830.0753633637058,
        2e-180,
    ),
    (
        "leapfrog_beta",
        &[2.0, 3.0],
        800.0,
        -2397.515093350212,
        -3.0,
    ),
    (
        "leapfrog_beta",
        &[2.0, 3.0],
        -800.0,
        -1597.515093350212,
        2.0,
    ),
    (
        "leapfrog_beta",
        &[1.0, 1000000.0],
        -13.0,
        -1.444818554802968,
        -1.2603265582278724,
    ),
    (
        "leapfrog_gamma",
        &[1000000.0, 2.0],
        13.1,
        -242.2178185864767,
        22115.17076908023,
    ),
    (
        "leapfrog_weibull",
        &[30.0, 0.001],
        -6.9,
        2.3719054662015058,
        -7.8585085477425025,
    ),
];

/// Argument and value with 60 digits, rounded once.
const HALF_STEP: &[(f64, f64)] = &[
    (9.999999747378752e-06, -10.940574410086423),
    (0.009999999776482582, -4.046506082161297),
    (0.25, -1.084741573266782),
    (0.5, -0.5723649429247001),
    (1.0, -0.12078223763524522),
    (1.5, 0.12078223763524522),
    (2.5, 0.40846431008702616),
    (3.9000000953674316, 0.6485231571872244),
    (4.0, 0.6619771016143872),
    (4.099999904632568, 0.6750799469393112),
    (7.699999809265137, 1.0043877368546823),
    (10.0, 1.1387977393222941),
    (15.899999618530273, 1.3752992013843337),
    (16.0, 1.378483131199923),
    (16.100000381469727, 1.3816469194493248),
    (30.0, 1.6964322170013992),
    (1000.0, 3.453752639496277),
    (1000000.0, 6.907755153982137),
    (999999995904.0, 13.815510555916148),
];
/// As [`HALF_STEP`].
const PEAK: &[(f64, f64)] = &[
    (9.999999747378752e-06, -11.513044847409837),
    (0.009999999776482582, -4.655531601349677),
    (0.25, -1.8845961149780501),
    (0.5, -1.4189385332046727),
    (1.0, -1.0),
    (1.5, -0.7710201002025082),
    (2.0, -0.6137056388801094),
    (2.9000000953674316, -0.41520845559429487),
    (3.0, -0.3973103145556162),
    (3.0999999046325684, -0.38002855385205697),
    (5.5, -0.0816994603073775),
    (7.900000095367432, 0.10394993799075078),
    (8.0, 0.11037097237327313),
    (8.100000381469727, 0.1167106601942404),
    (30.0, 0.7788824826966523),
    (1000.0, 2.53485577295584),
    (1000000.0, 5.988816662444131),
    (999999995904.0, 12.896572022711519),
];
/// As [`HALF_STEP`], of two arguments.
const LBETA: &[(f64, f64, f64)] = &[
    (
        9.999999747378752e-06,
        9.999999747378752e-06,
        12.206072670627808,
    ),
    (0.5, 0.5, 1.1447298858494002),
    (1.0, 1.0, 0.0),
    (1.0, 2.0, -std::f64::consts::LN_2),
    (2.0, 3.5, -2.7568403652716422),
    (0.009999999776482582, 7.900000095367432, 4.579450772451364),
    (3.0, 7.989999771118164, -5.8827409433454925),
    (4.0, 8.0, -7.1853870155804165),
    (0.009999999776482582, 8.100000381469727, 4.579184659260149),
    (8.0, 8.0, -10.848948661710063),
    (9.0, 0.5, -0.5123655751273182),
    (20.0, 30.0, -33.968820791977386),
    (1.0, 1000000.0, -13.815510557964274),
    (1000000.0, 1000000.0, -1386300.003362921),
    (2.5, 10000000000.0, -57.27994445456572),
    (9.999999747378752e-06, 1000.0, 11.512850645607836),
];

/// Two sets of parameters for each number of them.
fn parameters(family: &Family) -> [Vec<f64>; 2] {
    let near = [0.8, 1.7, 4.5];
    let far = [2.5, 0.6, 1.3];
    [near, far].map(|all| all[..family.parameters.len()].to_vec())
}

fn density(op: &str, parameters: &[f64]) -> Density<f64> {
    Density::new(Family::of(op).unwrap(), parameters)
}

#[test]
fn log_densities_and_gradients_are_those_of_the_formulas() {
    for (op, parameters, z, logp, gradient) in REFERENCE {
        let value = density(op, parameters).at(*z);
        // At a distance of z from the origin, z itself is not known better.
        let allowed = |expected: f64| 4e-15 * expected.abs().max(1e-180) * z.abs().clamp(1.0, 20.0);
        let text = format!("{op} {parameters:?} at {z}: {value:?}");
        // Large parameters multiply the rounding of what they stand before.
        let size = parameters.iter().copied().fold(1.0, f64::max).min(1e3);
        assert!(
            (value.logp - logp).abs() <= size * allowed(*logp),
            "{text} {logp}"
        );
        let slack = size * allowed(*gradient)
            + if *z > 700.0 || *z < -700.0 {
                0.0
            } else {
                4e-15
            };
        assert!(
            (value.gradient - gradient).abs() <= slack,
            "{text} {gradient}"
        );
    }
}

#[test]
fn functions_of_the_gamma_function_do_not_cancel() {
    let close = |got: f64, expected: f64| (got - expected).abs() <= 8e-15 * expected.abs().max(1.0);
    for (x, expected) in HALF_STEP {
        assert!(close(lgamma_half_step(*x), *expected), "half step {x}");
    }
    for (x, expected) in PEAK {
        assert!(
            close(lgamma_peak(*x), *expected),
            "peak {x}: {}",
            lgamma_peak(*x)
        );
    }
    for (a, b, expected) in LBETA {
        assert!(close(lbeta(*a, *b), *expected), "beta {a} {b}");
        assert_eq!(lbeta(*a, *b), lbeta(*b, *a));
    }
}

/// Whether `gradient` is the derivative of `logp` at `z`, by central differences.
fn is_derivative(logp: impl Fn(f64) -> f64, gradient: f64, z: f64) -> bool {
    let h = 1e-5;
    let slope = (logp(z + h) - logp(z - h)) / (2.0 * h);
    (slope - gradient).abs() <= 1e-8 * (1.0 + gradient.abs()) * (1.0 + z.abs().exp())
}

#[test]
fn gradients_are_derivatives_and_wrong_ones_are_caught() {
    for family in FAMILIES {
        for parameters in parameters(family) {
            let density = density(family.op, &parameters);
            for z in [-2.0, -0.7, 0.0, 0.4, 1.3] {
                let value = density.at(z);
                let logp = |z| density.at(z).logp;
                let text = format!("{} {parameters:?} at {z}: {value:?}", family.op);
                assert!(is_derivative(logp, value.gradient, z), "{text}");
                // Without a Jacobian, with the other sign, off by a thousandth.
                for wrong in [
                    value.gradient - 1.0,
                    -value.gradient - 0.1,
                    value.gradient + 1e-3,
                ] {
                    assert!(!is_derivative(logp, wrong, z), "{text} passes as {wrong}");
                }
            }
        }
    }
}

/// The integral over all z = sinh(t), by the trapezoidal rule.
fn integral(logp: impl Fn(f64) -> f64) -> f64 {
    let (step, from) = (1.0 / 256.0, -40.0);
    let term = |i: u32| {
        let t: f64 = from + f64::from(i) * step;
        let density = logp(t.sinh()).exp();
        if density == 0.0 {
            0.0
        } else {
            density * t.cosh()
        }
    };
    (0..=(80 * 256)).map(term).sum::<f64>() * step
}

#[test]
fn densities_integrate_to_one_and_a_lost_constant_is_caught() {
    for family in FAMILIES {
        for parameters in parameters(family) {
            let density = density(family.op, &parameters);
            let whole = integral(|z| density.at(z).logp);
            assert!(
                (whole - 1.0).abs() < 1e-11,
                "{} {parameters:?}: {whole}",
                family.op
            );
            let more = integral(|z| density.at(z).logp + 1e-9);
            assert!((more - 1.0).abs() > 1e-11);
        }
    }
}

#[test]
fn parameters_that_make_no_distribution_give_nan() {
    for family in FAMILIES {
        for index in family.positive..family.parameters.len() {
            for bad in [0.0, -1.0, f64::NAN] {
                let mut parameters = parameters(family)[0].clone();
                parameters[index] = bad;
                let value = density(family.op, &parameters).at(0.3);
                assert!(
                    value.logp.is_nan() && value.gradient.is_nan(),
                    "{}",
                    family.op
                );
            }
        }
    }
}

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

type Shapes = [&'static [u64]; 4];
const STATES: Shapes = [&[2, 3], &[2, 3], &[2, 3], &[3]];
const RESULTS: Shapes = [&[2, 5, 3], &[2, 5, 3], &[2, 5, 3], &[2, 5]];

#[test]
fn broken_requests_are_refused_with_op_types_and_shapes() {
    let refusal = |inputs: &[(DType, &[u64])], outputs: &[(DType, &[u64])]| {
        let desc = |&(dtype, shape): &(DType, &'_ [u64])| (dtype, shape.to_vec());
        let (inputs, outputs): (Vec<_>, Vec<_>) = (
            inputs.iter().map(desc).collect(),
            outputs.iter().map(desc).collect(),
        );
        let of = |all: &[(DType, Vec<u64>)]| -> Vec<Desc<'static>> {
            let leak = |(dtype, shape): &(DType, Vec<u64>)| Desc {
                dtype: *dtype,
                shape: shape.clone().leak(),
            };
            all.iter().map(leak).collect()
        };
        check("leapfrog_normal", &of(&inputs), &of(&outputs), &[])
            .map_err(|error| error.to_string())
    };
    let f64s = |shapes: Shapes| shapes.map(|shape| (DType::F64, shape));
    assert_eq!(refusal(&f64s(STATES), &f64s(RESULTS)), Ok(()));
    let none: Shapes = [&[0, 3], &[0, 3], &[0, 3], &[3]];
    let to_none: Shapes = [&[0, 5, 3], &[0, 5, 3], &[0, 5, 3], &[0, 5]];
    assert_eq!(refusal(&f64s(none), &f64s(to_none)), Ok(()));

    let input = |index: usize, with: (DType, &'static [u64])| {
        let mut inputs = f64s(STATES);
        inputs[index] = with;
        (inputs, f64s(RESULTS))
    };
    let output = |index: usize, with: (DType, &'static [u64])| {
        let mut outputs = f64s(RESULTS);
        outputs[index] = with;
        (f64s(STATES), outputs)
    };
    const F64: DType = DType::F64;
    let cases = [
        (input(0, (F64, &[6])), "q must have shape {chains, d}"),
        (input(1, (F64, &[3, 2])), "p must have shape [2, 3]"),
        (input(2, (F64, &[1, 3])), "inv_mass must have shape [2, 3]"),
        (
            input(3, (F64, &[2])),
            "epsilon, mu, sigma: shape [3], got [2]",
        ),
        (input(1, (DType::F32, &[2, 3])), "all f64"),
        (input(1, (DType::S32, &[2, 3])), "all f64"),
        (
            output(0, (F64, &[2, 3])),
            "q_chain must have shape {chains, K, d}",
        ),
        (
            output(0, (F64, &[2, 4, 3])),
            "p_chain must have shape [2, 4, 3]",
        ),
        (output(2, (F64, &[2, 5, 1])), "grad_chain must have shape"),
        (
            output(3, (F64, &[2, 5, 3])),
            "logp_chain must have shape [2, 5]",
        ),
        (output(3, (DType::F32, &[2, 5])), "all f64"),
    ];
    for ((inputs, outputs), reason) in cases {
        let message = refusal(&inputs, &outputs).unwrap_err();
        assert!(
            message.starts_with("leapfrog_normal of (") && message.contains(reason),
            "{reason:?} is not in: {message}"
        );
    }
    for dtype in [DType::F16, DType::BF16, DType::S32, DType::C64] {
        let all = |shapes: Shapes| shapes.map(|shape| (dtype, shape));
        let message = refusal(&all(STATES), &all(RESULTS)).unwrap_err();
        assert!(
            message.contains("f32") && message.contains(dtype.name()),
            "{message}"
        );
    }
    let zero: Shapes = [&[2, 0, 3], &[2, 0, 3], &[2, 0, 3], &[2, 0]];
    assert!(
        refusal(&f64s(STATES), &f64s(zero))
            .unwrap_err()
            .contains("at least 1")
    );
    let flat: Shapes = [&[2, 0], &[2, 0], &[2, 0], &[3]];
    let to_flat: Shapes = [&[2, 5, 0], &[2, 5, 0], &[2, 5, 0], &[2, 5]];
    assert!(
        refusal(&f64s(flat), &f64s(to_flat))
            .unwrap_err()
            .contains("at least 1")
    );
    assert!(
        refusal(&f64s(STATES)[..3], &f64s(RESULTS))
            .unwrap_err()
            .contains("4 operands, got 3")
    );
    assert!(
        refusal(&f64s(STATES), &f64s(RESULTS)[..1])
            .unwrap_err()
            .contains("4 results, got 1")
    );
}
