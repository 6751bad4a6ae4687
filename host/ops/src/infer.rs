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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::find;
    use nx_vulkan_abi::DType;

    fn result(op: &str, inputs: &[Spec], attrs: &[Attr]) -> Spec {
        infer(find(op).unwrap(), inputs, None, attrs)
            .unwrap()
            .outputs[0]
            .clone()
    }

    #[test]
    fn results_are_those_of_nx() {
        let u8s = (DType::U8, vec![3, 4]);
        let f16s = (DType::F16, vec![4]);
        assert_eq!(
            result("add", &[u8s.clone(), f16s.clone()], &[]),
            (DType::F16, vec![3, 4])
        );
        assert_eq!(
            result("divide", &[u8s.clone(), u8s.clone()], &[]),
            (DType::F32, vec![3, 4])
        );
        assert_eq!(
            result("less", &[u8s.clone(), f16s.clone()], &[]).0,
            DType::U8
        );
        assert_eq!(
            result("sum", std::slice::from_ref(&u8s), &[]),
            (DType::U32, vec![])
        );
        let axis = [Attr::ints("axis", [0])];
        assert_eq!(result("argmin", &[u8s], &axis), (DType::S32, vec![4]));
    }

    #[test]
    fn dot_contracts_the_last_axis_with_the_first_free_one() {
        let a = (DType::F32, vec![2, 3, 4]);
        let b = (DType::F32, vec![2, 4, 5]);
        let batch = [Attr::ints("batch_a", [0]), Attr::ints("batch_b", [0])];
        assert_eq!(result("dot", &[a, b], &batch).1, [2, 3, 5]);
        let (a, b) = ((DType::S8, vec![3, 4]), (DType::S8, vec![4]));
        assert_eq!(result("dot", &[a, b], &[]).1, [3]);
        let (a, b) = ((DType::S8, vec![]), (DType::S8, vec![4]));
        assert_eq!(result("dot", &[a, b], &[]).1, [4]);
    }

    #[test]
    fn what_cannot_be_inferred_is_said() {
        let cast = find("as_type").unwrap();
        assert!(infer(cast, &[(DType::U8, vec![])], None, &[]).is_err());
        let add = find("add").unwrap();
        let clash = [(DType::U8, vec![2]), (DType::U8, vec![3])];
        assert!(
            infer(add, &clash, None, &[])
                .unwrap_err()
                .to_string()
                .contains("broadcast")
        );
        assert!(
            infer(add, &clash[..1], None, &[])
                .unwrap_err()
                .to_string()
                .contains("2 operands")
        );
        let misspelt = [Attr::ints("axis", [0])];
        let sum = find("sum").unwrap();
        let error = infer(sum, &clash[..1], None, &misspelt).unwrap_err();
        let said = "sum: it has no attribute axis; it has: axes";
        assert_eq!(error.to_string(), said);
        let word = [Attr::text("axes", "all")];
        let error = infer(sum, &clash[..1], None, &word).unwrap_err();
        let said = "sum: attribute axes must be a list of integers, got Text(\"all\")";
        assert_eq!(error.to_string(), said);
        let error = infer(add, &[clash[0].clone(), clash[0].clone()], None, &misspelt).unwrap_err();
        assert_eq!(
            error.to_string(),
            "add: it has no attribute axis; it has: none"
        );
    }
}
