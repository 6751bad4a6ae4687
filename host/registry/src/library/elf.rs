//! Header, sections and exports of an ELF shared object.

use super::{
    dynamic::Dynamic,
    format::{Checked, Format, MOST_EXPORTS, check_machine, damaged, name, only, range, table},
    relocations,
    segments::Segments,
};
use object::{
    LittleEndian as LE,
    elf::{
        EM_AARCH64, EM_LOONGARCH, EM_PPC64, EM_RISCV, EM_X86_64, ET_DYN, FileHeader64, SHT_DYNSYM,
        SHT_NOBITS, STB_GLOBAL, STB_WEAK, STV_DEFAULT, STV_PROTECTED, SectionHeader64,
    },
    read::elf::{FileHeader as _, SectionHeader as _, Sym as _},
};

pub(super) static FORMAT: Format = Format {
    name: "ELF",
    section: ".nxv.meta",
    is: |bytes| bytes.starts_with(b"\x7fELF"),
    check,
    exports,
};

const MACHINES: &[(&str, u32)] = &[
    ("x86_64", EM_X86_64.0 as u32),
    ("aarch64", EM_AARCH64.0 as u32),
    ("riscv64", EM_RISCV.0 as u32),
    ("powerpc64", EM_PPC64.0 as u32),
    ("loongarch64", EM_LOONGARCH.0 as u32),
];

fn check<'a>(bytes: &'a [u8], arch: &str) -> Result<Checked<'a>, String> {
    let header = header(bytes)?;
    let machine = header.e_machine.get(LE).0;
    check_machine(&FORMAT, MACHINES, machine.into(), arch)?;
    let segments = Segments::read(bytes, header)?;
    let meta = metadata(bytes, header)?;
    let dynamic = Dynamic::read(bytes, &segments)?;
    let needed = dynamic.needed()?;
    relocations::check(&dynamic, header.e_machine.get(LE))?;
    Ok(Checked { meta, needed })
}

fn header(bytes: &[u8]) -> Result<&FileHeader64<LE>, String> {
    // Class, byte order, version.
    if bytes.get(4..7) != Some(&[2, 1, 1]) {
        return Err("it is not a 64-bit little-endian ELF file".to_owned());
    }
    let header = FileHeader64::<LE>::parse(bytes).map_err(damaged("header"))?;
    match header.e_type.get(LE) {
        ET_DYN => Ok(header),
        _ => Err("it is not a shared object".to_owned()),
    }
}

fn metadata<'a>(bytes: &'a [u8], header: &FileHeader64<LE>) -> Result<&'a [u8], String> {
    let sections: &[SectionHeader64<LE>] = table(
        bytes,
        "section headers",
        header.e_shoff.get(LE),
        header.e_shnum.get(LE),
        header.e_shentsize.get(LE),
    )?;
    let content = |section: &SectionHeader64<LE>| {
        let has_bytes = section.sh_type.get(LE) != SHT_NOBITS;
        let content =
            has_bytes.then(|| range(bytes, section.sh_offset.get(LE), section.sh_size.get(LE)));
        content.transpose()
    };
    let names = sections.get(usize::from(header.e_shstrndx.get(LE).0));
    let names = names.ok_or("it has no section names")?;
    let names = content(names).map_err(|why| format!("its section names {why}"))?;
    let names = names.unwrap_or_default();
    let mut found = Vec::new();
    for (index, section) in sections.iter().enumerate().skip(1) {
        let content = content(section).map_err(|why| format!("its section {index} {why}"))?;
        let at = usize::try_from(section.sh_name.get(LE)).ok();
        // Compared, and not looked for its end, as names may be long and overlap.
        let rest = at
            .and_then(|at| names.get(at..))
            .and_then(|text| text.strip_prefix(FORMAT.section.as_bytes()));
        if rest.is_some_and(|rest| rest.first() == Some(&0)) {
            found.extend(content);
        }
    }
    only(&FORMAT, &found)
}

fn exports(bytes: &[u8]) -> Result<Vec<String>, String> {
    let damaged = damaged("symbols");
    let sections = header(bytes)?.sections(LE, bytes).map_err(&damaged)?;
    let symbols = sections.symbols(LE, bytes, SHT_DYNSYM).map_err(&damaged)?;
    if symbols.is_empty() {
        return Ok(Vec::new());
    }
    let names = sections
        .section(symbols.string_section())
        .and_then(|section| section.data(LE, bytes))
        .map_err(&damaged)?;
    let visible = symbols.iter().filter(|symbol| {
        !symbol.is_undefined(LE)
            && matches!(symbol.st_bind(), STB_GLOBAL | STB_WEAK)
            && matches!(symbol.st_visibility(), STV_DEFAULT | STV_PROTECTED)
    });
    let visible = visible.take(MOST_EXPORTS);
    visible
        .map(|symbol| name(names, symbol.st_name(LE).into()))
        .collect()
}
