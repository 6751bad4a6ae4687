//! Attention whose result is read with its axes in another order.

use super::{Steps, run};
use nx_vulkan_ops::{
    Attr, DType, Program, Spec, Step, Value, View,
    attrs::ints,
    fusion::{Input, turned},
};

/// q, k and v of three heads.
const HEADS: [&[u64]; 3] = [&[2, 3, 5, 8], &[2, 3, 7, 8], &[2, 3, 7, 4]];
const MEANS: &[u64] = &[2, 3, 5, 4];

fn heads() -> (Steps, Value) {
    let mut steps = Steps::on(DType::F32, &HEADS);
    let scaled = vec![Attr::text("scores", "multiply(x, 0.125)")];
    let means = steps.request("attention", &[0, 1, 2], MEANS, scaled);
    (steps, means)
}

fn transposed(steps: &mut Steps, of: Value, order: &[usize]) -> Value {
    steps.push(Step::View(of, View::Transpose(order.to_vec())))
}

/// The program before and after, which give the same bits.
fn both(steps: Steps, results: &[Value]) -> Program<'static> {
    let Steps { inputs, steps, .. } = steps;
    let program = Program::new(inputs.len(), steps, results.to_vec()).unwrap();
    let after = turned(program.clone(), &inputs).unwrap();
    let specs = inputs.iter().map(|input: &Input| input.spec.clone());
    let specs: Vec<Spec> = specs.collect();
    assert_eq!(run(&program, &specs), run(&after, &specs));
    after
}

fn order(program: &Program<'_>) -> Vec<i64> {
    let mut orders = program.steps().iter().filter_map(|step| match step {
        Step::Request(request) if request.op == "attention" => {
            Some(ints(&request.attrs, "output_permutation").to_vec())
        }
        _ => None,
    });
    orders.next().unwrap()
}

#[test]
fn heads_of_a_row_are_stored_beside_each_other() {
    let (mut steps, means) = heads();
    let rows = transposed(&mut steps, means, &[0, 2, 1, 3]);
    let hidden = steps.reshape(rows, &[2, 5, 12]);
    let program = both(steps, &[hidden]);
    assert_eq!(order(&program), [0, 2, 1, 3]);
    assert_eq!(program.steps().len(), 2);
    assert_eq!(program.stands_for(0)[..], [0, 1]);
}

#[test]
fn rows_of_several_heads_are_taken_apart() {
    let shapes: [&[u64]; 3] = [&[1, 2, 3, 5, 8], &[1, 2, 7, 8], &[1, 2, 7, 4]];
    let mut steps = Steps::on(DType::F32, &shapes);
    let means = steps.request("attention", &[0, 1, 2], &[1, 2, 3, 5, 4], Vec::new());
    let heads = steps.reshape(means, &[1, 6, 5, 4]);
    let rows = transposed(&mut steps, heads, &[0, 2, 1, 3]);
    let hidden = steps.reshape(rows, &[1, 5, 24]);
    let program = both(steps, &[hidden]);
    assert_eq!(order(&program), [0, 3, 1, 2, 4]);
    assert_eq!(program.steps().len(), 3);
}

#[test]
fn what_is_read_otherwise_too_stays() {
    // By somebody else as well.
    let (mut steps, means) = heads();
    let rows = transposed(&mut steps, means, &[0, 2, 1, 3]);
    assert_eq!(order(&both(steps, &[rows, means])), []);
    // With rows of v's elements taken apart, by order or by shape.
    let (mut steps, means) = heads();
    let columns = transposed(&mut steps, means, &[0, 1, 3, 2]);
    assert_eq!(order(&both(steps, &[columns])), []);
    let (mut steps, means) = heads();
    let parts = steps.reshape(means, &[2, 3, 5, 2, 2]);
    let turned = transposed(&mut steps, parts, &[0, 2, 1, 3, 4]);
    assert_eq!(order(&both(steps, &[turned])), []);
    // Of more axes than kernels know.
    let shapes: [&[u64]; 3] = [&[2, 3, 2, 5, 8], &[2, 3, 2, 7, 8], &[2, 3, 2, 7, 4]];
    let mut steps = Steps::on(DType::F32, &shapes);
    let means = steps.request("attention", &[0, 1, 2], &[2, 3, 2, 5, 4], Vec::new());
    let rows = transposed(&mut steps, means, &[2, 0, 3, 1, 4]);
    assert_eq!(order(&both(steps, &[rows])), []);
    // Not in another order at all.
    let (mut steps, means) = heads();
    let hidden = steps.reshape(means, &[6, 20]);
    assert_eq!(order(&both(steps, &[hidden])), []);
}
