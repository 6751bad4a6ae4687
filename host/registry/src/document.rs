//! From a registry file to a [`Config`]: what the schema table cannot say about the file is checked here.

use super::{
    codes::Code,
    condition::Condition,
    config::{
        Config, Dev, Fallback, Measure, Mode, OnError, Order, PackEntry, Require, TrustedKey,
    },
    diagnostic::{Diagnostic, Severity, SourceText, did_you_mean, shown},
    driver::DriverRange,
    private,
    reader::{self, Reader},
    rules::{Denial, DeviceFilter, Rule, Types, Use},
    schema,
    target::target,
};
use nx_vulkan_ops::{Error, Kind, Result};
use semver::VersionReq;
use std::{
    ops::Range,
    path::{Path, PathBuf},
};
use toml::de::{DeTable, DeValue};

/// Bytes of a registry file.
const LARGEST: u64 = 1 << 20;

/// Reads the file; fails with every mistake in it at once.
pub(super) fn read(path: &Path) -> Result<Config> {
    diagnose(path).map_err(|found| {
        let found = found.iter().filter(|d| d.severity == Severity::Error);
        let reports: Vec<String> = found.map(Diagnostic::to_string).collect();
        Error::new(Kind::Registry, reports.join("\n"))
    })
}

/// Reads the file; fails with everything that there is to say about it.
pub(super) fn diagnose(path: &Path) -> std::result::Result<Config, Vec<Diagnostic>> {
    let (bytes, weaknesses) = read_bytes(path).map_err(|why| {
        let message = format!("cannot read the registry {}: {why}", path.display());
        vec![Diagnostic::unreadable(path, message)]
    })?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let text = String::from_utf8_lossy(error.as_bytes()).into_owned();
        let message = "the file is not UTF-8";
        let source = SourceText::new(path, text);
        vec![source.diagnostic(Code::Unreadable, Severity::Error, valid..valid, message)]
    })?;
    let parsed = parse(path, text)?;
    Ok(Config {
        weaknesses,
        ..parsed
    })
}

/// The same of its text, which `path` is the name of.
pub(super) fn parse(path: &Path, text: String) -> std::result::Result<Config, Vec<Diagnostic>> {
    let source = SourceText::new(path, text);
    let document = reader::document(source.text()).map_err(|(span, message)| {
        vec![source.diagnostic(Code::Syntax, Severity::Error, span, message)]
    })?;
    let mut reader = Reader::new(&source);
    let parsed = read_document(&mut reader, &document);
    let warnings = reader.finish()?;
    Ok(Config {
        source,
        warnings,
        ..parsed
    })
}

/// The content of a regular file of a reasonable size, so that a pipe or a device does not hold the host up, and who else
/// could have changed it.
fn read_bytes(path: &Path) -> std::result::Result<(Vec<u8>, Vec<String>), String> {
    let read = || {
        let opened = private::open_file(path, true)?;
        let meta = opened.file.metadata()?;
        if meta.is_file() && meta.len() > LARGEST {
            return Err(std::io::Error::other(format!(
                "it has more than {LARGEST} bytes"
            )));
        }
        let bytes = private::content(&opened.file, LARGEST)?;
        Ok((bytes, opened.weaknesses))
    };
    read().map_err(|error: std::io::Error| error.to_string())
}

fn read_document(reader: &mut Reader<'_>, root: &DeTable<'_>) -> Config {
    let mut config = Config::default();
    // An unknown schema gives one clear error, not one for each key it changed.
    if let Some(value) = root.get("schema")
        && reader.integer(root, "schema") != Some(schema::VERSION)
    {
        let message = format!("this version reads `schema = {}` only", schema::VERSION);
        reader.error(Code::Schema, value.span(), message);
        return config;
    }
    reader.check(root, 0..0, &schema::FILE);

    let modes = [("dev", Mode::Dev), ("locked", Mode::Locked)];
    if let Some((mode, span)) = reader.word(root, "mode", &modes) {
        (config.mode, config.mode_at) = (mode, Some(span.start));
    }
    if let Some(search) = reader.table(root, "search") {
        config.paths = paths(reader, search, "paths", &mut config);
        let folder = reader.source().folder();
        config.store = reader
            .text(search, "store")
            .map(|(path, _)| folder.join(path));
    }
    read_trust(reader, root, &mut config);
    if let Some(defaults) = reader.table(root, "defaults") {
        read_defaults(reader, defaults, &mut config);
    }
    let packs = reader.table(root, "pack").map(|packs| reader.tables(packs));
    for (key, table) in packs.unwrap_or_default() {
        let entry = read_pack(reader, key.get_ref(), key.span(), table, &config);
        config.packs.insert(key.get_ref().to_string(), entry);
    }
    for (span, table) in reader.list_of_tables(root, "op") {
        config.rules.extend(read_rule(reader, span, table));
    }
    for (span, table) in reader.list_of_tables(root, "deny") {
        config.denials.extend(read_denial(reader, span, table));
    }
    if let Some(dev) = root.get("dev") {
        read_dev(reader, root, dev.span(), &mut config);
    }
    if config.mode == Mode::Locked {
        check_names(reader, &config);
    }
    config
}

/// A list of folders, which is also noted in `config.folders`.
fn paths(reader: &Reader<'_>, table: &DeTable<'_>, key: &str, config: &mut Config) -> Vec<PathBuf> {
    let folder = reader.source().folder();
    let texts = reader.texts(table, key).into_iter();
    let placed: Vec<_> = texts
        .map(|(path, span)| (folder.join(path), span))
        .collect();
    config.folders.extend(placed.iter().cloned());
    placed.into_iter().map(|(path, _)| path).collect()
}

fn read_trust(reader: &mut Reader<'_>, root: &DeTable<'_>, config: &mut Config) {
    if config.mode == Mode::Locked {
        config.trust.require = Require::Sha256;
    }
    let Some(table) = reader.table(root, "trust") else {
        return;
    };
    let words = [
        ("sha256", Require::Sha256),
        ("signature", Require::Signature),
        ("both", Require::Both),
        ("none", Require::None),
    ];
    if let Some((require, span)) = reader.word(table, "require", &words) {
        config.trust.require = require;
        if require == Require::None && config.mode == Mode::Locked {
            let message = "mode \"locked\" requires a sha256, a signature or both";
            reader.error(Code::Untrusting, span, message);
        }
    }
    for (_, row) in reader.list_of_tables(table, "minisign") {
        let (Some((name, span)), Some((key, _))) =
            (reader.text(row, "name"), reader.text(row, "key"))
        else {
            continue;
        };
        if config.trust.keys.iter().any(|known| known.name == name) {
            let message = format!("there is another key `{}`", shown(name));
            reader.error(Code::Repeated, span, message);
        }
        config.trust.keys.push(TrustedKey {
            name: name.to_owned(),
            key: key.to_owned(),
        });
    }
}

fn read_defaults(reader: &mut Reader<'_>, table: &DeTable<'_>, config: &mut Config) {
    let fallbacks = [("host", Fallback::Host), ("error", Fallback::Error)];
    if let Some((fallback, span)) = reader.word(table, "fallback", &fallbacks) {
        (config.fallback, config.fallback_at) = (fallback, Some(span.start));
    }
    if let Some((numerics, span)) = reader.word(table, "numerics", schema::CLASSES) {
        (config.numerics, config.numerics_at) = (numerics, Some(span.start));
    }
    let policies = [
        ("retry-host", OnError::RetryHost),
        ("error", OnError::Error),
    ];
    if let Some((policy, _)) = reader.word(table, "on_error", &policies) {
        config.on_error = policy;
    }
    let places = [("cpu", Measure::Cpu), ("never", Measure::Never)];
    if let Some((measure, _)) = reader.word(table, "measure", &places) {
        config.measure = measure;
    }
    if let Some(count) = reader.integer(table, "quarantine_after") {
        config.quarantine_after = count;
    }
    if table.contains_key("order") {
        config.order = read_order(reader, table);
    }
}

fn read_order(reader: &mut Reader<'_>, table: &DeTable<'_>) -> Vec<Order> {
    let words = [
        ("rule", Order::Rule),
        ("measured", Order::Measured),
        ("rank", Order::Rank),
        ("priority", Order::Priority),
        ("name", Order::Name),
    ];
    let mut order = Vec::new();
    for (word, span) in reader.texts(table, "order") {
        let Some((_, criterion)) = words.iter().find(|(name, _)| *name == word) else {
            continue;
        };
        if order.contains(criterion) {
            let message = format!("`{word}` is there already");
            reader.error(Code::Repeated, span, message);
        }
        order.push(*criterion);
    }
    order
}

fn read_pack(
    reader: &mut Reader<'_>,
    id: &str,
    at: Range<usize>,
    table: &DeTable<'_>,
    config: &Config,
) -> PackEntry {
    let (require, keys) = (config.trust.require, &config.trust.keys);
    let wants_pin = matches!(require, Require::Sha256 | Require::Both);
    let wants_signer = matches!(require, Require::Signature | Require::Both);
    let target = target();
    let id = shown(id);
    if config.mode == Mode::Locked && wants_pin && !has_pin(table, &target) {
        let message =
            format!("pack `{id}` has no sha256 for {target}, which mode \"locked\" requires");
        reader.error(Code::NoPin, at.clone(), message);
    }
    let signer = reader.text(table, "signer");
    if config.mode == Mode::Locked && wants_signer && !table.contains_key("signer") {
        let message = format!("pack `{id}` has no `signer`, and [trust] requires signatures");
        reader.error(Code::NoSigner, at.clone(), message);
    }
    let folder = reader.source().folder();
    let file = reader
        .text(table, "file")
        .map(|(file, _)| match Path::new(file).parent() {
            Some(parent) if parent.as_os_str().is_empty() => PathBuf::from(file),
            _ => folder.join(file),
        });
    let entry = PackEntry {
        at,
        version: read_version(reader, table),
        file,
        signer: signer.as_ref().map(|(name, _)| (*name).to_owned()),
        priority: reader.integer(table, "priority").unwrap_or(0),
        pin: read_pin(reader, table, &target),
    };
    if let (Some(name), Some((_, span))) = (&entry.signer, signer)
        && !keys.iter().any(|key| key.name == *name)
    {
        let hint = did_you_mean(name, keys.iter().map(|key| key.name.as_str()));
        let message = format!("[trust] has no key `{}`{hint}", shown(name));
        reader.error(Code::UnknownSigner, span, message);
    }
    entry
}

/// Whether there is one, right or wrong.
fn has_pin(table: &DeTable<'_>, target: &str) -> bool {
    match table.get("sha256").map(|value| value.get_ref()) {
        Some(DeValue::Table(targets)) => targets.contains_key(target),
        other => other.is_some(),
    }
}

/// `sha256 = "..."`, or a table of them by target.
fn read_pin(reader: &Reader<'_>, table: &DeTable<'_>, target: &str) -> Option<String> {
    let pin = match reader.table(table, "sha256") {
        Some(targets) => reader.text(targets, target),
        None => reader.text(table, "sha256"),
    };
    pin.map(|(hex, _)| hex.to_ascii_lowercase())
}

fn read_version(reader: &Reader<'_>, table: &DeTable<'_>) -> Option<VersionReq> {
    VersionReq::parse(reader.text(table, "version")?.0).ok()
}

fn read_rule(reader: &Reader<'_>, at: Range<usize>, table: &DeTable<'_>) -> Option<Rule> {
    let (name, name_at) = reader.text(table, "name")?;
    let texts = |key| reader.texts(table, key).into_iter();
    Some(Rule {
        at,
        name: name.to_owned(),
        name_at,
        types: texts("dtype")
            .filter_map(|(text, _)| Types::parse(text).ok())
            .collect(),
        shape: texts("shape")
            .filter_map(|(text, _)| Condition::parse(text).ok())
            .collect(),
        needs: reader.features(table),
        uses: texts("use")
            .filter_map(|(text, span)| Some((Use::parse(text)?, span)))
            .collect(),
    })
}

fn read_denial(reader: &Reader<'_>, at: Range<usize>, table: &DeTable<'_>) -> Option<Denial> {
    let device = reader.table(table, "device").map(|device| DeviceFilter {
        vendor: reader.integer(device, "vendor"),
        name: reader
            .text(device, "name")
            .map(|(name, _)| name.to_lowercase()),
        driver: reader
            .text(device, "driver")
            .and_then(|(range, _)| DriverRange::parse(range).ok()),
    });
    Some(Denial {
        at,
        pack: reader.text(table, "pack")?.0.to_owned(),
        op: reader
            .text(table, "op")
            .map(|(op, span)| (op.to_owned(), span)),
        version: read_version(reader, table),
        device,
        reason: reader.text(table, "reason")?.0.to_owned(),
    })
}

fn read_dev(reader: &mut Reader<'_>, root: &DeTable<'_>, at: Range<usize>, config: &mut Config) {
    if config.mode == Mode::Locked {
        let message = "nothing is watched or reloaded in mode \"locked\"";
        reader.warning(Code::DevInLocked, at, message);
        return;
    }
    let Some(table) = reader.table(root, "dev") else {
        return;
    };
    let otherwise = Dev::default();
    config.dev = Dev {
        watch: paths(reader, table, "watch", config),
        settle_ms: reader
            .integer(table, "settle_ms")
            .unwrap_or(otherwise.settle_ms),
        poll_ms: reader
            .integer(table, "poll_ms")
            .unwrap_or(otherwise.poll_ms),
        probe: reader.boolean(table, "probe").unwrap_or(otherwise.probe),
        keep_versions: reader
            .integer(table, "keep_versions")
            .unwrap_or(otherwise.keep_versions),
    };
}

/// In locked mode nothing but the listed packs exists, so a rule that names another one is a mistake.
fn check_names(reader: &mut Reader<'_>, config: &Config) {
    for (entry, span) in config.rules.iter().flat_map(|rule| &rule.uses) {
        if let Use::Kernel(pack, _) | Use::Pack(pack) = entry
            && !config.packs.contains_key(pack)
        {
            let hint = did_you_mean(pack, config.packs.keys().map(String::as_str));
            let message = format!("there is no [pack.{}]{hint}", shown(pack));
            reader.error(Code::Pack, span.clone(), message);
        }
    }
}
