//! What products take along.

use super::*;
use nx_vulkan_abi::epilogue;
use nx_vulkan_ops::fusion::take_along;

const RESULT: &[u64] = &[3, 5];

fn dot(a: Value, b: Value, dtype: DType) -> Step<'static> {
    let [none, first, last] = [vec![], vec![0], vec![1]];
    let attrs = vec![
        Attr::ints("batch_a", none.clone()),
        Attr::ints("batch_b", none),
        Attr::ints("contract_a", last),
        Attr::ints("contract_b", first),
    ];
    Request::new("dot", vec![a, b], vec![(dtype, RESULT.to_vec())], attrs).into()
}

fn of(name: &'static str, inputs: &[Value], dtype: DType) -> Step<'static> {
    op(name, inputs, dtype, RESULT)
}

/// Factors, a bias and a residual of that type.
fn operands(dtype: DType) -> Vec<Input> {
    let shapes: [&[u64]; 4] = [&[3, 4], &[4, 5], &[5], RESULT];
    shapes.map(|shape| input(dtype, shape)).to_vec()
}

/// The steps that are left: each as its op, its epilogue or expression, and what it reads.
fn taken(inputs: &[Input], steps: Vec<Step<'static>>, results: &[Value]) -> Vec<String> {
    let before = fused(inputs, steps, results);
    let after = take_along(before.clone(), inputs).unwrap();
    let all: Vec<usize> = places(&after).concat();
    assert_eq!(all.len(), places(&before).concat().len());
    let show = |step: &Step<'_>| {
        let attrs = match step {
            Step::Request(request) => &request.attrs[..],
            Step::View(..) => &[],
        };
        let text = nx_vulkan_ops::attrs::text(attrs, epilogue::ATTRIBUTE);
        let text = text
            .or(nx_vulkan_ops::attrs::text(attrs, ATTRIBUTE))
            .unwrap_or("");
        format!("{} {text} of {:?}", step.op(), step.inputs())
    };
    after.steps().iter().map(show).collect()
}

#[test]
fn a_product_takes_what_follows_it() {
    let inputs = operands(DType::F32);
    let steps = vec![
        dot(0, 1, DType::F32),
        of("add", &[4, 2], DType::F32),
        of("multiply", &[5, 3], DType::F32),
    ];
    let before = fused(&inputs, steps, &[6]);
    let after = take_along(before.clone(), &inputs).unwrap();
    assert_eq!([before.steps().len(), after.steps().len()], [2, 1]);
    assert_eq!(terms(&before, &inputs), terms(&after, &inputs));

    let inputs = [operands(DType::F32), vec![number(DType::F32, &[0; 4])]].concat();
    let steps = vec![
        dot(0, 1, DType::F32),
        of("add", &[5, 2], DType::F32),
        of("add", &[6, 3], DType::F32),
        of("max", &[7, 4], DType::F32),
    ];
    let all = taken(&inputs, steps, &[8]);
    assert_eq!(
        all,
        ["dot add(x, i2); add(%0, i3); max(%1, 0.0) of [0, 1, 2, 3]"]
    );
    let one = vec![dot(0, 1, DType::F32), of("max", &[4, 5], DType::F32)];
    let all = taken(&inputs, one, &[6]);
    assert_eq!(all, ["dot max(0.0, x) of [0, 1]"]);
    let twice = vec![dot(0, 1, DType::F32), of("multiply", &[5, 5], DType::F32)];
    let all = taken(&inputs, twice, &[6]);
    assert_eq!(all, ["dot multiply(x, x) of [0, 1]"]);
}

#[test]
fn of_two_products_the_later_takes_the_other() {
    let inputs = [operands(DType::F32), vec![input(DType::F32, &[3, 4])]].concat();
    let steps = |left: Value| {
        vec![
            dot(0, 1, DType::F32),
            dot(left, 1, DType::F32),
            of("add", &[5, 6], DType::F32),
            of("less", &[7, 2], DType::U8),
            of("select", &[8, 7, 3], DType::F32),
        ]
    };
    assert_eq!(
        taken(&inputs, steps(4), &[9]),
        [
            "dot  of [0, 1]",
            "dot add(i2, x); less(%0, i3); select(%1, %0, i4) of [4, 1, 5, 2, 3]"
        ]
    );
    // One that needs the other has to wait for it anyway.
    let square = vec![input(DType::F32, &[3, 3]), input(DType::F32, &[3, 3])];
    let shape: &[u64] = &[3, 3];
    let product = |a, b| {
        let Step::Request(mut product) = dot(a, b, DType::F32) else {
            unreachable!()
        };
        product.outputs = vec![(DType::F32, shape.to_vec())].into();
        Step::from(product)
    };
    let steps_of_one = vec![
        product(0, 1),
        op("exp", &[2], DType::F32, shape),
        product(0, 3),
        op("add", &[2, 4], DType::F32, shape),
    ];
    let waiting = [
        "dot  of [0, 1]",
        "exp  of [2]",
        "dot add(i2, x) of [0, 3, 2]",
    ];
    assert_eq!(taken(&square, steps_of_one, &[5]), waiting);
    // Few results of one operand are made side by side.
    assert_eq!(
        taken(&inputs, steps(0), &[9]),
        [
            "dot  of [0, 1]",
            "dot  of [0, 1]",
            "fused add(i0, i1):f32; less(%0, i2):u8; select(%1, %0, i3):f32 of [5, 6, 2, 3]"
        ]
    );
}

#[test]
fn sums_of_narrow_floats_are_not_rounded_before() {
    let inputs = operands(DType::BF16);
    let before = fused(
        &inputs,
        vec![dot(0, 1, DType::BF16), of("add", &[4, 2], DType::BF16)],
        &[5],
    );
    let after = take_along(before, &inputs).unwrap();
    let Step::Request(request) = &after.steps()[0] else {
        panic!("{after:?}");
    };
    let specs: Vec<Spec> = inputs[..3].iter().map(|input| input.spec.clone()).collect();
    let apart = split::split(&request.over(specs)).unwrap().unwrap();
    assert_eq!(
        shown(&apart),
        [
            "dot of [0, 1]",
            "as_type of [2]",
            "add of [3, 4]",
            "as_type of [5]",
        ]
    );
    assert_eq!(places(&after), [[0, 1]]);

    let steps = vec![
        dot(0, 1, DType::BF16),
        of("as_type", &[4], DType::F32),
        of("add", &[5, 2], DType::F32),
        of("as_type", &[6], DType::BF16),
    ];
    assert_eq!(taken(&inputs, steps, &[7]), ["dot add(x, i2) of [0, 1, 2]"]);
}

#[test]
fn what_somebody_else_reads_or_no_epilogue_has_stays() {
    let f32s = operands(DType::F32);
    let product = || dot(0, 1, DType::F32);
    let bias = || of("add", &[4, 2], DType::F32);
    let stays = |inputs: &[Input], steps: Vec<Step<'static>>, results: &[Value]| {
        assert!(taken(inputs, steps, results)[0].starts_with("dot  of"));
    };
    stays(&f32s, vec![product(), bias()], &[4, 5]);
    let total = vec![(DType::F32, vec![5])];
    let total = Request::new("sum", vec![4], total, vec![Attr::ints("axes", [0])]);
    stays(&f32s, vec![product(), bias(), total.into()], &[5, 6]);
    stays(
        &f32s,
        vec![product(), bias(), of("exp", &[5], DType::F32)],
        &[5, 6],
    );
    stays(
        &f32s,
        vec![product(), of("greater", &[4, 2], DType::U8)],
        &[5],
    );
    stays(
        &f32s,
        vec![product(), of("as_type", &[4], DType::BF16)],
        &[5],
    );
    let mut mixed = operands(DType::F32);
    mixed[2] = input(DType::F64, &[5]);
    stays(
        &mixed,
        vec![product(), of("add", &[4, 2], DType::F64)],
        &[5],
    );
    let whole = vec![dot(0, 1, DType::S32), of("add", &[4, 2], DType::S32)];
    stays(&operands(DType::S32), whole, &[5]);
    let most = vec![
        product(),
        of("add", &[8, 3], DType::F32),
        of("add", &[9, 4], DType::F32),
        of("add", &[10, 5], DType::F32),
        of("add", &[11, 6], DType::F32),
        of("add", &[12, 7], DType::F32),
    ];
    let many = [f32s.clone(), vec![input(DType::F32, RESULT); 4]].concat();
    stays(&many, most, &[13]);
    // Wider than the product's result.
    let wide = op("add", &[4, 3], DType::F32, &[2, 3, 5]);
    let mut wider = operands(DType::F32);
    wider[3] = input(DType::F32, &[2, 3, 5]);
    stays(&wider, vec![product(), wide], &[5]);
}

#[test]
fn long_epilogues_are_for_few_results() {
    let exp = |rows: u64| {
        let shape = vec![rows, 1 << 10];
        let mut inputs = operands(DType::F32);
        inputs[0] = input(DType::F32, &[rows, 4]);
        inputs[1] = input(DType::F32, &[4, 1 << 10]);
        let Step::Request(mut product) = dot(0, 1, DType::F32) else {
            unreachable!()
        };
        product.outputs = vec![(DType::F32, shape.clone())].into();
        let steps = vec![product.into(), op("exp", &[4], DType::F32, &shape)];
        taken(&inputs, steps, &[5])
    };
    assert_eq!(exp(64), ["dot exp(x) of [0, 1]"]);
    assert_eq!(exp(65), ["dot  of [0, 1]", "exp  of [4]"]);
}

/// Only the type of the product and of the result was looked at, and numbers became those of the type that is computed in.
#[test]
fn what_needs_more_than_the_type_that_is_computed_in_stays() {
    let stays = |inputs: &[Input], steps: Vec<Step<'static>>, result: Value| {
        let all = taken(inputs, steps, &[result]);
        assert!(all[0].starts_with("dot  of"), "{all:?}");
    };
    let f32s = operands(DType::F32);
    for other in [DType::F64, DType::F16, DType::BF16, DType::F8] {
        let steps = vec![
            dot(0, 1, DType::F32),
            of("as_type", &[4], other),
            of("exp", &[5], other),
            of("as_type", &[6], DType::F32),
        ];
        stays(&f32s, steps, 7);
    }
    let compared = |number: Input| {
        let inputs = [f32s.clone(), vec![number]].concat();
        let steps = vec![
            dot(0, 1, DType::F32),
            of("equal", &[5, 4], DType::U8),
            of("select", &[6, 5, 3], DType::F32),
        ];
        (inputs, steps)
    };
    let (inputs, steps) = compared(number(DType::F64, &0.1f64.to_ne_bytes()));
    stays(&inputs, steps, 7);
    let held = [
        number(DType::F64, &0.125f64.to_ne_bytes()),
        number(DType::F32, &0.1f32.to_ne_bytes()),
        number(DType::F64, &f64::INFINITY.to_ne_bytes()),
    ];
    for number in held {
        let (inputs, steps) = compared(number);
        assert_eq!(taken(&inputs, steps, &[7]).len(), 1);
    }
    // What is rounded to the type of the product or the result anyway goes along.
    let bf16s = operands(DType::BF16);
    let steps = vec![
        dot(0, 1, DType::BF16),
        of("as_type", &[4], DType::F32),
        of("exp", &[5], DType::F32),
        of("as_type", &[6], DType::BF16),
    ];
    assert_eq!(taken(&bf16s, steps, &[7]).len(), 1);
    let f64s = [
        operands(DType::F64),
        vec![number(DType::F64, &0.1f64.to_ne_bytes())],
    ]
    .concat();
    let steps = vec![dot(0, 1, DType::F64), of("max", &[5, 4], DType::F64)];
    assert_eq!(taken(&f64s, steps, &[6]).len(), 1);
}
