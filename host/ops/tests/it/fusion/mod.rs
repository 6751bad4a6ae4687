//! What becomes of programs, as text.

mod attention;
mod follow;
mod halves;
mod inline;
mod lasting;
mod numbers;
mod once;
mod repeats;
mod rows;

use nx_vulkan_abi::expression::ATTRIBUTE;
use nx_vulkan_ops::fusion::{Input, fuse};
use nx_vulkan_ops::{Attr, DType, Program, Request, Spec, Step, Value, View, split};

const ROW: &[u64] = &[3];

fn op(name: &'static str, inputs: &[Value], dtype: DType, shape: &[u64]) -> Step<'static> {
    Request::new(name, inputs.to_vec(), vec![(dtype, shape.to_vec())], &[]).into()
}

fn f32s(name: &'static str, inputs: &[Value]) -> Step<'static> {
    op(name, inputs, DType::F32, ROW)
}

fn s32s(name: &'static str, inputs: &[Value]) -> Step<'static> {
    op(name, inputs, DType::S32, ROW)
}

fn sum(value: Value) -> Step<'static> {
    let attrs = [Attr::ints("axes", [0])];
    Request::new(
        "sum",
        vec![value],
        vec![(DType::F32, vec![])],
        attrs.to_vec(),
    )
    .into()
}

fn input(dtype: DType, shape: &[u64]) -> Input {
    Input {
        spec: (dtype, shape.to_vec()),
        element: None,
    }
}

fn number(dtype: DType, bytes: &[u8]) -> Input {
    Input {
        spec: (dtype, vec![]),
        element: Some(bytes.to_vec()),
    }
}

fn fused(inputs: &[Input], steps: Vec<Step<'static>>, results: &[Value]) -> Program<'static> {
    let program = Program::new(inputs.len(), steps, results.to_vec()).unwrap();
    fuse(program, inputs).unwrap()
}

/// Each step as `op(values)`, the expression of a fused one in place of its name.
fn shown(program: &Program<'_>) -> Vec<String> {
    let show = |step: &Step<'_>| {
        let text = match step {
            Step::Request(request) => nx_vulkan_ops::attrs::text(&request.attrs, ATTRIBUTE),
            Step::View(..) => None,
        };
        format!("{} of {:?}", text.unwrap_or(step.op()), step.inputs())
    };
    program.steps().iter().map(show).collect()
}

fn places(program: &Program<'_>) -> Vec<Vec<usize>> {
    let steps = 0..program.steps().len();
    steps
        .map(|step| program.stands_for(step).to_vec())
        .collect()
}

#[test]
fn a_chain_is_one() {
    let steps = vec![
        f32s("exp", &[0]),
        f32s("negate", &[1]),
        f32s("add", &[2, 0]),
    ];
    let program = fused(&[input(DType::F32, ROW)], steps, &[3]);
    assert_eq!(
        shown(&program),
        ["exp(i0):f32; negate(%0):f32; add(%1, i0):f32 of [0]"]
    );
    assert_eq!(places(&program), [[0, 1, 2]]);
    assert_eq!(program.results(), [1]);
    let one = fused(&[input(DType::F32, ROW)], vec![f32s("exp", &[0])], &[1]);
    assert_eq!(shown(&one), ["exp of [0]"]);
    assert_eq!(places(&one), [[0]]);
}

#[test]
fn a_diamond_is_one_and_what_others_read_is_a_result() {
    let steps = vec![
        f32s("exp", &[0]),
        f32s("sin", &[0]),
        f32s("add", &[1, 2]),
        f32s("multiply", &[3, 1]),
        sum(4),
        sum(3),
    ];
    let program = fused(&[input(DType::F32, ROW)], steps, &[5, 6, 1]);
    let text =
        "exp(i0):f32; sin(i0):f32; add(%0, %1):f32; multiply(%2, %0):f32; (%0, %2, %3) of [0]";
    assert_eq!(shown(&program), [text, "sum of [3]", "sum of [2]"]);
    assert_eq!(places(&program), [vec![0, 1, 2, 3], vec![4], vec![5]]);
    assert_eq!(program.results(), [4, 5, 1]);
}

#[test]
fn a_reader_from_outside_closes_a_group() {
    let steps = vec![
        f32s("exp", &[0]),
        f32s("negate", &[1]),
        sum(2),
        f32s("subtract", &[2, 3]),
        f32s("abs", &[4]),
        Step::View(5, View::Reverse(vec![0])),
        f32s("add", &[5, 6]),
    ];
    let program = fused(&[input(DType::F32, ROW)], steps, &[7]);
    assert_eq!(
        shown(&program),
        [
            "exp(i0):f32; negate(%0):f32 of [0]",
            "sum of [1]",
            "subtract(i0, i1):f32; abs(%0):f32 of [1, 2]",
            "reverse of [3]",
            "add of [3, 4]",
        ]
    );
}

#[test]
fn groups_of_several_shapes_are_open_at_once() {
    let pairs = |name, inputs: &[Value]| op(name, inputs, DType::F32, &[2, 3]);
    let steps = vec![
        pairs("exp", &[0]),
        f32s("exp", &[1]),
        pairs("negate", &[2]),
        f32s("negate", &[3]),
        pairs("add", &[4, 5]),
        pairs("abs", &[6]),
    ];
    let inputs = [input(DType::F32, &[2, 3]), input(DType::F32, ROW)];
    let program = fused(&inputs, steps, &[7]);
    assert_eq!(
        shown(&program),
        [
            "exp(i0):f32; negate(%0):f32 of [1]",
            "exp(i0):f32; negate(%0):f32; add(%1, i1):f32; abs(%2):f32 of [0, 2]",
        ]
    );
    assert_eq!(places(&program), [vec![1, 3], vec![0, 2, 4, 5]]);
}

#[test]
fn what_is_known_becomes_a_number_through_views() {
    let inputs = [
        input(DType::F32, ROW),
        number(DType::F32, &0.1f32.to_le_bytes()),
        number(DType::S16, &(-2i16).to_le_bytes()),
        number(DType::F32, &f32::NAN.to_le_bytes()),
    ];
    let steps = vec![
        Step::View(1, View::Broadcast(vec![3], vec![])),
        f32s("multiply", &[0, 4]),
        f32s("add", &[5, 2]),
        f32s("max", &[6, 3]),
    ];
    let program = fused(&inputs, steps, &[7]);
    assert_eq!(
        shown(&program),
        [
            "broadcast of [1]",
            "multiply(i0, 0.10000000149011612:f32):f32; add(%0, -2:s16):f32; max(%1, i1):f32 of [0, 3]",
        ]
    );
    let steps = vec![f32s("exp", &[1]), f32s("negate", &[4])];
    assert_eq!(
        shown(&fused(&inputs, steps, &[5])),
        ["exp(i0):f32; negate(%0):f32 of [1]"]
    );
}

#[test]
fn a_group_has_one_op_that_may_lack_a_result() {
    let steps = vec![
        s32s("quotient", &[0, 1]),
        s32s("remainder", &[3, 2]),
        s32s("remainder", &[4, 3]),
        s32s("left_shift", &[5, 0]),
        s32s("negate", &[6]),
    ];
    let seven = number(DType::S32, &7i32.to_le_bytes());
    let inputs = [input(DType::S32, ROW), input(DType::S32, ROW), seven];
    let program = fused(&inputs, steps, &[7]);
    assert_eq!(
        shown(&program),
        [
            "quotient(i0, i1):s32; remainder(%0, 7:s32):s32; (%0, %1) of [0, 1]",
            "remainder of [4, 3]",
            "left_shift(i0, i1):s32; negate(%0):s32 of [5, 0]",
        ]
    );
}

#[test]
fn complex_types_attributes_and_what_nobody_reads_stay_out() {
    let complex = |name, inputs: &[Value]| op(name, inputs, DType::C64, ROW);
    let steps = vec![
        complex("exp", &[0]),
        complex("negate", &[1]),
        f32s("abs", &[2]),
        f32s("exp", &[3]),
    ];
    let program = fused(&[input(DType::C64, ROW)], steps, &[4]);
    assert_eq!(program.steps().len(), 4);
    let attrs = vec![Attr::text("precision", "high")];
    let noted = Request::new("exp", vec![0], vec![(DType::F32, ROW.to_vec())], attrs);
    let steps = vec![
        noted.into(),
        f32s("negate", &[1]),
        f32s("abs", &[2]),
        f32s("sin", &[2]),
    ];
    let program = fused(&[input(DType::F32, ROW)], steps, &[3]);
    assert_eq!(
        shown(&program),
        [
            "exp of [0]",
            "negate(i0):f32; abs(%0):f32; (%0, %1) of [1]",
            "sin of [2]"
        ]
    );
    let empty = vec![
        op("exp", &[0], DType::F32, &[0]),
        op("abs", &[1], DType::F32, &[0]),
    ];
    assert_eq!(
        fused(&[input(DType::F32, &[0])], empty, &[2]).steps().len(),
        2
    );
}

#[test]
fn groups_keep_to_their_limits() {
    // Each sum has an operand more.
    let count = 40;
    let inputs = vec![input(DType::F32, ROW); count];
    let sums = (1..count as Value).map(|k| {
        let before = if k == 1 { 0 } else { count as Value + k - 2 };
        f32s("add", &[before, k])
    });
    let program = fused(&inputs, sums.collect(), &[2 * count as Value - 2]);
    assert!(program.steps().iter().all(|step| step.inputs().len() <= 11));
    assert_eq!(program.steps().len(), 4);
    // A long chain, and many results.
    let long = (0..600).map(|value| f32s("sin", &[value]));
    let program = fused(&[input(DType::F32, ROW)], long.collect(), &[600]);
    let sizes: Vec<usize> = places(&program).iter().map(Vec::len).collect();
    assert_eq!(sizes, [256, 256, 88]);
    let many = (0..20).map(|value| f32s("sin", &[value]));
    let results: Vec<Value> = (1..21).collect();
    let program = fused(&[input(DType::F32, ROW)], many.collect(), &results);
    assert!(program.steps().iter().all(|step| step.made() <= 6));
    assert_eq!(program.steps().len(), 4);
}

/// A program of random ops on tensors of two shapes.
fn random(seed: u64) -> (Vec<Input>, Vec<Step<'static>>, Vec<Value>) {
    let mut rng = nx_vulkan_ops::values::Rng(seed);
    let shapes: [&[u64]; 2] = [ROW, &[2, 3]];
    let types = [DType::F32, DType::S32, DType::U8, DType::F16];
    let mut specs: Vec<Spec> = Vec::new();
    for shape in [ROW, &[2, 3], &[]] {
        specs.extend(types.map(|dtype| (dtype, shape.to_vec())));
    }
    let inputs: Vec<Input> = specs.iter().map(|spec| input(spec.0, &spec.1)).collect();
    let mut steps = Vec::new();
    for _ in 0..30 {
        let shape = rng.pick(&shapes);
        let fits: Vec<Value> = (0..specs.len() as Value)
            .filter(|value| specs[*value as usize].1.len() <= shape.len())
            .collect();
        let [a, b] = [0, 1].map(|_| rng.pick(&fits));
        let merged = specs[a as usize].0.merge(specs[b as usize].0);
        let (name, inputs, dtype) = match rng.below(8) {
            0 => ("as_type", vec![a], rng.pick(&types)),
            1 => ("less", vec![a, b], DType::U8),
            2 => ("negate", vec![a], specs[a as usize].0),
            3 => ("select", vec![a, b, b], specs[b as usize].0),
            4 if !specs[a as usize].1.is_empty() => ("sum", vec![a], specs[a as usize].0),
            5 => ("max", vec![a, b], merged),
            6 => ("subtract", vec![a, b], merged),
            _ => ("add", vec![a, b], merged),
        };
        let (shape, attrs) = match name {
            "sum" => {
                let axes: Vec<i64> = (0..specs[a as usize].1.len() as i64).collect();
                (vec![], vec![Attr::ints("axes", axes)])
            }
            _ => (shape.to_vec(), vec![]),
        };
        specs.push((dtype, shape));
        let outputs = vec![specs[specs.len() - 1].clone()];
        steps.push(Request::new(name, inputs, outputs, attrs).into());
    }
    let results = (0..4).map(|_| rng.below(specs.len() as u64) as Value);
    (inputs, steps, results.collect())
}

#[test]
fn random_programs_stay_what_they_are() {
    for seed in 1..300 {
        let (inputs, steps, results) = random(seed);
        let before = Program::new(inputs.len(), steps.clone(), results.clone()).unwrap();
        let program = fused(&inputs, steps, &results);
        let mut all: Vec<usize> = places(&program).concat();
        all.sort_unstable();
        assert!(all.into_iter().eq(0..before.steps().len()), "seed {seed}");
        assert_eq!(
            terms(&before, &inputs),
            terms(&program, &inputs),
            "seed {seed}"
        );
        let again = fuse(before, &inputs).unwrap();
        assert_eq!(again.steps(), program.steps());
    }
}

/// Each result as a term of what it is computed of, by its hash.
fn terms(program: &Program<'_>, inputs: &[Input]) -> Vec<u64> {
    let mut values: Vec<u64> = (0..inputs.len() as u64).collect();
    let mut specs: Vec<Spec> = inputs.iter().map(|input| input.spec.clone()).collect();
    run(program, &mut values, &mut specs)
}

fn run(program: &Program<'_>, values: &mut Vec<u64>, specs: &mut Vec<Spec>) -> Vec<u64> {
    use std::hash::{DefaultHasher, Hash, Hasher};
    for step in program.steps() {
        let Step::Request(request) = step else {
            continue;
        };
        let reads = request.inputs.iter().map(|&value| value as usize);
        let (read, own): (Vec<u64>, Vec<Spec>) = reads
            .map(|value| (values[value], specs[value].clone()))
            .unzip();
        let request = request.over(own.clone());
        assert!(request.check().is_ok(), "{request}");
        if let Some(apart) = split::split(&request).unwrap() {
            let made = run(&apart, &mut read.clone(), &mut own.clone());
            values.extend(made);
        } else {
            let mut hash = DefaultHasher::new();
            (&*request.op, read, &request.outputs).hash(&mut hash);
            values.push(hash.finish());
        }
        specs.extend(request.outputs.iter().cloned());
    }
    program
        .results()
        .iter()
        .map(|&value| values[value as usize])
        .collect()
}

#[test]
fn results_are_made_of_what_their_calls_read() {
    let text = "quotient(i0, i1):s32; add(i2, 1:s32):s32; max(%0, i3):s32; (%0, %1, %2)";
    let made = nx_vulkan_ops::made("fused", &[DType::S32; 4], &[Attr::text(ATTRIBUTE, text)]);
    let made = made
        .unwrap()
        .into_iter()
        .map(|made| (made.of, made.is_partial));
    let [yes, no] = [true, false];
    assert!(made.eq([
        (vec![yes, yes, no, no], yes),
        (vec![no, no, yes, no], no),
        (vec![yes, yes, no, yes], yes),
    ]));
    let specs = vec![(DType::S32, vec![3]); 4];
    let request = Request::new(
        "fused",
        specs,
        vec![(DType::S32, vec![3]); 3],
        vec![Attr::text(ATTRIBUTE, text)],
    );
    let told = split::partial(&request).unwrap();
    assert_eq!(told, "quotient(s32[3], s32[3]) -> s32[3]");
}
