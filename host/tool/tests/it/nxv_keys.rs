//! Pins and signatures, as `nxv pack` writes them.

use crate::{
    author,
    folder::Folder,
    nxv_pack::{error, nxv, text},
};
use std::{fs, os::unix::fs::PermissionsExt as _};

#[test]
fn pins_go_into_the_registry_and_keep_what_is_there() {
    let folder = Folder::new();
    let file = crate::packs::built("template");
    let registry = folder.write(
        "registry.toml",
        "schema = 1 # ours\n\n[search]\npaths = []\n",
    );
    let arguments = ["pack", "pin", text(&file), "--registry", text(&registry)];
    for _ in 0..2 {
        let output = nxv(&arguments, &[]);
        assert!(output.status.success(), "{}", error(&output));
    }
    let pinned = fs::read_to_string(&registry).unwrap();
    assert!(pinned.starts_with("schema = 1 # ours\n"), "{pinned}");
    assert_eq!(pinned.matches("[pack.template]").count(), 1, "{pinned}");
    let printed = nxv(&["pack", "pin", text(&file)], &[]);
    let printed = String::from_utf8(printed.stdout).unwrap();
    assert!(pinned.ends_with(&printed), "{pinned}\n{printed}");

    // What the name leads to is written, and stays as private as it was.
    let link = folder.join("link.toml");
    std::os::unix::fs::symlink(&registry, &link).unwrap();
    fs::set_permissions(&registry, fs::Permissions::from_mode(0o600)).unwrap();
    fs::write(&registry, "schema = 1\r\n").unwrap();
    let output = nxv(
        &["pack", "pin", text(&file), "--registry", text(&link)],
        &[],
    );
    assert!(output.status.success(), "{}", error(&output));
    assert!(link.symlink_metadata().unwrap().is_symlink());
    assert_eq!(
        registry.metadata().unwrap().permissions().mode() & 0o777,
        0o600
    );
    let pinned = fs::read_to_string(&registry).unwrap();
    assert_eq!(pinned.matches('\n').count(), pinned.matches("\r\n").count());
    assert!(pinned.contains("[pack.template]\r\n"), "{pinned}");
}

#[test]
fn signatures_name_what_they_sign_and_keys_are_never_written_over() {
    let folder = Folder::new();
    let file = folder.join("libdemo.so");
    fs::copy(crate::packs::built("template"), &file).unwrap();
    let key = folder.join("key");
    let password = [("NX_VULKAN_KEY_PASSWORD", "secret")];
    let keygen = ["pack", "keygen", "--key", text(&key)];
    assert!(nxv(&keygen, &password).status.success());
    let again = nxv(&keygen, &password);
    assert_eq!(again.status.code(), Some(1));
    let sign = ["pack", "sign", text(&file), "--key", text(&key)];
    let wrong = nxv(&sign, &[("NX_VULKAN_KEY_PASSWORD", "guess")]);
    assert_eq!(wrong.status.code(), Some(1), "{}", error(&wrong));
    let signed = nxv(&sign, &password);
    assert!(signed.status.success(), "{}", error(&signed));
    let signature = fs::read_to_string(folder.join("libdemo.so.minisig")).unwrap();
    let comment = "trusted comment: id=template version=0.1.0 abi=";
    assert!(signature.contains(comment), "{signature}");
}

#[test]
fn a_public_key_signs_nothing() {
    let folder = Folder::new();
    let pack = author::pack(&folder, "negate", "elems < 1000000");
    let key = folder.join("key").to_str().unwrap().to_owned();
    assert_eq!(author::nxv(&["pack", "keygen", "--key", &key]).0, Some(0));
    let (code, told) = author::nxv(&["pack", "sign", &pack, "--key", &format!("{key}.pub")]);
    assert!(
        code == Some(1) && told.contains("it is a public key; name the secret one"),
        "{told}"
    );
}
