//! The dynamic section of an ELF file: what the dynamic loader would fetch beside the file that was hashed, and where it
//! finds what else it has to do.

use super::{
    format::{foreign, name, need, range, text},
    segments::{Segment, Segments},
};
use object::{
    LittleEndian as LE,
    elf::{
        DT_AUDIT, DT_AUXILIARY, DT_CONFIG, DT_DEPAUDIT, DT_FILTER, DT_FINI, DT_FINI_ARRAY,
        DT_FINI_ARRAYSZ, DT_INIT, DT_INIT_ARRAY, DT_INIT_ARRAYSZ, DT_JMPREL, DT_NEEDED, DT_NULL,
        DT_PLTGOT, DT_PLTREL, DT_PLTRELSZ, DT_PREINIT_ARRAY, DT_PREINIT_ARRAYSZ, DT_RELA,
        DT_RELAENT, DT_RELASZ, DT_RELR, DT_RELRENT, DT_RELRSZ, DT_RPATH, DT_RUNPATH, DT_SONAME,
        DT_STRSZ, DT_STRTAB, DT_SYMTAB, DT_VERDEF, DT_VERNEED, DT_VERSYM, Dyn64, DynamicTag,
    },
    pod::{self, Pod},
};
use std::collections::HashSet;

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

/// Entries that one dynamic section may have. A pack's has about thirty.
const MOST_ENTRIES: usize = 4096;

/// Libraries that every process with Rust's standard library has anyway, as their names begin.
const EVERYWHERE: &[&str] = &[
    "libc.so",
    "libm.so",
    "libgcc_s.so",
    "libdl.so",
    "libpthread.so",
    "libthr.so",
    "librt.so",
    "ld-linux",
    "ld64.so",
    "libc.musl-",
];

/// Entries that are of use only together.
const GROUPS: &[&[(DynamicTag, &str)]] = &[
    &[
        (DT_STRTAB, "STRTAB"),
        (DT_STRSZ, "STRSZ"),
        (DT_SYMTAB, "SYMTAB"),
    ],
    &[
        (DT_RELA, "RELA"),
        (DT_RELASZ, "RELASZ"),
        (DT_RELAENT, "RELAENT"),
    ],
    &[
        (DT_JMPREL, "JMPREL"),
        (DT_PLTRELSZ, "PLTRELSZ"),
        (DT_PLTREL, "PLTREL"),
    ],
    &[
        (DT_RELR, "RELR"),
        (DT_RELRSZ, "RELRSZ"),
        (DT_RELRENT, "RELRENT"),
    ],
    &[
        (DT_INIT_ARRAY, "INIT_ARRAY"),
        (DT_INIT_ARRAYSZ, "INIT_ARRAYSZ"),
    ],
    &[
        (DT_FINI_ARRAY, "FINI_ARRAY"),
        (DT_FINI_ARRAYSZ, "FINI_ARRAYSZ"),
    ],
    &[
        (DT_PREINIT_ARRAY, "PREINIT_ARRAY"),
        (DT_PREINIT_ARRAYSZ, "PREINIT_ARRAYSZ"),
    ],
];

/// A dynamic section with what it speaks of.
#[derive(Debug)]
pub(super) struct Dynamic<'a> {
    pub(super) segments: &'a Segments,
    bytes: &'a [u8],
    entries: &'a [Dyn64<LE>],
    names: &'a [u8],
}

impl<'a> Dynamic<'a> {
    pub(super) fn read(bytes: &'a [u8], segments: &'a Segments) -> Result<Dynamic<'a>, String> {
        let section = match segments.dynamics.as_slice() {
            [section] => section,
            [] => return Err("it has no dynamic section".to_owned()),
            _ => return Err("it has two dynamic sections".to_owned()),
        };
        // The dynamic loader follows the address, so the bytes at the offset count only where both agree.
        let len = section.file.end - section.file.start;
        let is_there = segments.in_file(section.memory.start, len) == Some(section.file.start);
        if !is_there || section.memory.end - section.memory.start < len {
            return Err("its dynamic section is not where its segments map it".to_owned());
        }
        let entries = entries(bytes, section)?;
        check_unique(entries)?;
        let mut dynamic = Dynamic {
            segments,
            bytes,
            entries,
            names: &[],
        };
        dynamic.check_groups()?;
        if let (Some(address), Some(len)) = (dynamic.value(DT_STRTAB), dynamic.value(DT_STRSZ)) {
            dynamic.names = dynamic.table("table of dynamic names", address, len)?;
            // Nothing but a zero ends the last name for the dynamic loader.
            if dynamic.names.last().is_some_and(|&byte| byte != 0) {
                return Err("its table of dynamic names does not end with a zero".to_owned());
            }
        }
        for (tag, what) in [(DT_INIT, "INIT"), (DT_FINI, "FINI")] {
            if dynamic.value(tag).is_some_and(|at| !segments.is_code(at)) {
                return Err(format!("its {what} is not in its code"));
            }
        }
        match dynamic.value(DT_PLTGOT) {
            Some(address) if !segments.is_mapped(address) => {
                Err("its PLTGOT is in no segment".to_owned())
            }
            _ => Ok(dynamic),
        }
    }

    /// The libraries that the file needs. Others than the common ones and search paths of its own are refused.
    pub(super) fn needed(&self) -> Result<Vec<String>, String> {
        let mut needed = Vec::new();
        for entry in self.entries {
            let (tag, value) = (entry.d_tag.get(LE), entry.d_val.get(LE));
            let what = FOREIGN.iter().find(|row| row.0 == tag);
            if what.is_none() && tag != DT_NEEDED && tag != DT_SONAME {
                continue;
            }
            let name =
                name(self.names, value).map_err(|why| format!("its dynamic section: {why}"))?;
            if let Some((_, what)) = what {
                return foreign(what, &name);
            }
            let begins = |start: &&str| name.starts_with(*start);
            let is_everywhere = !name.contains('/') && EVERYWHERE.iter().any(begins);
            if tag == DT_NEEDED {
                need(&mut needed, name, is_everywhere)?;
            }
        }
        Ok(needed)
    }

    /// Refuses a file with a part of what belongs together: a dynamic loader takes the rest as zero, or crashes.
    fn check_groups(&self) -> Result<(), String> {
        let has = |tag| self.value(tag).is_some();
        for group in GROUPS {
            let (here, missing): (Vec<_>, Vec<_>) = group.iter().partition(|row| has(row.0));
            if let ([(_, one), ..], [(_, other), ..]) = (&here[..], &missing[..]) {
                return Err(format!("it has {one}, but no {other}"));
            }
        }
        if !has(DT_STRTAB) {
            return Err("it has no table of dynamic names".to_owned());
        }
        match has(DT_VERSYM) || !has(DT_VERNEED) && !has(DT_VERDEF) {
            true => Ok(()),
            false => Err("it has versions, but no VERSYM".to_owned()),
        }
    }

    /// The value of an entry.
    pub(super) fn value(&self, tag: DynamicTag) -> Option<u64> {
        self.values(tag).next()
    }

    fn values(&self, tag: DynamicTag) -> impl Iterator<Item = u64> {
        let entries = self.entries.iter();
        let entries = entries.filter(move |entry| entry.d_tag.get(LE) == tag);
        entries.map(|entry| entry.d_val.get(LE))
    }

    /// Refuses a file in which an entry has another value than all files have.
    pub(super) fn expect(&self, tag: DynamicTag, what: &str, value: u64) -> Result<(), String> {
        match self.value(tag) {
            Some(found) if found != value => Err(format!("its {what} is {found}, not {value}")),
            _ => Ok(()),
        }
    }

    /// `count` entries of what is at `address`.
    pub(super) fn table<T: Pod>(
        &self,
        what: &str,
        address: u64,
        count: u64,
    ) -> Result<&'a [T], String> {
        let rest = self.rest(what, address)?;
        let count = usize::try_from(count).ok();
        let table = count.and_then(|count| pod::slice_from_bytes(rest, count).ok());
        let (table, _) = table.ok_or_else(|| format!("its {what} leaves its segment"))?;
        Ok(table)
    }

    /// The bytes at `address` up to the end of those that the file has for its segment.
    pub(super) fn rest(&self, what: &str, address: u64) -> Result<&'a [u8], String> {
        let rest = self.segments.from(self.bytes, address);
        rest.ok_or_else(|| format!("its {what} is in no segment"))
    }

    /// The names of what [`Self::needed`] passed, as they are in the file.
    pub(super) fn libraries(&self) -> HashSet<&'a [u8]> {
        let names = self.values(DT_NEEDED);
        names.filter_map(|at| text(self.names, at).ok()).collect()
    }

    /// The name that begins there, as it is in the file.
    pub(super) fn text(&self, at: u32) -> Option<&'a [u8]> {
        text(self.names, at.into()).ok()
    }

    /// Whether a name begins there.
    pub(super) fn is_name(&self, at: u32) -> bool {
        usize::try_from(at).is_ok_and(|at| at < self.names.len())
    }
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

/// Refuses a repeated entry, as dynamic loaders differ in which one counts, and more than any library has.
fn check_unique(entries: &[Dyn64<LE>]) -> Result<(), String> {
    if entries.len() > MOST_ENTRIES {
        return Err(format!(
            "it has more than {MOST_ENTRIES} entries in its dynamic section"
        ));
    }
    let mut seen = HashSet::new();
    let tags = entries.iter().map(|entry| entry.d_tag.get(LE));
    let mut others = tags.filter(|&tag| tag != DT_NEEDED);
    match others.find(|tag| !seen.insert(tag.0)) {
        Some(tag) => Err(format!(
            "it has two entries {:#x} in its dynamic section",
            tag.0
        )),
        None => Ok(()),
    }
}
