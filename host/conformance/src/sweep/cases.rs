//! What the sweep runs: every op on every type in every layout, sampled where the combinations are too many.

use super::layout::Operand;
use nx_vulkan_abi::{DType, DTypeSet};
use nx_vulkan_ops::{
    Attr, Result,
    infer::{Spec, infer, merge},
    kernels::{OpInfo, OpKind, ResultType},
    layout::{LAYOUTS, Layout},
    problems,
    values::{Rng, Values},
};

/// Pairs of different types that are tried for each op with more than one operand, of up to 132.
const MIXED: usize = 10;

/// Half of the mixed requests are contiguous.
const MIXED_LAYOUTS: [Layout; 6] = [
    Layout::Contiguous,
    Layout::Contiguous,
    Layout::Contiguous,
    Layout::Transposed,
    Layout::Broadcast,
    Layout::Sliced,
];

/// How many of the problems of a layout are tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Variety {
    One,
    Few,
    All,
}

/// One request with the layout of its operands.
#[derive(Debug, Clone)]
pub(super) struct Case {
    pub(super) op: &'static OpInfo,
    pub(super) inputs: Vec<Operand>,
    /// At least one.
    pub(super) outputs: Vec<Spec>,
    pub(super) attrs: Vec<Attr>,
    pub(super) layout: Layout,
    pub(super) values: Values,
    pub(super) seed: u64,
}

/// Types of a request's operands and result; no result stands for the one that Nx infers.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Types {
    pub(super) inputs: Vec<DType>,
    pub(super) output: Option<DType>,
}

/// The cases of `op`. The same seed gives the same cases.
///
/// # Errors
/// Bad input when the tables here break the op's contract.
pub(super) fn cases(op: &'static OpInfo, seed: u64, quick: bool) -> Result<Vec<Case>> {
    let mut rng = Rng(op
        .name
        .bytes()
        .fold(seed, |hash, byte| hash.wrapping_mul(31) ^ u64::from(byte)));
    let mut all = Vec::new();
    let same = same_types(op);
    let large = rng.below(same.len() as u64) as usize;
    let varied = rng.below(same.len() as u64) as usize;
    for (index, types) in same.iter().enumerate() {
        // f32 and one other type see every shape; the others those that need few different shaders.
        let is_varied = index == varied || types.inputs.last() == Some(&DType::F32);
        let variety = match (quick, is_varied) {
            (true, _) => Variety::One,
            (_, true) => Variety::All,
            _ => Variety::Few,
        };
        for layout in LAYOUTS {
            let skip = match layout {
                Layout::Large => index != large && op.kind != OpKind::Dot || quick,
                Layout::Contiguous | Layout::Empty | Layout::Scalar => false,
                _ => op.arity == 0,
            };
            if !skip {
                in_layout(op, types, layout, variety, &mut rng, &mut all)?;
            }
        }
    }
    if !quick {
        for types in mixed_types(op, &mut rng) {
            let layout = rng.pick(&MIXED_LAYOUTS);
            in_layout(op, &types, layout, Variety::One, &mut rng, &mut all)?;
        }
    }
    Ok(all)
}

/// Every type the op takes, alone: all operands have it, or the result of an op without operands.
pub(super) fn same_types(op: &OpInfo) -> Vec<Types> {
    let types = |dtype: DType| match op.kind {
        OpKind::Select => Types {
            inputs: vec![DType::U8, dtype, dtype],
            output: None,
        },
        OpKind::Iota | OpKind::Eye | OpKind::Fill => Types {
            inputs: vec![],
            output: Some(dtype),
        },
        OpKind::Cast => Types {
            inputs: vec![dtype],
            output: Some(dtype),
        },
        _ => Types {
            inputs: vec![dtype; op.arity],
            output: None,
        },
    };
    let set = if op.result == ResultType::Any {
        DTypeSet::ALL
    } else {
        op.operands
    };
    DType::all()
        .filter(|dtype| set.has(*dtype))
        .map(types)
        .collect()
}

/// Operands of different types as Nx merges them, results of `as_type` and of index types.
fn mixed_types(op: &OpInfo, rng: &mut Rng) -> Vec<Types> {
    let real: Vec<DType> = DType::all().filter(|d| DTypeSet::REAL.has(*d)).collect();
    let taken: Vec<DType> = real
        .iter()
        .copied()
        .filter(|d| op.operands.has(*d))
        .collect();
    let pairs = |a: &[DType], b: &[DType]| -> Vec<(DType, DType)> {
        let all = a.iter().flat_map(|&x| b.iter().map(move |&y| (x, y)));
        all.filter(|(x, y)| x != y).collect()
    };
    let mut of = |mut all: Vec<(DType, DType)>, count: usize| {
        (1..all.len()).for_each(|i| all.swap(i, rng.below(i as u64 + 1) as usize));
        all.truncate(count);
        all
    };
    let give = |inputs: Vec<DType>, output: Option<DType>| Types { inputs, output };
    let integers: Vec<DType> = real.iter().copied().filter(|d| d.is_integer()).collect();
    match op.kind {
        OpKind::Cast => pairs(&real, &real)
            .into_iter()
            .map(|(x, y)| give(vec![x], Some(y)))
            .collect(),
        OpKind::ArgReduction => of(pairs(&real, &integers), MIXED / 2)
            .into_iter()
            .map(|(x, y)| give(vec![x], Some(y)))
            .collect(),
        OpKind::Binary | OpKind::Dot => {
            let asked = |&(x, y): &(DType, DType)| op.kind != OpKind::Dot && !narrows(x, y);
            let all = pairs(&taken, &taken).into_iter().filter(asked).collect();
            of(all, MIXED)
                .into_iter()
                .map(|(x, y)| give(vec![x, y], None))
                .collect()
        }
        OpKind::Select => {
            let three = |(x, y): (DType, DType)| give(vec![x, y, x], Some(merge(x, y)));
            of(pairs(&real, &real), MIXED)
                .into_iter()
                .map(three)
                .collect()
        }
        OpKind::Clip => of(pairs(&real, &real), MIXED)
            .into_iter()
            .map(|(x, y)| give(vec![x, y, x], None))
            .collect(),
        _ => Vec::new(),
    }
}

/// Whether merging takes a value to a 16-bit float that cannot hold it: the result then depends on whether it is
/// rounded before the op or after it, which `docs/ops.md` does not settle. `dot` of different types has the same
/// question, and is compared by the matmul pack's own tests, on values that every type holds.
fn narrows(x: DType, y: DType) -> bool {
    let half = |dtype: DType| dtype.is_float() && dtype.size() == 2;
    half(merge(x, y)) && !(half(x) && half(y))
}

/// The cases of one combination of types in one layout.
fn in_layout(
    op: &'static OpInfo,
    types: &Types,
    layout: Layout,
    variety: Variety,
    rng: &mut Rng,
    to: &mut Vec<Case>,
) -> Result<()> {
    let mut problems = problems::problems(op, layout, variety == Variety::All, rng);
    let most = match (variety, layout) {
        (Variety::One, _) => 1,
        (Variety::Few, Layout::Contiguous) => 4,
        (Variety::Few, _) => 2,
        (Variety::All, _) => problems.len(),
    };
    (1..problems.len()).for_each(|i| problems.swap(i, rng.below(i as u64 + 1) as usize));
    problems.truncate(most);
    let both = [Values::Finite, Values::Special];
    for problem in problems {
        let inputs: Vec<Spec> = types
            .inputs
            .iter()
            .copied()
            .zip(problem.inputs.iter().cloned())
            .collect();
        let mut attrs = problem.attrs.clone();
        if op.kind == OpKind::Fill {
            let words = types.output.map_or(1, |dtype| dtype.size().div_ceil(8));
            let bits = Vec::from_iter((0..words).map(|_| element_bits(types, rng)));
            attrs.push(Attr::ints("bits", bits));
        }
        let infers = op.arity > 0 && op.kind != OpKind::Cast;
        let given = match op.kind {
            OpKind::Leapfrog => types.inputs.first().copied(),
            _ => types.output.filter(|_| !infers),
        };
        let given = given.map(|dtype| (dtype, problem.output.clone()));
        let mut request = infer(op, &inputs, given, &attrs)?;
        if let Some(dtype) = types.output {
            request.outputs[0].0 = dtype;
        }
        let values: &[Values] = match layout {
            Layout::Contiguous if op.arity > 0 => &both,
            Layout::Empty | Layout::Large => &both[..1],
            _ => &both[rng.below(2) as usize..][..1],
        };
        for &values in values {
            let seed = rng.next();
            let mut layouts = Rng(seed);
            let varies = variety == Variety::All;
            let operand = |(index, (dtype, shape)): (usize, &Spec)| {
                // A second operand in another layout than the first: both paths of a kernel in one request.
                let other = varies && index > 0 && layouts.below(2) == 0;
                let layout = if other { Layout::Contiguous } else { layout };
                Operand::new(*dtype, shape, layout, varies.then_some(&mut layouts))
            };
            to.push(Case {
                op,
                inputs: inputs.iter().enumerate().map(operand).collect(),
                outputs: request.outputs.clone(),
                attrs: request.attrs.clone(),
                layout,
                values,
                seed,
            });
        }
    }
    Ok(())
}

/// Random bits of one element, zero-extended.
fn element_bits(types: &Types, rng: &mut Rng) -> i64 {
    let bytes = types.output.map_or(8, |dtype| dtype.size().min(8));
    (rng.next() >> (64 - 8 * bytes)) as i64
}

#[cfg(test)]
mod tests {
    use super::*;
    use nx_vulkan_ops::kernels;

    #[test]
    fn every_op_has_every_type_in_every_layout() {
        for op in kernels::ops() {
            let all = cases(op, 1, false).unwrap();
            let of_result = op.arity == 0 || op.kind == OpKind::Cast;
            for types in same_types(op) {
                let dtype = if of_result {
                    types.output
                } else {
                    types.inputs.last().copied()
                };
                for layout in LAYOUTS {
                    // `eye` has no scalar form, an op without operands no strided one, and large ones are samples.
                    let strided =
                        !matches!(layout, Layout::Contiguous | Layout::Empty | Layout::Scalar);
                    if op.kind == OpKind::Eye && layout == Layout::Scalar
                        || op.arity == 0 && strided
                        || layout == Layout::Large
                    {
                        continue;
                    }
                    let found = all.iter().any(|case| {
                        let input = case.inputs.last().map(|input| input.dtype);
                        case.layout == layout
                            && dtype
                                == if of_result {
                                    Some(case.outputs[0].0)
                                } else {
                                    input
                                }
                    });
                    assert!(found, "{} {types:?} {layout:?}", op.name);
                }
            }
        }
    }

    #[test]
    fn every_case_keeps_its_ops_contract() {
        for op in kernels::ops() {
            for case in cases(op, 5, false).unwrap() {
                let desc = |(dtype, shape): (DType, &'static [u64])| kernels::Desc { dtype, shape };
                let leak = |shape: &[u64]| -> &'static [u64] { shape.to_vec().leak() };
                let inputs: Vec<_> = case
                    .inputs
                    .iter()
                    .map(|i| desc((i.dtype, leak(&i.shape))))
                    .collect();
                let outputs: Vec<_> = case
                    .outputs
                    .iter()
                    .map(|(dtype, shape)| desc((*dtype, leak(shape))))
                    .collect();
                kernels::check(op.name, &inputs, &outputs, &case.attrs).unwrap();
            }
        }
    }

    #[test]
    fn the_seed_decides() {
        let op = kernels::ops().iter().find(|op| op.name == "add").unwrap();
        let shown = |seed| format!("{:?}", cases(op, seed, false).unwrap());
        assert_eq!(shown(3), shown(3));
        assert_ne!(shown(3), shown(4));
    }
}
