//! What goes wrong beside replays: indices that are out of bounds, programs that cannot be recorded, memory that others write.

use super::*;

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

/// More of them than share a buffer of words.
#[test]
fn each_of_many_indices_is_told_by_what_was_made_of_it_alone() {
    const MANY: u32 = 37;
    let setup = open();
    let shape = [4, COLUMNS];
    let outputs = vec![(DType::F32, shape.to_vec())];
    let attrs = vec![Attr::ints("axes", vec![0])];
    let mut steps: Vec<Step<'static>> = Vec::new();
    let mut results = Vec::new();
    for index in 1..=MANY {
        let first = MANY + 1 + steps.len() as u32;
        steps.push(Request::new("gather", vec![0, index], outputs.clone(), attrs.clone()).into());
        // As many ops as pay for the copies of what changes.
        steps.extend((0..4).map(|of| unary("negate", first + of, &shape)));
        results.push(first + 4);
    }
    let program = Program::new(MANY as usize + 1, steps, results).unwrap();
    let routine = Routine::from(program);
    let table = setup.floats(&[50, COLUMNS], 1);
    let indices = |last: i32| {
        let bytes: Vec<u8> = [1, 2, 3, last]
            .into_iter()
            .flat_map(i32::to_ne_bytes)
            .collect();
        setup.runtime.upload(DType::S32, &[4, 1], &bytes).unwrap()
    };
    for bad in [0, 0, 0, 15, 16, 31, 32, MANY - 1] {
        let all = (0..MANY).map(|place| indices(if place == bad { 50 } else { 49 }));
        let all: Vec<Tensor> = all.collect();
        let inputs: Vec<&Tensor> = std::iter::once(&table).chain(&all).collect();
        let results = setup
            .runtime
            .run_routine(&routine, &inputs)
            .unwrap()
            .results;
        for (place, result) in (0..).zip(&results) {
            let read = setup.runtime.download(result, None);
            assert_eq!(read.is_err(), place == bad, "{place} of {bad}: {read:?}");
        }
    }
    let replayed = setup.runtime.stats().replays.runs;
    assert!(replayed >= 5, "{replayed}");
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
    let setup = open_with(WITHOUT_TANH, true);
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
        registry: Some(folder.write("registry.toml", PACKS)),
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

#[test]
fn what_is_recorded_goes_before_memory_is_short() {
    let setup = open_in(MemoryBudget::Bytes(100 << 20));
    let shape = [1 << 19];
    let steps = (0..12).map(|of| unary(["sin", "cos"][of as usize % 2], of, &shape));
    let routine = Routine::from(Program::new(1, steps, [12]).unwrap());
    let input = setup.floats(&shape, 9);
    let runs = |times: usize| {
        (0..times)
            .map(|_| setup.runs(&routine, &[&input]))
            .sum::<u64>()
    };
    let replayed = runs(4);
    let recorded = setup.runtime.stats().replays;
    assert_eq!((replayed, recorded.programs), (2, 1));
    assert!(recorded.bytes >= 4 << 20, "{recorded:?}");
    let mut all = Vec::new();
    let error = loop {
        match setup.runtime.zeros(DType::U8, &[1 << 21]) {
            Ok(tensor) => all.push(tensor),
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), Kind::OutOfMemory);
    assert_eq!(
        setup.runtime.stats().replays.programs,
        0,
        "it was given up first"
    );
    let error = setup.runtime.run_routine(&routine, &[&input]).unwrap_err();
    assert_eq!(error.kind(), Kind::OutOfMemory, "{error}");
    // With room for a run op by op, and not for more, it runs that way.
    all.truncate(all.len() - 3);
    for _ in 0..6 {
        setup.runtime.run_routine(&routine, &[&input]).unwrap();
    }
    drop(all);
    assert!(runs(12) >= 6, "{:?}", setup.runtime.stats().replays);
    assert_eq!(device::validation_messages(), [""; 0]);
}
