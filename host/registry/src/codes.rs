//! The codes of what can be wrong with a registry file. `docs/registry.md` has each with its cure.

use std::fmt;

macro_rules! codes {
    ($($name:ident = $number:literal, $title:literal;)*) => {
        /// What is wrong, as a code that stays the same when the words change: `NXR004`.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Code {
            $(#[doc = $title] $name = $number,)*
        }

        impl Code {
            /// Every code, in order.
            pub const ALL: &[Code] = &[$(Code::$name),*];

            /// What it is about, in a few words.
            pub fn title(self) -> &'static str {
                match self { $(Code::$name => $title,)* }
            }
        }
    };
}

codes! {
    Unreadable = 1, "the file cannot be read";
    Syntax = 2, "not TOML";
    Schema = 3, "unknown schema";
    UnknownKey = 4, "unknown key";
    MissingKey = 5, "missing key";
    WrongType = 6, "value of another type";
    UnknownWord = 7, "unknown word";
    OutOfRange = 8, "number out of range";
    Empty = 9, "empty list or text";
    Repeated = 10, "said twice";
    PackId = 11, "not a pack id";
    VersionRange = 12, "not a range of versions";
    Sha256 = 13, "not a sha256";
    NoPin = 14, "pack without a sha256 for this target";
    NoSigner = 15, "pack without a signer";
    UnknownSigner = 16, "unknown signer";
    TrustedKey = 17, "not a minisign key";
    Untrusting = 18, "nothing required in mode locked";
    Use = 19, "not an entry of `use`";
    ElementType = 20, "unknown element type";
    Signature = 21, "not a signature of types";
    Condition = 22, "not a shape condition";
    Feature = 23, "unknown device feature";
    Op = 24, "unknown op";
    Driver = 25, "not a range of driver versions";
    Pack = 26, "unknown pack";
    Kernel = 27, "unknown kernel";
    Unreached = 28, "rule that is never reached";
    DeniesNothing = 29, "denial without effect";
    DevInLocked = 30, "live reload in mode locked";
    Overridden = 31, "environment ignored";
    NoFolder = 32, "folder that does not exist";
    Unlocked = 33, "mode locked left";
    Exposed = 34, "locked file that others can change";
    Control = 35, "control character";
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NXR{:03}", *self as u16)
    }
}

impl serde::Serialize for Code {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rows of the table of codes: code, title, cause, cure.
    #[test]
    fn the_documentation_has_every_code_with_cause_and_cure() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/registry.md");
        let text = std::fs::read_to_string(path).unwrap();
        let rows = text.lines().filter(|line| line.starts_with("| NXR"));
        let documented: Vec<Vec<String>> = rows
            .map(|row| {
                let cells = row.trim_matches('|').split(" | ");
                cells.map(|cell| cell.trim().to_owned()).collect()
            })
            .collect();
        let known: Vec<[String; 2]> = Code::ALL
            .iter()
            .map(|code| [code.to_string(), code.title().to_owned()])
            .collect();
        let heads: Vec<&[String]> = documented.iter().map(|row| &row[..2]).collect();
        assert_eq!(heads, known.iter().map(|row| &row[..]).collect::<Vec<_>>());
        for row in &documented {
            assert!(
                row.len() == 4 && row[2..].iter().all(|cell| !cell.is_empty()),
                "{row:?}"
            );
        }
    }

    #[test]
    fn codes_are_numbered_without_gaps() {
        for (index, code) in Code::ALL.iter().enumerate() {
            assert_eq!(code.to_string(), format!("NXR{:03}", index + 1));
        }
    }
}
