//! How an op's results are computed: which of the loops, with which function.

use super::{
    cells, element::Complex, elementwise, lanes::Lane, operand::Operand, reduce::Space, vector,
};
use crate::{
    attrs::{Attr, ints, text},
    view::{Out, Outcome, View},
};
use nx_vulkan_abi::DType;

/// How a result is computed.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kernel {
    /// Of one operand, in f64 from what its elements are in the result's type, rounded once.
    Map(fn(f64) -> f64),
    /// The same, also of complex numbers.
    Both(fn(f64) -> f64, fn(Complex<f64>) -> Complex<f64>),
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
    /// Of two operands, of sums of products.
    Product(fn(&View, &View, &mut Out, &[Attr], Sums) -> Outcome),
    /// The same, of operands that are laid out anew for it.
    Convolution(fn(&View, &View, &mut Out, &[Attr], Sums) -> Outcome),
    /// Of many operands broadcast to several results, by an expression.
    Fused(fn(&[View], &mut [Out], &[Attr], Sums) -> Outcome),
    /// Of matrices, the last two axes of the operands.
    Matrices(fn(&[View], &mut [Out], &[Attr], Sums) -> Outcome),
    /// Of elements of the operands, as many as the result has.
    Moves(fn(&str, &[View], &mut [Out], &[Attr]) -> Outcome),
    /// In a way of its own.
    Whole(fn(&str, &[View], &mut [Out], &[Attr]) -> Outcome),
}

/// What products of floats are summed in, and functions of f32 numbers computed; large matrices are factored step by step or in
/// blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sums {
    /// f64, rounded once, or after each step where Nx does: what others are compared with.
    Wide,
    /// The result's own precision, f32 at least.
    Own,
}

impl Kernel {
    /// Whether each element of the result comes from one element of each operand.
    pub(crate) fn is_elementwise(self) -> bool {
        match self {
            Kernel::Map(_) | Kernel::Both(..) | Kernel::Zip(_) | Kernel::Elementwise(_) => true,
            Kernel::Create(_)
            | Kernel::Fold(_)
            | Kernel::Index(_)
            | Kernel::Product(_)
            | Kernel::Convolution(_)
            | Kernel::Fused(_)
            | Kernel::Matrices(_)
            | Kernel::Moves(_)
            | Kernel::Whole(_) => false,
        }
    }

    /// About the bytes that it takes for so many elements of an operand, each of `size` bytes: those that it lays out, in a wider type
    /// mostly, or what it keeps of parts of them.
    pub(crate) fn room(self, elements: u64, size: u64) -> u64 {
        match self {
            Kernel::Map(_)
            | Kernel::Both(..)
            | Kernel::Zip(_)
            | Kernel::Elementwise(_)
            | Kernel::Create(_)
            | Kernel::Fused(_)
            | Kernel::Moves(_) => 0,
            Kernel::Fold(_) | Kernel::Index(_) | Kernel::Product(_) => elements / 16,
            Kernel::Convolution(_) | Kernel::Matrices(_) | Kernel::Whole(_) => {
                elements.saturating_mul(2 * size)
            }
        }
    }

    /// Whether it writes every byte of its results itself.
    pub(crate) fn writes_all(self) -> bool {
        !matches!(self, Kernel::Matrices(_))
    }

    pub(crate) fn run(
        self,
        lane: Option<Lane>,
        op: &str,
        inputs: &[View],
        outputs: &mut [Out],
        attrs: &[Attr],
        sums: Sums,
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
        if sums == Sums::Own
            && let Some(lane) = lane
            && let Some(done) = cells::run(lane, inputs, out)
        {
            return done;
        }
        match (self, inputs) {
            (Kernel::Map(_) | Kernel::Both(..), _)
                if sums == Sums::Own
                    && elementwise::is_single(out.dtype)
                    && vector::find(op).is_some() =>
            {
                let sweep = vector::find(op).ok_or("no such function")?;
                elementwise::map_blocks(&operands(out.shape)?[0], out, sweep)
            }
            (Kernel::Map(f), _) => elementwise::map_wide(&operands(out.shape)?[0], out, f),
            (Kernel::Both(_, f), _) if out.dtype.is_complex() => {
                elementwise::map_complex(&operands(out.shape)?[0], out, f)
            }
            (Kernel::Both(f, _), _) => elementwise::map_wide(&operands(out.shape)?[0], out, f),
            (Kernel::Zip(f), _) => {
                let operands = operands(out.shape)?;
                elementwise::zip_wide([&operands[0], &operands[1]], out, f)
            }
            (Kernel::Elementwise(f), _) => f(&operands(out.shape)?, out),
            (Kernel::Create(f), _) => f(attrs, out),
            (Kernel::Fold(f), [x]) => {
                let axes = ints(attrs, "axes");
                f(&Space::new(x, |axis| axes.contains(&axis), sums), out)
            }
            (Kernel::Index(f), [x]) => {
                let axis = ints(attrs, "axis");
                let space = Space::new(x, |i| axis.is_empty() || axis.contains(&i), sums);
                f(
                    &space,
                    x.dtype,
                    text(attrs, "tie_break") == Some("high"),
                    out,
                )
            }
            (Kernel::Product(f) | Kernel::Convolution(f), [a, b]) => f(a, b, out, attrs, sums),
            (Kernel::Fused(f), _) => f(inputs, outputs, attrs, sums),
            (Kernel::Matrices(f), _) => f(inputs, outputs, attrs, sums),
            (Kernel::Moves(f) | Kernel::Whole(f), _) => f(op, inputs, outputs, attrs),
            (
                Kernel::Fold(_) | Kernel::Index(_) | Kernel::Product(_) | Kernel::Convolution(_),
                _,
            ) => Err("wrong number of operands".to_owned()),
        }
    }
}
