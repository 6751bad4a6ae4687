//! Whether operands, results and attributes are what an op takes.

use crate::attrs::Attr;
use crate::error::Error;
use crate::op::{AttributeKind, Gives, Op};
use crate::values::Domain;
use crate::view::{Desc, count};
use nx_vulkan_abi::dtype::{DType, DTypeSet};

type Verdict = std::result::Result<(), String>;

/// Checks number, types and shapes of operands and results, and the attributes, against the op's contract; epilogues are
/// checked elsewhere.
///
/// # Errors
/// What the contract asks for.
pub(crate) fn fits(op: &Op, inputs: &[Desc], outputs: &[Desc], attrs: &[Attr]) -> Verdict {
    operands(op, inputs, outputs)
        .and_then(|()| types(op, inputs, &outputs[0]))
        .and_then(|()| attributes(op, attrs))
        .and_then(|()| (op.contract.check)(op, inputs, outputs, attrs))
}

/// The error that names op, types and shapes in front of `reason`.
pub(crate) fn refusal(op: &str, inputs: &[Desc], outputs: &[Desc], reason: &str) -> Error {
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

fn operands(op: &Op, inputs: &[Desc], outputs: &[Desc]) -> Verdict {
    if !op.takes_so_many(inputs.len()) {
        let least = if op.contract.variadic {
            "at least "
        } else {
            ""
        };
        return Err(format!(
            "expected {least}{} operands, got {}",
            op.arity(),
            inputs.len()
        ));
    }
    let results = op.contract.results.len();
    let is_more = op.contract.several && outputs.len() > results;
    if outputs.len() != results && !is_more {
        let expected = match results {
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

fn types(op: &Op, inputs: &[Desc], out: &Desc) -> Verdict {
    let judged = |desc: &Desc| DTypeSet::REAL.has(desc.dtype);
    let mut taken = inputs.iter().zip((0..).map(|index| op.takes_at(index)));
    if let Some((bad, takes)) = taken.find(|(desc, takes)| judged(desc) && !takes.has(desc.dtype)) {
        return Err(format!(
            "{} operands are not allowed, only {}",
            bad.dtype,
            names(takes)
        ));
    }
    // A flag has no part in the result's type.
    let is_complex =
        |(index, desc): (usize, &Desc)| desc.dtype.is_complex() && op.domain(index) != Domain::Flag;
    let takes_complex = op.computes().has(DType::C64);
    let given_complex = takes_complex && inputs.iter().enumerate().any(is_complex);
    let keeps = matches!(op.gives, Gives::Operand | Gives::Float | Gives::Real);
    if given_complex && keeps && judged(out) {
        return Err(format!("the result must be complex, not {}", out.dtype));
    }
    let parts = matches!(op.gives, Gives::OwnPart | Gives::Part);
    if parts && given_complex && !op.gives.allows(out.dtype, Some(inputs[0].dtype)) {
        let part = inputs[0].dtype.part();
        return Err(format!("the result must be {part}, not {}", out.dtype));
    }
    if given_complex && op.gives == Gives::Operand && inputs[0].dtype != out.dtype {
        return Err("the result must have the operand's type".to_owned());
    }
    let first = inputs.first().map(|desc| desc.dtype);
    let all_judged = inputs.iter().chain([out]).all(judged);
    if (all_judged || op.gives == Gives::Bool) && !op.gives.allows(out.dtype, first) {
        return Err(match op.gives {
            Gives::Operand | Gives::OwnPart => "the result must have the operand's type".to_owned(),
            Gives::Bool => format!("the result must be u8, not {}", out.dtype),
            Gives::Integer => format!("the result must be an integer, not {}", out.dtype),
            Gives::Complex => format!("the result must be complex, not {}", out.dtype),
            Gives::Part => format!("the result must be real, not {}", out.dtype),
            Gives::Float | Gives::Real | Gives::Any => {
                format!("the result must be a float, not {}", out.dtype)
            }
        });
    }
    Ok(())
}

fn names(set: DTypeSet) -> String {
    if set == DTypeSet::INTEGER {
        return "integers".to_owned();
    }
    let all = DType::all().filter(|dtype| set.has(*dtype));
    all.map(DType::name).collect::<Vec<_>>().join(" and ")
}

/// Attributes of a known name must be of its kind, and words be there, while no list is an empty one. Those that nobody
/// knows are left alone.
fn attributes(op: &Op, attrs: &[Attr]) -> Verdict {
    let known = op.contract.attributes;
    let given = |name| attrs.iter().any(|attr| attr.name == name);
    for attribute in known {
        if let AttributeKind::Word(words) = attribute.kind
            && !given(attribute.name)
        {
            let (name, words) = (attribute.name, words.join(" or "));
            return Err(format!("attribute {name} must be {words}, got none"));
        }
    }
    attrs.iter().try_for_each(|attr| {
        let attribute = known.iter().find(|one| one.name == attr.name);
        attribute.map_or(Ok(()), |attribute| attribute.check(attr))
    })
}
