//! What a library may not ask for: code from elsewhere, changes to the whole process, and to be mapped otherwise than read.

use super::*;

#[test]
fn a_library_that_not_every_process_has_is_refused() {
    let needs = |name: &str| format!("it needs \"{name}\"; a pack brings its own code");
    for name in [
        "libevil.so",
        "libstdc++.so.6",
        "./libc.so.6",
        "/tmp/libc.so.6",
    ] {
        let bytes = linux(&[(DT_NEEDED, "libc.so.6"), (DT_NEEDED, name)]);
        assert_refused(&bytes, LINUX, &format!("ELF: {}", needs(name)));
    }
    for name in ["libthr.so.3", "ld64.so.2"] {
        let bytes = linux(&[(DT_NEEDED, "libc.so.6"), (DT_NEEDED, name)]);
        assert!(load(&bytes, LINUX).is_ok(), "{name}");
    }
    for name in [
        "/usr/lib/libc++.1.dylib",
        "@rpath/libSystem.B.dylib",
        "libSystem.B.dylib",
        "/usr/lib/libSystem./../../tmp/x",
    ] {
        for kind in [
            LC_LOAD_DYLIB,
            LC_LOAD_WEAK_DYLIB,
            LC_REEXPORT_DYLIB,
            LC_LOAD_UPWARD_DYLIB,
            LC_LAZY_LOAD_DYLIB,
        ] {
            assert_refused(
                &macos(&[SYSTEM, (kind, name)]),
                MACOS,
                &format!("Mach-O: {}", needs(name)),
            );
        }
    }
    for name in [
        "evil.dll",
        "KERNEL32",
        "kernel32.dll.dll",
        "api-ms-win-evil.dll",
        "api-ms-win-core-\\x.dll",
        "..\\kernel32.dll",
    ] {
        let imports = Links {
            imports: &["KERNEL32.dll", name],
            ..Links::default()
        };
        assert_refused(&windows(imports), WINDOWS, &format!("PE: {}", needs(name)));
        let delayed = Links {
            delayed: &["ntdll.dll", name],
            ..Links::default()
        };
        assert_refused(&windows(delayed), WINDOWS, &format!("PE: {}", needs(name)));
    }
    let allowed = Links {
        imports: &["ntdll.dll", "VCRUNTIME140.dll"],
        delayed: &["BCRYPTPRIMITIVES.DLL"],
        ..Links::default()
    };
    assert!(load(&windows(allowed), WINDOWS).is_ok());
}

#[test]
fn what_finds_code_elsewhere_is_refused() {
    for (tag, name) in [
        (DT_RPATH, "RPATH"),
        (DT_RUNPATH, "RUNPATH"),
        (DT_CONFIG, "CONFIG"),
        (DT_DEPAUDIT, "DEPAUDIT"),
        (DT_AUDIT, "AUDIT"),
        (DT_AUXILIARY, "AUXILIARY"),
        (DT_FILTER, "FILTER"),
    ] {
        let expected = format!("ELF: it has a {name}, \"lib\", from where code would be loaded");
        assert_refused(&linux(&[(tag, "lib")]), LINUX, &expected);
    }
    for (kind, name) in [
        (LC_RPATH, "LC_RPATH"),
        (LC_DYLD_ENVIRONMENT, "LC_DYLD_ENVIRONMENT"),
    ] {
        // The name's place in these is where a library's command has its own.
        let bytes = macos(&[(kind, "@loader_path")]);
        assert_refused(
            &bytes,
            MACOS,
            &format!("Mach-O: it has a {name}, \"@loader_path\""),
        );
    }
    let unknown = LoadCommandType(0x7777 | LC_REQ_DYLD);
    assert_refused(
        &macos(&[(unknown, "x")]),
        MACOS,
        "Mach-O: it has load command 0x80007777",
    );
    // Empty, and as long as the other one.
    assert_refused(
        &macos(&[SYSTEM, (LC_SYMTAB, "")]),
        MACOS,
        "Mach-O: it has two tables of symbols",
    );
    let optional = LoadCommandType(0x7777);
    assert!(load(&macos(&[(optional, "x")]), MACOS).is_ok());

    let forward = Links {
        forward: Some("evil.run"),
        ..Links::default()
    };
    assert_refused(
        &windows(forward),
        WINDOWS,
        "PE: it has a forwarded export, \"evil.run\"",
    );
    let manifest = Links {
        has_manifest: true,
        ..Links::default()
    };
    assert_refused(
        &windows(manifest),
        WINDOWS,
        "PE: it has a manifest, which can change where",
    );
    for (index, expected) in [
        (
            IMAGE_DIRECTORY_ENTRY_BOUND_IMPORT,
            "PE: it has bound imports",
        ),
        (IMAGE_DIRECTORY_ENTRY_COM_DESCRIPTOR, "PE: it is for .NET"),
    ] {
        let links = Links {
            directories: &[index],
            ..Links::default()
        };
        assert_refused(&windows(links), WINDOWS, expected);
    }
    // Rust's own library has one.
    let callbacks = Links {
        directories: &[IMAGE_DIRECTORY_ENTRY_TLS],
        ..Links::default()
    };
    assert!(load(&windows(callbacks), WINDOWS).is_ok());
}

#[test]
fn what_changes_the_whole_process_is_refused() {
    let stacks = "it asks for executable stacks in the whole process";
    let [(_, linux), (_, macos), _] = packs();
    let header = |kind: u32| [kind.to_le_bytes(), 6u32.to_le_bytes()].concat();
    let stack = patched(
        &linux,
        &header(0x6474_e551),
        &[&header(0x6474_e551)[..4], &[7, 0, 0, 0]].concat(),
    );
    assert_refused(&stack, LINUX, stacks);
    let silent = patched(&linux, &header(0x6474_e551), &header(0x6474_e550));
    assert_refused(&silent, LINUX, stacks);
    let mut flags = macos.clone();
    flags[26] |= 2;
    assert_refused(&flags, MACOS, stacks);
    let replaces = macho(
        &[SYSTEM],
        &[("__DATA", "__interpose", S_INTERPOSING, &[0; 16])],
    );
    assert_refused(
        &replaces,
        MACOS,
        "it replaces functions in the whole process",
    );
}

/// Bytes that the reader sees but the dynamic loader does not map there are no check of anything.
#[test]
fn an_elf_file_cannot_show_other_names_than_it_maps() {
    let whole = linux(&[(DT_NEEDED, "libc.so.6")]);
    let word = |at: usize| u64::from_le_bytes(whole[at..at + 8].try_into().unwrap());
    // The second program header; the dynamic section's size in the file is its fifth word.
    let dynamic = 64 + 56;
    assert_eq!(word(dynamic) as u32, PT_DYNAMIC.0);
    let mut endless = whole.clone();
    endless[dynamic + 32..dynamic + 40].copy_from_slice(&(word(dynamic + 32) - 16).to_le_bytes());
    assert_refused(&endless, LINUX, "ELF: its dynamic section does not end");

    let mut elsewhere = whole.clone();
    elsewhere[dynamic + 16..dynamic + 24].copy_from_slice(&(word(dynamic + 16) + 8).to_le_bytes());
    assert_refused(
        &elsewhere,
        LINUX,
        "ELF: its dynamic section is not where its segments map it",
    );

    // A second segment that is mapped over the page with the names, from another place of the file.
    let mut covered = whole.clone();
    let loaded = word(64 + 40);
    let stack = 64 + 2 * 56;
    covered[stack..stack + 4].copy_from_slice(&1u32.to_le_bytes());
    for (field, value) in [
        (8, 0u64),
        (16, loaded.next_multiple_of(8)),
        (32, 8),
        (40, 8),
    ] {
        covered[stack + field..stack + field + 8].copy_from_slice(&value.to_le_bytes());
    }
    assert_refused(
        &covered,
        LINUX,
        "ELF: its segment 2 is not where pages of the file can be mapped",
    );
    covered.resize(8192, 0);
    let place = loaded.next_multiple_of(8);
    covered[stack + 8..stack + 16].copy_from_slice(&(place + 4096).to_le_bytes());
    assert_refused(&covered, LINUX, "ELF: its segment 2 lies over another one");
}

#[test]
fn a_dll_that_windows_would_map_otherwise_is_refused() {
    let whole = windows(Links::default());
    let sections = 64 + 24 + 112 + 128;
    let with = |at: usize, value: u32| {
        let mut bytes = whole.clone();
        bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
        bytes
    };
    for (at, value, expected) in [
        (
            64 + 24 + 32,
            512,
            "PE: its sections are aligned to 512 and 512 bytes",
        ),
        (
            64 + 24 + 36,
            16,
            "PE: its sections are aligned to 4096 and 16 bytes",
        ),
        (
            sections + 20,
            0x401,
            "PE: its section 0 is not where pages of the file can be mapped",
        ),
        (
            sections + 12,
            0x1004,
            "PE: its section 0 is not where pages of the file can be mapped",
        ),
        (
            sections + 12,
            0x20000,
            "PE: its section 1 lies over another one",
        ),
        (
            sections + 40 + 8,
            0x7fff_ffff,
            "PE: its section 1 leaves the image",
        ),
        (sections + 16, 0x7fff_fe00, "PE: its section 0 ends at byte"),
    ] {
        assert_refused(&with(at, value), WINDOWS, expected);
    }
}
