//! Expressions as the host sees them: which are allowed, and what they have no result for. The text is read in the ABI.

use crate::{
    attrs::{Attr, text},
    contracts::elementwise,
    element::{float, push_float},
    fits::{fits, refusal},
    op::{Attribute, AttributeKind, Op},
    partial::{Partial, SEVERAL},
    view::Desc,
};
use nx_vulkan_abi::{
    DType, DTypeSet, Expression,
    expression::{ATTRIBUTE, Call, Number, Term, holds},
};
use smallvec::SmallVec;
use std::{cell::RefCell, collections::HashMap, sync::Arc};

/// Name of the op that stands for several elementwise ones.
pub(crate) const FUSED: &str = "fused";

/// Name of the op that stands for elementwise ones and reductions of rows.
pub(crate) const ROWS: &str = "fused_rows";

/// The attribute of contracts that take one.
pub(crate) const EXPRESSION: Attribute = Attribute {
    name: ATTRIBUTE,
    kind: AttributeKind::Text,
    doc: "what is made of an element of x, i0, and the accumulator, i1, as in `abs(i0):f32; max(%0, i1):f32`; see below. Their \
          sum by default",
};

/// The expression among the attributes, whatever it is of.
///
/// # Errors
/// That there is none, or the text is none.
pub(crate) fn of(attrs: &[Attr]) -> Result<Arc<Expression>, String> {
    Ok(known(attrs, None)?.0)
}

/// Whether rows may be reduced, how many operands there are, and the types of them and of the results.
type Types = (bool, usize, SmallVec<[DType; 8]>);

/// What a thread keeps of a text: to read one takes longer than to compute a few elements of it.
struct Known {
    expression: Arc<Expression>,
    /// What it was found right for.
    right: SmallVec<[Types; 1]>,
}

/// Texts that a thread keeps, the bytes of the longest, and types of each.
const MOST_KNOWN: usize = 256;
const LONGEST_KNOWN: usize = 16 << 10;
const MOST_TYPES: usize = 4;

thread_local! {
    static KNOWN: RefCell<HashMap<String, Known>> = RefCell::default();
}

/// The expression among the attributes, and whether it was found right for these types before.
fn known(attrs: &[Attr], types: Option<&Types>) -> Result<(Arc<Expression>, bool), String> {
    let text = text(attrs, ATTRIBUTE).ok_or_else(|| about("expected text".to_owned()))?;
    KNOWN.with_borrow_mut(|known| {
        if let Some(Known { expression, right }) = known.get(text) {
            let is_right = types.is_some_and(|types| right.contains(types));
            return Ok((Arc::clone(expression), is_right));
        }
        let expression = Arc::new(text.parse().map_err(about)?);
        if text.len() <= LONGEST_KNOWN {
            if known.len() == MOST_KNOWN {
                known.clear();
            }
            let (expression, right) = (Arc::clone(&expression), SmallVec::new());
            known.insert(text.to_owned(), Known { expression, right });
        }
        Ok((expression, false))
    })
}

/// Keeps that the expression among the attributes is right for these types.
fn found_right(attrs: &[Attr], types: Types) {
    KNOWN.with_borrow_mut(|known| {
        let known = text(attrs, ATTRIBUTE).and_then(|text| known.get_mut(text));
        let Some(Known { right, .. }) = known else {
            return;
        };
        if right.len() == MOST_TYPES {
            right.remove(0);
        }
        right.push(types);
    });
}

/// The expression among the attributes, of operands and results of these types.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn read(
    attrs: &[Attr],
    operands: &[DType],
    results: &[DType],
) -> Result<Arc<Expression>, String> {
    read_with(attrs, operands, results, false)
}

/// As [`read`], where calls may also reduce the rows of operands of these shapes, which broadcast to `shape`.
pub(crate) fn read_rows(
    attrs: &[Attr],
    operands: &[Desc<'_>],
    results: &[DType],
    shape: &[u64],
) -> Result<(Arc<Expression>, Vec<bool>), String> {
    let dtypes: Vec<DType> = operands.iter().map(|operand| operand.dtype).collect();
    let expression = read_with(attrs, &dtypes, results, true)?;
    let per_row = expression.per_row(&operands_per_row(operands, shape));
    let whole = |term: &Term| match *term {
        Term::Operand(index) => operands[index].shape == shape,
        Term::Made(index) => !per_row[index],
        Term::Number(..) => false,
    };
    let unlike = expression
        .calls
        .iter()
        .find(|call| call.reduces() && !call.terms.iter().all(whole));
    match unlike {
        Some(call) => Err(about(format!(
            "`{call}` reduces what has no elements along the rows of {shape:?}"
        ))),
        None => Ok((expression, per_row)),
    }
}

/// By operand whether it has one value for each row of `shape`.
pub(crate) fn operands_per_row(operands: &[Desc<'_>], shape: &[u64]) -> Vec<bool> {
    let is_long = shape.last() != Some(&1);
    let one = |operand: &Desc<'_>| is_long && matches!(operand.shape.last(), None | Some(1));
    operands.iter().map(one).collect()
}

/// Fails unless a call is one of an elementwise op on real types, or reduces rows of floats in their own type.
pub(crate) fn check_row_call(
    expression: &Expression,
    call: &Call,
    operands: &[DType],
) -> Result<(), String> {
    if !call.reduces() {
        return check_call(expression, call, operands);
    }
    let dtypes = expression.dtypes(call, operands)?;
    let is_summed = [DType::F16, DType::BF16, DType::F32, DType::F64].contains(&call.dtype);
    match dtypes[..] == [call.dtype] && is_summed {
        true => Ok(()),
        false => Err(format!(
            "`{call}`: expected elements of one row and their type, f16, bf16, f32 or f64"
        )),
    }
}

fn read_with(
    attrs: &[Attr],
    operands: &[DType],
    results: &[DType],
    of_rows: bool,
) -> Result<Arc<Expression>, String> {
    let both = operands.iter().chain(results);
    let types = (of_rows, operands.len(), both.copied().collect());
    let (expression, is_right) = known(attrs, Some(&types))?;
    if !is_right {
        check(&expression, operands, results, of_rows).map_err(about)?;
        found_right(attrs, types);
    }
    Ok(expression)
}

/// Fails unless an expression is right for operands and results of these types.
fn check(
    expression: &Expression,
    operands: &[DType],
    results: &[DType],
    of_rows: bool,
) -> Result<(), String> {
    let is_real = |dtype: &DType| DTypeSet::REAL.has(*dtype);
    if !operands.iter().chain(results).all(is_real) {
        return Err("it is for real types only".to_owned());
    }
    for call in &expression.calls {
        match of_rows {
            true => check_row_call(expression, call, operands)?,
            false => check_call(expression, call, operands)?,
        }
    }
    let count = expression.results.len();
    if count != results.len() {
        return Err(format!(
            "it gives {count} results, and there are {}",
            results.len()
        ));
    }
    let unlike = expression.gives().zip(results).find(|(a, b)| a != *b);
    let unlike =
        unlike.map(|(gives, result)| format!("it gives {gives}, and the result is {result}"));
    unlike.map_or(Ok(()), Err)
}

fn about(why: String) -> String {
    format!("attribute {ATTRIBUTE}: {why}")
}

impl Op {
    /// What it has no result for, where operands of these types may be that and, where it has one, its expression lacks it.
    pub fn partial_of(&self, inputs: &[DType], attrs: &[Attr]) -> Option<&'static Partial> {
        if !self.has(ATTRIBUTE) {
            return self.partial(inputs);
        }
        let expression = of(attrs).ok()?;
        let calls = expression.calls.iter();
        let all = calls.filter_map(|call| partial_call(&expression, call, inputs));
        all.reduce(|one, other| if one == other { one } else { &SEVERAL })
    }
}

/// What a call may have no result for.
pub(crate) fn partial_call(
    expression: &Expression,
    call: &Call,
    operands: &[DType],
) -> Option<&'static Partial> {
    let dtypes = expression.dtypes(call, operands).ok()?;
    let partial = elementwise(&call.op)?.partial(&dtypes)?;
    let is_known = |term: &Term| match *term {
        Term::Number(Number::Integer(n), _) => {
            holds(call.dtype, n) && !partial.lacks(n < 0, n == 0)
        }
        Term::Number(..) | Term::Operand(_) | Term::Made(_) => false,
    };
    (!call.terms.get(1).is_some_and(is_known)).then_some(partial)
}

/// The number that an element of a real type is; `None` for NaN, which has many.
pub(crate) fn number(dtype: DType, element: &[u8]) -> Option<Number> {
    if dtype.is_float() {
        let number = float(dtype, element).filter(|number| !number.is_nan());
        return number.map(Number::Float);
    }
    let mut wide = [0; 16];
    wide.get_mut(..element.len())?.copy_from_slice(element);
    let (whole, above) = (i128::from_le_bytes(wide), 128 - 8 * element.len() as u32);
    Some(Number::Integer(match dtype.is_signed() {
        true => whole << above >> above,
        false => whole,
    }))
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

/// Fails unless a call is one of an elementwise op on real types.
pub(crate) fn check_call(
    expression: &Expression,
    call: &Call,
    operands: &[DType],
) -> Result<(), String> {
    let about = |why: &str| format!("`{call}`: {why}");
    let op = elementwise(&call.op);
    let op = op.ok_or_else(|| about(&format!("{} is no elementwise op", call.op)))?;
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
    let outputs = [scalar(&call.dtype)];
    let fits = fits(op, &inputs, &outputs, &[]);
    fits.map_err(|why| about(&refusal(op.name, &inputs, &outputs, &why).to_string()))
}
