//! An ELF shared object of one segment.

use super::{pad, push, text};
use object::{I64, LittleEndian as LE, U16, U32, U64, elf::*};

const HEADERS: usize = size_of::<FileHeader64<LE>>() + 3 * size_of::<ProgramHeader64<LE>>();

/// A shared object whose dynamic section has the entries `links`, with metadata in `sections` and a root module `root`.
pub(in super::super) fn elf(
    links: &[(DynamicTag, &str)],
    sections: &[(&str, SectionType, &[u8])],
) -> Vec<u8> {
    let mut bytes = vec![0; HEADERS];
    let names = bytes.len();
    bytes.push(0);
    let root = text(&mut bytes, "root") - names;
    let entries: Vec<(DynamicTag, u64)> = links
        .iter()
        .map(|(tag, name)| (*tag, (text(&mut bytes, name) - names) as u64))
        .collect();
    let names_len = (bytes.len() - names) as u64;
    let symbols = pad(&mut bytes, 8);
    for (name, section) in [(0, SHN_UNDEF), (root, SymbolSection(1))] {
        push(
            &mut bytes,
            &Sym64::<LE> {
                st_name: U32::new(LE, name as u32),
                st_info: SymbolInfo::new(STB_GLOBAL, STT_OBJECT),
                st_other: SymbolOther(0),
                st_shndx: U16::new(LE, section),
                st_value: U64::new(LE, 0),
                st_size: U64::new(LE, 0),
            },
        );
    }
    let symbols_len = bytes.len() - symbols;
    // One bucket, which leads to `root`, and the end of each chain.
    let hash = bytes.len();
    bytes.extend([1u32, 2, 1, 0, 0].map(u32::to_le_bytes).concat());

    let dynamic = pad(&mut bytes, 8);
    let ends = [
        (DT_STRTAB, names as u64),
        (DT_STRSZ, names_len),
        (DT_SYMTAB, symbols as u64),
        (DT_HASH, hash as u64),
        (DT_NULL, 0),
    ];
    for (tag, value) in entries.into_iter().chain(ends) {
        push(
            &mut bytes,
            &Dyn64::<LE> {
                d_tag: I64::new(LE, tag),
                d_val: U64::new(LE, value),
            },
        );
    }
    let dynamic_len = bytes.len() - dynamic;

    let mut table = vec![
        ("", SHT_NULL, 0, 0),
        (".dynstr", SHT_STRTAB, names, names_len as usize),
        (".dynsym", SHT_DYNSYM, symbols, symbols_len),
    ];
    for (name, kind, content) in sections {
        table.push((name, *kind, bytes.len(), content.len()));
        bytes.extend(*content);
    }
    let loaded = bytes.len();
    table.push((".shstrtab", SHT_STRTAB, bytes.len(), 0));
    let section_names: Vec<usize> = table
        .iter()
        .map(|row| text(&mut bytes, row.0) - loaded)
        .collect();
    let last = table.len() - 1;
    table[last].3 = bytes.len() - loaded;
    let headers = pad(&mut bytes, 8);
    for (&(_, kind, offset, size), name) in table.iter().zip(section_names) {
        push(
            &mut bytes,
            &SectionHeader64::<LE> {
                sh_name: U32::new(LE, name as u32),
                sh_type: U32::new(LE, kind),
                sh_flags: U64::new(LE, SectionFlags(0)),
                sh_addr: U64::new(LE, offset as u64),
                sh_offset: U64::new(LE, offset as u64),
                sh_size: U64::new(LE, size as u64),
                sh_link: U32::new(LE, u32::from(kind == SHT_DYNSYM)),
                sh_info: U32::new(LE, 0),
                sh_addralign: U64::new(LE, 1),
                sh_entsize: U64::new(LE, 0),
            },
        );
    }
    let mut start = Vec::new();
    push(
        &mut start,
        &FileHeader64::<LE> {
            e_ident: Ident {
                magic: ELFMAG,
                class: ELFCLASS64,
                data: ELFDATA2LSB,
                version: EV_CURRENT,
                os_abi: ELFOSABI_NONE,
                abi_version: 0,
                padding: [0; 7],
            },
            e_type: U16::new(LE, ET_DYN),
            e_machine: U16::new(LE, EM_X86_64),
            e_version: U32::new(LE, 1),
            e_entry: U64::new(LE, 0),
            e_phoff: U64::new(LE, size_of::<FileHeader64<LE>>() as u64),
            e_shoff: U64::new(LE, headers as u64),
            e_flags: U32::new(LE, FileFlags(0)),
            e_ehsize: U16::new(LE, size_of::<FileHeader64<LE>>() as u16),
            e_phentsize: U16::new(LE, size_of::<ProgramHeader64<LE>>() as u16),
            e_phnum: U16::new(LE, 3),
            e_shentsize: U16::new(LE, size_of::<SectionHeader64<LE>>() as u16),
            e_shnum: U16::new(LE, table.len() as u16),
            e_shstrndx: U16::new(LE, SymbolSection(last as u16)),
        },
    );
    for (kind, at, len) in [
        (PT_LOAD, 0, loaded),
        (PT_DYNAMIC, dynamic, dynamic_len),
        (PT_GNU_STACK, 0, 0),
    ] {
        push(
            &mut start,
            &ProgramHeader64::<LE> {
                p_type: U32::new(LE, kind),
                p_flags: U32::new(LE, PF_R | PF_W),
                p_offset: U64::new(LE, at as u64),
                p_vaddr: U64::new(LE, at as u64),
                p_paddr: U64::new(LE, at as u64),
                p_filesz: U64::new(LE, len as u64),
                p_memsz: U64::new(LE, len as u64),
                p_align: U64::new(LE, 4096),
            },
        );
    }
    bytes[..HEADERS].copy_from_slice(&start);
    bytes
}
