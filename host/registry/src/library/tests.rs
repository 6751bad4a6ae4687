//! The same promises for the three formats, on files of all of them, whatever system this is.

mod linking;
mod refusals;
mod sample;
mod segments;
mod tables;

use super::{
    Library,
    format::name,
    samples::{Command, Links, elf, macho, meta, pe, universal},
};
use crate::{identity, target::Target};
use object::{elf::*, macho::*, pe::*};

const LINUX: Target = Target {
    arch: "x86_64",
    os: "linux",
};
const MACOS: Target = Target {
    arch: "aarch64",
    os: "macos",
};
const WINDOWS: Target = Target {
    arch: "x86_64",
    os: "windows",
};

const SYSTEM: Command<'_> = (LC_LOAD_DYLIB, "/usr/lib/libSystem.B.dylib");

/// A pack of each format, and the machine that it is for.
fn packs() -> [(Target, Vec<u8>); 3] {
    [
        (LINUX, linux(&[(DT_NEEDED, "libc.so.6")])),
        (MACOS, macos(&[SYSTEM])),
        (
            WINDOWS,
            windows(Links {
                imports: &["KERNEL32.dll", "api-ms-win-crt-heap-l1-1-0.dll"],
                ..Links::default()
            }),
        ),
    ]
}

fn linux(links: &[(DynamicTag, &str)]) -> Vec<u8> {
    elf(
        links,
        &[(".nxv.meta", SHT_PROGBITS, &meta("x86_64", "linux"))],
    )
}

fn macos(links: &[Command<'_>]) -> Vec<u8> {
    macho(
        links,
        &[("__DATA", "__nxv_meta", S_REGULAR, &meta("aarch64", "macos"))],
    )
}

fn windows(links: Links<'_>) -> Vec<u8> {
    pe(links, &[(".nxvmeta", &meta("x86_64", "windows"))])
}

/// The pack that a machine sees in a file.
fn load(bytes: &[u8], target: Target) -> Result<String, String> {
    let library = Library::read(bytes, target)?;
    identity::of(&library, target).map(|identity| identity.to_string())
}

#[track_caller]
fn assert_refused(bytes: &[u8], target: Target, expected: &str) {
    let reason = load(bytes, target).unwrap_err();
    assert!(reason.contains(expected), "{reason}, expected: {expected}");
    assert!(
        reason.len() < 300 && !reason.contains(char::is_control),
        "{reason}"
    );
}

/// Replaces the only place where `from` stands.
fn patched(bytes: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    assert_eq!(from.len(), to.len());
    let mut places = bytes
        .windows(from.len())
        .enumerate()
        .filter(|(_, text)| *text == from);
    let at = places.next().unwrap().0;
    assert!(places.next().is_none());
    let mut bytes = bytes.to_vec();
    bytes[at..at + to.len()].copy_from_slice(to);
    bytes
}

#[test]
fn a_pack_of_each_format_is_read_on_any_host() {
    for (target, bytes) in packs() {
        assert_eq!(load(&bytes, target), Ok("`demo` 1.2.3".to_owned()));
        let library = Library::read(&bytes, target).unwrap();
        assert_eq!(library.exports(), Ok(vec!["root".to_owned()]));
        assert!(!library.needed.is_empty());
        // Whatever follows the file is not part of it.
        assert!(load(&[&bytes[..], b"more"].concat(), target).is_ok());
    }
}

#[test]
fn a_pack_of_another_system_is_refused_by_its_format() {
    let packs = packs();
    let [linux, macos, windows] = packs.each_ref().map(|pack| &pack.1);
    assert_refused(
        macos,
        LINUX,
        "Mach-O: this host is x86_64 linux, which loads ELF files",
    );
    assert_refused(
        windows,
        LINUX,
        "PE: this host is x86_64 linux, which loads ELF files",
    );
    assert_refused(
        linux,
        MACOS,
        "ELF: this host is aarch64 macos, which loads Mach-O files",
    );
    assert_refused(
        linux,
        WINDOWS,
        "ELF: this host is x86_64 windows, which loads PE files",
    );
    let freebsd = Target {
        os: "freebsd",
        ..LINUX
    };
    assert_refused(
        linux,
        freebsd,
        "metadata: it is built for x86_64 linux, this host is x86_64 freebsd",
    );
}

#[test]
fn a_pack_of_another_architecture_is_refused() {
    let [(_, linux), (_, macos), (_, windows)] = packs();
    for (bytes, os, format, own, other) in [
        (linux, "linux", "ELF", "x86_64", "aarch64"),
        (macos, "macos", "Mach-O", "aarch64", "x86_64"),
        (windows, "windows", "PE", "x86_64", "aarch64"),
    ] {
        let target = Target { arch: other, os };
        let expected = format!("{format}: it is built for {own}, this host is {other}");
        assert_refused(&bytes, target, &expected);
    }
    let strange = patched(
        &windows_header(),
        &0x8664u16.to_le_bytes(),
        &0x1c4u16.to_le_bytes(),
    );
    assert_refused(
        &strange,
        WINDOWS,
        "PE: it is built for PE machine 452, this host is x86_64",
    );
}

/// A DLL without metadata: the machine's number stands in it once.
fn windows_header() -> Vec<u8> {
    pe(Links::default(), &[])
}

#[test]
fn what_is_no_library_is_refused() {
    for target in [LINUX, MACOS, WINDOWS] {
        for bytes in [&b""[..], b"M", b"\x7fEL", b"#!/bin/sh\n", &[0x5a; 9000]] {
            assert_refused(bytes, target, "format: it is not an ELF, Mach-O or PE file");
        }
    }
    let [(_, linux), (_, macos), (_, windows)] = packs();
    let narrow = [&linux[..4], &[1], &linux[5..]].concat();
    assert_refused(
        &narrow,
        LINUX,
        "ELF: it is not a 64-bit little-endian ELF file",
    );
    let program = [&linux[..16], &[4, 0], &linux[18..]].concat();
    assert_refused(&program, LINUX, "ELF: it is not a shared object");
    for magic in [0xfeed_facfu32, 0xfeed_face, 0xcefa_edfe] {
        let other = [&magic.to_be_bytes(), &macos[4..]].concat();
        assert_refused(
            &other,
            MACOS,
            "Mach-O: it is not a 64-bit little-endian Mach-O file",
        );
    }
    let bundle = [&macos[..12], &[8], &macos[13..]].concat();
    assert_refused(&bundle, MACOS, "Mach-O: it is not a dynamic library");
    let narrow = patched(&windows, &[0x0b, 0x02], &[0x0b, 0x01]);
    assert_refused(&narrow, WINDOWS, "PE: it is not a 64-bit PE file");
    let program = patched(&windows, &[0xf0, 0, 0, 0x20], &[0xf0, 0, 2, 0]);
    assert_refused(&program, WINDOWS, "PE: it is a program, not a library");
}

#[test]
fn a_universal_file_is_refused_with_its_parts() {
    let expected =
        "Mach-O: it is a universal file (x86_64, aarch64); a pack is for one architecture";
    let bytes = universal(&macos(&[SYSTEM]));
    assert_refused(&bytes, MACOS, expected);
    assert_refused(&bytes[..12], MACOS, "Mach-O: it is a universal file ()");
}

#[test]
fn a_file_cut_anywhere_is_refused() {
    for (target, bytes) in packs() {
        for len in 0..bytes.len() {
            assert!(
                load(&bytes[..len], target).is_err(),
                "{target:?} cut at {len} of {}",
                bytes.len()
            );
        }
    }
}

#[test]
fn every_byte_may_be_anything() {
    for (target, mut bytes) in packs() {
        for at in 0..bytes.len() {
            let saved = bytes[at];
            for value in [0, 1, 0x7f, 0x80, 0xff, saved ^ 0x10] {
                bytes[at] = value;
                if let Ok(library) = Library::read(&bytes, target) {
                    let _ = (identity::of(&library, target), library.exports());
                }
            }
            bytes[at] = saved;
        }
    }
}

#[test]
fn the_metadata_has_to_be_in_one_section_of_the_file() {
    let (linux, macos, windows) = (
        meta("x86_64", "linux"),
        meta("aarch64", "macos"),
        meta("x86_64", "windows"),
    );
    let (linux, macos, windows) = (&linux[..], &macos[..], &windows[..]);
    let none = Links::default();
    for (bytes, target, expected) in [
        (
            elf(&[], &[]),
            LINUX,
            "it has no section .nxv.meta, so it is not a kernel pack",
        ),
        (
            elf(&[], &[(".nxv.meta", SHT_NOBITS, linux)]),
            LINUX,
            "it has no section .nxv.meta",
        ),
        (
            elf(&[], &[(".nxv.meta2", SHT_PROGBITS, linux)]),
            LINUX,
            "it has no section .nxv.meta",
        ),
        (
            elf(&[], &[(".nxv.meta", SHT_PROGBITS, linux); 2]),
            LINUX,
            "it has 2 sections .nxv.meta",
        ),
        (
            elf(&[], &[(".nxv.meta", SHT_PROGBITS, b"NXVPACK2")]),
            LINUX,
            "metadata: section .nxv.meta is damaged",
        ),
        (
            macho(&[], &[]),
            MACOS,
            "it has no section __DATA,__nxv_meta, so it is not a kernel pack",
        ),
        (
            macho(&[], &[("__DATA", "__nxv_meta", S_ZEROFILL, macos)]),
            MACOS,
            "it has no section __DATA,__nxv_meta",
        ),
        (
            macho(&[], &[("__TEXT", "__nxv_meta", S_REGULAR, macos)]),
            MACOS,
            "it has no section __DATA,__nxv_meta",
        ),
        (
            macho(&[], &[("__DATA", "__nxv_meta", S_REGULAR, macos); 2]),
            MACOS,
            "it has 2 sections __DATA,__nxv_meta",
        ),
        (
            macho(&[], &[("__DATA", "__nxv_meta", S_REGULAR, linux)]),
            MACOS,
            "metadata: it is built for x86_64 linux",
        ),
        (
            pe(none, &[]),
            WINDOWS,
            "it has no section .nxvmeta, so it is not a kernel pack",
        ),
        (
            pe(none, &[(".nxvmeta", b"")]),
            WINDOWS,
            "has no size in memory",
        ),
        (
            pe(none, &[(".nxvmeta", windows); 2]),
            WINDOWS,
            "it has 2 sections .nxvmeta",
        ),
        (
            pe(none, &[(".nxvmeta", b"x")]),
            WINDOWS,
            "metadata: section .nxvmeta is damaged",
        ),
    ] {
        assert_refused(&bytes, target, expected);
    }
}

#[test]
fn names_end_at_their_zero_and_never_beyond_the_table() {
    assert_eq!(name(b"\0libc.so.6\0libm", 1), Ok("libc.so.6".to_owned()));
    let out = Err("a name in it is out of bounds".to_owned());
    assert_eq!((name(b"ab", 7), name(b"ab", u64::MAX)), (out.clone(), out));
    let endless = Err("a name in it does not end".to_owned());
    assert_eq!(name(b"\0libc.so.6\0libm", 11), endless);
    assert_eq!(name(&[b'a'; 1 << 20], 0), endless);
}

/// `pack!` cannot take the names from a constant.
#[test]
fn packs_put_their_metadata_where_it_is_looked_for() {
    let source = include_str!("../../../../abi/src/author.rs");
    for format in super::FORMATS {
        let place = format!("unsafe(link_section = \"{}\")", format.section);
        assert_eq!(source.matches(&place).count(), 1, "{place}");
    }
}
