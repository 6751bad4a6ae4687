//! The CPU kernels: fallback for what no pack runs, and the oracle every pack is tested against.
//!
//! `docs/ops.md` says what each op means. Floats of up to 32 bits are computed wider and rounded once. Nothing
//! here knows devices, packs or tensors: operands are views of bytes in host memory.

mod binary;
mod check;
mod convert;
mod create;
mod dot;
mod element;
mod elementwise;
mod fold;
mod leapfrog;
mod math;
mod number;
mod operand;
mod parallel;
mod reduce;
mod table;
#[cfg(test)]
mod tests;
mod unary;

pub use check::check;
pub use leapfrog::{FAMILIES, Family};
pub use table::{OpInfo, OpKind, ResultType, ops};

use nx_vulkan_abi::dtype::{DType, DTypeSet};

use crate::attrs::Attr;
use crate::error::{Error, Kind, Result};
use operand::Operand;

/// A read-only operand.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    /// Element type.
    pub dtype: DType,
    /// Extent of each axis.
    pub shape: &'a [u64],
    /// Elements from one index to the next, for each axis; 0 repeats, negative reverses.
    pub strides: &'a [i64],
    /// Index of the first element, in elements.
    pub offset: u64,
    /// The whole buffer that the view looks into, at any alignment.
    pub bytes: &'a [u8],
}

/// A contiguous result.
#[derive(Debug)]
pub struct Out<'a> {
    /// Element type.
    pub dtype: DType,
    /// Extent of each axis.
    pub shape: &'a [u64],
    /// The elements in row-major order, at any alignment.
    pub bytes: &'a mut [u8],
}

/// Type and shape of an operand or a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Desc<'a> {
    /// Element type.
    pub dtype: DType,
    /// Extent of each axis.
    pub shape: &'a [u64],
}

/// Whether the host runs `op` on these element types; otherwise the reason, as a sentence.
pub fn supports(op: &str, inputs: &[DType], outputs: &[DType]) -> std::result::Result<(), String> {
    let info = table::find(op).ok_or_else(|| format!("the host has no op named {op}"))?;
    let copies = info.kind == OpKind::Fill || info.kind == OpKind::Cast && inputs == outputs;
    let unfit = |dtype: &&DType| !match info.kind {
        _ if copies => dtype.is_known(),
        OpKind::Leapfrog => info.operands.has(**dtype),
        _ => DTypeSet::REAL.has(**dtype),
    };
    match inputs.iter().chain(outputs).find(unfit) {
        Some(dtype) => Err(format!("the host does not run {op} on {dtype}")),
        None => Ok(()),
    }
}

/// Runs `op`. Fails when [`check`] refuses the request, when [`supports`] does, when a view reaches outside of its
/// bytes or a result has not the bytes its shape needs, and for what `docs/ops.md` calls an error on the host.
pub fn run(op: &str, inputs: &[View], outputs: &mut [Out], attrs: &[Attr]) -> Result<()> {
    let given: Vec<Desc> = inputs
        .iter()
        .map(|v| Desc {
            dtype: v.dtype,
            shape: v.shape,
        })
        .collect();
    let asked: Vec<Desc> = outputs
        .iter()
        .map(|o| Desc {
            dtype: o.dtype,
            shape: o.shape,
        })
        .collect();
    check(op, &given, &asked, attrs)?;
    let types = |descs: &[Desc]| descs.iter().map(|d| d.dtype).collect::<Vec<_>>();
    supports(op, &types(&given), &types(&asked)).map_err(|e| Error::new(Kind::Unsupported, e))?;
    let refuse = |reason: String| check::refusal(op, &given, &asked, &reason);
    for (view, desc) in inputs.iter().zip(&given) {
        operand::validate(view).map_err(|reason| refuse(format!("{desc}: {reason}")))?;
    }
    for out in outputs.iter() {
        let needed = operand::count(out.shape).and_then(|n| n.checked_mul(out.dtype.size()));
        if needed != Some(out.bytes.len() as u64) {
            return Err(refuse(format!("the result has {} bytes", out.bytes.len())));
        }
    }
    if outputs.iter().all(|out| out.bytes.is_empty()) {
        return Ok(());
    }
    let Some(info) = table::find(op) else {
        return Err(refuse("no kernel".to_owned()));
    };
    let [out] = outputs else {
        return leapfrog::run(op, inputs, outputs).map_err(refuse);
    };
    let operands = || -> Result<Vec<Operand>> {
        let fit = |view| {
            Operand::broadcast(view, out.shape)
                .ok_or_else(|| refuse("shapes do not fit".to_owned()))
        };
        inputs.iter().map(fit).collect()
    };
    let done = match (info.kind, inputs) {
        (OpKind::Unary, _) => unary::run(op, &operands()?, out),
        (OpKind::Binary, _) => binary::run(op, &operands()?, out),
        (OpKind::Select, _) => binary::select(&operands()?, out),
        (OpKind::Clip, _) => binary::clip(&operands()?, out),
        (OpKind::Cast, _) => convert::as_type(&operands()?, out),
        (OpKind::Iota, _) => create::iota(attrs, out),
        (OpKind::Eye, _) => create::eye(out),
        (OpKind::Fill, _) => create::fill(attrs, out),
        (OpKind::Reduction, [x]) => reduce::run(op, x, out, attrs),
        (OpKind::ArgReduction, [x]) => reduce::arg(op, x, out, attrs),
        (OpKind::Dot, [a, b]) => dot::run(a, b, out, attrs),
        _ => Err("wrong number of operands".to_owned()),
    };
    done.map_err(refuse)
}
