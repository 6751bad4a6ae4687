//! What several families share: the elementwise contract, type sets, shapes that broadcast.

use crate::{
    attrs::Attr,
    layout::Layout,
    op::{self, Attribute, AttributeKind, Contract, Gives, Op, Types},
    problems::Problem,
    request::Spec,
    values::Rng,
    view::Desc,
};
use nx_vulkan_abi::{DType, DTypeSet, epilogue::FACTORS};

pub(super) const REAL: DTypeSet = DTypeSet::REAL;
pub(super) const INTEGER: DTypeSet = DTypeSet::INTEGER;
pub(super) const NUMBER: DTypeSet = DTypeSet::NUMBER;

/// Pairs of different types that are tried for each op with more than one operand, of up to 132.
pub(super) const MIXED: usize = 10;

/// One result of the broadcast operands, computed element by element.
pub(super) const ELEMENTWISE: Contract = Contract {
    title: "Elementwise",
    operands: &["x"],
    results: &["result"],
    attributes: &[],
    variadic: false,
    several: false,
    infers: true,
    copies: |_, _| false,
    complete: |_, _, _| {},
    infer: |op, inputs, _| Ok((result_type(op, inputs)?, broadcast(inputs)?)),
    all: |_, first, _| vec![first],
    check: |_, inputs, outputs, _| fits(inputs, &outputs[0]),
    operand_shapes: |op, shape| vec![shape.to_vec(); op.arity()],
    indices: |_, _| (0, 0),
    problems: |op, layout, varies, rng| vec![elementwise(layout, op.arity(), varies, rng)],
    tiles: Default::default,
    tiled: false,
    fit: |_, _| {},
    alone: |op, dtype| Types {
        inputs: vec![dtype; op.arity()],
        output: None,
    },
    mixed: |_| (Vec::new(), 0),
    terms: |_, _, _| 1,
    work: op::elements,
    square: |power| vec![1 << (power / 2), 1 << power.div_ceil(2)],
};

/// What becomes of the sums of a product.
pub(super) const EPILOGUE: Attribute = Attribute {
    name: nx_vulkan_abi::epilogue::ATTRIBUTE,
    kind: AttributeKind::Text,
    doc: "what becomes of each sum, of x and of the further operands i2, i3, …, as in `add(x, i2); max(%0, 0)`; see below. \
          None by default",
};

/// How exact a product has to be.
pub(super) const PRECISION: Attribute = Attribute {
    name: nx_vulkan_abi::precision::ATTRIBUTE,
    kind: AttributeKind::Choice(nx_vulkan_abi::precision::WORDS),
    doc: "how exact sums of f32 have to be: `default`, `high` or `highest`; see below. `default` without it",
};

/// How exact an expression has to be.
pub(super) const CALLS_PRECISION: Attribute = Attribute {
    name: nx_vulkan_abi::precision::ATTRIBUTE,
    kind: AttributeKind::Choice(nx_vulkan_abi::precision::WORDS),
    doc: "how exact functions of f32 have to be: with `high` within 2^-16, else as the ops are; see *Precision*. `default` without it",
};

/// Makes a problem one whose result has that type: epilogues of integers have no floats, and complex products none at all.
pub(super) fn fit_epilogue(dtype: DType, problem: &mut Problem) {
    let Some(at) = problem
        .attrs
        .iter()
        .position(|attr| attr.name == EPILOGUE.name)
    else {
        return;
    };
    if dtype.is_complex() || dtype.is_integer() && problem.inputs.len() == FACTORS {
        problem.attrs.remove(at);
        problem.inputs.truncate(FACTORS);
    } else if dtype.is_integer() {
        let call = |(index, _)| match index {
            0 => "add(x, i2)".to_owned(),
            index => format!("max(%{}, i{})", index - 1, index + FACTORS),
        };
        let calls = problem.inputs[FACTORS..].iter().enumerate().map(call);
        let text = calls.collect::<Vec<_>>().join("; ");
        problem.attrs[at] = Attr::text(EPILOGUE.name, &text);
    }
}

/// The problem, whose result may be less exact.
pub(super) fn high(mut problem: Problem) -> Problem {
    problem.attrs.push(Attr::text(PRECISION.name, "high"));
    problem
}

/// The problem, or one in four times the same whose result may be less exact.
pub(super) fn loosened(problem: Problem, rng: &mut Rng) -> Problem {
    match rng.below(4) {
        0 => high(problem),
        _ => problem,
    }
}

/// The type that Nx infers, for ops that leave it to their operands.
pub(super) fn result_type(op: &Op, inputs: &[Spec]) -> Result<DType, String> {
    let types: Vec<DType> = inputs.iter().map(|input| input.0).collect();
    let merged = types.iter().copied().reduce(DType::merge);
    let inferred = match op.gives {
        Gives::Operand => types.first().copied(),
        Gives::Bool => Some(DType::U8),
        Gives::Float => merged.map(floating),
        Gives::Complex => merged.map(complex),
        Gives::OwnPart | Gives::Part => types.first().map(|dtype| dtype.part()),
        Gives::Integer | Gives::Real | Gives::Any => merged,
    };
    inferred.ok_or_else(|| "it has no operands".to_owned())
}

/// f32 in place of integers.
pub(super) fn floating(dtype: DType) -> DType {
    if dtype.is_integer() {
        DType::F32
    } else {
        dtype
    }
}

/// The complex type that Nx makes of a type.
pub(super) fn complex(dtype: DType) -> DType {
    let is_double = dtype.part() == DType::F64;
    if is_double { DType::C128 } else { DType::C64 }
}

pub(crate) fn broadcast(inputs: &[Spec]) -> Result<Vec<u64>, String> {
    let rank = inputs.iter().map(|input| input.1.len()).max().unwrap_or(0);
    let mut shape = vec![1; rank];
    for (_, own) in inputs {
        for (to, &extent) in shape[rank - own.len()..].iter_mut().zip(own) {
            match (*to, extent) {
                (a, b) if a == b || b == 1 => {}
                (1, b) => *to = b,
                _ => {
                    let shapes: Vec<_> = inputs.iter().map(|input| &input.1).collect();
                    return Err(format!("the shapes {shapes:?} do not broadcast to one"));
                }
            }
        }
    }
    Ok(shape)
}

pub(super) fn fits(inputs: &[Desc<'_>], out: &Desc<'_>) -> Result<(), String> {
    let fits = |desc: &&Desc<'_>| {
        let lead = out.shape.len().checked_sub(desc.shape.len());
        lead.is_some_and(|lead| {
            let pairs = desc.shape.iter().zip(&out.shape[lead..]);
            pairs.into_iter().all(|(&a, &b)| a == b || a == 1)
        })
    };
    match inputs.iter().find(|desc| !fits(desc)) {
        Some(desc) => Err(format!(
            "{:?} does not broadcast to {:?}",
            desc.shape, out.shape
        )),
        None => Ok(()),
    }
}

/// One problem of an elementwise op; `varies` picks among shapes.
pub(super) fn elementwise(layout: Layout, arity: usize, varies: bool, rng: &mut Rng) -> Problem {
    let shapes: &[&[u64]] = match layout {
        Layout::Contiguous => &[&[1021], &[3, 5, 7], &[12, 16], &[1, 259]],
        Layout::Transposed => &[&[9, 7], &[7, 6], &[8, 12], &[4, 5, 8], &[33, 17]],
        Layout::Broadcast | Layout::Reversed => &[&[9, 7], &[8, 16], &[3, 4, 5]],
        Layout::Sliced => &[&[5, 7], &[67], &[8, 12], &[3, 4, 5]],
        Layout::Empty => &[&[0], &[0, 3], &[4, 0]],
        Layout::Scalar => &[&[]],
        Layout::Deep => &[&[2, 3, 2, 5, 3], &[2, 1, 3, 2, 2, 3], &[3, 2, 2, 2, 4]],
        Layout::Large => &[&[(1 << 20) + 3], &[1 << 20]],
    };
    let shape = if varies || layout == Layout::Contiguous {
        rng.pick(shapes)
    } else {
        shapes[0]
    };
    let own = |index: usize| {
        // A later operand may have fewer axes, or axes of extent 1, and repeat along the others.
        if layout != Layout::Broadcast || index == 0 {
            return shape.to_vec();
        }
        match rng.0 >> (8 * index) & 3 {
            _ if !varies => shape[1..].to_vec(),
            0 => shape[1..].to_vec(),
            1 => Vec::new(),
            2 => [&shape[..shape.len() - 1], &[1]].concat(),
            _ => [&[1], &shape[1..]].concat(),
        }
    };
    Problem {
        inputs: (0..arity).map(own).collect(),
        output: shape.to_vec(),
        attrs: Vec::new(),
    }
}

/// `count` of `all`, or all where there are fewer.
pub(super) fn some<T: Copy>(all: &[T], count: usize, rng: &mut Rng) -> Vec<T> {
    let mut chosen = all.to_vec();
    while chosen.len() > count {
        chosen.swap_remove(rng.below(chosen.len() as u64) as usize);
    }
    chosen
}

/// The types of a set.
pub(super) fn types_of(set: DTypeSet) -> Vec<DType> {
    DType::all().filter(|dtype| set.has(*dtype)).collect()
}

/// Pairs of different types, the first of `a` and the second of `b`.
pub(super) fn pairs(a: &[DType], b: &[DType]) -> Vec<(DType, DType)> {
    let all = a.iter().flat_map(|&x| b.iter().map(move |&y| (x, y)));
    all.filter(|(x, y)| x != y).collect()
}

/// Whether merging takes a value to a float of at most 16 bits that cannot hold it: the result then depends on whether it is
/// rounded before the op or after it, which `docs/ops.md` does not settle.
pub(super) fn narrows(x: DType, y: DType) -> bool {
    let half = |dtype: DType| dtype.is_float() && dtype.size() <= 2;
    half(x.merge(y)) && !(half(x) && half(y))
}

/// Axes of `shape` without some of them.
pub(super) fn without(shape: &[u64], axes: &[i64]) -> Vec<u64> {
    let kept = shape
        .iter()
        .zip(0..)
        .filter(|(_, axis)| !axes.contains(axis));
    kept.map(|(&extent, _)| extent).collect()
}

/// Adds an attribute unless it is there.
pub(super) fn default(attrs: &mut Vec<Attr>, attr: Attr) {
    if !attrs.iter().any(|known| known.name == attr.name) {
        attrs.push(attr);
    }
}

pub(super) fn in_range(name: &str, axes: &[i64], x: &Desc<'_>) -> Result<(), String> {
    let range = 0..x.shape.len() as i64;
    match axes.iter().find(|axis| !range.contains(axis)) {
        Some(axis) => Err(format!("attribute {name} names axis {axis} of {x}")),
        None => Ok(()),
    }
}

/// Fails unless the axes exist and ascend.
pub(super) fn ordered_axes(name: &str, axes: &[i64], x: &Desc<'_>) -> Result<(), String> {
    in_range(name, axes, x)?;
    if axes.is_sorted_by(|a, b| a < b) {
        return Ok(());
    }
    Err(format!("attribute {name} must ascend, got {axes:?}"))
}

pub(super) fn at_most_one_axis(axis: &[i64], x: &Desc<'_>) -> Result<(), String> {
    if axis.len() > 1 {
        return Err(format!(
            "attribute axis must be one axis or empty, got {axis:?}"
        ));
    }
    in_range("axis", axis, x)
}
