//! `nxv pack` as it is called: what it finds, what it writes, and what it says about files that are no packs.

use crate::folder::Folder;
use serde_json::Value;
use std::{
    fs,
    io::{BufRead as _, BufReader},
    path::Path,
    process::{Command, Output, Stdio},
};

pub(crate) fn nxv(arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_nxv"))
        .args(arguments)
        .envs(variables.iter().copied())
        .env_remove("NX_VULKAN_PACKS")
        .output()
        .unwrap()
}

pub(crate) fn error(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

pub(crate) fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// The findings of a group that are errors.
fn errors(report: &Value, group: &str) -> String {
    let findings = report["groups"][group]["findings"].as_array().unwrap();
    let errors = findings.iter().filter(|finding| finding["error"] == true);
    let told = errors.map(|finding| format!("{}: {}\n", finding["at"], finding["what"]));
    told.collect()
}

fn check(file: &Path, options: &[&str], variables: &[(&str, &str)]) -> (bool, Value) {
    let arguments = [&["pack", "check", "--json", text(file)], options].concat();
    let output = nxv(&arguments, variables);
    let report =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", error(&output)));
    (output.status.success(), report)
}

#[test]
fn a_pack_that_keeps_the_rules_passes_and_is_tested() {
    let file = crate::packs::built("template");
    let (holds, report) = check(&file, &["--seed", "3"], &[]);
    assert!(holds, "{report:#}");
    assert_eq!(report["groups"]["file"]["counts"]["exported symbols"], 1);
    assert!(report["groups"]["plan"]["counts"]["valid plans"].as_u64() > Some(10));
    let arguments = ["pack", "test", text(&file), "--quick", "--json"];
    let output = nxv(&arguments, &[]);
    assert!(output.status.success(), "{}", error(&output));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(report["ran"].as_u64() > Some(0), "{report:#}");
    assert_eq!(report["not_tested"], serde_json::json!(["square"]));
}

#[test]
fn a_request_is_timed_against_the_kernel_that_is_named() {
    let file = crate::packs::built("template");
    let bench = |request: &str, against: &str| {
        let arguments = ["pack", "bench", text(&file), "--quick", "--json"];
        let asked = ["--request", request, "--against", against];
        nxv(&[&arguments[..], &asked].concat(), &[])
    };
    let output = bench("negate f32[60,1000]", "host");
    assert!(output.status.success(), "{}", error(&output));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let rows = report["results"].as_array().unwrap();
    let kernels = rows.iter().map(|row| row["kernel"].as_str().unwrap());
    let kernels: Vec<&str> = kernels.collect();
    assert_eq!(kernels, ["template/negate_f32", "host"]);
    for row in rows {
        assert_eq!(row["request"], "negate(f32[60, 1000]) -> f32[60, 1000]");
        let gbps = row["gbps"].as_f64().unwrap();
        let expected = 480_000.0 / row["median_us"].as_f64().unwrap() / 1e3;
        assert!((gbps / expected - 1.0).abs() < 1e-9, "{row}");
        assert!(row["tflops"].is_null(), "{row}");
    }
    for (request, against, told) in [
        (
            "negate f32[8]",
            "nobody/negate",
            "no loaded pack has a kernel nobody/negate",
        ),
        (
            "dot f32[8] f32[8]",
            "host",
            "the pack has no kernel for dot",
        ),
        ("negate f32[8", "host", "expected a type and a shape"),
    ] {
        let output = bench(request, against);
        assert_eq!(output.status.code(), Some(2), "{request}");
        assert!(error(&output).contains(told), "{}", error(&output));
    }
}

#[test]
fn a_kernel_that_plans_nothing_is_told_until_a_request_is_for_it() {
    let folder = Folder::new();
    let table = "[pack]\nid = \"large\"\nversion = \"0.1.0\"\nabi = \"1\"\n\
        [[kernel]]\nid = \"negate_large\"\nop = \"negate\"\ntypes = [\"f32->f32\"]\n\
        when = [{ check = \"elems == 777216\", reason = \"it is for 777216 elements\" }]\n\
        shader = \"k.comp\"\ngroups = [\"ceil(elems / 64)\"]\npush = [\"elems\"]\n";
    let shader = "#version 450\nlayout(local_size_x = 64) in;\n\
        layout(set = 0, binding = 0) readonly buffer A { float a[]; };\n\
        layout(set = 0, binding = 1) writeonly buffer B { float b[]; };\n\
        layout(push_constant) uniform P { uint n; };\n\
        void main() { uint i = gl_GlobalInvocationID.x; if (i < n) b[i] = -a[i]; }\n";
    folder.write("large/pack.toml", table);
    folder.write("large/k.comp", shader);
    let pack = folder.join("large");
    let warned = |report: &Value, group: &str| {
        let findings = report["groups"][group]["findings"].as_array().unwrap();
        let of = |finding: &&Value| finding["at"] != "spirv-val";
        let told = findings.iter().filter(of);
        told.map(|finding| finding["what"].as_str().unwrap().to_owned())
            .collect::<String>()
    };
    let (holds, report) = check(&pack, &[], &[]);
    assert!(holds, "{report:#}");
    let told = warned(&report, "plan");
    assert!(
        told.contains("mostly for: it is for 777216 elements"),
        "{told}"
    );
    assert!(
        warned(&report, "shaders").contains("none was compiled"),
        "{report:#}"
    );
    let request = ["--request", "f32[777216]"];
    let (holds, report) = check(&pack, &request, &[]);
    assert!(holds && warned(&report, "plan").is_empty(), "{report:#}");
    assert_eq!(report["groups"]["shaders"]["counts"]["shader variants"], 1);

    let compile = |request: &[&str]| {
        let output = nxv(
            &[&["pack", "compile", "--json", text(&pack)], request].concat(),
            &[],
        );
        let report: Value =
            serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", error(&output)));
        (output.status.code(), report)
    };
    let (code, report) = compile(&request);
    assert_eq!(
        (code, &report["counts"]["shader variants"]),
        (Some(0), &1.into())
    );
    let (code, report) = compile(&[]);
    assert_eq!(code, Some(0));
    assert!(
        report
            .to_string()
            .contains("it planned none of the requests"),
        "{report:#}"
    );
    folder.write("large/k.comp", shader.replace("-a[i]", "-c[i]"));
    let (code, report) = compile(&request);
    assert_eq!(code, Some(1));
    assert!(report.to_string().contains("k.comp:6"), "{report:#}");
}

#[test]
fn a_request_beyond_the_devices_memory_is_refused() {
    let file = crate::packs::built("template");
    let huge = "negate f32[1000000,1000000]";
    let output = nxv(&["pack", "bench", text(&file), "--request", huge], &[]);
    assert_eq!(output.status.code(), Some(1), "{}", error(&output));
    assert!(error(&output).contains("negate take"), "{}", error(&output));
}

#[test]
fn what_the_driver_does_not_tell_is_said() {
    let file = crate::packs::built("template");
    let arguments = [
        "pack",
        "bench",
        text(&file),
        "--quick",
        "--shaders",
        "--request",
    ];
    let output = nxv(&[&arguments[..], &["negate f32[64]"]].concat(), &[]);
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}", error(&output));
    // Whether a driver tells anything is its own business; silence is none.
    let tells = told.contains("the driver tells nothing") || told.contains(".comp  ");
    assert!(tells, "{told}");
}

#[test]
fn every_broken_plan_is_found() {
    let (holds, report) = check(&crate::packs::built("bad"), &[], &[]);
    let found = errors(&report, "plan");
    assert!(!holds);
    for (kernel, what) in [
        ("bad_panic_32", "when it is asked"),
        ("bad_shader_name_32", "missing.comp"),
        ("bad_glsl_32", "broken.comp"),
        ("bad_bindings_32", "bindings"),
        ("bad_shader_index_32", "shader 7"),
        ("bad_writes_input_32", "writes to input"),
        ("bad_groups_32", "workgroups"),
        ("bad_uncovered_32", "are not written"),
        ("bad_slot_32", "slot 99"),
        ("bad_push_32", "push constants"),
        ("bad_scratch_32", "scratch"),
        ("bad_steps_32", "65 steps"),
    ] {
        let line = found
            .lines()
            .find(|line| line.contains(&format!("\"{kernel} ")));
        assert!(
            line.is_some_and(|line| line.contains(what)),
            "{kernel}: {found}"
        );
    }
    assert!(!found.contains("bad_nothing_32"), "{found}");
}

#[test]
fn a_pack_that_ends_the_process_or_hangs_or_changes_its_mind_is_a_finding() {
    let file = crate::packs::built("bad");
    for (what, seconds, expected) in [
        ("abort", "60", "ended the process in bad_nothing_32"),
        ("hang", "20", "nothing happened for 20 s in bad_nothing_32"),
        ("moody", "60", "another answer"),
    ] {
        let (holds, report) = check(&file, &["--timeout", seconds], &[("NXV_BAD_PLAN", what)]);
        let found = errors(&report, "plan");
        assert!(!holds && found.contains(expected), "{what}: {found}");
    }
    let (holds, report) = check(&file, &[], &[("NXV_BAD_DESCRIBE", "same_id")]);
    let found = errors(&report, "load");
    assert!(
        !holds && found.contains("two kernels are called"),
        "{found}"
    );
    assert!(report["groups"]["plan"].is_null(), "{report:#}");
}

#[test]
fn files_that_are_no_packs_are_findings() {
    let folder = Folder::new();
    let pack = fs::read(crate::packs::built("template")).unwrap();
    let files = [
        ("empty.so", Vec::new(), "not an ELF, Mach-O or PE file"),
        (
            "text.so",
            b"hello".to_vec(),
            "not an ELF, Mach-O or PE file",
        ),
        ("half.so", pack[..pack.len() / 2].to_vec(), "ELF: "),
    ];
    for (name, bytes, expected) in files {
        let file = folder.write(name, bytes);
        let (holds, report) = check(&file, &[], &[]);
        let found = errors(&report, "file");
        assert!(!holds && found.contains(expected), "{name}: {found}");
        for verb in ["test", "bench", "pin"] {
            let output = nxv(&["pack", verb, text(&file)], &[]);
            assert_eq!(output.status.code(), Some(1), "{verb}");
            assert!(error(&output).contains(name), "{verb}: {}", error(&output));
        }
    }
}

#[test]
fn a_wrong_command_line_is_explained() {
    for (arguments, message) in [
        (&["pack"][..], "Usage: nxv pack [OPTIONS] <VERB>"),
        (&["pack", "chek", "x"], "'check'"),
        (&["pack", "check"], "not provided:\n  <FILE>"),
        (
            &["pack", "pin", "x", "--seed", "1"],
            "unexpected argument '--seed'",
        ),
        (&["pack", "sign", "x"], "--key <FILE>"),
        (&["pack", "new", "No Good"], "expected a name"),
        (
            &["pack", "new", "good", "--abi", "/nowhere"],
            "nx-vulkan-abi",
        ),
        (
            &["pack", "check", "x", "--timeout", "0"],
            "expected seconds",
        ),
        (&["tune", "--budget", "-1"], "expected seconds"),
    ] {
        let output = nxv(arguments, &[]);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(
            error(&output).contains(message),
            "{arguments:?}: {}",
            error(&output)
        );
    }
}

#[test]
fn what_stayed_after_a_rejected_edit_is_not_timed_again() {
    let folder = Folder::new();
    let swish = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/packs/swish");
    let shaders = [
        "add.comp",
        "swish.comp",
        "parts.comp",
        "total.comp",
        "sum.glsl",
    ];
    let shaders = shaders.map(|name| format!("shaders/{name}"));
    for name in shaders.iter().map(String::as_str).chain(["pack.toml"]) {
        folder.write(
            &format!("swish/{name}"),
            fs::read(swish.join(name)).unwrap(),
        );
    }
    let mut watch = Command::new(env!("CARGO_BIN_EXE_nxv"))
        .args([
            "pack",
            "watch",
            text(&folder),
            "--op",
            "add",
            "--for",
            "120",
        ])
        .env_remove("NX_VULKAN_PACKS")
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(watch.stdout.take().unwrap())
        .lines()
        .map_while(Result::ok);
    let first = lines.find(|line| line.contains("swish/add"));
    folder.write("swish/shaders/add.comp", "#version 450\nbroken");
    let again = lines.find(|line| line.contains("swish/add"));
    let told = lines.find(|line| line.contains("serves the old shaders on"));
    watch.kill().unwrap();
    watch.wait().unwrap();
    assert_eq!((first, told.is_some()), (again, true));

    let words = [
        "pack",
        "watch",
        text(&folder),
        "--op",
        "add",
        "--for",
        "0.1",
        "--json",
    ];
    let output = nxv(&words, &[]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(report["kernels"].is_array(), "{report:#}");
    assert!(error(&output).contains("swish"), "{}", error(&output));
}

#[test]
fn a_pack_without_code_is_checked_too() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/packs/swish");
    let (holds, report) = check(std::path::Path::new(folder), &[], &[]);
    assert!(holds, "{report:#}");
    assert_eq!(report["groups"]["load"]["counts"]["kernels"], 3);
    assert!(report["groups"]["plan"]["counts"]["valid plans"].as_u64() > Some(0));
}
