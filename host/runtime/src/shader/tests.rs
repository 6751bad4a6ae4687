//! Includes, defines, messages and the cache of compiled shaders.

use super::*;
use nx_vulkan_registry::private::{Rule, Temporary};
use std::path::Path;

const MAIN: &str = "#version 450\n#include \"head.glsl\"\nlayout(local_size_x = N) in;\n\
    layout(set = 0, binding = 0) buffer B { float b[]; };\nvoid main() { b[0] = twice(VALUE); }\n";
const HEAD: &str = "float twice(float x) {\n    return x * 2.0;\n}\n";

fn files(name: &str) -> Option<Glsl<'static>> {
    let text = match name {
        "main.comp" => Some(MAIN),
        "head.glsl" => Some(HEAD),
        "broken.glsl" => Some("float twice(float x) {\n    return y;\n}\n"),
        "broken.comp" => Some("#version 450\n#include \"broken.glsl\"\nvoid main() {}\n"),
        "sub/main.comp" => {
            Some("#version 450\n#include \"beside.glsl\"\n#include \"head.glsl\"\nvoid main() {}\n")
        }
        "sub/deep/main.comp" => {
            Some("#version 450\n#include \"beside.glsl\"\n#include \"head.glsl\"\nvoid main() {}\n")
        }
        "sub/beside.glsl" => Some("layout(local_size_x = 1) in;\n"),
        "lost.comp" => Some("#version 450\n#include \"lost.glsl\"\nvoid main() {}\n"),
        _ => None,
    };
    let path = (name == "broken.glsl").then_some(Path::new("/on/disk/broken.glsl"));
    text.map(|text| Glsl {
        path,
        ..Glsl::new(text, Origin::Library)
    })
}

fn shaders(dir: &Path) -> Shaders {
    Shaders::new(Some(Cache::open(Some((dir.to_owned(), Rule::Sticky)))))
}

#[test]
fn includes_and_defines_compile_and_land_in_the_cache() {
    let temporary = Temporary::new().unwrap();
    let dir = temporary.path();
    let defines = [("N", "64"), ("VALUE", "1.5")];
    let compile = || shaders(dir).compile("main.comp", &defines, &files);
    let module = compile().unwrap();
    let words = module.words();
    assert_eq!(words[0], 0x0723_0203);
    let cached: Vec<_> = std::fs::read_dir(dir.join("shaders"))
        .unwrap()
        .map(|e| e.unwrap().path())
        .collect();
    assert_eq!(cached.len(), 1);
    let good = std::fs::read(&cached[0]).unwrap();
    std::fs::write(&cached[0], &good[..good.len() / 2]).unwrap();
    let again = compile().unwrap();
    assert_eq!(
        again.words(),
        words,
        "a damaged cache file is compiled anew"
    );
    assert_eq!(std::fs::read(&cached[0]).unwrap(), good, "and replaced");
    // Whole, but nothing that may run: its first capability is that of pointers to any memory.
    let mut hostile = words.to_vec();
    assert_eq!(hostile[5..7], [2 << 16 | 17, 1]);
    hostile[6] = 5347;
    let name = cached[0].file_name().unwrap().to_str().unwrap();
    let folder = shaders(dir).folder().unwrap();
    disk::write(&folder, name, &hostile).unwrap();
    let again = compile().unwrap();
    assert_eq!(again.words(), words, "so is one that is refused");
    assert_eq!(std::fs::read(&cached[0]).unwrap(), good, "and replaced");
    // What was written for another name.
    disk::write(&folder, "other.spv", words).unwrap();
    std::fs::copy(dir.join("shaders/other.spv"), &cached[0]).unwrap();
    compile().unwrap();
    assert_eq!(std::fs::read(&cached[0]).unwrap(), good, "so is another's");
}

#[test]
fn an_error_names_file_and_line_of_the_include() {
    let error = Shaders::new(None)
        .compile("broken.comp", &[], &files)
        .unwrap_err();
    assert_eq!(error.kind(), Kind::Shader);
    assert!(
        error.to_string().starts_with("/on/disk/broken.glsl:2"),
        "{error}"
    );
    let error = Shaders::new(None)
        .compile("lost.comp", &[], &files)
        .unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("lost.comp:2: there is no shader source named \"lost.glsl\""),
        "{error}"
    );
}

#[test]
fn files_include_one_another_only_so_deep() {
    let names: Vec<String> = (0..300)
        .map(|i| format!("pack{}/{i}.glsl", i / 200))
        .collect();
    let next = |i: usize| {
        names
            .get(i + 1)
            .map_or(String::new(), |name| format!("#include \"{name}\"\n"))
    };
    let texts: Vec<String> = (0..300).map(next).collect();
    let chain = |name: &str| {
        let at = names.iter().position(|own| own == name)?;
        Some(Glsl {
            text: &texts[at],
            ..files("main.comp")?
        })
    };
    let error = Shaders::new(None)
        .compile(&names[0], &[], &chain)
        .unwrap_err();
    assert_eq!(error.kind(), Kind::Shader);
    let message = error.to_string();
    assert!(
        message.contains(":1: \"pack0/32.glsl\" would be included through more than 32 files"),
        "{message}"
    );
}

#[test]
fn an_include_is_looked_for_beside_its_file_first() {
    let shaders = Shaders::new(None);
    shaders.compile("sub/main.comp", &[], &files).unwrap();
}

#[test]
fn an_include_is_looked_for_in_the_folders_above() {
    let shaders = Shaders::new(None);
    shaders.compile("sub/deep/main.comp", &[], &files).unwrap();
}

#[test]
fn a_shader_is_of_the_least_trusted_of_its_files() {
    for origin in [Origin::Library, Origin::Vouched, Origin::Stranger] {
        let find = |name: &str| {
            files(name).map(|file| match name {
                "head.glsl" => Glsl { origin, ..file },
                _ => file,
            })
        };
        let defines = [("N", "1"), ("VALUE", "1.0")];
        let module = Shaders::new(None).compile("main.comp", &defines, &find);
        assert_eq!(module.unwrap().origin(), origin);
    }
}

/// The message is about the shader as it was written, whatever was left out before the compiler saw it.
#[test]
fn lines_are_those_of_the_whole_text() {
    let text = "#version 450\n/* of\ntwo lines */\nfloat spare(float x) {\n    return x;\n}\nvoid main() {\n    y;\n}\n";
    for (origin, is_generated) in [
        (Origin::Library, false),
        (Origin::Stranger, false),
        (Origin::Stranger, true),
    ] {
        let find = |_: &str| {
            let glsl = Glsl::new(text, origin);
            Some(Glsl {
                is_generated,
                ..glsl
            })
        };
        let error = Shaders::new(None).compile("main.comp", &[], &find);
        let error = error.unwrap_err().to_string();
        assert!(error.starts_with("main.comp:8: 'y'"), "{error}");
    }
}

/// Whoever writes a shader sees the errors of all of it; nobody looks for them in what a library does not use.
#[test]
fn errors_of_functions_that_nothing_uses_are_those_of_their_author() {
    let files = |broken: &'static str, origin| {
        move |name: &str| match name {
            "main.comp" => Some(Glsl::new(broken, origin)),
            _ => Some(Glsl::new(
                "float idle() { return nothing; }\n",
                Origin::Library,
            )),
        }
    };
    let own = "#version 450\nfloat idle() { return nothing; }\nvoid main() {}\n";
    let included = "#version 450\n#include \"head.glsl\"\nvoid main() {}\n";
    for (text, origin, compiles) in [
        (own, Origin::Library, true),
        (own, Origin::Stranger, false),
        (included, Origin::Stranger, true),
    ] {
        let module = Shaders::new(None).compile("main.comp", &[], &files(text, origin));
        assert_eq!(module.is_ok(), compiles, "{text} {module:?}");
    }
}

/// Every function of the mathematical headers, beside those of a pack, alone: the words are those of the whole text.
#[test]
fn what_is_left_out_changes_no_words() {
    const FUNCTIONS: &str = include_str!("../../../../packs/elementwise/shaders/functions.glsl");
    let header = |name: &str| {
        let mut headers = nx_vulkan_abi::glsl::HEADERS.iter();
        headers.find(|h| h.0 == name).map(|h| h.1)
    };
    for (kind, math) in [("float", "math_f32.glsl"), ("double", "math_f64.glsl")] {
        let start = format!("{kind} nxv_");
        let functions = header(math).unwrap().lines().filter_map(|line| {
            let (name, parameters) = line.strip_prefix(&start)?.split_once('(')?;
            parameters
                .starts_with(&format!("{kind} x) {{"))
                .then_some(name)
        });
        for name in functions {
            let text = format!(
                "#version 450\n#define NXV_NEEDS_FP64\n#include \"dtype.glsl\"\n#include \"{math}\"\n\
                 #define nxv_fault(absent)\n#include \"functions.glsl\"\nlayout(local_size_x = 1) in;\n\
                 layout(set = 0, binding = 0) buffer B {{ {kind} b[]; }};\n\
                 void main() {{ b[0] = sign_of(nxv_{name}(b[0])); }}\n"
            );
            let find = |file: &str| {
                let text = match file {
                    "main.comp" => &text,
                    "functions.glsl" => FUNCTIONS,
                    _ => header(file)?,
                };
                Some(Glsl::new(text, Origin::Library))
            };
            let source = expand("main.comp", &[], &find).unwrap();
            let left = reach::reachable(&source.text, &source.spare).unwrap();
            assert!(left.len() < source.text.len() / 2, "{name}");
            let words = |text: &str| glslang_compile(text, Target::Older).unwrap();
            assert!(words(&left) == words(&source.text), "{name}");
        }
    }
}

/// The header's accessors cost nothing outside of checked mode: the words are those of plain accesses.
#[test]
fn accessors_are_plain_accesses() {
    let main = |body: &str| {
        format!(
            "#version 450\n#include \"tensor.glsl\"\nlayout(local_size_x = 64) in;\n\
             layout(set = 0, binding = 0) buffer B {{ float b[]; }};\n\
             void main() {{ uint i = gl_GlobalInvocationID.x; {body} }}\n"
        )
    };
    let words = |text: &str| {
        let header = nx_vulkan_abi::glsl::HEADERS
            .iter()
            .find(|h| h.0 == "tensor.glsl");
        let header = header.unwrap().1;
        let find = |name: &str| {
            let text = if name == "main.comp" { text } else { header };
            Some(Glsl::new(text, Origin::Library))
        };
        Shaders::new(None).compile("main.comp", &[], &find).unwrap()
    };
    let plain = words(&main("b[i] = b[i + 1] * 2.0;"));
    let through = words(&main("nxv_store(b, i, nxv_load(b, i + 1) * 2.0);"));
    assert_eq!(plain.words(), through.words());
}

#[test]
fn an_unwritable_cache_is_reported_but_not_fatal() {
    let shaders = shaders(Path::new("/proc/nxv/cache"));
    shaders
        .compile("main.comp", &[("N", "1"), ("VALUE", "1.0")], &files)
        .unwrap();
    assert!(shaders.disk_trouble().unwrap().contains("/proc/nxv/cache"));
}

#[test]
fn libraries_are_compiled_for_what_the_device_takes_and_each_target_is_kept_apart() {
    let temporary = Temporary::new().unwrap();
    let dir = temporary.path();
    let text = "#version 450\nlayout(local_size_x_id = 3) in;\nvoid main() {}\n";
    let version = |target, origin| {
        let find = |_: &str| Some(Glsl::new(text, origin));
        let shaders = shaders(dir).with_target(target);
        shaders.compile("t", &[], &find).unwrap().words()[1]
    };
    for _ in 0..2 {
        assert_eq!(version(Target::Newer, Origin::Library), 0x0001_0600);
        assert_eq!(version(Target::Older, Origin::Library), 0x0001_0500);
        assert_eq!(version(Target::Newer, Origin::Vouched), 0x0001_0500);
    }
    assert_eq!(std::fs::read_dir(dir.join("shaders")).unwrap().count(), 2);
}
