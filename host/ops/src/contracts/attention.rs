//! `attention`: means of the rows of one tensor, weighted by how the rows of two others meet.

mod problems;

use super::shared::{ELEMENTWISE, REAL, result_type};
use crate::{
    attention::{ATTENTION, ORDER, OWN, SCORES, order, scores},
    attrs::Attr,
    epilogue::read_as,
    kernels::{attention, kernel::Kernel},
    op::{Attribute, AttributeKind, Contract, Gives, Op, Types},
    tolerance::{Bound, Growth},
    values::Domain::Term,
    view::Desc,
};
use nx_vulkan_abi::{DType, DTypeSet, epilogue};
use problems::MIXED;

/// Types of q, k, v and the result.
const FLOATS: DTypeSet = DTypeSet::of(&[DType::F16, DType::BF16, DType::F32, DType::F64]);

const CONTRACT: Contract = Contract {
    title: "Attention",
    operands: &["q", "k", "v"],
    attributes: &[
        Attribute {
            name: SCORES,
            kind: AttributeKind::Text,
            doc: "what becomes of each score before the softmax, of x and of the further operands i3, i4, …, as in \
                  `multiply(x, 0.125); add(%0, i3)`, which is written as an epilogue is. Nothing by default",
        },
        Attribute {
            name: ORDER,
            kind: AttributeKind::Ints,
            doc: "the axes of the result, batches, rows and elements of v, in the order in which it has them: `[0, 2, 1, 3]` of \
                  heads puts those of a row beside each other. As they are listed by default",
        },
    ],
    variadic: true,
    infer: |op, inputs, attrs| {
        let [q, k, v] = [0, 1, 2].map(|index| &*inputs[index].1);
        Ok((result_type(op, inputs)?, turned(shape(q, k, v)?, attrs)?))
    },
    check: |_, inputs, outputs, attrs| check(inputs, &outputs[0], attrs),
    problems: |_, layout, _, rng| problems::of(layout, rng),
    fit: problems::fit,
    mixed: |_| {
        let types = |inputs: &&[DType]| Types {
            inputs: inputs.to_vec(),
            output: None,
        };
        (MIXED.iter().map(types).collect(), MIXED.len())
    },
    tiles: problems::tiles,
    tiled: true,
    // A term of each score and of each mean, for every key.
    terms: |inputs, _, _| {
        let [keys, width, depth] = extents(inputs);
        keys * (width + depth).div_ceil(width.max(1))
    },
    work: |inputs, _| {
        let [keys, width, depth] = extents(inputs);
        let rows: u64 = inputs[0].iter().rev().skip(1).product();
        vec![rows as f64, keys as f64, (width + depth) as f64]
    },
    square: |power| vec![1 << (power / 2); 2],
    ..ELEMENTWISE
};

/// Keys, elements of each row of v, and of each row of k.
fn extents(inputs: &[&[u64]]) -> [u64; 3] {
    let last = |index: usize, back: usize| {
        let shape = inputs.get(index).copied().unwrap_or_default();
        shape.iter().rev().nth(back).copied().unwrap_or(1)
    };
    [last(1, 1), last(2, 0), last(1, 0)]
}

/// The shape of the result.
fn shape(q: &[u64], k: &[u64], v: &[u64]) -> Result<Vec<u64>, String> {
    let Some(batches) = k.len().checked_sub(2) else {
        return Err(format!(
            "k must have an axis of keys and one of their elements, got the shape {k:?}"
        ));
    };
    if v.len() != k.len() {
        return Err(format!(
            "v must have as many axes as k, got the shapes {v:?} and {k:?}"
        ));
    }
    if q.len() < k.len() {
        return Err(format!(
            "q must have at least as many axes as k, got the shapes {q:?} and {k:?}"
        ));
    }
    if q[..batches] != k[..batches] || v[..batches] != k[..batches] {
        return Err(format!(
            "q, k and v must begin with the same batches, got {:?}, {:?} and {:?}",
            &q[..batches],
            &k[..batches],
            &v[..batches]
        ));
    }
    let ([rows @ .., depth], [.., width]) = (q, v) else {
        return Err("q and v have no axes".to_owned());
    };
    if *depth != k[batches + 1] {
        return Err(format!(
            "rows of q and k must be equally long, got {depth} and {} elements",
            k[batches + 1]
        ));
    }
    if v[batches] != k[batches] {
        return Err(format!(
            "v must have a row for each of k, got {} for {}",
            v[batches], k[batches]
        ));
    }
    Ok([rows, &[*width]].concat())
}

/// A result's shape in the order that the attributes say.
fn turned(shape: Vec<u64>, attrs: &[Attr]) -> Result<Vec<u64>, String> {
    Ok(match order(attrs, shape.len())? {
        Some(order) => order.into_iter().map(|axis| shape[axis]).collect(),
        None => shape,
    })
}

fn check(inputs: &[Desc<'_>], out: &Desc<'_>, attrs: &[Attr]) -> Result<(), String> {
    let [q, k, v, further @ ..] = inputs else {
        return Err("it is of q, k and v".to_owned());
    };
    if k.dtype != q.dtype || v.dtype != q.dtype {
        return Err(format!(
            "q, k and v must have one type, got {}, {} and {}",
            q.dtype, k.dtype, v.dtype
        ));
    }
    let expected = turned(shape(q.shape, k.shape, v.shape)?, attrs)?;
    if expected != out.shape {
        return Err(format!(
            "the result must have the shape {expected:?}, not {:?}",
            out.shape
        ));
    }
    if attrs.iter().all(|attr| attr.name != SCORES) {
        return match inputs.len() {
            OWN => Ok(()),
            given => Err(format!(
                "expected {OWN} operands without the attribute {SCORES}, got {given}"
            )),
        };
    }
    let of_scores = [q, k].into_iter().chain(further);
    let dtypes: Vec<DType> = of_scores.map(|input| input.dtype).collect();
    let types = epilogue::Types::of(&dtypes, out.dtype, false);
    let shape = scores(q.shape, k.shape).ok_or_else(|| "k has no keys".to_owned())?;
    read_as(SCORES, attrs, types, inputs, OWN, ("scores", &shape)).map(drop)
}

pub(super) const OPS: &[Op] = &[Op {
    name: ATTENTION,
    doc: "for each row of q the mean of the rows of v, weighted by the softmax of its scores: its products with the rows of k, or what \
          `scores` makes of them. Sums of f16, bf16 and f32 are f32 or wider; no keys give 0",
    contract: &CONTRACT,
    takes: &[FLOATS, FLOATS, FLOATS, REAL],
    gives: Gives::Operand,
    bound: Bound::reduces(Growth::Weights),
    domains: &[Term],
    partial: None,
    lane: None,
    kernel: Kernel::Fused(attention::run),
}];
