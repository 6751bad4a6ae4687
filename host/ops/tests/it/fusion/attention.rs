//! Attention as one request.

mod apart;
mod stays;
mod turned;

use super::{input, op};
use nx_vulkan_abi::layout::contiguous_strides;
use nx_vulkan_ops::{
    Attr, DType, Program, Request, Spec, Step, Value, View,
    attrs::text,
    fusion::{Input, attention},
    kernels::{self, Out},
};

const AXON: &str = "reduce_max(i0):T; subtract(i0, %0):T; exp(%1):T; sum(%2):T; divide(1:s32, %3):T; multiply(%4, %2):T";

/// A program that is being written, of one type.
struct Steps {
    dtype: DType,
    inputs: Vec<Input>,
    steps: Vec<Step<'static>>,
}

impl Steps {
    fn on(dtype: DType, shapes: &[&[u64]]) -> Steps {
        Steps {
            dtype,
            inputs: shapes.iter().map(|shape| input(dtype, shape)).collect(),
            steps: Vec::new(),
        }
    }

    fn push(&mut self, step: Step<'static>) -> Value {
        let made: usize = self.steps.iter().map(Step::made).sum();
        self.steps.push(step);
        (self.inputs.len() + made) as Value
    }

    fn request(
        &mut self,
        name: &'static str,
        of: &[Value],
        shape: &[u64],
        attrs: Vec<Attr>,
    ) -> Value {
        let Step::Request(mut request) = op(name, of, self.dtype, shape) else {
            unreachable!()
        };
        request.attrs = attrs.into();
        self.push(request.into())
    }

    fn dot(
        &mut self,
        of: &[Value],
        shape: &[u64],
        [batches, left, right]: [i64; 3],
        epilogue: &str,
    ) -> Value {
        let mut attrs = vec![
            Attr::ints("batch_a", Vec::from_iter(0..batches)),
            Attr::ints("batch_b", Vec::from_iter(0..batches)),
            Attr::ints("contract_a", [left]),
            Attr::ints("contract_b", [right]),
        ];
        if !epilogue.is_empty() {
            attrs.push(Attr::text("epilogue", epilogue));
        }
        self.request("dot", of, shape, attrs)
    }

    fn rows(&mut self, of: &[Value], shape: &[u64], expression: &str) -> Value {
        let expression = expression.replace('T', self.dtype.name());
        let attrs = vec![Attr::text("expression", &expression)];
        self.request("fused_rows", of, shape, attrs)
    }

    fn reshape(&mut self, of: Value, shape: &[u64]) -> Value {
        self.push(Step::View(of, View::Reshape(shape.to_vec())))
    }

    /// The program before and after the pass.
    fn passed(self, results: &[Value]) -> [Program<'static>; 2] {
        let program = Program::new(self.inputs.len(), self.steps, results.to_vec()).unwrap();
        let after = attention(program.clone(), &self.inputs).unwrap();
        let specs: Vec<Spec> = self.inputs.iter().map(|input| input.spec.clone()).collect();
        let [one, other] = [&program, &after].map(|program| run(program, &specs));
        let far = one
            .iter()
            .zip(&other)
            .map(|(one, other)| (one - other).abs());
        let far = far.fold(0.0, f32::max);
        assert!(far <= 0.03 && one.len() == other.len(), "{far}");
        [program, after]
    }
}

/// A value: what it is, its strides and bytes.
type Made = (Spec, Vec<i64>, Vec<u8>);

/// The numbers of a program's first result, of inputs from -1 to 1.
fn run(program: &Program<'_>, inputs: &[Spec]) -> Vec<f32> {
    let mut rng = nx_vulkan_ops::values::Rng(5);
    let random = |spec: &Spec| {
        let mut bytes = Vec::new();
        for _ in 0..spec.1.iter().product::<u64>() {
            nx_vulkan_ops::element::push_float(spec.0, rng.between(-1.0, 1.0), &mut bytes);
        }
        (spec.clone(), contiguous_strides(&spec.1), bytes)
    };
    let mut values: Vec<Made> = inputs.iter().map(random).collect();
    for step in program.steps() {
        let of = step.inputs().iter().map(|&value| value as usize);
        let of: Vec<Made> = of.map(|value| values[value].clone()).collect();
        match step {
            Step::Request(request) => values.extend(compute(request, &of)),
            Step::View(_, View::Reshape(shape)) => {
                let spec = (of[0].0.0, shape.clone());
                values.push((spec, contiguous_strides(shape), of[0].2.clone()));
            }
            Step::View(_, View::Transpose(axes)) => {
                let ((dtype, shape), strides, bytes) = of[0].clone();
                let shape = axes.iter().map(|&axis| shape[axis]).collect();
                let strides = axes.iter().map(|&axis| strides[axis]).collect();
                let spec: Spec = (dtype, shape);
                let whole = Request::new("as_type", vec![0], vec![spec.clone()], &[]);
                values.extend(compute(&whole, &[(spec, strides, bytes)]));
            }
            step => panic!("{step:?}"),
        }
    }
    let (spec, _, bytes) = &values[program.results()[0] as usize];
    let elements = bytes.chunks(spec.0.size() as usize);
    let numbers =
        elements.map(|element| nx_vulkan_ops::element::float(spec.0, element).unwrap() as f32);
    numbers.collect()
}

fn compute(request: &Request<'_, Value>, of: &[Made]) -> Vec<Made> {
    let views = of
        .iter()
        .map(|((dtype, shape), strides, bytes)| kernels::View {
            dtype: *dtype,
            shape,
            strides,
            offset: 0,
            bytes,
        });
    let made = |spec: &Spec| {
        let size = spec.1.iter().product::<u64>() * spec.0.size();
        let bytes = vec![0; size as usize];
        (spec.clone(), contiguous_strides(&spec.1), bytes)
    };
    let mut made: Vec<Made> = request.outputs.iter().map(made).collect();
    let outs = made.iter_mut().map(|((dtype, shape), _, bytes)| Out {
        dtype: *dtype,
        shape,
        bytes,
    });
    let views: Vec<_> = views.collect();
    kernels::run(
        &request.op,
        &views,
        &mut outs.collect::<Vec<_>>(),
        &request.attrs,
    )
    .unwrap();
    made
}

/// Each step as what it is of, and what it makes of the scores.
fn shown(program: &Program<'_>) -> Vec<String> {
    let show = |step: &Step<'_>| {
        let text = match step {
            Step::Request(request) => text(&request.attrs, "scores").unwrap_or("").to_owned(),
            Step::View(_, View::Reshape(shape) | View::Broadcast(shape, _)) => format!("{shape:?}"),
            Step::View(_, view) => format!("{view:?}"),
        };
        format!("{} {text} of {:?}", step.op(), step.inputs())
    };
    program.steps().iter().map(show).collect()
}

fn is_made(program: &Program<'_>) -> bool {
    program.steps().iter().any(|step| step.op() == "attention")
}

const HEADS: [&[u64]; 4] = [&[1, 3, 5, 8], &[1, 3, 7, 8], &[1, 3, 7, 4], &[1, 1, 1, 7]];
const SCORES: &[u64] = &[1, 3, 5, 7];
const MEANS: &[u64] = &[1, 3, 5, 4];

/// Attention as BERT has it, with a softmax of that text.
fn bert(dtype: DType, softmax: &str) -> (Steps, [Value; 3]) {
    let mut steps = Steps::on(dtype, &HEADS);
    let text = "multiply(0.125, x); add(%0, i2)";
    let scores = steps.dot(&[0, 1, 3], SCORES, [2, 3, 3], text);
    let weights = steps.rows(&[scores], SCORES, softmax);
    let means = steps.dot(&[weights, 2], MEANS, [2, 3, 2], "");
    (steps, [scores, weights, means])
}

#[test]
fn a_product_a_softmax_and_a_product_are_one() {
    for dtype in [DType::F16, DType::BF16] {
        let (steps, [.., means]) = bert(dtype, AXON);
        let [_, after] = steps.passed(&[means]);
        let expected = "attention multiply(0.125, x); add(%0, i3) of [0, 1, 2, 3]";
        assert_eq!(shown(&after), [expected]);
        assert_eq!(after.stands_for(0).to_vec(), [0, 1, 2]);
        assert_eq!(after.results(), [4]);
    }
}

#[test]
fn heads_that_share_keys_are_more_rows() {
    // Two heads of queries for each of three of keys.
    let shapes: [&[u64]; 4] = [
        &[1, 3, 2, 5, 8],
        &[1, 3, 7, 8],
        &[1, 3, 7, 4],
        &[1, 1, 1, 5, 7],
    ];
    let (split, whole) = (&[1, 3, 2, 5, 7], &[1, 6, 5, 7]);
    let mut steps = Steps::on(DType::BF16, &shapes);
    let text = "multiply(0.125, x); add(%0, i2)";
    let scores = steps.dot(&[0, 1, 3], split, [2, 4, 3], text);
    let merged = steps.reshape(scores, whole);
    let weights = steps.rows(&[merged], whole, AXON);
    // Others stand in between, and are read by what follows.
    let v = steps.request("negate", &[2], shapes[2], vec![]);
    let apart = steps.reshape(weights, split);
    let means = steps.dot(&[apart, v], &[1, 3, 2, 5, 4], [2, 4, 2], "");
    let merged = steps.reshape(means, &[1, 6, 5, 4]);
    let [_, after] = steps.passed(&[merged]);
    assert_eq!(
        shown(&after),
        [
            "negate  of [2]",
            "attention multiply(0.125, x); add(%0, i3) of [0, 1, 4, 3]",
            "reshape [1, 6, 5, 4] of [5]",
        ]
    );
    assert_eq!(after.stands_for(1).to_vec(), [0, 1, 2, 4, 5]);
}

#[test]
fn axes_are_turned_where_they_lie_otherwise() {
    // Queries with their elements first, keys with theirs first, values with keys last.
    let mut steps = Steps::on(DType::F16, &[&[2, 8, 5], &[2, 8, 7], &[2, 4, 7]]);
    let scores = steps.dot(&[0, 1], &[2, 5, 7], [1, 1, 1], "");
    let weights = steps.rows(&[scores], &[2, 5, 7], AXON);
    let means = steps.dot(&[weights, 2], &[2, 5, 4], [1, 2, 2], "");
    let [_, after] = steps.passed(&[means]);
    assert_eq!(
        shown(&after),
        [
            "transpose Transpose([0, 2, 1]) of [0]",
            "transpose Transpose([0, 2, 1]) of [1]",
            "transpose Transpose([0, 2, 1]) of [2]",
            "attention  of [3, 4, 5]",
        ]
    );
}

#[test]
fn what_stands_before_a_softmax_is_of_the_scores() {
    // The rows hold all heads in one axis, and so do their scale and mask.
    let shapes: [&[u64]; 5] = [
        &[1, 3, 2, 5, 8],
        &[1, 3, 7, 8],
        &[1, 3, 7, 4],
        &[1, 1, 5, 7],
        &[6, 1, 1],
    ];
    let (split, whole) = (&[1, 3, 2, 5, 7], &[1, 6, 5, 7]);
    let softmax = "multiply(i0, i2):T; add(%0, i1):T; reduce_max(%1):T; subtract(%1, %2):T; exp(%3):T; sum(%4):T; divide(%4, %5):T";
    let mut steps = Steps::on(DType::BF16, &shapes);
    let scores = steps.dot(&[0, 1], split, [2, 4, 3], "abs(x)");
    let merged = steps.reshape(scores, whole);
    let weights = steps.rows(&[merged, 3, 4], whole, softmax);
    let apart = steps.reshape(weights, split);
    let means = steps.dot(&[apart, 2], &[1, 3, 2, 5, 4], [2, 4, 2], "");
    let [_, after] = steps.passed(&[means]);
    assert_eq!(
        shown(&after),
        [
            "reshape [1, 3, 2, 1, 1] of [4]",
            "reshape [1, 1, 1, 5, 7] of [3]",
            "attention abs(x); multiply(%0, i3); add(%1, i4) of [0, 1, 2, 5, 6]",
        ]
    );
    let wide = "as_type(i0):f32; multiply(0.5:f32, %0):f32; reduce_max(%1):f32; subtract(%1, %2):f32; exp(%3):f32; \
                sum(%4):f32; divide(%4, %5):f32; as_type(%6):T";
    let (steps, [.., means]) = bert(DType::BF16, wide);
    let [_, after] = steps.passed(&[means]);
    assert_eq!(
        shown(&after),
        ["attention multiply(0.125, x); add(%0, i3); multiply(0.5, %1) of [0, 1, 2, 3]"]
    );
}

#[test]
fn of_a_chain_of_three_products_the_first_two_are_one() {
    let mut steps = Steps::on(DType::F16, &[&[5, 8], &[7, 8], &[7, 6], &[9, 6], &[9, 3]]);
    let scores = steps.dot(&[0, 1], &[5, 7], [0, 1, 1], "");
    let weights = steps.rows(&[scores], &[5, 7], AXON);
    let queries = steps.dot(&[weights, 2], &[5, 6], [0, 1, 0], "");
    let scores = steps.dot(&[queries, 3], &[5, 9], [0, 1, 1], "");
    let weights = steps.rows(&[scores], &[5, 9], AXON);
    let means = steps.dot(&[weights, 4], &[5, 3], [0, 1, 0], "");
    let [_, after] = steps.passed(&[means]);
    assert_eq!(
        shown(&after),
        ["attention  of [0, 1, 2]", "attention  of [5, 3, 4]"]
    );
    // The means of one softmax are the scores of the next.
    let mut steps = Steps::on(DType::F16, &[&[5, 8], &[7, 8], &[7, 6], &[6, 3]]);
    let scores = steps.dot(&[0, 1], &[5, 7], [0, 1, 1], "");
    let weights = steps.rows(&[scores], &[5, 7], AXON);
    let means = steps.dot(&[weights, 2], &[5, 6], [0, 1, 0], "");
    let weights = steps.rows(&[means], &[5, 6], AXON);
    let last = steps.dot(&[weights, 3], &[5, 3], [0, 1, 0], "");
    let [_, after] = steps.passed(&[last]);
    let ops: Vec<&str> = after.steps().iter().map(Step::op).collect();
    assert_eq!(ops, ["attention", "fused_rows", "dot"]);
}
