//! Conversions of fused programs.

use super::{download, op, open, upload};
use crate::folder::Folder;
use nx_vulkan_host::{
    DType, Program,
    fusion::{Input, fuse},
};
use nx_vulkan_ops::values::{Rng, Values};

/// A number that became an f32 on the way has the digits of one, whatever it becomes next.
#[test]
fn conversions_of_an_expression_round_each_time() {
    let folder = Folder::new();
    let runtime = open(&folder, &["elementwise"], "");
    let (mut rng, shape) = (Rng(29), [4096]);
    let mut unlike = Vec::new();
    let [f64, f32] = [DType::F64, DType::F32];
    let some = [f64, DType::S32, DType::U32];
    let long = [DType::S64, DType::U64];
    let of = |wide: &[DType], narrow: DType| {
        let pairs = wide
            .iter()
            .flat_map(|from| wide.iter().map(move |to| (*from, *to)));
        pairs
            .map(|(from, to)| [from, narrow, to])
            .collect::<Vec<_>>()
    };
    for [from, by, to] in [of(&some, f32), of(&some, DType::F16), of(&long, f64)].concat() {
        let x = upload(&runtime, &(from, shape.to_vec()), &mut rng, Values::Finite);
        let equal = (DType::U8, "equal");
        let (dtype, name) = if from == to { equal } else { (to, "max") };
        let steps = [
            op("as_type", &[0], by, &shape),
            op("as_type", &[1], to, &shape),
            // The narrow one meets the wide one, which converts it.
            op(name, &[1, 0], dtype, &shape),
        ];
        let program = Program::new(1, steps, [2, 3]).unwrap();
        let input = Input {
            spec: (from, shape.to_vec()),
            element: None,
        };
        let fused = fuse(program.clone(), &[input]).unwrap();
        assert_eq!(fused.steps().len(), 1);
        let [apart, one] = [&program, &fused].map(|program| {
            let ran = runtime.run_program(program, &[&x]).unwrap().results;
            ran.iter()
                .map(|result| download(&runtime, result))
                .collect::<Vec<_>>()
        });
        if apart != one {
            unlike.push(format!("{from} {by} {to}"));
        }
    }
    assert_eq!(unlike, [""; 0]);
}
