//! Functions of f16 and bf16, which take the device's own exponential and the like: every value there is, beside the standard
//! library's and libm's in f64. They may be wrong by what 0.54 units in the last place allow.

use crate::{folder::Folder, packs::copied};
use nx_vulkan_host::{Config, DType, DeviceChoice, Request, Runtime, Tensor};
use std::f64::consts::FRAC_2_SQRT_PI;

type Function = (&'static str, fn(f64) -> f64);
type Pair = (&'static str, fn(f64, f64) -> f64);

const FUNCTIONS: [Function; 20] = [
    ("exp", f64::exp),
    ("expm1", f64::exp_m1),
    ("log", f64::ln),
    ("log1p", f64::ln_1p),
    ("sigmoid", |x| 1.0 / (1.0 + (-x).exp())),
    ("tanh", f64::tanh),
    ("erf", libm::erf),
    ("cosh", f64::cosh),
    ("sqrt", f64::sqrt),
    ("rsqrt", |x| 1.0 / x.sqrt()),
    ("sin", f64::sin),
    ("cos", f64::cos),
    ("tan", f64::tan),
    ("asin", f64::asin),
    ("acos", f64::acos),
    ("atan", f64::atan),
    ("asinh", libm::asinh),
    ("atanh", libm::atanh),
    ("erfc", libm::erfc),
    ("erf_inv", erf_inv),
];
const PAIRS: [Pair; 2] = [("pow", f64::powf), ("atan2", f64::atan2)];
/// What their second operand is.
const SECOND: [f64; 8] = [0.0, 0.5, 2.0, 3.0, -1.5, 12.0, -256.0, f64::INFINITY];
const MOST: f64 = 0.54;

/// A format of 16 bits.
struct Format {
    dtype: DType,
    /// Bits after the point.
    kept: i32,
    /// Exponent of the smallest normal number.
    lowest: i32,
}

impl Format {
    fn value(&self, bits: u16) -> f64 {
        let fraction = f64::from(bits & ((1 << self.kept) - 1)) / 2f64.powi(self.kept);
        let exponent = i32::from((bits & 0x7fff) >> self.kept);
        let magnitude = match exponent {
            0 => fraction * 2f64.powi(self.lowest),
            _ if exponent == 3 - 2 * self.lowest => match fraction {
                0.0 => f64::INFINITY,
                _ => f64::NAN,
            },
            _ => (1.0 + fraction) * 2f64.powi(exponent + self.lowest - 1),
        };
        magnitude.copysign(if bits >> 15 == 0 { 1.0 } else { -1.0 })
    }

    /// The distance of numbers next to each other where `y` is.
    fn unit(&self, y: f64) -> f64 {
        let exponent = y.abs().log2().floor().max(f64::from(self.lowest));
        2f64.powf(exponent - f64::from(self.kept))
    }

    fn is_right(&self, got: f64, x: f64, function: &dyn Fn(f64) -> f64) -> bool {
        let y = function(x);
        let beyond = (2.0 - 2f64.powi(-self.kept)) * 2f64.powi(1 - self.lowest);
        let smallest = 2f64.powi(self.lowest);
        if y.is_nan() || got.is_nan() || y == 0.0 || y.is_infinite() {
            return got.is_nan() == y.is_nan() && (y.is_nan() || got.to_bits() == y.to_bits());
        }
        // What a device may take a denormal for, and give in place of one.
        let flushed = (got == 0.0 && y.abs() < smallest)
            || (x.abs() < smallest && got == function(0f64.copysign(x)));
        let infinite = got.is_infinite() && y.abs() + MOST * self.unit(beyond) >= beyond;
        flushed || infinite && got.signum() == y.signum() || (got - y).abs() <= MOST * self.unit(y)
    }
}

/// Newton's method, which comes from below where the function bends down.
fn erf_inv(x: f64) -> f64 {
    if x.abs() >= 1.0 {
        return if x.abs() == 1.0 {
            f64::INFINITY.copysign(x)
        } else {
            f64::NAN
        };
    }
    let step = |y: f64| y - (libm::erf(y) - x) / (FRAC_2_SQRT_PI * (-y * y).exp());
    (0..30).fold(x / FRAC_2_SQRT_PI, |y, _| step(y))
}

#[test]
fn functions_of_16_bits_are_rounded_from_what_they_are() {
    let device = std::env::var("NX_VULKAN_DEVICE").unwrap_or_else(|_| "llvmpipe".to_owned());
    let folder = Folder::new();
    let runtime = Runtime::open(&Config {
        device: DeviceChoice::parse(&device),
        packs: vec![copied(&folder, &["elementwise"])],
        registry: Some(folder.write(
            "registry.toml",
            "schema = 1\n[defaults]\nmeasure = \"never\"",
        )),
        cache_dir: Some(folder.join("cache")),
        validation: true,
        ..Config::from_env()
    })
    .unwrap();
    let formats = [(DType::F16, 10, -14), (DType::BF16, 7, -126)];
    let all: Vec<u8> = (0..=u16::MAX).flat_map(u16::to_le_bytes).collect();
    for (dtype, kept, lowest) in formats {
        let format = Format {
            dtype,
            kept,
            lowest,
        };
        let x = runtime.upload(dtype, &[1 << 16], &all).unwrap();
        for (op, function) in FUNCTIONS {
            compare(&runtime, &format, op, &[&x], &function);
        }
        for second in SECOND {
            let mut codes = 0..=u16::MAX;
            let code = codes.find(|bits| format.value(*bits) == second).unwrap();
            let y = runtime.upload(dtype, &[1], &code.to_le_bytes()).unwrap();
            for (op, function) in PAIRS {
                compare(&runtime, &format, op, &[&x, &y], &|x| function(x, second));
            }
        }
    }
}

/// Runs an op on all values of a format, the first of its operands.
fn compare(
    runtime: &Runtime,
    format: &Format,
    op: &str,
    inputs: &[&Tensor],
    function: &dyn Fn(f64) -> f64,
) {
    let outs = [(format.dtype, vec![1 << 16])];
    let ran = runtime.run_reported(&Request::new(op, inputs, &outs[..], &[]));
    let ran = ran.unwrap();
    assert_eq!(&*ran.served_by, format!("elementwise/{op}"));
    let got = runtime.download(&ran.outputs[0], None).unwrap();
    let got = got.as_chunks().0.iter().map(|two| u16::from_le_bytes(*two));
    for (bits, got) in (0..=u16::MAX).zip(got) {
        let (x, got) = (format.value(bits), format.value(got));
        let name = format.dtype;
        assert!(
            format.is_right(got, x, function),
            "{op} of {name} {x:e} is {got:e}, expected {:e}",
            function(x)
        );
    }
}
