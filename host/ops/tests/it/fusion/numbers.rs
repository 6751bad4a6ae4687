//! Which numbers stand in the text, and which are operands.

use super::*;

/// Two products and sums, kept apart by reductions, with these numbers.
fn twice(numbers: [[f32; 2]; 2]) -> Vec<String> {
    let number = |number: f32| super::number(DType::F32, &number.to_le_bytes());
    let mut inputs = vec![input(DType::F32, ROW)];
    inputs.extend(numbers.concat().into_iter().map(number));
    let steps = vec![
        f32s("multiply", &[0, 1]),
        f32s("add", &[5, 2]),
        sum(6),
        f32s("multiply", &[0, 3]),
        f32s("add", &[8, 4]),
        sum(9),
    ];
    shown(&fused(&inputs, steps, &[7, 10]))
}

#[test]
fn numbers_by_which_alone_texts_differ_are_operands() {
    assert_eq!(
        twice([[2.0, 0.5], [3.0, 0.5]]),
        [
            "multiply(i0, i1):f32; add(%0, 0.5:f32):f32 of [0, 1]",
            "sum of [5]",
            "multiply(i0, i1):f32; add(%0, 0.5:f32):f32 of [0, 3]",
            "sum of [7]",
        ]
    );
    let same = twice([[2.0, 0.5], [2.0, 0.5]]);
    assert_eq!(
        same[0],
        "multiply(i0, 2.0:f32):f32; add(%0, 0.5:f32):f32 of [0]"
    );
    assert_eq!(same[0], same[2]);
}

#[test]
fn a_group_has_no_more_operands_for_that_than_one_may_have() {
    let numbers: Vec<Input> = (0..40_u8)
        .map(|number| super::number(DType::F32, &f32::from(number).to_le_bytes()))
        .collect();
    let inputs: Vec<Input> = [vec![input(DType::F32, ROW)], numbers].concat();
    let mut steps = Vec::new();
    let mut results = Vec::new();
    let mut next = inputs.len() as Value;
    for group in 0..2 {
        let mut last = 0;
        for k in 0..20 {
            steps.push(f32s("add", &[last, 1 + 20 * group + k]));
            last = next;
            next += 1;
        }
        steps.push(sum(last));
        results.push(next);
        next += 1;
    }
    let program = shown(&fused(&inputs, steps, &results));
    assert_eq!(program.len(), 4);
    assert!(
        program[0].contains("add(%18, 19.0:f32):f32 of [0]"),
        "{}",
        program[0]
    );
    assert!(
        program[2].contains("add(%18, 39.0:f32):f32 of [0]"),
        "{}",
        program[2]
    );
}
