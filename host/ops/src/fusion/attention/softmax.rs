//! What a softmax looks like among the calls of rows: as Axon writes it, and with a quotient at its end.

use nx_vulkan_abi::expression::{Call, Expression, Number, Term};

/// What an expression is the softmax of, but for conversions; `None` where it is none.
pub(super) fn softmax_of(expression: &Expression) -> Option<Term> {
    let calls = Calls(&expression.calls);
    let &[result] = &expression.results[..] else {
        return None;
    };
    let last = calls.call(Term::Made(result))?;
    let (weights, total) = match (&*last.op, &last.terms[..]) {
        ("divide", &[weights, total]) => (weights, total),
        ("multiply", &[a, b]) => [(a, b), (b, a)]
            .into_iter()
            .find_map(|(weights, inverse)| Some((weights, calls.inverse(inverse)?)))?,
        _ => return None,
    };
    let [summed] = calls.terms(total, "sum")?;
    let [less] = calls.terms(weights, "exp")?;
    let [x, most] = calls.terms(less, "subtract")?;
    let [of] = calls.terms(most, "reduce_max")?;
    let is_one = calls.own(summed) == calls.own(weights) && calls.own(of) == calls.own(x);
    is_one.then(|| calls.own(x))
}

struct Calls<'a>(&'a [Call]);

impl<'a> Calls<'a> {
    /// What a term is before conversions.
    fn own(&self, term: Term) -> Term {
        let Term::Made(index) = term else {
            return term;
        };
        match (&*self.0[index].op, &self.0[index].terms[..]) {
            ("as_type", &[of]) => self.own(of),
            _ => term,
        }
    }

    fn call(&self, term: Term) -> Option<&'a Call> {
        match self.own(term) {
            Term::Made(index) => self.0.get(index),
            Term::Operand(_) | Term::Number(..) => None,
        }
    }

    /// What a term is made of, where it is a call of that op.
    fn terms<const N: usize>(&self, term: Term, op: &str) -> Option<[Term; N]> {
        let call = self.call(term).filter(|call| call.op == op)?;
        call.terms[..].try_into().ok()
    }

    /// What a term is the inverse of.
    fn inverse(&self, term: Term) -> Option<Term> {
        let [one, of] = self.terms(term, "divide")?;
        let is_one = matches!(
            one,
            Term::Number(Number::Integer(1) | Number::Float(1.0), _)
        );
        is_one.then_some(of)
    }
}
