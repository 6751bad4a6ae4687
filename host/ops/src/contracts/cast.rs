//! `as_type`.

use super::shared::{ELEMENTWISE, NUMBER, elementwise, pairs, types_of};
use crate::{
    kernels::{convert, kernel::Kernel, lanes::Lane},
    layout::Layout,
    op::{Contract, Gives, Op, Types},
    tolerance::Bound,
    values::Domain,
};

/// Pairs of different types that are tried, of 380.
const PAIRS: usize = 160;

const CAST: Contract = Contract {
    title: "Conversion",
    infers: false,
    copies: |inputs, outputs| inputs == outputs,
    alone: |_, dtype| Types {
        inputs: vec![dtype],
        output: Some(dtype),
    },
    // Transposed, each pair of types is a shader of its own, and another one from a few rows on.
    problems: |op, layout, varies, rng| {
        let varies = varies || layout == Layout::Transposed;
        vec![elementwise(layout, op.arity(), varies, rng)]
    },
    mixed: |_| {
        let all = pairs(&types_of(NUMBER), &types_of(NUMBER));
        let types = |&(x, y): &(_, _)| Types {
            inputs: vec![x],
            output: Some(y),
        };
        (all.iter().map(types).collect(), PAIRS)
    },
    ..ELEMENTWISE
};

pub(super) const OPS: &[Op] = &[Op {
    name: "as_type",
    doc: "x in the result's type. Float to integer truncates; NaN gives 0; values outside the range give the nearest \
          bound, infinities included. Integer to integer wraps. To float rounds to nearest even. A complex number gives \
          its real part, and comes from a real one with imaginary part 0. The same type copies \
          bytes, whatever the type",
    contract: &CAST,
    takes: &[NUMBER],
    gives: Gives::Any,
    bound: Bound::MOVES,
    domains: &[Domain::Any],
    partial: None,
    lane: Some(Lane::Cast),
    kernel: Kernel::Elementwise(convert::as_type),
}];
