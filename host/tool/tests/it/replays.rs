//! Programs that are recorded once and replayed: with the bits and errors that they have otherwise, whatever changes between runs.

mod faults;
mod large;
mod lasting;
mod profiled;
mod waves;

use crate::{folder::Folder, packs::copied};
use nx_vulkan_host::{
    Attr, Config, DType, DeviceChoice, Kind, MemoryBudget, Program, Request, Routine, Runtime,
    Step, Tensor, Value, View, device,
};
use std::{sync::Arc, thread};

const ROWS: u64 = 8;
const COLUMNS: u64 = 16;
/// Runs before one that is replayed: two to see what changes, one that records.
const FIRST: u32 = 3;

/// A registry by which nothing is timed.
const PACKS: &str = "schema = 1\n[defaults]\nmeasure = \"never\"\n";

/// One by which the host runs `tanh`.
const WITHOUT_TANH: &str = "schema = 1\n[defaults]\nmeasure = \"never\"\n[[deny]]\nop = \"tanh\"\npack = \"elementwise\"\nreason = \"a test\"\n";

struct Setup {
    runtime: Arc<Runtime>,
    folder: Folder,
}

fn open_with(registry: &str, replays: bool) -> Setup {
    open_by(registry, replays, MemoryBudget::Auto)
}

/// With the packs' kernels wherever they take a request, and so much memory.
fn open_in(memory: MemoryBudget) -> Setup {
    open_by(PACKS, true, memory)
}

fn open_by(registry: &str, replays: bool, memory: MemoryBudget) -> Setup {
    let device = std::env::var("NX_VULKAN_DEVICE").unwrap_or_else(|_| "llvmpipe".to_owned());
    let folder = Folder::new();
    let runtime = Runtime::open(&Config {
        device: DeviceChoice::parse(&device),
        packs: vec![copied(
            &folder,
            &["elementwise", "matmul", "indexing", "reduce"],
        )],
        registry: Some(folder.write("registry.toml", registry)),
        cache_dir: Some(folder.join("cache")),
        validation: true,
        replays: Some(replays),
        memory,
        ..Config::from_env()
    });
    Setup {
        runtime: runtime.unwrap(),
        folder,
    }
}

/// With the packs' kernels wherever they take a request.
fn open() -> Setup {
    open_in(MemoryBudget::Auto)
}

fn unary(op: &str, of: Value, shape: &[u64]) -> Step<'static> {
    let outputs = vec![(DType::F32, shape.to_vec())];
    Request::new(op.to_owned(), vec![of], outputs, &[]).into()
}

fn binary(op: &str, of: [Value; 2], shape: &[u64]) -> Step<'static> {
    let outputs = vec![(DType::F32, shape.to_vec())];
    Request::new(op.to_owned(), of.to_vec(), outputs, &[]).into()
}

/// Two layers of a net: inputs are x and the parameters w, b; results are what comes out, a view of what lies between, x itself, and what
/// lies between once more.
fn net() -> Program<'static> {
    let shape = [ROWS, COLUMNS];
    let dot = |a: Value, b: Value| {
        let attrs = [
            Attr::ints("batch_a", vec![]),
            Attr::ints("batch_b", vec![]),
            Attr::ints("contract_a", vec![1]),
            Attr::ints("contract_b", vec![0]),
        ];
        let outputs = vec![(DType::F32, shape.to_vec())];
        Step::from(Request::new("dot", vec![a, b], outputs, attrs.to_vec()))
    };
    let steps = [
        dot(0, 1),                                                            // 3
        binary("add", [3, 2], &shape),                                        // 4
        unary("tanh", 4, &shape),                                             // 5
        dot(5, 1),                                                            // 6
        binary("subtract", [6, 2], &shape),                                   // 7
        unary("exp", 7, &shape),                                              // 8
        binary("add", [8, 5], &shape),                                        // 9
        unary("sqrt", 9, &shape),                                             // 10
        binary("multiply", [10, 0], &shape),                                  // 11
        unary("negate", 11, &shape),                                          // 12
        Step::View(5, View::Transpose(vec![1, 0])),                           // 13
        Step::View(5, View::Slice(vec![1, 0], vec![2, COLUMNS], vec![3, 1])), // 14
    ];
    Program::new(3, steps, [12, 13, 0, 14]).unwrap()
}

impl Setup {
    fn floats(&self, shape: &[u64], seed: u32) -> Tensor {
        let count = shape.iter().product::<u64>() as u32;
        let float = |i: u32| ((i * 37 + seed * 101) % 251) as f32 / 125.5 - 1.0;
        let bytes: Vec<u8> = (0..count).flat_map(|i| float(i).to_ne_bytes()).collect();
        self.runtime.upload(DType::F32, shape, &bytes).unwrap()
    }

    fn bytes(&self, tensor: &Tensor) -> Vec<u8> {
        let plain = self.runtime.contiguous(tensor).unwrap();
        self.runtime.download(&plain, None).unwrap()
    }

    /// Runs a routine; its results have to be those of the program. How many runs were replayed.
    #[track_caller]
    fn runs(&self, routine: &Routine, inputs: &[&Tensor]) -> u64 {
        let before = self.runtime.stats().replays.runs;
        let ran = self.runtime.run_routine(routine, inputs).unwrap();
        let replayed = self.runtime.stats().replays.runs - before;
        let plain = self.runtime.run_program(routine.program(), inputs).unwrap();
        assert_eq!(ran.served_by, plain.served_by);
        assert_eq!(ran.results.len(), plain.results.len());
        for (ran, plain) in ran.results.iter().zip(&plain.results) {
            assert_eq!((ran.dtype(), ran.shape()), (plain.dtype(), plain.shape()));
            assert_eq!(self.bytes(ran), self.bytes(plain));
        }
        assert_eq!(device::validation_messages(), [""; 0]);
        replayed
    }

    fn parameters(&self, seed: u32) -> [Tensor; 2] {
        [
            self.floats(&[COLUMNS, COLUMNS], seed),
            self.floats(&[COLUMNS], seed + 1),
        ]
    }
}

#[test]
fn what_is_replayed_has_the_bits_of_what_is_run() {
    let setup = open();
    let routine = Routine::from(net());
    let [w, b] = setup.parameters(5);
    for run in 0..10 {
        let x = setup.floats(&[ROWS, COLUMNS], run);
        let replayed = setup.runs(&routine, &[&x, &w, &b]);
        assert_eq!(replayed, u64::from(run + 1 >= FIRST), "run {run}");
    }
    let stats = setup.runtime.stats();
    assert_eq!((stats.replays.programs, stats.fallbacks), (1, 0));
    assert!(stats.replays.bytes > 0 && stats.replays.bytes < 1 << 20);
    let of = |op: &str| {
        let served = stats.served.iter().filter(|row| row.0 == op);
        served.map(|row| row.2).sum::<u64>()
    };
    assert_eq!([of("dot"), of("tanh")], [40, 20], "each run and its double");
    drop(routine);
    let after = setup.runtime.stats();
    assert_eq!((after.replays.programs, after.replays.bytes), (0, 0));
    let given_back = stats.memory.in_use - after.memory.in_use;
    assert!(given_back >= stats.replays.bytes / 2, "{given_back}");
}

#[test]
fn results_stay_what_they_were_when_the_next_run_comes() {
    let setup = open();
    let routine = Routine::from(net());
    let [w, b] = setup.parameters(1);
    let xs: Vec<Tensor> = (0..8)
        .map(|seed| setup.floats(&[ROWS, COLUMNS], seed))
        .collect();
    let ran: Vec<Vec<Tensor>> = xs
        .iter()
        .map(|x| {
            setup
                .runtime
                .run_routine(&routine, &[x, &w, &b])
                .unwrap()
                .results
        })
        .collect();
    assert_eq!(setup.runtime.stats().replays.runs, 6);
    for (x, results) in xs.iter().zip(&ran) {
        let plain = setup.runtime.run_program(&net(), &[x, &w, &b]).unwrap();
        for (result, plain) in results.iter().zip(&plain.results) {
            assert_eq!(setup.bytes(result), setup.bytes(plain));
        }
    }
    // What came out goes in again.
    let mut x = xs[0].clone();
    for _ in 0..6 {
        assert_eq!(setup.runs(&routine, &[&x, &w, &b]), 1);
        x = setup
            .runtime
            .run_routine(&routine, &[&x, &w, &b])
            .unwrap()
            .results[0]
            .clone();
    }
}

#[test]
fn other_parameters_are_other_results_and_are_recorded_anew() {
    let setup = open();
    let routine = Routine::from(net());
    let mut parameters = setup.parameters(1);
    let x = setup.floats(&[ROWS, COLUMNS], 9);
    let replayed: Vec<u64> = (0..12)
        .map(|run| {
            if run == 5 {
                parameters = setup.parameters(2);
            }
            let [w, b] = &parameters;
            setup.runs(&routine, &[&x, w, b])
        })
        .collect();
    assert_eq!(replayed, [0, 0, 1, 1, 1, 0, 0, 1, 1, 1, 1, 1]);
    // Two that take turns are inputs that change.
    let (one, two) = (setup.parameters(1), setup.parameters(2));
    let turns: Vec<u64> = (0..12)
        .map(|run| {
            let [w, b] = [&one, &two][run % 2];
            setup.runs(&routine, &[&x, w, b])
        })
        .collect();
    assert_eq!(turns[turns.len() - 4..], [1, 1, 1, 1], "{turns:?}");
    // Another layout of the same numbers is another plan.
    let turned = setup
        .floats(&[COLUMNS, ROWS], 3)
        .transpose(&[1, 0])
        .unwrap();
    assert_eq!(setup.runs(&routine, &[&turned, &one[0], &one[1]]), 0);
    assert_eq!(setup.runs(&routine, &[&x, &one[0], &one[1]]), 0);
}

#[test]
fn parameters_live_no_longer_for_what_was_recorded() {
    let setup = open();
    let record = || {
        let routine = Routine::from(net());
        let [w, b] = setup.parameters(1);
        for seed in 0..=FIRST {
            setup.runs(&routine, &[&setup.floats(&[ROWS, COLUMNS], seed), &w, &b]);
        }
        let before = setup.runtime.stats().memory.in_use;
        drop((w, b));
        let given_back = before - setup.runtime.stats().memory.in_use;
        assert!(given_back >= 4 * COLUMNS * COLUMNS, "{given_back}");
        routine
    };
    let _first = record();
    assert_eq!(setup.runtime.stats().replays.programs, 1);
    // What was recorded for tensors that are gone is given up when another program is recorded.
    let _second = record();
    assert_eq!(setup.runtime.stats().replays.programs, 1);
}

#[test]
fn parts_of_larger_tensors_are_inputs_like_others() {
    let setup = open();
    let routine = Routine::from(net());
    let [w, b] = setup.parameters(1);
    let all = setup.floats(&[100, ROWS, COLUMNS], 4);
    let part = |index: u64| {
        let slice = all.slice(&[index, 0, 0], &[1, ROWS, COLUMNS], &[1; 3]);
        slice.unwrap().squeeze(&[0]).unwrap()
    };
    let replayed: u64 = (0..20)
        .map(|at| setup.runs(&routine, &[&part(at * 5), &w, &b]))
        .sum();
    assert_eq!(replayed, 18);
}

#[test]
fn what_the_host_runs_is_not_recorded_and_neither_are_short_programs() {
    let setup = open_with(WITHOUT_TANH, true);
    let [w, b] = setup.parameters(1);
    let x = setup.floats(&[ROWS, COLUMNS], 9);
    let routine = Routine::from(net());
    let short = Routine::from(Program::new(1, [unary("exp", 0, &[ROWS, COLUMNS])], [1]).unwrap());
    for _ in 0..6 {
        assert_eq!(setup.runs(&routine, &[&x, &w, &b]), 0);
        assert_eq!(setup.runs(&short, &[&x]), 0);
    }
    let off = open_with(PACKS, false);
    let [w, b] = off.parameters(1);
    let x = off.floats(&[ROWS, COLUMNS], 9);
    for _ in 0..6 {
        assert_eq!(off.runs(&routine, &[&x, &w, &b]), 0);
    }
}

#[test]
fn a_new_table_and_a_trim_give_up_what_was_recorded() {
    let setup = open();
    let routine = Routine::from(net());
    let [w, b] = setup.parameters(1);
    let x = setup.floats(&[ROWS, COLUMNS], 9);
    let run = |times: usize| {
        let replayed = (0..times).map(|_| setup.runs(&routine, &[&x, &w, &b]));
        replayed.collect::<Vec<_>>()
    };
    assert_eq!(run(4), [0, 0, 1, 1]);
    setup.runtime.trim().unwrap();
    assert_eq!(setup.runtime.stats().replays.programs, 0);
    assert_eq!(run(4), [0, 0, 1, 1]);
    setup.folder.write("registry.toml", WITHOUT_TANH);
    assert!(!setup.runtime.reload().is_empty());
    assert_eq!(setup.runtime.stats().replays.programs, 0);
    assert_eq!(run(4), [0; 4], "the host has a part in it");
    setup.folder.write("registry.toml", PACKS);
    assert!(!setup.runtime.reload().is_empty());
    assert_eq!(run(4), [0, 0, 1, 1]);
}

#[test]
fn many_threads_run_one_routine() {
    let setup = open();
    let routine = Routine::from(net());
    let [w, b] = setup.parameters(1);
    thread::scope(|scope| {
        for seed in 0..6 {
            let (setup, routine, w, b) = (&setup, &routine, &w, &b);
            scope.spawn(move || {
                for run in 0..25 {
                    let x = setup.floats(&[ROWS, COLUMNS], seed * 100 + run);
                    let ran = setup.runtime.run_routine(routine, &[&x, w, b]).unwrap();
                    let plain = setup
                        .runtime
                        .run_program(routine.program(), &[&x, w, b])
                        .unwrap();
                    for (ran, plain) in ran.results.iter().zip(&plain.results) {
                        assert_eq!(setup.bytes(ran), setup.bytes(plain));
                    }
                }
            });
        }
    });
    let replays = setup.runtime.stats().replays;
    assert!(replays.runs > 20, "{replays:?}");
    assert_eq!(device::validation_messages(), [""; 0]);
}

#[test]
fn programs_of_many_batches_are_replayed_in_order() {
    let setup = open();
    // Each step needs the one before it, and every eighth an early one too.
    let shape = [COLUMNS];
    let steps = (0..300u32).map(|step| match step % 8 {
        7 => binary("add", [step, step / 2], &shape),
        odd if odd % 2 == 1 => unary("cos", step, &shape),
        _ => unary("sin", step, &shape),
    });
    let program = Program::new(1, steps, [300, 150, 299]).unwrap();
    let routine = Routine::from(program);
    let replayed: u64 = (0..6)
        .map(|seed| setup.runs(&routine, &[&setup.floats(&shape, seed)]))
        .sum();
    assert_eq!(replayed, 4);
    // All steps but a few share their memory.
    assert!(setup.runtime.stats().replays.bytes < 100 * 256);
}
