//! A DLL of two sections: one with all tables, one with the metadata.

use super::{field, pad, push, text};
use object::{LittleEndian as LE, U16, U32, U64, pe::*};

/// Where the section with the tables is in memory, and the one behind it.
const TABLES: u32 = 0x1000;
const META: u32 = 0x10000;

/// Bytes of the headers, in the file and in memory.
const HEADERS: usize = 0x400;

/// What the tables of a DLL name.
#[derive(Debug, Default, Clone, Copy)]
pub(in super::super) struct Links<'a> {
    pub(in super::super) imports: &'a [&'a str],
    pub(in super::super) delayed: &'a [&'a str],
    /// What an export stands for in another library.
    pub(in super::super) forward: Option<&'a str>,
    pub(in super::super) has_manifest: bool,
    /// Directories that are there, with nothing in them.
    pub(in super::super) directories: &'a [usize],
}

/// A DLL that exports `root`, with metadata in sections of the given names.
pub(in super::super) fn pe(links: Links<'_>, sections: &[(&str, &[u8])]) -> Vec<u8> {
    let mut tables = Vec::new();
    let mut directories = [(0u32, 0u32); 16];
    for &index in links.directories {
        directories[index] = (TABLES, 8);
    }
    let place = |at: usize| U32::new(LE, TABLES + at as u32);
    let zero = || U32::new(LE, 0);
    let [imports, delayed] = [links.imports, links.delayed].map(|names| {
        let at: Vec<usize> = names.iter().map(|name| text(&mut tables, name)).collect();
        pad(&mut tables, 4);
        at
    });
    directories[IMAGE_DIRECTORY_ENTRY_IMPORT] = (TABLES + tables.len() as u32, 20);
    for at in imports {
        push(
            &mut tables,
            &ImageImportDescriptor {
                original_first_thunk: zero(),
                time_date_stamp: zero(),
                forwarder_chain: zero(),
                name: place(at),
                first_thunk: place(0),
            },
        );
    }
    tables.resize(tables.len() + 20, 0);
    directories[IMAGE_DIRECTORY_ENTRY_DELAY_IMPORT] = (TABLES + tables.len() as u32, 32);
    for at in delayed {
        push(
            &mut tables,
            &ImageDelayloadDescriptor {
                attributes: U32::new(LE, 1),
                dll_name_rva: place(at),
                module_handle_rva: zero(),
                import_address_table_rva: zero(),
                import_name_table_rva: zero(),
                bound_import_address_table_rva: zero(),
                unload_information_table_rva: zero(),
                time_date_stamp: zero(),
            },
        );
    }
    tables.resize(tables.len() + 32, 0);
    if links.has_manifest {
        directories[IMAGE_DIRECTORY_ENTRY_RESOURCE] = (TABLES + tables.len() as u32, 24);
        tables.extend([0; 14]);
        tables.extend([1, 0]);
        tables.extend([u32::from(RT_MANIFEST), 0].map(u32::to_le_bytes).concat());
    }
    let at = tables.len();
    let fixed = size_of::<ImageExportDirectory>();
    let names = at + fixed + 4 + 4 + 2;
    let forward = links.forward.unwrap_or_default();
    let target = match links.forward {
        Some(_) => TABLES + names as u32,
        None => TABLES,
    };
    push(
        &mut tables,
        &ImageExportDirectory {
            characteristics: zero(),
            time_date_stamp: zero(),
            major_version: U16::new(LE, 0),
            minor_version: U16::new(LE, 0),
            name: zero(),
            base: U32::new(LE, 1),
            number_of_functions: U32::new(LE, 1),
            number_of_names: U32::new(LE, 1),
            address_of_functions: place(at + fixed),
            address_of_names: place(at + fixed + 4),
            address_of_name_ordinals: place(at + fixed + 8),
        },
    );
    tables.extend(target.to_le_bytes());
    tables.extend((TABLES + (names + forward.len() + 1) as u32).to_le_bytes());
    tables.extend([0, 0]);
    text(&mut tables, forward);
    text(&mut tables, "root");
    directories[IMAGE_DIRECTORY_ENTRY_EXPORT] = (TABLES + at as u32, (tables.len() - at) as u32);

    let mut bytes = headers(&directories, 1 + sections.len());
    let all = [(".rdata", tables.as_slice())];
    let (mut content, mut address) = (Vec::new(), TABLES);
    for (name, part) in all.iter().chain(sections) {
        let offset = HEADERS + content.len();
        content.extend(*part);
        pad(&mut content, 0x200);
        push(
            &mut bytes,
            &ImageSectionHeader {
                name: field(name),
                virtual_size: U32::new(LE, part.len() as u32),
                virtual_address: U32::new(LE, address),
                size_of_raw_data: U32::new(LE, (HEADERS + content.len() - offset) as u32),
                pointer_to_raw_data: U32::new(LE, offset as u32),
                pointer_to_relocations: zero(),
                pointer_to_linenumbers: zero(),
                number_of_relocations: U16::new(LE, 0),
                number_of_linenumbers: U16::new(LE, 0),
                characteristics: U32::new(LE, SectionFlags(0)),
            },
        );
        address += META;
    }
    assert!(bytes.len() <= HEADERS);
    bytes.resize(HEADERS, 0);
    bytes.extend(content);
    bytes
}

fn headers(directories: &[(u32, u32)], sections: usize) -> Vec<u8> {
    let dos = size_of::<ImageDosHeader>();
    let mut bytes = vec![0; dos];
    bytes[..2].copy_from_slice(b"MZ");
    bytes[dos - 4..].copy_from_slice(&(dos as u32).to_le_bytes());
    let fixed = size_of::<ImageOptionalHeader64>() + size_of_val(directories);
    let half = |value: u16| U16::new(LE, value);
    let word = |value: u32| U32::new(LE, value);
    let wide = |value: u64| U64::new(LE, value);
    push(
        &mut bytes,
        &ImageNtHeaders64 {
            signature: word(IMAGE_NT_SIGNATURE),
            file_header: ImageFileHeader {
                machine: U16::new(LE, IMAGE_FILE_MACHINE_AMD64),
                number_of_sections: half(sections as u16),
                time_date_stamp: word(0),
                pointer_to_symbol_table: word(0),
                number_of_symbols: word(0),
                size_of_optional_header: half(fixed as u16),
                characteristics: U16::new(LE, IMAGE_FILE_DLL),
            },
            optional_header: ImageOptionalHeader64 {
                magic: half(IMAGE_NT_OPTIONAL_HDR64_MAGIC),
                major_linker_version: 0,
                minor_linker_version: 0,
                size_of_code: word(0),
                size_of_initialized_data: word(0),
                size_of_uninitialized_data: word(0),
                address_of_entry_point: word(0),
                base_of_code: word(0),
                image_base: wide(0x1_8000_0000),
                section_alignment: word(0x1000),
                file_alignment: word(0x200),
                major_operating_system_version: half(6),
                minor_operating_system_version: half(0),
                major_image_version: half(0),
                minor_image_version: half(0),
                major_subsystem_version: half(6),
                minor_subsystem_version: half(0),
                win32_version_value: word(0),
                size_of_image: word(8 * META),
                size_of_headers: word(HEADERS as u32),
                check_sum: word(0),
                subsystem: U16::new(LE, IMAGE_SUBSYSTEM_WINDOWS_CUI),
                dll_characteristics: U16::new(LE, DllFlags(0)),
                size_of_stack_reserve: wide(0),
                size_of_stack_commit: wide(0),
                size_of_heap_reserve: wide(0),
                size_of_heap_commit: wide(0),
                loader_flags: word(0),
                number_of_rva_and_sizes: word(directories.len() as u32),
            },
        },
    );
    for (address, size) in directories {
        push(
            &mut bytes,
            &ImageDataDirectory {
                virtual_address: word(*address),
                size: word(*size),
            },
        );
    }
    bytes
}
