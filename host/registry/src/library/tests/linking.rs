//! What the dynamic loader would follow out of an ELF file: each table, sound and then damaged in one place.

use super::super::{
    dynamic::Dynamic,
    relocations,
    samples::push,
    segments::{Segment, Segments},
};
use object::{I64, LittleEndian as LE, U16, U32, U64, elf::*, pod::bytes_of};

/// Code at 0 to 64, and behind it, at 4096 and what follows, all that is data.
const CODE: u64 = 64;
const DATA: u64 = 4096;

/// What a file has for the dynamic loader.
struct Sample {
    bytes: Vec<u8>,
    entries: Vec<(DynamicTag, u64)>,
    per_thread: Option<u64>,
}

impl Sample {
    /// Appends what an entry points to.
    fn put(&mut self, tag: DynamicTag, content: &[u8]) -> u64 {
        self.bytes.resize(self.bytes.len().next_multiple_of(8), 0);
        let address = DATA + self.bytes.len() as u64 - CODE;
        self.bytes.extend(content);
        self.entries.push((tag, address));
        address
    }

    fn value(&mut self, tag: DynamicTag) -> &mut u64 {
        let entry = self.entries.iter_mut().find(|entry| entry.0 == tag);
        &mut entry.unwrap().1
    }

    /// Changes what an entry points to.
    fn set(&mut self, tag: DynamicTag, at: usize, bytes: &[u8]) {
        let start = (*self.value(tag) - DATA + CODE) as usize + at;
        self.bytes[start..start + bytes.len()].copy_from_slice(bytes);
    }

    fn check(mut self) -> Result<(), String> {
        let start = self.bytes.len().next_multiple_of(8);
        self.bytes.resize(start, 0);
        let end = (DT_NULL, 0);
        for (tag, value) in self.entries.into_iter().chain([end]) {
            push(
                &mut self.bytes,
                &Dyn64::<LE> {
                    d_tag: I64::new(LE, tag),
                    d_val: U64::new(LE, value),
                },
            );
        }
        let len = self.bytes.len() as u64;
        let data = |file: std::ops::Range<u64>, is_writable| Segment {
            memory: file.start - CODE + DATA..file.end - CODE + DATA,
            file,
            is_writable,
            is_executable: false,
        };
        let code = Segment {
            file: 0..CODE,
            memory: 0..CODE,
            is_writable: false,
            is_executable: true,
        };
        let segments = Segments {
            loads: vec![code, data(CODE..len, true)],
            dynamics: vec![data(start as u64..len, true)],
            per_thread: self.per_thread,
        };
        relocations::check(&Dynamic::read(&self.bytes, &segments)?, EM_X86_64)
    }
}

fn relocation(at: u64, kind: RelocationType, symbol: u64, addend: i64) -> Rela64<LE> {
    Rela64 {
        r_offset: U64::new(LE, at),
        r_info: U64::new(LE, symbol << 32 | u64::from(kind.0)),
        r_addend: I64::new(LE, addend),
    }
}

fn symbol(section: SymbolSection, value: u64) -> Sym64<LE> {
    Sym64 {
        st_name: U32::new(LE, 1),
        st_info: SymbolInfo::new(STB_GLOBAL, STT_OBJECT),
        st_other: SymbolOther(0),
        st_shndx: U16::new(LE, section),
        st_value: U64::new(LE, value),
        st_size: U64::new(LE, 0),
    }
}

/// A file with a symbol of another library, one of its own, and a function that runs at the beginning.
fn sound() -> Sample {
    let mut sample = Sample {
        bytes: vec![0; CODE as usize],
        entries: vec![(DT_STRSZ, 11), (DT_INIT, 0), (DT_INIT_ARRAYSZ, 8)],
        per_thread: Some(32),
    };
    sample.put(DT_STRTAB, b"\0free\0LIBC\0");
    let symbols = [
        symbol(SHN_UNDEF, 0),
        symbol(SHN_UNDEF, 0),
        symbol(SymbolSection(1), DATA),
    ];
    sample.put(
        DT_SYMTAB,
        &symbols
            .iter()
            .flat_map(bytes_of)
            .copied()
            .collect::<Vec<_>>(),
    );
    sample.put(DT_VERSYM, &[0, 0, 2, 0, 1, 0]);
    // A library with one version, which has the index 2.
    let words = [0x1_0001u32, 6, 16, 0, 0, 2 << 16, 6, 0];
    sample.put(DT_VERNEED, &words.map(u32::to_le_bytes).concat());
    // One bucket, from symbol 2 on, one filter of 64 bits; the bucket; the only chain.
    sample.put(
        DT_GNU_HASH,
        &[1u32, 2, 1, 0, 0, 0, 2, 1].map(u32::to_le_bytes).concat(),
    );
    sample.put(
        DT_HASH,
        &[1u32, 3, 2, 0, 0, 0].map(u32::to_le_bytes).concat(),
    );
    let functions = sample.put(DT_INIT_ARRAY, &[0; 8]);
    let words = sample.put(DT_PLTGOT, &[0; 48]);
    let table = [
        relocation(functions, R_X86_64_RELATIVE, 0, 16),
        relocation(words, R_X86_64_RELATIVE, 0, DATA as i64),
        relocation(words + 8, R_X86_64_GLOB_DAT, 1, 0),
        relocation(words + 16, R_X86_64_64, 2, 8),
        relocation(words + 24, R_X86_64_DTPMOD64, 0, 0),
        relocation(words + 32, R_X86_64_TLSDESC, 0, 32),
    ];
    let len = size_of_val(&table) as u64;
    sample.put(
        DT_RELA,
        &table.iter().flat_map(bytes_of).copied().collect::<Vec<_>>(),
    );
    sample
        .entries
        .extend([(DT_RELASZ, len), (DT_RELACOUNT, 2), (DT_RELAENT, 24)]);
    sample
}

#[track_caller]
fn assert_refused(sample: Sample, expected: &str) {
    assert_eq!(sample.check().unwrap_err(), expected);
}

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
    packed.entries.push((DT_RELRSZ, 8));
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
        sample.entries.push((DT_RELRSZ, bytes.len() as u64));
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
