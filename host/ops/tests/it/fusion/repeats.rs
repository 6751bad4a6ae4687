//! Products whose right operand was repeated.

use super::input;
use nx_vulkan_ops::{Attr, DType, Program, Request, Step, Value, View, fusion::repeats};

/// Batches, rows, heads of queries and of keys, elements.
const QUERIES: &[u64] = &[2, 5, 6, 4];
const KEYS: &[u64] = &[2, 7, 3, 4];

fn axes(name: &str, axes: &[i64]) -> Attr {
    Attr::ints(name, axes)
}

/// Keys of value 1, each for two heads of the queries, as a view of 6 heads.
fn repeated() -> Vec<Step<'static>> {
    let shape = vec![2, 7, 3, 2, 4];
    vec![
        Step::View(1, View::Reshape(vec![2, 7, 3, 1, 4])), // 3
        Step::View(3, View::Broadcast(shape, vec![0, 1, 2, 3, 4])), // 4
        Step::View(4, View::Reshape(vec![2, 7, 6, 4])),    // 5
        Step::View(5, View::Transpose(vec![0, 2, 1, 3])),  // 6
        Step::View(0, View::Transpose(vec![0, 2, 1, 3])),  // 7
    ]
}

fn product(left: Value, right: Value, batch: &[i64]) -> Step<'static> {
    let outputs = vec![(DType::F32, vec![2, 6, 5, 7])];
    let attrs = vec![
        axes("batch_a", batch),
        axes("batch_b", batch),
        axes("contract_a", &[3]),
        axes("contract_b", &[3]),
        Attr::text("epilogue", "add(x, i2)"),
    ];
    Request::new("dot", vec![left, right, 2], outputs, attrs).into()
}

fn rewritten(steps: Vec<Step<'static>>, mask: &[u64], results: &[Value]) -> Program<'static> {
    let inputs = [QUERIES, KEYS, mask].map(|shape| input(DType::F32, shape));
    let program = Program::new(inputs.len(), steps, results.to_vec()).unwrap();
    repeats(program, &inputs).unwrap()
}

#[test]
fn what_was_repeated_is_read_once() {
    let mut steps = repeated();
    steps.push(product(7, 6, &[0, 1]));
    let program = rewritten(steps, &[6, 1, 7], &[8]);
    let view = |value, view| Step::View(value, view);
    let expected = [
        view(0, View::Transpose(vec![0, 2, 1, 3])),  // 3
        view(3, View::Reshape(vec![2, 3, 2, 5, 4])), // 4
        view(1, View::Transpose(vec![0, 2, 1, 3])),  // 5
        view(5, View::Reshape(vec![2, 3, 7, 4])),    // 6
        view(2, View::Reshape(vec![3, 2, 1, 7])),    // 7
    ];
    assert_eq!(program.steps()[..5], expected);
    let [Step::Request(dot), Step::View(made, View::Reshape(shape))] = &program.steps()[5..] else {
        panic!("{:?}", program.steps());
    };
    assert_eq!(dot.inputs[..], [4, 6, 7]);
    assert_eq!(dot.outputs[..], [(DType::F32, vec![2, 3, 2, 5, 7])]);
    assert_eq!(dot.attrs[2], axes("contract_a", &[4]));
    assert_eq!((*made, &shape[..]), (8, &[2, 6, 5, 7][..]));
    assert_eq!(program.results(), [9]);
}

#[test]
fn what_is_not_repeated_for_the_last_batch_stays() {
    let stays = |steps: Vec<Step<'static>>, mask: &[u64]| {
        let last = 2 + steps.len() as Value;
        let program = rewritten(steps, mask, &[last]);
        let Some(Step::Request(dot)) = program.steps().last() else {
            panic!("{:?}", program.steps());
        };
        assert_eq!(dot.outputs[..], [(DType::F32, vec![2, 6, 5, 7])]);
    };
    let with = |place: usize, step: Step<'static>| {
        let mut steps = repeated();
        steps.push(product(7, 6, &[0, 1]));
        steps[place] = step;
        steps
    };
    // Heads of another order: the repeats are apart.
    let apart = View::Broadcast(vec![2, 7, 2, 3, 4], vec![0, 1, 3, 2, 4]);
    stays(with(1, Step::View(3, apart)), &[1]);
    // All heads have one key, which a view of it is without a copy.
    let one = View::Broadcast(vec![2, 7, 6, 4], vec![0, 1, 2, 3]);
    stays(with(2, Step::View(1, one)), &[1]);
    // An operand that has other elements for each batch and does not fit what they become.
    let whole = with(5, product(7, 6, &[0, 1]));
    stays(whole, &[3, 1, 7]);
}

#[test]
fn a_slice_that_is_put_into_a_tensor_is_repeated_there() {
    let cache: &[u64] = &[2, 9, 6, 4];
    let inputs = [cache, KEYS, &[]].map(|shape| input(DType::F32, shape));
    let put = |starts: &[i64], axes_of: &[i64]| {
        let mut steps = repeated();
        steps.truncate(3);
        let outputs = vec![(DType::F32, cache.to_vec())];
        let attrs = vec![axes("axes", axes_of), axes("starts", starts)];
        let mut values = vec![0, 5];
        values.extend(vec![2; axes_of.len()]);
        steps.push(Request::new("put_slice", values, outputs, attrs).into());
        let program = Program::new(inputs.len(), steps, [6]).unwrap();
        repeats(program, &inputs).unwrap()
    };
    let program = put(&[0, 0, 0, 0], &[0, 1, 2, 3]);
    let view = |value, view| Step::View(value, view);
    let expected = [
        view(1, View::Reshape(KEYS.to_vec())),       // 3
        view(3, View::Reshape(vec![2, 7, 3, 1, 4])), // 4
        view(0, View::Reshape(vec![2, 9, 3, 2, 4])), // 5
        view(4, View::Broadcast(vec![2, 7, 3, 2, 4], vec![0, 1, 2, 3, 4])), // 6
    ];
    assert_eq!(program.steps()[..4], expected);
    let [
        Step::Request(put_slice),
        Step::View(7, View::Reshape(shape)),
    ] = &program.steps()[4..]
    else {
        panic!("{:?}", program.steps());
    };
    assert_eq!(put_slice.inputs[..], [5, 6, 2, 2, 2]);
    let attrs = [axes("axes", &[0, 1, 4]), axes("starts", &[0; 5])];
    assert_eq!(put_slice.attrs[..], attrs);
    assert_eq!(shape, cache);

    let program = put(&[0, 1, 0, 0], &[0]);
    let Some(Step::Request(put_slice)) = program.steps().iter().nth_back(1) else {
        panic!("{:?}", program.steps());
    };
    assert_eq!(put_slice.inputs[..], [5, 6, 2]);
    let attrs = [axes("axes", &[0]), axes("starts", &[0, 1, 0, 0, 0])];
    assert_eq!(put_slice.attrs[..], attrs);
}
