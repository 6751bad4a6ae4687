//! A Mach-O dynamic library of two segments, and a universal file of such.

use super::{field, pad, push, text};
use object::{BigEndian, LittleEndian as LE, U16, U32, U64, macho::*};

/// A load command that names something.
pub(in super::super) type Command<'a> = (LoadCommandType, &'a str);

/// A library with the load commands `links` beside those it needs to have, with metadata in `sections`: segment, name,
/// type and content. It exports `_root`.
pub(in super::super) fn macho(
    links: &[Command<'_>],
    sections: &[(&str, &str, SectionType, &[u8])],
) -> Vec<u8> {
    let segment = size_of::<SegmentCommand64<LE>>();
    let data_command = segment + sections.len() * size_of::<Section64<LE>>();
    let mut named = Vec::new();
    for (kind, path) in links {
        push(&mut named, &link(*kind, path));
        text(&mut named, path);
        pad(&mut named, 8);
    }
    let commands = data_command + segment + size_of::<SymtabCommand<LE>>() + named.len();
    let data: usize = size_of::<MachHeader64<LE>>() + commands;
    let contents: Vec<u8> = sections
        .iter()
        .flat_map(|section| section.3)
        .copied()
        .collect();
    let linked = data + contents.len();

    let mut bytes = Vec::new();
    push(
        &mut bytes,
        &MachHeader64::<LE> {
            magic: U32::new(BigEndian, MH_MAGIC_64.swap_bytes()),
            cputype: U32::new(LE, CPU_TYPE_ARM64),
            cpusubtype: U32::new(LE, CpuSubtype(0)),
            filetype: U32::new(LE, MH_DYLIB),
            ncmds: U32::new(LE, 3 + links.len() as u32),
            sizeofcmds: U32::new(LE, commands as u32),
            flags: U32::new(LE, FileFlags(0)),
            reserved: U32::new(LE, 0),
        },
    );
    push(
        &mut bytes,
        &segment_command("__DATA", data_command, 0..linked, sections.len()),
    );
    let mut at = data;
    for (segment, name, kind, content) in sections {
        push(
            &mut bytes,
            &Section64::<LE> {
                sectname: field(name),
                segname: field(segment),
                addr: U64::new(LE, at as u64),
                size: U64::new(LE, content.len() as u64),
                offset: U32::new(LE, at as u32),
                align: U32::new(LE, 0),
                reloff: U32::new(LE, 0),
                nreloc: U32::new(LE, 0),
                flags: U32::new(LE, SectionFlags(kind.0.into())),
                reserved1: U32::new(LE, 0),
                reserved2: U32::new(LE, 0),
                reserved3: U32::new(LE, 0),
            },
        );
        at += content.len();
    }
    let names = b"\0_root\0";
    let symbol = size_of::<Nlist64<LE>>();
    push(
        &mut bytes,
        &segment_command(
            "__LINKEDIT",
            segment,
            linked..linked + symbol + names.len(),
            0,
        ),
    );
    push(
        &mut bytes,
        &SymtabCommand::<LE> {
            cmd: U32::new(LE, LC_SYMTAB),
            cmdsize: U32::new(LE, size_of::<SymtabCommand<LE>>() as u32),
            symoff: U32::new(LE, linked as u32),
            nsyms: U32::new(LE, 1),
            stroff: U32::new(LE, (linked + symbol) as u32),
            strsize: U32::new(LE, names.len() as u32),
        },
    );
    bytes.extend(named);
    assert_eq!(bytes.len(), data);
    bytes.extend(contents);
    push(
        &mut bytes,
        &Nlist64::<LE> {
            n_strx: U32::new(LE, 1),
            n_type: SymbolFlags(N_EXT.0 | N_SECT.0),
            n_sect: 1,
            n_desc: U16::new(LE, SymbolDesc(0)),
            n_value: U64::new(LE, 0),
        },
    );
    bytes.extend(names);
    bytes
}

fn link(kind: LoadCommandType, path: &str) -> DylibCommand<LE> {
    let fixed = size_of::<DylibCommand<LE>>();
    let none = || U32::new(LE, Version(0));
    DylibCommand {
        cmd: U32::new(LE, kind),
        cmdsize: U32::new(LE, (fixed + path.len() + 1).next_multiple_of(8) as u32),
        dylib: Dylib {
            name: LcStr {
                offset: U32::new(LE, fixed as u32),
            },
            timestamp: U32::new(LE, 0),
            current_version: none(),
            compatibility_version: none(),
        },
    }
}

fn segment_command(
    name: &str,
    size: usize,
    place: std::ops::Range<usize>,
    sections: usize,
) -> SegmentCommand64<LE> {
    SegmentCommand64 {
        cmd: U32::new(LE, LC_SEGMENT_64),
        cmdsize: U32::new(LE, size as u32),
        segname: field(name),
        vmaddr: U64::new(LE, place.start as u64),
        vmsize: U64::new(LE, place.len() as u64),
        fileoff: U64::new(LE, place.start as u64),
        filesize: U64::new(LE, place.len() as u64),
        maxprot: U32::new(LE, VmProt(3)),
        initprot: U32::new(LE, VmProt(3)),
        nsects: U32::new(LE, sections as u32),
        flags: U32::new(LE, SegmentFlags(0)),
    }
}

/// A universal file with the library for two architectures.
pub(in super::super) fn universal(library: &[u8]) -> Vec<u8> {
    let start = size_of::<FatHeader>() + 2 * size_of::<FatArch32>();
    let mut bytes = Vec::new();
    push(
        &mut bytes,
        &FatHeader {
            magic: U32::new(BigEndian, FAT_MAGIC),
            nfat_arch: U32::new(BigEndian, 2),
        },
    );
    for cpu in [CPU_TYPE_X86_64, CPU_TYPE_ARM64] {
        push(
            &mut bytes,
            &FatArch32 {
                cputype: U32::new(BigEndian, cpu),
                cpusubtype: U32::new(BigEndian, CpuSubtype(0)),
                offset: U32::new(BigEndian, start as u32),
                size: U32::new(BigEndian, library.len() as u32),
                align: U32::new(BigEndian, 3),
            },
        );
    }
    bytes.extend(library);
    bytes
}
