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
        let [a_is_plain, b_is_plain] = [a, b].map(is_plain);
        // Else what A saves B costs.
        if problem.b_lasts && a_is_plain {
            all.push(Reading::InPlaceA);
        }
        if b_is_plain && a_is_plain {
            all.push(Reading::InPlace);
        }
        if b_is_plain && !(a_is_plain && runs_along_k(a)) {
            all.push(Reading::InPlaceB);
        }
        all
    }

    /// What `nxv explain` tells of it.
    pub(super) fn words(self) -> &'static str {
        match self {
            Reading::Packed => "both operands packed",
            Reading::InPlaceB => "the first operand packed",
            Reading::InPlaceA => "the second operand packed",
            Reading::InPlace => "operands read where they lie",
        }
    }

    pub(super) fn packs_a(self) -> bool {
        matches!(self, Reading::Packed | Reading::InPlaceB)
    }

    pub(super) fn packs_b(self) -> bool {
        matches!(self, Reading::Packed | Reading::InPlaceA)
    }

    /// Whether subgroups may own so many rows: neighbouring ones are loaded together, two of each tile of 16. For as many as 64
    /// there have to be registers, which were counted on an H200 with driver 580.159.04.
    pub(super) fn takes(self, problem: &Problem, way: Way, rows: u32) -> bool {
        let across = !self.packs_a() && !runs_along_k(&problem.a);
        let along = !self.packs_b() && runs_along_k(&problem.b);
        match rows {
            16 | 32 => true,
            64 => self == Reading::Packed || !(has_tail(problem, way) || across && along),
            _ => !across && (self == Reading::Packed || !has_tail(problem, way)),
        }
    }

    /// What one workgroup on a unit does where both operands are read where they lie, in relation to packed ones: it waits for its
    /// loads, which is what others do meanwhile where there are some. Of f16, 640 to 1024 along each axis, on an H200 with driver
    /// 580.159.04.
    pub(super) fn alone(self, problem: &Problem, way: Way) -> Option<f64> {
        let share = match (runs_along_k(&problem.b), has_tail(problem, way)) {
            (true, _) => 1.0,
            (false, false) => 0.8,
            (false, true) => 0.65,
        };
        (self == Reading::InPlace).then_some(share)
    }

    /// Defines for `cores_direct.comp`.
    pub(super) fn defines(self, problem: &Problem, way: Way) -> [Define; 6] {
        [
            number("IN_PLACE", true),
            number("A_PACKED", self.packs_a()),
            number("B_PACKED", self.packs_b()),
            number("A_ALONG_K", runs_along_k(&problem.a)),
            number("B_ALONG_K", runs_along_k(&problem.b)),
            number("TAIL", has_tail(problem, way)),
        ]
    }

    /// Offset and strides of an operand that is read where it lies, in units of [`WIDTH`] elements modulo 2^32: of batches, and
    /// of rows, or of k where those are neighbours.
    pub(super) fn steps_of(operand: &Operand) -> [u32; 3] {
        let [batch, row, k] = operand.strides;
        let step = if runs_along_k(operand) { row } else { k };
        [operand.offset, batch, step].map(|x| (x / WIDTH) as u32)
    }
}

/// Whether neighbours in memory are neighbours along k.
fn runs_along_k(operand: &Operand) -> bool {
    operand.strides[2] == 1
}

/// Whether the last pair of fragments along k has less elements than it has room for.
fn has_tail(problem: &Problem, way: Way) -> bool {
    !problem.k.is_multiple_of(2 * way.depth())
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
