//! Operands that are small parts of buffers which no binding covers whole: they are served as those of small buffers.

use crate::{folder::Folder, packs};
use nx_vulkan_host::{Attr, Config, DType, Request, Runtime, Spec, Tensor, Times, device};
use nx_vulkan_ops::{
    Op, find,
    infer::infer,
    ops,
    values::{self, Domain, Rng, Values},
};
use std::{collections::BTreeMap, sync::Arc};

const MIB: u64 = 1 << 20;
/// More than one binding covers on lavapipe and on many integrated GPUs.
const LARGE: u64 = 160 * MIB;
/// Where parts begin that are neighbours.
const ALIGN: usize = 256;

fn open(folder: &Folder) -> Arc<Runtime> {
    packs::copied(folder, &packs::ours());
    let registry = folder.write(
        "registry.toml",
        "schema = 1\n[search]\npaths = [\"packs\"]\n",
    );
    let runtime = Runtime::open(&Config {
        registry: Some(registry),
        cache_dir: Some(folder.join("cache")),
        validation: true,
        times: Times::Ignored,
        ..Config::from_env()
    })
    .unwrap();
    let limit = runtime.device_info().max_buffer_range;
    if limit >= LARGE {
        eprintln!("one binding of this device covers {limit} bytes: the buffers are within it");
    }
    runtime
}

/// Requests of one kind each, and what they take.
struct Asked {
    request: Request<'static, Spec>,
    bytes: Vec<Vec<u8>>,
}

fn asked(
    op: &'static Op,
    (inputs, output): (&[Spec], Option<Spec>),
    attrs: &[Attr],
    rng: &mut Rng,
) -> Asked {
    let request = infer(op, inputs, output, attrs).unwrap();
    let bytes = |(index, (dtype, shape)): (usize, &Spec)| {
        let count = shape.iter().product::<u64>() as usize;
        match op.domain(index) {
            // The first element is there, whatever is asked.
            Domain::Index => vec![0; count * dtype.size() as usize],
            domain => values::elements(domain, *dtype, Values::Finite, count, rng),
        }
    };
    let bytes = inputs.iter().enumerate().map(bytes).collect();
    Asked { request, bytes }
}

/// Every op that has operands, on f32 where it takes that, and products that are finished on the way.
fn all(rng: &mut Rng) -> Vec<Asked> {
    let mut all = Vec::new();
    for op in ops().filter(|op| op.arity() > 0) {
        let types = op.alone();
        let types = types
            .iter()
            .find(|types| op.stands_for(types) == Some(DType::F32))
            .unwrap_or(&types[0]);
        let shapes = op.operand_shapes(&[64, 64]);
        let inputs: Vec<Spec> = types.inputs.iter().copied().zip(shapes).collect();
        let output = types.output.map(|dtype| (dtype, inputs[0].1.clone()));
        all.push(asked(op, (&inputs, output), &[], rng));
    }
    let finish = [Attr::text("epilogue", "add(x, i2); max(%0, 0)")];
    for (op, shapes) in [
        ("dot", [&[64, 64][..], &[64, 64], &[64]]),
        ("conv", [&[2, 4, 16, 16], &[8, 4, 3, 3], &[2, 8, 14, 14]]),
    ] {
        let inputs = shapes.map(|shape| (DType::F32, shape.to_vec()));
        all.push(asked(find(op).unwrap(), (&inputs, None), &finish, rng));
    }
    all
}

/// Operands as parts of one buffer for each type, behind its first `before` bytes, `skipped` elements behind where a binding may
/// begin.
fn parts(runtime: &Runtime, asked: &[Asked], before: u64, skipped: u64) -> Vec<Vec<Tensor>> {
    let operands = || {
        let all = asked.iter();
        all.flat_map(|asked| asked.request.inputs.iter().zip(&asked.bytes))
    };
    let mut tails: BTreeMap<u32, (DType, Vec<u8>)> = BTreeMap::new();
    for ((dtype, _), bytes) in operands() {
        let tail = &mut tails.entry(dtype.0).or_insert((*dtype, Vec::new())).1;
        tail.resize(
            tail.len().next_multiple_of(ALIGN) + (skipped * dtype.size()) as usize,
            0,
        );
        tail.extend(bytes);
    }
    let large: BTreeMap<u32, Tensor> = tails
        .into_iter()
        .map(|(number, (dtype, tail))| {
            let mut bytes = vec![0; before as usize];
            bytes.extend(tail);
            let elements = bytes.len() as u64 / dtype.size();
            (number, runtime.upload(dtype, &[elements], &bytes).unwrap())
        })
        .collect();
    let mut ends: BTreeMap<u32, u64> = BTreeMap::new();
    let mut part = |(dtype, shape): &Spec| {
        let size = dtype.size();
        let end = ends.entry(dtype.0).or_insert(before);
        let start = end.next_multiple_of(ALIGN as u64) + skipped * size;
        let count = shape.iter().product::<u64>();
        *end = start + count * size;
        let part = large[&dtype.0]
            .slice(&[start / size], &[count], &[1])
            .unwrap();
        part.reshape(shape).unwrap().unwrap()
    };
    let all = asked.iter();
    all.map(|asked| asked.request.inputs.iter().map(&mut part).collect())
        .collect()
}

/// Who serves a request, and the bytes of its results.
fn run(runtime: &Runtime, asked: &Asked, operands: &[Tensor]) -> (String, Vec<Vec<u8>>) {
    let operands: Vec<&Tensor> = operands.iter().collect();
    let ran = runtime
        .run_reported(&asked.request.over(operands))
        .unwrap_or_else(|error| panic!("{}: {error}", asked.request));
    let results = ran.outputs.iter();
    let results = results.map(|result| runtime.download(result, None).unwrap());
    (ran.served_by.to_string(), results.collect())
}

#[test]
fn parts_of_large_buffers_are_served_as_those_of_small_ones() {
    let folder = Folder::new();
    let runtime = open(&folder);
    if runtime.stats().budget.limit < 2 << 30 {
        eprintln!("not tested: others leave too little memory");
        return;
    }
    let all = all(&mut Rng(7));
    for skipped in [0, 3] {
        let [small, large] = [0, LARGE].map(|before| parts(&runtime, &all, before, skipped));
        let mut other = Vec::new();
        for (asked, (small, large)) in all.iter().zip(small.iter().zip(&large)) {
            let (wanted, expected) = run(&runtime, asked, small);
            let plans = runtime.stats().plans;
            let (served, results) = run(&runtime, asked, large);
            if served != wanted || runtime.stats().plans > plans {
                other.push(format!("{}: by {served}, not by {wanted}", asked.request));
            } else {
                assert_eq!(results, expected, "{} by {served}", asked.request);
            }
        }
        assert!(other.is_empty(), "{skipped}: {}", other.join("\n"));
    }
    assert_eq!(device::validation_messages(), [""; 0]);
}

/// A column of a matrix lies all over the buffer.
#[test]
fn columns_that_no_binding_covers_are_copied_first() {
    const COLUMNS: u64 = 4096;
    let folder = Folder::new();
    let runtime = open(&folder);
    let rows = LARGE / 4 / COLUMNS;
    let elements = (0..rows * COLUMNS).map(|i| (i * 7919 % 1009) as f32 / 8.0 - 60.0);
    let bytes: Vec<u8> = elements.flat_map(f32::to_ne_bytes).collect();
    let matrix = runtime
        .upload(DType::F32, &[rows, COLUMNS], &bytes)
        .unwrap();
    let column = matrix.slice(&[0, 5], &[rows, 1], &[1, 1]).unwrap();
    let copy = runtime.copy(&column).unwrap();
    for (name, attrs) in [
        ("sort", vec![]),
        ("window_max", vec![Attr::ints("window", [3, 1])]),
        ("Nx.Block.CumulativeSum", vec![]),
        (
            "fft",
            vec![Attr::ints("axis", [0]), Attr::ints("length", [64])],
        ),
        ("argmax", vec![]),
        ("negate", vec![]),
    ] {
        let spec = [(DType::F32, vec![rows, 1])];
        let asked = asked(find(name).unwrap(), (&spec, None), &attrs, &mut Rng(1));
        let expected = run(&runtime, &asked, std::slice::from_ref(&copy));
        let got = run(&runtime, &asked, std::slice::from_ref(&column));
        assert!(expected.0 != "host", "{}", asked.request);
        assert!(got == expected, "{}: by {}", asked.request, got.0);
    }
    assert_eq!(device::validation_messages(), [""; 0]);
}
