//! Roots of unity for the plan's params, exact but for one rounding.

use nx_vulkan_abi::{DType, RVec, Refusal, plan::MAX_PARAMS};
use rustfft::{FftPlanner, num_complex::Complex64};

/// Tables of powers of exp(-2πi/n).
#[derive(Debug)]
pub(crate) struct Roots {
    /// The type of their parts.
    part: DType,
    /// Bytes that those of one line may take.
    room: u64,
    /// Most bytes of one of several tables of powers.
    most: u64,
    values: Vec<[f64; 2]>,
    /// Of which n, step and number, where each begins; filters have no step.
    known: Vec<((u64, u64, u64), u32)>,
}

/// Powers from tables for the digits of the exponent.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Powers {
    /// Where the first table begins.
    pub(crate) first: u32,
    /// Bits of a digit.
    pub(crate) bits: u32,
    /// Digits; none where there are no powers.
    pub(crate) tables: u32,
}

impl Roots {
    /// For so many lines. With fewer bytes in a table there are more of them, and fewer bytes in all.
    pub(crate) fn of(part: DType, lines: usize, most: u64) -> Roots {
        Roots {
            part,
            room: (MAX_PARAMS / lines.max(1)) as u64,
            most,
            values: Vec::new(),
            known: Vec::new(),
        }
    }

    /// Whether half of the powers of the n-th root are kept: all of them would take much of the room.
    pub(crate) fn are_halved(&self, n: u64) -> bool {
        n.is_multiple_of(2) && self.bytes(n) > self.room / 4
    }

    /// Whether the powers of the n-th root leave room for others.
    pub(crate) fn fit(&self, n: u64) -> bool {
        self.bytes(n) >> u32::from(self.are_halved(n)) <= self.room * 3 / 4
    }

    fn bytes(&self, count: u64) -> u64 {
        count * 2 * self.part.size()
    }

    /// Where the `n` powers of the n-th root begin, or half of them.
    pub(crate) fn all(&mut self, n: u64) -> u32 {
        let kept = n >> u32::from(self.are_halved(n));
        self.table(n, 1, kept)
    }

    /// Every power of the n-th root below n. Each table that is not the first adds the rounding of a product.
    pub(crate) fn powers(&mut self, n: u64) -> Powers {
        let digits = n.next_power_of_two().trailing_zeros();
        let most = (self.most / self.bytes(1)).ilog2();
        let tables = digits.div_ceil(most).max(1);
        let bits = digits.div_ceil(tables);
        let each = (0..tables).map(|table| self.table(n, 1 << (table * bits), 1 << bits));
        let first = each.min().unwrap_or(0);
        Powers {
            first,
            bits,
            tables,
        }
    }

    /// Where the spectrum of the chirp exp(πi j²/n) begins, around 0 and among `length` elements; nothing where it would take
    /// most of the room.
    pub(crate) fn filter(&mut self, n: u64, length: u64) -> Option<u32> {
        let known = self.known.iter().find(|known| known.0 == (n, 0, length));
        if let Some((_, first)) = known {
            return Some(*first);
        }
        if self.bytes(length) > self.room / 2 {
            return None;
        }
        let mut chirp = vec![Complex64::ZERO; length as usize];
        for j in 0..n {
            let [re, im] = root(j * j % (2 * n), 2 * n);
            chirp[j as usize] = Complex64::new(re, -im);
            chirp[((length - j) % length) as usize] = Complex64::new(re, -im);
        }
        FftPlanner::new()
            .plan_fft_forward(length as usize)
            .process(&mut chirp);
        let first = self.values.len() as u32;
        self.known.push(((n, 0, length), first));
        self.values.extend(chirp.iter().map(|x| [x.re, x.im]));
        Some(first)
    }

    fn table(&mut self, n: u64, step: u64, count: u64) -> u32 {
        let known = self.known.iter().find(|known| known.0 == (n, step, count));
        match known {
            Some((_, first)) => *first,
            None => self.fresh(n, step, count),
        }
    }

    fn fresh(&mut self, n: u64, step: u64, count: u64) -> u32 {
        let first = self.values.len() as u32;
        self.known.push(((n, step, count), first));
        self.values
            .extend((0..count).map(|k| root(k * step % n, n)));
        first
    }

    /// The params of a plan.
    ///
    /// # Errors
    /// A decline where they are too many.
    pub(crate) fn params(&self) -> Result<RVec<u8>, Refusal> {
        let parts = self.values.as_flattened().iter();
        let bytes: RVec<u8> = match self.part == DType::F64 {
            true => parts.flat_map(|x| x.to_le_bytes()).collect(),
            false => parts.flat_map(|x| (*x as f32).to_le_bytes()).collect(),
        };
        if bytes.len() > MAX_PARAMS {
            return Err(Refusal::decline("its roots of unity do not fit a plan"));
        }
        Ok(bytes)
    }
}

/// exp(-2πi k/n) for k < n: from an eighth of the circle, where sine and cosine are exact at the ends.
pub(crate) fn root(k: u64, n: u64) -> [f64; 2] {
    let (eighth, rest) = (8 * k / n, 8 * k % n);
    let near = if eighth % 2 == 0 { rest } else { n - rest };
    let (sin, cos) = (near as f64 / n as f64 * std::f64::consts::FRAC_PI_4).sin_cos();
    match eighth {
        0 => [cos, -sin],
        1 => [sin, -cos],
        2 => [-sin, -cos],
        3 => [-cos, -sin],
        4 => [-cos, sin],
        5 => [-sin, cos],
        6 => [sin, cos],
        _ => [cos, sin],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_are_those_of_the_circle() {
        for n in 1..200u64 {
            for k in 0..n {
                let angle = -std::f64::consts::TAU * k as f64 / n as f64;
                let [re, im] = root(k, n);
                assert!((re - angle.cos()).abs() < 2e-15 && (im - angle.sin()).abs() < 2e-15);
            }
        }
        let quarters = [0, 1, 2, 3].map(|k| root(k, 4));
        assert_eq!(quarters, [[1.0, 0.0], [0.0, -1.0], [-1.0, 0.0], [0.0, 1.0]]);
    }

    #[test]
    fn powers_are_products_of_digits() {
        for n in [1, 2, 1000, 1024, 1025, 65_536, 3 << 20] {
            let mut roots = Roots::of(DType::F32, 1, 8192);
            let powers = roots.powers(n);
            for k in (0..n).step_by(1 + n as usize / 97) {
                let digit = |table: u32| (k >> (table * powers.bits)) % (1 << powers.bits);
                let each = (0..powers.tables).map(|table| {
                    let at = powers.first + (table << powers.bits) + digit(table) as u32;
                    roots.values[at as usize]
                });
                let product = |a: [f64; 2], b: [f64; 2]| {
                    [a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]]
                };
                let [re, im] = each.reduce(product).unwrap();
                let expected = root(k, n);
                assert!((re - expected[0]).abs() < 1e-14 && (im - expected[1]).abs() < 1e-14);
            }
            assert!(roots.params().is_ok());
        }
    }
}
