//! Elementwise ops of three operands: `select` and `clip`.

use super::shared::{ELEMENTWISE, MIXED, NUMBER, REAL, pairs, types_of};
use crate::{
    kernels::{
        binary,
        kernel::Kernel,
        lanes::{self, Lane},
    },
    op::{Contract, Gives, Op, Types},
    tolerance::Bound,
    values::Domain::{Any, Flag},
};
use nx_vulkan_abi::DType;

const SELECT: Contract = Contract {
    title: "Elementwise, three operands",
    operands: &["pred", "on_true", "on_false"],
    infer: |op, inputs, attrs| {
        let (_, shape) = (ELEMENTWISE.infer)(op, inputs, attrs)?;
        Ok((inputs[1].0.merge(inputs[2].0), shape))
    },
    alone: |_, dtype| Types {
        inputs: vec![DType::U8, dtype, dtype],
        output: None,
    },
    mixed: |_| {
        let (mut all, count) = mixed(|x, y| Some(x.merge(y)));
        let complex = [DType::C64, DType::C128].map(|pred| Types {
            inputs: vec![pred, DType::S32, DType::F32],
            output: Some(DType::F32),
        });
        all.extend(complex);
        (all, count)
    },
    ..ELEMENTWISE
};

const CLIP: Contract = Contract {
    title: "Elementwise, three operands",
    operands: &["x", "min", "max"],
    mixed: |_| mixed(|_, _| None),
    ..ELEMENTWISE
};

/// Operands of two types, the outer ones of the same, and what the result is.
fn mixed(output: fn(DType, DType) -> Option<DType>) -> (Vec<Types>, usize) {
    let pairs = pairs(&types_of(REAL), &types_of(REAL)).into_iter();
    let types = pairs.map(|(x, y)| Types {
        inputs: vec![x, y, x],
        output: output(x, y),
    });
    (types.collect(), MIXED)
}

pub(super) const OPS: &[Op] = &[
    Op {
        name: "select",
        doc: "on_true where pred is not 0, else on_false",
        contract: &SELECT,
        takes: &[NUMBER, NUMBER, NUMBER],
        gives: Gives::Real,
        bound: Bound::MOVES,
        domains: &[Flag, Any, Any],
        partial: None,
        lane: Some(Lane::Select),
        kernel: Kernel::Elementwise(binary::select),
    },
    Op {
        name: "clip",
        doc: "`min(max(x, min), max)`; NaN stays NaN",
        contract: &CLIP,
        takes: &[REAL, REAL, REAL],
        gives: Gives::Real,
        bound: Bound::ORDERS,
        domains: &[Any, Any, Any],
        partial: None,
        lane: Some(lanes::CLIP),
        kernel: Kernel::Elementwise(binary::clip),
    },
];
