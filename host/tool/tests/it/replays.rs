//! Programs that are recorded once and replayed: with the bits and errors that they have otherwise, whatever changes between runs.

use crate::{folder::Folder, packs::copied};
use nx_vulkan_host::{
    Attr, Config, DType, DeviceChoice, Kind, Program, Request, Routine, Runtime, Step, Tensor,
    Value, View, device,
};
use std::{sync::Arc, thread};

const ROWS: u64 = 8;
const COLUMNS: u64 = 16;
/// Runs before one that is replayed: two to see what changes, one that records.
const FIRST: u32 = 3;

struct Setup {
    runtime: Arc<Runtime>,
    folder: Folder,
}

fn open_with(registry: &str, replays: bool) -> Setup {
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
        ..Config::from_env()
    });
    Setup {
        runtime: runtime.unwrap(),
        folder,
    }
}

/// With the packs' kernels wherever they take a request.
fn open() -> Setup {
    open_with("schema = 1\n[defaults]\nmeasure = \"never\"\n", true)
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
fn an_index_that_is_out_of_bounds_is_told_by_what_was_made_of_it_alone() {
    let setup = open();
    let shape = [4, COLUMNS];
    let take = Request::new(
        "gather",
        vec![1, 0],
        vec![(DType::F32, shape.to_vec())],
        [Attr::ints("axes", vec![0])].to_vec(),
    );
    let mut steps: Vec<Step<'static>> = vec![take.into()];
    // Two chains that do not meet: of the rows (3) and of x (2).
    for (of, op) in [
        (3, "exp"),
        (2, "exp"),
        (4, "negate"),
        (5, "negate"),
        (6, "tanh"),
        (7, "tanh"),
        (8, "abs"),
        (9, "abs"),
    ] {
        steps.push(unary(op, of, &shape));
    }
    let program = Program::new(3, steps, [10, 11]).unwrap();
    let routine = Routine::from(program);
    let table = setup.floats(&[50, COLUMNS], 1);
    let x = setup.floats(&shape, 2);
    let indices = |indices: [i32; 4]| {
        let bytes: Vec<u8> = indices.iter().flat_map(|i| i.to_ne_bytes()).collect();
        setup.runtime.upload(DType::S32, &[4, 1], &bytes).unwrap()
    };
    let mut wrong = Vec::new();
    for run in 0..8 {
        let right = indices([run, 49 - run, 0, 7]);
        let replayed = setup.runs(&routine, &[&right, &table, &x]);
        assert_eq!(replayed, u64::from(run >= 2));
        if run >= 4 {
            let index = indices([run, 50, 0, 7]);
            wrong.push(
                setup
                    .runtime
                    .run_routine(&routine, &[&index, &table, &x])
                    .unwrap()
                    .results,
            );
        }
    }
    assert_eq!(setup.runtime.stats().replays.runs, 10);
    for results in &wrong {
        let error = setup.runtime.download(&results[0], None).unwrap_err();
        assert_eq!(error.kind(), Kind::BadInput);
        assert!(
            error.to_string().contains("an index is out of bounds"),
            "{error}"
        );
        setup.runtime.download(&results[1], None).unwrap();
    }
    // What such a result goes into says so as well.
    let routine = Routine::from(net());
    let [w, b] = setup.parameters(1);
    let rows = |tensor: &Tensor| tensor.broadcast(&[2, 4, COLUMNS], &[1, 2]).unwrap();
    let tall = |tensor: &Tensor| {
        setup
            .runtime
            .reshape(&rows(tensor), &[ROWS, COLUMNS])
            .unwrap()
    };
    for (run, results) in wrong.iter().enumerate() {
        setup.runs(&routine, &[&tall(&x), &w, &b]);
        let bad = tall(&results[0]);
        let ran = setup
            .runtime
            .run_routine(&routine, &[&bad, &w, &b])
            .unwrap();
        assert!(
            setup.runtime.download(&ran.results[0], None).is_err(),
            "run {run}"
        );
    }
    assert!(setup.runtime.stats().replays.runs > 12);
}

#[test]
fn what_the_host_runs_is_not_recorded_and_neither_are_short_programs() {
    let text = "schema = 1\n[defaults]\nmeasure = \"never\"\n[[deny]]\nop = \"tanh\"\npack = \"elementwise\"\nreason = \"a test\"\n";
    let setup = open_with(text, true);
    let [w, b] = setup.parameters(1);
    let x = setup.floats(&[ROWS, COLUMNS], 9);
    let routine = Routine::from(net());
    let short = Routine::from(Program::new(1, [unary("exp", 0, &[ROWS, COLUMNS])], [1]).unwrap());
    for _ in 0..6 {
        assert_eq!(setup.runs(&routine, &[&x, &w, &b]), 0);
        assert_eq!(setup.runs(&short, &[&x]), 0);
    }
    let off = open_with("schema = 1\n[defaults]\nmeasure = \"never\"\n", false);
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
    let text = "schema = 1\n[defaults]\nmeasure = \"never\"\n[[deny]]\nop = \"tanh\"\npack = \"elementwise\"\nreason = \"a test\"\n";
    setup.folder.write("registry.toml", text);
    assert!(!setup.runtime.reload().is_empty());
    assert_eq!(setup.runtime.stats().replays.programs, 0);
    assert_eq!(run(4), [0; 4], "the host has a part in it");
    setup.folder.write(
        "registry.toml",
        "schema = 1\n[defaults]\nmeasure = \"never\"\n",
    );
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

#[test]
fn results_of_one_op_are_told_apart_by_what_each_is_made_of() {
    let setup = open();
    let shape = [4, COLUMNS];
    let text = "exp(i1):f32; add(%0, i0):f32; (%0, %1)";
    let both = vec![(DType::F32, shape.to_vec()); 2];
    let attrs = vec![Attr::text("expression", text)];
    let mut steps: Vec<Step<'static>> = vec![Request::new("fused", vec![0, 1], both, attrs).into()];
    for of in 2..10 {
        steps.push(unary("tanh", of, &shape));
    }
    let routine = Routine::from(Program::new(2, steps, [10, 11]).unwrap());
    let taken = |index: i32| {
        let table = setup.floats(&[50, COLUMNS], 1);
        let bytes: Vec<u8> = [1, index, 2, 3]
            .iter()
            .flat_map(|i: &i32| i.to_ne_bytes())
            .collect();
        let indices = setup.runtime.upload(DType::S32, &[4, 1], &bytes).unwrap();
        let outputs = [(DType::F32, shape.to_vec())];
        let attrs = [Attr::ints("axes", vec![0])];
        let inputs = [&table, &indices];
        let request = Request::new("gather", &inputs, &outputs, &attrs);
        setup.runtime.run(&request).unwrap().remove(0)
    };
    let x = setup.floats(&shape, 2);
    for run in 0..6 {
        let (good, bad) = (taken(7), taken(50));
        setup.runs(&routine, &[&good, &x]);
        let ran = setup.runtime.run_routine(&routine, &[&bad, &x]).unwrap();
        setup.runtime.download(&ran.results[0], None).unwrap();
        assert!(
            setup.runtime.download(&ran.results[1], None).is_err(),
            "run {run}"
        );
    }
    assert!(setup.runtime.stats().replays.runs >= 9);
}

#[test]
fn a_program_that_cannot_be_recorded_leaves_nothing_behind() {
    let text = "schema = 1\n[defaults]\nmeasure = \"never\"\n[[deny]]\nop = \"tanh\"\npack = \"elementwise\"\nreason = \"a test\"\n";
    let setup = open_with(text, true);
    let shape = [4, COLUMNS];
    let outputs = vec![(DType::F32, shape.to_vec())];
    let attrs = vec![Attr::ints("axes", vec![0])];
    let mut steps: Vec<Step<'static>> =
        vec![Request::new("gather", vec![0, 1], outputs, attrs).into()];
    steps.extend((2..9).map(|of| unary("negate", of, &shape)));
    // The host runs it, behind an op with a word.
    steps.push(unary("tanh", 9, &shape));
    let routine = Routine::from(Program::new(2, steps, [10]).unwrap());
    let table = setup.floats(&[50, COLUMNS], 1);
    let bytes: Vec<u8> = [1i32, 2, 3, 4]
        .iter()
        .flat_map(|i| i.to_ne_bytes())
        .collect();
    let indices = setup.runtime.upload(DType::S32, &[4, 1], &bytes).unwrap();
    for _ in 0..6 {
        assert_eq!(setup.runs(&routine, &[&table, &indices]), 0);
    }
    // Buffers that words were in are given out again, and are done with.
    let small = setup.floats(&[3], 5);
    let expected = setup.bytes(&small);
    for _ in 0..200 {
        assert_eq!(setup.bytes(&small), expected);
    }
    setup.runtime.trim().unwrap();
    assert_eq!(setup.bytes(&small), expected);
}

#[test]
fn what_the_host_writes_in_place_is_read_by_the_next_run() {
    let folder = Folder::new();
    folder.write(
        "packs/bad.so",
        std::fs::read(crate::packs::built("bad")).unwrap(),
    );
    let runtime = Runtime::open(&Config {
        packs: vec![folder.join("packs")],
        registry: Some(folder.write(
            "registry.toml",
            "schema = 1\n[defaults]\nmeasure = \"never\"\n",
        )),
        cache_dir: Some(folder.join("cache")),
        validation: true,
        replays: Some(true),
        ..Config::from_env()
    })
    .unwrap();
    let copy = |of: Value| -> Step<'static> {
        Request::new("derives", vec![of], vec![(DType::U32, vec![1000])], &[]).into()
    };
    let program = Program::new(1, (0..8).map(copy), [8]).unwrap();
    let routine = Routine::from(program);
    let words =
        |first: u32| -> Vec<u8> { (first..first + 1000).flat_map(u32::to_ne_bytes).collect() };
    let given = runtime.upload(DType::U32, &[1000], &words(0)).unwrap();
    let (x, address) = runtime.expose(&given).unwrap();
    let run = |x: &Tensor| {
        let ran = runtime.run_routine(&routine, &[x]).unwrap();
        runtime.download(&ran.results[0], None).unwrap()
    };
    // Not lent, so that what is made of it is kept.
    for _ in 0..6 {
        assert!(run(&given) == words(0));
    }
    for first in 1..6 {
        runtime.sync().unwrap();
        let bytes = words(first * 100);
        // SAFETY: the memory is that of `x`, as long as its bytes, and nothing runs.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), address as *mut u8, bytes.len()) };
        assert!(run(&x) == bytes, "write {first}");
    }
    let other = runtime.upload(DType::U32, &[1000], &words(7)).unwrap();
    for _ in 0..6 {
        assert!(run(&other) == words(7));
    }
    assert!(runtime.stats().replays.runs > 3);
    let (x, address) = runtime.expose(&other).unwrap();
    let bytes = words(9);
    runtime.sync().unwrap();
    // SAFETY: as above.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), address as *mut u8, bytes.len()) };
    assert!(run(&x) == bytes, "what was recorded before it was lent");
    assert_eq!(device::validation_messages(), [""; 0]);
}
