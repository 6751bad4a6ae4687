//! `nxv pack keygen` and `nxv pack sign`: minisign signatures whose trusted comment names what is signed.

use super::file::{path, trouble};
use crate::{
    global::Global,
    output::{Answer, Outcome, Problem, shown},
};
use minisign::{KeyPair, PublicKey, PublicKeyBox, SecretKey, SecretKeyBox};
use nx_vulkan_host::{Error, Kind};
use nx_vulkan_registry as registry;
use std::{
    io::Write as _,
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

/// Environment variable with the password of the secret key.
const PASSWORD: &str = "NX_VULKAN_KEY_PASSWORD";

/// Make a key to sign packs with.
///
/// $NX_VULKAN_KEY_PASSWORD protects it; without, it is not encrypted.
#[derive(Debug, clap::Args)]
pub(crate) struct Keygen {
    /// Where the secret key goes; FILE.pub is the public one
    #[arg(long, value_name = "FILE", default_value = "nx-vulkan.key")]
    key: PathBuf,
}

impl Keygen {
    /// Writes a new pair of keys; keys that are there are never written over.
    pub(crate) fn run(&self, _: &Global) -> Answer {
        let (secret, public) = (&self.key, with(&self.key, ".pub"));
        let password = password();
        let pair = match &password {
            Some(password) => KeyPair::generate_encrypted_keypair(Some(password.clone())),
            None => KeyPair::generate_unencrypted_keypair(),
        };
        let pair = pair.map_err(|error| failure(&error))?;
        let boxed = pair.sk.to_box(None).map_err(|error| failure(&error))?;
        let public_box = pair.pk.to_box().map_err(|error| failure(&error))?;
        create(secret, 0o600, &boxed.into_string())?;
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
        let json = serde_json::json!({
            "secret": shown(secret), "public": shown(&public), "key": key, "encrypted": password.is_some(),
        });
        Ok(Outcome::good(text, json))
    }
}

/// Write FILE.minisig, whose trusted comment names id, version and ABI.
///
/// $NX_VULKAN_KEY_PASSWORD opens the key, where it is encrypted.
#[derive(Debug, clap::Args)]
#[command(after_help = "Exit code: 1 when the signature fails.")]
pub(crate) struct Sign {
    /// The library of the pack, or the folder of one without code
    #[arg(value_parser = path())]
    file: PathBuf,

    /// The secret key
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
}

impl Sign {
    /// Signs the file, checks the signature, and writes it beside the file.
    pub(crate) fn run(&self, _: &Global) -> Answer {
        let facts = registry::facts(&self.file)?;
        let secret = read_key(&self.key)?;
        let public = PublicKey::from_secret_key(&secret).map_err(|error| failure(&error))?;
        // The signature of a pack without code is one of its hash.
        let bytes = match self.file.is_dir() {
            true => facts.sha256.clone().into_bytes(),
            false => std::fs::read(&self.file).map_err(|error| trouble(&self.file, &error))?,
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
        let to = with(&self.file, ".minisig");
        std::fs::write(&to, signature.into_string()).map_err(|error| trouble(&to, &error))?;
        let text = format!("{}: {comment}\n", to.display());
        let json = serde_json::json!({ "signature": shown(&to), "comment": comment, "key": public.to_base64() });
        Ok(Outcome::good(text, json))
    }
}

fn read_key(path: &Path) -> Result<SecretKey, Problem> {
    let text = std::fs::read_to_string(path).map_err(|error| trouble(path, &error))?;
    if PublicKeyBox::from_string(&text).is_ok_and(|key| PublicKey::from_box(key).is_ok()) {
        let why = format!(
            "{}: it is a public key; name the secret one",
            path.display()
        );
        return Err(failure(&why));
    }
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
