//! What crosses the contract has the sizes, offsets and codes that are written down.

mod table;

use nx_vulkan_abi::{
    __abi_stable::library::ROOT_MODULE_LOADER_NAME, Access, AttrKind, DType, DTypeSet, DeviceKind,
    Fault, Features, Level, Numerics, Outcome, Slot, SourceKind,
};
use std::mem::{align_of, size_of};

#[test]
#[cfg(target_pointer_width = "64")]
fn structs_have_their_published_layout() {
    let (found, written): (Vec<_>, Vec<_>) = table::layouts().into_iter().unzip();
    assert_eq!(found, written);
}

#[test]
fn open_integers_are_plain_integers() {
    assert_eq!((size_of::<DType>(), align_of::<DType>()), (4, 4));
    let words = [
        size_of::<Access>(),
        size_of::<AttrKind>(),
        size_of::<DeviceKind>(),
        size_of::<Fault>(),
        size_of::<Level>(),
        size_of::<Numerics>(),
        size_of::<Outcome>(),
        size_of::<Slot>(),
        size_of::<SourceKind>(),
    ];
    assert_eq!(words, [4; 9]);
    assert_eq!((size_of::<DTypeSet>(), align_of::<DTypeSet>()), (8, 8));
    assert_eq!((size_of::<Features>(), align_of::<Features>()), (8, 8));
}

#[test]
fn codes_are_frozen() {
    let codes: Vec<_> = DType::all().map(|d| (d.name(), d.0)).collect();
    let expected = [
        ("u8", 1),
        ("u16", 2),
        ("u32", 3),
        ("u64", 4),
        ("s8", 5),
        ("s16", 6),
        ("s32", 7),
        ("s64", 8),
        ("f16", 9),
        ("bf16", 10),
        ("f32", 11),
        ("f64", 12),
        ("c64", 13),
        ("c128", 14),
        ("f8", 15),
        ("f8_e4m3fn", 16),
        ("u2", 17),
        ("u4", 18),
        ("s2", 19),
        ("s4", 20),
    ];
    assert_eq!(codes, expected);
    assert_eq!(Features::INT64_ATOMICS.0, 1 << 12);
    assert_eq!(nx_vulkan_abi::ABI_VERSION, "1.1.0");
}

#[test]
fn the_exported_symbol_is_the_one_that_hosts_look_up() {
    let source = include_str!("../src/author.rs");
    let line = format!("export_name = \"{ROOT_MODULE_LOADER_NAME}\"");
    assert!(
        source.contains(&line),
        "pack! does not export {ROOT_MODULE_LOADER_NAME}"
    );
}
