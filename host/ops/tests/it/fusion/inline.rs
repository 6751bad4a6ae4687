//! What is computed where it is read.

use super::*;
use nx_vulkan_ops::fusion::inline;

const COLUMN: &[u64] = &[4, 1];
const WHOLE: &[u64] = &[4, 3];

fn column(name: &'static str, inputs: &[Value]) -> Step<'static> {
    op(name, inputs, DType::F32, COLUMN)
}

fn whole(name: &'static str, inputs: &[Value]) -> Step<'static> {
    op(name, inputs, DType::F32, WHOLE)
}

fn inputs() -> Vec<Input> {
    [COLUMN, WHOLE, COLUMN]
        .map(|shape| input(DType::F32, shape))
        .to_vec()
}

fn inlined(steps: Vec<Step<'static>>, results: &[Value]) -> Program<'static> {
    let before = fused(&inputs(), steps, results);
    let after = inline(before.clone(), &inputs()).unwrap();
    let [mut a, mut b] = [&before, &after].map(|program| places(program).concat());
    a.sort_unstable();
    b.sort_unstable();
    assert_eq!(a, b);
    after
}

#[test]
fn columns_are_computed_where_they_are_read() {
    let steps = vec![
        column("add", &[0, 2]),
        column("rsqrt", &[3]),
        whole("subtract", &[1, 0]),
        whole("multiply", &[5, 4]),
    ];
    let program = inlined(steps, &[6]);
    assert_eq!(
        shown(&program),
        ["add(i0, i1):f32; rsqrt(%0):f32; subtract(i2, i0):f32; multiply(%2, %1):f32 of [0, 2, 1]"]
    );
    assert_eq!(places(&program), [[0, 1, 2, 3]]);
}

#[test]
fn one_may_lead_to_the_next() {
    let row = |name: &'static str, inputs: &[Value]| op(name, inputs, DType::F32, &[4, 1, 1]);
    let all = [input(DType::F32, &[1]), input(DType::F32, &[4, 2, 3])];
    let steps = vec![
        op("negate", &[0], DType::F32, &[1]),
        row("add", &[2, 2]),
        op("multiply", &[3, 1], DType::F32, &[4, 2, 3]),
    ];
    let before = fused(&all, steps, &[4]);
    let after = inline(before, &all).unwrap();
    assert_eq!(
        shown(&after),
        ["negate(i0):f32; add(%0, %0):f32; multiply(%1, i1):f32 of [0, 1]"]
    );
}

#[test]
fn what_others_read_what_is_heavy_and_what_is_large_stays() {
    let both = |name: &'static str| vec![column(name, &[0]), whole("multiply", &[3, 1])];
    assert_eq!(inlined(both("negate"), &[4]).steps().len(), 1);
    assert_eq!(inlined(both("exp"), &[4]).steps().len(), 2);
    assert_eq!(inlined(both("negate"), &[3, 4]).steps().len(), 2);
    let mut twice = both("negate");
    twice.push(sum(4));
    twice.push(op("add", &[3, 5], DType::F32, COLUMN));
    let before = fused(&inputs(), twice, &[4, 6]);
    assert_eq!(
        inline(before.clone(), &inputs()).unwrap().steps(),
        before.steps()
    );

    let large = |rows: u64| {
        let all = [
            input(DType::F32, &[rows, 1]),
            input(DType::F32, &[rows, 1024]),
        ];
        let steps = vec![
            op("negate", &[0], DType::F32, &[rows, 1]),
            op("multiply", &[2, 1], DType::F32, &[rows, 1024]),
        ];
        inline(fused(&all, steps, &[3]), &all)
            .unwrap()
            .steps()
            .len()
    };
    assert_eq!([large(1024), large(1025)], [1, 2]);
}
