//! `registry.toml`: what its mistakes look like, and what it makes of real packs.

mod pins;

use crate::folder::Folder;
use crate::packs::built;
use nx_vulkan_abi::{DType, DeviceInfo, DeviceKind, Features};
use nx_vulkan_host::Kind;
use nx_vulkan_registry::{
    Asked, CandidateKernel, CandidateOutcome, Fallback, Options, Severity, Table, check,
    json_schema, load,
};
use std::{fs, path::Path};

/// Loads a registry file that lies in `folder`.
fn load_text(folder: &Folder, text: &str) -> nx_vulkan_host::Result<Table> {
    let registry = folder.write("registry.toml", text);
    load(&Options {
        registry: Some(registry),
        store: folder.join("store"),
        ..Options::default()
    })
}

/// A folder with the template and the bad pack in `packs/`.
fn with_packs() -> Folder {
    let folder = Folder::new();
    for name in ["template", "bad"] {
        folder.write(&format!("packs/{name}.so"), fs::read(built(name)).unwrap());
    }
    folder
}

#[test]
fn a_file_with_a_slash_is_a_place_of_its_own() {
    let folder = with_packs();
    folder.write("packs/inner/bad.so", fs::read(built("bad")).unwrap());
    let text = "schema = 1\n[search]\npaths = [\"packs\"]\n[dev]\nwatch = [\"packs\"]\n\
        [pack.template]\nfile = \"template.so\"\n[pack.bad]\nfile = \"packs/inner/bad.so\"\n";
    let table = load_text(&folder, text).unwrap();
    let places = table.places(&Options {
        packs: vec![folder.join("given")],
        ..Options::default()
    });
    assert_eq!(places.named, [folder.join("packs/inner/bad.so")]);
    assert_eq!(places.search, [folder.join("given"), folder.join("packs")]);
    assert_eq!(places.watched, [folder.join("packs")]);
    assert_eq!(places.registry, Some(folder.join("registry.toml")));
}

/// `pack/kernel` or `host` for each candidate, with the reason of a skip after a colon.
fn order(table: &Table, op: &str, dtype: DType) -> Vec<String> {
    let device = DeviceInfo {
        name: "test".into(),
        vendor: 0,
        driver: 0,
        kind: DeviceKind::OTHER,
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
        ..DeviceInfo::default()
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
            measured: &|_| None,
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
        "error NXR001: cannot read the registry /nowhere/registry.toml: No such file or directory (os error 2)"
    );
}

#[test]
fn the_default_registry_is_valid() {
    let registry = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../registry.toml");
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

/// What a load gives where the application names `registry` and the environment `registry_override`.
fn overridden(folder: &Folder, registry: Option<&str>, by: &str) -> nx_vulkan_host::Result<Table> {
    load(&Options {
        registry: registry.map(|name| folder.join(name)),
        registry_override: Some(folder.join(by)),
        store: folder.join("store"),
        ..Options::default()
    })
}

#[test]
fn the_environment_takes_the_place_of_a_dev_file_and_not_of_a_locked_one() {
    let folder = Folder::new();
    folder.write("dev.toml", "schema = 1\n");
    folder.write("locked.toml", "schema = 1\nmode = \"locked\"\n");
    folder.write("strict.toml", "schema = 1\ndefaults.fallback = \"error\"\n");
    folder.write("broken.toml", "schema = 1\nmode = 1\n");

    for named in [None, Some("dev.toml"), Some("strict.toml")] {
        let table = overridden(&folder, named, "strict.toml").unwrap();
        assert_eq!(table.config_path, Some(folder.join("strict.toml")));
        assert_eq!(table.fallback, Fallback::Error);
        assert_eq!(table.warnings, [""; 0]);
        assert!(
            overridden(&folder, named, "locked.toml")
                .unwrap()
                .is_locked()
        );
        for wrong in ["broken.toml", "nowhere.toml"] {
            let error = overridden(&folder, named, wrong).unwrap_err();
            assert_eq!(error.kind(), Kind::Registry);
            assert!(error.to_string().contains(wrong), "{error}");
        }
    }
    for by in ["strict.toml", "broken.toml", "nowhere.toml"] {
        let table = overridden(&folder, Some("locked.toml"), by).unwrap();
        assert_eq!(table.config_path, Some(folder.join("locked.toml")));
        let expected = format!(
            "locked.toml:2: NXR031: mode \"locked\" stands, so $NX_VULKAN_REGISTRY does not count; it names {}",
            folder.join(by).display()
        );
        assert_eq!(table.warnings, [expected]);
    }
    // Without the file's word on its mode, nothing may take its place.
    let error = overridden(&folder, Some("broken.toml"), "dev.toml").unwrap_err();
    assert!(
        error.to_string().contains("broken.toml:2:8: error NXR006"),
        "{error}"
    );
}

#[test]
fn without_a_file_the_defaults_hold() {
    let table = load(&Options::default()).unwrap();
    assert_eq!(
        (table.fallback, table.config_path.clone()),
        (Fallback::Host, None)
    );
    assert_eq!(order(&table, "add", DType::F32), ["host"]);
}

#[test]
fn what_is_no_regular_file_is_refused() {
    for path in ["/dev/zero", "/tmp"] {
        let error = load(&Options {
            registry: Some(path.into()),
            ..Options::default()
        });
        let expected =
            format!("error NXR001: cannot read the registry {path}: it is not a regular file");
        assert_eq!(error.unwrap_err().to_string(), expected);
    }
    let folder = Folder::new();
    let error = load_text(&folder, &"#".repeat(1 << 21)).unwrap_err();
    assert!(
        error.to_string().contains("it has more than 1048576 bytes"),
        "{error}"
    );
}

#[test]
fn a_file_full_of_mistakes_is_reported_in_part() {
    let folder = Folder::new();
    let keys: String = (0..50_000).map(|n| format!("k{n} = 1\n")).collect();
    let error = load_text(&folder, &format!("schema = 1\n{keys}")).unwrap_err();
    assert_eq!(error.to_string().matches("NXR004").count(), 100);
}

/// The names in rules, against the template and the bad pack.
#[test]
fn a_check_with_packs_knows_their_names() {
    let folder = with_packs();
    let text = r#"schema = 1
[search]
paths = ["packs"]
[[op]]
name = "squaer"
use = ["*"]
[[op]]
name = "square"
use = ["template/square_f23", "templat"]
[[op]]
name = "softmax"
use = ["*"]
[[deny]]
pack = "tmplate"
op = "squar"
reason = "none"
"#;
    let file = folder.write("registry.toml", text);
    let options = Options {
        store: folder.join("store"),
        ..Options::default()
    };
    let checked = check(&file, Some(&options));
    let said: Vec<String> = checked.diagnostics.iter().map(|d| d.line()).collect();
    assert_eq!(
        said,
        [
            "registry.toml:5: NXR024: there is no op `squaer`, in the host or in a loaded pack; did you mean `square`?",
            "registry.toml:9: NXR027: pack `template` has no kernel `square_f23`; did you mean `square_f32`?",
            "registry.toml:9: NXR026: no pack `templat` is loaded; did you mean `template`?",
            "registry.toml:11: NXR024: there is no op `softmax`, in the host or in a loaded pack",
            "registry.toml:13: NXR029: no pack `tmplate` is loaded, so this denies nothing; did you mean `template`?",
            "registry.toml:15: NXR024: there is no op `squar`, in the host or in a loaded pack; did you mean `square`?",
        ]
    );
    assert!(!checked.valid);
    assert_eq!(
        (
            checked.count(Severity::Error),
            checked.count(Severity::Warning)
        ),
        (1, 5)
    );
    assert_eq!(
        checked.packs,
        Some(vec!["bad".to_owned(), "template".to_owned()])
    );
    let error = load_text(&folder, text).unwrap_err().to_string();
    assert!(
        error.contains("registry.toml:5:8: error NXR024") && !error.contains("NXR027"),
        "{error}"
    );
    // Without packs nothing can be said about what packs bring.
    let checked = check(&file, None);
    assert!(checked.valid && checked.packs.is_none());
}

#[test]
fn the_schema_is_the_committed_one() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/registry.schema.json");
    let committed = fs::read_to_string(path).unwrap();
    assert_eq!(
        json_schema(),
        committed,
        "write it anew: nxv registry schema > docs/registry.schema.json"
    );
}
