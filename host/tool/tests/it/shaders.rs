//! Shaders of strangers: what they may not do is refused, and what they do wrong stays in their own buffers.

use crate::folder::Folder;
use nx_vulkan_host::{
    Config, DType, Error, Request, Result, Runtime, Tensor, device,
    module::{Binding, Launch},
};
use std::{path::Path, sync::Arc};

const TABLE: &str = "[pack]\nid = \"odd\"\nversion = \"1.0.0\"\nabi = \"1\"\n\
    [[kernel]]\nid = \"odd\"\nop = \"odd\"\ninputs = [\"u32\", \"f32\"]\noutputs = [\"u32\", \"f32\"]\n\
    shader = \"odd.comp\"\npush = [\"elems\"]\ngroups = [\"ceil(elems / 64)\"]\n";

fn open(folder: &Folder, packs: &[&Path]) -> Arc<Runtime> {
    Runtime::open(&Config {
        packs: packs.iter().map(|path| path.to_path_buf()).collect(),
        cache_dir: Some(folder.join("cache")),
        validation: true,
        ..Config::from_env()
    })
    .unwrap()
}

/// A runtime with the op `odd` of a pack without code: `r[i]` of `a[i]` for `i` below `count`.
fn odd(folder: &Folder, declared: &str, body: &str) -> Arc<Runtime> {
    folder.write("packs/odd/pack.toml", TABLE);
    folder.write(
        "packs/odd/odd.comp",
        format!(
            "#version 450\n#extension GL_EXT_buffer_reference : enable\n\
             #extension GL_EXT_shader_explicit_arithmetic_types_int64 : enable\nlayout(local_size_x = 64) in;\n\
             {declared}\nlayout(set = 0, binding = 1) writeonly buffer R {{ uint r[]; }};\n\
             layout(push_constant) uniform P {{ uint count; }};\n\
             void main() {{\n    uint i = gl_GlobalInvocationID.x;\n    {body}\n}}\n"
        ),
    );
    open(folder, &[&folder.join("packs")])
}

const READ: &str = "layout(set = 0, binding = 0) readonly buffer A { uint a[]; };";
const PLAIN: &str = "layout(set = 0, binding = 0) buffer A { uint a[]; };";

fn run(runtime: &Runtime, input: &Tensor) -> Result<Vec<u32>> {
    let outputs = [(input.dtype(), input.shape().to_vec())];
    let results = runtime.run(&Request::new("odd", &[input], &outputs, &[]))?;
    words(runtime, &results[0])
}

fn words(runtime: &Runtime, tensor: &Tensor) -> Result<Vec<u32>> {
    let bytes = runtime.download(tensor, None)?;
    let chunks = bytes.as_chunks::<4>().0.iter();
    Ok(chunks.map(|chunk| u32::from_ne_bytes(*chunk)).collect())
}

fn upload(runtime: &Runtime, values: &[u32]) -> Tensor {
    let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_ne_bytes()).collect();
    runtime
        .upload(DType::U32, &[values.len() as u64], &bytes)
        .unwrap()
}

#[test]
fn a_pack_without_code_reaches_no_memory_of_the_process() {
    let folder = Folder::new();
    let declared =
        format!("{READ}\nlayout(buffer_reference, std430) buffer Any {{ uint word[]; }};");
    let runtime = odd(
        &folder,
        &declared,
        "Any any = Any(uint64_t(0x400000)); if (i < count) r[i] = any.word[i];",
    );
    let x = upload(&runtime, &[1, 2, 3]);
    let error = run(&runtime, &x).unwrap_err().to_string();
    assert!(
        error.contains("odd.comp: it needs SPIR-V capability 5347"),
        "{error}"
    );
}

#[test]
fn a_shader_that_writes_its_input_is_refused_and_literals_stay() {
    let folder = Folder::new();
    let runtime = odd(
        &folder,
        PLAIN,
        "if (i < count) r[i] = a[i]; a[0] = 0x40e00000u;",
    );
    let two = 2.0f32.to_ne_bytes();
    let literal = runtime.constant(DType::F32, &[], &two).unwrap();
    let vector = runtime.constant(DType::F32, &[4], &two).unwrap();
    for input in [&literal, &vector] {
        let error = run(&runtime, input).unwrap_err().to_string();
        assert!(
            error.contains("odd.comp writes to binding 0, which the plan only reads: input 0"),
            "{error}"
        );
    }
    let again = runtime.constant(DType::F32, &[], &two).unwrap();
    assert_eq!(runtime.download(&again, None).unwrap(), two);
}

/// As shaders were written before it mattered.
#[test]
fn a_plain_buffer_that_is_only_read_needs_no_word() {
    let folder = Folder::new();
    let runtime = odd(&folder, PLAIN, "if (i < count) r[i] = a[i] * 2;");
    let x = upload(&runtime, &[1, 2, 3]);
    assert_eq!(run(&runtime, &x).unwrap(), [2, 4, 6]);
    assert_eq!(device::validation_messages(), [""; 0]);
}

const MODULE: &str = "#version 450\nlayout(local_size_x = 1) in;\n\
    layout(set = 0, binding = 0) buffer A { uint a[]; };\nlayout(set = 0, binding = 1) buffer R { uint r[]; };\n";

fn launch(runtime: &Runtime, body: &str, bindings: &[Binding<'_>]) -> Result<()> {
    let module = runtime.module_of(&format!("{MODULE}{body}\n"))?;
    runtime.launch(
        &module,
        &Launch {
            bindings,
            constants: &[],
            push: &[],
            groups: [1, 1, 1],
        },
    )
}

#[test]
fn a_callers_module_writes_only_where_the_call_says() {
    let folder = Folder::new();
    let runtime = open(&folder, &[]);
    let (a, r) = (upload(&runtime, &[1, 2]), upload(&runtime, &[3, 4]));
    let body = "void main() { a[0] = r[1]; }";
    let error = launch(&runtime, body, &[Binding::read(&a), Binding::write(&r)]).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("it writes to binding 0, which is given to be read only"),
        "{error}"
    );
    assert_eq!(words(&runtime, &a).unwrap(), [1, 2]);
    launch(&runtime, body, &[Binding::write(&a), Binding::read(&r)]).unwrap();
    assert_eq!(words(&runtime, &a).unwrap(), [4, 2]);
    // A literal is everybody's.
    let literal = runtime.constant(DType::U32, &[], &[9, 0, 0, 0]).unwrap();
    let bindings = [Binding::write(&literal), Binding::read(&r)];
    let error = launch(&runtime, body, &bindings).unwrap_err();
    assert!(
        error.to_string().contains("binding 0 is a literal"),
        "{error}"
    );
    assert_eq!(words(&runtime, &literal).unwrap(), [9]);
}

/// On a driver that runs shaders on the CPU the first of these ended the process.
#[test]
fn an_index_outside_of_shared_or_private_memory_stays_inside() {
    let folder = Folder::new();
    let runtime = open(&folder, &[]);
    for far in [8, 0x0fff_ffff, 0x7fff_ffff, 0x8000_0000, u32::MAX] {
        let a = upload(&runtime, &[far, 2]);
        for (body, expected) in [
            (
                "shared uint s[8]; void main() { s[7] = 1; s[a[0]] = 5; r[0] = s[7]; r[1] = s[a[0]]; }",
                5,
            ),
            (
                "uint s[8]; void main() { s[7] = 1; s[a[0]] = 5; r[0] = s[7]; r[1] = s[a[0]]; }",
                5,
            ),
            (
                "void main() { uint s[8]; for (int i = 0; i < 8; ++i) s[i] = a[1]; s[a[0]] = 5; r[0] = s[7]; r[1] = s[a[0]]; }",
                5,
            ),
            (
                "void main() { uvec4 v = uvec4(a[1]); v[a[0]] = 5; r[0] = v.w; r[1] = v[a[0]]; }",
                5,
            ),
            (
                "shared uint s[4][4]; void main() { s[a[0]][a[0]] = 5; r[0] = s[3][3]; r[1] = s[int(a[0])][3]; }",
                5,
            ),
        ] {
            let r = upload(&runtime, &[0, 0]);
            launch(&runtime, body, &[Binding::read(&a), Binding::write(&r)]).unwrap();
            assert_eq!(words(&runtime, &r).unwrap(), [expected; 2], "{far}: {body}");
        }
    }
    assert_eq!(device::validation_messages(), [""; 0]);
}

#[test]
fn an_index_outside_of_a_packs_shared_memory_stays_inside() {
    let folder = Folder::new();
    let declared = format!("{READ}\nshared uint s[64];");
    let runtime = odd(
        &folder,
        &declared,
        "s[gl_LocalInvocationIndex] = 1; barrier(); s[a[0]] = 5; barrier(); if (i < count) r[i] = s[63] + s[a[i]];",
    );
    let x = upload(&runtime, &[0x0fff_ffff, 3]);
    assert_eq!(run(&runtime, &x).unwrap(), [10, 6]);
    assert_eq!(device::validation_messages(), [""; 0]);
}

/// Beyond its binding a stranger's shader reads zeros and writes nothing, though other tensors lie in the same buffer.
#[test]
fn an_index_outside_of_a_buffer_stays_in_its_binding() {
    let folder = Folder::new();
    let runtime = open(&folder, &[]);
    let tensors: Vec<Tensor> = (0..16).map(|i| upload(&runtime, &[i, i])).collect();
    let body = "void main() { uint sum = 0; for (int i = 2; i < 2048; ++i) { sum |= a[i]; r[i] = 77; } r[0] = sum; }";
    let bindings = [Binding::read(&tensors[7]), Binding::write(&tensors[8])];
    launch(&runtime, body, &bindings).unwrap();
    for (i, tensor) in (0..).zip(&tensors) {
        let expected = if i == 8 { [0, 8] } else { [i, i] };
        assert_eq!(words(&runtime, tensor).unwrap(), expected);
    }
}

#[test]
fn shaders_that_cost_too_much_are_refused() {
    let folder = Folder::new();
    let runtime = open(&folder, &[]);
    let refusal =
        |body: &str| -> Error { runtime.module_of(&format!("{MODULE}{body}\n")).unwrap_err() };
    let nested = |count: usize, head: &str| {
        let close = "}".repeat(count);
        refusal(&format!(
            "void main() {{ {} a[0] = 1; {close} }}",
            head.repeat(count)
        ))
    };
    let error = nested(120, "if (a[1] > 0) {").to_string();
    assert!(error.contains("nests deeper than"), "{error}");
    let error = nested(60, "for (int i = 0; i < a[1]; ++i) {").to_string();
    assert!(error.contains("loops nest deeper than"), "{error}");
    let error = refusal("void main() { uint t[100000]; t[a[0]] = 1; r[0] = t[a[1]]; }").to_string();
    assert!(error.contains("bytes of private memory"), "{error}");
    let module = runtime.module_of(&format!(
        "{MODULE}shared uint s[1000000]; void main() {{ s[a[0]] = 1; r[0] = s[a[1]]; }}\n"
    ));
    let x = upload(&runtime, &[0, 0]);
    let both = [Binding::read(&x), Binding::write(&x)];
    let launch = Launch {
        bindings: &both,
        constants: &[],
        push: &[],
        groups: [1, 1, 1],
    };
    let error = runtime
        .launch(&module.unwrap(), &launch)
        .unwrap_err()
        .to_string();
    assert!(error.contains("4000000 bytes of shared memory"), "{error}");
}
