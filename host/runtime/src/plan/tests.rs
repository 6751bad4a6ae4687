use super::{repeat::depends, *};
use crate::queue::StepArg;
use nx_vulkan_abi::{Access, Attr, AttrKind, BufArg, Dispatch};
use nx_vulkan_registry::{Glsl, Origin};

/// A plan of one step whose two bindings are an input and an output.
fn checked(body: &str, declared: Features) -> std::result::Result<(), String> {
    let args = [[BufArg::input(0), BufArg::output(0)]];
    planned(body, declared, &args).map(drop)
}

/// A plan of steps with these bindings, and two scratch buffers.
fn planned(
    body: &str,
    declared: Features,
    steps: &[[BufArg; 2]],
) -> std::result::Result<CheckedPlan, String> {
    planned_on(&limits(), 0, body, declared, steps)
}

fn limits() -> DeviceInfo<'static> {
    DeviceInfo {
        features: Features(u64::MAX),
        push_bytes: 128,
        shared_bytes: 1024,
        max_invocations: 1024,
        max_workgroup_size: [1024; 3],
        max_groups: [1024; 3],
        max_buffer_range: 1 << 30,
        buffer_align: 4,
        ..DeviceInfo::default()
    }
}

fn fact<'a>(name: &'a str, ints: &'a [i64]) -> Attr<'a> {
    Attr {
        name: name.into(),
        kind: AttrKind::INTS,
        spare: 0,
        ints: ints.into(),
        floats: (&[][..]).into(),
        text: "".into(),
    }
}

/// As [`planned`], on a device with these limits and in subgroups of so many lanes, 0 for any.
fn planned_on(
    limits: &DeviceInfo<'_>,
    lanes: u32,
    body: &str,
    declared: Features,
    steps: &[[BufArg; 2]],
) -> std::result::Result<CheckedPlan, String> {
    let text = format!("#version 450\n{body}\n");
    let find = |_: &str| Some(Glsl::new(&text, Origin::Library));
    let module = Shaders::new(None).compile("k.comp", &[], &find);
    let source = Source::from(module.unwrap());
    let plan = Plan {
        shaders: vec![ShaderVariant {
            file: "k.comp".into(),
            bindings: 2,
            push_bytes: 4,
            subgroup_size: lanes,
            ..ShaderVariant::default()
        }]
        .into(),
        steps: steps
            .iter()
            .map(|args| Dispatch {
                groups: [1, 1, 1],
                args: args.to_vec().into(),
                push: vec![0; 4].into(),
                ..Dispatch::default()
            })
            .collect(),
        scratch: vec![64; 2].into(),
        ..Plan::default()
    };
    let sizes = Sizes {
        inputs: &[64],
        outputs: &[64],
    };
    let modules = Modules {
        source: &|_, _| Ok(source.clone()),
        counts: &|| Err(invalid("nothing reads workgroup counts".to_owned())),
    };
    check(&plan, sizes, limits, declared, &modules).map_err(|error| error.to_string())
}

#[test]
fn a_step_waits_for_those_since_the_last_barrier_only() {
    let [first, second] = [0, 1].map(|index| BufArg::scratch(index, Access::WRITE));
    let read = |arg: BufArg| BufArg {
        access: Access::READ,
        ..arg
    };
    let steps = [
        [BufArg::input(0), first],
        [read(first), second],
        [read(first), BufArg::output(0)],
        [read(second), first],
    ];
    let body = "layout(local_size_x = 8) in;\nlayout(set = 0, binding = 0) readonly buffer A { uint a[]; };\n\
                layout(set = 0, binding = 1) writeonly buffer B { uint b[]; };\n\
                void main() { b[gl_LocalInvocationIndex] = a[gl_LocalInvocationIndex]; }";
    let plan = planned(body, Features::NONE, &steps).unwrap();
    let barriers: Vec<bool> = plan.steps.iter().map(|step| step.barrier).collect();
    assert_eq!(barriers, [false, true, false, true]);
}

#[test]
fn what_a_shader_does_must_fit_its_plan() {
    let of = |declared: &str, body: &str| {
        checked(
            &format!(
                "layout(local_size_x = 8) in;\nlayout(set = 0, binding = 0) buffer A {{ uint a[]; }};\n\
                 layout(set = 0, binding = 1) buffer B {{ uint b[]; }};\n{declared}\nvoid main() {{ {body} }}"
            ),
            Features::NONE,
        )
    };
    assert_eq!(of("", "b[0] = a[0];"), Ok(()));
    let cases = [
        (
            of("", "b[0] = atomicOr(a[0], 0);"),
            "writes to binding 0, which the plan only reads",
        ),
        (
            of(
                "layout(push_constant) uniform P { uint p[2]; };",
                "b[0] = p[1];",
            ),
            "reads 8 bytes of push constants, and the plan declares 4",
        ),
        (
            of("shared uint s[257];", "s[a[0]] = 1; b[0] = s[a[1]];"),
            "1028 bytes of shared memory, and the device 1024",
        ),
    ];
    for (result, expected) in cases {
        let error = result.unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn a_workgroup_has_no_more_subgroups_than_the_device_allows() {
    let facts = [fact("max_subgroups", &[32])];
    let several = DeviceInfo {
        facts: (&facts[..]).into(),
        min_subgroup_size: 4,
        max_subgroup_size: 8,
        ..limits()
    };
    let body = "layout(local_size_x = 256) in;\nlayout(set = 0, binding = 0) readonly buffer A { uint a[]; };\n\
                layout(set = 0, binding = 1) writeonly buffer B { uint b[]; };\n\
                void main() { b[gl_LocalInvocationIndex] = a[gl_LocalInvocationIndex]; }";
    let args = [[BufArg::input(0), BufArg::output(0)]];
    let of = |limits: &DeviceInfo<'_>, lanes| {
        planned_on(limits, lanes, body, Features::NONE, &args).map(drop)
    };
    for lanes in [0, 8] {
        assert_eq!(of(&several, lanes), Ok(()), "{lanes}");
    }
    let error = of(&several, 4).unwrap_err();
    assert!(
        error.contains("[256, 1, 1] in subgroups of 4, and the device allows 32"),
        "{error}"
    );
    // A size is asked for only where there are several.
    let one = DeviceInfo {
        max_subgroup_size: 4,
        ..several
    };
    assert_eq!(of(&one, 4), Ok(()));
}

#[test]
fn scratch_buffers_that_no_device_memory_holds_are_declined() {
    let body = "layout(local_size_x = 8) in;\nlayout(set = 0, binding = 0) readonly buffer A { uint a[]; };\n\
                layout(set = 0, binding = 1) writeonly buffer B { uint b[]; };\n\
                void main() { b[gl_LocalInvocationIndex] = a[gl_LocalInvocationIndex]; }";
    let args = [[BufArg::input(0), BufArg::output(0)]];
    for (name, most, expected) in [
        ("memory_bytes", 128, None),
        (
            "memory_bytes",
            127,
            Some("scratch buffers of 128 bytes, and the device has 127"),
        ),
        ("max_allocation", 64, None),
        (
            "max_allocation",
            63,
            Some("a scratch buffer of 64 bytes, and the device allocates at most 63"),
        ),
    ] {
        let (most, limits) = ([most], limits());
        let facts = [fact(name, &most)];
        let limits = DeviceInfo {
            facts: facts.as_slice().into(),
            ..limits
        };
        let told = planned_on(&limits, 0, body, Features::NONE, &args).map(drop);
        let expected = expected.map(|why| format!("the plan goes beyond the device: {why}"));
        assert_eq!(told.err(), expected);
    }
}

#[test]
fn cooperative_matrices_are_declared() {
    let body = "#extension GL_KHR_cooperative_matrix : require\n#extension GL_KHR_memory_scope_semantics : require\n\
        layout(local_size_x = 32) in;\nlayout(set = 0, binding = 0) buffer A { float a[]; };\n\
        layout(set = 0, binding = 1) buffer B { float b[]; };\n\
        void main() {\n\
            coopmat<float, gl_ScopeSubgroup, 16, 16, gl_MatrixUseAccumulator> m;\n\
            coopMatLoad(m, a, 0, 16, gl_CooperativeMatrixLayoutRowMajor);\n\
            coopMatStore(m, b, 0, 16, gl_CooperativeMatrixLayoutRowMajor);\n\
        }";
    assert_eq!(checked(body, Features::COOPMAT), Ok(()));
    let error = checked(body, Features::FP16).unwrap_err();
    assert!(
        error.contains("CooperativeMatrixKHR, which its kernel does not declare"),
        "{error}"
    );
}

#[test]
fn disjoint_ranges_of_one_buffer_do_not_depend() {
    let arg = |offset, len, writes: bool| StepArg {
        buffer: 0,
        offset,
        len,
        reads: !writes,
        writes,
    };
    assert!(!depends(&[arg(0, 256, true)], &[arg(256, 256, true)]));
    assert!(depends(&[arg(0, 257, true)], &[arg(256, 256, false)]));
    assert!(depends(&[arg(0, 8, false)], &[arg(0, 8, true)]));
    assert!(!depends(&[arg(0, 8, false)], &[arg(0, 8, false)]));
}
