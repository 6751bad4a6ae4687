//! How hashes, pack ids and other names are spelt.

/// `bytes` in lower-case hex.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// Whether `text` can be a sha256.
pub(super) fn is_sha256(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|b| b.is_ascii_hexdigit())
}

/// Whether `id` can stand in `[pack.<id>]` and before the `/` of a rule.
pub(super) fn is_pack_id(id: &str) -> bool {
    let ordinary = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
    (1..=128).contains(&id.len()) && id != "host" && id.bytes().all(ordinary)
}

/// Whether `name` can be an id or an op of a kernel, or name a source file.
pub(super) fn is_printable(name: &str) -> bool {
    (1..=128).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_graphic())
}
