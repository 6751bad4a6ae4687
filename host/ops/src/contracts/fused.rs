//! `fused`: elementwise ops as one, by an expression of the operands.

use super::shared::{
    CALLS_PRECISION, ELEMENTWISE, MIXED, REAL, broadcast, default, elementwise, fits, pairs,
    types_of,
};
use crate::{
    attrs::{Attr, text},
    expression,
    kernels::{fused, kernel::Kernel},
    op::{Attribute, AttributeKind, Contract, Gives, Op, Types},
    problems::Problem,
    request::Spec,
    tolerance::Bound,
    values::Domain::Any,
};
use nx_vulkan_abi::{DType, DTypeSet, expression::ATTRIBUTE};

const FUSED: Contract = Contract {
    title: "Elementwise, several ops as one",
    variadic: true,
    several: true,
    attributes: &[
        Attribute {
            name: ATTRIBUTE,
            kind: AttributeKind::Text,
            doc: "what is made of an element of each operand, i0, i1, …, as in \
              `add(i0, i1):u32; bitwise_xor(%0, 7:u32):u32; (%0, %1)`; see below. Their sum by default",
        },
        CALLS_PRECISION,
    ],
    complete: |inputs, _, attrs| default(attrs, Attr::text(ATTRIBUTE, &sum(inputs))),
    infer: |_, inputs, attrs| {
        let first = expression::of(attrs)?.gives().next();
        Ok((first.ok_or("it has no result")?, broadcast(inputs)?))
    },
    all: |_, first, attrs| {
        let expression = expression::of(attrs);
        let others = expression
            .iter()
            .flat_map(|expression| expression.gives().skip(1));
        let others = others
            .map(|dtype| (dtype, first.1.clone()))
            .collect::<Vec<_>>();
        [vec![first], others].concat()
    },
    check: |_, inputs, outputs, attrs| {
        let shape = outputs[0].shape;
        if let Some(other) = outputs.iter().find(|out| out.shape != shape) {
            return Err(format!(
                "its results have one shape, not {:?} and {shape:?}",
                other.shape
            ));
        }
        fits(inputs, &outputs[0])?;
        let [operands, results] =
            [inputs, outputs].map(|descs| descs.iter().map(|desc| desc.dtype).collect::<Vec<_>>());
        expression::read(attrs, &operands, &results).map(drop)
    },
    problems: |_, layout, varies, rng| {
        let problem = |row: usize| {
            let number = Attr::text(ATTRIBUTE, &row.to_string());
            let problem = elementwise(layout, EXPRESSIONS[row].0, varies, rng);
            Problem {
                attrs: vec![number],
                ..problem
            }
        };
        (0..EXPRESSIONS.len()).map(problem).collect()
    },
    fit: |dtype, problem| {
        let number = text(&problem.attrs, ATTRIBUTE).and_then(|text| text.parse().ok());
        let (_, floats, integers) = EXPRESSIONS[number.unwrap_or(0) % EXPRESSIONS.len()];
        let text = if dtype.is_integer() { integers } else { floats };
        problem.attrs = vec![Attr::text(ATTRIBUTE, &text.replace('T', dtype.name()))];
    },
    mixed: |_| {
        let real = types_of(DTypeSet::REAL);
        let all = pairs(&real, &real).into_iter();
        let types = |(x, y)| Types {
            inputs: vec![x, y],
            output: None,
        };
        let fits = |(x, y): &(DType, DType)| x.merge(*y) == *y;
        (all.filter(fits).map(types).collect(), MIXED)
    },
    ..ELEMENTWISE
};

/// The expression of a request that has none.
fn sum(inputs: &[Spec]) -> String {
    let merged = inputs.iter().map(|input| input.0).reduce(DType::merge);
    let dtype = merged.unwrap_or(DType::F32);
    let further = (0..).zip(1..inputs.len());
    let calls = further.map(|(made, operand)| format!("; add(%{made}, i{operand}):{dtype}"));
    format!("as_type(i0):{dtype}{}", calls.collect::<String>())
}

/// Numbers of operands with expressions to try, of floats and of integers, `T` being the operands' type.
const EXPRESSIONS: &[(usize, &str, &str)] = &[
    (
        1,
        "as_type(i0):T; abs(%0):T; greater(%1, 1:s32):u8; select(%2, %1, i0):T",
        "multiply(i0, 31:s32):T; bitwise_not(%0):T; remainder(%1, 1009:s32):T",
    ),
    (
        2,
        "multiply(i0, 2:s32):T; add(%0, i1):T; less(%1, i0):u8; (%1, %2)",
        "add(i0, i1):T; left_shift(%0, 1:u8):T; bitwise_xor(%1, i1):T; (%0, %2)",
    ),
    // A product with 0 is not 0 of an infinity, and has a sign, whoever knows of the 0.
    (
        1,
        "multiply(i0, 0:s32):T; subtract(0.0:T, %0):T; divide(1:s32, %1):T; multiply(-0.0:T, i0):T; is_nan(i0):u8; \
         subtract(%4, %4):u8; multiply(%5, i0):T; floor(0.25:T):T; multiply(i0, %7):T; (%0, %2, %3, %6, %8)",
        "multiply(i0, 0:s32):T; subtract(0:u8, i0):T; bitwise_or(%0, %1):T",
    ),
    (
        2,
        "as_type(i0):f16; as_type(i1):f16; add(%0, %1):f16; as_type(%2):bf16; multiply(%3, %3):bf16; (%2, %4)",
        "as_type(i0):f32; multiply(%0, 0.5:f32):f32; as_type(%1):T; bitwise_xor(%2, i1):T; (%1, %3)",
    ),
    (
        3,
        "select(i0, i1, i2):T; clip(%0, -3:s32, 3.5:T):T; as_type(%1):s32; (%2, %1, %0)",
        "select(i0, i1, i2):T; clip(%0, 0:u8, 1:s32):T; as_type(%1):f32; (%2, %1)",
    ),
    (
        5,
        "is_nan(i0):u8; logical_or(%0, 0:u8):u8; subtract(i1, i2):T; select(%1, i3, %2):T; equal(%3, i4):u8; (%4, %3, %1)",
        "add(i0, i1):T; left_shift(i2, 1:u8):T; bitwise_or(%0, %1):T; count_leading_zeros(i3):T; max(%2, %3):T; \
         greater(%4, i4):u8; (%5, %4)",
    ),
    (
        8,
        "add(i0, i1):T; subtract(i2, i3):T; multiply(%0, %1):T; max(i4, i5):T; add(%2, %3):T; select(i6, %4, i7):T",
        "add(i0, i1):T; subtract(i2, i3):T; multiply(%0, %1):T; max(i4, i5):T; quotient(%3, 3:s32):T; add(%2, %4):T; \
         select(i6, %5, i7):T",
    ),
];

pub(super) const OPS: &[Op] = &[Op {
    name: "fused",
    doc: "what the expression makes of the elements of the operands at one index, broadcast to the results' shape: the bits of its \
          ops one by one",
    contract: &FUSED,
    takes: &[REAL],
    gives: Gives::Real,
    bound: Bound::ORDERS,
    domains: &[Any],
    partial: None,
    lane: None,
    kernel: Kernel::Fused(fused::run),
}];
