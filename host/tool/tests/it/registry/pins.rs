//! What the registry says of a pack's content, version and id.

use super::{load_text, with_packs};
use crate::packs::built;
use nx_vulkan_host::Kind;
use std::{fs, path::Path, process::Command};

fn sha256_of(path: &Path) -> String {
    let output = Command::new("sha256sum").arg(path).output().unwrap();
    String::from_utf8(output.stdout).unwrap()[..64].to_owned()
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
    assert!(folder.join("own-store").is_dir());

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
