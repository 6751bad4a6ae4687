//! Attention: the program that a request stands for, products and a softmax. Its contract is in `contracts`.

use crate::{
    Attr, DType, Error, Program, Request, Result, Spec, Step, Value, View,
    attrs::{ints, text},
    expression::ROWS,
};
use nx_vulkan_abi::{
    epilogue::{self, Epilogue, FACTORS, Term},
    expression,
};

/// Name of the op.
pub(crate) const ATTENTION: &str = "attention";
/// Name of the attribute that says what becomes of each score.
pub(crate) const SCORES: &str = "scores";
/// Name of the attribute that says in which order the result has its axes.
pub const ORDER: &str = "output_permutation";
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

/// In which order a request's result has its axes; `None` where that is the one in which they come.
///
/// # Errors
/// What the attribute is instead of an order of so many axes, as text.
pub fn order(attrs: &[Attr], rank: usize) -> std::result::Result<Option<Vec<usize>>, String> {
    let axes = ints(attrs, ORDER);
    let order = axes.iter().map(|&axis| usize::try_from(axis).ok());
    let order: Option<Vec<usize>> = order.collect();
    match order {
        Some(order) if order.is_empty() => Ok(None),
        Some(order) if (0..rank).all(|axis| order.contains(&axis)) && order.len() == rank => {
            Ok(Some(order))
        }
        _ => Err(format!(
            "attribute {ORDER} must name each of {rank} axes once, got {axes:?}"
        )),
    }
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
    let width = request.inputs[2].1.last().copied();
    let rows = shape.iter().copied().take(shape.len() - 1);
    let natural: Vec<u64> = rows.chain(width).collect();
    let means = product(vec![first + 1, 2], (dtype, natural), batches);
    let mut steps: Vec<Step<'static>> = vec![made.into(), weights.into(), means.into()];
    let order = order(&request.attrs, of.len()).map_err(Error::bad_input)?;
    let is_turned = order.is_some();
    steps.extend(order.map(|order| Step::View(first + 2, View::Transpose(order))));
    if is_turned || dtype != result {
        let last = first + steps.len() as Value - 1;
        steps.push(Request::new("as_type", vec![last], vec![(result, of)], &[]).into());
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
