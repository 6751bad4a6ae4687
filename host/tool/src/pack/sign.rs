//! `nxv pack keygen` and `nxv pack sign`: minisign signatures whose trusted comment names what is signed.

use super::{file, trouble};
use crate::{
    args::Arguments,
    output::{Outcome, Problem},
};
use minisign::{KeyPair, PublicKey, SecretKey, SecretKeyBox};
use nx_vulkan_host::{Error, Kind};
use nx_vulkan_registry as registry;
use std::{
    io::Write as _,
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

/// Environment variable with the password of the secret key.
const PASSWORD: &str = "NX_VULKAN_KEY_PASSWORD";
const DEFAULT_KEY: &str = "nx-vulkan.key";

/// Writes a new pair of keys; keys that are there are never written over.
pub(crate) fn keygen(arguments: &Arguments, _: &str) -> Result<Outcome, Problem> {
    let secret = PathBuf::from(arguments.value("--key").unwrap_or(DEFAULT_KEY));
    let public = with(&secret, ".pub");
    let password = password();
    let pair = match &password {
        Some(password) => KeyPair::generate_encrypted_keypair(Some(password.clone())),
        None => KeyPair::generate_unencrypted_keypair(),
    };
    let pair = pair.map_err(|error| failure(&error))?;
    let boxed = pair.sk.to_box(None).map_err(|error| failure(&error))?;
    let public_box = pair.pk.to_box().map_err(|error| failure(&error))?;
    create(&secret, 0o600, &boxed.into_string())?;
    create(&public, 0o644, &public_box.into_string())?;
    let key = pair.pk.to_base64();
    let mut text = format!(
        "{} is secret, {} is public. For the registry:\n\n[trust]\nminisign = [{{ name = \"me\", key = \"{key}\" }}]\n",
        secret.display(),
        public.display()
    );
    if password.is_none() {
        text.push_str(&format!(
            "\nThe secret key is not encrypted; set {PASSWORD} to make one that is.\n"
        ));
    }
    Ok(Outcome {
        text,
        json: serde_json::json!({ "secret": secret, "public": public, "key": key, "encrypted": password.is_some() }),
        holds: true,
    })
}

/// Signs the file, checks the signature, and writes it beside the file.
pub(crate) fn run(arguments: &Arguments, operand: &str) -> Result<Outcome, Problem> {
    let key = arguments
        .value("--key")
        .ok_or_else(|| Problem::Usage("pack sign needs --key FILE".to_owned()))?;
    let path = file(operand)?;
    let facts = registry::facts(&path)?;
    let secret = read_key(Path::new(key))?;
    let public = PublicKey::from_secret_key(&secret).map_err(|error| failure(&error))?;
    // The signature of a pack without code is one of its hash.
    let bytes = match path.is_dir() {
        true => facts.sha256.clone().into_bytes(),
        false => std::fs::read(&path).map_err(|error| trouble(&path, &error))?,
    };
    let comment = format!(
        "id={} version={} abi={}",
        facts.id, facts.version, facts.abi
    );
    let untrusted = format!("signature of {} {}", facts.id, facts.version);
    let signature = minisign::sign(
        Some(&public),
        &secret,
        bytes.as_slice(),
        Some(&comment),
        Some(&untrusted),
    )
    .map_err(|error| failure(&error))?;
    minisign::verify(
        &public,
        &signature,
        std::io::Cursor::new(&bytes),
        true,
        false,
        false,
    )
    .map_err(|error| failure(&error))?;
    let to = with(&path, ".minisig");
    std::fs::write(&to, signature.into_string()).map_err(|error| trouble(&to, &error))?;
    Ok(Outcome {
        text: format!("{}: {comment}\n", to.display()),
        json: serde_json::json!({ "signature": to, "comment": comment, "key": public.to_base64() }),
        holds: true,
    })
}

fn read_key(path: &Path) -> Result<SecretKey, Problem> {
    let text = std::fs::read_to_string(path).map_err(|error| trouble(path, &error))?;
    let boxed = || SecretKeyBox::from_string(&text).map_err(|error| failure(&error));
    match password() {
        Some(password) => SecretKey::from_box(boxed()?, Some(password)),
        None => SecretKey::from_unencrypted_box(boxed()?),
    }
    .map_err(|error| {
        let hint = format!("{}: {error}; is {PASSWORD} right?", path.display());
        Problem::Failure(Error::new(Kind::BadInput, hint))
    })
}

fn password() -> Option<String> {
    std::env::var(PASSWORD).ok().filter(|text| !text.is_empty())
}

fn create(path: &Path, mode: u32, text: &str) -> Result<(), Problem> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true).mode(mode);
    options
        .open(path)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(|error| trouble(path, &error))
}

/// The path with something after its name.
fn with(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

fn failure(error: &dyn std::fmt::Display) -> Problem {
    Problem::Failure(Error::new(Kind::BadInput, error.to_string()))
}
