//! The mathematical functions: published values, and what they do at the ends of their domains.

use half::{bf16, f16};

use super::{binary, unary};
use nx_vulkan_ops::op::Gives;

/// Op, argument, value to 17 digits. The arguments are exact in every float type (NIST DLMF chapters 4 and 7;
/// Abramowitz and Stegun chapters 4 and 7; computed anew with 200 bits).
#[rustfmt::skip]
const VALUES: &[(&str, f64, f64)] = &[
    ("exp", 1.5, 4.4816890703380645),
    ("exp", -2.5, 0.0820849986238988),
    ("exp", 40.0, 2.3538526683702e+17),
    ("expm1", 0.0009765625, 0.0009770394924165351),
    ("expm1", 1.0, 1.7182818284590453),
    ("expm1", -3.0, -0.950212931632136),
    ("log", 3.0, 1.0986122886681098),
    ("log", 0.0078125, -4.852030263919617),
    ("log", 96.0, 4.564348191467836),
    ("log1p", 0.0009765625, 0.0009760859730554589),
    ("log1p", -0.25, -0.2876820724517809),
    ("log1p", 3.0, 1.3862943611198906),
    ("sigmoid", 0.5, 0.6224593312018546),
    ("sigmoid", -30.0, 9.357622968839299e-14),
    ("sigmoid", 6.0, 0.9975273768433652),
    ("cos", 1.0, 0.5403023058681398),
    ("cos", 100.0, 0.8623188722876839),
    ("cos", -2.5, -0.8011436155469337),
    ("sin", 1.0, 0.8414709848078965),
    ("sin", 100.0, -0.5063656411097588),
    ("sin", -2.5, -0.5984721441039565),
    ("tan", 1.0, 1.5574077246549023),
    ("tan", -0.5, -0.5463024898437905),
    ("tan", 100.0, -0.5872139151569291),
    ("cosh", 1.0, 1.5430806348152437),
    ("cosh", -0.25, 1.0314130998795732),
    ("cosh", 8.0, 1490.479161252178),
    ("sinh", 1.0, 1.1752011936438014),
    ("sinh", -0.25, -0.2526123168081683),
    ("sinh", 8.0, 1490.4788257895502),
    ("tanh", 0.5, 0.46211715726000974),
    ("tanh", -0.0078125, -0.007812341058161014),
    ("tanh", 3.0, 0.9950547536867305),
    ("acosh", 1.0078125, 0.12491876251108061),
    ("acosh", 2.0, 1.3169578969248168),
    ("acosh", 96.0, 5.257468244187814),
    ("asinh", 0.5, 0.48121182505960347),
    ("asinh", -0.0078125, -0.007812420529323008),
    ("asinh", 96.0, 5.25752249766017),
    ("atanh", 0.5, 0.5493061443340549),
    ("atanh", -0.0078125, -0.007812658951540421),
    ("atanh", 0.9375, 1.7169936022425731),
    ("acos", 0.25, 1.318116071652818),
    ("acos", -0.75, 2.4188584057763776),
    ("asin", 0.25, 0.25268025514207865),
    ("asin", -0.75, -0.848062078981481),
    ("atan", 2.0, 1.1071487177940904),
    ("atan", -3.0, -1.2490457723982544),
    ("atan", 0.125, 0.12435499454676144),
    ("sqrt", 5.0, 2.23606797749979),
    ("sqrt", 3.0, 1.7320508075688772),
    ("rsqrt", 5.0, 0.4472135954999579),
    ("rsqrt", 3.0, 0.5773502691896257),
    ("cbrt", 2.0, 1.2599210498948732),
    ("cbrt", -3.0, -1.4422495703074083),
    ("erf", 0.5, 0.5204998778130465),
    ("erf", 1.0, 0.8427007929497149),
    ("erf", -2.0, -0.9953222650189527),
    ("erf", 0.0078125, 0.008815282895179188),
    ("erfc", 0.5, 0.4795001221869535),
    ("erfc", 1.0, 0.15729920705028513),
    ("erfc", 3.0, 2.209049699858544e-05),
    ("erfc", -1.0, 1.8427007929497148),
    ("erf_inv", 0.5, 0.4769362762044699),
    ("erf_inv", 0.0078125, 0.006923758491549614),
    ("erf_inv", -0.75, -0.8134198475976185),
    ("erf_inv", 0.99609375, 2.0404520146056093),
];

#[test]
fn f64_is_within_two_units_of_published_values() {
    // erf_inv in f64 is another function, with a test of its own.
    for &(op, x, expected) in VALUES.iter().filter(|row| row.0 != "erf_inv") {
        let got = unary::<f64, f64>(op, &[x])[0];
        let units = got.to_bits().abs_diff(expected.to_bits());
        assert!(
            units <= 2,
            "{op}({x}) is {got:e}, {units} units from {expected:e}"
        );
    }
}

#[test]
fn narrower_floats_are_rounded_from_f64() {
    for &(op, x, expected) in VALUES {
        let single = unary::<f32, f32>(op, &[x as f32])[0];
        assert_eq!(single, expected as f32, "{op}({x})");
        let half = unary::<f16, f16>(op, &[f16::from_f64(x)])[0];
        assert_eq!(half, f16::from_f64(expected), "{op}({x})");
        let brain = unary::<bf16, bf16>(op, &[bf16::from_f64(x)])[0];
        assert_eq!(brain, bf16::from_f64(expected), "{op}({x})");
    }
}

#[test]
fn integers_become_floats_first() {
    assert_eq!(unary::<u8, f32>("sqrt", &[4, 2]), [2.0, 2f32.sqrt()]);
    assert_eq!(
        unary::<i64, f64>("exp", &[1, -1]),
        [1f64.exp(), (-1f64).exp()]
    );
    assert_eq!(unary::<i32, f32>("cos", &[0]), [1.0]);
    assert_eq!(
        unary::<i32, f32>("sin", &[16_777_217]),
        [(16_777_216f64).sin() as f32]
    );
}

#[test]
fn ends_of_domains() {
    const INF: f64 = f64::INFINITY;
    const NAN: f64 = f64::NAN;
    for (op, x, expected) in [
        ("exp", -INF, 0.0),
        ("exp", 710.0, INF),
        ("log", 0.0, -INF),
        ("log", -1.0, NAN),
        ("log1p", -1.0, -INF),
        ("sigmoid", -INF, 0.0),
        ("sigmoid", INF, 1.0),
        ("sigmoid", -745.0, 5e-324),
        ("sin", INF, NAN),
        ("tanh", -INF, -1.0),
        ("sinh", -INF, -INF),
        ("cosh", -INF, INF),
        ("acosh", 0.5, NAN),
        ("acosh", 1.0, 0.0),
        ("asinh", -INF, -INF),
        ("atanh", 1.0, INF),
        ("atanh", -1.0, -INF),
        ("atanh", 1.5, NAN),
        ("acos", 1.5, NAN),
        ("asin", -1.5, NAN),
        ("atan", INF, std::f64::consts::FRAC_PI_2),
        ("sqrt", -1.0, NAN),
        ("rsqrt", 0.0, INF),
        ("rsqrt", INF, 0.0),
        ("cbrt", -27.0, -3.0),
        ("erf", INF, 1.0),
        ("erfc", -INF, 2.0),
        ("erfc", 30.0, 0.0),
        ("erf_inv", 0.0, 0.0),
        ("erf_inv", 1.0, INF),
        ("erf_inv", -1.0, -INF),
        ("erf_inv", 1.1, NAN),
        ("erf_inv", 5e-324, 5e-324),
    ] {
        let got = unary::<f64, f64>(op, &[x])[0];
        assert!(
            got == expected || got.is_nan() && expected.is_nan(),
            "{op}({x}) is {got}, not {expected}"
        );
    }
    let functions = nx_vulkan_ops::ops()
        .filter(|op| op.is_elementwise() && op.arity() == 1 && op.gives == Gives::Float);
    for op in functions.map(|op| op.name) {
        assert!(unary::<f64, f64>(op, &[NAN])[0].is_nan(), "{op}(NaN)");
    }
    assert_eq!(
        unary::<f64, f64>("asinh", &[-f64::MAX]),
        [-710.475_860_073_943_9]
    );
    assert_eq!(
        unary::<f64, f64>("tanh", &[-0.0])[0].to_bits(),
        (-0.0f64).to_bits()
    );
}

/// The values of Nx's own documentation.
#[test]
fn erf_inv_in_f64_is_the_polynomial_of_nx() {
    let found = unary::<f64, f64>("erf_inv", &[0.1, 0.5, 0.9, -0.5]);
    let documented = [
        0.08885598780483887,
        0.47693629334671295,
        1.1630871013750377,
        -0.47693629334671295,
    ];
    assert_eq!(found, documented);
}

#[test]
fn quadrants_of_atan2() {
    use std::f64::consts::{FRAC_PI_4, PI};
    let (y, x) = (
        [1.0, 1.0, -1.0, -1.0, 0.0, -0.0, f64::INFINITY],
        [1.0, -1.0, -1.0, 1.0, -1.0, -1.0, f64::NEG_INFINITY],
    );
    let expected = [
        FRAC_PI_4,
        3.0 * FRAC_PI_4,
        -3.0 * FRAC_PI_4,
        -FRAC_PI_4,
        PI,
        -PI,
        3.0 * FRAC_PI_4,
    ];
    assert_eq!(binary::<f64, f64, f64>("atan2", &y, &x), expected);
    assert_eq!(
        binary::<i32, i32, f32>("divide", &[1, -1, 0], &[2, 0, 5]),
        [0.5, f32::NEG_INFINITY, 0.0]
    );
}
