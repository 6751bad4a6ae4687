//! minisign signatures of pack files: `<file>.minisig`, by a key that the registry trusts. Nothing here signs.
//!
//! A signature counts for one version of one pack: its trusted comment carries what [`comment`] gives, so that a
//! signature of an older or of another pack cannot stand in.

use super::{
    config::{Trust, TrustedKey},
    diagnostic::{clean, did_you_mean},
    identity::Identity,
    loader::{self, PackFile},
};
use minisign_verify::{Error, PublicKey, Signature};
use std::path::PathBuf;

/// Largest signature that is read.
const MAX_BYTES: u64 = 1 << 20;

/// Characters of a comment that a message repeats.
const MAX_QUOTED: usize = 200;

/// What the trusted comment of a pack's signature has to contain, as words of their own: `id=ID version=VERSION abi=ABI`.
pub fn comment(id: &str, version: &str, abi: &str) -> String {
    format!("id={id} version={version} abi={abi}")
}

/// Checks the signature beside `file` against the key of `signer`, or without one against every trusted key.
pub(super) fn check(
    file: &PackFile,
    identity: &Identity,
    trust: &Trust,
    signer: Option<&str>,
) -> Result<(), String> {
    let mut path = file.path.clone().into_os_string();
    path.push(".minisig");
    let path = PathBuf::from(path);
    let (bytes, _) = loader::read(&path, MAX_BYTES)
        .map_err(|why| format!("{}: {}", path.display(), why.trim_start_matches("read: ")))?;
    let text = String::from_utf8(bytes).ok();
    let signature = text.and_then(|text| Signature::decode(&text).ok());
    let signature =
        signature.ok_or_else(|| format!("{} is not a minisign signature", path.display()))?;
    let name = verify(file, &signature, &keys(trust, signer)?)?;
    let id = &identity.id;
    let wanted = comment(id, &identity.version.to_string(), &identity.abi);
    let told: Vec<&str> = signature
        .trusted_comment()
        .split_ascii_whitespace()
        .collect();
    let lacks = |word: &&str| !told.contains(word);
    match wanted.split(' ').find(lacks) {
        None => Ok(()),
        Some(word) => Err(format!(
            "`{name}` signed it with the trusted comment \"{}\", which lacks {word}",
            clean(signature.trusted_comment(), MAX_QUOTED)
        )),
    }
}

/// The keys that count.
fn keys<'a>(trust: &'a Trust, signer: Option<&str>) -> Result<Vec<&'a TrustedKey>, String> {
    let keys = trust.keys.iter();
    let Some(signer) = signer else {
        return Ok(keys.collect());
    };
    let key = keys.clone().find(|key| key.name == signer);
    key.map(|key| vec![key]).ok_or_else(|| {
        let hint = did_you_mean(signer, keys.map(|key| key.name.as_str()));
        format!("the registry has no key `{signer}`{hint}")
    })
}

/// The name of the key that made the signature over the bytes that were read.
fn verify<'a>(
    file: &PackFile,
    signature: &Signature,
    keys: &[&'a TrustedKey],
) -> Result<&'a str, String> {
    let bytes = file.bytes()?;
    for key in keys {
        let public = PublicKey::from_base64(key.key.trim())
            .map_err(|error| format!("the registry's key `{}` is damaged: {error}", key.name))?;
        match public.verify(bytes, signature, false) {
            Ok(()) => return Ok(&key.name),
            Err(Error::UnexpectedKeyId) => {}
            Err(Error::UnexpectedAlgorithm) => {
                return Err(
                    "it is signed in minisign's old form; sign it again with a newer one"
                        .to_owned(),
                );
            }
            Err(_) => {
                return Err(format!(
                    "the signature by `{}` is not one of this file",
                    key.name
                ));
            }
        }
    }
    let names: Vec<_> = keys.iter().map(|key| format!("`{}`", key.name)).collect();
    Err(match names.as_slice() {
        [] => "the registry trusts no key".to_owned(),
        names => format!("it is not signed by {}", names.join(" or ")),
    })
}
