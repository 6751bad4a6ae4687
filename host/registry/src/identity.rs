//! What a pack file says about itself, and whether that is for this host; read from its bytes, before it is mapped.

use super::{
    library::Library,
    spelling::is_pack_id,
    target::{HOST, Target},
};
use nx_vulkan_abi::{ABI_VERSION, meta::Meta};
use semver::Version;
use std::fmt;

/// What a file says about itself before it is mapped.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Identity {
    pub(super) id: String,
    pub(super) version: Version,
    /// Version of the contract it was built against.
    pub(super) abi: String,
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` {}", self.id, self.version)
    }
}

/// Checks format and metadata of a library that this host may load.
pub(super) fn read(bytes: &[u8]) -> Result<Identity, String> {
    of(&Library::read(bytes, HOST)?, HOST)
}

/// As [`read`], of a library whose format was checked.
pub(super) fn of(library: &Library<'_>, target: Target) -> Result<Identity, String> {
    check(&metadata(library)?, target).map_err(|why| format!("metadata: {why}"))
}

/// What the section says.
pub(super) fn metadata(library: &Library<'_>) -> Result<Meta, String> {
    let section = library.format.section;
    Meta::parse(library.meta).ok_or_else(|| format!("metadata: section {section} is damaged"))
}

fn check(meta: &Meta, target: Target) -> Result<Identity, String> {
    let Target { arch, os } = target;
    if (meta.arch.as_str(), meta.os.as_str()) != (arch, os) {
        return Err(format!(
            "it is built for {} {}, this host is {arch} {os}",
            meta.arch, meta.os
        ));
    }
    let version = |text: &str| {
        Version::parse(text).map_err(|_| format!("`{text}` is not a semantic version"))
    };
    if version(&meta.abi)?.major != version(ABI_VERSION)?.major {
        return Err(format!(
            "it is built for ABI {}, this host has ABI {ABI_VERSION}",
            meta.abi
        ));
    }
    if meta.panic != "unwind" {
        return Err(format!(
            "it is built with panic = \"{}\"; a panic in it would end the process, build it with \"unwind\"",
            meta.panic
        ));
    }
    if !is_pack_id(&meta.id) {
        return Err(format!("`{}` is not an id", meta.id));
    }
    Ok(Identity {
        id: meta.id.clone(),
        version: version(&meta.version)?,
        abi: meta.abi.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own() -> Meta {
        Meta {
            id: "demo".into(),
            version: "1.2.3".into(),
            abi: ABI_VERSION.into(),
            arch: std::env::consts::ARCH.into(),
            os: std::env::consts::OS.into(),
            panic: "unwind".into(),
        }
    }

    #[test]
    fn metadata_of_this_host_passes_and_each_other_is_named() {
        let identity = Identity {
            id: "demo".into(),
            version: Version::new(1, 2, 3),
            abi: ABI_VERSION.into(),
        };
        assert_eq!(check(&own(), HOST), Ok(identity));
        let cases = [
            (
                Meta {
                    arch: "z80".into(),
                    ..own()
                },
                "it is built for z80 ",
            ),
            (
                Meta {
                    os: "plan9".into(),
                    ..own()
                },
                "plan9, this host is",
            ),
            (
                Meta {
                    abi: "99.0.0".into(),
                    ..own()
                },
                "it is built for ABI 99.0.0, this host has",
            ),
            (
                Meta {
                    abi: "one".into(),
                    ..own()
                },
                "`one` is not a semantic version",
            ),
            (
                Meta {
                    version: "1".into(),
                    ..own()
                },
                "`1` is not a semantic version",
            ),
            (
                Meta {
                    panic: "abort".into(),
                    ..own()
                },
                "it is built with panic = \"abort\"",
            ),
            (
                Meta {
                    id: "host".into(),
                    ..own()
                },
                "`host` is not an id",
            ),
        ];
        for (meta, expected) in cases {
            let error = check(&meta, HOST).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn a_newer_minor_of_the_abi_is_left_to_the_layout_check() {
        assert!(
            check(
                &Meta {
                    abi: "1.99.0".into(),
                    ..own()
                },
                HOST
            )
            .is_ok()
        );
    }
}
