//! What the tables of an ELF file must have, so that no dynamic loader reads or walks further than they reach.

use super::sample::{CODE, DATA, assert_refused, relocation, sound};
use object::{elf::*, pod::bytes_of};

#[test]
fn the_addend_of_a_slot_may_be_code_that_uses_it() {
    let leads = "its relocation 2 leads out of what it maps";
    for kind in [R_X86_64_GLOB_DAT, R_X86_64_JUMP_SLOT] {
        for (symbol, addend, is_sound) in [
            (1, 16, true),
            (2, 16, true),
            (1, CODE as i64, true),
            (1, DATA as i64, false),
            (1, 1 << 40, false),
            (1, -8, false),
        ] {
            let mut sample = sound();
            let words = *sample.value(DT_PLTGOT);
            let slot = relocation(words + 8, kind, symbol, addend);
            sample.set(DT_RELA, 2 * 24, bytes_of(&slot));
            match is_sound {
                true => assert_eq!(sample.check(), Ok(())),
                false => assert_refused(sample, leads),
            }
        }
    }
    // A function to call is the symbol, whatever the addend.
    for addend in [16, 16 - DATA as i64] {
        let mut sample = sound();
        let functions = *sample.value(DT_INIT_ARRAY);
        let slot = relocation(functions, R_X86_64_GLOB_DAT, 2, addend);
        sample.set(DT_RELA, 0, bytes_of(&slot));
        *sample.value(DT_RELACOUNT) = 0;
        assert_refused(sample, "its relocation 0 leads out of what it maps");
    }
}

#[test]
fn entries_that_belong_together_come_together() {
    for (group, names) in [
        (
            &[DT_STRTAB, DT_STRSZ, DT_SYMTAB][..],
            &["STRTAB", "STRSZ", "SYMTAB"][..],
        ),
        (
            &[DT_RELA, DT_RELASZ, DT_RELAENT],
            &["RELA", "RELASZ", "RELAENT"],
        ),
        (
            &[DT_JMPREL, DT_PLTRELSZ, DT_PLTREL],
            &["JMPREL", "PLTRELSZ", "PLTREL"],
        ),
        (
            &[DT_RELR, DT_RELRSZ, DT_RELRENT],
            &["RELR", "RELRSZ", "RELRENT"],
        ),
        (
            &[DT_INIT_ARRAY, DT_INIT_ARRAYSZ],
            &["INIT_ARRAY", "INIT_ARRAYSZ"],
        ),
        (
            &[DT_FINI_ARRAY, DT_FINI_ARRAYSZ],
            &["FINI_ARRAY", "FINI_ARRAYSZ"],
        ),
        (
            &[DT_PREINIT_ARRAY, DT_PREINIT_ARRAYSZ],
            &["PREINIT_ARRAY", "PREINIT_ARRAYSZ"],
        ),
    ] {
        for (lacks, name) in group.iter().zip(names) {
            let mut sample = sound();
            for &tag in group {
                sample.remove(tag);
                if tag != *lacks {
                    sample.entries.push((tag, 0));
                }
            }
            let has = names.iter().find(|other| *other != name).unwrap();
            assert_refused(sample, &format!("it has {has}, but no {name}"));
        }
    }
    let mut versions = sound();
    versions.remove(DT_VERSYM);
    assert_refused(versions, "it has versions, but no VERSYM");
    let mut names = sound();
    for tag in [DT_STRTAB, DT_STRSZ, DT_SYMTAB] {
        names.remove(tag);
    }
    assert_refused(names, "it has no table of dynamic names");
}

#[test]
fn an_entry_that_comes_twice_is_refused() {
    for (tag, name) in [
        (DT_SONAME, "0xe"),
        (DT_RELA, "0x7"),
        (DynamicTag(99), "0x63"),
    ] {
        let mut sample = sound();
        sample.entries.extend([(tag, 1); 2]);
        let expected = format!("it has two entries {name} in its dynamic section");
        assert_refused(sample, &expected);
    }
    let mut sample = sound();
    sample.entries.extend([(DT_NEEDED, 1); 2]);
    assert_eq!(sample.check(), Ok(()));
    let mut many = sound();
    many.entries.extend([(DT_NEEDED, 1); 4096]);
    assert_refused(many, "it has more than 4096 entries in its dynamic section");
}

#[test]
fn packed_relocations_ascend() {
    let with = |table: fn(u64) -> Vec<u64>| {
        let mut sample = sound();
        let words = [DATA; 80].map(u64::to_le_bytes).concat();
        let words = sample.put(DT_RELR, &words);
        sample.entries.pop();
        let table = table(words);
        let bytes: Vec<u8> = table.iter().flat_map(|entry| entry.to_le_bytes()).collect();
        sample.put(DT_RELR, &bytes);
        let len = bytes.len() as u64;
        sample.entries.extend([(DT_RELRSZ, len), (DT_RELRENT, 8)]);
        sample
    };
    for table in [
        (|at| vec![at, 0b101, at + 64 * 8]) as fn(u64) -> Vec<u64>,
        |at| vec![at, at + 8, 1, at + 72 * 8],
    ] {
        assert_eq!(with(table).check(), Ok(()));
    }
    let refused = "its packed relocations do not ascend";
    for table in [
        (|_| vec![1]) as fn(u64) -> Vec<u64>,
        |_| vec![3],
        |at| vec![at, at],
        |at| vec![at + 8, at],
        |at| vec![at, 0b101, at + 63 * 8],
        |at| [vec![at], vec![1; 8], vec![at + 8]].concat(),
    ] {
        assert_refused(with(table), refused);
    }
    assert_refused(with(|_| vec![u64::MAX - 1]), refused);
    let mut part = with(|at| vec![at]);
    *part.value(DT_RELRSZ) = 7;
    assert_refused(part, "its packed relocations of 7 bytes are no whole ones");
}

#[test]
fn versions_are_of_a_library_that_is_needed() {
    let refused = "its versions are of a library that it does not need";
    let mut other = sound();
    *other.value(DT_NEEDED) = 1;
    assert_refused(other, refused);
    let mut none = sound();
    none.remove(DT_NEEDED);
    assert_refused(none, refused);
    let mut part = sound();
    part.set(DT_VERNEED, 4, &7u32.to_le_bytes());
    assert_refused(part, refused);
    let mut form = sound();
    form.set(DT_VERNEED, 0, &2u16.to_le_bytes());
    assert_refused(form, "its versions have form 2, not 1");

    // A version of its own: form, flags, index, names, hash, where the name is, the next one; the name, the next one.
    let own = |form: u32| {
        let mut sample = sound();
        let words = [form, 0x1_0002, 0, 20, 0, 6, 0];
        sample.put(DT_VERDEF, &words.map(u32::to_le_bytes).concat());
        sample
    };
    assert_eq!(own(1).check(), Ok(()));
    assert_refused(own(2), "its versions have form 2, not 1");
}

#[test]
fn walks_through_hash_tables_end() {
    let damaged = |what: &str| format!("its {what} of symbols is damaged");
    let (hash, older) = (damaged("hash table"), damaged("older hash table"));
    for (tag, at, value, why) in [
        (DT_GNU_HASH, 0, 0, &hash),
        (DT_HASH, 0, 0, &older),
        // The chain of symbol 2 leads to itself, to what the bucket leads to, to one that leads back.
        (DT_HASH, 20, 2, &older),
        (DT_HASH, 16, 2, &older),
    ] {
        let mut sample = sound();
        sample.set(tag, at, &u32::to_le_bytes(value));
        assert_refused(sample, why);
    }
    let mut circle = sound();
    circle.set(DT_HASH, 16, &[2u32, 1].map(u32::to_le_bytes).concat());
    assert_refused(circle, &older);
    let mut chain = sound();
    chain.set(DT_HASH, 20, &1u32.to_le_bytes());
    assert_eq!(chain.check(), Ok(()));
    for (removed, is_sound) in [
        (&[DT_HASH][..], true),
        (&[DT_GNU_HASH], true),
        (&[DT_HASH, DT_GNU_HASH], false),
    ] {
        let mut sample = sound();
        removed.iter().for_each(|tag| sample.remove(*tag));
        match is_sound {
            true => assert_eq!(sample.check(), Ok(())),
            false => assert_refused(sample, "it has no hash table of symbols"),
        }
    }
}

#[test]
fn a_symbol_that_the_dynamic_loader_calls_is_code() {
    let info = SymbolInfo::new(STB_GLOBAL, STT_GNU_IFUNC).0;
    let with = |section: u16, value: u64| {
        let mut sample = sound();
        sample.set(DT_SYMTAB, 48 + 4, &[info]);
        sample.set(DT_SYMTAB, 48 + 6, &section.to_le_bytes());
        sample.set(DT_SYMTAB, 48 + 8, &value.to_le_bytes());
        sample
    };
    assert_eq!(with(1, 16).check(), Ok(()));
    assert_eq!(with(SHN_UNDEF.0, DATA).check(), Ok(()));
    for (section, value) in [(1, DATA), (1, CODE), (SHN_ABS.0, 16)] {
        assert_refused(with(section, value), "its symbol 2 is nowhere");
    }
}

#[test]
fn no_relocation_writes_into_the_dynamic_section() {
    let why = "writes outside of what it maps to be written";
    for into in [0, 4, 8] {
        let mut sample = sound();
        let at = sample.dynamic() + into;
        sample.set(DT_RELA, 24, &at.to_le_bytes());
        assert_refused(sample, &format!("its relocation 1 {why}"));
    }
    let mut packed = sound();
    let table = packed.put(DT_RELR, &[0; 8]);
    packed.entries.extend([(DT_RELRSZ, 8), (DT_RELRENT, 8)]);
    assert_eq!(packed.dynamic(), table + 8);
    packed.set(DT_RELR, 0, &(table + 8).to_le_bytes());
    let expected = format!("its packed relocation of {:#x} {why}", table + 8);
    assert_refused(packed, &expected);
}
