//! Checked mode: accesses outside of an array are reported with pack, file, line and index; right ones are silent.

use crate::folder::Folder;
use nx_vulkan_host::{Config, DType, Error, Kind, Request, Result, Runtime, device};
use std::{fs, path::Path, sync::Arc};

const TABLE: &str = "[pack]\nid = \"probe\"\nversion = \"1.0.0\"\nabi = \"1\"\n\
    [[kernel]]\nid = \"probe\"\nop = \"probe\"\ninputs = [\"real\"]\noutputs = [\"real\"]\n\
    shader = \"probe.comp\"\npush = [\"elems\"]\ngroups = [\"ceil(elems / 64)\"]\n";

/// `body` is the rest of the file from line 10 on; `a` is the operand, `r` the result.
fn shader(body: &str) -> String {
    format!(
        "#version 450\n#include \"dtype.glsl\"\n#include \"tensor.glsl\"\n\
         layout(local_size_x = 64) in;\n\
         layout(set = 0, binding = 0) readonly buffer A {{ A_STORAGE a[]; }};\n\
         layout(set = 0, binding = 1) writeonly buffer R {{ R_STORAGE r[]; }};\n\
         layout(push_constant) uniform P {{ uint count; }};\n\
         void main() {{\n    uint i = gl_GlobalInvocationID.x;\n{body}\n}}\n"
    )
}

fn open(folder: &Folder, packs: &Path, checked: bool) -> Arc<Runtime> {
    Runtime::open(&Config {
        packs: vec![packs.to_owned()],
        cache_dir: Some(folder.join("cache")),
        validation: true,
        checked,
        ..Config::from_env()
    })
    .unwrap()
}

/// Runs the op `probe` with that shader body on 0, 1, 2, … of some type; the bytes of the result.
fn probe_as(body: &str, dtype: DType, checked: bool) -> Result<Vec<u8>> {
    let folder = Folder::new();
    folder.write("packs/probe/pack.toml", TABLE);
    folder.write("packs/probe/probe.comp", shader(body));
    folder.write(
        "packs/probe/part.glsl",
        "// Line 1.\n    if (i == 5) nxv_store(r, i + 1000, nxv_load(a, i));\n",
    );
    let runtime = open(&folder, &folder.join("packs"), checked);
    let count = 100;
    let bytes: Vec<u8> = (0..count * dtype.size()).map(|i| i as u8).collect();
    let x = runtime.upload(dtype, &[count], &bytes).unwrap();
    let y = runtime.run(&Request::new("probe", &[&x], &[(dtype, vec![count])], &[]));
    let answer = y
        .and_then(|y| runtime.download(&y[0], None))
        .map_err(|error| {
            let text = error
                .to_string()
                .replace(&format!("{}/", folder.display()), "");
            Error::new(error.kind(), text)
        });
    if answer.is_ok() {
        // A plan that is known is checked like a new one.
        let again = runtime.run(&Request::new("probe", &[&x], &[(dtype, vec![count])], &[]))?;
        assert_eq!(
            runtime.download(&again[0], None).ok(),
            answer.as_ref().ok().cloned()
        );
    }
    assert_eq!(device::validation_messages(), [""; 0]);
    answer
}

/// The error of a shader body in checked mode, after the request that it starts with.
#[track_caller]
fn violation(body: &str) -> String {
    let error = probe_as(body, DType::U32, true).unwrap_err();
    assert_eq!(error.kind(), Kind::Pack, "{error}");
    let text = error.to_string();
    text[text.find("pack probe").expect("the pack is named")..].to_owned()
}

#[test]
fn a_store_outside_of_its_array_is_caught_at_its_line() {
    let text = violation("    uint x = nxv_load(a, min(i, 99));\n    nxv_store(r, i, x);");
    assert_eq!(
        text,
        "pack probe, packs/probe/probe.comp:11: index 100 is outside of r (100 elements)\n\
         and 27 more accesses outside of arrays"
    );
}

#[test]
fn a_load_outside_of_its_array_is_caught_at_its_line() {
    let text = violation("    if (i == 7) {\n        r[i] = nxv_load(a, i * 100);\n    }");
    assert_eq!(
        text,
        "pack probe, packs/probe/probe.comp:11: index 700 is outside of a (100 elements)"
    );
}

#[test]
fn a_negative_index_is_named() {
    let text = violation("    if (i == 3) nxv_store(r, int(i) - 5, nxv_load(a, i));");
    assert!(
        text.ends_with("probe.comp:10: index -2 is outside of r (100 elements)"),
        "{text}"
    );
}

#[test]
fn an_access_in_an_include_is_named_by_the_include() {
    let text = violation("#include \"part.glsl\"\n    if (i < count) r[i] = a[i];");
    assert!(
        text.ends_with("packs/probe/part.glsl:2: index 1005 is outside of r (100 elements)"),
        "{text}"
    );
}

#[test]
fn right_shaders_are_silent_and_give_the_same_for_every_type() {
    let body = "    if (i < count) nxv_store(r, i, nxv_load(a, count - 1 - i));";
    for name in [
        "u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64", "f16", "bf16", "f32", "f64",
    ] {
        let dtype = DType::from_name(name).unwrap();
        let (plain, checked) = (probe_as(body, dtype, false), probe_as(body, dtype, true));
        assert_eq!(plain.unwrap(), checked.unwrap(), "{name}");
    }
}

#[test]
fn without_the_mode_nothing_is_checked() {
    let body = "    if (i < count) nxv_store(r, i, nxv_load(a, i + (i == 3 ? 4096 : 0)));";
    assert!(probe_as(body, DType::U32, false).is_ok());
    assert!(probe_as(body, DType::U32, true).is_err());
}

#[test]
fn shaders_that_use_no_accessor_are_as_ever() {
    let body = "    if (i < count) r[i] = a[i];";
    let plain = probe_as(body, DType::F32, false).unwrap();
    assert_eq!(probe_as(body, DType::F32, true).unwrap(), plain);
}

#[test]
fn the_template_and_the_example_are_silent() {
    let folder = Folder::new();
    folder.write(
        "packs/template.so",
        fs::read(crate::packs::built("template")).unwrap(),
    );
    let runtime = open(&folder, &folder.join("packs"), true);
    let bytes: Vec<u8> = (0..1000).flat_map(|i| (i as f32).to_ne_bytes()).collect();
    let x = runtime.upload(DType::F32, &[1000], &bytes).unwrap();
    let tail = x.slice(&[10], &[990], &[1]).unwrap();
    let ran = runtime
        .run_reported(&Request::new(
            "square",
            &[&tail],
            &[(DType::F32, vec![990])],
            &[],
        ))
        .unwrap();
    assert_eq!(&*ran.served_by, "template/square_f32");
    let last = runtime.download(&ran.outputs[0], None).unwrap();
    assert_eq!(last[989 * 4..], (999.0f32 * 999.0).to_ne_bytes());

    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/packs");
    let runtime = open(&folder, &examples, true);
    let x = runtime.upload(DType::F32, &[1000], &bytes).unwrap();
    for (op, inputs, shape) in [
        ("swish", vec![&x], vec![1000]),
        ("add", vec![&x, &x], vec![1000]),
        ("mean_square", vec![&x], vec![]),
    ] {
        let ran = runtime
            .run_reported(&Request::new(op, &inputs, &[(DType::F32, shape)], &[]))
            .unwrap();
        assert!(
            ran.served_by.starts_with("swish/"),
            "{op}: {}",
            ran.served_by
        );
    }
    assert_eq!(device::validation_messages(), [""; 0]);
}
