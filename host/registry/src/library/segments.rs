//! The program headers of an ELF file: what is mapped from where in the file, and what may be done with it there.

use super::format::{range, table};
use object::{
    LittleEndian as LE,
    elf::{
        FileHeader64, PF_R, PF_W, PF_X, PT_DYNAMIC, PT_GNU_EH_FRAME, PT_GNU_PROPERTY, PT_GNU_RELRO,
        PT_GNU_STACK, PT_LOAD, PT_NOTE, PT_PHDR, PT_TLS, ProgramHeader64,
    },
};
use std::ops::Range;

/// The smallest page that any host maps.
const PAGE: u64 = 4096;

/// Program headers that one file may have. Linkers make about ten.
const MOST_HEADERS: usize = 64;

/// Bytes of variables that each thread gets its own of: every thread of the process pays for them.
const MOST_PER_THREAD: u64 = 16 << 20;

/// A program header that the dynamic loader follows.
#[derive(Debug)]
pub(super) struct Segment {
    /// Where it is in the file, and lies in it.
    pub(super) file: Range<u64>,
    /// Where it is in memory.
    pub(super) memory: Range<u64>,
    pub(super) is_readable: bool,
    /// And readable.
    pub(super) is_writable: bool,
    pub(super) is_executable: bool,
}

/// What is mapped, and where the dynamic loader reads what else it has to do.
#[derive(Debug, Default)]
pub(super) struct Segments {
    /// In the order of their addresses, which do not overlap.
    pub(super) loads: Vec<Segment>,
    pub(super) dynamics: Vec<Segment>,
    /// Size of the variables that each thread has its own of.
    pub(super) per_thread: Option<u64>,
}

impl Segments {
    pub(super) fn read(bytes: &[u8], header: &FileHeader64<LE>) -> Result<Segments, String> {
        let headers: &[ProgramHeader64<LE>] = table(
            bytes,
            "program headers",
            header.e_phoff.get(LE),
            header.e_phnum.get(LE),
            header.e_phentsize.get(LE),
        )?;
        if headers.len() > MOST_HEADERS {
            return Err(format!("it has more than {MOST_HEADERS} program headers"));
        }
        let (mut segments, mut others, mut stack) = (Segments::default(), Vec::new(), None);
        for (index, header) in headers.iter().enumerate() {
            let named = |why: String| format!("its segment {index} {why}");
            let segment = segment(bytes, header).map_err(named)?;
            match header.p_type.get(LE) {
                PT_LOAD => {
                    check_load(segments.loads.last(), &segment).map_err(|why| named(why.into()))?;
                    segments.loads.push(segment);
                }
                PT_DYNAMIC => segments.dynamics.push(segment),
                PT_GNU_STACK => stack = Some(header.p_flags.get(LE)),
                _ => others.push((index, header, segment)),
            }
        }
        // Without a word about stacks the dynamic loader makes them executable.
        if stack.is_none_or(|flags| flags.contains(PF_X)) {
            return Err("it asks for executable stacks in the whole process".to_owned());
        }
        if segments.loads.is_empty() {
            return Err("it has nothing to load".to_owned());
        }
        for (index, header, segment) in others {
            if !segments.agrees(header, &segment) {
                return Err(format!("its segment {index} is not in what it maps"));
            }
            if header.p_type.get(LE) == PT_TLS {
                segments.per_thread = Some(header.p_memsz.get(LE));
            }
        }
        Ok(segments)
    }

    /// Whether another header names bytes that are mapped. The dynamic loader and the unwinder follow its address.
    fn agrees(&self, header: &ProgramHeader64<LE>, segment: &Segment) -> bool {
        let Segment { file, memory, .. } = segment;
        let len = file.end - file.start;
        let is_there = || self.in_file(memory.start, len) == Some(file.start);
        match header.p_type.get(LE) {
            PT_PHDR | PT_NOTE | PT_GNU_PROPERTY | PT_GNU_EH_FRAME => {
                is_there() && memory.end - memory.start <= len
            }
            // Whole pages become read-only, which neither code nor what is written later may be.
            PT_GNU_RELRO => self.at(memory.start).is_some_and(|load| {
                let fits = memory.end.div_ceil(PAGE) <= load.memory.end.div_ceil(PAGE);
                fits && load.is_writable && !load.is_executable
            }),
            PT_TLS => {
                let align = header.p_align.get(LE);
                (len == 0 || is_there())
                    && (len..=MOST_PER_THREAD).contains(&(memory.end - memory.start))
                    && (align == 0 || align.is_power_of_two() && align <= PAGE)
            }
            _ => true,
        }
    }

    /// Where `len` bytes at `address` come from, if it is one place and they can be read.
    pub(super) fn in_file(&self, address: u64, len: u64) -> Option<u64> {
        let load = self.at(address).filter(|load| load.is_readable)?;
        let at = load.file.start.checked_add(address - load.memory.start)?;
        (at.checked_add(len)? <= load.file.end).then_some(at)
    }

    /// The bytes from `address` on to the end of those that the file has for its segment.
    pub(super) fn from<'a>(&self, bytes: &'a [u8], address: u64) -> Option<&'a [u8]> {
        let start = self.in_file(address, 0)?;
        range(bytes, start, self.at(address)?.file.end - start).ok()
    }

    /// Whether all of it lies in one segment that may be written to, and nothing of it in the dynamic section.
    pub(super) fn is_writable(&self, address: u64, len: u64) -> bool {
        let Some(end) = address.checked_add(len) else {
            return false;
        };
        let load = self.at(address).filter(|load| load.is_writable);
        let mut sections = self.dynamics.iter().map(|section| &section.memory);
        load.is_some_and(|load| end <= load.memory.end)
            && sections.all(|section| end <= section.start || section.end <= address)
    }

    /// Whether something is mapped there, or ends there.
    pub(super) fn is_mapped(&self, address: u64) -> bool {
        self.at(address).is_some()
    }

    /// Whether code can be there.
    pub(super) fn is_code(&self, address: u64) -> bool {
        let load = self.at(address);
        load.is_some_and(|load| load.is_executable && address < load.memory.end)
    }

    /// The segment in which the address is, or is the end.
    fn at(&self, address: u64) -> Option<&Segment> {
        let after = self
            .loads
            .partition_point(|load| load.memory.start <= address);
        let load = self.loads.get(after.checked_sub(1)?)?;
        (address <= load.memory.end).then_some(load)
    }
}

fn segment(bytes: &[u8], header: &ProgramHeader64<LE>) -> Result<Segment, String> {
    let (offset, in_file) = (header.p_offset.get(LE), header.p_filesz.get(LE));
    let (address, in_memory) = (header.p_vaddr.get(LE), header.p_memsz.get(LE));
    let (is_load, align) = (header.p_type.get(LE) == PT_LOAD, header.p_align.get(LE));
    if is_load && align == 0 && in_memory > 0 {
        return Err("has no alignment".to_owned());
    }
    match is_load && in_file == 0 {
        false => drop(range(bytes, offset, in_file)?),
        // Zeros alone: of the file there is only the page in which they begin, unless they begin with one.
        true if align.is_multiple_of(PAGE) && address.is_multiple_of(align) => {}
        true => drop(range(bytes, offset - offset % PAGE, 1)?),
    }
    let flags = header.p_flags.get(LE);
    Ok(Segment {
        file: offset..offset + in_file,
        memory: address..address.checked_add(in_memory).ok_or("overflows")?,
        is_readable: flags.contains(PF_R),
        is_writable: flags.contains(PF_R | PF_W),
        is_executable: flags.contains(PF_X),
    })
}

/// Whole pages are mapped, so a segment must not bring other bytes of the file to a page of the one before it:
/// what is read here would not be what the dynamic loader reads.
fn check_load(before: Option<&Segment>, segment: &Segment) -> Result<(), &'static str> {
    let (file, memory) = (&segment.file, &segment.memory);
    if file.end - file.start > memory.end - memory.start {
        return Err("is larger in the file than in memory");
    }
    let distance = |segment: &Segment| segment.memory.start.wrapping_sub(segment.file.start);
    if distance(segment) % PAGE != 0 && !segment.file.is_empty() {
        return Err("is not where pages of the file can be mapped");
    }
    let Some(before) = before else {
        return Ok(());
    };
    let shares_page = segment.memory.start / PAGE < before.memory.end.div_ceil(PAGE);
    match segment.memory.start < before.memory.end
        || shares_page && distance(segment) != distance(before)
    {
        true => Err("lies over another one"),
        false => Ok(()),
    }
}
