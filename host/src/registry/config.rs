//! `registry.toml`, parsed and checked on its own; what is loaded and chosen by it is decided elsewhere.

use super::{
    diagnostic::{SourceText, did_you_mean},
    reader::Reader,
};
use crate::{DType, Error, Kind, Result};
use nx_vulkan_abi::{DTypeSet, Numerics};
use semver::VersionReq;
use std::{
    collections::BTreeMap,
    ops::Range,
    path::{Path, PathBuf},
};
use toml::de::{DeTable, DeValue};

/// The schema this version reads.
const SCHEMA: &str = "1";

const DTYPE_SETS: &[&str] = &["all", "real", "float", "integer", "signed", "unsigned"];

/// What happens to a request that no pack plans.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fallback {
    /// The CPU kernels run it.
    Host,
    /// It is an error, except where a rule names the host.
    Error,
}

/// Which packs may be loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// Every pack found in the search folders.
    Dev,
    /// The packs listed in the file, each with the content that it pins.
    Locked,
}

/// What a pack file must show before it is loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Require {
    /// The sha256 that the registry pins.
    Sha256,
    /// A signature by the pack's `signer`.
    Signature,
    /// Both.
    Both,
    /// Nothing; only in mode dev.
    None,
}

/// A key whose signatures count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustedKey {
    /// What `signer` calls it.
    pub name: String,
    /// A minisign public key, as minisign prints it.
    pub key: String,
}

/// `[trust]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trust {
    /// What every pack must show. Without it: a sha256 in mode locked, nothing in mode dev.
    pub require: Require,
    /// The keys that `signer` may name.
    pub keys: Vec<TrustedKey>,
}

/// One criterion of the order in which kernels are asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// The position in the rule's `use`.
    Rule,
    /// The measured time, shortest first; kernels without one come after those with one.
    Measured,
    /// The kernel's rank, highest first.
    Rank,
    /// The pack's priority, highest first.
    Priority,
    /// The ids of pack and kernel.
    Name,
}

/// What happens when a kernel that was picked fails while it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnError {
    /// The CPU kernel runs the request.
    RetryHost,
    /// The caller gets the error.
    Error,
}

/// `[dev]`: live reload, in mode dev only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dev {
    /// Folders that are watched; none: nothing is watched.
    pub watch: Vec<PathBuf>,
    /// How long a folder must be quiet before it is read, in milliseconds.
    pub settle_ms: u64,
    /// How often folders are compared where the system reports no changes, in milliseconds; 0: never.
    pub poll_ms: u64,
    /// Whether a pack is tried in a process of its own before it is loaded.
    pub probe: bool,
    /// How many versions of a pack can be gone back to.
    pub keep_versions: usize,
}

impl Default for Dev {
    fn default() -> Dev {
        Dev {
            watch: Vec::new(),
            settle_ms: 150,
            poll_ms: 0,
            probe: true,
            keep_versions: 3,
        }
    }
}

/// A checked configuration.
#[derive(Debug, Clone)]
pub(super) struct Config {
    pub(super) source: SourceText,
    pub(super) mode: Mode,
    pub(super) paths: Vec<PathBuf>,
    pub(super) store: Option<PathBuf>,
    pub(super) fallback: Fallback,
    /// Where `fallback` is set, for messages.
    pub(super) fallback_at: Option<usize>,
    pub(super) numerics: Numerics,
    pub(super) numerics_at: Option<usize>,
    pub(super) trust: Trust,
    pub(super) order: Vec<Order>,
    pub(super) on_error: OnError,
    /// Failures after which a kernel is no longer asked.
    pub(super) quarantine_after: u32,
    pub(super) dev: Dev,
    pub(super) packs: BTreeMap<String, PackEntry>,
    pub(super) rules: Vec<Rule>,
    pub(super) denials: Vec<Denial>,
}

/// One `[pack.<id>]`.
#[derive(Debug, Clone)]
pub(super) struct PackEntry {
    pub(super) at: Range<usize>,
    pub(super) version: Option<VersionReq>,
    /// A bare file name, looked for in the search folders, or a path.
    pub(super) file: Option<PathBuf>,
    /// Name of the key in `[trust]` that signs it.
    pub(super) signer: Option<String>,
    pub(super) priority: i64,
    /// sha256 of the file for this target, in lower-case hex.
    pub(super) pin: Option<String>,
}

/// One `[[op]]`.
#[derive(Debug, Clone)]
pub(super) struct Rule {
    pub(super) at: Range<usize>,
    pub(super) name: String,
    pub(super) dtypes: Option<DTypeSet>,
    pub(super) uses: Vec<(Use, Range<usize>)>,
}

/// One entry of a rule's `use`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Use {
    Kernel(String, String),
    Pack(String),
    Host,
    AnyPack,
}

/// One `[[deny]]`.
#[derive(Debug, Clone)]
pub(super) struct Denial {
    pub(super) at: Range<usize>,
    pub(super) pack: String,
    pub(super) op: Option<String>,
    pub(super) version: Option<VersionReq>,
    pub(super) reason: String,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            source: SourceText::new(Path::new(""), String::new()),
            mode: Mode::Dev,
            paths: Vec::new(),
            store: None,
            fallback: Fallback::Host,
            fallback_at: None,
            numerics: Numerics::IEEE,
            numerics_at: None,
            trust: Trust {
                require: Require::None,
                keys: Vec::new(),
            },
            order: vec![
                Order::Rule,
                Order::Measured,
                Order::Rank,
                Order::Priority,
                Order::Name,
            ],
            on_error: OnError::RetryHost,
            quarantine_after: 3,
            dev: Dev::default(),
            packs: BTreeMap::new(),
            rules: Vec::new(),
            denials: Vec::new(),
        }
    }
}

impl Config {
    /// Reads the file; fails with every mistake in it at once.
    pub(super) fn read(path: &Path) -> Result<Config> {
        let broken = |reason: String| Error::new(Kind::Registry, reason);
        let bytes = std::fs::read(path).map_err(|error| {
            broken(format!(
                "cannot read the registry {}: {error}",
                path.display()
            ))
        })?;
        let text = String::from_utf8(bytes).map_err(|error| {
            let valid = error.utf8_error().valid_up_to();
            let text = String::from_utf8_lossy(error.as_bytes()).into_owned();
            broken(SourceText::new(path, text).report(valid..valid, "the file is not UTF-8"))
        })?;
        Config::parse(path, text).map_err(broken)
    }

    pub(super) fn parse(path: &Path, text: String) -> std::result::Result<Config, String> {
        let source = SourceText::new(path, text);
        let document = DeTable::parse(source.text()).map_err(|error| {
            // The parser spreads what it expected over a second line.
            let message = error.message().replace('\n', ", ");
            source.report(error.span().unwrap_or_default(), &message)
        })?;
        let mut reader = Reader::new(&source);
        let parsed = read_document(&mut reader, document.get_ref());
        reader.finish()?;
        Ok(Config { source, ..parsed })
    }
}

fn read_document(reader: &mut Reader<'_>, root: &DeTable<'_>) -> Config {
    let mut config = Config::default();
    // An unknown schema gives one clear error, not one for each key it changed.
    match root
        .get("schema")
        .map(|value| (value.get_ref(), value.span()))
    {
        Some((DeValue::Integer(number), _)) if number.to_string() == SCHEMA => {}
        Some((_, span)) => {
            reader.error(span, format!("this version reads `schema = {SCHEMA}` only"));
            return config;
        }
        None => reader.error(0..0, format!("`schema = {SCHEMA}` is missing")),
    }
    reader.keys(
        root,
        "the file",
        &["schema", "mode", "search", "defaults", "pack", "op", "deny"],
    );
    if let Some((mode, _)) = reader.choice(
        root,
        "mode",
        &[("dev", Mode::Dev), ("locked", Mode::Locked)],
    ) {
        config.mode = mode;
    }
    if let Some(search) = reader.table(root, "search") {
        read_search(reader, search, &mut config);
    }
    if let Some(defaults) = reader.table(root, "defaults") {
        read_defaults(reader, defaults, &mut config);
    }
    let packs = reader.table(root, "pack").map(|packs| reader.tables(packs));
    for (key, table) in packs.unwrap_or_default() {
        let id = key.get_ref().to_string();
        if !super::is_pack_id(&id) {
            reader.error(
                key.span(),
                "a pack id is made of letters, digits, `.`, `_` and `-`, and is not `host`",
            );
        }
        let entry = read_pack(reader, &id, key.span(), table, config.mode);
        config.packs.insert(id, entry);
    }
    for (span, table) in reader.list_of_tables(root, "op") {
        config.rules.extend(read_rule(reader, span, table));
    }
    for (span, table) in reader.list_of_tables(root, "deny") {
        config.denials.extend(read_denial(reader, span, table));
    }
    if config.mode == Mode::Locked {
        check_names(reader, &config);
    }
    config
}

fn read_search(reader: &mut Reader<'_>, table: &DeTable<'_>, config: &mut Config) {
    reader.keys(table, "[search]", &["paths", "store"]);
    let folder = reader.source().folder().to_owned();
    let paths = reader.texts(table, "paths").unwrap_or_default();
    config.paths = paths
        .into_iter()
        .map(|(path, _)| folder.join(path))
        .collect();
    config.store = reader
        .text(table, "store")
        .map(|(path, _)| folder.join(path));
}

fn read_defaults(reader: &mut Reader<'_>, table: &DeTable<'_>, config: &mut Config) {
    reader.keys(table, "[defaults]", &["fallback", "numerics"]);
    let fallbacks = [("host", Fallback::Host), ("error", Fallback::Error)];
    if let Some((fallback, span)) = reader.choice(table, "fallback", &fallbacks) {
        (config.fallback, config.fallback_at) = (fallback, Some(span.start));
    }
    if let Some((numerics, span)) = reader.choice(table, "numerics", super::NUMERICS) {
        (config.numerics, config.numerics_at) = (numerics, Some(span.start));
    }
}

fn read_pack(
    reader: &mut Reader<'_>,
    id: &str,
    at: Range<usize>,
    table: &DeTable<'_>,
    mode: Mode,
) -> PackEntry {
    reader.keys(
        table,
        &format!("[pack.{id}]"),
        &["version", "file", "signer", "priority", "sha256"],
    );
    let mistakes = reader.mistakes();
    let pin = read_pin(reader, table);
    if pin.is_none() && mode == Mode::Locked && reader.mistakes() == mistakes {
        let target = super::target();
        reader.error(
            at.clone(),
            format!("pack `{id}` has no sha256 for {target}, which mode \"locked\" requires"),
        );
    }
    let folder = reader.source().folder().to_owned();
    PackEntry {
        at,
        version: read_version(reader, table),
        file: reader
            .text(table, "file")
            .map(|(file, _)| match Path::new(file).parent() {
                Some(parent) if parent.as_os_str().is_empty() => PathBuf::from(file),
                _ => folder.join(file),
            }),
        signer: reader
            .text(table, "signer")
            .map(|(name, _)| name.to_owned()),
        priority: reader.integer(table, "priority").unwrap_or(0),
        pin,
    }
}

/// `sha256 = "..."`, or a table of them by target. All are checked, the one for this target is kept.
fn read_pin(reader: &mut Reader<'_>, table: &DeTable<'_>) -> Option<String> {
    let value = table.get("sha256")?;
    let (key, by_target) = match value.get_ref() {
        DeValue::Table(by_target) => (super::target(), by_target),
        _ => ("sha256".to_owned(), table),
    };
    let targets: Vec<String> = match value.get_ref() {
        DeValue::Table(by_target) => by_target
            .keys()
            .map(|key| key.get_ref().to_string())
            .collect(),
        _ => vec![key.clone()],
    };
    let mut pin = None;
    for target in targets {
        let Some((hex, span)) = reader.text(by_target, &target) else {
            continue;
        };
        if hex.len() != 64 || !hex.bytes().all(|b| b.is_ascii_hexdigit()) {
            reader.error(span, "a sha256 is 64 hexadecimal digits");
        } else if target == key {
            pin = Some(hex.to_ascii_lowercase());
        }
    }
    pin
}

fn read_version(reader: &mut Reader<'_>, table: &DeTable<'_>) -> Option<VersionReq> {
    let (text, span) = reader.text(table, "version")?;
    match VersionReq::parse(text) {
        Ok(version) => Some(version),
        Err(error) => {
            reader.error(
                span,
                format!("`{text}` is not a range of versions: {error}"),
            );
            None
        }
    }
}

fn read_rule(reader: &mut Reader<'_>, at: Range<usize>, table: &DeTable<'_>) -> Option<Rule> {
    reader.keys(table, "[[op]]", &["name", "dtype", "use"]);
    let name = reader.required(table, at.clone(), "[[op]]", "name");
    let dtypes = reader.texts(table, "dtype").map(|names| {
        names.into_iter().fold(DTypeSet(0), |set, (name, span)| {
            let one = DTypeSet::from_names(&[name]);
            if one.is_none() {
                let known = DTYPE_SETS
                    .iter()
                    .copied()
                    .chain(DType::all().map(DType::name));
                reader.error(
                    span,
                    format!("there is no type `{name}`{}", did_you_mean(name, known)),
                );
            }
            DTypeSet(set.0 | one.unwrap_or(DTypeSet(0)).0)
        })
    });
    if table.get("use").is_none() {
        reader.error(at.clone(), "[[op]] needs `use`");
    }
    let uses = reader.texts(table, "use")?;
    if uses.is_empty() {
        reader.error(
            at.clone(),
            "`use` is empty; to forbid a pack, write [[deny]]",
        );
    }
    let uses = uses
        .into_iter()
        .filter_map(|(text, span)| read_use(reader, text, span))
        .collect();
    Some(Rule {
        at,
        name: name?.to_owned(),
        dtypes,
        uses,
    })
}

fn read_use(reader: &mut Reader<'_>, text: &str, at: Range<usize>) -> Option<(Use, Range<usize>)> {
    let entry = match text.split_once('/') {
        None if text == "host" => Use::Host,
        None if text == "*" => Use::AnyPack,
        None if super::is_pack_id(text) => Use::Pack(text.to_owned()),
        Some((pack, kernel)) if super::is_pack_id(pack) && !kernel.is_empty() => {
            Use::Kernel(pack.to_owned(), kernel.to_owned())
        }
        _ => {
            reader.error(at, "expected \"pack\", \"pack/kernel\", \"host\" or \"*\"");
            return None;
        }
    };
    Some((entry, at))
}

fn read_denial(reader: &mut Reader<'_>, at: Range<usize>, table: &DeTable<'_>) -> Option<Denial> {
    reader.keys(table, "[[deny]]", &["pack", "op", "version", "reason"]);
    let pack = reader.required(table, at.clone(), "[[deny]]", "pack");
    let reason = reader.required(table, at.clone(), "[[deny]]", "reason");
    let op = reader.text(table, "op").map(|(op, _)| op.to_owned());
    let version = read_version(reader, table);
    Some(Denial {
        at,
        pack: pack?.to_owned(),
        op,
        version,
        reason: reason?.to_owned(),
    })
}

/// In locked mode nothing but the listed packs exists, so a rule that names another one is a mistake.
fn check_names(reader: &mut Reader<'_>, config: &Config) {
    for (entry, span) in config.rules.iter().flat_map(|rule| &rule.uses) {
        if let Use::Kernel(pack, _) | Use::Pack(pack) = entry
            && !config.packs.contains_key(pack)
        {
            let hint = did_you_mean(pack, config.packs.keys().map(String::as_str));
            reader.error(span.clone(), format!("there is no [pack.{pack}]{hint}"));
        }
    }
}
