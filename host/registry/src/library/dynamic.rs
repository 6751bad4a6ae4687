//! The dynamic section of an ELF file: what the dynamic loader would fetch beside the file that was hashed.

use super::format::{foreign, name, need, range};
use object::{
    LittleEndian as LE,
    elf::{
        DT_AUDIT, DT_AUXILIARY, DT_CONFIG, DT_DEPAUDIT, DT_FILTER, DT_JMPREL, DT_NEEDED, DT_NULL,
        DT_PLTRELSZ, DT_RELA, DT_RELASZ, DT_RPATH, DT_RUNPATH, DT_STRSZ, DT_STRTAB, Dyn64,
        DynamicTag, Rela64,
    },
    pod,
};
use std::ops::Range;

/// Entries that bring code in from elsewhere.
const FOREIGN: &[(DynamicTag, &str)] = &[
    (DT_RPATH, "RPATH"),
    (DT_RUNPATH, "RUNPATH"),
    (DT_CONFIG, "CONFIG"),
    (DT_DEPAUDIT, "DEPAUDIT"),
    (DT_AUDIT, "AUDIT"),
    (DT_AUXILIARY, "AUXILIARY"),
    (DT_FILTER, "FILTER"),
];

/// Libraries that every process with Rust's standard library has anyway, as their names begin.
const EVERYWHERE: &[&str] = &[
    "libc.so",
    "libm.so",
    "libgcc_s.so",
    "libdl.so",
    "libpthread.so",
    "librt.so",
    "ld-linux",
    "libc.musl-",
];

/// A program header that the dynamic loader follows.
#[derive(Debug)]
pub(super) struct Segment {
    /// Where it is in the file, and lies in it.
    pub(super) file: Range<u64>,
    /// Where it is in memory.
    pub(super) memory: Range<u64>,
    /// Whether it may be written to.
    pub(super) writable: bool,
}

/// What is mapped, and where the dynamic loader reads what else it has to do.
#[derive(Debug, Default)]
pub(super) struct Segments {
    pub(super) loads: Vec<Segment>,
    pub(super) dynamics: Vec<Segment>,
}

/// The libraries that the file needs. Others than the common ones and search paths of its own are refused.
pub(super) fn needed(bytes: &[u8], segments: &Segments) -> Result<Vec<String>, String> {
    let section = match segments.dynamics.as_slice() {
        [section] => section,
        [] => return Err("it has no dynamic section".to_owned()),
        _ => return Err("it has two dynamic sections".to_owned()),
    };
    // The dynamic loader follows the address, so the bytes at the offset count only where both agree.
    let len = section.file.end - section.file.start;
    if in_file(&segments.loads, section.memory.start, len) != Some(section.file.start) {
        return Err("its dynamic section is not where its segments map it".to_owned());
    }
    let entries = entries(bytes, section)?;
    for (at, len) in [(DT_RELA, DT_RELASZ), (DT_JMPREL, DT_PLTRELSZ)] {
        relocations(
            bytes,
            &segments.loads,
            [last(entries, at), last(entries, len)],
        )?;
    }
    let names = names(bytes, &segments.loads, entries)?;
    let mut needed = Vec::new();
    for entry in entries {
        let (tag, value) = (entry.d_tag.get(LE), entry.d_val.get(LE));
        let what = FOREIGN.iter().find(|row| row.0 == tag);
        if what.is_none() && tag != DT_NEEDED {
            continue;
        }
        let name = name(names, value).map_err(|why| format!("its dynamic section: {why}"))?;
        if let Some((_, what)) = what {
            return foreign(what, &name);
        }
        let begins = |start: &&str| name.starts_with(*start);
        let is_everywhere = !name.contains('/') && EVERYWHERE.iter().any(begins);
        need(&mut needed, name, is_everywhere)?;
    }
    Ok(needed)
}

/// The entries before the one that ends them. The dynamic loader reads on to that one whatever the segment's size.
fn entries<'a>(bytes: &'a [u8], section: &Segment) -> Result<&'a [Dyn64<LE>], String> {
    let len = section.file.end - section.file.start;
    let bytes = range(bytes, section.file.start, len);
    let bytes = bytes.map_err(|why| format!("its dynamic section {why}"))?;
    let count = bytes.len() / size_of::<Dyn64<LE>>();
    let (entries, _) = pod::slice_from_bytes::<Dyn64<LE>>(bytes, count).unwrap_or_default();
    let end = entries
        .iter()
        .position(|entry| entry.d_tag.get(LE) == DT_NULL);
    let end = end.ok_or("its dynamic section does not end")?;
    Ok(&entries[..end])
}

/// The value of an entry. Of a repeated one the last counts, as for the dynamic loader.
fn last(entries: &[Dyn64<LE>], tag: DynamicTag) -> Option<u64> {
    let entry = entries
        .iter()
        .rev()
        .find(|entry| entry.d_tag.get(LE) == tag);
    entry.map(|entry| entry.d_val.get(LE))
}

/// Checks that every relocation of the table writes a word of what the file maps to be written. Elsewhere it would hit
/// whatever lies there in this process, which need not be what lay there in the probe.
pub(super) fn relocations(
    bytes: &[u8],
    loads: &[Segment],
    [address, len]: [Option<u64>; 2],
) -> Result<(), String> {
    const WORD: u64 = 8;
    let (Some(address), Some(len)) = (address, len) else {
        return Ok(());
    };
    let start = in_file(loads, address, len).ok_or("its relocations are in no segment")?;
    let table = range(bytes, start, len).map_err(|why| format!("its relocations {why}"))?;
    let count = table.len() / size_of::<Rela64<LE>>();
    let (table, _) = pod::slice_from_bytes::<Rela64<LE>>(table, count).unwrap_or_default();
    let is_sound = |entry: &Rela64<LE>| {
        let at = entry.r_offset.get(LE);
        let holds = |load: &Segment| {
            let end = at.checked_add(WORD);
            load.writable
                && load.memory.start <= at
                && end.is_some_and(|end| end <= load.memory.end)
        };
        // One of type 0 does nothing.
        entry.r_info.get(LE) as u32 == 0 || loads.iter().any(holds)
    };
    match table.iter().position(|entry| !is_sound(entry)) {
        Some(index) => Err(format!(
            "its relocation {index} writes outside of what it maps to be written"
        )),
        None => Ok(()),
    }
}

/// Where `len` bytes at `address` come from, if it is one place.
fn in_file(loads: &[Segment], address: u64, len: u64) -> Option<u64> {
    let holder = loads
        .iter()
        .find(|segment| segment.memory.contains(&address))?;
    let at = holder.file.start + (address - holder.memory.start);
    (at.checked_add(len)? <= holder.file.end).then_some(at)
}

/// The table that names are in; empty where there is none.
fn names<'a>(
    bytes: &'a [u8],
    loads: &[Segment],
    entries: &[Dyn64<LE>],
) -> Result<&'a [u8], String> {
    let [Some(address), Some(len)] = [DT_STRTAB, DT_STRSZ].map(|tag| last(entries, tag)) else {
        return Ok(&[]);
    };
    let start = in_file(loads, address, len).ok_or("its dynamic names are in no segment")?;
    range(bytes, start, len).map_err(|why| format!("its table of dynamic names {why}"))
}
