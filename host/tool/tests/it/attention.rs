//! What attention is made of, as a GPU runs it, beside what this file makes of it in f64: rotary embeddings, and products of queries
//! that share keys.

use crate::{
    folder::Folder,
    follow::{numbers, open_with, random},
};
use nx_vulkan_host::{
    Attr, DType, Program, Request, Runtime, Spec, Step, Tensor, Value, View, device,
    fusion::{Input, fuse, with_few_dispatches},
};
use nx_vulkan_ops::values::Rng;

/// Steps behind inputs, and the spec of what each value is.
struct Steps {
    steps: Vec<Step<'static>>,
    specs: Vec<Spec>,
    inputs: usize,
}

impl Steps {
    fn on(specs: Vec<Spec>) -> Steps {
        Steps {
            steps: Vec::new(),
            inputs: specs.len(),
            specs,
        }
    }

    fn op(&mut self, op: &'static str, of: &[Value], shape: &[u64], attrs: &[Attr]) -> Value {
        let outputs = vec![(self.specs[0].0, shape.to_vec())];
        let request = Request::new(op, of.to_vec(), outputs.clone(), attrs.to_vec());
        self.steps.push(request.into());
        self.specs.extend(outputs);
        self.specs.len() as Value - 1
    }

    fn view(&mut self, of: Value, shape: &[u64], view: View) -> Value {
        self.steps.push(Step::View(of, view));
        self.specs.push((self.specs[0].0, shape.to_vec()));
        self.specs.len() as Value - 1
    }

    /// The program, by itself and as a GPU runs it.
    fn programs(self) -> [Program<'static>; 2] {
        let last = self.specs.len() as Value - 1;
        let program = Program::new(self.inputs, self.steps, [last]).unwrap();
        let input = |spec: &Spec| Input {
            spec: spec.clone(),
            element: None,
        };
        let inputs: Vec<Input> = self.specs[..self.inputs].iter().map(input).collect();
        let fused = fuse(program.clone(), &inputs).unwrap();
        [program, with_few_dispatches(fused, &inputs).unwrap()]
    }
}

/// The names of a program's requests.
fn requests<'a>(program: &'a Program<'_>) -> Vec<&'a str> {
    let steps = program.steps().iter();
    let requests = steps.filter(|step| matches!(step, Step::Request(_)));
    requests.map(Step::op).collect()
}

fn run(runtime: &Runtime, program: &Program<'_>, all: &[(Tensor, Vec<f64>)]) -> Vec<f64> {
    let tensors: Vec<&Tensor> = all.iter().map(|(tensor, _)| tensor).collect();
    let ran = runtime.run_program(program, &tensors).unwrap();
    numbers(runtime, &ran.results[0])
}

fn randoms(runtime: &Runtime, specs: &[Spec], rng: &mut Rng) -> Vec<(Tensor, Vec<f64>)> {
    let specs = specs.iter();
    specs.map(|spec| random(runtime, spec, rng)).collect()
}

/// An op on a half: its name, and what it makes of an element.
type Turn = (&'static str, fn(f64) -> f64);
const TURNS: [Turn; 3] = [("", |x| x), ("negate", |x| -x), ("abs", f64::abs)];

#[test]
fn rotary_embeddings_are_one_request() {
    let folder = Folder::new();
    let runtime = open_with(&folder, &["elementwise", "indexing"]);
    let seeds = if runtime.device().summary().kind == "cpu" {
        12
    } else {
        100
    };
    for seed in 0..seeds {
        let mut rng = Rng(seed * 0x9e37_79b9 + 7);
        let dtype = rng.pick(&[DType::F32, DType::BF16, DType::F16, DType::F64]);
        let [batches, rows, heads, half] = [3, 40, 9, 33].map(|most| 1 + rng.below(most));
        let axis = rng.pick(&[3, 3, 1]);
        let mut shape = vec![batches, rows, heads, half];
        let part = shape.clone();
        shape[axis] *= 2;
        let mut turn = vec![1, shape[1], 1, shape[3]];
        turn[0] = rng.pick(&[1, batches]);
        let is_turned = rng.below(4) > 0;
        let pieces = [rng.pick(&TURNS), rng.pick(&TURNS)];

        // x, and what its elements and the turned ones are multiplied by.
        let mut steps = Steps::on(vec![
            (dtype, shape.clone()),
            (dtype, turn.clone()),
            (dtype, turn.clone()),
        ]);
        let made = pieces.iter().enumerate().map(|(place, (op, _))| {
            let mut starts = vec![0; 4];
            starts[axis] = if is_turned == (place == 0) {
                part[axis]
            } else {
                0
            };
            let slice = steps.view(0, &part, View::Slice(starts, part.clone(), vec![1; 4]));
            if op.is_empty() {
                slice
            } else {
                steps.op(op, &[slice], &part, &[])
            }
        });
        let made: Vec<Value> = made.collect();
        let whole = steps.op(
            "concatenate",
            &made,
            &shape,
            &[Attr::ints("axis", [axis as i64])],
        );
        let first = steps.op("multiply", &[0, 1], &shape, &[]);
        let second = steps.op("multiply", &[whole, 2], &shape, &[]);
        steps.op("add", &[first, second], &shape, &[]);
        let specs = steps.specs[..3].to_vec();
        let [plain, few] = steps.programs();
        assert_eq!(
            requests(&few),
            ["iota", "fused"],
            "{seed}: {shape:?} {axis}"
        );

        let all = randoms(&runtime, &specs, &mut rng);
        let given = run(&runtime, &few, &all);
        // Narrow floats are rounded once.
        let is_narrow = matches!(dtype, DType::F16 | DType::BF16);
        assert!(
            is_narrow || given == run(&runtime, &plain, &all),
            "{seed}: {dtype} {shape:?} {axis}"
        );
        let epsilon = match dtype {
            DType::F64 => 1e-15,
            DType::F32 => 3e-7,
            DType::F16 => 5e-4,
            _ => 4e-3,
        };
        for (at, given) in given.into_iter().enumerate() {
            let mut place = place(at, &shape);
            let own = all[0].1[at];
            let by = |place: &[u64], of: usize| {
                let at: Vec<u64> = place
                    .iter()
                    .zip(&turn)
                    .map(|(at, extent)| at % extent)
                    .collect();
                all[of].1[flat(&at, &turn)]
            };
            let (cos, sin) = (by(&place, 1), by(&place, 2));
            let piece = (place[axis] / part[axis]) as usize;
            place[axis] = match is_turned {
                true => (place[axis] + part[axis]) % shape[axis],
                false => place[axis],
            };
            let other = pieces[piece].1(all[0].1[flat(&place, &shape)]);
            let expected = own * cos + other * sin;
            let size = (own * cos).abs() + (other * sin).abs();
            assert!(
                (given - expected).abs() <= epsilon * size,
                "{seed}: {given} for {expected} at {at}"
            );
        }
    }
    assert_eq!(device::validation_messages(), [""; 0]);
}

fn place(mut at: usize, shape: &[u64]) -> Vec<u64> {
    let mut place: Vec<u64> = shape
        .iter()
        .rev()
        .map(|&extent| {
            let own = at as u64 % extent;
            at /= extent as usize;
            own
        })
        .collect();
    place.reverse();
    place
}

fn flat(place: &[u64], shape: &[u64]) -> usize {
    let at = place
        .iter()
        .zip(shape)
        .fold(0, |at, (own, extent)| at * extent + own);
    at as usize
}

#[test]
fn queries_that_share_keys_are_rows_of_one_product() {
    let folder = Folder::new();
    let runtime = open_with(&folder, &["elementwise", "indexing", "matmul"]);
    let (seeds, most) = match runtime.device().summary().kind {
        "cpu" => (8, 40),
        _ => (100, 500),
    };
    for seed in 0..seeds {
        let mut rng = Rng(seed * 0x9e37_79b9 + 11);
        let dtype = rng.pick(&[DType::F32, DType::BF16, DType::F16, DType::F64]);
        let [batches, keys, shared, depth] = [2, 5, 6, 70].map(|most| 1 + rng.below(most));
        let (rows, columns) = (1 + rng.below(most), 1 + rng.below(most));
        let (keys, shared) = (keys + 1, shared + 1);
        let heads = keys * shared;
        // Queries by keys, or what comes of them by values.
        let is_score = rng.below(2) == 0;
        let (free, contracted) = if is_score {
            (columns, depth)
        } else {
            (depth, columns)
        };
        let result = vec![batches, heads, rows, free];
        let masks: [&[u64]; 7] = [
            &[rows, free],
            &[batches, heads, 1, free],
            &[1; 4],
            &[batches, 1, 1, free],
            &[batches, 1, rows, free],
            &[heads, rows, 1],
            &[batches, 1, rows, 1],
        ];
        let mask = rng.pick(&masks).to_vec();
        let left = vec![batches, rows, heads, contracted];
        let right = vec![batches, columns, keys, depth];
        let mut steps = Steps::on(
            [left.clone(), right, mask.clone()]
                .map(|shape| (dtype, shape))
                .to_vec(),
        );
        let queries = steps.view(
            0,
            &[batches, heads, rows, contracted],
            View::Transpose(vec![0, 2, 1, 3]),
        );
        let one = vec![batches, columns, keys, 1, depth];
        let own = steps.view(1, &one, View::Reshape(one.clone()));
        let each = vec![batches, columns, keys, shared, depth];
        let own = steps.view(own, &each, View::Broadcast(each.clone(), (0..5).collect()));
        let flat_heads = vec![batches, columns, heads, depth];
        let own = steps.view(own, &flat_heads, View::Reshape(flat_heads.clone()));
        let own = steps.view(
            own,
            &[batches, heads, columns, depth],
            View::Transpose(vec![0, 2, 1, 3]),
        );
        let attrs = [
            ("batch_a", vec![0, 1]),
            ("batch_b", vec![0, 1]),
            ("contract_a", vec![3]),
            ("contract_b", vec![if is_score { 3 } else { 2 }]),
        ];
        let attrs = attrs.map(|(name, axes)| Attr::ints(name, axes));
        let sums = steps.op("dot", &[queries, own], &result, &attrs);
        steps.op("add", &[sums, 2], &result, &[]);
        let specs = steps.specs[..3].to_vec();
        let [_, few] = steps.programs();
        assert_eq!(requests(&few), ["dot"], "{seed}: {specs:?}");
        let Some(Step::Request(dot)) = few.steps().iter().find(|step| step.op() == "dot") else {
            panic!("{:?}", few.steps());
        };
        assert_eq!(
            dot.outputs[0].1[..3],
            [batches, keys, shared],
            "{seed}: {specs:?}"
        );

        let all = randoms(&runtime, &specs, &mut rng);
        let given = run(&runtime, &few, &all);
        let epsilon = match dtype {
            DType::F64 => 1e-13,
            DType::F32 => 2e-5,
            DType::F16 => 2e-3,
            _ => 1e-2,
        };
        for (at, given) in given.into_iter().enumerate() {
            let place = place(at, &result);
            let [batch, head, row, column] = place[..] else {
                unreachable!()
            };
            let own: Vec<u64> = place[4 - mask.len()..]
                .iter()
                .zip(&mask)
                .map(|(at, extent)| at % extent)
                .collect();
            let first = all[2].1[flat(&own, &mask)];
            let (mut sum, mut size) = (first, 1.0 + first.abs());
            for at in 0..contracted {
                let a = all[0].1[flat(&[batch, row, head, at], &left)];
                let (key, element) = if is_score { (column, at) } else { (at, column) };
                let b = all[1].1[flat(&[batch, key, head / shared, element], &specs[1].1)];
                sum += a * b;
                size += (a * b).abs();
            }
            assert!(
                (given - sum).abs() <= epsilon * size,
                "{seed}: {given} for {sum} at {place:?} of {specs:?}"
            );
        }
    }
    assert_eq!(device::validation_messages(), [""; 0]);
}

#[test]
fn keys_that_are_kept_are_repeated_where_they_are_put() {
    let folder = Folder::new();
    let runtime = open_with(&folder, &["elementwise", "indexing"]);
    for seed in 0..20 {
        let mut rng = Rng(seed * 0x9e37_79b9 + 13);
        let dtype = rng.pick(&[DType::F32, DType::BF16, DType::F16, DType::F64]);
        let [batches, rows, room, keys, shared, depth] =
            [3, 5, 20, 4, 5, 40].map(|most| 1 + rng.below(most));
        let (keys, shared) = (keys + 1, shared + 1);
        let heads = keys * shared;
        let (cache, own) = (
            vec![batches, rows + room, heads, depth],
            vec![batches, rows, keys, depth],
        );
        let mut steps = Steps::on(vec![(dtype, cache.clone()), (dtype, own.clone())]);
        let one = vec![batches, rows, keys, 1, depth];
        let viewed = steps.view(1, &one, View::Reshape(one.clone()));
        let each = vec![batches, rows, keys, shared, depth];
        let viewed = steps.view(
            viewed,
            &each,
            View::Broadcast(each.clone(), (0..5).collect()),
        );
        let flat_heads = vec![batches, rows, heads, depth];
        let viewed = steps.view(viewed, &flat_heads, View::Reshape(flat_heads.clone()));
        let start = rng.below(room + 1);
        let attrs = [
            Attr::ints("axes", []),
            Attr::ints("starts", [0, start as i64, 0, 0]),
        ];
        steps.op("put_slice", &[0, viewed], &cache, &attrs);
        let specs = steps.specs[..2].to_vec();
        let [_, few] = steps.programs();
        assert_eq!(requests(&few), ["put_slice"], "{seed}: {specs:?}");
        let all = randoms(&runtime, &specs, &mut rng);
        let given = run(&runtime, &few, &all);
        for (at, given) in given.into_iter().enumerate() {
            let place = place(at, &cache);
            let [batch, row, head, element] = place[..] else {
                unreachable!()
            };
            let expected = match row.checked_sub(start).filter(|row| *row < rows) {
                Some(row) => all[1].1[flat(&[batch, row, head / shared, element], &own)],
                None => all[0].1[at],
            };
            assert_eq!(given, expected, "{seed}: {place:?} of {specs:?} at {start}");
        }
    }
    assert_eq!(device::validation_messages(), [""; 0]);
}
