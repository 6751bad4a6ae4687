//! The contract of each op, checked before anybody plans or runs it. Types nobody computes with are not refused here.

use std::fmt;

use nx_vulkan_abi::dtype::DTypeSet;

use super::operand::count;
use super::table::{OpInfo, OpKind, find};
use super::{Desc, ResultType, leapfrog};
use crate::attrs::{Attr, ints, text};
use crate::error::{Error, Kind, Result};

type Verdict = std::result::Result<(), String>;

/// Checks number, types and shapes of operands and results, and the attributes, against `docs/ops.md`.
/// Fails with [`Kind::BadInput`] when they break the contract, with [`Kind::Unsupported`] for an unknown op.
///
/// Types outside of the real ones pass where their family cannot be judged: whoever is asked to run the op
/// says whether it does.
pub fn check(op: &str, inputs: &[Desc], outputs: &[Desc], attrs: &[Attr]) -> Result<()> {
    let Some(info) = find(op) else {
        return Err(Error::new(
            Kind::Unsupported,
            format!("there is no op named {op}"),
        ));
    };
    let verdict = operands(info, inputs, outputs).and_then(|()| {
        let [out] = *outputs else {
            return leapfrog::check(op, inputs, outputs);
        };
        types(info, inputs, &out)?;
        match (info.kind, inputs) {
            (OpKind::Iota, _) => iota(&out, attrs),
            (OpKind::Eye, _) if out.shape.len() < 2 => Err("the result needs two axes".to_owned()),
            (OpKind::Fill, _) => fill(&out, attrs),
            (OpKind::Reduction, [x]) => reduction(x, &out, attrs),
            (OpKind::ArgReduction, [x]) => arg_reduction(x, &out, attrs),
            (OpKind::Dot, [a, b]) => dot(a, b, &out, attrs),
            _ => broadcast(inputs, &out),
        }
    });
    verdict.map_err(|reason| refusal(op, inputs, outputs, &reason))
}

/// The error that names op, types and shapes in front of `reason`.
pub(super) fn refusal(op: &str, inputs: &[Desc], outputs: &[Desc], reason: &str) -> Error {
    let list = |descs: &[Desc]| {
        descs
            .iter()
            .map(Desc::to_string)
            .collect::<Vec<_>>()
            .join(", ")
    };
    Error::bad_input(format!(
        "{op} of ({}) to ({}): {reason}",
        list(inputs),
        list(outputs)
    ))
}

impl fmt::Display for Desc<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{:?}", self.dtype, self.shape)
    }
}

fn operands(info: &OpInfo, inputs: &[Desc], outputs: &[Desc]) -> Verdict {
    if inputs.len() != info.arity {
        return Err(format!(
            "expected {} operands, got {}",
            info.arity,
            inputs.len()
        ));
    }
    if outputs.len() != info.results() {
        let expected = match info.results() {
            1 => "one result".to_owned(),
            n => format!("{n} results"),
        };
        return Err(format!("expected {expected}, got {}", outputs.len()));
    }
    for desc in inputs.iter().chain(outputs) {
        if !desc.dtype.is_known() {
            return Err(format!("unknown element type {}", desc.dtype));
        }
        let bytes = count(desc.shape).and_then(|n| n.checked_mul(desc.dtype.size()));
        if bytes.is_none_or(|bytes| bytes > i64::MAX as u64) {
            return Err(format!("{desc} has too many elements"));
        }
    }
    Ok(())
}

fn types(info: &OpInfo, inputs: &[Desc], out: &Desc) -> Verdict {
    let judged = |desc: &&Desc| DTypeSet::REAL.has(desc.dtype);
    if let Some(bad) = inputs
        .iter()
        .filter(judged)
        .find(|desc| !info.operands.has(desc.dtype))
    {
        return Err(format!(
            "{} operands are not allowed, only integers",
            bad.dtype
        ));
    }
    let first = inputs.first().map(|desc| desc.dtype);
    let all_judged = inputs.iter().chain([out]).all(|desc| judged(&desc));
    if (all_judged || info.result == ResultType::Bool) && !info.result.allows(out.dtype, first) {
        return Err(match info.result {
            ResultType::Operand => "the result must have the operand's type".to_owned(),
            ResultType::Bool => format!("the result must be u8, not {}", out.dtype),
            ResultType::Integer => format!("the result must be an integer, not {}", out.dtype),
            _ => format!("the result must be a float, not {}", out.dtype),
        });
    }
    Ok(())
}

fn broadcast(inputs: &[Desc], out: &Desc) -> Verdict {
    let fits = |desc: &&Desc| {
        let lead = out.shape.len().checked_sub(desc.shape.len());
        lead.is_some_and(|lead| {
            desc.shape
                .iter()
                .zip(&out.shape[lead..])
                .all(|(&a, &b)| a == b || a == 1)
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

fn iota(out: &Desc, attrs: &[Attr]) -> Verdict {
    at_most_one_axis(ints(attrs, "axis"), out)
}

fn fill(out: &Desc, attrs: &[Attr]) -> Verdict {
    let expected = if out.dtype.size() == 16 { 2 } else { 1 };
    match ints(attrs, "bits").len() {
        n if n == expected => Ok(()),
        n => Err(format!(
            "attribute bits must have {expected} integers for {}, not {n}",
            out.dtype
        )),
    }
}

fn reduction(x: &Desc, out: &Desc, attrs: &[Attr]) -> Verdict {
    let axes = ints(attrs, "axes");
    if axes.is_empty() || !axes.is_sorted_by(|a, b| a < b) {
        return Err(format!(
            "attribute axes must name at least one axis and ascend, got {axes:?}"
        ));
    }
    in_range("axes", axes, x)?;
    kept(x, out, |axis| axes.contains(&axis))
}

fn arg_reduction(x: &Desc, out: &Desc, attrs: &[Attr]) -> Verdict {
    let axis = ints(attrs, "axis");
    at_most_one_axis(axis, x)?;
    if !matches!(text(attrs, "tie_break"), Some("low" | "high")) {
        return Err(format!(
            "attribute tie_break must be low or high, got {:?}",
            text(attrs, "tie_break")
        ));
    }
    let reduced = |i| axis.is_empty() || axis.contains(&i);
    kept(x, out, reduced)?;
    let nothing = x
        .shape
        .iter()
        .zip(0..)
        .any(|(&extent, i)| extent == 0 && reduced(i));
    if nothing && !out.shape.contains(&0) {
        Err("there are no elements to choose from".to_owned())
    } else {
        Ok(())
    }
}

fn dot(a: &Desc, b: &Desc, out: &Desc, attrs: &[Attr]) -> Verdict {
    let [batch_a, batch_b, contract_a, contract_b] =
        ["batch_a", "batch_b", "contract_a", "contract_b"].map(|name| ints(attrs, name));
    for (name, axes, x) in [("batch_a", batch_a, a), ("batch_b", batch_b, b)] {
        in_range(name, axes, x)?;
        if !axes.iter().copied().eq(0..axes.len() as i64) {
            return Err(format!(
                "attribute {name} must be the leading axes [0, 1, ...], got {axes:?}"
            ));
        }
    }
    for (name, axes, batch, x) in [
        ("contract_a", contract_a, batch_a, a),
        ("contract_b", contract_b, batch_b, b),
    ] {
        in_range(name, axes, x)?;
        let repeats = (1..axes.len()).any(|i| axes[..i].contains(&axes[i]));
        if repeats || axes.iter().any(|axis| batch.contains(axis)) {
            return Err(format!(
                "attribute {name} repeats an axis or names a batch axis: {axes:?}"
            ));
        }
    }
    for (name, left, right) in [
        ("batch", batch_a, batch_b),
        ("contract", contract_a, contract_b),
    ] {
        if left.len() != right.len() {
            return Err(format!("{name} axes {left:?} and {right:?} do not pair up"));
        }
        let pairs = left.iter().zip(right);
        if let Some((i, j)) = pairs
            .clone()
            .find(|(i, j)| a.shape[**i as usize] != b.shape[**j as usize])
        {
            return Err(format!("{name} axes {i} and {j} have different extents"));
        }
    }
    let batch = a.shape[..batch_a.len()].iter();
    let free_of = |axis: i64, contract: &[i64], batch: &[i64]| {
        !contract.contains(&axis) && !batch.contains(&axis)
    };
    let free_a = a
        .shape
        .iter()
        .zip(0..)
        .filter(|(_, i)| free_of(*i, contract_a, batch_a))
        .map(|(e, _)| e);
    let free_b = b
        .shape
        .iter()
        .zip(0..)
        .filter(|(_, i)| free_of(*i, contract_b, batch_b))
        .map(|(e, _)| e);
    if batch.chain(free_a).chain(free_b).eq(out.shape) {
        Ok(())
    } else {
        Err("the result's shape is not batch, free axes of a, free axes of b".to_owned())
    }
}

fn at_most_one_axis(axis: &[i64], x: &Desc) -> Verdict {
    if axis.len() > 1 {
        return Err(format!(
            "attribute axis must be one axis or empty, got {axis:?}"
        ));
    }
    in_range("axis", axis, x)
}

fn in_range(name: &str, axes: &[i64], x: &Desc) -> Verdict {
    match axes
        .iter()
        .find(|axis| !(0..x.shape.len() as i64).contains(axis))
    {
        Some(axis) => Err(format!("attribute {name} names axis {axis} of {x}")),
        None => Ok(()),
    }
}

/// The result of a reduction has the kept axes in order; axes of extent 1 do not matter.
fn kept(x: &Desc, out: &Desc, reduced: impl Fn(i64) -> bool) -> Verdict {
    let kept = x
        .shape
        .iter()
        .zip(0..)
        .filter(|(extent, axis)| **extent != 1 && !reduced(*axis));
    if kept
        .map(|(extent, _)| extent)
        .eq(out.shape.iter().filter(|extent| **extent != 1))
    {
        Ok(())
    } else {
        Err("the result's shape is not that of the axes that are not reduced".to_owned())
    }
}
