//! Programs whose steps depend on each other in all ways: in waves, with memory given out again early and late, they have the bits that
//! they have one by one.

use super::{binary, open, open_in, unary};
use nx_vulkan_host::{Attr, DType, MemoryBudget, Program, Request, Routine, Step, Value, View};
use nx_vulkan_ops::values::Rng;

/// Steps on random values of those before, of one of these lengths each.
pub(super) fn random(rng: &mut Rng, lengths: &[u64], count: usize) -> Program<'static> {
    let mut of: Vec<u64> = lengths.to_vec();
    let mut steps: Vec<Step<'static>> = Vec::new();
    for _ in 0..count {
        // Mostly of what was made of late, sometimes of anything.
        let from = match rng.below(3) {
            0 => 0,
            _ => of.len().saturating_sub(8),
        };
        let value = (from as u64 + rng.below((of.len() - from) as u64)) as usize;
        let length = of[value];
        let alike: Vec<usize> = (0..of.len()).filter(|other| of[*other] == length).collect();
        let other = rng.pick(&alike);
        let (value, shape) = (value as Value, [length]);
        let (step, made) = match rng.below(6) {
            0 => (unary("sin", value, &shape), length),
            1 => (unary("cos", value, &shape), length),
            2 => (Step::View(value, View::Reverse(vec![0])), length),
            3 => {
                // The latter half is written over by a shorter one, or by part of another.
                let part = length / 2;
                let slice = View::Slice(vec![length - part], vec![part], vec![1]);
                steps.push(Step::View(other as Value, slice));
                of.push(part);
                let attrs = vec![Attr::ints("axes", []), Attr::ints("starts", [1])];
                let outputs = vec![(DType::F32, shape.to_vec())];
                let inputs = vec![value, of.len() as Value - 1];
                (
                    Request::new("put_slice", inputs, outputs, attrs).into(),
                    length,
                )
            }
            _ => (binary("add", [value, other as Value], &shape), length),
        };
        steps.push(step);
        of.push(made);
    }
    let results: Vec<Value> = (0..5)
        .map(|_| rng.below(of.len() as u64) as Value)
        .collect();
    let last = of.len() as Value - 1;
    Program::new(lengths.len(), steps, [&results[..], &[last]].concat()).unwrap()
}

#[test]
fn random_programs_have_the_bits_of_their_steps() {
    // The second has room for a few buffers of its own, and gives them out again at once.
    for memory in [MemoryBudget::Auto, MemoryBudget::Bytes(32 << 20)] {
        let setup = open_in(memory);
        let mut replayed = 0;
        for seed in 0..12 {
            let mut rng = Rng(seed * 0x9e37_79b9 + 3);
            let most = 1 << rng.pick(&[4, 10, 17]);
            let lengths: Vec<u64> = (0..4).map(|_| 2 + rng.below(most)).collect();
            let count = 10 + rng.below(120) as usize;
            let routine = Routine::from(random(&mut rng, &lengths, count));
            let [a, b, c] = [0, 1, 2].map(|at| setup.floats(&lengths[at..=at], at as u32));
            for run in 0..6 {
                let d = setup.floats(&lengths[3..], run);
                replayed += setup.runs(&routine, &[&a, &b, &c, &d]);
            }
        }
        assert!(replayed >= 20, "{replayed}");
    }
}

#[test]
fn steps_run_one_after_the_other_where_that_is_asked() {
    let setup = open();
    let shape = [64];
    let steps = (0..32).map(|_| unary("sin", 0, &shape));
    let program = Program::new(1, steps, [1, 32]).unwrap();
    let bytes = |routine: Routine| {
        let x = setup.floats(&shape, 1);
        let replayed: u64 = (0..6).map(|_| setup.runs(&routine, &[&x])).sum();
        assert!(replayed > 0);
        setup.runtime.stats().replays.bytes
    };
    let apart = bytes(Routine::from(program.clone()));
    let in_turn = bytes(Routine::from(program).in_turn());
    // Side by side each of them needs memory of its own.
    assert!(in_turn * 8 < apart, "{in_turn} {apart}");
}
