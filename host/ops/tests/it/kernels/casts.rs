//! Conversions and functions of f64 where they lie, beside those of Rust.

use super::places::{both, layouts};
use super::{Random, Sample, tensor};
use half::{bf16, f16};
use nx_vulkan_abi::DType;
use nx_vulkan_ops::kernels::run;

pub(super) const TYPES: [DType; 12] = [
    DType::U8,
    DType::S8,
    DType::U16,
    DType::S16,
    DType::U32,
    DType::S32,
    DType::U64,
    DType::S64,
    DType::F16,
    DType::BF16,
    DType::F32,
    DType::F64,
];

#[test]
fn all_pairs_of_types_have_the_same_bits_however_they_lie() {
    let mut random = Random(41);
    let shape = [5, 407];
    for from in TYPES {
        for x in layouts(from, &shape, true, &mut random) {
            for to in TYPES {
                let [exact, fast] = both("as_type", &[&x], &[(to, &shape)], &[]);
                assert!(exact == fast, "{from} to {to}, {:?}", x.strides);
            }
        }
    }
}

/// What an integer of 128 bits is in a type that wraps, and a float in one that saturates.
trait Wanted: Sample {
    fn wrapped(x: i128) -> Self;
    fn truncated(x: f64) -> Self;
}

macro_rules! wanted {
    ($($t:ty)*) => { $(
        impl Wanted for $t {
            fn wrapped(x: i128) -> $t {
                (x & ((1 << <$t>::BITS) - 1)) as $t
            }

            fn truncated(x: f64) -> $t {
                let whole = x.trunc();
                match () {
                    () if x.is_nan() => 0,
                    () if whole <= <$t>::MIN as f64 => <$t>::MIN,
                    () if whole >= <$t>::MAX as f64 => <$t>::MAX,
                    () => Self::wrapped(whole as i128),
                }
            }
        }
    )* };
}
wanted!(u8 i8 u16 i16 u32 i32 u64 i64);

fn cast<A: Sample, B: Sample>(x: &[A]) -> Vec<B> {
    let shape = [x.len() as u64];
    let [_, [bytes]] = both("as_type", &[&tensor(&shape, x)], &[(B::DTYPE, &shape)], &[])
        .map(|mut results| [results.remove(0)]);
    bytes.chunks(size_of::<B>()).map(B::pop).collect()
}

fn integers_to<B: Wanted>() {
    let mut random = Random(43);
    let mut all: Vec<i64> = (0..64)
        .flat_map(|bit| [1 << bit, (1i64 << bit) - 1])
        .collect();
    all.extend((0..2000).map(|_| random.next() as i64 >> random.below(64)));
    all.extend(all.clone().iter().map(|x| x.wrapping_neg()));
    macro_rules! from {
        ($($t:ty)*) => { $(
            let x: Vec<$t> = all.iter().map(|x| *x as $t).collect();
            for (x, got) in x.iter().zip(cast::<$t, B>(&x)) {
                assert_eq!(got, B::wrapped(i128::from(*x)), "{x}");
            }
        )* };
    }
    from!(u8 i8 u16 i16 u32 i32 u64 i64);
}

fn floats_to<B: Wanted>() {
    let mut random = Random(47);
    let ends = [
        f64::NAN,
        f64::INFINITY,
        -f64::INFINITY,
        0.0,
        -0.0,
        1e300,
        -1e300,
        0.99,
        -0.99,
    ];
    let mut all = ends.to_vec();
    for bit in 0..66 {
        let power = 2f64.powi(bit);
        all.extend([
            power,
            power - 1.0,
            power + 1.0,
            power.next_down(),
            power.next_up(),
            power - 0.5,
        ]);
    }
    all.extend((0..2000).map(|_| (random.next() as f64) * 2f64.powi(-(random.below(70) as i32))));
    all.extend(all.clone().iter().map(|x| -x));
    for (x, got) in all.iter().zip(cast::<f64, B>(&all)) {
        assert_eq!(got, B::truncated(*x), "{x:e}");
    }
    let singles: Vec<f32> = all.iter().map(|x| *x as f32).collect();
    for (x, got) in singles.iter().zip(cast::<f32, B>(&singles)) {
        assert_eq!(got, B::truncated((*x).into()), "{x:e}");
    }
    let halves: Vec<f16> = all.iter().map(|x| f16::from_f64(*x)).collect();
    for (x, got) in halves.iter().zip(cast::<f16, B>(&halves)) {
        assert_eq!(got, B::truncated((*x).into()), "{x:e}");
    }
    let halves: Vec<bf16> = all.iter().map(|x| bf16::from_f64(*x)).collect();
    for (x, got) in halves.iter().zip(cast::<bf16, B>(&halves)) {
        assert_eq!(got, B::truncated((*x).into()), "{x:e}");
    }
}

#[test]
fn integers_wrap_and_floats_saturate() {
    macro_rules! to {
        ($($t:ty)*) => { $( integers_to::<$t>(); floats_to::<$t>(); )* };
    }
    to!(u8 i8 u16 i16 u32 i32 u64 i64);
}

#[test]
fn all_floats_of_16_bits_become_wider_and_narrow_again() {
    let all: Vec<f16> = (0..=u16::MAX).map(f16::from_bits).collect();
    let wide: Vec<f32> = cast(&all);
    let again: Vec<f16> = cast(&wide);
    for ((x, wide), again) in all.iter().zip(wide).zip(again) {
        let same = |y: f32| y.to_bits() == x.to_f32().to_bits() || y.is_nan() && x.is_nan();
        assert!(same(wide) && same(again.to_f32()), "{x:?}");
    }
    // Halfway between two of them, and one f32 to either side.
    let halfway = (0..31_743u16).map(|bits| {
        let [low, high] = [bits, bits + 1].map(|bits| f16::from_bits(bits).to_f32());
        (bits, 0.5 * (low + high))
    });
    for (bits, middle) in halfway {
        let got: Vec<f16> = cast(&[middle, middle.next_down(), middle.next_up(), -middle]);
        let even = bits + (bits & 1);
        let want = [even, bits, bits + 1, even | 1 << 15].map(f16::from_bits);
        assert_eq!(got, want, "{middle:e}");
    }
}

#[test]
fn divisions_of_small_integers_are_those_of_rust() {
    macro_rules! check {
        ($($t:ty)*) => { $(
            let all: Vec<$t> = (0..=255u16).map(|x| {
                // Those of more bytes at both ends of the type.
                let x = x as u8 as i8;
                (x as $t).wrapping_mul(if x % 3 == 0 { <$t>::MAX / 127 } else { 1 })
            }).chain([<$t>::MIN, <$t>::MAX]).collect();
            let pairs = all.iter().flat_map(|x| all.iter().map(|y| (*x, *y)));
            let pairs: Vec<($t, $t)> = pairs.filter(|(_, y)| *y != 0).collect();
            let [x, y]: [Vec<$t>; 2] = pairs.iter().copied().unzip::<_, _, Vec<_>, Vec<_>>().into();
            let shape = [x.len() as u64];
            let operands = [tensor(&shape, &x), tensor(&shape, &y)];
            for (op, f) in [("quotient", <$t>::wrapping_div as fn($t, $t) -> $t), ("remainder", <$t>::wrapping_rem)] {
                let outs = [(<$t as Sample>::DTYPE, &shape[..])];
                let [_, fast] = both(op, &[&operands[0], &operands[1]], &outs, &[]);
                let got = fast[0].chunks(size_of::<$t>()).map(<$t>::pop);
                for (got, (x, y)) in got.zip(&pairs) {
                    assert_eq!(got, f(*x, *y), "{op} of {x}, {y}");
                }
            }
        )* };
    }
    check!(u8 i8 u16 i16 u32 i32);
}

/// In units in the last place of the second; what is neither a number of that sign nor the same is far away.
fn apart(got: f64, want: f64) -> u64 {
    match () {
        () if got.is_nan() && want.is_nan() => 0,
        () if got.is_nan()
            || want.is_nan()
            || got.is_sign_negative() != want.is_sign_negative() =>
        {
            u64::MAX
        }
        () => got.to_bits().abs_diff(want.to_bits()),
    }
}

/// Each half in the form that keeps its digits.
fn sigmoid(x: f64) -> f64 {
    if x >= 0.0 {
        return 1.0 / (1.0 + (-x).exp());
    }
    let e = x.exp();
    e / (1.0 + e)
}

#[test]
fn functions_of_doubles_are_within_three_units() {
    type Function = fn(f64) -> f64;
    let functions: [(&str, Function); 8] = [
        ("exp", f64::exp),
        ("expm1", f64::exp_m1),
        ("log", f64::ln),
        ("log1p", f64::ln_1p),
        ("tanh", f64::tanh),
        ("sigmoid", sigmoid),
        ("sqrt", f64::sqrt),
        ("rsqrt", |x| 1.0 / x.sqrt()),
    ];
    let special = [
        0.0,
        5e-324,
        2.3e-308,
        1.0,
        0.5,
        2.0,
        709.78,
        709.79,
        745.1,
        745.2,
        1e300,
        f64::MAX,
        f64::INFINITY,
        f64::NAN,
    ];
    let mut x: Vec<f64> = special.to_vec();
    x.extend((0..60_000).map(|i| (f64::from(i) - 30_000.0) * 0.025));
    x.extend((0..60_000).map(|i| (f64::from(i) - 30_000.0) * 0.000_07));
    // Of every size.
    let mut random = Random(53);
    x.extend((0..60_000).map(|_| f64::from_bits(random.next())));
    x.extend(x.clone().iter().map(|x| -x));
    let shape = [x.len() as u64];
    let operand = tensor(&shape, &x);
    for (op, f) in functions {
        let [_, fast] = both(op, &[&operand], &[(DType::F64, &shape)], &[]);
        let mut worst = (0, 0.0);
        for (x, got) in x.iter().zip(fast[0].chunks(8).map(f64::pop)) {
            let away = apart(got, f(*x));
            if away > worst.0 {
                worst = (away, *x);
            }
        }
        assert!(
            worst.0 <= 3,
            "{op} of {:e} is {} units away",
            worst.1,
            worst.0
        );
    }
    // Nobody else computes with them.
    let mut bytes = vec![0; 8];
    let mut out = [super::Out {
        dtype: DType::F64,
        shape: &[],
        bytes: &mut bytes,
    }];
    run("tanh", &[tensor(&[], &[0.3f64]).view()], &mut out, &[]).unwrap();
    assert_eq!(f64::pop(&bytes), 0.3f64.tanh());
}
