//! Ops of two operands, element by element.

use super::shared::{ELEMENTWISE, INTEGER, MIXED, NUMBER, REAL, narrows, pairs, types_of};
use crate::{
    kernels::{
        binary,
        kernel::Kernel,
        lanes::{self, Lane, typed},
    },
    op::{Contract, Gives, Op, Types},
    partial::{AMOUNT, DIVISOR, EXPONENT},
    tolerance::Bound,
    values::Domain::{Amount, Any, Flag, NotZero, Positive, Repeating},
};

const ZIP: Contract = Contract {
    title: "Elementwise, two operands",
    operands: &["a", "b"],
    mixed: |op| {
        let taken = types_of(op.takes[0]);
        let all = pairs(&taken, &taken)
            .into_iter()
            .filter(|&(x, y)| !narrows(x, y) && NUMBER.has(x.merge(y)));
        let types = |(x, y)| Types {
            inputs: vec![x, y],
            output: None,
        };
        (all.map(types).collect(), MIXED)
    },
    ..ELEMENTWISE
};

const fn arithmetic(name: &'static str, bound: Bound, kernel: Kernel, doc: &'static str) -> Op {
    Op {
        name,
        doc,
        contract: &ZIP,
        takes: &[REAL, REAL],
        gives: Gives::Real,
        bound,
        domains: &[Any, Any],
        partial: None,
        lane: None,
        kernel,
    }
}

const fn integers(name: &'static str, kernel: Kernel, doc: &'static str) -> Op {
    Op {
        takes: &[INTEGER, INTEGER],
        gives: Gives::Integer,
        ..arithmetic(name, Bound::MOVES, kernel, doc)
    }
}

const fn comparison(name: &'static str, kernel: Kernel, doc: &'static str) -> Op {
    Op {
        gives: Gives::Bool,
        domains: &[Repeating, Repeating],
        ..arithmetic(name, Bound::rounded((0, 0)), kernel, doc)
    }
}

const fn logical(name: &'static str, kernel: Kernel, doc: &'static str) -> Op {
    Op {
        gives: Gives::Bool,
        domains: &[Flag, Flag],
        ..arithmetic(name, Bound::MOVES, kernel, doc)
    }
}

/// What complex numbers have too.
const fn numbers(op: Op) -> Op {
    Op {
        takes: &[NUMBER, NUMBER],
        ..op
    }
}

const EXACT: Bound = Bound::rounded((0, 0));

#[rustfmt::skip]
pub(super) const OPS: &[Op] = &[
    numbers(arithmetic("add",      EXACT,   Kernel::Elementwise(binary::add),      "a + b; integers wrap").in_lanes(lanes::ADD)),
    numbers(arithmetic("subtract", EXACT,   Kernel::Elementwise(binary::subtract), "a − b; integers wrap").in_lanes(lanes::SUBTRACT)),
    numbers(arithmetic("multiply", EXACT,   Kernel::Elementwise(binary::multiply), "a · b; integers wrap; of complex numbers each product of parts is rounded, then their sum; a real factor scales both parts").in_lanes(lanes::MULTIPLY)),
    Op { gives: Gives::Float, ..numbers(arithmetic("divide", Bound::rounded((1, 2)).and_parts((16, 16)), Kernel::Elementwise(binary::divide), "a / b; f32 rounds once on the host and in the pack `elementwise`, to denormals too").in_lanes(Lane::zip(lanes::divide).and(typed::DIVIDE))) },
    Op { gives: Gives::Float, ..arithmetic("atan2",  Bound::rounded((2, 4)), Kernel::Zip(f64::atan2), "angle of the point (b, a), in radians").in_lanes(Lane::zip(lanes::angle)) },
    Op { domains: &[Positive, Amount], partial: Some(&EXPONENT), ..numbers(arithmetic("pow", Bound::rounded((2, 4)).and_parts((16, 1024)), Kernel::Elementwise(binary::pow),
        "a^b. Integers by squaring, wrapping; a negative exponent has no result. Of complex numbers e^(b log a), whose error grows with |b log a|").in_lanes(Lane::zip(lanes::pow).and(typed::POWER))) },
    Op { domains: &[Any, NotZero], partial: Some(&DIVISOR), ..arithmetic("remainder", EXACT, Kernel::Elementwise(binary::remainder),
        "what a leaves when divided by b, with the sign of a; an integer divisor 0 has no result").in_lanes(Lane::integers(typed::REMAINDER)) },
    Op { domains: &[Any, NotZero], partial: Some(&DIVISOR), ..integers("quotient", Kernel::Elementwise(binary::quotient),
        "a / b, truncated toward zero; a divisor 0 has no result").in_lanes(Lane::integers(typed::QUOTIENT)) },
    arithmetic("min", Bound::ORDERS, Kernel::Elementwise(binary::min), "the smaller; NaN if either is NaN").in_lanes(Lane::zip(lanes::min).and(typed::SMALLER)),
    arithmetic("max", Bound::ORDERS, Kernel::Elementwise(binary::max), "the larger; NaN if either is NaN").in_lanes(Lane::zip(lanes::max).and(typed::LARGER)),
    integers("bitwise_and", Kernel::Elementwise(binary::and), "bits that both have").in_lanes(Lane::integers(typed::BOTH)),
    integers("bitwise_or",  Kernel::Elementwise(binary::or),  "bits that either has").in_lanes(Lane::integers(typed::EITHER)),
    integers("bitwise_xor", Kernel::Elementwise(binary::xor), "bits that one of them has").in_lanes(Lane::integers(typed::ONE)),
    Op { domains: &[Any, Amount], partial: Some(&AMOUNT), ..integers("left_shift",  Kernel::Elementwise(binary::left_shift),
        "a · 2^b, wrapping; 0 for b of at least the width; a negative b has no result").in_lanes(Lane::integers(typed::LEFT_SHIFT)) },
    Op { domains: &[Any, Amount], partial: Some(&AMOUNT), ..integers("right_shift", Kernel::Elementwise(binary::right_shift),
        "a / 2^b, rounded down; 0 or −1 for b of at least the width; a negative b has no result").in_lanes(Lane::integers(typed::RIGHT_SHIFT)) },
    numbers(comparison("equal",         Kernel::Elementwise(binary::equal),         "1 where a = b").in_lanes(lanes::EQUAL)),
    numbers(comparison("not_equal",     Kernel::Elementwise(binary::not_equal),     "1 where a ≠ b, or either is NaN").in_lanes(lanes::NOT_EQUAL)),
    comparison("greater",       Kernel::Elementwise(binary::greater),       "1 where a > b").in_lanes(lanes::GREATER),
    comparison("less",          Kernel::Elementwise(binary::less),          "1 where a < b").in_lanes(lanes::LESS),
    comparison("greater_equal", Kernel::Elementwise(binary::greater_equal), "1 where a ≥ b").in_lanes(lanes::GREATER_EQUAL),
    comparison("less_equal",    Kernel::Elementwise(binary::less_equal),    "1 where a ≤ b").in_lanes(lanes::LESS_EQUAL),
    numbers(logical("logical_and", Kernel::Elementwise(binary::logical_and), "1 where both are true: not 0, NaN included")),
    numbers(logical("logical_or",  Kernel::Elementwise(binary::logical_or),  "1 where either is true")),
    numbers(logical("logical_xor", Kernel::Elementwise(binary::logical_xor), "1 where one of them is true")),
];
