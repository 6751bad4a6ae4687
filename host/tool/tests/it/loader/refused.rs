//! Files that are damaged, foreign, or no packs.

use super::{load_from, only};
use crate::{folder::Folder, packs::built};
use std::{env, fs, os::unix::fs::symlink, process::Command};

/// Loads `content` as the only pack of a folder: the id that loaded, or the reason why it did not.
fn load_bytes(content: &[u8]) -> Result<String, String> {
    let folder = Folder::new();
    folder.write("packs/x.so", content);
    only(&load_from(&folder.join("packs"), &folder.join("store")))
}

#[track_caller]
fn assert_refused(result: Result<String, String>, expected: &str) {
    let reason = result.unwrap_err();
    assert!(reason.starts_with(expected), "{reason}");
    assert!(
        reason.len() < 300 && !reason.contains(['\n', '\u{1b}']),
        "{reason}"
    );
}

/// The template with one text of its metadata replaced by another of equal length.
fn patched(from: &str, to: &str) -> Vec<u8> {
    assert_eq!(from.len(), to.len());
    let mut bytes = fs::read(built("template")).unwrap();
    let meta = find(&bytes, "NXVPACK1\nid=template\n");
    let at = meta + find(&bytes[meta..], from);
    bytes[at..at + to.len()].copy_from_slice(to.as_bytes());
    bytes
}

fn find(bytes: &[u8], text: &str) -> usize {
    bytes
        .windows(text.len())
        .position(|window| window == text.as_bytes())
        .unwrap()
}

#[test]
fn a_file_cut_anywhere_is_refused_before_it_is_mapped() {
    let whole = fs::read(built("template")).unwrap();
    let cuts = (0..100).map(|percent| whole.len() * percent / 100);
    let edges = [
        1,
        4,
        63,
        64,
        120,
        512,
        4096,
        whole.len() - 64,
        whole.len() - 1,
    ];
    for cut in cuts.chain(edges) {
        let reason = load_bytes(&whole[..cut]).unwrap_err();
        assert!(
            reason.starts_with(if cut < 4 { "format: it" } else { "ELF: it" }),
            "cut at {cut} of {}: {reason}",
            whole.len()
        );
    }
}

#[test]
fn what_is_not_a_pack_is_refused() {
    assert_refused(
        load_bytes(b""),
        "format: it is not an ELF, Mach-O or PE file",
    );
    assert_refused(
        load_bytes(b"#!/bin/sh\nexit 1\n"),
        "format: it is not an ELF, Mach-O or PE file",
    );
    assert_refused(
        load_bytes(&[0x7f; 5000]),
        "format: it is not an ELF, Mach-O or PE file",
    );
    let own = fs::read(env::current_exe().unwrap()).unwrap();
    assert_refused(
        load_bytes(&own),
        "ELF: it has no section .nxv.meta, so it is not a kernel pack",
    );
}

#[test]
fn what_is_not_a_regular_file_is_refused() {
    let folder = Folder::new();
    let store = folder.join("store");
    let case = |name: &str| folder.join(name);

    fs::create_dir_all(case("directory/x.so")).unwrap();
    assert_refused(
        only(&load_from(&case("directory"), &store)),
        "read: it is not a regular file",
    );

    fs::create_dir(case("fifo")).unwrap();
    assert!(
        Command::new("mkfifo")
            .arg(case("fifo/x.so"))
            .status()
            .unwrap()
            .success()
    );
    assert_refused(
        only(&load_from(&case("fifo"), &store)),
        "read: it is not a regular file",
    );

    fs::create_dir(case("link")).unwrap();
    symlink(built("template"), case("link/x.so")).unwrap();
    assert_refused(
        only(&load_from(&case("link"), &store)),
        "read: it is a symbolic link",
    );
}

#[test]
fn a_pack_for_another_machine_or_contract_is_refused() {
    let (arch, os) = (env::consts::ARCH, env::consts::OS);
    let foreign = |from: &str| {
        let to = "z".repeat(from.len());
        (
            load_bytes(&patched(&format!("={from}\n"), &format!("={to}\n"))),
            to,
        )
    };
    let (result, to) = foreign(arch);
    assert_refused(
        result,
        &format!("metadata: it is built for {to} {os}, this host is {arch} {os}"),
    );
    let (result, to) = foreign(os);
    assert_refused(
        result,
        &format!("metadata: it is built for {arch} {to}, this host is"),
    );
    assert_refused(
        load_bytes(&patched("\nabi=1.", "\nabi=9.")),
        "metadata: it is built for ABI 9.",
    );
    assert_refused(
        load_bytes(&patched("panic=unwind\n", "panic=abort\n\0")),
        "metadata: it is built with panic = \"abort\"",
    );
    assert_refused(
        load_bytes(&patched("NXVPACK1", "NXVPACK2")),
        "metadata: section .nxv.meta is damaged",
    );

    let mut bytes = fs::read(built("template")).unwrap();
    bytes[18..20].copy_from_slice(&[8, 0]);
    assert_refused(
        load_bytes(&bytes),
        "ELF: it is built for ELF machine 8, this host is",
    );
}

#[test]
fn a_name_that_the_code_does_not_confirm_is_refused() {
    assert_refused(
        load_bytes(&patched("id=template", "id=tampered")),
        "describe: it calls itself `template` 0.1.0, its metadata says `tampered` 0.1.0",
    );
}

#[test]
fn a_flipped_bit_in_the_metadata_never_changes_what_is_loaded() {
    let whole = fs::read(built("template")).unwrap();
    let meta = find(&whole, "NXVPACK1\nid=template\n");
    let len = whole[meta..].iter().position(|&b| b == 0).unwrap();
    let mut refused = 0;
    for at in 0..len {
        let mut bytes = whole.clone();
        bytes[meta + at] ^= 1 << (at % 8);
        match load_bytes(&bytes) {
            Ok(loaded) => assert_eq!(loaded, "template 0.1.0", "byte {at}"),
            Err(_) => refused += 1,
        }
    }
    assert!(refused > len * 3 / 4, "{refused} of {len} refused");
}
