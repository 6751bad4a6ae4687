//! Comparison of two results, element by element. What is allowed is in `tolerance`.

#[cfg(test)]
mod tests;

use nx_vulkan_abi::DType;
use nx_vulkan_ops::{
    element::float,
    tolerance::{Growth, Tolerance},
};

/// What is expected of a result.
#[derive(Debug)]
pub(super) struct Expected<'a> {
    pub(super) dtype: DType,
    /// The host kernel's result.
    pub(super) bytes: &'a [u8],
    /// Its results where denormal operands count as zero, where factors come in another order, or where signs are unknown.
    pub(super) others: &'a [Vec<u8>],
    /// For each element the sum of its terms' magnitudes, where the tolerance asks for it.
    pub(super) magnitudes: Option<&'a [f64]>,
    /// Elements that make one result.
    pub(super) terms: u64,
    /// How far each element moves when operands do by ε of themselves, in ε, where the tolerance asks for it.
    pub(super) sensitivities: Option<&'a [f64]>,
    /// How far each element may be off besides, where that is known by itself and nothing grows.
    pub(super) slack: Option<&'a [f64]>,
}

/// What came of a comparison.
#[derive(Debug, Default, Clone, PartialEq)]
pub(super) struct Verdict {
    /// The largest distance between finite elements, in ulp.
    pub(super) ulp: u64,
    /// Elements for which a denormal counted as zero.
    pub(super) flushed: u64,
    /// The first element beyond the tolerance.
    pub(super) wrong: Option<Wrong>,
}

/// An element beyond the tolerance.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Wrong {
    pub(super) index: u64,
    pub(super) got: String,
    pub(super) expected: String,
    pub(super) ulp: Option<u64>,
}

/// Compares `got` with what is expected.
pub(super) fn judge(expected: &Expected<'_>, got: &[u8], tolerance: &Tolerance) -> Verdict {
    let mut verdict = Verdict::default();
    // The parts of a complex number are judged one by one.
    let dtype = expected.dtype.part();
    if !dtype.is_float() {
        verdict.wrong = exact(expected, got);
        return verdict;
    }
    let size = dtype.size() as usize;
    let parts = expected.dtype.size() as usize / size;
    let elements = expected
        .bytes
        .chunks_exact(size)
        .zip(got.chunks_exact(size));
    for (index, (want, have)) in elements.enumerate() {
        if want == have {
            continue;
        }
        let (want, have) = (Float::read(dtype, want), Float::read(dtype, have));
        let slack = slack(expected, tolerance, index / parts);
        if want.accepts(&have, tolerance, slack) {
            verdict.ulp = verdict.ulp.max(want.distance(&have).unwrap_or(0));
            continue;
        }
        let range = index * size..(index + 1) * size;
        let others = expected.others.iter();
        let mut others = others.map(|bytes| Float::read(dtype, &bytes[range.clone()]));
        if tolerance.flushes {
            let zeros = Tolerance {
                zeros_equal: true,
                ..*tolerance
            };
            // What rounds up to the smallest normal number may also have been flushed before it did.
            let flushed = |want: &Float| {
                have.is_tiny() && want.is_tiny() && (want.value != 0.0 || have.value != 0.0)
            };
            // Each of the two products that make a part of a complex one may have been, before they were added.
            let products = Slack {
                absolute: slack.absolute + 2.0 * want.smallest(),
                ..slack
            };
            let apart = |want: &Float| parts > 1 && want.accepts(&have, &zeros, products);
            let accepted = |want: &Float| want.accepts(&have, &zeros, slack) || flushed(want);
            if flushed(&want) || apart(&want) || others.any(|want| accepted(&want)) {
                verdict.flushed += 1;
                continue;
            }
        } else if others.any(|want| want.bits == have.bits) {
            continue;
        }
        verdict.wrong.get_or_insert_with(|| Wrong {
            index: (index / parts) as u64,
            got: have.to_string(),
            expected: want.to_string(),
            ulp: want.distance(&have),
        });
    }
    verdict
}

/// Bytes for bytes, with the results on flushed operands as an alternative.
fn exact(expected: &Expected<'_>, got: &[u8]) -> Option<Wrong> {
    let size = expected.dtype.size() as usize;
    let index = (0..got.len() / size).find(|i| {
        let at = i * size..(i + 1) * size;
        let mut others = expected.others.iter();
        let other = others.any(|bytes| bytes[at.clone()] == got[at.clone()]);
        expected.bytes[at.clone()] != got[at] && !other
    })?;
    let at = index * size..(index + 1) * size;
    Some(Wrong {
        index: index as u64,
        got: show(expected.dtype, &got[at.clone()]),
        expected: show(expected.dtype, &expected.bytes[at]),
        ulp: None,
    })
}

/// An element as text.
pub(super) fn show(dtype: DType, bytes: &[u8]) -> String {
    if bytes.len() > 8 || !dtype.is_integer() {
        return format!("bytes {bytes:02x?}");
    }
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    let unused = 64 - 8 * bytes.len() as u32;
    let bits = u64::from_le_bytes(word) << unused;
    if dtype.is_signed() {
        (bits as i64 >> unused).to_string()
    } else {
        (bits >> unused).to_string()
    }
}

fn slack(expected: &Expected<'_>, tolerance: &Tolerance, index: usize) -> Slack {
    if let Some(slack) = expected.slack {
        return Slack {
            relative: 0.0,
            absolute: slack[index],
        };
    }
    // Narrower types are computed in f32, or in themselves by who may lose digits.
    let (own, register) = (expected.dtype, expected.dtype.register());
    let computed_in = match (own == register, tolerance.lost) {
        (true, lost) => own.epsilon() * f64::from(lost).exp2(),
        (false, 0) => register.epsilon(),
        (false, _) => own.epsilon(),
    };
    let magnitude = expected.magnitudes.map_or(0.0, |all| all[index]);
    let sensitivity = expected.sensitivities.map_or(0.0, |all| all[index]);
    let n = expected.terms as f64;
    match tolerance.growth {
        // That of weights is known by itself.
        Growth::None | Growth::Weights => Slack::default(),
        Growth::Parts => Slack {
            relative: 0.0,
            absolute: computed_in * tolerance.ulp as f64 * n * magnitude,
        },
        Growth::Factors => Slack {
            relative: computed_in * n / 2.0,
            absolute: 0.0,
        },
        Growth::Terms => Slack {
            relative: 0.0,
            absolute: computed_in * (1.0 + n.sqrt()) * magnitude,
        },
        Growth::Compensated if tolerance.lost > 0 => Slack {
            relative: 0.0,
            absolute: computed_in * (1.0 + n.sqrt()) * magnitude,
        },
        Growth::Compensated => Slack {
            relative: 0.0,
            absolute: computed_in * computed_in * n * magnitude,
        },
        Growth::Steps => Slack {
            relative: 0.0,
            absolute: 4.0 * computed_in * (1.0 + n) * magnitude,
        },
        Growth::Condition => Slack {
            relative: 0.0,
            absolute: 4.0 * computed_in * ((1.0 + n) * magnitude + sensitivity),
        },
        Growth::Spectrum => Slack {
            relative: 0.0,
            absolute: 4.0 * computed_in * (1.0 + n.max(1.0).log2()) * magnitude,
        },
    }
}

/// What is allowed beside a number of ulp.
#[derive(Debug, Clone, Copy, Default)]
struct Slack {
    relative: f64,
    absolute: f64,
}

/// An element of a float type.
#[derive(Debug, Clone, Copy)]
struct Float {
    dtype: DType,
    value: f64,
    bits: u64,
}

impl Float {
    fn read(dtype: DType, bytes: &[u8]) -> Float {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        let value = float(dtype, bytes).expect("only floats are read as floats");
        let bits = u64::from_le_bytes(word);
        Float { dtype, value, bits }
    }

    fn accepts(&self, got: &Float, tolerance: &Tolerance, slack: Slack) -> bool {
        if self.value.is_nan() || got.value.is_nan() {
            return self.value.is_nan() && got.value.is_nan();
        }
        if self.value == 0.0 && got.value == 0.0 {
            return tolerance.zeros_equal || self.bits == got.bits;
        }
        let apart = (self.value - got.value).abs();
        let allowed = slack.absolute + slack.relative * self.value.abs();
        self.distance(got).is_some_and(|ulp| ulp <= tolerance.ulp)
            || apart.is_finite() && apart <= allowed + tolerance.ulp as f64 * self.ulp()
    }

    /// Representable numbers between both; none where one is not a number.
    fn distance(&self, other: &Float) -> Option<u64> {
        let both = !self.value.is_nan() && !other.value.is_nan();
        both.then(|| self.rank().abs_diff(other.rank()).min(u128::from(u64::MAX)) as u64)
    }

    /// Position among the numbers of the type; both zeros are at 0.
    fn rank(&self) -> i128 {
        let sign = 1u64 << (self.dtype.size() * 8 - 1);
        let magnitude = i128::from(self.bits & (sign - 1));
        if self.bits & sign == 0 {
            magnitude
        } else {
            -magnitude
        }
    }

    /// Distance to the next number of larger magnitude.
    fn ulp(&self) -> f64 {
        let (digits, lowest) = self
            .dtype
            .row()
            .map_or((53, -1022), |row| (row.digits as i32, row.lowest_exponent));
        let exponent = (self.value.abs().to_bits() >> 52) as i32 - 1023;
        f64::from(exponent.max(lowest) + 1 - digits).exp2()
    }

    /// Whether it is zero, denormal or the smallest normal number.
    fn is_tiny(&self) -> bool {
        self.value.abs() <= self.smallest()
    }

    /// The smallest normal number of the type it was computed in, which for f16 is f32.
    fn smallest(&self) -> f64 {
        match self.dtype {
            DType::F64 => f64::MIN_POSITIVE,
            _ => f32::MIN_POSITIVE.into(),
        }
    }
}

impl std::fmt::Display for Float {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let digits = 2 * self.dtype.size() as usize;
        write!(f, "{:e} (0x{:0digits$x})", self.value, self.bits)
    }
}
