//! `registry.toml`: what its mistakes look like, and what it makes of real packs.

mod folder;
mod packs;

use folder::Folder;
use nx_vulkan_abi::{DType, DeviceInfo, Features};
use nx_vulkan_host::{
    Kind,
    registry::{Asked, CandidateKernel, CandidateOutcome, Fallback, Options, Table, load},
};
use packs::built;
use std::{fs, path::Path, process::Command};

/// Loads a registry file that lies in `folder`.
fn load_text(folder: &Folder, text: &str) -> nx_vulkan_host::Result<Table> {
    let registry = folder.write("registry.toml", text);
    load(&Options {
        registry: Some(registry),
        packs: Vec::new(),
        store: folder.join("store"),
        prober: None,
    })
}

/// The error that a registry file gives, its folder left out.
#[track_caller]
fn mistakes(text: &str) -> String {
    let folder = Folder::new();
    let error = load_text(&folder, text).unwrap_err();
    assert_eq!(error.kind(), Kind::Registry, "{error}");
    error
        .to_string()
        .replace(&format!("{}/", folder.display()), "")
}

/// A folder with the template and the bad pack in `packs/`.
fn with_packs() -> Folder {
    let folder = Folder::new();
    for name in ["template", "bad"] {
        folder.write(&format!("packs/{name}.so"), fs::read(built(name)).unwrap());
    }
    folder
}

fn sha256_of(path: &Path) -> String {
    let output = Command::new("sha256sum").arg(path).output().unwrap();
    String::from_utf8(output.stdout).unwrap()[..64].to_owned()
}

/// `pack/kernel` or `host` for each candidate, with the reason of a skip after a colon.
fn order(table: &Table, op: &str, dtype: DType) -> Vec<String> {
    let device = DeviceInfo {
        name: "test".into(),
        vendor: 0,
        driver: 0,
        kind: 0,
        subgroup_size: 32,
        shared_bytes: 0,
        push_bytes: 128,
        max_invocations: 1,
        compute_units: 0,
        max_workgroup_size: [1; 3],
        max_groups: [1; 3],
        max_buffer_range: 1,
        buffer_align: 256,
        features: Features::NONE,
        spare: [0; 4],
    };
    let name = |kernel| match kernel {
        CandidateKernel::Pack(p, k) => {
            format!("{}/{}", table.packs[p].id, table.packs[p].kernels[k].id)
        }
        CandidateKernel::Host => "host".to_owned(),
    };
    let candidates = table
        .candidates(&Asked {
            op,
            inputs: &[(dtype, &[2, 3])],
            outputs: &[(dtype, &[2, 3])],
            device: &device,
            measured: &|_, _| None,
        })
        .into_iter();
    let shown = candidates.map(|candidate| match candidate.outcome {
        CandidateOutcome::Considered => name(candidate.kernel),
        CandidateOutcome::Skipped(why) => format!("{}: {why}", name(candidate.kernel)),
    });
    shown.collect()
}

#[test]
fn a_missing_file_is_an_error_when_it_was_named() {
    let error = load(&Options {
        registry: Some("/nowhere/registry.toml".into()),
        ..Options::default()
    });
    let error = error.unwrap_err();
    assert_eq!(error.kind(), Kind::Registry);
    assert_eq!(
        error.to_string(),
        "cannot read the registry /nowhere/registry.toml: No such file or directory (os error 2)"
    );
}

#[test]
fn the_default_registry_is_valid() {
    let registry = Path::new(env!("CARGO_MANIFEST_DIR")).join("../registry.toml");
    let folder = Folder::new();
    let text = fs::read_to_string(registry).unwrap();
    let table = load_text(&folder, &text).unwrap();
    assert_eq!(table.fallback, Fallback::Host);
    let missing = format!("search folder {}/priv/packs: ", folder.display());
    assert!(
        table.warnings.len() == 1 && table.warnings[0].starts_with(&missing),
        "{table:?}"
    );
    fs::create_dir_all(folder.join("priv/packs")).unwrap();
    fs::copy(built("template"), folder.join("priv/packs/template.so")).unwrap();
    assert_eq!(load_text(&folder, &text).unwrap().packs[0].id, "template");
}

#[test]
fn a_syntax_error_is_placed() {
    assert_eq!(
        mistakes("schema = 1\nmode = \"dev\n"),
        "registry.toml:2:12: invalid basic string, expected `\"`\n \
         2 | mode = \"dev\n   |            ^"
    );
    assert_eq!(
        mistakes("schema = 1\nschema = 1\n"),
        "registry.toml:2:1: duplicate key\n 2 | schema = 1\n   | ^^^^^^"
    );
}

#[test]
fn a_file_that_is_not_text_is_placed() {
    let folder = Folder::new();
    let registry = folder.write("registry.toml", b"schema = 1\nmode = \"\xff\"\n");
    let error = load(&Options {
        registry: Some(registry),
        ..Options::default()
    })
    .unwrap_err();
    let error = error.to_string();
    assert!(
        error.contains("registry.toml:2:9: the file is not UTF-8\n 2 | mode = \"\u{fffd}\""),
        "{error}"
    );
}

#[test]
fn an_unknown_schema_is_the_only_complaint() {
    assert_eq!(
        mistakes("schema = 2\nwhatever = true\n"),
        "registry.toml:1:10: this version reads `schema = 1` only\n 1 | schema = 2\n   |          ^"
    );
    assert_eq!(
        mistakes("mode = \"dev\"\n"),
        "registry.toml:1:1: `schema = 1` is missing\n 1 | mode = \"dev\"\n   | ^"
    );
}

#[test]
fn an_unknown_key_comes_with_a_suggestion() {
    assert_eq!(
        mistakes("schema = 1\n\n[defaults]\nfallbakc = \"host\"\n"),
        "registry.toml:4:1: [defaults] has no key `fallbakc`; did you mean `fallback`?\n \
         4 | fallbakc = \"host\"\n   | ^^^^^^^^"
    );
    assert_eq!(
        mistakes("schema = 1\n[search]\ncolour = 1\n"),
        "registry.toml:3:1: [search] has no key `colour`; it has `paths`, `store`\n \
         3 | colour = 1\n   | ^^^^^^"
    );
}

#[test]
fn every_mistake_is_reported_at_once() {
    let text = r#"schema = 1
mode = "loked"

[search]
paths = ["a", 7]

[defaults]
fallback = "Host"
numerics = 3

[pack.gemm]
version = "one"
sha256 = "abc"
priority = "high"

[pack."a b"]

[[op]]
name = "dot"
dtype = ["f33", "float"]
use = ["gemm/", "host"]

[[op]]
use = []

[[deny]]
pack = "gemm"
"#;
    let expected = r#"registry.toml:2:8: `mode` is one of "dev", "locked", not "loked"; did you mean `locked`?
 2 | mode = "loked"
   |        ^^^^^^^
registry.toml:5:15: expected a string, got an integer
 5 | paths = ["a", 7]
   |               ^
registry.toml:8:12: `fallback` is one of "host", "error", not "Host"; did you mean `host`?
 8 | fallback = "Host"
   |            ^^^^^^
registry.toml:9:12: expected a string, got an integer
 9 | numerics = 3
   |            ^
registry.toml:12:11: `one` is not a range of versions: unexpected character 'o' while parsing major version number
 12 | version = "one"
    |           ^^^^^
registry.toml:13:10: a sha256 is 64 hexadecimal digits
 13 | sha256 = "abc"
    |          ^^^^^
registry.toml:14:12: expected an integer, got a string
 14 | priority = "high"
    |            ^^^^^^
registry.toml:16:7: a pack id is made of letters, digits, `.`, `_` and `-`, and is not `host`
 16 | [pack."a b"]
    |       ^^^^^
registry.toml:20:10: there is no type `f33`; did you mean `f32`?
 20 | dtype = ["f33", "float"]
    |          ^^^^^
registry.toml:21:8: expected "pack", "pack/kernel", "host" or "*"
 21 | use = ["gemm/", "host"]
    |        ^^^^^^^
registry.toml:23:1: [[op]] needs `name`
 23 | [[op]]
    | ^^^^^^
registry.toml:23:1: `use` is empty; to forbid a pack, write [[deny]]
 23 | [[op]]
    | ^^^^^^
registry.toml:26:1: [[deny]] needs `reason`
 26 | [[deny]]
    | ^^^^^^^^"#;
    assert_eq!(mistakes(text), expected);
}

#[test]
fn locked_mode_wants_a_pin_for_this_target_and_known_names() {
    let text = "schema = 1\nmode = \"locked\"\n[pack.gemm]\n[pack.conv.sha256]\n\
                riscv64-unknown-none = \"1111111111111111111111111111111111111111111111111111111111111111\"\n\
                [[op]]\nname = \"dot\"\nuse = [\"gem\", \"host\"]\n";
    let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let expected = format!(
        "registry.toml:3:7: pack `gemm` has no sha256 for {target}, which mode \"locked\" requires\n \
         3 | [pack.gemm]\n   |       ^^^^\n\
         registry.toml:4:7: pack `conv` has no sha256 for {target}, which mode \"locked\" requires\n \
         4 | [pack.conv.sha256]\n   |       ^^^^\n\
         registry.toml:8:8: there is no [pack.gem]; did you mean `gemm`?\n \
         8 | use = [\"gem\", \"host\"]\n   |        ^^^^^"
    );
    assert_eq!(mistakes(text), expected);
}

#[test]
fn locked_mode_loads_what_is_pinned_and_nothing_else() {
    let folder = with_packs();
    // A content that no other test of this process has mapped, so that it goes through this store.
    let content = [&fs::read(built("template")).unwrap()[..], b"locked"].concat();
    let pin = sha256_of(&folder.write("packs/template.so", content));
    let text = |more: &str| {
        let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
        format!(
            "schema = 1\nmode = \"locked\"\n[search]\npaths = [\"packs\"]\nstore = \"own-store\"\n\
             [pack.template]\n{more}\n[pack.template.sha256]\n{target} = \"{}\"\n",
            pin.to_uppercase()
        )
    };
    for more in [
        "",
        "file = \"template.so\"",
        "file = \"packs/template.so\"",
        "version = \"^0.1\"",
    ] {
        let table = load_text(&folder, &text(more)).unwrap();
        let ids: Vec<&str> = table.packs.iter().map(|pack| pack.id.as_str()).collect();
        assert_eq!(
            (ids.as_slice(), table.rejected.len()),
            (&["template"][..], 0),
            "{more}"
        );
        assert_eq!(table.packs[0].sha256, pin);
    }
    assert!(folder.join("own-store").join(format!("{pin}.so")).exists());

    let refused = |more| {
        let error = load_text(&folder, &text(more)).unwrap_err();
        assert_eq!(error.kind(), Kind::Pack);
        error.to_string()
    };
    let version = refused("version = \">=2\"");
    assert!(
        version.contains("registry.toml:6:7: pack `template` did not load"),
        "{version}"
    );
    assert!(
        version.contains("version 0.1.0 is not in the range \">=2\""),
        "{version}"
    );
    let other = refused("file = \"bad.so\"");
    assert!(
        other.contains("packs/bad.so: sha256: the file has "),
        "{other}"
    );
    let error = load_text(&folder, &text("").replace("[pack.template", "[pack.other")).unwrap_err();
    let expected = "template.so: metadata: it is pack `template`, the registry expects `other`";
    assert!(error.to_string().contains(expected), "{error}");
    assert!(refused("file = \"none.so\"").contains("none.so: read: No such file"));
}

#[test]
fn dev_mode_rejects_what_a_pin_version_or_id_contradicts() {
    let folder = with_packs();
    let rejected = |entry: &str| {
        let text = format!("schema = 1\n[search]\npaths = [\"packs\"]\n{entry}\n");
        let table = load_text(&folder, &text).unwrap();
        let reasons: Vec<String> = table.rejected.iter().map(|r| r.reason.clone()).collect();
        let loaded: Vec<String> = table.packs.iter().map(|pack| pack.id.clone()).collect();
        (loaded, reasons, table.warnings)
    };
    let pin = "2".repeat(64);
    let (loaded, reasons, warnings) = rejected(&format!("[pack.bad]\nsha256 = \"{pin}\""));
    assert_eq!(loaded, ["template"]);
    assert!(
        reasons[0].starts_with("sha256: the file has ") && reasons[0].ends_with(&pin),
        "{reasons:?}"
    );
    assert!(
        warnings.contains(&"registry.toml:4: pack `bad` did not load".to_owned()),
        "{warnings:?}"
    );

    let (loaded, reasons, _) = rejected("[pack.bad]\nversion = \"1\"");
    assert_eq!(loaded, ["template"]);
    assert_eq!(
        reasons,
        ["metadata: version 0.1.0 is not in the range \"^1\""]
    );

    let (loaded, reasons, _) = rejected("[pack.good]\nfile = \"bad.so\"");
    assert_eq!(loaded, ["template"]);
    assert_eq!(
        reasons,
        ["metadata: it is pack `bad`, the registry expects `good`"]
    );

    let (loaded, reasons, _) = rejected("[pack.bad]\nfile = \"none.so\"");
    assert_eq!(loaded, ["template"]);
    assert!(reasons[0].starts_with("read: No such file"), "{reasons:?}");
    assert_eq!(
        reasons[1],
        "metadata: the registry names another file for pack `bad`"
    );
}

#[test]
fn rules_and_denials_act_on_real_packs() {
    let folder = with_packs();
    let text = r#"schema = 1
[search]
paths = ["packs"]
[defaults]
fallback = "error"
[pack.template]
priority = 3
[[op]]
name = "bad_*"
dtype = ["f32"]
use = ["host"]
[[deny]]
pack = "template"
op = "square"
reason = "only a demonstration"
"#;
    let table = load_text(&folder, text).unwrap();
    assert_eq!(table.config_path, Some(folder.join("registry.toml")));
    assert_eq!(
        (table.packs[1].id.as_str(), table.packs[1].priority),
        ("template", 3)
    );
    assert_eq!(
        order(&table, "square", DType::F32),
        [
            "template/square_f32: registry.toml:12: denied: only a demonstration",
            "host: registry.toml:5: fallback = \"error\""
        ]
    );
    assert_eq!(
        order(&table, "bad_nothing", DType::F32),
        [
            "host",
            "bad/bad_nothing_32: registry.toml:8: the rule for `bad_nothing` does not use it"
        ]
    );
    assert_eq!(
        order(&table, "bad_nothing", DType::U32),
        [
            "bad/bad_nothing_32",
            "host: registry.toml:5: fallback = \"error\""
        ]
    );
}

/// What [`child`] prints in a process whose `$NX_VULKAN_REGISTRY` is `registry`.
fn in_child(registry: Option<&str>) -> String {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["child", "--exact", "--ignored", "--nocapture"])
        .env_remove("NX_VULKAN_REGISTRY");
    let output = command
        .envs(registry.map(|path| ("NX_VULKAN_REGISTRY", path)))
        .output()
        .unwrap();
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines()
        .find_map(|line| line.strip_prefix("child: "))
        .unwrap()
        .to_owned()
}

#[test]
#[ignore = "other tests run it in a process of its own"]
fn child() {
    match load(&Options::default()) {
        Ok(table) => println!(
            "\nchild: {:?} {:?}",
            table.fallback,
            order(&table, "add", DType::F32)
        ),
        Err(error) => println!("\nchild: {error}"),
    }
}

#[test]
fn the_environment_names_the_file_when_the_caller_does_not() {
    let expected =
        "cannot read the registry /nowhere/else.toml: No such file or directory (os error 2)";
    assert_eq!(in_child(Some("/nowhere/else.toml")), expected);
}

#[test]
fn without_a_file_the_defaults_hold() {
    for unset in [None, Some("")] {
        assert_eq!(in_child(unset), "Host [\"host\"]");
    }
}
