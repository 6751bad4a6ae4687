//! Texts of shaders that are hard on those who compile them.

use std::fmt::Write as _;

const HEAD: &str = "#version 450\nlayout(local_size_x = 64) in;\n\
    layout(set = 0, binding = 0) readonly buffer A { float a[]; };\n\
    layout(set = 0, binding = 1) buffer R { float r[]; };\n";

/// A compute shader with `body` as its main function, in which `x` is the invocation's element.
pub(crate) fn shader(body: &str) -> String {
    format!(
        "{HEAD}void main() {{\n    uint i = gl_GlobalInvocationID.x;\n    float x = a[i];\n    {body}\n    r[i] = x;\n}}\n"
    )
}

/// A shader with 517 bytes whose macros grow to 2^20 operators.
pub(crate) fn macro_bomb() -> String {
    let mut text = "#version 450\n#define M0 x\n".to_owned();
    for i in 1..=20 {
        let below = i - 1;
        writeln!(text, "#define M{i} M{below}+M{below}").unwrap();
    }
    text += "void main() {\n    float x = 1;\n    x = M20;\n}\n";
    assert!(text.len() <= 517, "{}", text.len());
    text
}

fn nested(count: usize, open: impl Fn(usize) -> String) -> String {
    let opened: String = (0..count).map(open).collect();
    shader(&format!("{opened}x += 1.0;{}", "}".repeat(count)))
}

/// So many ifs within each other.
pub(crate) fn ifs(count: usize) -> String {
    nested(count, |i| format!("if (x > {i}.5) {{ x *= 1.5;\n"))
}

/// So many loops within each other.
pub(crate) fn loops(count: usize) -> String {
    nested(count, |i| {
        format!("for (int i{i} = 0; i{i} < int(x); i{i}++) {{\n")
    })
}

/// What a driver needs seconds for, though nothing in it nests.
pub(crate) fn long(count: usize) -> String {
    let mut body = String::from("double y = double(x);\n");
    for i in 0..count {
        writeln!(
            body,
            "y = y * (y + {i}.5lf) / (y - {i}.25lf) + sqrt(abs(y));"
        )
        .unwrap();
    }
    shader(&(body + "x = float(y);"))
}
