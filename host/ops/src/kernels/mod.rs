//! The CPU kernels: fallback for what no pack runs, and the oracle every pack is tested against.
//!
//! `docs/ops.md` says what each op means. Floats of up to 32 bits are computed wider and rounded once. Nothing
//! here knows devices, packs or tensors: operands are views of bytes in host memory.

pub(crate) mod binary;
mod check;
pub(crate) mod convert;
pub(crate) mod create;
pub(crate) mod dot;
mod element;
mod elementwise;
mod fold;
pub(crate) mod leapfrog;
mod math;
mod number;
mod operand;
mod parallel;
pub(crate) mod reduce;
#[cfg(test)]
mod tests;
pub(crate) mod unary;

pub use check::check;
pub use leapfrog::{FAMILIES, Family};

use nx_vulkan_abi::dtype::{DType, DTypeSet};

use crate::attrs::{Attr, ints, text};
use crate::error::{Error, Kind, Result};
use crate::op::{Op, find};
use elementwise::Outcome;
use operand::Operand;
use reduce::Space;

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

/// How a result is computed.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kernel {
    /// Of one operand, in f64 from what its elements are in the result's type, rounded once.
    Map(fn(f64) -> f64),
    /// The same of two operands.
    Zip(fn(f64, f64) -> f64),
    /// Of the operands broadcast to the result.
    Elementwise(fn(&[Operand], &mut Out) -> Outcome),
    /// Of nothing.
    Create(fn(&[Attr], &mut Out) -> Outcome),
    /// Of the kept and the reduced axes of an operand.
    Fold(fn(&Space, &mut Out) -> Outcome),
    /// The same, where the last of equal elements may win.
    Index(fn(&Space, DType, bool, &mut Out) -> Outcome),
    /// Of two operands with contracted axes.
    Product(fn(&View, &View, &mut Out, &[Attr]) -> Outcome),
    /// In a way of its own.
    Whole(fn(&str, &[View], &mut [Out]) -> Outcome),
}

impl Kernel {
    pub(crate) fn run(
        self,
        op: &Op,
        inputs: &[View],
        outputs: &mut [Out],
        attrs: &[Attr],
    ) -> Outcome {
        let [out, ..] = outputs else {
            return Err("expected a result".to_owned());
        };
        let operands = |shape: &[u64]| -> std::result::Result<Vec<Operand>, String> {
            let fit = |view| Operand::broadcast(view, shape).ok_or("shapes do not fit");
            Ok(inputs
                .iter()
                .map(fit)
                .collect::<std::result::Result<_, _>>()?)
        };
        match (self, inputs) {
            (Kernel::Map(f), _) => elementwise::map_wide(&operands(out.shape)?[0], out, f),
            (Kernel::Zip(f), _) => {
                let operands = operands(out.shape)?;
                elementwise::zip_wide([&operands[0], &operands[1]], out, f)
            }
            (Kernel::Elementwise(f), _) => f(&operands(out.shape)?, out),
            (Kernel::Create(f), _) => f(attrs, out),
            (Kernel::Fold(f), [x]) => {
                let axes = ints(attrs, "axes");
                f(&Space::new(x, |axis| axes.contains(&axis)), out)
            }
            (Kernel::Index(f), [x]) => {
                let axis = ints(attrs, "axis");
                let space = Space::new(x, |i| axis.is_empty() || axis.contains(&i));
                f(
                    &space,
                    x.dtype,
                    text(attrs, "tie_break") == Some("high"),
                    out,
                )
            }
            (Kernel::Product(f), [a, b]) => f(a, b, out, attrs),
            (Kernel::Whole(f), _) => f(op.name, inputs, outputs),
            (Kernel::Fold(_) | Kernel::Index(_) | Kernel::Product(_), _) => {
                Err("wrong number of operands".to_owned())
            }
        }
    }
}

/// Whether the host runs `op` on these element types; otherwise the reason, as a sentence.
pub fn supports(op: &str, inputs: &[DType], outputs: &[DType]) -> std::result::Result<(), String> {
    let info = find(op).ok_or_else(|| format!("the host has no op named {op}"))?;
    let copies = (info.contract.copies)(inputs, outputs);
    let computed = |dtype: &DType, takes: DTypeSet| match copies {
        true => dtype.is_known(),
        false => takes.has(*dtype) && DTypeSet::NUMBER.has(*dtype),
    };
    let operands = inputs.iter().zip(info.takes.iter().copied());
    let unfit = operands
        .chain(outputs.iter().map(|dtype| (dtype, info.computes())))
        .find(|(dtype, takes)| !computed(dtype, *takes));
    match unfit {
        Some((dtype, _)) => Err(format!("the host does not run {op} on {dtype}")),
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
    let found = find(op).ok_or_else(|| refuse("no kernel".to_owned()))?;
    let done = found.kernel.run(found, inputs, outputs, attrs);
    done.map_err(|reason| {
        let undefined = found.partial.filter(|partial| partial.reason == reason);
        let error = refuse(reason);
        undefined.map_or(error.clone(), |partial| error.of_kind(partial.kind))
    })
}
