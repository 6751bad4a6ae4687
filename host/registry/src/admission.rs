//! Whether the registry admits a file: by its list, pins, signatures and ranges of versions. It maps nothing.

use super::{
    config::{Config, Mode, PackEntry, Require},
    identity::Identity,
    loaded::FoundPack,
    loader::PackFile,
    signature,
};

/// The listed pack that a file without a name in the registry is: by its pin, or where a signature will do, by
/// what it calls itself.
pub(super) fn listed<'a>(
    config: &'a Config,
    file: &PackFile,
    inspected: &Result<Identity, String>,
) -> Option<&'a str> {
    let by_pin = |entry: &PackEntry| entry.pin.as_ref() == Some(&file.sha256);
    let by_name = |id: &str, entry: &PackEntry| {
        config.trust.require == Require::Signature
            && entry.pin.is_none()
            && inspected.as_ref().is_ok_and(|identity| identity.id == id)
    };
    let mut unnamed = config
        .packs
        .iter()
        .filter(|(_, entry)| entry.file.is_none());
    let listed = unnamed.find(|(id, entry)| by_pin(entry) || by_name(id, entry));
    listed.map(|(id, _)| id.as_str())
}

/// What the registry requires a pack to show.
pub(super) fn check_trust(
    config: &Config,
    file: &PackFile,
    identity: &Identity,
    wanted: Option<&str>,
) -> Result<(), String> {
    let trust = &config.trust;
    let entry = config.packs.get(wanted.unwrap_or(&identity.id));
    let require = match (trust.require, config.mode) {
        (Require::None, Mode::Locked) => Require::Sha256,
        (require, _) => require,
    };
    let is_pinned = entry.is_some_and(|entry| entry.pin.is_some());
    if matches!(require, Require::Sha256 | Require::Both) && !is_pinned {
        return Err(format!(
            "sha256: the registry requires one and pins none; the file has {}",
            file.sha256
        ));
    }
    if matches!(require, Require::Signature | Require::Both) {
        let signer = entry.and_then(|entry| entry.signer.as_deref());
        return signature::check(file, identity, trust, signer)
            .map_err(|why| format!("signature: {why}"));
    }
    Ok(())
}

/// Whether the registry names the content or the signer of a pack that passed [`check_trust`].
pub(super) fn is_vouched(config: &Config, id: &str) -> bool {
    let is_pinned = config
        .packs
        .get(id)
        .is_some_and(|entry| entry.pin.is_some());
    is_pinned || config.mode == Mode::Locked || config.trust.require != Require::None
}

/// Whether a pack of that identity may be loaded from that file.
pub(super) fn check_identity(
    config: &Config,
    loaded: &[FoundPack],
    wanted: Option<&str>,
    identity: &Identity,
    file: &PackFile,
) -> Result<(), String> {
    let entry = config.packs.get(&identity.id);
    match wanted {
        Some(wanted) if wanted != identity.id => {
            return Err(format!(
                "metadata: it is pack `{}`, the registry expects `{wanted}`",
                identity.id
            ));
        }
        None if entry.is_some_and(|entry| entry.file.is_some()) => {
            return Err(format!(
                "metadata: the registry names another file for pack `{}`",
                identity.id
            ));
        }
        _ => {}
    }
    if let Some(other) = loaded.iter().find(|pack| pack.image.id == identity.id) {
        let path = other.path.display();
        return Err(format!(
            "metadata: pack `{}` is already loaded from {path}",
            identity.id
        ));
    }
    let Some(entry) = entry else { return Ok(()) };
    file.check_pin(Some(entry))?;
    match &entry.version {
        Some(range) if !range.matches(&identity.version) => Err(format!(
            "metadata: version {} is not in the range \"{range}\"",
            identity.version
        )),
        _ => Ok(()),
    }
}
