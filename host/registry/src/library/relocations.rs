//! The relocations of an ELF file: what the dynamic loader writes into it, and the functions that it then calls.
//!
//! What leads out of the file would hit whatever lies there in this process, which need not be what lay there in the
//! probe. A wrong place within the file passes: only a hash of all of it tells.

use super::{
    dynamic::Dynamic,
    symbols::{Place, Symbols},
};
use object::{LittleEndian as LE, U64, elf::*};
use std::ops::Range;

const WORD: u64 = 8;

/// How far into a thing of another library a pointer may lead.
const MOST_INTO_FOREIGN: i64 = 4096;

/// What a relocation writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Nothing,
    /// An address in this file.
    Relative,
    /// What a function of this file answers.
    Indirect,
    /// The address of a symbol.
    Symbol,
    /// The same, where the addend may say what code uses it: GNU ld -z mark-plt keeps that there.
    Slot,
    /// The number of the module that has the variables of each thread.
    Module,
    /// Where a variable is in those.
    Offset,
    /// A function and its argument, which find such a variable.
    Descriptor,
}

/// The types that shared objects of each machine have.
const KINDS: &[(Machine, &[(RelocationType, Kind)])] = &[
    (
        EM_X86_64,
        &[
            (R_X86_64_NONE, Kind::Nothing),
            (R_X86_64_RELATIVE, Kind::Relative),
            (R_X86_64_IRELATIVE, Kind::Indirect),
            (R_X86_64_64, Kind::Symbol),
            (R_X86_64_GLOB_DAT, Kind::Slot),
            (R_X86_64_JUMP_SLOT, Kind::Slot),
            (R_X86_64_DTPMOD64, Kind::Module),
            (R_X86_64_DTPOFF64, Kind::Offset),
            (R_X86_64_TPOFF64, Kind::Offset),
            (R_X86_64_TLSDESC, Kind::Descriptor),
        ],
    ),
    (
        EM_AARCH64,
        &[
            (R_AARCH64_NONE, Kind::Nothing),
            (R_AARCH64_RELATIVE, Kind::Relative),
            (R_AARCH64_IRELATIVE, Kind::Indirect),
            (R_AARCH64_ABS64, Kind::Symbol),
            (R_AARCH64_GLOB_DAT, Kind::Symbol),
            (R_AARCH64_JUMP_SLOT, Kind::Symbol),
            (R_AARCH64_TLS_DTPMOD, Kind::Module),
            (R_AARCH64_TLS_DTPREL, Kind::Offset),
            (R_AARCH64_TLS_TPREL, Kind::Offset),
            (R_AARCH64_TLSDESC, Kind::Descriptor),
        ],
    ),
    (
        EM_RISCV,
        &[
            (R_RISCV_NONE, Kind::Nothing),
            (R_RISCV_RELATIVE, Kind::Relative),
            (R_RISCV_IRELATIVE, Kind::Indirect),
            (R_RISCV_64, Kind::Symbol),
            (R_RISCV_JUMP_SLOT, Kind::Symbol),
            (R_RISCV_TLS_DTPMOD64, Kind::Module),
            (R_RISCV_TLS_DTPREL64, Kind::Offset),
            (R_RISCV_TLS_TPREL64, Kind::Offset),
            (R_RISCV_TLSDESC, Kind::Descriptor),
        ],
    ),
    (
        EM_PPC64,
        &[
            (R_PPC64_NONE, Kind::Nothing),
            (R_PPC64_RELATIVE, Kind::Relative),
            (R_PPC64_IRELATIVE, Kind::Indirect),
            (R_PPC64_ADDR64, Kind::Symbol),
            (R_PPC64_GLOB_DAT, Kind::Symbol),
            (R_PPC64_JMP_SLOT, Kind::Symbol),
            (R_PPC64_DTPMOD64, Kind::Module),
            (R_PPC64_DTPREL64, Kind::Offset),
            (R_PPC64_TPREL64, Kind::Offset),
        ],
    ),
    (
        EM_LOONGARCH,
        &[
            (R_LARCH_NONE, Kind::Nothing),
            (R_LARCH_RELATIVE, Kind::Relative),
            (R_LARCH_IRELATIVE, Kind::Indirect),
            (R_LARCH_64, Kind::Symbol),
            (R_LARCH_JUMP_SLOT, Kind::Symbol),
            (R_LARCH_TLS_DTPMOD64, Kind::Module),
            (R_LARCH_TLS_DTPREL64, Kind::Offset),
            (R_LARCH_TLS_TPREL64, Kind::Offset),
            (R_LARCH_TLS_DESC64, Kind::Descriptor),
        ],
    ),
];

/// Checks that every relocation writes a word of what is mapped to be written, each another one, that what it writes leads
/// to what is mapped, and that the functions which are called at the beginning and the end are code.
pub(super) fn check(dynamic: &Dynamic<'_>, machine: Machine) -> Result<(), String> {
    let kinds = KINDS.iter().find(|row| row.0 == machine);
    let mut checked = Relocations {
        dynamic,
        symbols: Symbols::read(dynamic)?,
        kinds: kinds.map_or(&[], |row| row.1),
        functions: functions(dynamic)?,
        written: Vec::new(),
    };
    if dynamic.value(DT_REL).is_some() {
        return Err("it has relocations without addends".to_owned());
    }
    let entry = size_of::<Rela64<LE>>() as u64;
    dynamic.expect(DT_RELAENT, "size of a relocation", entry)?;
    dynamic.expect(DT_RELRENT, "size of a packed relocation", WORD)?;
    dynamic.expect(
        DT_PLTREL,
        "type of the relocations of calls",
        DT_RELA.0 as u64,
    )?;
    let all = extent(dynamic, DT_RELA, DT_RELASZ);
    checked.table(&all, dynamic.value(DT_RELACOUNT).unwrap_or(0))?;
    let calls = extent(dynamic, DT_JMPREL, DT_PLTRELSZ);
    // Some linkers count them among the others.
    if calls.start < all.start || all.end < calls.end {
        checked.table(&calls, 0)?;
    }
    checked.packed(&extent(dynamic, DT_RELR, DT_RELRSZ))?;
    checked.all_written()
}

/// Where a table is; empty where there is none.
fn extent(dynamic: &Dynamic<'_>, at: DynamicTag, len: DynamicTag) -> Range<u64> {
    match (dynamic.value(at), dynamic.value(len)) {
        (Some(at), Some(len)) => at..at.saturating_add(len),
        _ => 0..0,
    }
}

/// The tables of functions that the dynamic loader calls.
fn functions(dynamic: &Dynamic<'_>) -> Result<Vec<Range<u64>>, String> {
    let tables = [
        (DT_INIT_ARRAY, DT_INIT_ARRAYSZ),
        (DT_FINI_ARRAY, DT_FINI_ARRAYSZ),
        (DT_PREINIT_ARRAY, DT_PREINIT_ARRAYSZ),
    ];
    let tables = tables.map(|(at, len)| extent(dynamic, at, len));
    let tables: Vec<_> = tables
        .into_iter()
        .filter(|table| !table.is_empty())
        .collect();
    for table in &tables {
        let count = (table.end - table.start) / WORD;
        dynamic.table::<U64<LE>>("table of functions to call", table.start, count)?;
    }
    Ok(tables)
}

#[derive(Debug)]
struct Relocations<'a> {
    dynamic: &'a Dynamic<'a>,
    symbols: Symbols<'a>,
    kinds: &'a [(RelocationType, Kind)],
    functions: Vec<Range<u64>>,
    /// Words that are written, but of packed relocations only those among `functions`: those could be many more than
    /// their table has bytes.
    written: Vec<u64>,
}

impl Relocations<'_> {
    /// A table of relocations of which the first ones are said to be relative.
    fn table(&mut self, place: &Range<u64>, relative: u64) -> Result<(), String> {
        let (len, each) = (place.end - place.start, size_of::<Rela64<LE>>() as u64);
        // The dynamic loader goes on while another one begins within the table.
        if !len.is_multiple_of(each) {
            return Err(format!("its relocations of {len} bytes are no whole ones"));
        }
        let count = len / each;
        if count == 0 {
            return Ok(());
        }
        let table = self
            .dynamic
            .table::<Rela64<LE>>("table of relocations", place.start, count)?;
        for (entry, index) in table.iter().zip(0..) {
            let kind = RelocationType(entry.r_info.get(LE) as u32);
            let kind = self.kinds.iter().find(|row| row.0 == kind).map(|row| row.1);
            let result = match kind {
                None => Err("has a type that no library has".to_owned()),
                Some(Kind::Relative) => self.entry(entry, Kind::Relative),
                Some(_) if index < relative => Err("is not relative".to_owned()),
                Some(kind) => self.entry(entry, kind),
            };
            result.map_err(|why| format!("its relocation {index} {why}"))?;
        }
        Ok(())
    }

    fn entry(&mut self, entry: &Rela64<LE>, kind: Kind) -> Result<(), String> {
        let (at, addend) = (entry.r_offset.get(LE), entry.r_addend.get(LE));
        let symbol = (entry.r_info.get(LE) >> 32) as u32;
        let words = match kind {
            Kind::Nothing => return Ok(()),
            Kind::Descriptor => 2,
            _ => 1,
        };
        if !self.dynamic.segments.is_writable(at, words * WORD) {
            return Err("writes outside of what it maps to be written".to_owned());
        }
        self.written.extend((0..words).map(|word| at + word * WORD));
        let place = match kind {
            Kind::Nothing | Kind::Relative | Kind::Indirect => Place::Own(0),
            Kind::Module | Kind::Offset | Kind::Descriptor if symbol == 0 => Place::PerThread(0),
            Kind::Symbol | Kind::Slot if symbol == 0 => Place::Absolute,
            _ => {
                let place = self.symbols.place(symbol);
                place.map_err(|why| format!("names a symbol that is damaged: {why}"))?
            }
        };
        let addend = match kind {
            Kind::Slot if self.dynamic.segments.is_code(addend as u64) => 0,
            _ => addend,
        };
        let len = self.dynamic.segments.per_thread;
        let is_sound = match place {
            Place::Own(start) => {
                let value = start.wrapping_add_signed(addend);
                self.is_target(at, value)
                    // Not every dynamic loader adds the addend.
                    && (kind != Kind::Slot || self.is_target(at, start))
                    && (kind != Kind::Indirect || self.dynamic.segments.is_code(value))
            }
            Place::PerThread(value) => {
                let value = value.checked_add_signed(addend);
                len.is_some_and(|len| value.is_some_and(|value| value <= len))
            }
            Place::Foreign => (0..MOST_INTO_FOREIGN).contains(&addend),
            Place::Absolute => addend == 0,
        };
        match is_sound {
            true => Ok(()),
            false => Err("leads out of what it maps".to_owned()),
        }
    }

    /// A table of addresses and of bits for the words that follow them. The words hold what they lead to.
    fn packed(&mut self, place: &Range<u64>) -> Result<(), String> {
        let len = place.end - place.start;
        if !len.is_multiple_of(WORD) {
            return Err(format!(
                "its packed relocations of {len} bytes are no whole ones"
            ));
        }
        let count = len / WORD;
        if count == 0 {
            return Ok(());
        }
        let table =
            self.dynamic
                .table::<U64<LE>>("table of packed relocations", place.start, count)?;
        let mut next = None;
        for word in table.iter().map(|word| word.get(LE)) {
            let place = match (word & 1, next) {
                (0, None) => Some((word, 1, 1)),
                (0, Some(next)) => (next <= word).then_some((word, 1, 1)),
                (_, next) => next.map(|next| (next, word >> 1, 63)),
            };
            let place = place.and_then(|(start, bits, step): (u64, u64, u64)| {
                Some((start, bits, start.checked_add(step * WORD)?))
            });
            let (start, bits, end) = place.ok_or("its packed relocations do not ascend")?;
            for index in (0..63).filter(|index| bits >> index & 1 == 1) {
                self.word(start + index * WORD)?;
            }
            next = Some(end);
        }
        Ok(())
    }

    fn word(&mut self, at: u64) -> Result<(), String> {
        let segments = self.dynamic.segments;
        if !segments.is_writable(at, WORD) {
            return Err(format!(
                "its packed relocation of {at:#x} writes outside of what it maps to be written"
            ));
        }
        // Words need not be aligned, and beyond the bytes of the file there are zeros.
        let mut value = [0; WORD as usize];
        let rest = self.dynamic.rest("packed relocation", at).unwrap_or(&[]);
        let len = rest.len().min(value.len());
        value[..len].copy_from_slice(&rest[..len]);
        let value = u64::from_le_bytes(value);
        if !self.is_target(at, value) {
            return Err(format!(
                "its packed relocation of {at:#x} leads out of what it maps"
            ));
        }
        if self.is_function(at) {
            self.written.push(at);
        }
        Ok(())
    }

    fn is_function(&self, at: u64) -> bool {
        self.functions.iter().any(|table| table.contains(&at))
    }

    /// Whether a pointer that is written at `at` may lead to `value`.
    fn is_target(&self, at: u64, value: u64) -> bool {
        match self.is_function(at) {
            true => self.dynamic.segments.is_code(value),
            false => self.dynamic.segments.is_mapped(value),
        }
    }

    /// Checks that no word is written twice, and every pointer to a function that is called.
    fn all_written(mut self) -> Result<(), String> {
        self.written.sort_unstable();
        let mut pairs = self.written.windows(2);
        if let Some(pair) = pairs.find(|pair| pair[1] - pair[0] < WORD) {
            return Err(format!("two of its relocations write at {:#x}", pair[1]));
        }
        let mut slots = self.functions.iter().flat_map(|table| {
            let whole = table.end - (table.end - table.start) % WORD;
            (table.start..whole).step_by(WORD as usize)
        });
        match slots.find(|slot| self.written.binary_search(slot).is_err()) {
            Some(slot) => Err(format!("its function to call at {slot:#x} is no address")),
            None => Ok(()),
        }
    }
}
