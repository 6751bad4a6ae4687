//! What matrices are made of: real numbers, and complex ones of two of them.

use super::{Round, part, part::Part, rows};
use crate::kernels::{
    complex,
    element::{Complex, Register},
    number::Ring,
    operand::Operand,
    product::Parallelism,
};
use std::ops::{Add, Div, Mul, Neg, Sub};

/// A number of a matrix, in f64.
pub(super) trait Field:
    Register
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
{
    const IS_COMPLEX: bool;
    const ZERO: Self;
    const ONE: Self;
    const NAN: Self;

    fn of(real: f64) -> Self;
    fn real(self) -> f64;
    /// Real and imaginary part.
    fn parts(self) -> [f64; 2];
    fn conjugate(self) -> Self;
    fn magnitude(self) -> f64;
    /// The square of the magnitude.
    fn square(self) -> f64;
    fn scaled(self, by: f64) -> Self;
    /// Rounds every part.
    fn rounded(self, round: Round) -> Self;
    /// Reads an operand's elements.
    fn gather(operand: &Operand, to: &mut [Self]);
    /// Adds the product of two matrices to what begins `to`, of rows `step` apart.
    fn add_product(to: &mut [Self], step: usize, factors: [Part<Self>; 2], threads: Parallelism);
    /// Takes `by` times `row` from `to`.
    fn subtract(to: &mut [Self], by: Self, row: &[Self]);
    /// The sum of products of the conjugates of `a` with `b`.
    fn dot(a: &[Self], b: &[Self]) -> Self;

    /// A number of magnitude 1 in the same direction; 1 for 0.
    fn phase(self) -> Self {
        let magnitude = self.magnitude();
        if magnitude == 0.0 {
            return Self::ONE;
        }
        self.scaled(1.0 / magnitude)
    }

    fn sum(all: impl Iterator<Item = Self>) -> Self {
        all.fold(Self::ZERO, |sum, x| sum + x)
    }
}

impl Field for f64 {
    const IS_COMPLEX: bool = false;
    const ZERO: f64 = 0.0;
    const ONE: f64 = 1.0;
    const NAN: f64 = f64::NAN;

    fn of(real: f64) -> f64 {
        real
    }

    fn real(self) -> f64 {
        self
    }

    fn parts(self) -> [f64; 2] {
        [self, 0.0]
    }

    fn conjugate(self) -> f64 {
        self
    }

    fn magnitude(self) -> f64 {
        self.abs()
    }

    fn square(self) -> f64 {
        self * self
    }

    fn scaled(self, by: f64) -> f64 {
        self * by
    }

    fn rounded(self, round: Round) -> f64 {
        round(self)
    }

    /// 1 or -1, exactly.
    fn phase(self) -> f64 {
        if self < 0.0 { -1.0 } else { 1.0 }
    }

    fn gather(operand: &Operand, to: &mut [f64]) {
        operand.gather_wide(false, 0, 0, to);
    }

    fn add_product(to: &mut [f64], step: usize, factors: [Part<f64>; 2], threads: Parallelism) {
        part::add_product(to, step, factors, threads);
    }

    fn subtract(to: &mut [f64], by: f64, row: &[f64]) {
        rows::subtract(to, by, row);
    }

    fn dot(a: &[f64], b: &[f64]) -> f64 {
        rows::dot(a, b)
    }
}

type C = Complex<f64>;

impl Field for C {
    const IS_COMPLEX: bool = true;
    const ZERO: C = C { re: 0.0, im: 0.0 };
    const ONE: C = C { re: 1.0, im: 0.0 };
    const NAN: C = C {
        re: f64::NAN,
        im: f64::NAN,
    };

    fn of(real: f64) -> C {
        C { re: real, im: 0.0 }
    }

    fn real(self) -> f64 {
        self.re
    }

    fn parts(self) -> [f64; 2] {
        [self.re, self.im]
    }

    fn conjugate(self) -> C {
        C {
            re: self.re,
            im: -self.im,
        }
    }

    fn magnitude(self) -> f64 {
        self.re.hypot(self.im)
    }

    fn square(self) -> f64 {
        self.re * self.re + self.im * self.im
    }

    fn scaled(self, by: f64) -> C {
        C::scaled(self, by)
    }

    fn rounded(self, round: Round) -> C {
        C {
            re: round(self.re),
            im: round(self.im),
        }
    }

    fn gather(operand: &Operand, to: &mut [C]) {
        operand.gather(0, 0, to);
    }

    fn add_product(to: &mut [C], step: usize, factors: [Part<C>; 2], threads: Parallelism) {
        part::add_complex_product(to, step, factors, threads);
    }

    fn subtract(to: &mut [C], by: C, row: &[C]) {
        rows::subtract_complex(to, by, row);
    }

    fn dot(a: &[C], b: &[C]) -> C {
        rows::dot_complex(a, b)
    }
}

impl Add for C {
    type Output = C;

    fn add(self, other: C) -> C {
        Ring::add(self, other)
    }
}

impl Sub for C {
    type Output = C;

    fn sub(self, other: C) -> C {
        Ring::subtract(self, other)
    }
}

impl Mul for C {
    type Output = C;

    fn mul(self, other: C) -> C {
        Ring::multiply(self, other)
    }
}

impl Div for C {
    type Output = C;

    fn div(self, other: C) -> C {
        complex::divide(self, other)
    }
}

impl Neg for C {
    type Output = C;

    fn neg(self) -> C {
        C {
            re: -self.re,
            im: -self.im,
        }
    }
}
