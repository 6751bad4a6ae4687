//! Products are told which of their operands last: inputs of the program, beside what it computes.

use nx_vulkan_abi::lasting::ATTRIBUTE;
use nx_vulkan_ops::{
    Attr, DType, Program, Request, Step, Value, View,
    fusion::{Input, lasting, untold, weights},
};

fn product(left: Value, right: Value, batches: i64) -> Step<'static> {
    let shape = match batches {
        0 => vec![4, 4],
        _ => vec![2, 4, 4],
    };
    let attrs = vec![
        Attr::ints("batch_a", Vec::from_iter(0..batches)),
        Attr::ints("batch_b", Vec::from_iter(0..batches)),
        Attr::ints("contract_a", [batches + 1]),
        Attr::ints("contract_b", [batches]),
    ];
    Request::new("dot", vec![left, right], vec![(DType::F32, shape)], attrs).into()
}

/// The operands that each product of the program is told to last.
fn told(inputs: &[&[u64]], steps: Vec<Step<'static>>) -> Vec<Vec<i64>> {
    let spec = |shape: &&[u64]| Input {
        spec: (DType::F32, shape.to_vec()),
        element: None,
    };
    let inputs: Vec<Input> = inputs.iter().map(spec).collect();
    let last = (inputs.len() + steps.len() - 1) as Value;
    let program = Program::new(inputs.len(), steps, [last]).unwrap();
    let program = lasting(program, &inputs).unwrap();
    // Nothing else is changed.
    let without = untold(&program).unwrap();
    assert_eq!(weights(&without), []);
    let again = lasting(without, &inputs).unwrap();
    assert_eq!(again.steps(), program.steps());
    let attrs = program.steps().iter().filter_map(|step| match step {
        Step::Request(request) if request.op == "dot" => Some(&request.attrs),
        _ => None,
    });
    let told = attrs.map(|attrs| nx_vulkan_ops::attrs::ints(attrs, ATTRIBUTE).to_vec());
    told.collect()
}

#[test]
fn weights_last_where_what_they_are_multiplied_with_is_computed() {
    let square: &[u64] = &[4, 4];
    let exp = |value| -> Step<'static> {
        let spec = vec![(DType::F32, square.to_vec())];
        Request::new("exp", vec![value], spec, &[]).into()
    };
    let turned = |value| Step::View(value, View::Transpose(vec![1, 0]));
    // Of two inputs nobody knows which is the weights; a view of one is one.
    let both = [square, square];
    assert_eq!(told(&both, vec![product(0, 1, 0)]), [vec![]]);
    assert_eq!(told(&both, vec![exp(0), product(2, 1, 0)]), [vec![1]]);
    let steps = vec![exp(0), turned(1), product(2, 3, 0)];
    assert_eq!(told(&both, steps), [vec![1]]);
    assert_eq!(told(&both, vec![exp(0), product(1, 2, 0)]), [vec![]]);
    let layers = vec![exp(0), product(2, 1, 0), product(3, 1, 0), product(4, 3, 0)];
    assert_eq!(told(&both, layers), [vec![1], vec![1], vec![]]);

    let steps = vec![exp(0), turned(1), product(2, 3, 0)];
    let program = Program::new(2, steps, [4]).unwrap();
    let inputs = vec![super::input(DType::F32, square); 2];
    assert_eq!(weights(&lasting(program, &inputs).unwrap()), [1]);

    // What has batches is no weights.
    let cube: &[u64] = &[2, 4, 4];
    let spec = vec![(DType::F32, cube.to_vec())];
    let exp = Request::new("exp", vec![0], spec, &[]).into();
    assert_eq!(told(&[cube, cube], vec![exp, product(2, 1, 1)]), [vec![]]);
}
