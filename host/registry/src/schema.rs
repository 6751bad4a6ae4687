//! What a registry file may contain, as one table: the reader checks by it, `json_schema` writes it down for editors.

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
}

/// What a text means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Any,
    PackId,
    VersionRange,
    Sha256,
    TrustedKey,
    OpPattern,
    Types,
    Condition,
    Feature,
    Use,
    DriverRange,
}

const fn key(name: &'static str, value: Value, default: &'static str, about: &'static str) -> Key {
    Key {
        name,
        required: false,
        value,
        default,
        about,
    }
}

const fn required(name: &'static str, value: Value, about: &'static str) -> Key {
    Key {
        name,
        required: true,
        value,
        default: "",
        about,
    }
}

const PATHS: Value = Value::List(0, &Value::Text(Format::Any));

/// The file.
pub(super) const FILE: Block = Block {
    name: "the file",
    keys: &[
        required(
            "schema",
            Value::Integer(VERSION, VERSION),
            "The version of this format.",
        ),
        key(
            "mode",
            Value::Word(&["dev", "locked"]),
            "\"dev\"",
            "\"dev\" loads every pack found in the search folders, \"locked\" only those listed and pinned.",
        ),
        key("search", Value::Table(&SEARCH), "", "Where packs are."),
        key(
            "trust",
            Value::Table(&TRUST),
            "",
            "What a pack must show before it is loaded.",
        ),
        key(
            "defaults",
            Value::Table(&DEFAULTS),
            "",
            "What holds where no rule says otherwise.",
        ),
        key(
            "pack",
            Value::Named(Format::PackId, &PACK),
            "",
            "Packs by id.",
        ),
        key(
            "op",
            Value::List(0, &Value::Table(&OP)),
            "",
            "Rules: which kernels are asked for a request, and in which order. The first that fits counts.",
        ),
        key(
            "deny",
            Value::List(0, &Value::Table(&DENY)),
            "",
            "Kernels that must not be asked.",
        ),
        key(
            "dev",
            Value::Table(&DEV),
            "",
            "Live reload, in mode \"dev\".",
        ),
    ],
};

const SEARCH: Block = Block {
    name: "[search]",
    keys: &[
        key(
            "paths",
            PATHS,
            "[]",
            "Folders, searched in this order. They start at the folder of this file.",
        ),
        key(
            "store",
            Value::Text(Format::Any),
            "",
            "Folder for private copies of packs; else one in the user's cache.",
        ),
    ],
};

const TRUST: Block = Block {
    name: "[trust]",
    keys: &[
        key(
            "require",
            Value::Word(&["sha256", "signature", "both", "none"]),
            "",
            "What every pack must show; without it a sha256 in mode \"locked\" and nothing in mode \"dev\".",
        ),
        key(
            "minisign",
            Value::List(0, &Value::Table(&TRUSTED_KEY)),
            "[]",
            "Public keys whose signatures count.",
        ),
    ],
};

const TRUSTED_KEY: Block = Block {
    name: "a key of `minisign`",
    keys: &[
        required(
            "name",
            Value::Text(Format::Any),
            "What `signer` calls the key.",
        ),
        required(
            "key",
            Value::Text(Format::TrustedKey),
            "The public key, as minisign prints it.",
        ),
    ],
};

const DEFAULTS: Block = Block {
    name: "[defaults]",
    keys: &[
        key(
            "fallback",
            Value::Word(&["host", "error"]),
            "\"host\"",
            "What happens when no pack runs a request: the CPU does, or it is an error.",
        ),
        key(
            "numerics",
            Value::Word(&["exact", "ieee", "relaxed"]),
            "\"ieee\"",
            "The weakest rounding that a kernel may have to be asked.",
        ),
        key(
            "order",
            Value::List(
                1,
                &Value::Word(&["rule", "measured", "rank", "priority", "name"]),
            ),
            "[\"rule\", \"measured\", \"rank\", \"priority\", \"name\"]",
            "By what kernels are ordered; what comes earlier decides first, names decide last in any case.",
        ),
        key(
            "on_error",
            Value::Word(&["retry-host", "error"]),
            "\"retry-host\"",
            "What happens when a kernel that was picked fails.",
        ),
        key(
            "quarantine_after",
            Value::Integer(1, 1_000_000),
            "3",
            "Failures after which a kernel is no longer asked.",
        ),
    ],
};

const PACK: Block = Block {
    name: "[pack]",
    keys: &[
        key(
            "version",
            Value::Text(Format::VersionRange),
            "",
            "Versions that may be loaded: \">=1.4, <2\".",
        ),
        key(
            "file",
            Value::Text(Format::Any),
            "",
            "A file name in a search folder; with a slash, a path from this file's folder.",
        ),
        key(
            "signer",
            Value::Text(Format::Any),
            "",
            "Name of the key in [trust] that signs the pack.",
        ),
        key(
            "priority",
            Value::Integer(i32::MIN as i64, i32::MAX as i64),
            "0",
            "Among kernels of equal rank the higher is asked first.",
        ),
        key(
            "sha256",
            Value::Pins,
            "",
            "The sha256 of the file, or a table with one for each target triple.",
        ),
    ],
};

const OP: Block = Block {
    name: "[[op]]",
    keys: &[
        required(
            "name",
            Value::Text(Format::OpPattern),
            "An op; `*` stands for any text.",
        ),
        key(
            "dtype",
            Value::List(1, &Value::Text(Format::Types)),
            "",
            "Types of which one occurs (\"f16\", \"float\"), or whole signatures (\"f16,f16->f32\").",
        ),
        key(
            "shape",
            Value::List(1, &Value::Text(Format::Condition)),
            "",
            "Conditions that all hold: \"a.rank >= 2\", \"a.dim[-1] % 16 == 0\", \"elems >= 65536\".",
        ),
        key(
            "needs",
            Value::List(1, &Value::Text(Format::Feature)),
            "",
            "Features that the device has.",
        ),
        required(
            "use",
            Value::List(1, &Value::Text(Format::Use)),
            "\"pack\", \"pack/kernel\", \"host\", or \"*\" for every pack not named; what is left out is not asked.",
        ),
    ],
};

const DENY: Block = Block {
    name: "[[deny]]",
    keys: &[
        required("pack", Value::Text(Format::PackId), "The pack."),
        key(
            "op",
            Value::Text(Format::OpPattern),
            "",
            "Only for this op; `*` stands for any text.",
        ),
        key(
            "version",
            Value::Text(Format::VersionRange),
            "",
            "Only these versions of the pack.",
        ),
        key("device", Value::Table(&DEVICE), "", "Only on such devices."),
        required(
            "reason",
            Value::Text(Format::Any),
            "Why; explanations show it.",
        ),
    ],
};

const DEVICE: Block = Block {
    name: "`device`",
    keys: &[
        key(
            "vendor",
            Value::Integer(0, u32::MAX as i64),
            "",
            "PCI or Khronos vendor id: 0x10de.",
        ),
        key(
            "name",
            Value::Text(Format::Any),
            "",
            "A part of the device's name, in any case.",
        ),
        key(
            "driver",
            Value::Text(Format::DriverRange),
            "",
            "Versions of the driver: \">=535, <550.54\".",
        ),
    ],
};

const DEV: Block = Block {
    name: "[dev]",
    keys: &[
        key(
            "watch",
            PATHS,
            "[]",
            "Folders whose packs and shaders are reloaded when they change.",
        ),
        key(
            "settle_ms",
            Value::Integer(0, 60_000),
            "150",
            "How long a folder must be quiet before it is read.",
        ),
        key(
            "poll_ms",
            Value::Integer(0, 3_600_000),
            "0",
            "How often folders are compared where the system reports no changes; 0: never.",
        ),
        key(
            "probe",
            Value::Boolean,
            "true",
            "Whether a pack is tried in a process of its own first.",
        ),
        key(
            "keep_versions",
            Value::Integer(0, 100),
            "3",
            "How many versions of a pack can be gone back to.",
        ),
    ],
};

#[cfg(test)]
mod tests;
