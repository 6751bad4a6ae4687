//! Expressions as the host sees them: which are allowed, and what they have no result for. The text is read in the ABI.

use crate::{
    attrs::{Attr, text},
    check,
    contracts::find,
    element::{float, push_float},
    op::{Attribute, AttributeKind, Op},
    partial::{Partial, SEVERAL},
    view::Desc,
};
use nx_vulkan_abi::{
    DType, DTypeSet, Expression,
    expression::{ATTRIBUTE, Call, Number, Term},
};

/// The attribute of contracts that take one.
pub(crate) const EXPRESSION: Attribute = Attribute {
    name: ATTRIBUTE,
    kind: AttributeKind::Text,
    doc: "what is made of an element of x, i0, and the accumulator, i1, as in `abs(i0):f32; max(%0, i1):f32`; see below. Their \
          sum by default",
};

/// The expression among the attributes, of operands and a result of these types.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn read(
    attrs: &[Attr],
    operands: &[DType],
    result: DType,
) -> Result<Expression, String> {
    let about = |why: String| format!("attribute {ATTRIBUTE}: {why}");
    let text = text(attrs, ATTRIBUTE).ok_or_else(|| about("expected text".to_owned()))?;
    let expression: Expression = text.parse().map_err(about)?;
    let is_real = |dtype: &DType| DTypeSet::REAL.has(*dtype);
    if !operands.iter().chain([&result]).all(is_real) {
        return Err(about("it is for real types only".to_owned()));
    }
    for call in &expression.calls {
        check_call(&expression, call, operands).map_err(about)?;
    }
    match expression.result() {
        Some(gives) if gives != result => Err(about(format!(
            "it gives {gives}, and the result is {result}"
        ))),
        Some(_) | None => Ok(expression),
    }
}

/// What an op on operands of these types may have no result for: what its expression may not, where it has one.
pub(crate) fn partial(op: &Op, inputs: &[DType], attrs: &[Attr]) -> Option<&'static Partial> {
    if !op.has(ATTRIBUTE) {
        return op.partial(inputs);
    }
    let expression: Expression = text(attrs, ATTRIBUTE)?.parse().ok()?;
    let all = expression.calls.iter().filter_map(|call| {
        let dtypes = expression.dtypes(call, inputs).ok()?;
        let partial = find(&call.op)?.partial(&dtypes)?;
        let is_known = |term: &Term| match *term {
            Term::Number(Number::Integer(n), dtype) if dtype == call.dtype => {
                !partial.lacks(n < 0, n == 0)
            }
            Term::Number(..) | Term::Operand(_) | Term::Made(_) => false,
        };
        (!call.terms.get(1).is_some_and(is_known)).then_some(partial)
    });
    all.reduce(|one, other| if one == other { one } else { &SEVERAL })
}

/// The bytes of a number of that type.
pub(crate) fn element(number: Number, dtype: DType) -> Vec<u8> {
    match number {
        Number::Integer(whole) => whole.to_le_bytes()[..dtype.size() as usize].to_vec(),
        Number::Float(number) => {
            let mut bytes = Vec::new();
            push_float(dtype, number, &mut bytes);
            bytes
        }
    }
}

fn check_call(expression: &Expression, call: &Call, operands: &[DType]) -> Result<(), String> {
    let about = |why: &str| format!("`{call}`: {why}");
    let known = find(&call.op).filter(|op| op.kernel.is_elementwise());
    known.ok_or_else(|| about(&format!("{} is no elementwise op", call.op)))?;
    let dtypes = expression.dtypes(call, operands)?;
    let unfit = dtypes.iter().chain([&call.dtype]);
    if let Some(unfit) = unfit.clone().find(|dtype| !DTypeSet::REAL.has(**dtype)) {
        return Err(about(&format!("{unfit} is no real type")));
    }
    for term in &call.terms {
        if let Term::Number(Number::Float(number), dtype) = *term
            && float(dtype, &element(Number::Float(number), dtype))
                .is_none_or(|held| held != number && !number.is_nan())
        {
            return Err(about(&format!("{dtype} does not hold {number:?}")));
        }
    }
    let scalar = |dtype: &DType| Desc {
        dtype: *dtype,
        shape: &[],
    };
    let inputs: Vec<Desc<'_>> = dtypes.iter().map(scalar).collect();
    let checked = check::check(&call.op, &inputs, &[scalar(&call.dtype)], &[]);
    checked.map_err(|error| about(&error.to_string()))
}
