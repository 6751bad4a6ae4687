//! `nxv` as it is called: exit codes, messages and the shape of its JSON.

use crate::{folder::Folder, nxv_pack::text, packs::copied};
use serde_json::Value;
use std::{
    env,
    process::{Command, Output},
};

fn nxv(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_nxv"))
        .args(arguments)
        .output()
        .expect("nxv starts")
}

fn stdout(arguments: &[&str]) -> String {
    let output = nxv(arguments);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{arguments:?}: {error}");
    String::from_utf8(output.stdout).expect("nxv prints UTF-8")
}

fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(&stdout(arguments)).expect("nxv prints JSON")
}

fn keys(value: &Value) -> Vec<&str> {
    let object = value.as_object().expect("an object");
    object.keys().map(String::as_str).collect()
}

fn usage_error(arguments: &[&str], message: &str) {
    let output = nxv(arguments);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {error}");
    assert!(error.contains(message), "{arguments:?}: {error}");
    assert!(output.stdout.is_empty(), "{arguments:?}");
}

#[test]
fn help_says_what_there_is() {
    let general = stdout(&["--help"]);
    for verb in ["devices", "ops", "explain", "check", "bench"] {
        assert!(general.contains(verb), "{verb}");
        let help = stdout(&["help", verb]);
        assert!(help.contains(&format!("Usage: nxv {verb}")), "{help}");
        assert_eq!(help, stdout(&[verb, "--help"]));
    }
    assert!(stdout(&["--version"]).starts_with("nxv "));
}

#[test]
fn a_wrong_command_line_is_explained_and_exits_with_2() {
    usage_error(&[], "Usage: nxv [OPTIONS] <VERB>");
    usage_error(&["explian"], "exists: 'explain'");
    usage_error(&["bench", "--fliter", "x"], "exists: '--filter'");
    usage_error(&["explain"], "not provided:\n  <OP>");
    usage_error(&["explain", "add", "f32[2]"], "add takes 2 operands");
    usage_error(&["explain", "add", "f32[2]", "f32[3]"], "do not broadcast");
    usage_error(
        &["explain", "add", "f33[2]", "f32[2]"],
        "did you mean `f32`?",
    );
    usage_error(&["explain", "as_type", "f32[2]"], "name it");
    usage_error(&["explain", "swish", "f32[2]"], "`swish`; one that");
    usage_error(&["explain", "mltiply"], "did you mean `multiply`? One that");
    usage_error(&["check", "--filter", "summ"], "did you mean `sum`?");
    usage_error(&["check", "--threads", "0"], "'0' for '--threads <N>'");
    usage_error(
        &["pack", "watch", "/nowhere"],
        "there is no folder /nowhere",
    );
    usage_error(
        &["pack", "watch", ".", "--registry", "x.toml"],
        "leave out --registry",
    );
    usage_error(&["check", "--seed", "many"], "'many' for '--seed <N>'");
    usage_error(&["bench", "--filter", "nothing like it"], "--list");
}

#[test]
fn a_device_that_does_not_exist_exits_with_1() {
    for verb in ["ops", "devices"] {
        let output = nxv(&[verb, "--device", "no such device"]);
        assert_eq!(output.status.code(), Some(1), "{verb}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("no such device"));
    }
}

#[test]
fn devices_are_listed() {
    let devices = json(&["devices", "--json"]);
    let first = &devices.as_array().expect("a list")[0];
    for key in [
        "index", "name", "kind", "uuid", "driver", "api", "memory", "features", "matrices",
        "unusable",
    ] {
        assert!(keys(first).contains(&key), "{key}: {first}");
    }
    let name = first["name"].as_str().expect("a name");
    assert!(stdout(&["devices"]).contains(name));
    let named = json(&["devices", "--json", "--device", name]);
    assert_eq!(named, serde_json::json!([first]));
}

#[test]
fn ops_and_explanations_have_their_shape() {
    let rows = json(&["ops", "--filter", "bitwise_*", "--json"]);
    let rows = rows.as_array().expect("a list");
    assert_eq!(rows.len(), 4 * 12, "four ops on twelve integer types");
    assert_eq!(keys(&rows[0]), ["dtype", "op", "served_by"]);

    let request = ["explain", "sum", "f32[8,9]", "--attr", "axes=1", "--json"];
    let explanation = json(&request);
    assert_eq!(
        keys(&explanation),
        [
            "candidates",
            "device",
            "generation",
            "picked",
            "request",
            "rules"
        ]
    );
    let candidates = explanation["candidates"].as_array().expect("a list");
    assert_eq!(
        keys(&candidates[0]),
        ["kernel", "line", "measured_us", "outcome", "reason"]
    );
    let outcome = |candidate: &Value| candidate["outcome"] == "picked";
    let picked = candidates.iter().find(|c| outcome(c)).expect("somebody");
    assert_eq!(explanation["picked"], picked["kernel"]);
    assert!(
        explanation["request"]
            .as_str()
            .expect("text")
            .contains("f32[8]")
    );
}

#[test]
fn an_op_that_only_a_pack_knows_is_explained_too() {
    let packs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/packs");
    let request = ["explain", "swish", "f32[8]", "--out", "f32[8]"];
    let explanation = json(&[&request[..], &["--packs", packs, "--json"]].concat());
    assert_eq!(explanation["picked"], "swish/swish");
    assert_eq!(nxv(&request).status.code(), Some(1));
}

#[test]
fn a_request_is_a_benchmark() {
    let request = "dot f16[32,64] f16[64,16] -> f32[32,16]";
    let result = json(&["bench", "--quick", "--json", "--request", request]);
    let row = &result["results"][0];
    assert_eq!(row["name"], request);
    let us = row["median_us"].as_f64().expect("a time");
    let tera = 2.0 * 32.0 * 64.0 * 16.0 / us / 1e6;
    assert!((row["tflops"].as_f64().expect("a rate") / tera - 1.0).abs() < 1e-9);
    assert!(row.get("steps").is_none(), "{row}");
    usage_error(&["bench", "--request", "f32[2]"], "names no op");
    usage_error(&["bench", "--request", "dto f32[2]"], "did you mean `dot`?");
}

#[test]
fn a_profile_tells_the_steps_of_a_request() {
    let folder = Folder::new();
    let measure_nothing = "schema = 1\n[defaults]\nmeasure = \"never\"\n";
    let registry = folder.write("registry.toml", measure_nothing);
    let packs = copied(&folder, &["sort"]);
    let request = [
        "bench",
        "--quick",
        "--profile",
        "--request",
        "sort f32[3000]",
    ];
    // Of its own: what was measured before decides too.
    let cache = folder.join("cache");
    let from = ["--registry", text(&registry), "--packs", text(&packs)];
    let request = [&request[..], &from, &["--cache", text(&cache)]].concat();
    for more in [&["--json"][..], &["--json", "--replayed"]] {
        let result = json(&[&request[..], more].concat());
        let row = &result["results"][0];
        assert_eq!(row["served_by"], "sort/sort", "{row}");
        let steps = row["steps"].as_array().expect("steps");
        assert!(!steps.is_empty(), "{row}");
        for step in steps {
            assert_eq!(keys(step), ["groups", "step", "us"]);
            let shader = step["step"].as_str().expect("a shader");
            assert!(shader.ends_with(".comp"), "{step}");
            assert!(step["us"].as_f64().expect("a time") > 0.0, "{step}");
        }
    }
    let told = stdout(&request);
    assert!(told.contains(" us  ") && told.contains(".comp "), "{told}");
}

#[test]
fn benchmarks_have_their_shape() {
    let names = json(&["bench", "--list", "--json"]);
    assert!(
        names
            .as_array()
            .expect("a list")
            .contains(&"add 2^26 f32".into())
    );

    let request = [
        "bench",
        "--filter",
        "small add",
        "--quick",
        "--host",
        "--json",
    ];
    let result = json(&request);
    assert_eq!(keys(&result), ["device", "driver", "results"]);
    let rows = result["results"].as_array().expect("a list");
    assert_eq!(rows.len(), 3);
    for row in rows {
        let time = |key: &str| row[key].as_f64().expect("a time");
        assert!(time("min_us") > 0.0 && time("host_us") > 0.0, "{row}");
        assert!(time("min_us") <= time("median_us"), "{row}");
        assert!(time("median_us") <= time("p95_us"), "{row}");
        assert!(
            row["served_by"].is_string() && row["note"].is_null(),
            "{row}"
        );
    }
}

#[test]
fn a_check_without_packs_fails_and_says_what_is_not_served() {
    let output = Command::new(env!("CARGO_BIN_EXE_nxv"))
        .args(["check", "--filter", "bitwise_not", "--quick", "--json"])
        .env("NX_VULKAN_PACKS", env::temp_dir().join("nxv-no-packs-here"))
        .env_remove("NX_VULKAN_REGISTRY")
        .output()
        .expect("nxv starts");
    assert_eq!(output.status.code(), Some(1));
    let report: Value = serde_json::from_slice(&output.stdout).expect("nxv prints JSON");
    assert!(
        report["not_served"]["bitwise_not(u8) -> u8"].is_u64(),
        "{report}"
    );
    assert_eq!(report["failures"], Value::Array(Vec::new()));
    assert_eq!(report["validation"], Value::Array(Vec::new()));
}

/// Any number and any word were taken, and a word was as good as none.
#[test]
fn a_level_that_is_none_is_told() {
    let folder = Folder::new();
    crate::packs::copied(&folder, &["elementwise"]);
    for (level, is_told) in [("9", true), ("abc", true), ("", false), ("5", false)] {
        let output = Command::new(env!("CARGO_BIN_EXE_nxv"))
            .args(["explain", "negate", "f32[2]"])
            .env("NX_VULKAN_PACKS", folder.join("packs"))
            .env("NX_VULKAN_PACK_LOG", level)
            .env_remove("NX_VULKAN_REGISTRY")
            .output()
            .expect("nxv starts");
        let error = String::from_utf8_lossy(&output.stderr);
        let why = format!("NX_VULKAN_PACK_LOG to be a number from 0 to 5, got: {level:?}");
        assert_eq!(error.matches(&why).count(), usize::from(is_told), "{error}");
    }
}

#[test]
fn a_check_fails_where_others_stand_in_for_a_kernel_that_cannot_run() {
    let folder = Folder::new();
    let table = "[pack]\nid = \"broken\"\nversion = \"0.1.0\"\nabi = \"1\"\n\
        [[kernel]]\nid = \"bitwise_not\"\nop = \"bitwise_not\"\ntypes = [\"u8->u8\"]\n\
        shader = \"k.comp\"\ngroups = [\"ceil(elems / 64)\"]\npush = [\"elems\"]\n";
    folder.write("broken/pack.toml", table);
    folder.write("broken/k.comp", "#version 450\nnothing\n");
    crate::packs::copied(&folder, &["elementwise"]);
    let found = env::join_paths([folder.join(""), folder.join("packs")]).expect("two folders");
    let output = Command::new(env!("CARGO_BIN_EXE_nxv"))
        .args(["check", "--filter", "bitwise_not", "--quick", "--json"])
        .env("NX_VULKAN_PACKS", found)
        .env_remove("NX_VULKAN_REGISTRY")
        .output()
        .expect("nxv starts");
    assert_eq!(output.status.code(), Some(1));
    let report: Value = serde_json::from_slice(&output.stdout).expect("nxv prints JSON");
    let [broken] = report["broken"].as_array().expect("a list").as_slice() else {
        panic!("{report:#}");
    };
    let broken = broken.as_str().expect("a text");
    assert!(broken.starts_with("broken/bitwise_not: "), "{broken}");
    assert!(broken.contains("k.comp"), "{broken}");
    assert_eq!(report["failures"], Value::Array(Vec::new()));
}

#[test]
fn registry_files_are_checked_without_loading_anything() {
    let complete = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/complete.toml");
    let checked = json(&["registry", "check", complete, "--json"]);
    assert_eq!(
        keys(&checked),
        [
            "diagnostics",
            "failure",
            "file",
            "packs",
            "rejected",
            "valid"
        ]
    );
    assert_eq!(
        (&checked["valid"], &checked["packs"]),
        (&Value::Bool(true), &Value::Null)
    );
    assert!(stdout(&["registry", "check", "--registry", complete]).contains(": valid, 0 errors"));
    assert_eq!(json(&["registry", "schema"])["type"], "object");

    let mistakes = complete.replace("complete", "mistakes");
    let output = nxv(&["registry", "check", &mistakes, "--json"]);
    assert_eq!(output.status.code(), Some(1));
    let checked: Value = serde_json::from_slice(&output.stdout).expect("nxv prints JSON");
    let first = &checked["diagnostics"][0];
    assert_eq!(
        (
            &first["code"],
            &first["line"],
            &first["column"],
            &first["severity"]
        ),
        (&"NXR007".into(), &2.into(), &8.into(), &"error".into())
    );
    let text = nxv(&["registry", "check", &mistakes]);
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    assert!(
        text.ends_with("mistakes.toml: not valid, 53 errors, 0 warnings\n"),
        "{text}"
    );

    usage_error(&["registry"], "Usage: nxv registry [OPTIONS] <VERB>");
    usage_error(&["registry", "chekc"], "'check'");
}

#[test]
fn explanations_name_the_lines_of_the_registry() {
    let registry = env::temp_dir().join(format!("nxv-lines-{}.toml", std::process::id()));
    let text = "schema = 1\n[[op]]\nname = \"s*\"\nshape = [\"a.dim[-1] > 9\"]\nuse = [\"*\"]\n\
                [[op]]\nname = \"sum\"\nuse = [\"host\"]\n";
    std::fs::write(&registry, text).expect("a file in the temporary folder");
    let path = registry.to_string_lossy().into_owned();
    let request = ["explain", "sum", "f32[8,9]", "--registry", &path];
    let explanation = json(&[&request[..], &["--json"]].concat());
    let text = stdout(&request);
    std::fs::remove_file(&registry).expect("the file is there");
    let name = registry
        .file_name()
        .expect("a name")
        .to_string_lossy()
        .into_owned();
    let unfit = "`a.dim[-1] > 9` is false: a.dim[-1] is 9";
    assert_eq!(
        explanation["rules"],
        serde_json::json!([
            {"line": format!("{name}:2"), "unfit": unfit},
            {"line": format!("{name}:6"), "unfit": null},
        ])
    );
    assert_eq!(explanation["candidates"][0]["line"], format!("{name}:8"));
    assert!(
        text.contains(&format!("not by the rule at {name}:2: {unfit}")),
        "{text}"
    );
    assert!(
        text.contains(&format!("runs on the CPU   [{name}:8]")),
        "{text}"
    );
}
