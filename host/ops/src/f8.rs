//! Floats of 8 bits: E5M2 with infinities, and E4M3 without them, which saturates as `Nx.Floating` has it.

/// A format: bits after the point, the exponent of the smallest normal number, the code of the largest magnitude that a
/// number rounds to, and that of NaN.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Format {
    kept: i32,
    lowest: i32,
    most: u8,
    nan: u8,
}

/// The most is infinity.
pub(crate) const E5M2: Format = Format {
    kept: 2,
    lowest: -14,
    most: 0x7c,
    nan: 0x7e,
};

pub(crate) const E4M3FN: Format = Format {
    kept: 3,
    lowest: -6,
    most: 0x7e,
    nan: 0x7f,
};

impl Format {
    /// The nearest element, of two the even one.
    pub(crate) fn store(self, x: f64) -> [u8; 1] {
        let sign = u8::from(x.is_sign_negative()) << 7;
        if x.is_nan() {
            return [sign | self.nan];
        }
        let magnitude = x.abs().min(1e6);
        let exponent = ((magnitude.to_bits() >> 52) as i32 - 1023).max(self.lowest);
        let steps = (magnitude / exp2(exponent - self.kept)).round_ties_even() as i32;
        let code = steps + ((exponent - self.lowest) << self.kept);
        [sign | code.min(self.most.into()) as u8]
    }

    /// The value of an element.
    pub(crate) fn load(self, [code]: [u8; 1]) -> f32 {
        let magnitude = i32::from(code & 0x7f);
        let steps = magnitude & ((1 << self.kept) - 1);
        let value = match magnitude >> self.kept {
            _ if magnitude > self.most.into() => f64::NAN,
            _ if magnitude == 0x7c && self.most == 0x7c => f64::INFINITY,
            0 => f64::from(steps) * exp2(self.lowest - self.kept),
            above => {
                f64::from(steps + (1 << self.kept)) * exp2(self.lowest - self.kept + above - 1)
            }
        };
        value.copysign(if code < 0x80 { 1.0 } else { -1.0 }) as f32
    }
}

fn exp2(exponent: i32) -> f64 {
    f64::from(exponent).exp2()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values from the tables of the OCP 8-bit Floating Point Specification 1.0.
    #[test]
    fn codes_have_the_values_of_the_specification() {
        let e5m2 = [
            (0x01, 2f32.powi(-16)),
            (0x03, 0.75 * 2f32.powi(-14)),
            (0x04, 2f32.powi(-14)),
            (0x3c, 1.0),
            (0x7b, 57344.0),
            (0x7c, f32::INFINITY),
            (0xfc, f32::NEG_INFINITY),
        ];
        for (code, value) in e5m2 {
            assert_eq!(E5M2.load([code]), value, "{code:x}");
        }
        let e4m3 = [
            (0x01, 2f32.powi(-9)),
            (0x07, 0.875 * 2f32.powi(-6)),
            (0x08, 2f32.powi(-6)),
            (0x38, 1.0),
            (0xfe, -448.0),
            (0x78, 256.0),
        ];
        for (code, value) in e4m3 {
            assert_eq!(E4M3FN.load([code]), value, "{code:x}");
        }
        assert!(
            [0x7d, 0x7e, 0x7f, 0xfd]
                .iter()
                .all(|code| E5M2.load([*code]).is_nan())
        );
        assert!(
            [0x7f, 0xff]
                .iter()
                .all(|code| E4M3FN.load([*code]).is_nan())
        );
    }

    #[test]
    fn stores_give_the_nearest_element_and_of_two_the_even_one() {
        for format in [E5M2, E4M3FN] {
            let finite = |code: &u8| format.load([*code]).is_finite();
            let codes: Vec<u8> = (0..0x7f).filter(finite).collect();
            for pair in codes.windows(2) {
                let [low, high] = [pair[0], pair[1]].map(|code| f64::from(format.load([code])));
                let middle = (low + high) / 2.0;
                let even = if pair[0] % 2 == 0 { pair[0] } else { pair[1] };
                for sign in [0u8, 0x80] {
                    let s = if sign == 0 { 1.0 } else { -1.0 };
                    assert_eq!(format.store(s * low), [sign | pair[0]]);
                    assert_eq!(format.store(s * middle), [sign | even]);
                    assert_eq!(format.store(s * (middle - middle * 1e-9)), [sign | pair[0]]);
                    assert_eq!(format.store(s * (middle + middle * 1e-9)), [sign | pair[1]]);
                }
            }
        }
    }

    #[test]
    fn what_is_too_large_is_infinite_or_the_largest() {
        assert_eq!(E5M2.store(61439.9), [0x7b]);
        assert_eq!(E5M2.store(61440.0), [0x7c]);
        assert_eq!(E5M2.store(-1e300), [0xfc]);
        for large in [449.0, 464.0, 1e30, f64::INFINITY] {
            assert_eq!(E4M3FN.store(large), [0x7e]);
            assert_eq!(E4M3FN.store(-large), [0xfe]);
        }
        assert_eq!(
            (E5M2.store(f64::NAN), E4M3FN.store(f64::NAN)),
            ([0x7e], [0x7f])
        );
        assert_eq!((E5M2.store(-0.0), E4M3FN.store(-1e-9)), ([0x80], [0x80]));
    }
}
