//! Shaders that include a file of another pack, while that pack changes.

use super::watched::Watched;
use nx_vulkan_host::{DType, Kind, Request, Result, live::EventKind};
use std::fs;

const FACTOR: &str =
    "#include \"more/sum.glsl\"\nfloat scaled(float x) { return sum(x, FACTOR); }\n";
const SUM: &str = "float sum(float x, float y) { return x + y; }\n";

/// A pack without code of one op, which takes its function from a file of the pack `lender`.
fn write(watched: &Watched, id: &str, file: &str) {
    let table = format!(
        "[pack]\nid = \"{id}\"\nversion = \"1.0.0\"\nabi = \"1\"\n\
        [[kernel]]\nid = \"{id}\"\nop = \"{id}\"\ninputs = [\"f32\"]\noutputs = [\"f32\"]\n\
        shader = \"map.comp\"\npush = [\"elems\"]\ngroups = [\"ceil(elems / 64)\"]\n\
        defines = {{ FACTOR = \"2.0\" }}\n"
    );
    let shader = format!(
        "#version 450
#include \"{file}\"
layout(local_size_x = 64) in;
layout(push_constant) uniform Params {{ uint count; }};
layout(set = 0, binding = 0) readonly buffer X {{ float x[]; }};
layout(set = 0, binding = 1) writeonly buffer Y {{ float y[]; }};
void main() {{
    uint i = gl_GlobalInvocationID.x;
    if (i < count) y[i] = scaled(x[i]);
}}
"
    );
    let folder = &watched.folder;
    folder.write(&format!("made/{id}/pack.toml"), table);
    folder.write(&format!("made/{id}/map.comp"), shader);
    if id == "lender" {
        folder.write("made/lender/factor.glsl", FACTOR);
        folder.write("made/lender/more/sum.glsl", SUM);
    }
    let made = folder.join(format!("made/{id}"));
    fs::rename(made, folder.join(format!("packs/{id}"))).unwrap();
}

fn of_three(watched: &Watched, op: &str) -> Result<f32> {
    let runtime = &watched.runtime;
    let input = runtime.upload(DType::F32, &[1], &3f32.to_le_bytes())?;
    let output = [(DType::F32, vec![1])];
    let outputs = runtime.run(&Request::new(op, &[&input], &output, &[]))?;
    let bytes = runtime.download(&outputs[0], None)?;
    Ok(f32::from_le_bytes(bytes.try_into().unwrap()))
}

#[test]
fn a_pack_includes_a_file_of_another() {
    let watched = Watched::new();
    write(&watched, "borrower", "lender/factor.glsl");
    watched.wait_for(EventKind::PackAdded);
    let error = of_three(&watched, "borrower").unwrap_err();
    assert_eq!(error.kind(), Kind::Unsupported);
    let why = "there is no shader source named \"lender/factor.glsl\"";
    assert!(error.to_string().contains(why), "{error}");

    write(&watched, "lender", "factor.glsl");
    watched.wait_for(EventKind::PackAdded);
    assert_eq!(of_three(&watched, "borrower").unwrap(), 5.0);

    // What it borrows is what the other pack serves, edits included.
    let sum = watched.folder.join("packs/lender/more/sum.glsl");
    fs::write(&sum, SUM.replace("x + y", "x * y")).unwrap();
    watched.wait_for(EventKind::PackReplaced);
    assert_eq!(of_three(&watched, "borrower").unwrap(), 6.0);
}

#[test]
fn a_file_that_breaks_its_borrower_is_not_served() {
    let watched = Watched::new();
    write(&watched, "lender", "factor.glsl");
    watched.wait_for(EventKind::PackAdded);
    write(&watched, "borrower", "lender/factor.glsl");
    watched.wait_for(EventKind::PackAdded);
    assert_eq!(of_three(&watched, "borrower").unwrap(), 5.0);

    let factor = watched.folder.join("packs/lender/factor.glsl");
    fs::write(&factor, FACTOR.replace("scaled(", "renamed(")).unwrap();
    let event = watched.wait_for(EventKind::ShaderRejected);
    assert_eq!(event.pack.as_deref(), Some("lender"), "{event}");
    assert!(event.message.contains("'scaled'"), "{event}");
    assert_eq!(of_three(&watched, "borrower").unwrap(), 5.0);
}
