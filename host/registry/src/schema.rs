//! What a registry file may contain, as one table: the reader checks by it, `json_schema` writes it down for editors.
//! Pack files have tables of the same kind.

use nx_vulkan_abi::Numerics;

/// The schema this version reads.
pub(super) const VERSION: i64 = 1;

/// A TOML table with a fixed set of keys.
#[derive(Debug)]
pub(super) struct Block {
    /// As messages call it: `[search]`.
    pub(super) name: &'static str,
    pub(super) keys: &'static [Key],
}

/// One key.
#[derive(Debug)]
pub(super) struct Key {
    pub(super) name: &'static str,
    pub(super) required: bool,
    pub(super) value: Value,
    /// The value that holds where the key is absent, in TOML; empty where there is none.
    pub(super) default: &'static str,
    pub(super) about: &'static str,
}

/// What stands behind a key.
#[derive(Debug)]
pub(super) enum Value {
    /// From the first to the second.
    Integer(i64, i64),
    Boolean,
    Text(Format),
    /// One of these words.
    Word(&'static [&'static str]),
    /// At least so many.
    List(usize, &'static Value),
    Table(&'static Block),
    /// Tables by names of that form.
    Named(Format, &'static Block),
    /// A sha256, or one for each target.
    Pins,
    /// A table of any keys and values.
    Entries,
    Any,
}

/// What a text means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Any,
    PackId,
    Printable,
    Version,
    VersionRange,
    Sha256,
    TrustedKey,
    OpPattern,
    TypeSet,
    Types,
    Condition,
    Feature,
    Use,
    DriverRange,
}

/// Rows of keys: the name and what stands behind it, then the default and what it is about, where there are any.
macro_rules! keys {
    ($($need:ident $name:literal: $value:expr $(=> $default:literal)? $(, $about:literal)?;)*) => {
        &[$($need(Key {
            name: $name,
            required: false,
            value: $value,
            default: concat!($($default)?),
            about: concat!($($about)?),
        })),*]
    };
}
pub(super) use keys;

pub(super) const fn optional(key: Key) -> Key {
    key
}

pub(super) const fn required(key: Key) -> Key {
    Key {
        required: true,
        ..key
    }
}

/// Names of the numerics classes, strictest first.
pub(super) const CLASSES: &[(&str, Numerics)] = &[
    ("exact", Numerics::EXACT),
    ("ieee", Numerics::IEEE),
    ("relaxed", Numerics::RELAXED),
];

pub(super) const NUMERICS: Value = Value::Word(&["exact", "ieee", "relaxed"]);
const PATHS: Value = Value::List(0, &Value::Text(Format::Any));

/// The file.
pub(super) const FILE: Block = Block {
    name: "the file",
    keys: keys! {
        required "schema": Value::Integer(VERSION, VERSION), "The version of this format.";
        optional "mode": Value::Word(&["dev", "locked"]) => "\"dev\"",
            "\"dev\" loads every pack found in the search folders, \"locked\" only those listed and pinned.";
        optional "search": Value::Table(&SEARCH), "Where packs are.";
        optional "trust": Value::Table(&TRUST), "What a pack must show before it is loaded.";
        optional "defaults": Value::Table(&DEFAULTS), "What holds where no rule says otherwise.";
        optional "pack": Value::Named(Format::PackId, &PACK), "Packs by id.";
        optional "op": Value::List(0, &Value::Table(&OP)),
            "Rules: which kernels are asked for a request, and in which order. The first that fits counts.";
        optional "deny": Value::List(0, &Value::Table(&DENY)), "Kernels that must not be asked.";
        optional "dev": Value::Table(&DEV), "Live reload, in mode \"dev\".";
    },
};

const SEARCH: Block = Block {
    name: "[search]",
    keys: keys! {
        optional "paths": PATHS => "[]", "Folders, searched in this order. They start at the folder of this file.";
        optional "store": Value::Text(Format::Any), "Folder for private copies of packs; else one in the user's cache.";
    },
};

const TRUST: Block = Block {
    name: "[trust]",
    keys: keys! {
        optional "require": Value::Word(&["sha256", "signature", "both", "none"]),
            "What every pack must show; without it a sha256 in mode \"locked\" and nothing in mode \"dev\".";
        optional "minisign": Value::List(0, &Value::Table(&TRUSTED_KEY)) => "[]", "Public keys whose signatures count.";
    },
};

const TRUSTED_KEY: Block = Block {
    name: "a key of `minisign`",
    keys: keys! {
        required "name": Value::Text(Format::Any), "What `signer` calls the key.";
        required "key": Value::Text(Format::TrustedKey), "The public key, as minisign prints it.";
    },
};

const DEFAULTS: Block = Block {
    name: "[defaults]",
    keys: keys! {
        optional "fallback": Value::Word(&["host", "error"]) => "\"host\"",
            "What happens when no pack runs a request: the CPU does, or it is an error.";
        optional "numerics": NUMERICS => "\"ieee\"", "The weakest rounding that a kernel may have to be asked.";
        optional "order": Value::List(1, &Value::Word(&["rule", "measured", "rank", "priority", "name"]))
            => "[\"rule\", \"measured\", \"rank\", \"priority\", \"name\"]",
            "By what kernels are ordered; what comes earlier decides first, names decide last in any case.";
        optional "measure": Value::Word(&["cpu", "never"]) => "\"cpu\"",
            "Where a pack's kernel and the CPU's are timed at the first request of a size: on drivers that run on the CPU.";
        optional "on_error": Value::Word(&["retry-host", "error"]) => "\"retry-host\"",
            "What happens when a kernel that was picked fails.";
        optional "quarantine_after": Value::Integer(1, 1_000_000) => "3",
            "Failures after which a kernel is no longer asked.";
    },
};

const PACK: Block = Block {
    name: "[pack]",
    keys: keys! {
        optional "version": Value::Text(Format::VersionRange), "Versions that may be loaded: \">=1.4, <2\".";
        optional "file": Value::Text(Format::Any),
            "A file name in a search folder; with a slash, a path from this file's folder.";
        optional "signer": Value::Text(Format::Any), "Name of the key in [trust] that signs the pack.";
        optional "priority": Value::Integer(i32::MIN as i64, i32::MAX as i64) => "0",
            "Among kernels of equal rank the higher is asked first.";
        optional "sha256": Value::Pins, "The sha256 of the file, or a table with one for each target triple.";
    },
};

const OP: Block = Block {
    name: "[[op]]",
    keys: keys! {
        required "name": Value::Text(Format::OpPattern), "An op; `*` stands for any text.";
        optional "dtype": Value::List(1, &Value::Text(Format::Types)),
            "Types of which one occurs (\"f16\", \"float\"), or whole signatures (\"f16,f16->f32\").";
        optional "shape": Value::List(1, &Value::Text(Format::Condition)),
            "Conditions that all hold: \"a.rank >= 2\", \"a.dim[-1] % 16 == 0\", \"elems >= 65536\".";
        optional "needs": Value::List(1, &Value::Text(Format::Feature)), "Features that the device has.";
        required "use": Value::List(1, &Value::Text(Format::Use)),
            "\"pack\", \"pack/kernel\", \"host\", or \"*\" for every pack not named; what is left out is not asked.";
    },
};

const DENY: Block = Block {
    name: "[[deny]]",
    keys: keys! {
        required "pack": Value::Text(Format::PackId), "The pack.";
        optional "op": Value::Text(Format::OpPattern), "Only for this op; `*` stands for any text.";
        optional "version": Value::Text(Format::VersionRange), "Only these versions of the pack.";
        optional "device": Value::Table(&DEVICE), "Only on such devices.";
        required "reason": Value::Text(Format::Any), "Why; explanations show it.";
    },
};

const DEVICE: Block = Block {
    name: "`device`",
    keys: keys! {
        optional "vendor": Value::Integer(0, u32::MAX as i64), "PCI or Khronos vendor id: 0x10de.";
        optional "name": Value::Text(Format::Any), "A part of the device's name, in any case.";
        optional "driver": Value::Text(Format::DriverRange), "Versions of the driver: \">=535, <550.54\".";
    },
};

const DEV: Block = Block {
    name: "[dev]",
    keys: keys! {
        optional "watch": PATHS => "[]", "Folders whose packs and shaders are reloaded when they change.";
        optional "settle_ms": Value::Integer(0, 60_000) => "150", "How long a folder must be quiet before it is read.";
        optional "poll_ms": Value::Integer(0, 3_600_000) => "0",
            "How often folders are compared where the system reports no changes; 0: never.";
        optional "probe": Value::Boolean => "true", "Whether a pack is tried in a process of its own first.";
        optional "keep_versions": Value::Integer(0, 100) => "3", "How many versions of a pack can be gone back to.";
    },
};

#[cfg(test)]
mod tests;
