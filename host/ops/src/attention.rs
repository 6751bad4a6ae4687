//! Attention: the program that a request stands for, products and a softmax. Its contract is in `contracts`.

use crate::{
    Attr, DType, Error, Program, Request, Result, Spec, Step, Value, attrs::text, expression::ROWS,
};
use nx_vulkan_abi::{
    epilogue::{self, Epilogue, FACTORS, Term},
    expression,
};

/// Name of the op.
pub(crate) const ATTENTION: &str = "attention";
/// Name of the attribute that says what becomes of each score.
pub(crate) const SCORES: &str = "scores";
/// Operands of its own: q, k and v. Those behind them are for the scores.
pub(crate) const OWN: usize = 3;

/// The type in which a result of `dtype` is summed.
pub fn sums(dtype: DType) -> DType {
    match dtype {
        DType::F64 => DType::F64,
        _ => DType::F32,
    }
}

/// The shape of the scores of q and k, batches, rows of q and keys; `None` where they have none.
pub(crate) fn scores(q: &[u64], k: &[u64]) -> Option<Vec<u64>> {
    let (_, rows) = q.split_last()?;
    let [.., keys, _] = k else {
        return None;
    };
    Some([rows, &[*keys]].concat())
}

/// The program that a request stands for, with scores and weights of that type, a float as wide as the operands' at least: a
/// product, the softmax of its rows, and a product of that with v.
///
/// # Errors
/// Bad input when the request breaks the contract.
pub fn program(request: &Request<'_, Spec>, dtype: DType) -> Result<Program<'static>> {
    request.check()?;
    let [q, k, ..] = &*request.inputs else {
        return Err(Error::bad_input("attention is of q, k and v"));
    };
    let shape = scores(&q.1, &k.1).ok_or_else(|| Error::bad_input("k has no rows"))?;
    let batches = k.1.len() as i64 - 2;
    let product = |values: Vec<Value>, output: Spec, contract: i64| {
        let attrs = vec![
            Attr::ints("batch_a", Vec::from_iter(0..batches)),
            Attr::ints("batch_b", Vec::from_iter(0..batches)),
            Attr::ints("contract_a", [shape.len() as i64 - 1]),
            Attr::ints("contract_b", [contract]),
        ];
        Request::new("dot", values, vec![output], attrs)
    };
    let first = request.inputs.len() as Value;
    let operands = [0, 1].into_iter().chain(OWN as Value..first).collect();
    let mut made = product(operands, (dtype, shape.clone()), batches + 1);
    if let Some(text) = text(&request.attrs, SCORES) {
        let finish = Attr::text(epilogue::ATTRIBUTE, &of_product(text)?);
        made.attrs.to_mut().push(finish);
    }
    let attrs = vec![Attr::text(expression::ATTRIBUTE, &softmax(dtype))];
    let weights = Request::new(ROWS, vec![first], vec![(dtype, shape.clone())], attrs);
    let (result, of) = request.outputs[0].clone();
    let means = product(vec![first + 1, 2], (dtype, of.clone()), batches);
    let mut steps: Vec<Step<'static>> = vec![made.into(), weights.into(), means.into()];
    if dtype != result {
        steps.push(Request::new("as_type", vec![first + 2], vec![(result, of)], &[]).into());
    }
    let last = first + steps.len() as Value - 1;
    Program::new(request.inputs.len(), steps, [last])
}

/// What becomes of the scores as the epilogue of the product that makes them, whose further operands are other ones.
fn of_product(text: &str) -> Result<String> {
    let mut epilogue: Epilogue = text.parse().map_err(|why: String| Error::bad_input(why))?;
    for term in epilogue.calls.iter_mut().flat_map(|call| &mut call.terms) {
        if let Term::Operand(index) = term {
            *index -= OWN - FACTORS;
        }
    }
    Ok(epilogue.to_string())
}

/// The softmax of rows of that type.
fn softmax(dtype: DType) -> String {
    let wide = sums(dtype);
    if dtype == wide {
        return format!(
            "reduce_max(i0):{wide}; subtract(i0, %0):{wide}; exp(%1):{wide}; sum(%2):{wide}; divide(%2, %3):{wide}"
        );
    }
    format!(
        "as_type(i0):{wide}; reduce_max(%0):{wide}; subtract(%0, %1):{wide}; exp(%2):{wide}; sum(%3):{wide}; \
         divide(%3, %4):{wide}; as_type(%5):{dtype}"
    )
}
