//! Epilogues as the host sees them: which are allowed, and the ops that one stands for. The text is read in the ABI.

use crate::{
    attrs::{Attr, text},
    contracts::find,
    element::push_float,
    error::{Error, Result},
    infer::fill,
    op::{Gives, Op},
    program::{Program, Step, Value},
    request::{Request, Spec},
    view::Desc,
};
use nx_vulkan_abi::{
    DType,
    epilogue::{ATTRIBUTE, Call, Epilogue, FACTORS, Term, Types},
};

/// Whether the attributes have an epilogue.
pub fn has(attrs: &[Attr]) -> bool {
    attrs.iter().any(|attr| attr.name == ATTRIBUTE)
}

/// A product with an epilogue as what it stands for: the product, whose result is the sums, and one elementwise op after
/// another; `None` where the op has no epilogues, or the request has none.
///
/// # Errors
/// Bad input when the request breaks the contract.
pub(crate) fn split(request: &Request<'_, Spec>) -> Result<Option<Program<'static>>> {
    let known = find(&request.op).filter(|op| takes(op) && has(&request.attrs));
    let Some(op) = known else {
        return Ok(None);
    };
    request.check()?;
    let inputs: Vec<Desc<'_>> = request.inputs.iter().map(desc).collect();
    let outputs: Vec<Desc<'_>> = request.outputs.iter().map(desc).collect();
    let read = read(op, &inputs, &outputs[0], &request.attrs);
    let (epilogue, types) = read.map_err(Error::bad_input)?;
    Parts::new(request, types).program(&epilogue).map(Some)
}

/// Whether an op may have an epilogue.
pub(crate) fn takes(op: &Op) -> bool {
    op.has(ATTRIBUTE)
}

/// Checks the epilogue of an op that may have one, and its further operands.
pub(crate) fn check(
    op: &Op,
    inputs: &[Desc<'_>],
    out: &Desc<'_>,
    attrs: &[Attr],
) -> std::result::Result<(), String> {
    if has(attrs) {
        return read(op, inputs, out, attrs).map(drop);
    }
    match inputs.len() {
        FACTORS => Ok(()),
        given => Err(format!(
            "expected {FACTORS} operands without an epilogue, got {given}"
        )),
    }
}

fn read(
    op: &Op,
    inputs: &[Desc<'_>],
    out: &Desc<'_>,
    attrs: &[Attr],
) -> std::result::Result<(Epilogue, Types), String> {
    let dtypes: Vec<DType> = inputs.iter().map(|input| input.dtype).collect();
    let types = Types::of(&dtypes, out.dtype, op.name == "conv");
    read_as(
        ATTRIBUTE,
        attrs,
        types,
        inputs,
        FACTORS,
        ("result", out.shape),
    )
}

/// The epilogue that is an attribute, of these types, in a request whose operands from `first` on are further ones. They
/// broadcast to what it is of, which has a name and a shape.
pub(crate) fn read_as(
    attribute: &str,
    attrs: &[Attr],
    types: Option<Types>,
    inputs: &[Desc<'_>],
    first: usize,
    (of, shape): (&str, &[u64]),
) -> std::result::Result<(Epilogue, Types), String> {
    let about = |why: String| format!("attribute {attribute}: {why}");
    let text = text(attrs, attribute).ok_or_else(|| about("expected text".to_owned()))?;
    let epilogue: Epilogue = text.parse().map_err(about)?;
    epilogue.check_further(first, inputs.len()).map_err(about)?;
    let types = types.ok_or_else(|| about("it is for real types only".to_owned()))?;
    let calls = epilogue.calls.iter();
    let mut calls = calls.map(|call| check_call(call, types.compute));
    calls.try_for_each(|checked| checked.map_err(about))?;
    for (input, index) in inputs.iter().zip(0..).skip(first) {
        let lead = shape.len().checked_sub(input.shape.len());
        let fits = lead.is_some_and(|lead| {
            let mut pairs = input.shape.iter().zip(&shape[lead..]);
            pairs.all(|(own, result)| own == result || *own == 1)
        });
        if !fits {
            return Err(about(format!(
                "i{index}, {input}, does not broadcast to the {of}, {shape:?}"
            )));
        }
    }
    Ok((epilogue, types))
}

/// Checks that a call is one of an epilogue that is computed in `compute`.
pub(crate) fn check_call(call: &Call, compute: DType) -> std::result::Result<(), String> {
    let is_own = |op: &&Op| {
        let converts = matches!(op.gives, Gives::Any | Gives::Part | Gives::Complex);
        op.kernel.is_elementwise() && !converts
    };
    let Some(op) = find(&call.op).filter(is_own) else {
        return Err(format!(
            "`{call}`: {} is no elementwise op of reals",
            call.op
        ));
    };
    if call.terms.len() != op.arity() {
        let (takes, given) = (op.arity(), call.terms.len());
        return Err(format!(
            "`{call}`: {} takes {takes} operands, got {given}",
            op.name
        ));
    }
    let in_type = |why: &str| {
        Err(format!(
            "`{call}` {why}, and this epilogue is computed in {compute}"
        ))
    };
    if (0..op.arity()).any(|index| !op.takes_at(index).has(compute)) {
        return in_type("is for integers");
    }
    if compute.is_integer() && op.gives == Gives::Float {
        return in_type("is for floats");
    }
    if op.partial(&vec![compute; op.arity()]).is_some() {
        return in_type("has no result for some integers");
    }
    let lost = call.terms.iter().find_map(|term| match term {
        Term::Number(number) if bits(*number, compute).is_none() => Some(number),
        _ => None,
    });
    match lost {
        Some(number) => in_type(&format!("has the number {number:?}")),
        None => Ok(()),
    }
}

/// A number in the type of an epilogue, little-endian and zero-extended; `None` for what is no integer of that type.
fn bits(number: f64, dtype: DType) -> Option<i64> {
    if dtype.is_float() {
        let mut bytes = Vec::new();
        push_float(dtype, number, &mut bytes);
        bytes.resize(8, 0);
        let bytes = bytes.try_into().ok()?;
        return Some(i64::from_le_bytes(bytes));
    }
    let (lowest, beyond) = match (dtype.is_signed(), 8 * dtype.size() as i32) {
        (true, bits) => (-(2f64.powi(bits - 1)), 2f64.powi(bits - 1)),
        (false, bits) => (0.0, 2f64.powi(bits)),
    };
    let is_one = number.fract() == 0.0 && (lowest..beyond).contains(&number);
    let mask = u64::MAX >> (64 - 8 * dtype.size());
    is_one.then_some((number as i128 as u64 & mask) as i64)
}

fn desc(spec: &Spec) -> Desc<'_> {
    Desc {
        dtype: spec.0,
        shape: &spec.1,
    }
}

/// A program that is being made of a request.
struct Parts<'a> {
    request: &'a Request<'a, Spec>,
    types: Types,
    steps: Vec<Step<'static>>,
}

impl<'a> Parts<'a> {
    fn new(request: &'a Request<'a, Spec>, types: Types) -> Parts<'a> {
        Parts {
            request,
            types,
            steps: Vec::new(),
        }
    }

    fn program(mut self, epilogue: &Epilogue) -> Result<Program<'static>> {
        let request = self.request;
        let (result, shape) = &request.outputs[0];
        let Types { sum, compute } = self.types;
        let attrs = request.attrs.iter().filter(|attr| attr.name != ATTRIBUTE);
        let factors: Vec<Value> = (0..FACTORS as Value).collect();
        let product = Request::new(
            request.op.to_string(),
            factors,
            vec![(sum, shape.clone())],
            attrs.cloned().collect::<Vec<_>>(),
        );
        let sums = self.push(product);
        let sums = self.converted(sums, (sum, shape), compute);
        let further = request.inputs.iter().zip(0..).skip(FACTORS);
        let operands: Vec<Value> = further
            .map(|(input, index)| self.converted(index, (input.0, &input.1), compute))
            .collect();
        let mut made = Vec::new();
        for call in &epilogue.calls {
            let mut values = Vec::new();
            for term in &call.terms {
                values.push(match term {
                    Term::Sum => sums,
                    Term::Operand(index) => operands[index - FACTORS],
                    Term::Made(index) => made[*index],
                    Term::Number(number) => self.number(*number)?,
                });
            }
            let is_test = find(&call.op).is_some_and(|op| op.gives == Gives::Bool);
            let dtype = if is_test { DType::U8 } else { compute };
            let spec = vec![(dtype, shape.clone())];
            let value = self.push(Request::new(call.op.clone(), values, spec, &[]));
            made.push(self.converted(value, (dtype, shape), compute));
        }
        let last = made.last().copied().unwrap_or(sums);
        let last = self.converted(last, (compute, shape), *result);
        Program::new(request.inputs.len(), self.steps, [last])
    }

    fn push(&mut self, request: Request<'static, Value>) -> Value {
        self.steps.push(request.into());
        (self.request.inputs.len() + self.steps.len() - 1) as Value
    }

    fn converted(&mut self, value: Value, (from, shape): (DType, &[u64]), to: DType) -> Value {
        if from == to {
            return value;
        }
        let spec = vec![(to, shape.to_vec())];
        self.push(Request::new("as_type", vec![value], spec, &[]))
    }

    fn number(&mut self, number: f64) -> Result<Value> {
        let dtype = self.types.compute;
        let bits = bits(number, dtype).ok_or_else(|| {
            Error::bad_input(format!("attribute {ATTRIBUTE}: {number:?} is no {dtype}"))
        })?;
        Ok(self.push(fill(bits, dtype)?))
    }
}
