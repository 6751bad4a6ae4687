//! Result types, result shapes and attributes of a request, as Nx infers them; it asks nobody to run anything.

use crate::{
    Attr, DType, Error, Request, Result, Spec, Value,
    contracts::find,
    op::{Attribute, Op},
};

/// The request that Nx makes of `op` on `inputs`. Attributes that `attrs` lacks take their defaults. `output` is the first
/// result, from which the others follow.
///
/// # Errors
/// Bad input when the number of operands or their shapes do not fit, when the op has no such attribute or one of another kind, and
/// when an op that does not infer its result (creation, `as_type`) is given no `output`.
pub fn infer(
    op: &Op,
    inputs: &[Spec],
    output: Option<Spec>,
    attrs: &[Attr],
) -> Result<Request<'static, Spec>> {
    let refuse = |why: String| Error::bad_input(format!("{}: {why}", op.name));
    let contract = op.contract;
    if !op.takes_so_many(inputs.len()) {
        let least = if contract.variadic { "at least " } else { "" };
        return Err(Error::bad_input(format!(
            "{} takes {least}{} operands, got: {}",
            op.name,
            op.arity(),
            inputs.len()
        )));
    }
    let known = contract.attributes;
    for attr in attrs {
        let own = known.iter().find(|own| own.name == attr.name);
        let checked = own.map_or_else(|| Err(stranger(attr, known)), |own| own.check(attr));
        checked.map_err(refuse)?;
    }
    let mut attrs = attrs.to_vec();
    (contract.complete)(inputs, output.as_ref(), &mut attrs);
    attrs.sort_by(|a, b| a.name.cmp(&b.name));
    let first = match output {
        Some(output) => output,
        None if contract.infers => (contract.infer)(op, inputs, &attrs).map_err(refuse)?,
        None => {
            return Err(Error::bad_input(format!(
                "the result of {} does not follow from its operands; name it",
                op.name
            )));
        }
    };
    let all = (contract.all)(inputs, first, &attrs);
    Ok(Request::new(op.name, inputs.to_vec(), all, attrs))
}

/// What is wrong with an attribute that is not among those of its op.
fn stranger(attr: &Attr, known: &[Attribute]) -> String {
    let known: Vec<&str> = known.iter().map(|own| own.name).collect();
    let known = match known[..] {
        [] => "none".to_owned(),
        _ => known.join(", "),
    };
    format!("it has no attribute {}; it has: {known}", attr.name)
}

/// The request for a scalar of that type whose bytes, as a little-endian number, are `bits`.
pub(crate) fn fill(bits: i64, dtype: DType) -> Result<Request<'static, Value>> {
    let fill = find("fill").ok_or_else(|| Error::bad_input("there is no op named fill"))?;
    let bits = [Attr::ints("bits", [bits])];
    let request = infer(fill, &[], Some((dtype, Vec::new())), &bits)?;
    Ok(Request::new(
        request.op,
        Vec::new(),
        request.outputs,
        request.attrs,
    ))
}
