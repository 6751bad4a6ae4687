//! What authors of packs are told of kernels that were never looked at, of requests that they name, and of files that cannot be.

use crate::folder::Folder;
use serde_json::Value;
use std::{
    ffi::{OsStr, OsString},
    fs,
    os::unix::ffi::{OsStrExt as _, OsStringExt as _},
    path::Path,
    process::{Command, Output},
};

const SHADER: &str = "#version 450\nlayout(local_size_x = 64) in;\n\
    layout(set = 0, binding = 0) readonly buffer A { float a[]; };\n\
    layout(set = 0, binding = 1) writeonly buffer B { float b[]; };\n\
    layout(push_constant) uniform P { uint n; };\n\
    void main() { uint i = gl_GlobalInvocationID.x; if (i < n) b[i] = 2 * a[i]; }\n";

pub(crate) fn nxv(arguments: &[impl AsRef<OsStr>]) -> (Option<i32>, String) {
    let output = output(arguments);
    let told = [output.stdout, output.stderr].concat();
    (
        output.status.code(),
        String::from_utf8_lossy(&told).into_owned(),
    )
}

fn output(arguments: &[impl AsRef<OsStr>]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_nxv"))
        .args(arguments)
        .env_remove("NX_VULKAN_PACKS")
        .env_remove("NX_VULKAN_KEY_PASSWORD")
        .output()
        .unwrap()
}

/// A pack without code that has one kernel for an op, which runs what `when` lets pass.
pub(crate) fn pack(folder: &Folder, op: &str, when: &str) -> String {
    let table = format!(
        "[pack]\nid = \"own\"\nversion = \"0.1.0\"\nabi = \"1\"\n\
        [[kernel]]\nid = \"k\"\nop = \"{op}\"\ntypes = [\"f32->f32\"]\n\
        when = [{{ check = \"{when}\", reason = \"it is for others\" }}]\n\
        shader = \"k.comp\"\ngroups = [\"ceil(elems / 64)\"]\npush = [\"elems\"]\n"
    );
    folder.write("own/pack.toml", table);
    folder.write("own/k.comp", SHADER);
    folder.join("own").to_str().unwrap().to_owned()
}

fn group(told: &str, name: &str) -> Value {
    let report: Value = serde_json::from_str(told).unwrap_or_else(|_| panic!("{told}"));
    report["groups"][name].clone()
}

#[test]
fn a_kernel_of_an_own_op_that_planned_nothing_is_told() {
    let folder = Folder::new();
    let pack = pack(&folder, "My.Scale", "elems == 777216");
    let (code, told) = nxv(&["pack", "check", "--json", &pack]);
    assert_eq!(code, Some(0), "{told}");
    let plan = group(&told, "plan").to_string();
    assert!(
        plan.contains("planned none of the requests, mostly for: it is for others"),
        "{plan}"
    );
    let (code, told) = nxv(&["pack", "compile", &pack]);
    assert_eq!(code, Some(0), "{told}");
    assert!(
        told.contains("k: it planned none of the requests"),
        "{told}"
    );
}

#[test]
fn a_request_of_an_own_op_is_checked_compiled_timed_and_explained() {
    let folder = Folder::new();
    let pack = pack(&folder, "My.Scale", "elems == 777216");
    let request = "My.Scale f32[777216] -> f32[777216]";
    let (code, told) = nxv(&["pack", "check", "--json", &pack, "--request", request]);
    assert_eq!(code, Some(0), "{told}");
    assert!(
        !group(&told, "plan").to_string().contains("planned none"),
        "{told}"
    );
    assert_eq!(
        group(&told, "shaders")["counts"]["shader variants"],
        1,
        "{told}"
    );
    let (code, told) = nxv(&["pack", "compile", &pack, "--request", request]);
    assert!(
        code == Some(0) && told.contains("1 shader variants"),
        "{told}"
    );
    let (code, told) = nxv(&["pack", "bench", &pack, "--quick", "--request", request]);
    assert!(code == Some(0) && told.contains("own/k"), "{told}");
    let packs = folder.to_str().unwrap().to_owned();
    let (code, told) = nxv(&["bench", "--quick", "--request", request, "--packs", &packs]);
    assert!(code == Some(0) && told.contains("own/k"), "{told}");
    let explain = [
        "explain", "My.Scale", "f32[8]", "--out", "f32[8]", "--out", "s32[]",
    ];
    let (code, told) = nxv(&[&explain[..], &["--packs", &packs]].concat());
    assert!(
        code == Some(1) && told.contains("My.Scale(f32[8]) -> f32[8], s32[]"),
        "{told}"
    );
    let (code, told) = nxv(&["pack", "bench", &pack, "--request", "My.Scale f32[8]"]);
    assert!(
        code == Some(2) && told.contains("needs its results after ->"),
        "{told}"
    );
}

#[test]
fn a_broken_shader_of_an_own_op_is_found() {
    let folder = Folder::new();
    let pack = pack(&folder, "My.Scale", "elems < 1000000");
    folder.write("own/k.comp", format!("{SHADER}garbage here\n"));
    for verb in ["check", "compile"] {
        let (code, told) = nxv(&["pack", verb, &pack]);
        assert!(
            code == Some(1) && told.contains("k.comp:7"),
            "{verb}: {told}"
        );
    }
}

#[test]
fn a_request_that_is_for_no_kernel_is_an_error() {
    let folder = Folder::new();
    let pack = pack(&folder, "negate", "elems < 1000000");
    for verb in ["check", "compile"] {
        for (request, why) in [
            ("add f32[8] f32[8]", "the pack has no kernel for add"),
            (
                "negate s32[8]",
                "no kernel of the pack lists the types of negate(s32[8])",
            ),
            ("f32[8] f32[8]", "negate takes 1 operands, got: 2"),
            ("negate f32[8] axes=1", "it has no attribute axes"),
        ] {
            let (code, told) = nxv(&["pack", verb, &pack, "--request", request]);
            let told_why = format!("error: --request {request}: ");
            assert!(
                code == Some(1) && told.contains(&told_why) && told.contains(why),
                "{verb} {request}: {told}"
            );
        }
        let (code, told) = nxv(&["pack", verb, &pack, "--request", "f32[8]"]);
        assert_eq!(code, Some(0), "{verb}: {told}");
    }
}

#[test]
fn plans_beyond_the_device_are_not_looked_at_and_say_why() {
    let folder = Folder::new();
    let pack = pack(&folder, "negate", "elems < 1000000");
    let large = SHADER.replace(
        "void main() {",
        "shared float s[100000000];\nvoid main() { s[n] = 1; b[1] = s[0];",
    );
    folder.write("own/k.comp", large);
    let (code, told) = nxv(&["pack", "check", "--json", &pack]);
    assert_eq!(code, Some(0), "{told}");
    let plan = group(&told, "plan").to_string();
    assert!(
        plan.contains("it planned none of the requests, mostly for: "),
        "{plan}"
    );
    assert!(plan.contains("400000000 bytes of shared memory"), "{plan}");
    let shaders = group(&told, "shaders").to_string();
    assert!(
        shaders.contains("400000000 bytes of shared memory"),
        "{shaders}"
    );
    let (_, told) = nxv(&["pack", "compile", &pack, "--shared", "65536"]);
    assert!(
        told.contains("400000000 bytes of shared memory, and the device 65536"),
        "{told}"
    );
}

#[test]
fn a_device_that_cannot_be_is_refused() {
    for (option, value) in [("--shared", "0"), ("--subgroup", "0"), ("--subgroup", "3")] {
        let (code, told) = nxv(&["pack", "compile", "/nowhere", option, value]);
        assert!(
            code == Some(2) && told.contains(option),
            "{option} {value}: {told}"
        );
    }
}

#[test]
fn an_axis_that_is_not_there_is_refused() {
    for axis in ["9", "-1"] {
        let request = format!("dot f32[2,3] f32[3,2] contract_a={axis} contract_b=0");
        let (code, told) = nxv(&["bench", "--request", &request]);
        assert!(code == Some(2) && told.contains("contract_a"), "{told}");
    }
}

#[test]
fn attributes_stand_among_operands_and_are_given_once() {
    let (code, told) = nxv(&["explain", "sum", "f32[2,3]", "axes=1"]);
    assert!(
        code == Some(0) && told.contains("sum(f32[2,3]) -> f32[2]"),
        "{told}"
    );
    for twice in [
        ["--attr=axes=1", "--attr=axes=0"],
        ["axes=1", "--attr=axes=1"],
    ] {
        let (code, told) = nxv(&[&["explain", "sum", "f32[2,3]"][..], &twice].concat());
        assert!(
            code == Some(2) && told.contains("axes is given twice"),
            "{told}"
        );
    }
    let (code, told) = nxv(&["explain", "sum", "f32[2,3]", "axes=1.5"]);
    assert!(
        code == Some(2) && told.ends_with("got 1.5\n\nFor more information, try '--help'.\n"),
        "{told}"
    );
}

#[test]
fn no_more_threads_are_started_than_a_machine_has() {
    let (code, told) = nxv(&["check", "--threads", "99999"]);
    assert!(code == Some(2) && told.contains("not in 1..=256"), "{told}");
    // Without packs: all of it ran.
    let (_, told) = nxv(&["check", "--threads", "256", "--filter", "negate", "--quick"]);
    assert!(
        told.ends_with("no pack serves; no wrong results\n"),
        "{told}"
    );
}

#[test]
fn paths_that_are_not_utf8_are_told_of() {
    let folder = Folder::new();
    let odd = |name: &str| -> OsString {
        let start = folder.join(name).into_os_string().into_vec();
        OsString::from_vec([&start[..], b"\xff"].concat())
    };
    let file = odd("x");
    fs::copy(crate::packs::built("template"), &file).unwrap();
    for verb in ["check", "test", "bench", "compile", "pin"] {
        let (code, told) = nxv(&["pack".as_ref(), verb.as_ref(), file.as_os_str()]);
        assert!(
            code == Some(2) && told.contains("the path is not UTF-8"),
            "{verb}: {told}"
        );
    }
    let words = |words: [&str; 3], path: &OsStr| {
        let mut words: Vec<OsString> = words.into_iter().map(OsString::from).collect();
        words.push(path.to_owned());
        words
    };
    let into = odd("i");
    fs::create_dir(&into).unwrap();
    let registry = Path::new(&into).join("registry.toml");
    fs::write(&registry, "schema = 1\n[search]\npaths = [\"nowhere\"]\n").unwrap();
    for words in [
        words(["pack", "keygen", "--key"], &odd("k")),
        words(
            ["pack", "new", "foo"],
            OsStr::from_bytes(&[b"--into=", into.as_bytes()].concat()),
        ),
        words(["registry", "check", "--json"], registry.as_os_str()),
    ] {
        let (code, told) = nxv(&words);
        assert_eq!(code, Some(0), "{words:?}: {told}");
    }
}

#[test]
fn a_folder_with_a_library_or_a_crate_is_no_pack_without_code() {
    let folder = Folder::new();
    let pack = pack(&folder, "negate", "elems < 1000000");
    folder.write("own/Cargo.toml", "");
    folder.write("own/x.so", "");
    let (code, told) = nxv(&["pack", "check", &pack]);
    let why = "it holds Cargo.toml, x.so, so it is no pack without code; name the library";
    assert!(code == Some(2) && told.contains(why), "{told}");
}

#[test]
fn mistakes_in_a_table_keep_their_lines() {
    let folder = Folder::new();
    let pack = pack(&folder, "negate", "elems < nothing");
    let (code, told) = nxv(&["pack", "check", &pack]);
    assert_eq!(code, Some(1), "{told}");
    let caret = told
        .lines()
        .find(|line| line.trim_start_matches([' ', '|']).starts_with('^'));
    assert!(
        caret.is_some_and(|line| line.starts_with("      ")),
        "{told}"
    );
}

#[test]
fn a_pack_that_is_named_twice_is_rejected_once() {
    let folder = Folder::new();
    pack(&folder, "negate", "elems < nothing");
    let packs = folder.to_str().unwrap().to_owned();
    let text = format!("schema = 1\n[search]\npaths = [\"{packs}\"]\n");
    let other = Folder::new();
    let registry = other.write("registry.toml", text);
    let words = [
        "registry",
        "check",
        registry.to_str().unwrap(),
        "--packs",
        &packs,
    ];
    let (_, told) = nxv(&words);
    assert_eq!(told.matches("rejected: ").count(), 1, "{told}");
}

#[test]
fn a_pack_that_ends_the_process_of_its_test_is_told() {
    let folder = Folder::new();
    let file = folder.write("x.so", crate::hostile::hostile("plan_writes"));
    let (code, told) = nxv(&["pack", "test", file.to_str().unwrap(), "--quick"]);
    assert_eq!(code, Some(1), "{told}");
    assert!(
        told.contains("FAILED: the process with the pack ended: signal: 11"),
        "{told}"
    );
    assert!(told.contains("  no case was running\n"), "{told}");
}

#[test]
fn text_of_a_plan_that_is_none_is_refused() {
    let folder = Folder::new();
    for (misdeed, expected) in [
        ("plan_mumbles", "\u{fffd}\u{fffd}1"),
        (
            "plan_garbles",
            "the file or a define of shader 0 is not UTF-8",
        ),
        (
            "plan_garbles_defines",
            "the file or a define of shader 0 is not UTF-8",
        ),
    ] {
        folder.write("packs/x.so", crate::hostile::hostile(misdeed));
        let packs = folder.join("packs");
        let words = [
            "explain",
            "negate",
            "f32[4]",
            "--packs",
            packs.to_str().unwrap(),
        ];
        let (code, told) = nxv(&words);
        assert_eq!(code, Some(0), "{misdeed}: {told}");
        assert!(told.contains(expected), "{misdeed}: {told}");
    }
}

/// A CPU plans none of these, and a kernel whose shader does not compile is one that another stands in for.
#[test]
fn shaders_for_matrix_units_compile_without_any() {
    let file = crate::packs::built("matmul");
    let requests = [
        "dot f32[2048,4096] f32[4096,3046] contract_a=1 contract_b=0",
        "dot f32[4096,4096] f32[4096,4096] contract_a=1 contract_b=0",
        "dot f16[512,848] f16[302,512] contract_a=0 contract_b=1",
        "dot bf16[32,483,256] bf16[32,483,122] contract_a=1 contract_b=1 batch_a=0 batch_b=0",
        "dot f16[512,2016] f16[512,3046] contract_a=0 contract_b=0",
        "dot f16[501,3211] f16[3043,501] contract_a=0 contract_b=1",
        "dot f16[512,504] f16[504,304] contract_a=1 contract_b=0",
        "dot s8[512,848] s8[302,512] contract_a=0 contract_b=1",
    ];
    let requests = requests.map(|request| ["--request", request]);
    let file = file.to_str().unwrap();
    let arguments = [
        &["pack", "compile", "--json", file],
        requests.as_flattened(),
    ];
    let output = output(&arguments.concat());
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{report:#}");
    assert!(
        report["counts"]["shader variants"].as_u64() > Some(90),
        "{report:#}"
    );
}
