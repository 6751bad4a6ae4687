//! The contract of each op, checked before anybody plans or runs it. Types nobody computes with are not refused here.

use nx_vulkan_abi::dtype::{DType, DTypeSet};

use crate::attrs::Attr;
use crate::contracts::find;
use crate::epilogue;
use crate::error::{Error, Kind, Result};
use crate::op::{AttributeKind, Gives, Op};
use crate::request::{Request, Typed};
use crate::view::{Desc, count};

type Verdict = std::result::Result<(), String>;

/// Checks number, types and shapes of operands and results, and the attributes, against `docs/ops.md`.
/// Fails with [`Kind::BadInput`] when they break the contract, with [`Kind::Unsupported`] for an unknown op.
///
/// Types outside of the real ones pass where their family cannot be judged: whoever is asked to run the op
/// says whether it does.
pub fn check(op: &str, inputs: &[Desc], outputs: &[Desc], attrs: &[Attr]) -> Result<()> {
    let Some(op) = find(op) else {
        return Err(Error::new(
            Kind::Unsupported,
            format!("there is no op named {op}"),
        ));
    };
    let verdict = operands(op, inputs, outputs)
        .and_then(|()| types(op, inputs, &outputs[0]))
        .and_then(|()| attributes(op, attrs))
        .and_then(|()| (op.contract.check)(op, inputs, outputs, attrs))
        .and_then(|()| match epilogue::takes(op) {
            true => epilogue::check(op, inputs, &outputs[0], attrs),
            false => Ok(()),
        });
    verdict.map_err(|reason| refusal(op.name, inputs, outputs, &reason))
}

impl<I: Typed + Clone> Request<'_, I> {
    /// Checks the op's contract. Ops that the host does not know are left to the packs that name them.
    ///
    /// # Errors
    /// Bad input, with what the contract asks for.
    pub fn check(&self) -> Result<()> {
        let (inputs, outputs) = self.shapes();
        let descs = |list: Vec<_>| -> Vec<Desc<'_>> {
            let desc = |(dtype, shape)| Desc { dtype, shape };
            list.into_iter().map(desc).collect()
        };
        match check(&self.op, &descs(inputs), &descs(outputs), &self.attrs) {
            Err(error) if error.kind() == Kind::Unsupported => Ok(()),
            result => result,
        }
    }
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
    let is_complex = |desc: &Desc| desc.dtype.is_complex();
    let takes_complex = op.computes().has(DType::C64);
    let given_complex = takes_complex && inputs.iter().any(is_complex);
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
