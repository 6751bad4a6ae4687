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
    let wide = [DType::F64, DType::S32, DType::U32];
    let narrow = [DType::F32, DType::F16, DType::S32];
    let all = wide.map(|from| narrow.map(|by| wide.map(|to| [from, by, to])));
    for [from, by, to] in all.into_iter().flatten().flatten() {
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
