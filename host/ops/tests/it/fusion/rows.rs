//! Rows as one request.

use super::{input, number, op, places, shown};
use nx_vulkan_ops::{
    Attr, DType, Program, Request, Step, Value, View,
    fusion::{rows, within_cache},
    split::split,
};

const SHAPE: &[u64] = &[3, 7];
const COLUMN: &[u64] = &[3, 1];

fn f32s(name: &'static str, inputs: &[Value], shape: &[u64]) -> Step<'static> {
    op(name, inputs, DType::F32, shape)
}

fn along(name: &'static str, value: Value, axis: i64, shape: &[u64]) -> Step<'static> {
    let attrs = [Attr::ints("axes", [axis])];
    let outputs = vec![(DType::F32, shape.to_vec())];
    Request::new(name, vec![value], outputs, attrs.to_vec()).into()
}

fn one(steps: Vec<Step<'static>>, results: &[Value]) -> Vec<String> {
    let inputs = [
        input(DType::F32, SHAPE),
        input(DType::F32, &[7]),
        number(DType::F32, &7f32.to_ne_bytes()),
    ];
    let program = Program::new(inputs.len(), steps, results.to_vec()).unwrap();
    let taken = rows(program, &inputs).unwrap();
    shown(&taken)
}

#[test]
fn a_softmax_is_one_request() {
    let softmax = vec![
        along("reduce_max", 0, 1, COLUMN), // 3
        f32s("subtract", &[0, 3], SHAPE),  // 4
        f32s("exp", &[4], SHAPE),          // 5
        along("sum", 5, 1, COLUMN),        // 6
        f32s("divide", &[5, 6], SHAPE),    // 7
    ];
    let text =
        "reduce_max(i0):f32; subtract(i0, %0):f32; exp(%1):f32; sum(%2):f32; divide(%2, %3):f32";
    assert_eq!(one(softmax.clone(), &[7]), [format!("{text} of [0]")]);
    // What somebody else reads is a result, in the shape that it has.
    let listed = format!("{text}; (%3, %4) of [0]");
    assert_eq!(one(softmax, &[6, 7]), [listed]);
}

#[test]
fn numbers_and_rows_that_repeat_are_operands_as_elsewhere() {
    let normalized = vec![
        along("sum", 0, 1, COLUMN),       // 3
        f32s("divide", &[3, 2], COLUMN),  // 4
        f32s("subtract", &[0, 4], SHAPE), // 5
        f32s("multiply", &[5, 1], SHAPE), // 6
        f32s("negate", &[6], SHAPE),      // 7
    ];
    let text = "sum(i0):f32; divide(%0, 7.0:f32):f32; subtract(i0, %1):f32; multiply(%2, i1):f32; negate(%3):f32 of [0, 1]";
    assert_eq!(one(normalized, &[7]), [text]);
}

#[test]
fn what_stands_between_two_halves_keeps_them_apart() {
    let steps = vec![
        f32s("exp", &[0], SHAPE),                     // 3
        Step::View(3, View::Reshape(vec![7, 3])),     // 4
        Step::View(4, View::Reshape(SHAPE.to_vec())), // 5
        along("sum", 5, 1, COLUMN),                   // 6
        f32s("divide", &[3, 6], SHAPE),               // 7
    ];
    let shown = one(steps, &[7]);
    assert_eq!(shown[0], "exp of [0]");
    assert_eq!(shown.len(), 4, "{shown:?}");
    assert!(
        shown[3].starts_with("sum(i0):f32; divide(i1, %0):f32"),
        "{shown:?}"
    );
}

#[test]
fn on_a_cpu_a_reduction_that_drops_its_axis_is_one_with_what_it_is_of() {
    let inputs = [input(DType::F32, SHAPE), input(DType::F32, &[7])];
    let cached = |steps: Vec<Step<'static>>, results: &[Value]| {
        let program = Program::new(inputs.len(), steps, results.to_vec()).unwrap();
        let taken = within_cache(program, &inputs).unwrap();
        (shown(&taken), taken)
    };
    let distance = vec![
        f32s("subtract", &[0, 1], SHAPE), // 2
        f32s("multiply", &[2, 2], SHAPE), // 3
        along("sum", 3, 1, &[3]),         // 4
        f32s("sqrt", &[4], &[3]),         // 5
    ];
    let (steps, taken) = cached(distance, &[5]);
    let text = "subtract(i0, i1):f32; multiply(%0, %0):f32; sum(%1):f32 of [0, 1]";
    assert_eq!(steps[0], text);
    assert_eq!(steps[1], "reshape of [2]");
    assert!(matches!(&taken.steps()[1], Step::View(2, View::Reshape(shape)) if *shape == [3]));
    assert_eq!(steps.len(), 3, "{steps:?}");
    assert_eq!(steps[2], "sqrt of [3]");
    assert_eq!(places(&taken), [vec![0, 1, 2], vec![2], vec![3]]);
    // A result, and read twice.
    let twice = vec![
        f32s("negate", &[0], SHAPE),     // 2
        along("sum", 2, 1, &[3]),        // 3
        f32s("multiply", &[3, 3], &[3]), // 4
    ];
    let (steps, _) = cached(twice, &[3, 4, 3]);
    assert_eq!(steps[0], "negate(i0):f32; sum(%0):f32 of [0]");
    assert_eq!(steps[2], "multiply of [3, 3]");
    // What is read from memory in any case, and other axes, stay as they are.
    let (steps, _) = cached(vec![along("sum", 0, 1, &[3])], &[2]);
    assert_eq!(steps, ["sum of [0]"]);
    let wide = [&[input(DType::F32, &[3, 9000])], &inputs[1..]].concat();
    let long = vec![f32s("negate", &[0], &[3, 9000]), along("sum", 2, 1, &[3])];
    let program = Program::new(2, long, [3]).unwrap();
    let taken = within_cache(program, &wide).unwrap();
    assert_eq!(shown(&taken), ["negate of [0]", "sum of [2]"]);
    let first = vec![f32s("negate", &[0], SHAPE), along("sum", 2, 0, &[7])];
    let (steps, _) = cached(first, &[3]);
    assert_eq!(steps, ["negate of [0]", "sum of [2]"]);
}

#[test]
fn only_rows_of_one_length_that_keep_their_axis_are_one() {
    // Another axis, one that is dropped, and nothing beside the sum.
    for steps in [
        vec![
            along("sum", 0, 0, &[1, 7]),
            f32s("subtract", &[0, 3], SHAPE),
        ],
        vec![along("sum", 0, 1, &[3]), f32s("negate", &[3], &[3])],
        vec![
            along("sum", 0, 1, COLUMN),
            Step::View(3, View::Reshape(vec![3])),
        ],
    ] {
        let count = steps.len();
        assert_eq!(one(steps, &[4]).len(), count);
    }
    // What broadcasts a row's value to rows again has no elements of its own along them.
    let spread = vec![
        along("sum", 0, 1, COLUMN),  // 3
        f32s("add", &[3, 3], SHAPE), // 4
        along("sum", 4, 1, COLUMN),  // 5
    ];
    assert_eq!(one(spread, &[5]).len(), 3);
}

#[test]
fn a_request_of_rows_stands_for_fused_ops_and_reductions() {
    let text = "add(i0, i1):f32; negate(%0):f32; reduce_max(%1):f32; subtract(%1, %2):f32; exp(%3):f32; (%2, %4)";
    let inputs = vec![(DType::F32, SHAPE.to_vec()), (DType::F32, vec![7])];
    let outputs = vec![(DType::F32, COLUMN.to_vec()), (DType::F32, SHAPE.to_vec())];
    let attrs = vec![Attr::text("expression", text)];
    let request = Request::new("fused_rows", inputs, outputs, attrs);
    let program = split(&request).unwrap().unwrap();
    assert_eq!(
        shown(&program),
        [
            "add(i0, i1):f32; negate(%0):f32 of [0, 1]",
            "reduce_max of [2]",
            "subtract(i0, i1):f32; exp(%0):f32 of [2, 3]"
        ]
    );
    let wrong = |text: &str, outputs: &[&[u64]], told: &str| {
        let outputs = outputs.iter().map(|shape| (DType::F32, shape.to_vec()));
        let outputs: Vec<_> = outputs.collect();
        let attrs = vec![Attr::text("expression", text)];
        let request = Request::new("fused_rows", request.inputs.to_vec(), outputs, attrs);
        let error = request.check().unwrap_err().to_string();
        assert!(error.contains(told), "{error}");
    };
    wrong(
        "sum(i0):f32",
        &[SHAPE],
        "it gives a result [3, 1], not [3, 7]",
    );
    wrong(
        "sum(i1):f32",
        &[COLUMN],
        "reduces what has no elements along the rows",
    );
    wrong(
        "sum(i0):f32; sum(%0):f32",
        &[COLUMN],
        "reduces what has no elements along the rows",
    );
    wrong(
        "sum(i0):f64",
        &[COLUMN],
        "expected elements of one row and their type",
    );
    wrong("product(i0):f32", &[COLUMN], "product is no elementwise op");
}
