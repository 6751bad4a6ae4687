//! Load commands, sections and symbols of a Mach-O dynamic library.

use super::format::{
    Checked, Format, MOST_EXPORTS, check_machine, damaged, foreign, name, need, only, range,
};
use crate::diagnostic::clean;
use object::{
    LittleEndian as LE,
    macho::{
        CPU_TYPE_ARM64, CPU_TYPE_X86_64, FAT_MAGIC, FAT_MAGIC_64, LC_REQ_DYLD, LcStr,
        MH_ALLOW_STACK_EXECUTION, MH_DYLIB, MH_MAGIC_64, MachHeader64, N_EXT, N_PEXT, Nlist64,
        S_INTERPOSING, SegmentCommand64,
    },
    read::macho::{
        FatArch as _, LoadCommandData, LoadCommandIterator, LoadCommandVariant, MachHeader as _,
        MachOFatFile32, MachOFatFile64, Nlist as _, Section as _, Segment as _,
    },
};

pub(super) static FORMAT: Format = Format {
    name: "Mach-O",
    section: "__DATA,__nxv_meta",
    is,
    check,
    exports,
};

const MACHINES: &[(&str, u32)] = &[("x86_64", CPU_TYPE_X86_64.0), ("aarch64", CPU_TYPE_ARM64.0)];

/// Libraries that every process with Rust's standard library has anyway, as their paths begin. They are the system's.
const EVERYWHERE: &[&str] = &[
    "/usr/lib/libSystem.",
    "/usr/lib/libiconv.",
    "/usr/lib/libresolv.",
];

/// What a load command makes dyld do.
type Command<'a> = LoadCommandData<'a, LE>;

/// First bytes of a thin file in either byte order and of a universal one, whose word Java's classes begin with too.
fn is(bytes: &[u8]) -> bool {
    let magic = bytes.first_chunk().map(|word| u32::from_be_bytes(*word));
    let thin = |magic: u32| [0xfeed_face, MH_MAGIC_64].contains(&magic);
    magic.is_some_and(|magic| thin(magic) || thin(magic.swap_bytes()) || is_universal(magic))
}

fn is_universal(magic: u32) -> bool {
    [FAT_MAGIC, FAT_MAGIC_64].contains(&magic)
}

fn check<'a>(bytes: &'a [u8], arch: &str) -> Result<Checked<'a>, String> {
    let header = header(bytes)?;
    check_machine(&FORMAT, MACHINES, header.cputype.get(LE).0, arch)?;
    if header.flags.get(LE).contains(MH_ALLOW_STACK_EXECUTION) {
        return Err("it asks for executable stacks in the whole process".to_owned());
    }
    let (mut found, mut needed, mut end) = (Vec::new(), Vec::new(), 0);
    let mut has_symbols = false;
    let mut commands = commands(bytes, header)?;
    while let Some(command) = commands.next().map_err(damaged("load commands"))? {
        let variant = command.variant().map_err(damaged("load commands"))?;
        let linked = |offset: u32, len: u32| {
            let content = range(bytes, offset.into(), len.into()).map(drop);
            content
                .map_err(|why| format!("what its load command {:#x} names {why}", command.cmd().0))
        };
        match variant {
            LoadCommandVariant::Segment64(segment, sections) => {
                end = check_segment(bytes, segment, end)?;
                found.extend(metadata(bytes, segment, sections)?);
            }
            LoadCommandVariant::Dylib(library) => {
                let path = text(&command, library.dylib.name)?;
                let is_everywhere =
                    !path.contains("/..") && EVERYWHERE.iter().any(|start| path.starts_with(start));
                need(&mut needed, path, is_everywhere)?;
            }
            LoadCommandVariant::Rpath(path) => {
                return foreign("LC_RPATH", &text(&command, path.path)?);
            }
            LoadCommandVariant::DyldEnvironment(setting) => {
                return foreign("LC_DYLD_ENVIRONMENT", &text(&command, setting.name)?);
            }
            LoadCommandVariant::Segment32(..) => {
                return Err("it has a segment for 32 bits".to_owned());
            }
            LoadCommandVariant::LinkeditData(data) => {
                linked(data.dataoff.get(LE), data.datasize.get(LE))?;
            }
            LoadCommandVariant::DyldInfo(info) => {
                for (offset, len) in [
                    (info.rebase_off, info.rebase_size),
                    (info.bind_off, info.bind_size),
                    (info.weak_bind_off, info.weak_bind_size),
                    (info.lazy_bind_off, info.lazy_bind_size),
                    (info.export_off, info.export_size),
                ] {
                    linked(offset.get(LE), len.get(LE))?;
                }
            }
            LoadCommandVariant::Symtab(_) if has_symbols => {
                return Err("it has two tables of symbols".to_owned());
            }
            LoadCommandVariant::Symtab(table) => {
                has_symbols = true;
                let entries = u64::from(table.nsyms.get(LE)) * size_of::<Nlist64<LE>>() as u64;
                range(bytes, table.symoff.get(LE).into(), entries)
                    .map_err(|why| format!("its table of symbols {why}"))?;
                linked(table.stroff.get(LE), table.strsize.get(LE))?;
            }
            // What dyld must understand may load code.
            LoadCommandVariant::Other if command.cmd().0 & LC_REQ_DYLD != 0 => {
                return Err(format!(
                    "it has load command {:#x}, which this host does not know",
                    command.cmd().0
                ));
            }
            _ => {}
        }
    }
    match end {
        0 => Err("it has nothing to load".to_owned()),
        _ => only(&FORMAT, &found).map(|meta| Checked { meta, needed }),
    }
}

fn header(bytes: &[u8]) -> Result<&MachHeader64<LE>, String> {
    let magic = bytes.first_chunk().map(|word| u32::from_be_bytes(*word));
    if magic.is_some_and(is_universal) {
        let parts = parts(bytes).join(", ");
        return Err(format!(
            "it is a universal file ({parts}); a pack is for one architecture, take that out with lipo -thin"
        ));
    }
    if magic != Some(MH_MAGIC_64.swap_bytes()) {
        return Err("it is not a 64-bit little-endian Mach-O file".to_owned());
    }
    let header = MachHeader64::<LE>::parse(bytes, 0).map_err(damaged("header"))?;
    match header.filetype.get(LE) {
        MH_DYLIB => Ok(header),
        _ => Err("it is not a dynamic library".to_owned()),
    }
}

/// Names of the first architectures of a universal file, for a message.
fn parts(bytes: &[u8]) -> Vec<String> {
    let narrow = MachOFatFile32::parse(bytes);
    let narrow = narrow.map(|file| file.arches().iter().map(|part| part.cputype()).collect());
    let wide = || {
        MachOFatFile64::parse(bytes)
            .map(|file| file.arches().iter().map(|part| part.cputype()).collect())
    };
    let types: Vec<_> = narrow.or_else(|_| wide()).unwrap_or_default();
    let name = |machine: u32| {
        let row = MACHINES.iter().find(|row| row.1 == machine);
        row.map_or_else(|| format!("machine {machine}"), |row| row.0.to_owned())
    };
    types
        .iter()
        .take(4)
        .map(|machine| name(machine.0))
        .collect()
}

fn commands<'a>(
    bytes: &'a [u8],
    header: &MachHeader64<LE>,
) -> Result<LoadCommandIterator<'a, LE>, String> {
    header
        .load_commands(LE, bytes, 0)
        .map_err(damaged("load commands"))
}

/// Answers with where the segment ends in memory.
fn check_segment(bytes: &[u8], segment: &SegmentCommand64<LE>, last: u64) -> Result<u64, String> {
    let segment_name = clean(&String::from_utf8_lossy(segment.name()), 16);
    let failed = |why: &str| format!("its segment {segment_name} {why}");
    let (offset, in_file) = segment.file_range(LE);
    range(bytes, offset, in_file).map_err(|why| failed(&why))?;
    let (address, in_memory) = (segment.vmaddr.get(LE), segment.vmsize.get(LE));
    if in_file > in_memory {
        return Err(failed("is larger in the file than in memory"));
    }
    if address < last {
        return Err(failed("lies over another one"));
    }
    address
        .checked_add(in_memory)
        .ok_or_else(|| failed("overflows"))
}

/// The contents of the sections with metadata.
fn metadata<'a>(
    bytes: &'a [u8],
    segment: &SegmentCommand64<LE>,
    sections: &'a [u8],
) -> Result<Vec<&'a [u8]>, String> {
    let mut found = Vec::new();
    for section in segment
        .sections(LE, sections)
        .map_err(damaged("sections"))?
    {
        if section.section_type(LE) == S_INTERPOSING {
            return Err("it replaces functions in the whole process".to_owned());
        }
        let Some((offset, len)) = section.file_range(LE, section.offset.get(LE).into()) else {
            continue;
        };
        let section_name = clean(&String::from_utf8_lossy(section.name()), 16);
        let content =
            range(bytes, offset, len).map_err(|why| format!("its section {section_name} {why}"))?;
        let names = FORMAT.section.split_once(',');
        if names.is_some_and(|(segment, name)| {
            section.segment_name() == segment.as_bytes() && section.name() == name.as_bytes()
        }) {
            found.push(content);
        }
    }
    Ok(found)
}

/// The text that a load command brings along.
fn text(command: &Command<'_>, place: LcStr<LE>) -> Result<String, String> {
    let at = place.offset.get(LE).into();
    name(command.raw_data(), at)
        .map_err(|why| format!("its load command {:#x}: {why}", command.cmd().0))
}

fn exports(bytes: &[u8]) -> Result<Vec<String>, String> {
    let mut commands = commands(bytes, header(bytes)?)?;
    let mut names = Vec::new();
    while let Some(command) = commands.next().map_err(damaged("load commands"))? {
        let Some(table) = command.symtab().map_err(damaged("symbols"))? else {
            continue;
        };
        let symbols = table.symbols::<MachHeader64<LE>, _>(LE, bytes);
        let symbols = symbols.map_err(damaged("symbols"))?;
        let texts = range(
            bytes,
            table.stroff.get(LE).into(),
            table.strsize.get(LE).into(),
        )?;
        let visible = symbols.iter().filter(|symbol| {
            let flags = symbol.n_type();
            symbol.is_definition() && flags.contains(N_EXT) && !flags.contains(N_PEXT)
        });
        for symbol in visible.take(MOST_EXPORTS) {
            let name = name(texts, symbol.n_strx.get(LE).into())?;
            // What C and Rust call `f` is `_f` in the file.
            names.push(name.strip_prefix('_').unwrap_or(&name).to_owned());
        }
    }
    Ok(names)
}
