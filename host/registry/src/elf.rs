//! Bounds of an ELF shared object and what it wants loaded beside it, checked on its bytes before anything maps it;
//! it does not look at code or symbols.
//!
//! `dlopen` of a file that ends inside a segment kills the process with SIGBUS, so every range that the
//! dynamic loader or we ourselves follow is checked here. No input makes these functions panic.

use super::dynamic;
use std::ops::Range;

pub(super) const LOAD: u32 = 1;
pub(super) const DYNAMIC: u32 = 2;
const STACK: u32 = 0x6474_e551;
const EXECUTABLE: u32 = 1;
const NOBITS: u32 = 8;
const SHARED_OBJECT: u16 = 3;
const PROGRAM_HEADER: u64 = 56;
const SECTION_HEADER: u64 = 64;

/// `e_machine` of the architectures that Rust names.
const MACHINES: &[(&str, u16)] = &[
    ("x86_64", 62),
    ("aarch64", 183),
    ("riscv64", 243),
    ("powerpc64", 21),
    ("loongarch64", 258),
];

/// Checks headers, segments, dependencies and section table of a 64-bit little-endian shared object for `arch`, and
/// answers with the bytes of its section `name`.
pub(super) fn section<'a>(bytes: &'a [u8], arch: &str, name: &str) -> Result<&'a [u8], String> {
    let file = Bytes(bytes);
    if !bytes.starts_with(b"\x7fELF") {
        return Err("it is not an ELF file".to_owned());
    }
    if file.at(4, 3)? != [2, 1, 1] {
        return Err("it is not a 64-bit little-endian ELF file".to_owned());
    }
    if file.u16(16)? != SHARED_OBJECT {
        return Err("it is not a shared object".to_owned());
    }
    check_machine(file.u16(18)?, arch)?;
    let segments = read_segments(file)?;
    check_segments(&segments)?;
    let section = find_section(file, name)?;
    dynamic::check(file, &segments)?;
    Ok(section)
}

fn check_machine(machine: u16, arch: &str) -> Result<(), String> {
    let built_for = MACHINES
        .iter()
        .find(|row| row.1 == machine)
        .map(|row| row.0);
    match built_for {
        Some(built_for) if built_for == arch => Ok(()),
        Some(built_for) => Err(format!("it is built for {built_for}, this host is {arch}")),
        None => Err(format!(
            "it is built for ELF machine {machine}, this host is {arch}"
        )),
    }
}

/// A program header.
#[derive(Debug)]
pub(super) struct Segment {
    pub(super) kind: u32,
    flags: u32,
    /// Where it is in the file; checked to lie in it.
    pub(super) file: Range<u64>,
    /// Where it is in memory.
    pub(super) memory: Range<u64>,
}

fn read_segments(file: Bytes<'_>) -> Result<Vec<Segment>, String> {
    let (start, size, count) = (file.u64(32)?, file.u16(54)?, file.u16(56)?);
    if u64::from(size) != PROGRAM_HEADER {
        return Err(format!(
            "its program headers have {size} bytes, not {PROGRAM_HEADER}"
        ));
    }
    let segment = |index: u64| {
        let header = start
            .checked_add(index * PROGRAM_HEADER)
            .ok_or("its program headers overflow")?;
        let word = |at| file.u64(field(header, at)?);
        let (offset, address, in_file, in_memory) = (word(8)?, word(16)?, word(32)?, word(40)?);
        file.range(offset, in_file)
            .map_err(|why| format!("its segment {index} {why}"))?;
        let end = address
            .checked_add(in_memory)
            .ok_or_else(|| format!("its segment {index} overflows"))?;
        Ok(Segment {
            kind: file.u32(header)?,
            flags: file.u32(field(header, 4)?)?,
            file: offset..offset + in_file,
            memory: address..end,
        })
    };
    (0..u64::from(count)).map(segment).collect()
}

fn check_segments(segments: &[Segment]) -> Result<(), String> {
    let length = |range: &Range<u64>| range.end - range.start;
    let (mut last, mut loads) = (0, 0);
    for (index, segment) in segments.iter().enumerate() {
        if segment.kind == STACK && segment.flags & EXECUTABLE != 0 {
            return Err("it asks for executable stacks in the whole process".to_owned());
        }
        if segment.kind != LOAD {
            continue;
        }
        if length(&segment.file) > length(&segment.memory) {
            return Err(format!(
                "its segment {index} is larger in the file than in memory"
            ));
        }
        if segment.memory.start < last {
            return Err(format!("its segment {index} lies over another one"));
        }
        (last, loads) = (segment.memory.end, loads + 1);
    }
    match loads {
        0 => Err("it has nothing to load".to_owned()),
        _ => Ok(()),
    }
}

fn find_section<'a>(file: Bytes<'a>, name: &str) -> Result<&'a [u8], String> {
    let (start, size, count, names) = (file.u64(40)?, file.u16(58)?, file.u16(60)?, file.u16(62)?);
    if u64::from(size) != SECTION_HEADER {
        return Err(format!(
            "its section headers have {size} bytes, not {SECTION_HEADER}"
        ));
    }
    file.range(start, u64::from(count) * SECTION_HEADER)
        .map_err(|why| format!("its section table {why}"))?;
    if names >= count {
        return Err("it has no section names".to_owned());
    }
    let content = |index: u16| {
        let header = field(start, u64::from(index) * SECTION_HEADER)?;
        let range = file.range(file.u64(field(header, 24)?)?, file.u64(field(header, 32)?)?);
        Ok::<_, String>((header, file.u32(field(header, 4)?)?, range))
    };
    let (_, kind, table) = content(names)?;
    let table = table.map_err(|why| format!("its section names {why}"))?;
    let table = if kind == NOBITS {
        &[][..]
    } else {
        &file.0[table]
    };
    let mut found = None;
    for index in 1..count {
        let (header, kind, range) = content(index)?;
        if kind == NOBITS {
            continue;
        }
        let range = range.map_err(|why| format!("its section {index} {why}"))?;
        let at = usize::try_from(file.u32(header)?).ok();
        let text = at.and_then(|at| table.get(at..)).unwrap_or_default();
        if text
            .strip_prefix(name.as_bytes())
            .is_some_and(|rest| rest.first() == Some(&0))
        {
            found = Some(&file.0[range]);
        }
    }
    found.ok_or_else(|| format!("it has no section {name}, so it is not a kernel pack"))
}

fn field(header: u64, offset: u64) -> Result<u64, String> {
    header
        .checked_add(offset)
        .ok_or_else(|| "its headers overflow".to_owned())
}

/// Reads that fail, rather than panic, beyond the end of the file.
#[derive(Clone, Copy)]
pub(super) struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    /// `offset..offset + len` as a range of the file.
    pub(super) fn range(self, offset: u64, len: u64) -> Result<Range<usize>, String> {
        let end = offset.checked_add(len).ok_or("overflows")?;
        if end > self.0.len() as u64 {
            return Err(format!(
                "ends at byte {end}, the file has {} bytes",
                self.0.len()
            ));
        }
        // Both fit in usize, since the file of that length is in memory.
        Ok(offset as usize..end as usize)
    }

    pub(super) fn at(self, offset: u64, len: u64) -> Result<&'a [u8], String> {
        let range = self
            .range(offset, len)
            .map_err(|why| format!("its header {why}"))?;
        Ok(&self.0[range])
    }

    fn array<const N: usize>(self, offset: u64) -> Result<[u8; N], String> {
        let mut array = [0; N];
        array.copy_from_slice(self.at(offset, N as u64)?);
        Ok(array)
    }

    fn u16(self, offset: u64) -> Result<u16, String> {
        self.array(offset).map(u16::from_le_bytes)
    }

    fn u32(self, offset: u64) -> Result<u32, String> {
        self.array(offset).map(u32::from_le_bytes)
    }

    pub(super) fn u64(self, offset: u64) -> Result<u64, String> {
        self.array(offset).map(u64::from_le_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every test binary is itself an ELF file with the right machine, at most of another type, and with the compiler's
    /// C++ library, which a pack must not need.
    fn own_image() -> Vec<u8> {
        let mut bytes = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        bytes[16..18].copy_from_slice(&SHARED_OBJECT.to_le_bytes());
        let (foreign, allowed) = (b"libstdc++.so.6", b"libc.so.6\0\0\0\0\0");
        let starts: Vec<usize> = bytes
            .windows(foreign.len())
            .enumerate()
            .filter(|(_, text)| text == foreign)
            .map(|(at, _)| at)
            .collect();
        for at in starts {
            bytes[at..at + foreign.len()].copy_from_slice(allowed);
        }
        bytes
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn an_existing_section_is_found_and_a_missing_one_is_named() {
        let bytes = own_image();
        let arch = std::env::consts::ARCH;
        assert!(section(&bytes, arch, ".dynstr").unwrap().starts_with(b"\0"));
        assert_eq!(
            section(&bytes, arch, ".nxv.absent").unwrap_err(),
            "it has no section .nxv.absent, so it is not a kernel pack"
        );
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn every_header_byte_may_be_anything() {
        let mut bytes = own_image();
        bytes.truncate(1 << 16);
        let headers = 64 + usize::from(u16::from_le_bytes([bytes[56], bytes[57]])) * 56;
        for at in 0..headers {
            let saved = bytes[at];
            for value in [0, 1, 0x7f, 0x80, 0xff] {
                bytes[at] = value;
                let _ = section(&bytes, std::env::consts::ARCH, ".nxv.meta");
            }
            bytes[at] = saved;
        }
        for len in 0..headers {
            assert!(section(&bytes[..len], std::env::consts::ARCH, ".nxv.meta").is_err());
        }
    }

    #[test]
    fn another_machine_is_named() {
        let arm = if std::env::consts::ARCH == "aarch64" {
            ("x86_64", 62)
        } else {
            ("aarch64", 183)
        };
        let error = check_machine(arm.1, std::env::consts::ARCH).unwrap_err();
        assert!(
            error.starts_with(&format!("it is built for {}, this host is ", arm.0)),
            "{error}"
        );
    }
}
