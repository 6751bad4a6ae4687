//! What the dynamic loader would follow out of an ELF file: each table, sound and then damaged in one place.

use super::sample::{CODE, DATA, assert_refused, relocation, sound};
use object::{elf::*, pod::bytes_of};

#[test]
fn what_leads_to_what_is_mapped_passes() {
    assert_eq!(sound().check(), Ok(()));
    // The functions may be written by packed relocations too; their words hold the addresses.
    let mut packed = sound();
    let functions = *packed.value(DT_INIT_ARRAY);
    packed.set(DT_INIT_ARRAY, 0, &16u64.to_le_bytes());
    packed.set(DT_RELA, 0, bytes_of(&relocation(0, R_X86_64_NONE, 0, 0)));
    *packed.value(DT_RELACOUNT) = 0;
    packed.put(DT_RELR, &functions.to_le_bytes());
    packed.entries.extend([(DT_RELRSZ, 8), (DT_RELRENT, 8)]);
    assert_eq!(packed.check(), Ok(()));
}

#[test]
fn a_relocation_that_leads_out_of_the_file_is_refused() {
    const WRITES: &str = "writes outside of what it maps to be written";
    const LEADS: &str = "leads out of what it maps";
    let far = (1u64 << 40).to_le_bytes();
    let info = |kind: RelocationType, symbol: u64| (symbol << 32 | u64::from(kind.0)).to_le_bytes();
    for (index, field, value, why) in [
        (1, 0, far, WRITES),
        (1, 0, 8u64.to_le_bytes(), WRITES),
        (1, 0, (DATA - 8).to_le_bytes(), WRITES),
        (1, 0, (u64::MAX - 3).to_le_bytes(), WRITES),
        (1, 16, far, LEADS),
        (1, 16, (-8i64 as u64).to_le_bytes(), LEADS),
        (1, 16, (CODE + 1).to_le_bytes(), LEADS),
        // A function at the beginning that is no code.
        (0, 16, DATA.to_le_bytes(), LEADS),
        (2, 16, far, LEADS),
        (3, 16, far, LEADS),
        (5, 16, 33u64.to_le_bytes(), LEADS),
        (
            2,
            8,
            info(RelocationType(77), 1),
            "has a type that no library has",
        ),
        (
            2,
            8,
            info(R_X86_64_COPY, 1),
            "has a type that no library has",
        ),
        (0, 8, info(R_X86_64_GLOB_DAT, 1), "is not relative"),
        (3, 8, info(R_X86_64_IRELATIVE, 0), LEADS),
        (
            3,
            8,
            info(R_X86_64_64, 9000),
            "names a symbol that is damaged: its symbol 9000 is in no segment",
        ),
    ] {
        let mut sample = sound();
        if (index, field) == (3, 8) && why == LEADS {
            sample.set(DT_RELA, 3 * 24 + 16, &DATA.to_le_bytes());
        }
        sample.set(DT_RELA, index * 24 + field, &value);
        assert_refused(sample, &format!("its relocation {index} {why}"));
    }
    let mut none = sound();
    none.per_thread = None;
    assert_refused(none, &format!("its relocation 4 {LEADS}"));
    let mut more = sound();
    *more.value(DT_RELASZ) += 8;
    let len = *more.value(DT_RELASZ);
    assert_refused(
        more,
        &format!("its relocations of {len} bytes are no whole ones"),
    );
}

#[test]
fn a_word_that_is_written_twice_or_a_function_that_is_not_is_refused() {
    let mut twice = sound();
    let words = *twice.value(DT_PLTGOT);
    twice.set(DT_RELA, 24, &(words + 4).to_le_bytes());
    assert_refused(
        twice,
        &format!("two of its relocations write at {:#x}", words + 8),
    );
    let mut never = sound();
    let functions = *never.value(DT_INIT_ARRAY);
    never.set(DT_RELA, 8, &0u64.to_le_bytes());
    *never.value(DT_RELACOUNT) = 0;
    assert_refused(
        never,
        &format!("its function to call at {functions:#x} is no address"),
    );
}

#[test]
fn packed_relocations_are_held_to_the_same() {
    let with = |table: &[u64], content: u64| {
        let mut sample = sound();
        let word = sample.put(DT_RELR, &content.to_le_bytes());
        sample.entries.pop();
        let table: Vec<u64> = table.iter().map(|entry| entry.wrapping_add(word)).collect();
        let bytes: Vec<u8> = table.iter().flat_map(|entry| entry.to_le_bytes()).collect();
        sample.put(DT_RELR, &bytes);
        let len = bytes.len() as u64;
        sample.entries.extend([(DT_RELRSZ, len), (DT_RELRENT, 8)]);
        (sample.check(), word)
    };
    assert_eq!(with(&[0], DATA).0, Ok(()));
    let (refused, word) = with(&[0], 1 << 40);
    let why = "leads out of what it maps";
    assert_eq!(
        refused,
        Err(format!("its packed relocation of {word:#x} {why}"))
    );
    let why = "writes outside of what it maps to be written";
    let (refused, word) = with(&[1 << 40], DATA);
    let at = word + (1 << 40);
    assert_eq!(
        refused,
        Err(format!("its packed relocation of {at:#x} {why}"))
    );
}

#[test]
fn a_symbol_that_leads_out_of_the_file_is_refused() {
    for (tag, at, value, why) in [
        // The name, what sort of symbol it is, where it lies, its version.
        (
            DT_SYMTAB,
            24,
            &11u32.to_le_bytes()[..],
            "its symbol 1 has a name out of bounds",
        ),
        (DT_SYMTAB, 28, &[0x02], "its symbol 1 is nowhere"),
        (DT_SYMTAB, 29, &[2], "its symbol 1 is nowhere"),
        (DT_SYMTAB, 48 + 8, &[0, 0, 1], "its symbol 2 is nowhere"),
        (
            DT_VERSYM,
            2,
            &[3, 0],
            "its symbol 1 has a version out of bounds",
        ),
        (
            DT_VERSYM,
            4,
            &[0, 1],
            "its symbol 2 has a version out of bounds",
        ),
    ] {
        let mut sample = sound();
        sample.set(tag, at, value);
        assert_refused(sample, why);
    }
    for (tag, why) in [
        (DT_SYMTAB, "its table of symbols is in no segment"),
        (DT_VERSYM, "its table of versions is in no segment"),
        (DT_STRTAB, "its table of dynamic names is in no segment"),
        (DT_VERNEED, "its table of needed versions is in no segment"),
        (DT_GNU_HASH, "its hash table of symbols is in no segment"),
        (DT_HASH, "its older hash table of symbols is in no segment"),
        (DT_RELA, "its table of relocations is in no segment"),
        (
            DT_INIT_ARRAY,
            "its table of functions to call is in no segment",
        ),
        (DT_PLTGOT, "its PLTGOT is in no segment"),
        (DT_INIT, "its INIT is not in its code"),
    ] {
        let mut sample = sound();
        *sample.value(tag) ^= 1 << 40;
        assert_refused(sample, why);
    }
}

#[test]
fn hash_tables_and_versions_end_in_the_file() {
    let damaged = |what: &str| format!("its {what} of symbols is damaged");
    let hash = damaged("hash table");
    let older = damaged("older hash table");
    for (tag, at, value, why) in [
        (DT_GNU_HASH, 0, 1 << 20, hash.as_str()),
        (DT_GNU_HASH, 4, 3, &hash),
        (DT_GNU_HASH, 8, 3, &hash),
        (DT_GNU_HASH, 8, 1 << 20, &hash),
        (DT_GNU_HASH, 24, 1 << 20, &hash),
        (
            DT_HASH,
            4,
            1 << 20,
            "its older hash table of symbols leaves its segment",
        ),
        (DT_HASH, 8, 3, &older),
        (DT_HASH, 20, 3, &older),
        (DT_VERNEED, 8, 1 << 20, "its versions leave their segment"),
        (DT_VERNEED, 12, 1 << 20, "its versions leave their segment"),
        (DT_VERNEED, 28, 1 << 20, "its versions leave their segment"),
        (DT_VERNEED, 4, 11, "its versions have a name out of bounds"),
        (DT_VERNEED, 24, 11, "its versions have a name out of bounds"),
    ] {
        let mut sample = sound();
        sample.set(tag, at, &u32::to_le_bytes(value));
        assert_refused(sample, why);
    }
    let mut names = sound();
    *names.value(DT_STRSZ) = 10;
    assert_refused(names, "its table of dynamic names does not end with a zero");
    let mut size = sound();
    *size.value(DT_RELAENT) = 23;
    assert_refused(size, "its size of a relocation is 23, not 24");
}
