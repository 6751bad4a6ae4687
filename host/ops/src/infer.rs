//! Result type, result shape and attributes of a request, as Nx infers them; it asks nobody to run anything.

use crate::{
    Attr, Error, Result, attrs,
    kernels::{Family, OpInfo, OpKind, ResultType},
};
use nx_vulkan_abi::DType;

/// Steps of a leapfrog op that is not told how many.
const STEPS: u64 = 32;

/// Element type and shape.
pub type Spec = (DType, Vec<u64>);

/// An op request without data.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// Name of the op.
    pub op: String,
    /// Operands.
    pub inputs: Vec<Spec>,
    /// The results, at least one.
    pub outputs: Vec<Spec>,
    /// Attributes, sorted by name.
    pub attrs: Vec<Attr>,
}

/// The request that Nx makes of `op` on `inputs`. Attributes that `attrs` lacks take their defaults: all axes of a
/// reduction, the last axis of a with the first free one of b for `dot`, the flat index, all bits zero. `output` is the
/// first result, from which the others follow; leapfrog ops take 32 steps without it.
///
/// # Errors
/// Bad input when the number of operands or their shapes do not fit, and when an op that does not infer its result
/// (creation, `as_type`) is given no `output`.
pub fn infer(
    op: &OpInfo,
    inputs: &[Spec],
    output: Option<Spec>,
    attrs: &[Attr],
) -> Result<Request> {
    if inputs.len() != op.arity {
        return Err(Error::bad_input(format!(
            "{} takes {} operands, got: {}",
            op.name,
            op.arity,
            inputs.len()
        )));
    }
    let mut attrs = attrs.to_vec();
    let mut default = |attr: Attr| {
        if !attrs.iter().any(|known| known.name == attr.name) {
            attrs.push(attr);
        }
    };
    match op.kind {
        OpKind::Iota => default(Attr::ints("axis", [])),
        OpKind::Fill => {
            let words = output.as_ref().map_or(1, |o| o.0.size().div_ceil(8));
            default(Attr::ints("bits", vec![0; words as usize]));
        }
        OpKind::Reduction => {
            let axes: Vec<i64> = (0..inputs[0].1.len() as i64).collect();
            default(Attr::ints("axes", axes));
        }
        OpKind::ArgReduction => {
            default(Attr::ints("axis", []));
            default(Attr::text("tie_break", "low"));
        }
        OpKind::Dot => {
            default(Attr::ints("batch_a", []));
            default(Attr::ints("batch_b", []));
        }
        _ => {}
    }
    if op.kind == OpKind::Dot {
        contraction(inputs, &mut attrs);
    }
    attrs.sort_by(|a, b| a.name.cmp(&b.name));
    let output = match output {
        Some(output) => output,
        None => (result_type(op, inputs)?, result_shape(op, inputs, &attrs)?),
    };
    let outputs = match op.kind {
        OpKind::Leapfrog => chains(output),
        _ => vec![output],
    };
    Ok(Request {
        op: op.name.to_owned(),
        inputs: inputs.to_vec(),
        outputs,
        attrs,
    })
}

/// Shapes of operands that fit each other, and a result of `shape` where the op has one operand like it.
pub fn operand_shapes(op: &OpInfo, shape: &[u64]) -> Vec<Vec<u64>> {
    let mut shapes = vec![shape.to_vec(); op.arity];
    if let (Some(family), Some(scalars)) = (Family::of(op.name), shapes.last_mut()) {
        *scalars = vec![1 + family.parameters.len() as u64];
    }
    shapes
}

/// The type that two operands have in common, as `docs/ops.md` defines merging.
pub fn merge(a: DType, b: DType) -> DType {
    let wider = |a: DType, b: DType| if b.size() > a.size() { b } else { a };
    match (a.is_float(), b.is_float()) {
        (true, true) if a.size() == b.size() && a != b => DType::F32,
        (true, false) => a,
        (false, true) => b,
        (false, false) if a.is_signed() != b.is_signed() => {
            let (signed, unsigned) = if a.is_signed() { (a, b) } else { (b, a) };
            match unsigned {
                DType::U8 => wider(signed, DType::S16),
                DType::U16 => wider(signed, DType::S32),
                _ => DType::S64,
            }
        }
        _ => wider(a, b),
    }
}

fn contraction(inputs: &[Spec], attrs: &mut Vec<Attr>) {
    let batch = attrs::ints(attrs, "batch_a").len() as i64;
    let last = inputs[0].1.len() as i64 - 1;
    let first = (inputs[1].1.len() as i64 > batch).then_some(batch);
    let pair = if last >= batch {
        first.map(|first| (last, first))
    } else {
        None
    };
    let sides = [
        ("contract_a", pair.map(|p| p.0)),
        ("contract_b", pair.map(|p| p.1)),
    ];
    if attrs.iter().all(|a| !a.name.starts_with("contract")) {
        attrs.extend(sides.map(|(name, axis)| Attr::ints(name, Vec::from_iter(axis))));
    }
}

fn result_type(op: &OpInfo, inputs: &[Spec]) -> Result<DType> {
    let types: Vec<DType> = inputs.iter().map(|input| input.0).collect();
    let merged = types.iter().copied().reduce(merge);
    let floating = merged.map(|dtype| if dtype.is_float() { dtype } else { DType::F32 });
    let inferred = match (op.kind, op.result) {
        (OpKind::Iota | OpKind::Eye | OpKind::Fill | OpKind::Cast, _) => None,
        (OpKind::Reduction, ResultType::Real) => types.first().map(|&dtype| aggregate(dtype)),
        (OpKind::ArgReduction, _) => Some(DType::S32),
        (OpKind::Select, _) => Some(merge(types[1], types[2])),
        (_, ResultType::Operand) => types.first().copied(),
        (_, ResultType::Bool) => Some(DType::U8),
        (_, ResultType::Float) | (OpKind::Unary, ResultType::Real) => floating,
        _ => merged,
    };
    inferred.ok_or_else(|| {
        Error::bad_input(format!(
            "the result of {} does not follow from its operands; name it",
            op.name
        ))
    })
}

/// Nx sums small integers in 32 bits, and u64 in s64.
fn aggregate(dtype: DType) -> DType {
    match dtype {
        DType::U8 | DType::U16 | DType::U32 => DType::U32,
        DType::S8 | DType::S16 | DType::S32 => DType::S32,
        DType::U64 | DType::S64 => DType::S64,
        float => float,
    }
}

fn result_shape(op: &OpInfo, inputs: &[Spec], given: &[Attr]) -> Result<Vec<u64>> {
    let without = |shape: &[u64], axes: &[i64]| -> Vec<u64> {
        let kept = shape
            .iter()
            .zip(0..)
            .filter(|(_, axis)| !axes.contains(axis));
        kept.map(|(&extent, _)| extent).collect()
    };
    match (op.kind, inputs) {
        (OpKind::Reduction, [x]) => Ok(without(&x.1, attrs::ints(given, "axes"))),
        (OpKind::ArgReduction, [x]) => Ok(match attrs::ints(given, "axis") {
            [] => Vec::new(),
            axis => without(&x.1, axis),
        }),
        (OpKind::Dot, [a, b]) => {
            let [batch_a, batch_b, contract_a, contract_b] =
                ["batch_a", "batch_b", "contract_a", "contract_b"]
                    .map(|name| attrs::ints(given, name));
            let mut shape: Vec<u64> = a.1.iter().take(batch_a.len()).copied().collect();
            shape.extend(without(&a.1, &[batch_a, contract_a].concat()));
            shape.extend(without(&b.1, &[batch_b, contract_b].concat()));
            Ok(shape)
        }
        (OpKind::Leapfrog, [q, ..]) => match q.1[..] {
            [chains, extent] => Ok(vec![chains, STEPS, extent]),
            _ => Err(Error::bad_input(format!(
                "{} takes q of shape {{chains, d}}, got: {:?}",
                op.name, q.1
            ))),
        },
        _ => broadcast(inputs),
    }
}

/// All results of a leapfrog op with that first one.
fn chains(output: Spec) -> Vec<Spec> {
    let (dtype, shape) = &output;
    let logp = (*dtype, shape.iter().take(2).copied().collect());
    vec![output.clone(), output.clone(), output, logp]
}

fn broadcast(inputs: &[Spec]) -> Result<Vec<u64>> {
    let rank = inputs.iter().map(|input| input.1.len()).max().unwrap_or(0);
    let mut shape = vec![1; rank];
    for (_, own) in inputs {
        for (to, &extent) in shape[rank - own.len()..].iter_mut().zip(own) {
            match (*to, extent) {
                (a, b) if a == b || b == 1 => {}
                (1, b) => *to = b,
                _ => {
                    let shapes: Vec<_> = inputs.iter().map(|input| &input.1).collect();
                    return Err(Error::bad_input(format!(
                        "the shapes {shapes:?} do not broadcast to one"
                    )));
                }
            }
        }
    }
    Ok(shape)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels;

    fn result(op: &str, inputs: &[Spec], attrs: &[Attr]) -> Spec {
        let op = kernels::ops().iter().find(|info| info.name == op).unwrap();
        infer(op, inputs, None, attrs).unwrap().outputs.remove(0)
    }

    #[test]
    fn results_are_those_of_nx() {
        let u8s = (DType::U8, vec![3, 4]);
        let f16s = (DType::F16, vec![4]);
        assert_eq!(
            result("add", &[u8s.clone(), f16s.clone()], &[]),
            (DType::F16, vec![3, 4])
        );
        assert_eq!(
            result("divide", &[u8s.clone(), u8s.clone()], &[]),
            (DType::F32, vec![3, 4])
        );
        assert_eq!(
            result("less", &[u8s.clone(), f16s.clone()], &[]).0,
            DType::U8
        );
        assert_eq!(
            result("sum", std::slice::from_ref(&u8s), &[]),
            (DType::U32, vec![])
        );
        let axis = [Attr::ints("axis", [0])];
        assert_eq!(result("argmax", &[u8s], &axis), (DType::S32, vec![4]));
        assert_eq!(merge(DType::S8, DType::U32), DType::S64);
        assert_eq!(merge(DType::BF16, DType::F16), DType::F32);
    }

    #[test]
    fn dot_contracts_the_last_axis_with_the_first_free_one() {
        let a = (DType::F32, vec![2, 3, 4]);
        let b = (DType::F32, vec![2, 4, 5]);
        let batch = [Attr::ints("batch_a", [0]), Attr::ints("batch_b", [0])];
        assert_eq!(result("dot", &[a, b], &batch).1, [2, 3, 5]);
        let (a, b) = ((DType::S8, vec![3, 4]), (DType::S8, vec![4]));
        assert_eq!(result("dot", &[a, b], &[]).1, [3]);
        let (a, b) = ((DType::S8, vec![]), (DType::S8, vec![4]));
        assert_eq!(result("dot", &[a, b], &[]).1, [4]);
    }

    #[test]
    fn what_cannot_be_inferred_is_said() {
        let cast = kernels::ops()
            .iter()
            .find(|info| info.name == "as_type")
            .unwrap();
        assert!(infer(cast, &[(DType::U8, vec![])], None, &[]).is_err());
        let add = kernels::ops()
            .iter()
            .find(|info| info.name == "add")
            .unwrap();
        let clash = [(DType::U8, vec![2]), (DType::U8, vec![3])];
        assert!(
            infer(add, &clash, None, &[])
                .unwrap_err()
                .to_string()
                .contains("broadcast")
        );
        assert!(
            infer(add, &clash[..1], None, &[])
                .unwrap_err()
                .to_string()
                .contains("2 operands")
        );
    }
}
