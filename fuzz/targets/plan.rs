//! A plan as a hostile pack may give it: what passes the check stays in its buffers and within the device's limits.

#![no_main]

use libfuzzer_sys::{
    arbitrary::{Arbitrary, Result, Unstructured},
    fuzz_target,
};
use nx_vulkan_abi::{
    Access, BufArg, DeviceInfo, Dispatch, Features, Plan, ShaderVariant, Slot, SpecConst,
    plan::MAX_DISPATCHES,
};
use nx_vulkan_host::fuzzing;
use std::sync::{Arc, LazyLock};

/// Shaders whose plans can pass.
static SHADERS: LazyLock<Vec<Arc<[u32]>>> = LazyLock::new(|| {
    let texts = [
        "layout(local_size_x = 64) in;\nlayout(set = 0, binding = 0) buffer A { int a[]; };\nvoid main() { a[0] = 1; }",
        "layout(local_size_x_id = 1, local_size_y_id = 2) in;\nlayout(set = 0, binding = 0) buffer A { int a[]; };\n\
         layout(set = 0, binding = 1) buffer B { int b[]; };\nvoid main() { a[0] = b[0]; }",
    ];
    let compile = |text| fuzzing::compile(&format!("#version 450\n{text}\n"));
    texts
        .map(|text| compile(text).expect("the shader compiles"))
        .into()
});

#[derive(Debug)]
struct Case {
    inputs: Vec<u64>,
    outputs: Vec<u64>,
    plan: Plan,
    /// SPIR-V of the pack's own.
    module: Vec<u32>,
    features: u64,
}

/// One of `likely`, or now and then anything.
fn number(u: &mut Unstructured<'_>, likely: &[u64]) -> Result<u64> {
    match u.ratio(15, 16)? {
        true => u.choose(likely).copied(),
        false => u64::arbitrary(u),
    }
}

fn word(u: &mut Unstructured<'_>, likely: &[u64]) -> Result<u32> {
    number(u, likely).map(|number| number as u32)
}

fn list<T>(
    u: &mut Unstructured<'_>,
    most: usize,
    mut one: impl FnMut(&mut Unstructured<'_>) -> Result<T>,
) -> Result<Vec<T>> {
    let count = u.int_in_range(0..=most)?;
    (0..count).map(|_| one(u)).collect()
}

impl<'a> Arbitrary<'a> for Case {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Case> {
        const SIZES: &[u64] = &[4, 64, 256, 512, 1 << 20, 1 << 28, 0];
        let sizes = |u: &mut Unstructured<'a>| list(u, 3, |u| number(u, SIZES));
        let plan = Plan {
            shaders: list(u, 4, |u| {
                Ok(ShaderVariant {
                    file: u.choose(&["0", "1", "2", "3"])?.to_string().into(),
                    bindings: word(u, &[1, 2, 2, 16, 17])?,
                    push_bytes: word(u, &[0, 0, 4, 8, 128, 132])?,
                    subgroup_size: word(u, &[0, 0, 32])?,
                    ..ShaderVariant::default()
                })
            })?
            .into(),
            scratch: list(u, 3, |u| number(u, &[64, 256, 1 << 20, 0, 1 << 40]))?.into(),
            params: Vec::arbitrary(u)?.into(),
            steps: list(u, 6, |u| {
                let push = u.choose(&[0, 0, 4, 8, 128, 3])?;
                Ok(Dispatch {
                    shader: word(u, &[0, 1, 2, 3])?,
                    groups: [
                        word(u, &[1, 7, 65535, 0])?,
                        word(u, &[1, 2])?,
                        word(u, &[1])?,
                    ],
                    spec: list(u, 3, |u| {
                        Ok(SpecConst {
                            id: word(u, &[1, 2, 3])?,
                            value: word(u, &[1, 8, 64, 1 << 16, 0])?,
                        })
                    })?
                    .into(),
                    args: list(u, 3, |u| {
                        Ok(BufArg {
                            slot: Slot(word(u, &[1, 2, 2, 3, 4, 5, 0])?),
                            index: word(u, &[0, 0, 1, 2])?,
                            offset: number(u, &[0, 0, 16, 256, 1 << 20])?,
                            len: number(u, &[0, 0, 4, 240, 256, 1 << 27])?,
                            access: Access(word(u, &[1, 2, 3, 2, 0, 4])?),
                            spare: word(u, &[0, 0, 0, 1])?,
                        })
                    })?
                    .into(),
                    push: vec![0; *push].into(),
                    spare: [
                        number(u, &[0, 0, 1 << 32 | 2, 2 << 32 | 5, 1 << 32 | 9999, 1])?,
                        number(u, &[0, 0, 1 << 32 | 1, 2 << 32 | 3, 7])?,
                    ],
                })
            })?
            .into(),
            ..Plan::default()
        };
        Ok(Case {
            inputs: sizes(u)?,
            outputs: sizes(u)?,
            plan,
            features: u64::arbitrary(u)?,
            module: Vec::arbitrary(u)?,
        })
    }
}

fuzz_target!(|case: Case| {
    let limits = limits(Features(case.features));
    let mut sources = SHADERS.clone();
    sources.push(spirv(&case.module, false).into());
    sources.push(spirv(&case.module, true).into());
    let plan = &case.plan;
    let Ok(steps) = fuzzing::plan(plan, &case.inputs, &case.outputs, &limits, &sources) else {
        return;
    };
    let params = [plan.params.len() as u64];
    let reads_counts = |step: &Dispatch| step.args.iter().any(|arg| arg.spare != 0);
    let counts = match plan.steps.iter().any(reads_counts) {
        true => vec![256 * plan.steps.len() as u64],
        false => Vec::new(),
    };
    let buffers: Vec<u64> = [
        &case.inputs[..],
        &case.outputs[..],
        plan.scratch.as_slice(),
        &counts,
        &params,
    ]
    .concat();
    let mut written = vec![0; buffers.len()];
    let read_only = |buffer| buffer < case.inputs.len() || buffer == buffers.len() - 1;
    // Each dispatch that reads its counts comes with one that bounds them.
    assert!(steps.len() <= 2 * MAX_DISPATCHES);
    for step in &steps {
        assert!(
            step.groups
                .iter()
                .zip(limits.max_groups)
                .all(|(&n, max)| 0 < n && n <= max)
        );
        assert!(
            step.workgroup
                .iter()
                .zip(limits.max_workgroup_size)
                .all(|(&n, max)| 0 < n && n <= max)
        );
        assert!(step.workgroup.iter().product::<u32>() <= limits.max_invocations);
        for &(buffer, offset, len, writes) in &step.args {
            let size = u128::from(buffers[buffer]);
            assert!(
                len > 0 && u128::from(offset) + u128::from(len) <= size,
                "{case:?}"
            );
            assert!(len <= limits.max_buffer_range && offset % limits.buffer_align == 0);
            assert!(!(writes && read_only(buffer)), "{case:?}");
            written[buffer] += if writes { u128::from(len) } else { 0 };
        }
    }
    for (index, &size) in case.outputs.iter().enumerate() {
        assert!(
            written[case.inputs.len() + index] >= u128::from(size),
            "{case:?}"
        );
    }
});

/// Words that start like a module, with an entry point where `entry` asks for one.
fn spirv(words: &[u32], entry: bool) -> Vec<u32> {
    let header = [0x0723_0203, 0x0001_0300, 0, 64, 0];
    let main = [5 << 16 | 15, 5, 4, u32::from_le_bytes(*b"main"), 0];
    let main = if entry { &main[..] } else { &[] };
    [&header[..], main, words].concat()
}

fn limits(features: Features) -> DeviceInfo<'static> {
    DeviceInfo {
        subgroup_size: 8,
        shared_bytes: 32768,
        max_invocations: 1024,
        max_workgroup_size: [1024, 1024, 64],
        buffer_align: 16,
        features,
        ..DeviceInfo::default()
    }
}
