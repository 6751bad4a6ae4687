//! What the dynamic loader reads of an ELF file, sound and ready to be damaged.

use super::super::{
    dynamic::Dynamic,
    relocations,
    samples::push,
    segments::{Segment, Segments},
};
use object::{I64, LittleEndian as LE, U16, U32, U64, elf::*, pod::bytes_of};

/// Code at 0 to 64, and behind it, at 4096 and what follows, all that is data.
pub(super) const CODE: u64 = 64;
pub(super) const DATA: u64 = 4096;

/// What a file has for the dynamic loader.
pub(super) struct Sample {
    bytes: Vec<u8>,
    pub(super) entries: Vec<(DynamicTag, u64)>,
    pub(super) per_thread: Option<u64>,
}

impl Sample {
    /// Appends what an entry points to.
    pub(super) fn put(&mut self, tag: DynamicTag, content: &[u8]) -> u64 {
        self.bytes.resize(self.bytes.len().next_multiple_of(8), 0);
        let address = DATA + self.bytes.len() as u64 - CODE;
        self.bytes.extend(content);
        self.entries.push((tag, address));
        address
    }

    pub(super) fn value(&mut self, tag: DynamicTag) -> &mut u64 {
        let entry = self.entries.iter_mut().find(|entry| entry.0 == tag);
        &mut entry.unwrap().1
    }

    /// Changes what an entry points to.
    pub(super) fn set(&mut self, tag: DynamicTag, at: usize, bytes: &[u8]) {
        let start = (*self.value(tag) - DATA + CODE) as usize + at;
        self.bytes[start..start + bytes.len()].copy_from_slice(bytes);
    }

    pub(super) fn remove(&mut self, tag: DynamicTag) {
        self.entries.retain(|entry| entry.0 != tag);
    }

    /// Where the dynamic section will be, if nothing is put before it.
    pub(super) fn dynamic(&self) -> u64 {
        DATA + self.bytes.len().next_multiple_of(8) as u64 - CODE
    }

    pub(super) fn check(mut self) -> Result<(), String> {
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
            is_readable: true,
            is_writable,
            is_executable: false,
        };
        let code = Segment {
            file: 0..CODE,
            memory: 0..CODE,
            is_readable: true,
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

pub(super) fn relocation(at: u64, kind: RelocationType, symbol: u64, addend: i64) -> Rela64<LE> {
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
pub(super) fn sound() -> Sample {
    let mut sample = Sample {
        bytes: vec![0; CODE as usize],
        entries: vec![
            (DT_STRSZ, 11),
            (DT_NEEDED, 6),
            (DT_INIT, 0),
            (DT_INIT_ARRAYSZ, 8),
        ],
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
pub(super) fn assert_refused(sample: Sample, expected: &str) {
    assert_eq!(sample.check().unwrap_err(), expected);
}
