//! The metadata section of a pack: text that the host reads from the file before it maps it.

/// Size of the section in bytes.
pub const LEN: usize = 512;

/// First bytes of the section.
pub const MAGIC: &str = "NXVPACK1\n";

/// The section's content: `key=value` lines after [`MAGIC`], padded with zeros.
///
/// # Panics
/// At compile time, when the id or version is not what the host accepts, or the section is too small for them.
pub const fn build(id: &str, version: &str, unwinds: bool) -> [u8; LEN] {
    assert!(
        is_word(id, b"._-"),
        "an id is made of letters, digits, `.`, `_` and `-`"
    );
    assert!(
        !matches!(id.as_bytes(), b"host"),
        "the id `host` is the host's own"
    );
    assert!(
        is_word(version, b".-+"),
        "a version is a semantic version: 1.2.3"
    );
    let parts = [
        MAGIC,
        "id=",
        id,
        "\nversion=",
        version,
        "\nabi=",
        crate::ABI_VERSION,
        "\narch=",
        std::env::consts::ARCH,
        "\nos=",
        std::env::consts::OS,
        "\npanic=",
        if unwinds { "unwind" } else { "abort" },
        "\n",
    ];
    let (mut bytes, mut at, mut part) = ([0; LEN], 0, 0);
    while part < parts.len() {
        let text = parts[part].as_bytes();
        let mut i = 0;
        while i < text.len() {
            bytes[at] = text[i];
            at += 1;
            i += 1;
        }
        part += 1;
    }
    bytes
}

/// Whether `text` is made of ASCII letters, digits and `others`.
const fn is_word(text: &str, others: &[u8; 3]) -> bool {
    let (text, mut i) = (text.as_bytes(), 0);
    while i < text.len() {
        let b = text[i];
        let other = b == others[0] || b == others[1] || b == others[2];
        if !b.is_ascii_alphanumeric() && !other {
            return false;
        }
        i += 1;
    }
    !text.is_empty()
}

/// The parsed section.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Meta {
    /// Id of the pack.
    pub id: String,
    /// Semver of the pack.
    pub version: String,
    /// Semver of the contract it was built against.
    pub abi: String,
    /// CPU architecture, as Rust names it.
    pub arch: String,
    /// Operating system, as Rust names it.
    pub os: String,
    /// `unwind` or `abort`.
    pub panic: String,
}

impl Meta {
    /// Parses the section; `None` when a key is missing or the text is not printable ASCII.
    pub fn parse(section: &[u8]) -> Option<Meta> {
        let body = section.strip_prefix(MAGIC.as_bytes())?;
        let end = body.iter().position(|&b| b == 0).unwrap_or(body.len());
        let text = std::str::from_utf8(&body[..end]).ok()?;
        let value = |key: &str| {
            let line = text
                .lines()
                .find_map(|l| l.strip_prefix(key)?.strip_prefix('='))?;
            let clean = !line.is_empty() && line.bytes().all(|b| b.is_ascii_graphic());
            clean.then(|| line.to_owned())
        };
        Some(Meta {
            id: value("id")?,
            version: value("version")?,
            abi: value("abi")?,
            arch: value("arch")?,
            os: value("os")?,
            panic: value("panic")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_built_section_parses_back() {
        let meta = Meta::parse(&build("demo", "1.2.3", true)).unwrap();
        assert_eq!((meta.id.as_str(), meta.version.as_str()), ("demo", "1.2.3"));
        assert_eq!(
            (meta.abi.as_str(), meta.panic.as_str()),
            (crate::ABI_VERSION, "unwind")
        );
        assert_eq!(
            Meta::parse(&build("demo", "1.2.3", false)).unwrap().panic,
            "abort"
        );
    }

    #[test]
    fn damage_is_refused() {
        assert_eq!(Meta::parse(b""), None);
        assert_eq!(Meta::parse(b"NXVPACK1\nid=a\n"), None);
        let mut section = build("demo", "1.2.3", true);
        section[13] = 0x1b;
        assert_eq!(Meta::parse(&section), None);
    }
}
