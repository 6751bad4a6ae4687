//! Types, shapes and attributes that follow from operands.

use nx_vulkan_ops::{Attr, AttrValue, DType, Spec, find, infer::infer};

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
    let said = "sum: attribute axes must be a list of integers, got \"all\"";
    assert_eq!(error.to_string(), said);
    let error = infer(add, &[clash[0].clone(), clash[0].clone()], None, &misspelt).unwrap_err();
    assert_eq!(
        error.to_string(),
        "add: it has no attribute axis; it has: none"
    );
}

#[test]
fn attributes_of_another_kind_are_shown_as_they_are_written() {
    let sum = find("sum").unwrap();
    for (value, shown) in [
        (AttrValue::Text("x\u{1b}".to_owned()), r#"got "x\u{1b}""#),
        (AttrValue::Floats(vec![1.5]), "got 1.5"),
        (AttrValue::Floats(vec![1.0, 2.5]), "got [1.0, 2.5]"),
    ] {
        let axes = Attr {
            name: "axes".to_owned(),
            value,
        };
        let error = infer(sum, &[(DType::F32, vec![2])], None, &[axes]).unwrap_err();
        assert!(error.to_string().ends_with(shown), "{error}");
    }
}

#[test]
fn an_axis_that_is_not_there_counts_for_nothing() {
    let shapes: [&[u64]; 2] = [&[2, 3], &[3, 2]];
    for (axis, terms) in [(1, 3), (9, 1), (-1, 1)] {
        let attrs = [Attr::ints("contract_a", [axis])];
        let dot = find("dot").unwrap();
        assert_eq!(dot.terms(&shapes, &[], &attrs), terms, "{axis}");
    }
}
