//! Halves that are put together where they are read.

use super::{input, op};
use nx_vulkan_ops::{Attr, DType, Program, Request, Step, Value, View, fusion::halves};

const WHOLE: &[u64] = &[3, 1, 8];
const HALF: &[u64] = &[3, 1, 4];

fn f32s(name: &'static str, inputs: &[Value], shape: &[u64]) -> Step<'static> {
    op(name, inputs, DType::F32, shape)
}

fn from(start: u64, stride: u64) -> Step<'static> {
    Step::View(
        0,
        View::Slice(vec![0, 0, start], HALF.to_vec(), vec![1, 1, stride]),
    )
}

fn joined(first: Value, second: Value) -> Step<'static> {
    let outputs = vec![(DType::F32, WHOLE.to_vec())];
    let attrs = vec![Attr::ints("axis", [2])];
    Request::new("concatenate", vec![first, second], outputs, attrs).into()
}

/// The second half of value 0 with its sign changed, then its first one, times value 1.
fn turned() -> Vec<Step<'static>> {
    vec![
        from(4, 1),                       // 2
        f32s("negate", &[2], HALF),       // 3
        from(0, 1),                       // 4
        joined(3, 4),                     // 5
        f32s("multiply", &[5, 1], WHOLE), // 6
    ]
}

fn rewritten(steps: Vec<Step<'static>>, results: &[Value]) -> Program<'static> {
    let inputs = [input(DType::F32, WHOLE), input(DType::F32, &[8])];
    let program = Program::new(inputs.len(), steps, results.to_vec()).unwrap();
    halves(program, &inputs).unwrap()
}

/// What becomes of steps, as text.
fn read(steps: Vec<Step<'static>>, results: &[Value]) -> Vec<String> {
    let after = rewritten(steps, results);
    let show = |step: &Step<'_>| match step {
        Step::View(value, View::Reshape(shape)) => format!("{value} as {shape:?}"),
        Step::View(value, View::Reverse(axes)) => format!("{value} turned along {axes:?}"),
        _ => super::shown(&Program::new(99, [step.clone()], []).unwrap()).remove(0),
    };
    after.steps().iter().map(show).collect()
}

#[test]
fn halves_are_read_where_they_lie() {
    let reading = "negate(i0):f32; select(i1, i0, %0):f32; multiply(%1, i2):f32 of [3, 4, 5]";
    let all = [
        "0 as [3, 1, 2, 4]",
        "2 turned along [2]",
        "iota of []",
        "1 as [2, 4]",
        reading,
        "6 as [3, 1, 8]",
    ];
    assert_eq!(read(turned(), &[6]), all);
    let places = super::places(&rewritten(turned(), &[6]));
    assert_eq!(places[4], [0, 1, 2, 3, 4]);

    // In their order, and both in one: the mask is made once.
    let mut both = turned();
    both.extend([
        from(0, 1),                   // 7
        from(4, 1),                   // 8
        f32s("abs", &[8], HALF),      // 9
        joined(7, 9),                 // 10
        f32s("add", &[10, 6], WHOLE), // 11
        f32s("exp", &[11], WHOLE),    // 12
    ]);
    let both = read(both, &[11, 12]);
    let own = "abs(i0):f32; select(i1, %0, i0):f32; add(%1, i2):f32 of [8, 4, 9]";
    assert_eq!(both[..6], all);
    let rest = [
        "0 as [3, 1, 2, 4]",
        "7 as [3, 1, 2, 4]",
        own,
        "10 as [3, 1, 8]",
        "exp of [11]",
    ];
    assert_eq!(both[6..], rest);
}

#[test]
fn what_others_read_and_what_is_no_half_stays() {
    let stays = |steps: Vec<Step<'static>>, results: &[Value]| {
        let is_joined = |step: &String| step.starts_with("concatenate");
        assert!(
            read(steps.clone(), results).iter().any(is_joined),
            "{steps:?}"
        );
    };
    for seen in [2, 3, 5] {
        stays(turned(), &[6, seen]);
    }
    let with = |place: usize, step: Step<'static>| {
        let mut steps = turned();
        steps[place] = step;
        steps
    };
    stays(with(0, from(3, 1)), &[6]);
    stays(with(2, from(0, 2)), &[6]);
    // The same half twice.
    stays(with(2, from(4, 1)), &[6]);
    // A half with something of its own.
    stays(with(1, f32s("add", &[2, 2], HALF)), &[6]);
    stays(with(1, f32s("exp", &[0], HALF)), &[6]);
    // Where it broadcasts, it is read more than once.
    stays(with(4, f32s("multiply", &[5, 1], &[3, 2, 8])), &[6]);
    // What reads it is no elementwise op.
    stays(with(4, super::sum(5)), &[6]);
}
