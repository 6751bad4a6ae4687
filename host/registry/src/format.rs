//! What each kind of text in a registry file or a pack file has to look like.

use super::{
    codes::Code,
    condition::Condition,
    diagnostic::{did_you_mean, shown},
    driver::DriverRange,
    rules::{Types, TypesMistake, Use, types},
    schema::Format,
    spelling::{is_pack_id, is_printable, is_sha256},
};
use nx_vulkan_abi::{DType, DTypeSet, Features};
use semver::{Version, VersionReq};
use std::ops::Range;

/// What is wrong with a text.
#[derive(Debug)]
pub(super) struct Mistake {
    pub(super) code: Code,
    /// The part of the text that is wrong, unless all of it is.
    pub(super) at: Option<Range<usize>>,
    pub(super) message: String,
}

/// Fails with what is wrong with the text.
pub(super) fn check_text(format: Format, text: &str) -> Result<(), Mistake> {
    let wrong = |code, message: String| {
        Err(Mistake {
            code,
            at: None,
            message,
        })
    };
    if text.is_empty() && format != Format::Condition {
        return wrong(Code::Empty, "the text is empty".to_owned());
    }
    match format {
        Format::Any if text.contains(|c: char| c.is_control() && !"\n\t".contains(c)) => wrong(
            Code::Control,
            "a control character has no place here".to_owned(),
        ),
        Format::Any => Ok(()),
        Format::PackId if is_pack_id(text) => Ok(()),
        Format::PackId => wrong(
            Code::PackId,
            "a pack id is made of 1 to 128 letters, digits, `.`, `_` and `-`, and is not `host`"
                .to_owned(),
        ),
        Format::Printable if is_printable(text) => Ok(()),
        Format::Printable => wrong(
            Code::Empty,
            "expected 1 to 128 printable characters without spaces".to_owned(),
        ),
        Format::Version => match Version::parse(text) {
            Ok(_) => Ok(()),
            Err(error) => wrong(
                Code::VersionRange,
                format!("`{}` is not a semantic version: {error}", shown(text)),
            ),
        },
        Format::VersionRange => match VersionReq::parse(text) {
            Ok(_) => Ok(()),
            Err(error) => wrong(
                Code::VersionRange,
                format!("`{}` is not a range of versions: {error}", shown(text)),
            ),
        },
        Format::Sha256 if is_sha256(text) => Ok(()),
        Format::Sha256 => wrong(
            Code::Sha256,
            "a sha256 is 64 hexadecimal digits; `nxv pack pin FILE` prints it".to_owned(),
        ),
        Format::TrustedKey if is_minisign_key(text) => Ok(()),
        Format::TrustedKey => wrong(
            Code::TrustedKey,
            "a minisign key is the line of 56 characters that begins with RW in the .pub file"
                .to_owned(),
        ),
        Format::OpPattern => {
            let ordinary = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '*');
            match text.char_indices().find(|(_, c)| !ordinary(*c)) {
                None => Ok(()),
                Some((at, c)) => Err(Mistake {
                    code: Code::Op,
                    at: Some(at..at + c.len_utf8()),
                    message: "the name of an op is made of letters, digits, `_` and `.`, and `*` for any text".to_owned(),
                }),
            }
        }
        Format::TypeSet => types(text)
            .map(drop)
            .map_err(|mistake| types_mistake(text, mistake)),
        Format::Types => Types::parse(text)
            .map(drop)
            .map_err(|mistake| types_mistake(text, mistake)),
        Format::Condition => Condition::parse(text).map(drop).map_err(|wrong| Mistake {
            code: Code::Condition,
            at: Some(wrong.span),
            message: wrong.message,
        }),
        Format::Feature if Features::from_name(text).is_some() => Ok(()),
        Format::Feature => {
            let known = Features(u64::MAX).names();
            // Vulkan's own name of a feature often has more behind it: coopmat_khr.
            let begins = known.iter().find(|name| text.starts_with(**name));
            let hint = match (did_you_mean(text, known.iter().copied()), begins) {
                (hint, Some(name)) if hint.is_empty() => format!("; did you mean `{name}`?"),
                (hint, None) if hint.is_empty() => format!("; there are `{}`", known.join("`, `")),
                (hint, _) => hint,
            };
            wrong(
                Code::Feature,
                format!("there is no device feature `{}`{hint}", shown(text)),
            )
        }
        Format::Use if Use::parse(text).is_some() => Ok(()),
        Format::Use => wrong(
            Code::Use,
            "expected \"pack\", \"pack/kernel\", \"host\" or \"*\"".to_owned(),
        ),
        Format::DriverRange => DriverRange::parse(text)
            .map(drop)
            .or_else(|why| wrong(Code::Driver, why)),
    }
}

/// Base64 of two letters for the algorithm, eight bytes of key id and 32 of key.
fn is_minisign_key(text: &str) -> bool {
    let base64 = |b: u8| b.is_ascii_alphanumeric() || b == b'+' || b == b'/';
    text.len() == 56 && text.starts_with("RW") && text.bytes().all(base64)
}

fn types_mistake(text: &str, mistake: TypesMistake<'_>) -> Mistake {
    match mistake {
        TypesMistake::Unknown(name) => {
            let known = DTypeSet::NAMED.iter().map(|set| set.0);
            let hint = did_you_mean(name, known.chain(DType::all().map(DType::name)));
            // `name` is a part of `text`.
            let start = name.as_ptr() as usize - text.as_ptr() as usize;
            let part = (name.len() < text.len() && !name.is_empty()).then(|| start..start + name.len());
            Mistake {
                code: Code::ElementType,
                at: part,
                message: format!("there is no type `{}`{hint}", shown(name)),
            }
        }
        TypesMistake::NoArrow => Mistake {
            code: Code::Signature,
            at: None,
            message: "a signature needs its result: \"f16,f16->f32\"; to list types, write one in each entry".to_owned(),
        },
        TypesMistake::NoOutput => Mistake {
            code: Code::Signature,
            at: None,
            message: "the signature has no result after `->`".to_owned(),
        },
    }
}
