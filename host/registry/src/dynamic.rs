//! The dynamic section of a pack: what the dynamic loader would fetch beside the file that was hashed.

use super::{
    diagnostic::clean,
    elf::{Bytes, DYNAMIC, LOAD, Segment},
};

/// Size of an entry: a tag and a value.
const ENTRY: usize = 16;

const NEEDED: u64 = 1;
const STRINGS: u64 = 5;
const STRINGS_LEN: u64 = 10;

/// Entries that bring code in from elsewhere.
const FOREIGN: &[(u64, &str)] = &[
    (15, "RPATH"),
    (29, "RUNPATH"),
    (0x6fff_fefa, "CONFIG"),
    (0x6fff_fefb, "DEPAUDIT"),
    (0x6fff_fefc, "AUDIT"),
    (0x7fff_fffd, "AUXILIARY"),
    (0x7fff_ffff, "FILTER"),
];

/// Libraries that every process with Rust's standard library has anyway, as their names begin.
const ALLOWED: &[&str] = &[
    "libc.so",
    "libm.so",
    "libgcc_s.so",
    "libdl.so",
    "libpthread.so",
    "librt.so",
    "ld-linux",
    "libc.musl-",
];

/// Characters of a name that a message repeats.
const MAX_QUOTED: usize = 100;

/// Refuses libraries beyond the allowed ones and search paths of its own.
pub(super) fn check(file: Bytes<'_>, segments: &[Segment]) -> Result<(), String> {
    let mut sections = segments.iter().filter(|segment| segment.kind == DYNAMIC);
    let section = sections.next().ok_or("it has no dynamic section")?;
    if sections.next().is_some() {
        return Err("it has two dynamic sections".to_owned());
    }
    // The dynamic loader follows the address, so the bytes at the offset count only where both agree.
    if in_file(segments, section.memory.start) != Some(section.file.start) {
        return Err("its dynamic section is not where its segments map it".to_owned());
    }
    let len = section.file.end - section.file.start;
    let bytes = file.at(section.file.start, len)?;
    let mut entries = Vec::new();
    for entry in bytes.chunks_exact(ENTRY) {
        let (tag, value) = entry.split_at(ENTRY / 2);
        match (number(tag), number(value)) {
            (0, _) => break,
            entry => entries.push(entry),
        }
    }
    let strings = strings(file, segments, &entries)?;
    for &(tag, value) in &entries {
        if let Some((_, what)) = FOREIGN.iter().find(|row| row.0 == tag) {
            let path = text(strings, value)?;
            return Err(format!(
                "it has a {what}, \"{path}\", from where code would be loaded that nobody checked"
            ));
        }
        if tag == NEEDED {
            let name = text(strings, value)?;
            if name.contains('/') || !ALLOWED.iter().any(|start| name.starts_with(start)) {
                return Err(format!(
                    "it needs \"{name}\"; a pack brings its own code and needs only the C library"
                ));
            }
        }
    }
    Ok(())
}

fn number(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .rev()
        .fold(0, |value, &byte| value << 8 | u64::from(byte))
}

/// Where the byte at `address` comes from.
fn in_file(segments: &[Segment], address: u64) -> Option<u64> {
    let mut loads = segments.iter().filter(|segment| segment.kind == LOAD);
    let holder = loads.find(|segment| segment.memory.contains(&address))?;
    let at = holder.file.start + (address - holder.memory.start);
    (at < holder.file.end).then_some(at)
}

/// The table that names are in; empty where there is none.
fn strings<'a>(
    file: Bytes<'a>,
    segments: &[Segment],
    entries: &[(u64, u64)],
) -> Result<&'a [u8], String> {
    // Of a repeated entry the last one counts, as for the dynamic loader.
    let last = |tag| entries.iter().rev().find(|entry| entry.0 == tag);
    let (Some(&(_, address)), Some(&(_, len))) = (last(STRINGS), last(STRINGS_LEN)) else {
        return Ok(&[]);
    };
    let start = in_file(segments, address).ok_or("its dynamic names are in no segment")?;
    let range = file
        .range(start, len)
        .map_err(|why| format!("its table of dynamic names {why}"))?;
    file.at(range.start as u64, len)
}

fn text(strings: &[u8], at: u64) -> Result<String, String> {
    let rest = usize::try_from(at).ok().and_then(|at| strings.get(at..));
    let rest = rest.ok_or("a name in its dynamic section is out of bounds")?;
    let end = rest.iter().position(|&byte| byte == 0);
    let name = &rest[..end.ok_or("a name in its dynamic section does not end")?];
    Ok(clean(&String::from_utf8_lossy(name), MAX_QUOTED))
}
