//! What is mapped of an ELF file, and with which rights: program headers, sound and then changed in one place.

use super::{
    super::{
        samples::push,
        segments::{Segment, Segments},
    },
    LINUX, assert_refused, linux,
};
use object::{LittleEndian as LE, U16, U32, U64, elf::*, pod};
use std::ops::Range;

/// Type, rights, and where it is in the file and in memory.
type Header = (ProgramType, u32, Range<u64>, Range<u64>);

/// Code in the first page, data in the second one and without bytes of the file in the third.
fn sound() -> Vec<Header> {
    vec![
        (PT_LOAD, 5, 0..4096, 0..4096),
        (PT_LOAD, 6, 4096..8192, 4096..12288),
        (PT_GNU_STACK, 6, 0..0, 0..0),
    ]
}

/// Reads them, all aligned to `align`, from a file of two pages.
fn read(headers: &[Header], align: u64) -> Result<Segments, String> {
    let mut bytes = linux(&[])[..size_of::<FileHeader64<LE>>()].to_vec();
    for (kind, flags, file, memory) in headers {
        push(
            &mut bytes,
            &ProgramHeader64::<LE> {
                p_type: U32::new(LE, *kind),
                p_flags: U32::new(LE, ProgramFlags(*flags)),
                p_offset: U64::new(LE, file.start),
                p_vaddr: U64::new(LE, memory.start),
                p_paddr: U64::new(LE, memory.start),
                p_filesz: U64::new(LE, file.end - file.start),
                p_memsz: U64::new(LE, memory.end - memory.start),
                p_align: U64::new(LE, align),
            },
        );
    }
    bytes.resize(8192, 0);
    let (header, _) = pod::from_bytes::<FileHeader64<LE>>(&bytes).unwrap();
    let mut header = *header;
    header.e_phnum = U16::new(LE, headers.len() as u16);
    Segments::read(&bytes, &header)
}

#[track_caller]
fn assert_read(change: impl Fn(&mut Vec<Header>), expected: Result<(), &str>) {
    let mut headers = sound();
    change(&mut headers);
    let result = read(&headers, 4096).map(drop);
    assert_eq!(result, expected.map_err(str::to_owned));
}

#[test]
fn what_becomes_read_only_is_data_of_one_segment() {
    for (memory, is_sound) in [
        (4096..8192, true),
        (4104..12288, true),
        (4096..12289, false),
        (0..4096, false),
        (0..8192, false),
        (16384..16392, false),
    ] {
        let refused = Err("its segment 3 is not in what it maps");
        assert_read(
            |headers| headers.push((PT_GNU_RELRO, 4, 0..0, memory.clone())),
            if is_sound { Ok(()) } else { refused },
        );
    }
    let relro = (PT_GNU_RELRO, 4, 0..0, 4096..8192);
    for flags in [7, 4, 2] {
        assert_read(
            |headers| {
                headers[1].1 = flags;
                headers.push(relro.clone());
            },
            Err("its segment 3 is not in what it maps"),
        );
    }
}

#[test]
fn there_are_not_many_program_headers() {
    let note = (PT_NOTE, 4, 0..8, 0..8);
    assert_read(|headers| headers.resize(64, note.clone()), Ok(()));
    assert_read(
        |headers| headers.resize(65, note.clone()),
        Err("it has more than 64 program headers"),
    );
}

#[test]
fn what_is_mapped_is_aligned() {
    let refused = "its segment 0 has no alignment".to_owned();
    assert_eq!(read(&sound(), 0).map(drop), Err(refused));
}

#[test]
fn threads_do_not_get_much_each() {
    for (len, expected) in [
        (16 << 20, Ok(())),
        ((16 << 20) + 1, Err("its segment 3 is not in what it maps")),
    ] {
        assert_read(
            |headers| headers.push((PT_TLS, 4, 0..0, 8192..8192 + len)),
            expected,
        );
    }
}

/// A linker may place zeros behind the end of the file; what the dynamic loader maps of it must be there.
#[test]
fn a_segment_of_zeros_is_in_no_file() {
    for (place, address, is_sound) in [
        (1 << 20, 16384, true),
        (8192, 16384, true),
        (8191, 16384 + 4095, true),
        (8192, 16384 + 8, false),
        (1 << 20, 16384 + 8, false),
    ] {
        let zeros = (PT_LOAD, 6, place..place, address..address + 64);
        let mut headers = sound();
        headers.push(zeros);
        assert_eq!(read(&headers, 4096).is_ok(), is_sound, "{place} {address}");
    }
}

#[test]
fn what_is_read_can_be_read() {
    assert_read(|headers| headers.push((PT_NOTE, 4, 0..8, 0..8)), Ok(()));
    assert_read(
        |headers| {
            headers[0].1 = 1;
            headers.push((PT_NOTE, 4, 0..8, 0..8));
        },
        Err("its segment 3 is not in what it maps"),
    );
    let segments = |flags: u32| {
        let mut headers = sound();
        headers[1].1 = flags;
        read(&headers, 4096).unwrap()
    };
    let (both, write) = (segments(6), segments(2));
    assert_eq!(both.in_file(4096, 8), Some(4096));
    assert!(both.is_writable(4096, 8));
    assert_eq!(write.in_file(4096, 8), None);
    assert!(!write.is_writable(4096, 8));
    assert!(write.loads.iter().any(|load: &Segment| !load.is_readable));

    let mut bytes = linux(&[(DT_NEEDED, "libc.so.6")]);
    assert_eq!(bytes[64 + 4], 6);
    bytes[64 + 4] = 2;
    let expected = "ELF: its dynamic section is not where its segments map it";
    assert_refused(&bytes, LINUX, expected);
}
