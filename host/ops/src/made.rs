//! Of which operands each result of a request is made, where there may be several by an expression.

use crate::{
    Attr, DType,
    contracts::find,
    expression::{of, partial_call},
};
use nx_vulkan_abi::expression::Term;

/// What a result of an expression is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Made {
    /// Whether of each operand.
    pub of: Vec<bool>,
    /// Whether of a call that may have no result.
    pub is_partial: bool,
}

/// What each result of a request is made of, where there may be several by an expression; else all are of all.
pub fn made(op: &str, inputs: &[DType], attrs: &[Attr]) -> Option<Vec<Made>> {
    find(op).filter(|op| op.contract.several)?;
    let expression = of(attrs).ok()?;
    let mut made: Vec<Made> = Vec::with_capacity(expression.calls.len());
    for call in &expression.calls {
        let mut own = Made {
            of: vec![false; inputs.len()],
            is_partial: partial_call(&expression, call, inputs).is_some(),
        };
        for term in &call.terms {
            match *term {
                Term::Operand(index) => *own.of.get_mut(index)? = true,
                Term::Made(index) => own.add(&made[index]),
                Term::Number(..) => {}
            }
        }
        made.push(own);
    }
    let results = expression.results.iter();
    Some(results.map(|&call| made[call].clone()).collect())
}

impl Made {
    fn add(&mut self, other: &Made) {
        self.is_partial |= other.is_partial;
        let both = self.of.iter_mut().zip(&other.of);
        both.for_each(|(own, other)| *own |= other);
    }
}
