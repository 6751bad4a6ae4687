//! Sections, imports and exports of a PE library (a DLL).
//!
//! TLS callbacks are to it what constructors are to ELF: Rust's own library has one, and all of that runs when the file is
//! mapped, after its hash, pin and signature were looked at.

use super::format::{
    Checked, Format, MOST_EXPORTS, check_machine, damaged, foreign, name, need, only, range,
};
use object::{
    LittleEndian as LE,
    pe::{
        IMAGE_DIRECTORY_ENTRY_BOUND_IMPORT, IMAGE_DIRECTORY_ENTRY_COM_DESCRIPTOR, IMAGE_FILE_DLL,
        IMAGE_FILE_MACHINE_AMD64, IMAGE_FILE_MACHINE_ARM64, IMAGE_NT_OPTIONAL_HDR64_MAGIC,
        ImageDosHeader, ImageNtHeaders64, ImageOptionalHeader64, ImageSectionHeader, RT_MANIFEST,
    },
    read::pe::{DataDirectories, ImageNtHeaders as _, SectionTable, optional_header_magic},
};

pub(super) static FORMAT: Format = Format {
    name: "PE",
    section: ".nxvmeta",
    is: |bytes| bytes.starts_with(b"MZ"),
    check,
    exports,
};

const MACHINES: &[(&str, u32)] = &[
    ("x86_64", IMAGE_FILE_MACHINE_AMD64.0 as u32),
    ("aarch64", IMAGE_FILE_MACHINE_ARM64.0 as u32),
];

/// Libraries that every process with Rust's standard library has anyway, in lower case.
const EVERYWHERE: &[&str] = &[
    "advapi32.dll",
    "bcrypt.dll",
    "bcryptprimitives.dll",
    "kernel32.dll",
    "kernelbase.dll",
    "msvcrt.dll",
    "ntdll.dll",
    "ucrtbase.dll",
    "userenv.dll",
    "vcruntime140.dll",
    "vcruntime140_1.dll",
    "ws2_32.dll",
];

/// Names of interfaces that Windows itself maps to libraries, as they begin.
const INTERFACES: &[&str] = &["api-ms-win-core-", "api-ms-win-crt-"];

/// Smallest page, and smallest piece of a file, that sections are mapped by.
const PAGE: u32 = 4096;
const SECTOR: u32 = 512;

/// Sections that Windows loads at most.
const MOST_SECTIONS: usize = 96;

/// The parts of a file.
struct Parts<'a> {
    headers: &'a ImageNtHeaders64,
    directories: DataDirectories<'a>,
    sections: SectionTable<'a>,
}

fn check<'a>(bytes: &'a [u8], arch: &str) -> Result<Checked<'a>, String> {
    let parts = parts(bytes)?;
    let file = parts.headers.file_header;
    check_machine(&FORMAT, MACHINES, file.machine.get(LE).0.into(), arch)?;
    if !file.characteristics.get(LE).contains(IMAGE_FILE_DLL) {
        return Err("it is a program, not a library".to_owned());
    }
    check_sections(bytes, &parts)?;
    let is_metadata = |section: &&ImageSectionHeader| section.name == FORMAT.section.as_bytes();
    let found = parts.sections.iter().filter(is_metadata);
    let found: Result<Vec<&[u8]>, _> = found.map(|section| section.pe_data(bytes)).collect();
    let found = found.map_err(damaged("metadata"))?;
    let found: Vec<&[u8]> = found.into_iter().filter(|meta| !meta.is_empty()).collect();
    let meta = only(&FORMAT, &found)?;
    check_directories(bytes, &parts)?;
    let needed = needed(bytes, &parts)?;
    Ok(Checked { meta, needed })
}

fn parts(bytes: &[u8]) -> Result<Parts<'_>, String> {
    let failed = damaged("headers");
    let magic = optional_header_magic(bytes).map_err(&failed)?;
    if magic != IMAGE_NT_OPTIONAL_HDR64_MAGIC {
        return Err("it is not a 64-bit PE file".to_owned());
    }
    let dos = ImageDosHeader::parse(bytes).map_err(&failed)?;
    let mut at = dos.nt_headers_offset().into();
    let (headers, directories) = ImageNtHeaders64::parse(bytes, &mut at).map_err(&failed)?;
    let sections = headers.sections(bytes, at).map_err(&failed)?;
    if sections.len() > MOST_SECTIONS {
        return Err(format!(
            "it has {} sections, more than {MOST_SECTIONS}",
            sections.len()
        ));
    }
    Ok(Parts {
        headers,
        directories,
        sections,
    })
}

fn check_sections(bytes: &[u8], parts: &Parts<'_>) -> Result<(), String> {
    let ImageOptionalHeader64 {
        section_alignment,
        file_alignment,
        size_of_headers,
        size_of_image,
        ..
    } = &parts.headers.optional_header;
    let (page, sector) = (section_alignment.get(LE), file_alignment.get(LE));
    // Else Windows maps the file as it is, and addresses mean something else.
    if !(page.is_power_of_two() && page >= PAGE && sector.is_power_of_two() && sector >= SECTOR) {
        return Err(format!(
            "its sections are aligned to {page} and {sector} bytes"
        ));
    }
    let headers = size_of_headers.get(LE).into();
    range(bytes, 0, headers).map_err(|why| format!("its header {why}"))?;
    let mut last = headers;
    for (index, section) in parts.sections.iter().enumerate() {
        let failed = |why: &str| format!("its section {index} {why}");
        let (offset, in_file) = (
            section.pointer_to_raw_data.get(LE),
            section.size_of_raw_data.get(LE),
        );
        range(bytes, offset.into(), in_file.into()).map_err(|why| failed(&why))?;
        let (address, in_memory) = (
            section.virtual_address.get(LE),
            section.virtual_size.get(LE),
        );
        if offset % SECTOR != 0 || address % page != 0 {
            return Err(failed("is not where pages of the file can be mapped"));
        }
        if in_memory == 0 {
            return Err(failed("has no size in memory"));
        }
        if u64::from(address) < last {
            return Err(failed("lies over another one"));
        }
        last = u64::from(address) + u64::from(in_memory);
        if last > u64::from(size_of_image.get(LE)) {
            return Err(failed("leaves the image"));
        }
    }
    match parts.sections.is_empty() {
        true => Err("it has nothing to load".to_owned()),
        false => Ok(()),
    }
}

/// Refuses what makes Windows load code that no import names.
fn check_directories(bytes: &[u8], parts: &Parts<'_>) -> Result<(), String> {
    let Parts {
        directories,
        sections,
        ..
    } = parts;
    for (index, what) in [
        (IMAGE_DIRECTORY_ENTRY_BOUND_IMPORT, "has bound imports"),
        (IMAGE_DIRECTORY_ENTRY_COM_DESCRIPTOR, "is for .NET"),
    ] {
        if directories.get(index).is_some() {
            return Err(format!(
                "it {what}, so code would be loaded that nobody checked"
            ));
        }
    }
    let resources = directories.resource_directory(bytes, sections);
    let root = resources.and_then(|found| found.map(|found| found.root()).transpose());
    let root = root.map_err(damaged("resources"))?;
    let mut types = root.iter().flat_map(|root| root.entries);
    if types.any(|entry| entry.name_or_id().id() == Some(RT_MANIFEST)) {
        return Err("it has a manifest, which can change where libraries are found".to_owned());
    }
    let exports = directories.export_table(bytes, sections);
    let Some(exports) = exports.map_err(damaged("exports"))? else {
        return Ok(());
    };
    let mut forwards = exports.addresses().iter().map(|address| address.get(LE));
    match forwards.find(|&address| exports.is_forward(address)) {
        None => Ok(()),
        Some(address) => foreign("forwarded export", &text(bytes, parts, address)?),
    }
}

fn needed(bytes: &[u8], parts: &Parts<'_>) -> Result<Vec<String>, String> {
    let failed = damaged("imports");
    let mut needed = Vec::new();
    let mut keep = |address: u32| {
        let name = text(bytes, parts, address).map_err(|why| format!("its imports: {why}"))?;
        let lower = name.to_ascii_lowercase();
        let is_interface = INTERFACES.iter().any(|start| lower.starts_with(start))
            && lower.ends_with(".dll")
            && !lower.contains(['/', '\\']);
        need(
            &mut needed,
            name,
            is_interface || EVERYWHERE.contains(&lower.as_str()),
        )
    };
    let imports = parts.directories.import_table(bytes, &parts.sections);
    if let Some(imports) = imports.map_err(&failed)? {
        let mut libraries = imports.descriptors().map_err(&failed)?;
        while let Some(library) = libraries.next().map_err(&failed)? {
            keep(library.name.get(LE))?;
        }
    }
    let delayed = parts
        .directories
        .delay_load_import_table(bytes, &parts.sections);
    if let Some(delayed) = delayed.map_err(&failed)? {
        let mut libraries = delayed.descriptors().map_err(&failed)?;
        while let Some(library) = libraries.next().map_err(&failed)? {
            keep(library.dll_name_rva.get(LE))?;
        }
    }
    Ok(needed)
}

/// The text at an address.
fn text(bytes: &[u8], parts: &Parts<'_>, address: u32) -> Result<String, String> {
    let rest = parts.sections.pe_data_at(bytes, address);
    name(rest.ok_or("a name in it is out of bounds")?, 0)
}

fn exports(bytes: &[u8]) -> Result<Vec<String>, String> {
    let parts = parts(bytes)?;
    let exports = parts.directories.export_table(bytes, &parts.sections);
    let exports = exports.map_err(damaged("exports"))?;
    let names = exports.iter().flat_map(|table| table.name_pointers());
    let names = names.take(MOST_EXPORTS);
    names.map(|at| text(bytes, &parts, at.get(LE))).collect()
}
