//! What is within a tolerance, and what is not.

use super::*;

const STRICT: Tolerance = Tolerance {
    ulp: 1,
    growth: Growth::None,
    flushes: false,
    zeros_equal: false,
    lost: 0,
};

fn of_f32(want: f32, have: f32, tolerance: &Tolerance, magnitude: Option<f64>) -> Verdict {
    let (want, have) = (want.to_le_bytes(), have.to_le_bytes());
    let magnitudes = magnitude.map(|m| [m]);
    let expected = Expected {
        dtype: DType::F32,
        bytes: &want,
        others: &[],
        magnitudes: magnitudes.as_ref().map(|m| &m[..]),
        terms: 100,
        sensitivities: None,
        slack: None,
    };
    judge(&expected, &have, tolerance)
}

#[test]
fn one_ulp_is_accepted_and_two_are_not() {
    let next = f32::from_bits(1.0f32.to_bits() + 1);
    let after = f32::from_bits(1.0f32.to_bits() + 2);
    assert_eq!(
        of_f32(1.0, next, &STRICT, None),
        Verdict {
            ulp: 1,
            ..Verdict::default()
        }
    );
    assert_eq!(
        of_f32(1.0, after, &STRICT, None).wrong.unwrap().ulp,
        Some(2)
    );
    assert!(
        of_f32(f32::MAX, f32::INFINITY, &STRICT, None)
            .wrong
            .is_none()
    );
    assert!(of_f32(1.0, -1.0, &STRICT, None).wrong.is_some());
}

#[test]
fn nan_infinity_and_signs_of_zeros_are_told_apart() {
    assert!(of_f32(f32::NAN, -f32::NAN, &STRICT, None).wrong.is_none());
    for (want, have) in [
        (f32::NAN, 0.0),
        (1.0, f32::NAN),
        (f32::INFINITY, -f32::INFINITY),
        (0.0, -0.0),
    ] {
        assert!(
            of_f32(want, have, &STRICT, None).wrong.is_some(),
            "{want} {have}"
        );
        let sum = Tolerance {
            growth: Growth::Terms,
            ..STRICT
        };
        assert!(
            of_f32(want, have, &sum, Some(f64::INFINITY))
                .wrong
                .is_some(),
            "{want} {have}"
        );
    }
}

#[test]
fn flushing_needs_leave() {
    let tiny = f32::from_bits(5);
    let flushes = Tolerance {
        flushes: true,
        ..STRICT
    };
    assert!(of_f32(tiny, 0.0, &STRICT, None).wrong.is_some());
    assert_eq!(of_f32(tiny, 0.0, &flushes, None).flushed, 1);
    assert!(
        of_f32(2.0 * f32::MIN_POSITIVE, 0.0, &flushes, None)
            .wrong
            .is_some()
    );
}

#[test]
fn products_of_complex_numbers_are_flushed_one_by_one() {
    let flushes = Tolerance {
        flushes: true,
        ..STRICT
    };
    let of = |dtype, [want, have]: [f32; 2]| {
        let [want, have] = [want, have].map(|x| [x, 1.0].map(f32::to_le_bytes).concat());
        let expected = Expected {
            dtype,
            bytes: &want,
            others: &[],
            magnitudes: None,
            terms: 1,
            sensitivities: None,
            slack: None,
        };
        judge(&expected, &have, &flushes)
    };
    let near = [4.0, 3.0].map(|x| x * f32::MIN_POSITIVE);
    assert_eq!(of(DType::C64, near).flushed, 1);
    assert!(of(DType::F32, near).wrong.is_some());
    let far = [6.0, 3.0].map(|x| x * f32::MIN_POSITIVE);
    assert!(of(DType::C64, far).wrong.is_some());
}

/// Of a complex number that overflows, a part may be infinite with either sign, and may not be finite.
#[test]
fn what_may_have_either_sign_is_accepted_so() {
    let of = |have: f64, flushes| {
        let [want, other] = [f64::NEG_INFINITY, f64::INFINITY].map(f64::to_le_bytes);
        let expected = Expected {
            dtype: DType::F64,
            bytes: &want,
            others: &[other.to_vec()],
            magnitudes: None,
            terms: 1,
            sensitivities: None,
            slack: None,
        };
        let tolerance = Tolerance { flushes, ..STRICT };
        judge(&expected, &have.to_le_bytes(), &tolerance).wrong
    };
    for flushes in [false, true] {
        assert_eq!(of(f64::INFINITY, flushes), None);
        assert_eq!(of(f64::NEG_INFINITY, flushes), None);
        assert!(of(f64::NAN, flushes).is_some());
        assert!(of(1e300, flushes).is_some());
    }
}

#[test]
fn terms_widen_what_is_allowed_by_their_magnitude() {
    let sum = Tolerance {
        growth: Growth::Terms,
        ..STRICT
    };
    let eps = f64::from(f32::EPSILON);
    assert!(
        of_f32(1e-3, (1e-3 + 10.0 * eps) as f32, &sum, Some(1.0))
            .wrong
            .is_none()
    );
    assert!(
        of_f32(1e-3, (1e-3 + 13.0 * eps) as f32, &sum, Some(1.0))
            .wrong
            .is_some()
    );
}

#[test]
fn steps_allow_errors_of_the_largest_magnitude_and_no_more() {
    let steps = Tolerance {
        growth: Growth::Steps,
        ..STRICT
    };
    let eps = f64::from(f32::EPSILON);
    let off = |by: f64| of_f32(1e-3, (1e-3 + by * eps) as f32, &steps, Some(1.0));
    assert!(off(400.0).wrong.is_none());
    assert!(off(410.0).wrong.is_some());
}

#[test]
fn relaxed_sums_may_lose_digits_and_not_more() {
    let sum = Tolerance {
        growth: Growth::Terms,
        ..STRICT
    };
    let relaxed = sum.relaxed(DType::F32);
    let off = |by: f32, tolerance| of_f32(1.0, 1.0 + by, tolerance, Some(1.0)).wrong.is_none();
    // 11 ulp of TF32 for 100 terms of magnitude 1 in all, and its last place.
    let unit = (1.0f32 / 1024.0, f32::EPSILON);
    assert!(off(10.0 * unit.0, &relaxed) && !off(10.0 * unit.0, &sum));
    assert!(!off(20.0 * unit.0, &relaxed));
    assert!(off(10.0 * unit.1, &sum) && !off(20.0 * unit.1, &sum));
    assert!(of_f32(f32::NAN, 1.0, &relaxed, Some(1.0)).wrong.is_some());
}

#[test]
fn integers_must_be_equal() {
    let expected = Expected {
        dtype: DType::S8,
        bytes: &[1, 0xff],
        others: &[],
        magnitudes: None,
        terms: 1,
        sensitivities: None,
        slack: None,
    };
    assert!(judge(&expected, &[1, 0xff], &STRICT).wrong.is_none());
    let wrong = judge(&expected, &[1, 0xfe], &STRICT).wrong.unwrap();
    assert_eq!(
        (wrong.index, wrong.got.as_str(), wrong.expected.as_str()),
        (1, "-2", "-1")
    );
}
