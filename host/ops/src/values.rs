//! Elements for the sweep: random and special values of every type, within what an op is defined on.

use crate::element::push_float;
use nx_vulkan_abi::DType;

/// A generator of random numbers (SplitMix64, Steele et al. 2014): small, and the same on every machine.
#[derive(Debug, Clone)]
pub struct Rng(pub u64);

impl Rng {
    /// All 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    /// Below `limit`, which must not be 0.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.bits() % limit
    }

    /// One of `of`.
    pub fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }

    /// In `[low, high)`.
    pub fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Which elements a case has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Values {
    /// Random finite ones.
    Finite,
    /// Random ones among NaN, infinities, zeros of both signs, denormals, bounds of integers and of floats.
    Special,
}

/// What an op is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Domain {
    /// Everything.
    Any,
    /// Floats around -1 to 1.
    Unit,
    /// Floats that are mostly positive.
    Positive,
    /// Floats that are mostly at least 1.
    AboveOne,
    /// Floats over the range in which exp is neither 0 nor infinite, and somewhat beyond.
    Exponent,
    /// Terms of a sum: they neither overflow nor swamp each other.
    Term,
    /// Factors of a product: around 1.
    Factor,
    /// Many equal elements.
    Repeating,
    /// Integers that are not 0.
    NotZero,
    /// Integers from 0 to beyond the widest type's width; floats of small magnitude.
    Amount,
    /// True and false about equally often.
    Flag,
    /// Integers between the bounds that the op's contract gives; see [`indices`].
    Index,
    /// As [`Domain::Term`], never special: what an infinity or NaN leaves of a spectrum is not settled.
    Sample,
    /// Positions and momenta of a chain, of order 1.
    State,
    /// Inverse masses for which every step of [`Domain::Scalar`] is stable.
    InverseMass,
    /// Step sizes and parameters of distributions: positive, of order 1, never special.
    Scalar,
    /// Elements of a matrix: of order 1, integers but 0, never special.
    Matrix,
}

/// `count` integers of `dtype` from `low` to `high`, each of which it holds or is as good as.
pub fn indices(dtype: DType, (low, high): (i64, i64), count: usize, rng: &mut Rng) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(count * dtype.size() as usize);
    let (least, largest) = bounds(dtype);
    let clamped = |x: i64| i128::from(x).clamp(least, largest) as i64;
    let (low, high) = (clamped(low), clamped(high));
    for _ in 0..count {
        let most = (high - low).max(0) as u64;
        let value = low.wrapping_add(rng.below(most + 1) as i64);
        bytes.extend_from_slice(&value.to_le_bytes()[..dtype.size() as usize]);
    }
    bytes
}

/// `count` elements of `dtype`.
pub fn elements(
    domain: Domain,
    dtype: DType,
    values: Values,
    count: usize,
    rng: &mut Rng,
) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(count * dtype.size() as usize);
    if dtype.is_complex() && domain == Domain::Factor {
        return on_circle(dtype.part(), count, rng);
    }
    let parts = (dtype.size() / dtype.part().size().max(1)) as usize;
    let dtype = dtype.part();
    for _ in 0..count * parts {
        if dtype.is_float() {
            let value = match values {
                Values::Special
                    if !matches!(domain, Domain::Scalar | Domain::Sample | Domain::Matrix)
                        && rng.below(rarity(domain)) == 0 =>
                {
                    special_float(domain, dtype, rng)
                }
                _ => finite_float(domain, dtype, rng),
            };
            push_float(dtype, value, &mut bytes);
        } else {
            let value = integer(domain, dtype, values, rng);
            bytes.extend_from_slice(&value.to_le_bytes()[..dtype.size() as usize]);
        }
    }
    bytes
}

/// Complex factors: of a magnitude of about 1 and any angle, so that many of them neither overflow nor vanish.
fn on_circle(part: DType, count: usize, rng: &mut Rng) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(2 * count * part.size() as usize);
    for _ in 0..count {
        let (size, angle) = (rng.between(0.99, 1.01), rng.between(0.0, 6.3));
        push_float(part, size * angle.cos(), &mut bytes);
        push_float(part, size * angle.sin(), &mut bytes);
    }
    bytes
}

/// One in how many elements is special: few where one NaN decides the result of many elements.
fn rarity(domain: Domain) -> u64 {
    match domain {
        Domain::Term | Domain::Factor | Domain::State | Domain::InverseMass => 64,
        Domain::Repeating => 16,
        Domain::Any
        | Domain::Unit
        | Domain::Positive
        | Domain::AboveOne
        | Domain::Exponent
        | Domain::NotZero
        | Domain::Amount
        | Domain::Flag
        | Domain::Index
        | Domain::Sample
        | Domain::Matrix
        | Domain::Scalar => 2,
    }
}

fn finite_float(domain: Domain, dtype: DType, rng: &mut Rng) -> f64 {
    let sign = rng.pick(&[-1.0, 1.0]);
    let exponents = match dtype.row().map_or(0, |row| -row.lowest_exponent) {
        ..20 => 7.0,
        20..200 => 30.0,
        200.. => 60.0,
    };
    let wide = |rng: &mut Rng| rng.between(-exponents, exponents).exp2();
    let mostly = |sign: f64, rng: &mut Rng| if rng.below(16) == 0 { sign } else { 1.0 };
    match domain {
        Domain::Any | Domain::NotZero if rng.below(2) == 0 => sign * rng.between(0.0, 8.0),
        Domain::Any | Domain::NotZero => sign * wide(rng),
        Domain::Unit if rng.below(4) == 0 => sign * rng.between(-16.0, 0.0).exp2(),
        Domain::Unit => rng.between(-1.01, 1.01),
        Domain::Positive => mostly(sign, rng) * wide(rng),
        Domain::AboveOne if rng.below(2) == 0 => {
            mostly(0.5, rng) * (1.0 + rng.between(-20.0, 0.0).exp2())
        }
        Domain::AboveOne => mostly(sign, rng) * (1.0 + wide(rng)),
        Domain::Exponent if rng.below(2) == 0 => sign * rng.between(-20.0, 4.0).exp2(),
        Domain::Exponent => {
            rng.between(-1.0, 1.0) * if dtype == DType::F64 { 760.0 } else { 110.0 }
        }
        Domain::Term | Domain::Sample => rng.between(-1.0, 1.0),
        // A pivot that rounds to 0 would make a matrix singular.
        Domain::Matrix => sign * rng.between(1.0 / 128.0, 1.0),
        Domain::Factor => sign * rng.between(0.6, 1.5),
        Domain::Repeating => (rng.between(-4.0, 4.0) * 4.0).round() / 4.0,
        Domain::Amount => rng.pick(&[rng.clone().between(-8.0, 8.0), (rng.0 % 9) as f64]),
        Domain::Flag => rng.pick(&[0.0, sign * 0.25, sign]),
        Domain::Index => 0.0,
        Domain::State => rng.between(-2.0, 2.0),
        Domain::InverseMass => rng.between(0.002, 0.02),
        Domain::Scalar => rng.between(0.5, 1.5),
    }
}

fn special_float(domain: Domain, dtype: DType, rng: &mut Rng) -> f64 {
    let (digits, lowest) = dtype
        .row()
        .map_or((53, -1022), |row| (row.digits as i32, row.lowest_exponent));
    let epsilon = f64::from(1 - digits).exp2();
    let smallest = f64::from(lowest).exp2();
    let largest = (2.0 - epsilon) * f64::from(1 - lowest).exp2();
    let sign = rng.pick(&[-1.0, 1.0]);
    let denormal = smallest * rng.pick(&[epsilon, 0.25, 0.5, 1.0 - epsilon]);
    let always = [f64::NAN, f64::INFINITY, 0.0, denormal];
    if matches!(
        domain,
        Domain::Term | Domain::Factor | Domain::State | Domain::InverseMass
    ) {
        return sign * rng.pick(&always);
    }
    let others = [
        smallest,
        largest,
        1.0,
        1.0 + epsilon,
        1.0 - epsilon / 2.0,
        0.5,
        0.5 - epsilon / 4.0,
        1.5,
        2.5,
        2.0,
        3.0,
        127.5,
        128.0,
        255.9,
        256.0,
        32768.0,
        65535.0,
        16_777_217.0,
        2_147_483_648.0,
        4_294_967_296.0,
        9_223_372_036_854_775_808.0,
        18_446_744_073_709_551_616.0,
        std::f64::consts::PI,
        1e5,
        largest / 3.0,
    ];
    let all = always.len() + others.len();
    let index = rng.below(all as u64) as usize;
    sign * always
        .get(index)
        .copied()
        .unwrap_or_else(|| others[index - always.len()])
}

/// The lowest and the highest value of an integer type.
fn bounds(dtype: DType) -> (i128, i128) {
    let bits = dtype.row().map_or(64, |row| row.bits);
    match dtype.is_signed() {
        true => (-(1 << (bits - 1)), (1 << (bits - 1)) - 1),
        false => (0, (1 << bits) - 1),
    }
}

fn integer(domain: Domain, dtype: DType, values: Values, rng: &mut Rng) -> i128 {
    let (low, high) = bounds(dtype);
    let bits = (high - low).count_ones();
    let random = low + i128::from(rng.bits()) % (high - low + 1);
    let small = i128::from(rng.below(24)) - 12;
    let value = match (domain, values) {
        (Domain::Amount, _) => {
            let below = if rng.0.is_multiple_of(2) { 8 } else { 72 };
            return i128::from(rng.below(below)).min(high);
        }
        (Domain::Flag, _) => rng.pick(&[0, 0, random]),
        (Domain::Index, _) => 0,
        (Domain::Factor, _) => rng.pick(&[1, 1, small, 3]),
        // So many values that rows are hardly ever alike.
        (Domain::Matrix, _) => {
            let sign = if low < 0 { rng.pick(&[-1, 1]) } else { 1 };
            sign * (1 + i128::from(rng.bits()) % high.min(30_000))
        }
        (_, Values::Special) if rng.below(2) == 0 => {
            let near = 1i128 << rng.below(u64::from(bits));
            let shifted = near + i128::from(rng.below(3)) - 1;
            rng.pick(&[
                low,
                high,
                0,
                1,
                -1,
                low + 1,
                high - 1,
                near,
                -near,
                shifted,
                -shifted,
            ])
        }
        (Domain::Repeating, _) => small,
        (
            Domain::Any
            | Domain::Unit
            | Domain::Positive
            | Domain::AboveOne
            | Domain::Exponent
            | Domain::Term
            | Domain::Sample
            | Domain::NotZero
            | Domain::State
            | Domain::InverseMass
            | Domain::Scalar,
            _,
        ) => rng.pick(&[random, random, small]),
    };
    let value = value.clamp(low, high);
    if domain == Domain::NotZero && value == 0 {
        high.min(7)
    } else {
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nx_vulkan_abi::DTypeSet;

    #[test]
    fn elements_are_deterministic_and_special_ones_occur() {
        let draw = |seed, values| elements(Domain::Any, DType::F32, values, 500, &mut Rng(seed));
        assert_eq!(draw(1, Values::Special), draw(1, Values::Special));
        assert_ne!(draw(1, Values::Finite), draw(2, Values::Finite));
        let floats: Vec<f32> = draw(3, Values::Special)
            .chunks(4)
            .map(|c| f32::from_le_bytes(c.try_into().unwrap()))
            .collect();
        assert!(floats.iter().any(|x| x.is_nan()) && floats.iter().any(|x| x.is_infinite()));
        assert!(floats.iter().any(|x| x.is_subnormal()));
        assert!(floats.iter().any(|x| *x == 0.0 && x.is_sign_negative()));
    }

    #[test]
    fn indices_keep_between_their_bounds_and_reach_both() {
        let draw = |dtype, bounds| -> Vec<i8> {
            let bytes = indices(dtype, bounds, 200, &mut Rng(3));
            bytes.iter().map(|byte| *byte as i8).collect()
        };
        let signed = draw(DType::S8, (-2, 5));
        assert!((-2..=5).all(|index| signed.contains(&index)), "{signed:?}");
        assert!(signed.iter().all(|index| (-2..=5).contains(index)));
        assert!(
            draw(DType::U8, (-2, 5))
                .iter()
                .all(|index| (0..=5).contains(index))
        );
        assert_eq!(draw(DType::S8, (0, -1)), vec![0; 200]);
    }

    #[test]
    fn divisors_are_not_zero_and_amounts_not_negative() {
        for dtype in DType::all().filter(|d| DTypeSet::INTEGER.has(*d)) {
            let size = dtype.size() as usize;
            for values in [Values::Finite, Values::Special] {
                let divisors = elements(Domain::NotZero, dtype, values, 300, &mut Rng(7));
                assert!(
                    divisors.chunks(size).all(|c| c.iter().any(|b| *b != 0)),
                    "{dtype}"
                );
                let amounts = elements(Domain::Amount, dtype, values, 300, &mut Rng(7));
                assert!(amounts.chunks(size).all(|c| c[size - 1] < 128), "{dtype}");
            }
        }
    }
}
