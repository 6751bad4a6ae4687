//! The calls of an expression on blocks of elements, each the op's own kernel.

use super::kernel::Sums;
use crate::{
    contracts::elementwise,
    expression::element,
    view::{Out, Outcome, View},
};
use nx_vulkan_abi::{
    DType, Expression,
    expression::{Call, Term},
};

/// What the calls of an expression made last.
pub(super) struct Values {
    shape: [u64; 1],
    made: Vec<Vec<u8>>,
    numbers: Vec<Vec<Vec<u8>>>,
    sums: Sums,
}

impl Values {
    /// Of so many elements, as exact as that.
    pub(super) fn new(expression: &Expression, count: usize, sums: Sums) -> Values {
        let calls = expression.calls.iter();
        let numbers = |call: &Call| {
            let bytes = |term: &Term| match *term {
                Term::Number(number, dtype) => element(number, dtype),
                Term::Operand(_) | Term::Made(_) => Vec::new(),
            };
            call.terms.iter().map(bytes).collect()
        };
        Values {
            shape: [count as u64],
            made: calls
                .clone()
                .map(|call| vec![0; count * call.dtype.size() as usize])
                .collect(),
            numbers: calls.map(numbers).collect(),
            sums,
        }
    }

    /// The elements that a result of the expression got last.
    pub(super) fn result(&self, expression: &Expression, index: usize) -> &[u8] {
        &self.made[expression.results[index]]
    }

    /// Runs the calls on the elements of each operand; one element repeats.
    pub(super) fn compute(
        &mut self,
        expression: &Expression,
        operands: &[(DType, &[u8])],
    ) -> Outcome {
        for (index, call) in expression.calls.iter().enumerate() {
            let (before, own) = self.made.split_at_mut(index);
            let mut values = Vec::with_capacity(call.terms.len());
            for (term, number) in call.terms.iter().zip(&self.numbers[index]) {
                values.push(match *term {
                    Term::Operand(at) => operands[at],
                    Term::Made(at) => (expression.calls[at].dtype, before[at].as_slice()),
                    Term::Number(_, dtype) => (dtype, number.as_slice()),
                });
            }
            let result = (call.dtype, &self.shape[..]);
            run(&call.op, &values, result, &mut own[0], self.sums)?;
        }
        Ok(())
    }
}

/// Runs an elementwise op; a value of one element repeats.
pub(super) fn run(
    op: &str,
    values: &[(DType, &[u8])],
    (dtype, shape): (DType, &[u64]),
    to: &mut [u8],
    sums: Sums,
) -> Outcome {
    let known = elementwise(op).ok_or_else(|| format!("no op named {op}"))?;
    let mut views: Vec<View<'_>> = Vec::with_capacity(values.len());
    for &(dtype, bytes) in values {
        let repeats = bytes.len() as u64 == dtype.size();
        views.push(View {
            dtype,
            shape: if repeats { &[] } else { shape },
            strides: if repeats { &[] } else { &[1] },
            offset: 0,
            bytes,
        });
    }
    let mut out = [Out {
        dtype,
        shape,
        bytes: to,
    }];
    known
        .kernel
        .run(known.lane, op, &views, &mut out, &[], sums)
}
