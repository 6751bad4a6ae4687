//! The smallest library files of each format that say they are a kernel pack. They have no code and are never mapped.

mod elf;
mod macho;
mod pe;

pub(super) use elf::elf;
pub(super) use macho::{Command, macho, universal};
pub(super) use pe::{Links, pe};

use object::pod::{Pod, bytes_of};

/// What a section with metadata says of a pack for a machine.
pub(super) fn meta(arch: &str, os: &str) -> Vec<u8> {
    let lines = format!("id=demo\nversion=1.2.3\nabi=1.0.0\narch={arch}\nos={os}\npanic=unwind\n");
    let mut meta = format!("{}{lines}", nx_vulkan_abi::meta::MAGIC).into_bytes();
    meta.resize(nx_vulkan_abi::meta::LEN, 0);
    meta
}

pub(super) fn push<T: Pod>(bytes: &mut Vec<u8>, part: &T) {
    bytes.extend(bytes_of(part));
}

/// Fills up to a multiple of `align` and answers with where that is.
fn pad(bytes: &mut Vec<u8>, align: usize) -> usize {
    bytes.resize(bytes.len().next_multiple_of(align), 0);
    bytes.len()
}

/// Appends a zero-terminated text and answers with where it begins.
fn text(bytes: &mut Vec<u8>, text: &str) -> usize {
    let at = bytes.len();
    bytes.extend(text.as_bytes());
    bytes.push(0);
    at
}

/// A name in a field of fixed size.
fn field<const N: usize>(name: &str) -> [u8; N] {
    let mut field = [0; N];
    field[..name.len()].copy_from_slice(name.as_bytes());
    field
}
