//! Where a product on matrix units reads its operands: packed, or where they lie, which layouts allow that are aligned.

use super::Way;
use crate::{operand::Operand, problem::Problem};
use nx_vulkan_abi::Define;
use nx_vulkan_pack_kit::steps::number;

/// Elements that a load has.
const WIDTH: i64 = 8;

/// Where operands are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reading {
    /// Both are packed first.
    Packed,
    /// A is packed first, B is read where it lies.
    InPlaceB,
    /// B is packed first, A is read where it lies.
    InPlaceA,
    /// Both are read where they lie.
    InPlace,
}

impl Reading {
    /// The ways that the operands' layouts allow.
    pub(super) fn all(problem: &Problem, way: Way) -> Vec<Reading> {
        let mut all = vec![Reading::Packed];
        let [a, b] = [&problem.a, &problem.b];
        // 8 elements of bytes are a quarter of what a fragment has along k.
        let is_plain = |x: &Operand| x.dtype == way.element && x.dtype.size() == 2 && is_aligned(x);
        if !problem.k.is_multiple_of(2 * way.depth()) {
            return all;
        }
        // Else what A saves B costs.
        if problem.b_lasts && is_plain(a) && runs_along_k(a) {
            all.push(Reading::InPlaceA);
        }
        if !is_plain(b) {
            return all;
        }
        if is_plain(a) && runs_along_k(a) {
            all.push(Reading::InPlace);
        } else {
            all.push(Reading::InPlaceB);
        }
        all
    }

    pub(super) fn packs_a(self) -> bool {
        matches!(self, Reading::Packed | Reading::InPlaceB)
    }

    pub(super) fn packs_b(self) -> bool {
        matches!(self, Reading::Packed | Reading::InPlaceA)
    }

    /// Defines for `cores_direct.comp`.
    pub(super) fn defines(self, problem: &Problem) -> [Define; 4] {
        [
            number("IN_PLACE", true),
            number("A_PACKED", self.packs_a()),
            number("B_PACKED", self.packs_b()),
            number("B_ALONG_K", runs_along_k(&problem.b)),
        ]
    }

    /// Offset and strides of an operand that is read where it lies, in units of [`WIDTH`] elements modulo 2^32: of batches, and
    /// of rows, or of k where rows are neighbours.
    pub(super) fn words(operand: &Operand) -> [u32; 3] {
        let [batch, row, k] = operand.strides;
        let step = if runs_along_k(operand) { row } else { k };
        [operand.offset, batch, step].map(|x| (x / WIDTH) as u32)
    }
}

/// Whether neighbours in memory are neighbours along k.
fn runs_along_k(operand: &Operand) -> bool {
    operand.strides[2] == 1
}

/// Whether all of the elements are in whole loads along the axis that they are neighbours along.
fn is_aligned(operand: &Operand) -> bool {
    let fast = if runs_along_k(operand) { 2 } else { 1 };
    let slow = 3 - fast;
    let multiples = [operand.offset, operand.strides[0], operand.strides[slow]];
    operand.strides[fast] == 1
        && operand.extents[fast].is_multiple_of(WIDTH as u64)
        && multiples.iter().all(|x| x % WIDTH == 0)
}
