//! Which expressions stand for several ops, and what they give.

use nx_vulkan_abi::{DType, DTypeSet, expression::ATTRIBUTE};
use nx_vulkan_ops::{Attr, Request, Spec, find, infer::infer, layout::LAYOUTS, values::Rng};

#[test]
fn what_the_sweep_tries_is_allowed() {
    let op = find("fused").unwrap();
    for dtype in DType::all().filter(|dtype| DTypeSet::REAL.has(*dtype)) {
        // Each expression once, whatever the layout.
        let problems = op.problems(LAYOUTS[0], dtype, false, &mut Rng(5));
        assert_eq!(problems.len(), 7);
        for problem in problems {
            let inputs = vec![(dtype, vec![2, 3]); problem.inputs.len()];
            let request = infer(op, &inputs, None, &problem.attrs).unwrap();
            assert!(request.check().is_ok(), "{request}: {:?}", problem.attrs);
        }
    }
}

#[test]
fn results_are_those_of_the_expression_in_one_shape() {
    let op = find("fused").unwrap();
    let (row, all) = ((DType::S32, vec![3]), (DType::F32, vec![2, 3]));
    let inputs = [row, all];
    let sum = infer(op, &inputs, None, &[]).unwrap();
    assert_eq!(
        sum.attrs[0],
        Attr::text(ATTRIBUTE, "as_type(i0):f32; add(%0, i1):f32")
    );
    assert_eq!(sum.outputs[..], [(DType::F32, vec![2, 3])]);
    let attrs = [Attr::text(
        ATTRIBUTE,
        "add(i0, i1):f64; less(%0, 2:u8):u8; (%1, %0)",
    )];
    let two = infer(op, &inputs, None, &attrs).unwrap();
    let (first, second) = ((DType::U8, vec![2, 3]), (DType::F64, vec![2, 3]));
    assert_eq!(two.outputs[..], [first.clone(), second.clone()]);
    let refused = |outputs: Vec<Spec>, told: &str| {
        let request = Request::new("fused", &inputs[..], outputs, &attrs[..]);
        let error = request.check().unwrap_err().to_string();
        assert!(error.contains(told), "{error}");
    };
    refused(vec![first.clone()], "it gives 2 results, and there are 1");
    refused(
        vec![first.clone(), (DType::F32, vec![2, 3])],
        "it gives f64, and the result is f32",
    );
    refused(
        vec![first.clone(), (DType::F64, vec![3])],
        "its results have one shape",
    );
    refused(
        vec![(DType::U8, vec![3]), (DType::F64, vec![3])],
        "does not broadcast",
    );
}
