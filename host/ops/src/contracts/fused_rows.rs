//! `fused_rows`: elementwise ops and reductions of the last axis as one, by an expression of the operands.

use super::shared::{CALLS_PRECISION, ELEMENTWISE, REAL, broadcast, default, elementwise};
use crate::{
    attrs::{Attr, text},
    expression::{self, ROWS, read_rows},
    kernels::{fused_rows, kernel::Kernel},
    layout::Layout,
    op::{Attribute, AttributeKind, Contract, Gives, Op},
    problems::Problem,
    request::Spec,
    tolerance::{Bound, Growth},
    values::{Domain::Term, Rng},
    view::Desc,
};
use nx_vulkan_abi::{DType, expression::ATTRIBUTE};

/// How often an error may go through a row's sums and functions.
const ROUNDINGS: u64 = 64;

const FUSED_ROWS: Contract = Contract {
    title: "Rows, several ops as one",
    variadic: true,
    several: true,
    attributes: &[
        Attribute {
            name: ATTRIBUTE,
            kind: AttributeKind::Text,
            doc: "what is made of the rows of the operands, i0, i1, …, as in \
              `reduce_max(i0):f32; subtract(i0, %0):f32; exp(%1):f32; sum(%2):f32; divide(%2, %3):f32`; see below. The sum of \
              the first one's by default",
        },
        CALLS_PRECISION,
    ],
    complete: |inputs, _, attrs| default(attrs, Attr::text(ATTRIBUTE, &sum(inputs))),
    infer: |_, inputs, attrs| {
        results(inputs, attrs)?
            .into_iter()
            .next()
            .ok_or_else(|| "it has no result".to_owned())
    },
    all: |inputs, first, attrs| {
        let others = results(inputs, attrs).into_iter().flatten().skip(1);
        std::iter::once(first).chain(others).collect()
    },
    check: |_, inputs, outputs, attrs| {
        let specs: Vec<Spec> = inputs.iter().map(spec).collect();
        let shape = broadcast(&specs)?;
        if shape.is_empty() {
            return Err("operands without axes have no rows".to_owned());
        }
        let dtypes: Vec<DType> = outputs.iter().map(|output| output.dtype).collect();
        read_rows(attrs, inputs, &dtypes, &shape)?;
        let expected = results(&specs, attrs)?;
        let unlike = expected
            .iter()
            .zip(outputs)
            .find(|(expected, output)| expected.1 != output.shape);
        match unlike {
            Some((expected, output)) => Err(format!(
                "it gives a result {:?}, not {:?}",
                expected.1, output.shape
            )),
            None => Ok(()),
        }
    },
    problems: |_, layout, varies, rng| {
        let problem = |row: usize| problem(row, layout, varies, rng);
        (0..EXPRESSIONS.len()).map(problem).collect()
    },
    fit: |dtype, problem| {
        let number = text(&problem.attrs, ATTRIBUTE).and_then(|text| text.parse().ok());
        let is_narrow = dtype.is_float() && dtype.size() == 1;
        let row = if is_narrow { 0 } else { number.unwrap_or(0) };
        let (operands, floats) = EXPRESSIONS[row % EXPRESSIONS.len()];
        problem.inputs.truncate(operands);
        let text = if dtype.is_integer() { INTEGERS } else { floats };
        let wide = if dtype == DType::F64 { "f64" } else { "f32" };
        let text = text.replace('T', dtype.name()).replace('W', wide);
        problem.attrs = vec![Attr::text(ATTRIBUTE, &text)];
    },
    terms: |_, _, _| ROUNDINGS,
    ..ELEMENTWISE
};

fn spec(desc: &Desc<'_>) -> Spec {
    (desc.dtype, desc.shape.to_vec())
}

/// The results of a request's expression.
fn results(inputs: &[Spec], attrs: &[Attr]) -> Result<Vec<Spec>, String> {
    let expression = expression::of(attrs)?;
    let shape = broadcast(inputs)?;
    let mut reduced = shape.clone();
    if let Some(last) = reduced.last_mut() {
        *last = 1;
    }
    let is_long = shape.last() != Some(&1);
    let operands = inputs
        .iter()
        .map(|input| is_long && matches!(input.1.last(), None | Some(1)));
    let per_row = expression.per_row(&operands.collect::<Vec<bool>>());
    let result = |(dtype, call): (DType, &usize)| {
        (
            dtype,
            if per_row[*call] { &reduced } else { &shape }.clone(),
        )
    };
    Ok(expression
        .gives()
        .zip(&expression.results)
        .map(result)
        .collect())
}

/// The expression of a request that has none.
fn sum(inputs: &[Spec]) -> String {
    let dtype = inputs.first().map_or(DType::F32, |input| input.0);
    match [DType::F16, DType::BF16, DType::F32, DType::F64].contains(&dtype) {
        true => format!("sum(i0):{dtype}"),
        false => "as_type(i0):f32; sum(%0):f32".to_owned(),
    }
}

/// Numbers of operands with expressions to try, `T` being the operands' type and `W` what it is computed in.
const EXPRESSIONS: &[(usize, &str)] = &[
    (
        1,
        "as_type(i0):W; reduce_max(%0):W; subtract(%0, %1):W; exp(%2):W; sum(%3):W; divide(%3, %4):W; as_type(%5):T",
    ),
    (
        2,
        "as_type(i0):W; sum(%0):W; multiply(%1, 0.0078125:W):W; subtract(%0, %2):W; multiply(%3, %3):W; sum(%4):W; \
         add(%5, 1:W):W; rsqrt(%6):W; multiply(%3, %7):W; multiply(%8, i1):W; as_type(%9):T; (%10, %7)",
    ),
    (
        2,
        "add(i0, i1):T; reduce_max(%0):T; reduce_min(%0):T; greater(%0, %2):u8; select(%3, %0, i1):T; (%4, %1, %2)",
    ),
];
const INTEGERS: &str = "as_type(i0):f32; reduce_max(%0):f32; equal(%0, %1):u8; as_type(%2):T";

fn problem(row: usize, layout: Layout, varies: bool, rng: &mut Rng) -> Problem {
    let operands = EXPRESSIONS[row].0;
    let shapes: &[&[u64]] = match layout {
        Layout::Contiguous => &[&[5, 1021], &[3, 5, 7], &[12, 160], &[1, 2500], &[300, 33]],
        Layout::Large => &[&[1025, 1027], &[3, 8000], &[70_001, 5]],
        Layout::Scalar => &[&[1], &[1, 1]],
        _ => &[],
    };
    let mut problem = elementwise(layout, operands, varies, rng);
    if !shapes.is_empty() {
        problem.inputs = vec![rng.pick(shapes).to_vec(); operands];
    }
    problem.attrs = vec![Attr::text(ATTRIBUTE, &row.to_string())];
    problem
}

pub(super) const OPS: &[Op] = &[Op {
    name: ROWS,
    doc: "what the expression makes of the rows of the operands, broadcast to one shape: of elements one result each, of rows one \
          value, whose last axis has one element; each call rounds to its type",
    contract: &FUSED_ROWS,
    takes: &[REAL],
    gives: Gives::Real,
    bound: Bound {
        ulp: (8, 8),
        ..Bound::reduces(Growth::Steps)
    },
    domains: &[Term],
    partial: None,
    lane: None,
    kernel: Kernel::Fused(fused_rows::run),
}];
