//! Requests as programs of what they stand for: products with what follows them, fused ops, one after the other, and convolutions
//! that are products of matrices.

use crate::{
    Attr, Program, Request, Result, Spec, Step, Value, View,
    attrs::ints,
    epilogue,
    error::Error,
    expression::{self, element},
    find,
    infer::fill,
    precision,
};
use nx_vulkan_abi::expression::Term;

/// Name of the op that stands for several elementwise ones.
pub(crate) const FUSED: &str = "fused";

/// The program that a request stands for; `None` where it is one op.
///
/// # Errors
/// Bad input when the request breaks the contract.
pub fn split(request: &Request<'_, Spec>) -> Result<Option<Program<'static>>> {
    match &*request.op {
        FUSED => one_by_one(request).map(Some),
        "conv" if !epilogue::has(&request.attrs) => product(request),
        _ => epilogue::split(request),
    }
}

/// The product that a convolution with channels last is where its kernel has one element for each channel and its positions are
/// those of x.
fn product(request: &Request<'_, Spec>) -> Result<Option<Program<'static>>> {
    let ([x, kernel], [out]) = (&*request.inputs, &*request.outputs) else {
        return Ok(None);
    };
    request.check()?;
    let all = |name: &str, n: i64| ints(&request.attrs, name).iter().all(|is| *is == n);
    let ones = [
        "strides",
        "input_dilation",
        "batch_group_size",
        "feature_group_size",
    ];
    let rank = x.1.len();
    let last: Vec<i64> = [0, rank as i64 - 1]
        .into_iter()
        .chain(1..rank as i64 - 1)
        .collect();
    let is_last = |name: &str| ints(&request.attrs, name) == last;
    let kernel_axes = ints(&request.attrs, "kernel_permutation");
    let [filters, channels] = [0, 1].map(|axis: usize| kernel_axes[axis] as usize);
    let matrix: Vec<u64> = [filters.min(channels), filters.max(channels)]
        .map(|axis| kernel.1[axis])
        .into();
    let elements = |shape: &[u64]| shape.iter().product::<u64>();
    if rank < 3
        || [kernel.0, out.0] != [x.0; 2]
        || !ones.into_iter().all(|name| all(name, 1))
        || !all("padding", 0)
        || !is_last("input_permutation")
        || !is_last("output_permutation")
        || elements(&kernel.1) != elements(&matrix)
        || elements(&out.1) == 0
        || elements(&x.1) == 0
    {
        return Ok(None);
    }
    let rows = elements(&x.1[..rank - 1]);
    let attrs = request
        .attrs
        .iter()
        .filter(|attr| attr.name == precision::ATTRIBUTE);
    let contract = [
        Attr::ints("batch_a", []),
        Attr::ints("batch_b", []),
        Attr::ints("contract_a", [1]),
        Attr::ints("contract_b", [i64::from(filters < channels)]),
    ];
    let attrs: Vec<Attr> = contract.into_iter().chain(attrs.cloned()).collect();
    let sums = (out.0, vec![rows, kernel.1[filters]]);
    let steps: Vec<Step<'static>> = vec![
        Step::View(0, View::Reshape(vec![rows, x.1[rank - 1]])),
        Step::View(1, View::Reshape(matrix)),
        Request::new("dot", vec![2, 3], vec![sums], attrs).into(),
        Step::View(4, View::Reshape(out.1.clone())),
    ];
    Program::new(2, steps, [5]).map(Some)
}

/// The only op in a fused one that may have no result, as a request of its own: `quotient(s32[3], s32[]) -> s32[3]`.
pub fn partial(request: &Request<'_, Spec>) -> Option<String> {
    let program = match &*request.op {
        FUSED => one_by_one(request).ok()?,
        _ => return None,
    };
    let mut specs = request.inputs.to_vec();
    let mut found = Vec::new();
    for step in program.steps() {
        let Step::Request(step) = step else { continue };
        let operands = step
            .inputs
            .iter()
            .map(|&value| specs[value as usize].clone());
        let own = step.over(operands.collect::<Vec<Spec>>());
        if find(&own.op)?.partial(&own.types().0).is_some() {
            found.push(own.to_string());
        }
        specs.extend(step.outputs.iter().cloned());
    }
    found.pop().filter(|_| found.is_empty())
}

fn one_by_one(request: &Request<'_, Spec>) -> Result<Program<'static>> {
    request.check()?;
    let expression = expression::of(&request.attrs).map_err(Error::bad_input)?;
    let shape = &request.outputs[0].1;
    let mut steps: Vec<Step<'static>> = Vec::new();
    let mut push = |request: Request<'static, Value>, inputs: usize| {
        steps.push(request.into());
        (inputs + steps.len() - 1) as Value
    };
    let mut made: Vec<Value> = Vec::new();
    for call in &expression.calls {
        let mut values = Vec::new();
        for term in &call.terms {
            values.push(match *term {
                Term::Operand(index) => index as Value,
                Term::Made(index) => made[index],
                Term::Number(number, dtype) => {
                    let mut bits = element(number, dtype);
                    bits.resize(8, 0);
                    let bits = bits.try_into().map(i64::from_le_bytes).unwrap_or(0);
                    push(fill(bits, dtype)?, request.inputs.len())
                }
            });
        }
        let spec = vec![(call.dtype, shape.clone())];
        let call = Request::new(call.op.clone(), values, spec, &[]);
        made.push(push(call, request.inputs.len()));
    }
    let results: Vec<Value> = expression.results.iter().map(|&call| made[call]).collect();
    Program::new(request.inputs.len(), steps, results)
}
