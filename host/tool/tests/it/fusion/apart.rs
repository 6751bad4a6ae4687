//! Fused programs that no pack takes as one: their ops run one by one, and say who ran them and what has no result.

use super::{download, op, open, random_programs};
use crate::folder::Folder;
use nx_vulkan_host::{
    DType, Kind, Program, Runtime, Tensor, Value,
    fusion::{Input, fuse},
};

#[test]
fn what_no_pack_takes_as_one_runs_one_by_one() {
    let folder = Folder::new();
    let denied = "[[deny]]\npack = \"elementwise\"\nop = \"fused\"\nreason = \"a test\"\n";
    let runtime = open(&folder, &["elementwise", "reduce"], denied);
    random_programs(&runtime, 40..46);
    let served = runtime.stats().served;
    let by = |op: &str| -> Vec<&str> {
        let rows = served.iter().filter(|row| row.0 == op);
        rows.map(|row| &*row.1).collect()
    };
    assert_eq!(by("fused"), ["split"]);
    assert_eq!(by("add"), ["elementwise/add"]);
    assert_eq!(runtime.stats().fallbacks, 0);
}

#[test]
fn what_runs_one_by_one_does_not_wait() {
    let folder = Folder::new();
    let denied = "[[deny]]\npack = \"elementwise\"\nop = \"fused\"\nreason = \"a test\"\n";
    let runtime = open(&folder, &["elementwise"], denied);
    let (inputs, program) = chain();
    let fused = fuse(program, &inputs).unwrap();
    assert_eq!(fused.steps().len(), 1);
    let operands = [[7, -7, 0, 1], [2, 2, 5, -1]].map(|values| s32s(&runtime, values));
    let operands: Vec<&Tensor> = operands.iter().collect();
    // The first time plans and compiles.
    assert!(runtime.try_run_program(&fused, &operands).unwrap().is_err());
    let first = runtime.run_program(&fused, &operands).unwrap();
    let again = runtime.try_run_program(&fused, &operands).unwrap();
    let again = again.expect("a run that does not wait");
    for (first, again) in first.results.iter().zip(&again.results) {
        assert_eq!(download(&runtime, first), download(&runtime, again));
    }
    let served = runtime.stats().served;
    let split = served.iter().find(|row| row.1 == "split");
    assert_eq!(split.map(|row| row.2), Some(2));
}

fn chain() -> (Vec<Input>, Program<'static>) {
    let s32s = |name, inputs: &[Value]| op(name, inputs, DType::S32, &[4]);
    let steps = [
        s32s("add", &[0, 1]),
        s32s("quotient", &[2, 1]),
        s32s("negate", &[3]),
    ];
    let input = Input {
        spec: (DType::S32, vec![4]),
        element: None,
    };
    (vec![input; 2], Program::new(2, steps, [4, 2]).unwrap())
}

fn s32s(runtime: &Runtime, values: [i32; 4]) -> Tensor {
    let bytes: Vec<u8> = values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect();
    runtime.upload(DType::S32, &[4], &bytes).unwrap()
}

#[test]
fn who_falls_back_is_told_by_the_places_of_the_ops() {
    let folder = Folder::new();
    let runtime = open(&folder, &["reduce"], "");
    let (inputs, program) = chain();
    let fused = fuse(program, &inputs).unwrap();
    assert_eq!(fused.steps().len(), 1);
    let x = s32s(&runtime, [1, 2, 3, 4]);
    let ran = runtime.run_program(&fused, &[&x, &x]).unwrap();
    assert_eq!(&ran.served_by[..], ["split".into()]);
    assert_eq!(ran.fallbacks[..], [0, 1, 2]);
}

#[test]
fn what_has_no_result_is_told_of_its_op_by_who_reads_what_depends_on_it() {
    let folder = Folder::new();
    let runtime = open(&folder, &["elementwise"], "");
    let (inputs, program) = chain();
    let fused = fuse(program.clone(), &inputs).unwrap();
    let x = s32s(&runtime, [1, 2, 3, 4]);
    let zero = s32s(&runtime, [1, 2, 0, 4]);
    let told = [&program, &fused].map(|program| {
        let ran = runtime.run_program(program, &[&x, &zero]).unwrap();
        // The sum has a result wherever the quotient has none.
        assert_eq!(download(&runtime, &ran.results[1])[8..12], [3, 0, 0, 0]);
        let error = runtime.download(&ran.results[0], None).unwrap_err();
        assert_eq!(error.kind(), Kind::Arithmetic);
        error.to_string()
    });
    assert_eq!(told[0], told[1]);
    assert!(
        told[0].contains("quotient(s32[4], s32[4]) -> s32[4]"),
        "{}",
        told[0]
    );
}
