//! The dynamic symbols of an ELF file, with their hash tables and versions: the dynamic loader follows every index and
//! offset in them, wherever that leads.

use super::dynamic::Dynamic;
use object::{
    LittleEndian as LE, U16, U32,
    elf::{
        DT_GNU_HASH, DT_HASH, DT_SYMENT, DT_SYMTAB, DT_VERDEF, DT_VERNEED, DT_VERSYM,
        GnuHashHeader, HashHeader, SHN_ABS, SHN_UNDEF, STB_LOCAL, STT_GNU_IFUNC, STT_TLS,
        STV_DEFAULT, STV_PROTECTED, Sym64, VER_DEF_CURRENT, VER_NEED_CURRENT, VERSYM_VERSION,
        Verdaux, Verdef, Vernaux, Verneed,
    },
    pod::{self, Pod},
};

/// Versions that one file may name. A pack names those of the C library that it was linked with.
const MOST_VERSIONS: usize = 10_000;

/// Where an address is that a symbol stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// In this file.
    Own(u64),
    /// In a thread's copy of what this file has for each.
    PerThread(u64),
    /// Wherever another library has it.
    Foreign,
    /// Nowhere: it is a number.
    Absolute,
}

/// The symbols of a file.
#[derive(Debug)]
pub(super) struct Symbols<'a> {
    dynamic: &'a Dynamic<'a>,
    table: &'a [Sym64<LE>],
    versions: Option<&'a [U16<LE>]>,
    last_version: u16,
}

impl<'a> Symbols<'a> {
    /// Checks those that can be looked up.
    pub(super) fn read(dynamic: &'a Dynamic<'a>) -> Result<Symbols<'a>, String> {
        dynamic.expect(DT_SYMENT, "size of a symbol", size_of::<Sym64<LE>>() as u64)?;
        let table = match dynamic.value(DT_SYMTAB) {
            Some(address) => whole(dynamic.rest("table of symbols", address)?),
            None => &[],
        };
        let versions = match dynamic.value(DT_VERSYM) {
            Some(address) => Some(whole(dynamic.rest("table of versions", address)?)),
            None => None,
        };
        let symbols = Symbols {
            dynamic,
            table,
            versions,
            last_version: last_version(dynamic)?,
        };
        if [DT_GNU_HASH, DT_HASH].map(|tag| dynamic.value(tag)) == [None; 2] {
            return Err("it has no hash table of symbols".to_owned());
        }
        let count = gnu_hashed(dynamic)?.max(hashed(dynamic)?);
        for index in 1..count {
            symbols.place(index)?;
        }
        Ok(symbols)
    }

    /// Where a symbol leads.
    pub(super) fn place(&self, index: u32) -> Result<Place, String> {
        let at = usize::try_from(index).unwrap_or(usize::MAX);
        let symbol = self.table.get(at);
        let symbol = symbol.ok_or_else(|| format!("its symbol {index} is in no segment"))?;
        if !self.dynamic.is_name(symbol.st_name.get(LE)) {
            return Err(format!("its symbol {index} has a name out of bounds"));
        }
        let version = self.versions.map(|versions| versions.get(at));
        let is_known = |version: &U16<LE>| version.get(LE) & VERSYM_VERSION <= self.last_version;
        if version.is_some_and(|version| !version.is_some_and(is_known)) {
            return Err(format!("its symbol {index} has a version out of bounds"));
        }
        let value = symbol.st_value.get(LE);
        let segments = self.dynamic.segments;
        let is_shared = symbol.st_bind() != STB_LOCAL
            && matches!(symbol.st_visibility(), STV_DEFAULT | STV_PROTECTED);
        let (place, is_sound) = match symbol.st_shndx.get(LE) {
            SHN_UNDEF => (Place::Foreign, is_shared),
            // The dynamic loader calls it to learn the address.
            section if symbol.st_type() == STT_GNU_IFUNC => {
                let is_sound = section != SHN_ABS && segments.is_code(value);
                (Place::Own(value), is_sound)
            }
            SHN_ABS => (Place::Absolute, true),
            _ if symbol.st_type() == STT_TLS => {
                let len = segments.per_thread;
                (Place::PerThread(value), len.is_some_and(|len| value <= len))
            }
            _ => (Place::Own(value), segments.is_mapped(value)),
        };
        match is_sound {
            true => Ok(place),
            false => Err(format!("its symbol {index} is nowhere")),
        }
    }
}

/// All of the bytes, but for a rest.
fn whole<T: Pod>(bytes: &[u8]) -> &[T] {
    let table = pod::slice_from_bytes(bytes, bytes.len() / size_of::<T>());
    table.map_or(&[], |(table, _)| table)
}

/// One more than the largest index that the hash table of today leads to.
fn gnu_hashed(dynamic: &Dynamic<'_>) -> Result<u32, String> {
    const WHAT: &str = "hash table of symbols";
    let Some(address) = dynamic.value(DT_GNU_HASH) else {
        return Ok(0);
    };
    let damaged = || format!("its {WHAT} is damaged");
    let [header] = dynamic.table::<GnuHashHeader<LE>>(WHAT, address, 1)? else {
        return Err(damaged());
    };
    let (filters, buckets) = (header.bloom_count.get(LE), header.bucket_count.get(LE));
    let first = header.symbol_base.get(LE);
    if !filters.is_power_of_two() || buckets == 0 {
        return Err(damaged());
    }
    let words = dynamic.rest(WHAT, address)?;
    let words = whole::<U32<LE>>(words.get(size_of_val(header)..).ok_or_else(damaged)?);
    let filters = usize::try_from(filters)
        .ok()
        .and_then(|count| count.checked_mul(2));
    let words = filters
        .and_then(|len| words.get(len..))
        .ok_or_else(damaged)?;
    let buckets = usize::try_from(buckets).ok();
    let split = buckets.and_then(|count| words.split_at_checked(count));
    let (buckets, chains) = split.ok_or_else(damaged)?;
    let starts = || {
        buckets
            .iter()
            .map(|bucket| bucket.get(LE))
            .filter(|&start| start != 0)
    };
    let Some(last) = starts().max() else {
        return Ok(0);
    };
    if starts().any(|start| start < first) {
        return Err(damaged());
    }
    // A chain ends with an odd word, and each that begins before the last one ends no later.
    let chain = usize::try_from(last - first)
        .ok()
        .and_then(|at| chains.get(at..));
    let len = chain.and_then(|chain| chain.iter().position(|word| word.get(LE) & 1 == 1));
    let len = len.and_then(|len| u32::try_from(len + 1).ok());
    len.and_then(|len| last.checked_add(len))
        .ok_or_else(damaged)
}

/// The same for the older hash table.
fn hashed(dynamic: &Dynamic<'_>) -> Result<u32, String> {
    const WHAT: &str = "older hash table of symbols";
    let Some(address) = dynamic.value(DT_HASH) else {
        return Ok(0);
    };
    let damaged = || format!("its {WHAT} is damaged");
    let [header] = dynamic.table::<HashHeader<LE>>(WHAT, address, 1)? else {
        return Err(damaged());
    };
    let (buckets, chains) = (header.bucket_count.get(LE), header.chain_count.get(LE));
    let count = 2 + u64::from(buckets) + u64::from(chains);
    let words = dynamic.table::<U32<LE>>(WHAT, address, count)?;
    // A walk ends if no index comes twice. Index 0 ends one.
    let mut seen = vec![false; usize::try_from(chains).map_err(|_| damaged())?];
    let mut is_new = |index: u32| {
        let seen = usize::try_from(index).ok().and_then(|at| seen.get_mut(at));
        seen.is_some_and(|seen| index == 0 || !std::mem::replace(seen, true))
    };
    match buckets > 0 && words[2..].iter().all(|word| is_new(word.get(LE))) {
        true => Ok(chains),
        false => Err(damaged()),
    }
}

/// Refuses versions of another form than all files have.
fn check_form(form: u16, expected: u16) -> Result<(), String> {
    match form == expected {
        true => Ok(()),
        false => Err(format!("its versions have form {form}, not {expected}")),
    }
}

/// The largest index of a version. The dynamic loader makes a table for as many.
fn last_version(dynamic: &Dynamic<'_>) -> Result<u16, String> {
    let (mut last, mut left) = (1, MOST_VERSIONS);
    let named = |at: u32| match dynamic.is_name(at) {
        true => Ok(()),
        false => Err("its versions have a name out of bounds".to_owned()),
    };
    if let Some(address) = dynamic.value(DT_VERNEED) {
        let rest = dynamic.rest("table of needed versions", address)?;
        let needed = dynamic.libraries();
        let libraries = chain(
            rest,
            0,
            |library: &Verneed<LE>| library.vn_next.get(LE),
            &mut left,
        )?;
        for (at, library) in libraries {
            check_form(library.vn_version.get(LE), VER_NEED_CURRENT)?;
            let file = library.vn_file.get(LE);
            named(file)?;
            // The dynamic loader looks for it among what it loaded, and ends the process if it is not there.
            if !dynamic.text(file).is_some_and(|name| needed.contains(name)) {
                return Err("its versions are of a library that it does not need".to_owned());
            }
            let start = at + u64::from(library.vn_aux.get(LE));
            for (_, version) in chain(
                rest,
                start,
                |version: &Vernaux<LE>| version.vna_next.get(LE),
                &mut left,
            )? {
                named(version.vna_name.get(LE))?;
                last = last.max(version.vna_other.get(LE).0 & VERSYM_VERSION);
            }
        }
    }
    if let Some(address) = dynamic.value(DT_VERDEF) {
        let rest = dynamic.rest("table of own versions", address)?;
        let versions = chain(
            rest,
            0,
            |version: &Verdef<LE>| version.vd_next.get(LE),
            &mut left,
        )?;
        for (at, version) in versions {
            check_form(version.vd_version.get(LE), VER_DEF_CURRENT)?;
            last = last.max(version.vd_ndx.get(LE).0 & VERSYM_VERSION);
            let start = at + u64::from(version.vd_aux.get(LE));
            for (_, name) in chain(
                rest,
                start,
                |name: &Verdaux<LE>| name.vda_next.get(LE),
                &mut left,
            )? {
                named(name.vda_name.get(LE))?;
            }
        }
    }
    Ok(last)
}

/// The records of a list in which each says how far it is to the next one.
fn chain<'a, T: Pod>(
    bytes: &'a [u8],
    start: u64,
    next: fn(&T) -> u32,
    left: &mut usize,
) -> Result<Vec<(u64, &'a T)>, String> {
    let (mut at, mut records) = (start, Vec::new());
    loop {
        let rest = usize::try_from(at).ok().and_then(|at| bytes.get(at..));
        let record = rest.and_then(|rest| pod::from_bytes(rest).ok());
        let (record, _) = record.ok_or("its versions leave their segment")?;
        *left = left.checked_sub(1).ok_or("it has too many versions")?;
        records.push((at, record));
        match next(record) {
            0 => return Ok(records),
            far => at += u64::from(far),
        }
    }
}
