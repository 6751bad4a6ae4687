//! Results, and inputs that change, whose copies would take longer than the commands that touch them: these are recorded anew in
//! each run.

use super::{binary, open, unary, waves::random};
use nx_vulkan_host::{Program, Routine, Step, Tensor, Value, View};
use nx_vulkan_ops::values::Rng;

/// Of 16 MiB.
const LARGE: [u64; 2] = [1 << 18, 16];

/// A chain on a few elements, in between two large results of which the second is made of the first, and a small one of a part of it.
/// The last result is the second one once more, seen otherwise.
pub(super) fn net() -> Program<'static> {
    let small = [16];
    let mut steps: Vec<Step<'static>> = (0..20).map(|of| unary("sin", of, &small)).collect();
    let wide = |of: Value| Step::View(of, View::Broadcast(LARGE.to_vec(), vec![1]));
    let slice = View::Slice(vec![LARGE[0] - 1, 0], vec![1, 16], vec![1, 1]);
    steps.extend([
        wide(7),                                     // 21
        wide(20),                                    // 22
        binary("add", [21, 22], &LARGE),             // 23
        Step::View(23, slice),                       // 24
        Step::View(24, View::Reshape(vec![16])),     // 25
        unary("exp", 23, &LARGE),                    // 26
        Step::View(26, View::Transpose(vec![1, 0])), // 27
        binary("subtract", [20, 25], &small),        // 28
    ]);
    steps.extend((28..60).map(|of| unary("cos", of, &small)));
    Program::new(1, steps, [23, 26, 60, 27]).unwrap()
}

#[test]
fn large_results_are_written_where_they_stay() {
    let setup = open();
    let routine = Routine::from(net());
    let replayed: u64 = (0..6)
        .map(|seed| setup.runs(&routine, &[&setup.floats(&[16], seed)]))
        .sum();
    assert_eq!(replayed, 4);
    // None of its own buffers is one of these.
    assert!(setup.runtime.stats().replays.bytes < 1 << 16);
    // What a run gave is left alone by the next ones, which come before anybody has waited for it.
    let xs: Vec<Tensor> = (0..4).map(|seed| setup.floats(&[16], seed)).collect();
    let ran = xs.iter().map(|x| setup.runtime.run_routine(&routine, &[x]));
    let ran: Vec<_> = ran.map(|ran| ran.unwrap().results).collect();
    for (x, results) in xs.iter().zip(&ran) {
        let plain = setup.runtime.run_program(&net(), &[x]).unwrap();
        for (result, plain) in results.iter().zip(&plain.results) {
            assert!(setup.bytes(result) == setup.bytes(plain));
        }
    }
    assert_eq!(setup.runtime.stats().replays.runs, 8);
}

#[test]
fn random_programs_of_large_tensors_have_the_bits_of_their_steps() {
    let setup = open();
    let mut replayed = 0;
    for seed in 0..4 {
        let mut rng = Rng(seed * 0x9e37_79b9 + 5);
        let lengths = [1 << 21, 3 << 20, 40, 16];
        let routine = Routine::from(random(&mut rng, &lengths, 60));
        let [a, c] = [0, 2].map(|at| setup.floats(&lengths[at..=at], at as u32));
        for run in 0..5 {
            let [b, d] = [1, 3].map(|at| setup.floats(&lengths[at..=at], run + 9));
            replayed += setup.runs(&routine, &[&a, &b, &c, &d]);
        }
    }
    assert!(replayed >= 6, "{replayed}");
}

/// A chain on a few elements with a large input on its way, whose last rows are read once more, and which is a result as well: or is
/// not where nothing but the chain's end is one.
fn fed(is_result: bool) -> Program<'static> {
    let small = [16];
    let mut steps: Vec<Step<'static>> = vec![unary("sin", 0, &small)]; // 2
    steps.extend((2..20).map(|of| unary("sin", of, &small)));
    let rows = View::Slice(vec![LARGE[0] - 17, 0], vec![16, 16], vec![1, 1]);
    steps.extend([
        Step::View(1, rows),                                      // 21
        Step::View(20, View::Broadcast(vec![16, 16], vec![1])),   // 22
        binary("add", [21, 22], &[16, 16]),                       // 23
        Step::View(1, View::Transpose(vec![1, 0])),               // 24
        Step::View(20, View::Broadcast(LARGE.to_vec(), vec![1])), // 25
        binary("multiply", [1, 25], &LARGE),                      // 26
    ]);
    steps.extend(
        [23].into_iter()
            .chain(27..200)
            .map(|of| unary("cos", of, &[16, 16])),
    );
    let results = if is_result {
        vec![26, 200, 24]
    } else {
        vec![26, 200]
    };
    Program::new(2, steps, results).unwrap()
}

#[test]
fn large_inputs_that_change_are_read_where_they_lie() {
    let setup = open();
    // Both run on, now and then, from another part of a larger tensor.
    let twice = setup.floats(&[2 * LARGE[0], LARGE[1]], 77);
    let part = twice.slice(&[LARGE[0] / 2, 0], &LARGE, &[1, 1]).unwrap();
    for (is_result, least) in [(false, 0), (true, 16 << 20)] {
        let routine = Routine::from(fed(is_result));
        let mut replayed = 0;
        for seed in 0..7 {
            let x = setup.floats(&[16], seed);
            let large = match seed == 5 {
                true => part.clone(),
                false => setup.floats(&LARGE, seed),
            };
            replayed += setup.runs(&routine, &[&x, &large]);
        }
        assert_eq!(replayed, 5);
        // A copy is made where it is a result too, so that this one is the program's own.
        let bytes = setup.runtime.stats().replays.bytes;
        assert!((least..least + (1 << 20)).contains(&bytes), "{bytes}");
    }
}

#[test]
fn what_is_not_large_is_read_where_it_lies_where_too_much_would_be_copied() {
    let setup = open();
    let middle = [1 << 18]; // 1 MiB
    let mut steps: Vec<Step<'static>> = (1..7).map(|of| unary("sin", of, &middle)).collect(); // 7 to 12
    steps.extend(
        [0].into_iter()
            .chain(13..28)
            .map(|of| unary("cos", of, &[16])),
    );
    let program = Program::new(7, steps, [7, 8, 9, 10, 11, 12, 28]).unwrap();
    let routine = Routine::from(program);
    let mut replayed = 0;
    for run in 0..6 {
        let small = setup.floats(&[16], run);
        let others: Vec<Tensor> = (1..7)
            .map(|at| setup.floats(&middle, 7 * run + at))
            .collect();
        let inputs: Vec<&Tensor> = [&small].into_iter().chain(&others).collect();
        replayed += setup.runs(&routine, &inputs);
    }
    assert_eq!(replayed, 4);
    assert!(setup.runtime.stats().replays.bytes < 1 << 16);
}
