//! The command line: verbs, options and operands as data. What they do is elsewhere.

use nx_vulkan_host::{Config, DeviceChoice};
use std::path::PathBuf;

/// What to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verb {
    Devices,
    Ops,
    Explain,
    Bench,
    Check,
    Pack,
    Tune,
    Registry,
}

/// Every verb with its name.
pub(crate) const VERBS: [(&str, Verb); 8] = [
    ("devices", Verb::Devices),
    ("ops", Verb::Ops),
    ("explain", Verb::Explain),
    ("bench", Verb::Bench),
    ("check", Verb::Check),
    ("pack", Verb::Pack),
    ("tune", Verb::Tune),
    ("registry", Verb::Registry),
];

/// A command line that makes sense.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Parsed {
    Run(Box<Arguments>),
    /// Help in general, or on a verb.
    Help(Option<Verb>),
    Version,
}

/// A verb with its options.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Arguments {
    pub(crate) verb: Verb,
    pub(crate) json: bool,
    pub(crate) config: Config,
    /// Options of the verb, in order; a flag has no value.
    options: Vec<(&'static str, String)>,
    /// Everything that is no option.
    pub(crate) operands: Vec<String>,
}

/// Verbs whose words after the options mean something.
const TAKE_OPERANDS: &[Verb] = &[Verb::Explain, Verb::Pack, Verb::Registry];

/// An option: name, whether it takes a value, the verbs that have it (none: all).
struct Known(&'static str, bool, &'static [Verb]);

const OPTIONS: &[Known] = &[
    Known("--json", false, &[]),
    Known("--device", true, &[]),
    Known("--registry", true, &[]),
    Known("--packs", true, &[]),
    Known("--cache", true, &[]),
    Known("--validation", false, &[]),
    Known("--checked", false, &[]),
    Known("--attr", true, &[Verb::Explain]),
    Known("--out", true, &[Verb::Explain]),
    Known(
        "--filter",
        true,
        &[Verb::Ops, Verb::Bench, Verb::Check, Verb::Tune],
    ),
    Known("--markdown", false, &[Verb::Ops]),
    Known("--list", false, &[Verb::Bench]),
    Known("--host", false, &[Verb::Bench]),
    Known("--quick", false, &[Verb::Bench, Verb::Check, Verb::Pack]),
    Known("--seed", true, &[Verb::Check, Verb::Pack]),
    Known("--threads", true, &[Verb::Check, Verb::Pack]),
    Known("--budget", true, &[Verb::Tune]),
    Known("--into", true, &[Verb::Pack]),
    Known("--abi", true, &[Verb::Pack]),
    Known("--op", true, &[Verb::Pack]),
    Known("--for", true, &[Verb::Pack]),
    Known("--key", true, &[Verb::Pack]),
    Known("--group", true, &[Verb::Pack]),
    Known("--timeout", true, &[Verb::Pack]),
];

impl Verb {
    /// The name on the command line.
    pub(crate) fn name(self) -> &'static str {
        VERBS
            .iter()
            .find(|row| row.1 == self)
            .map_or("", |row| row.0)
    }
}

impl Arguments {
    /// The value of an option; the last one where it is given more than once.
    pub(crate) fn value(&self, option: &str) -> Option<&str> {
        self.values(option).last()
    }

    /// Every value of an option.
    pub(crate) fn values<'a>(&'a self, option: &str) -> impl Iterator<Item = &'a str> {
        self.options
            .iter()
            .filter(move |row| row.0 == option)
            .map(|row| row.1.as_str())
    }

    /// Names of the options that are given, those of every verb left out.
    pub(crate) fn given(&self) -> impl Iterator<Item = &'static str> {
        let of_all = |name| OPTIONS.iter().any(|o| o.0 == name && o.2.is_empty());
        self.options
            .iter()
            .map(|o| o.0)
            .filter(move |o| !of_all(*o))
    }

    /// Whether a flag is given.
    pub(crate) fn has(&self, flag: &str) -> bool {
        self.value(flag).is_some()
    }

    /// The value of an option as a number; the message says what is wrong with it.
    pub(crate) fn number<T: std::str::FromStr>(&self, option: &str) -> Result<Option<T>, String> {
        let parse = |text: &str| {
            text.parse()
                .map_err(|_| format!("{option}: expected a number, got: {text}"))
        };
        self.value(option).map(parse).transpose()
    }
}

/// Reads the words after the program's name; the message says what is wrong.
pub(crate) fn parse(words: &[String]) -> Result<Parsed, String> {
    let (mut options, mut plain) = (Vec::new(), Vec::new());
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--" => {
                plain.extend(words.by_ref().cloned());
                break;
            }
            "-h" | "--help" => options.push(("--help", String::new())),
            "-V" | "--version" => options.push(("--version", String::new())),
            option if option.starts_with('-') && option.len() > 1 => {
                let (name, given) = match option.split_once('=') {
                    Some((name, value)) => (name, Some(value.to_owned())),
                    None => (option, None),
                };
                let Some(known) = OPTIONS.iter().find(|known| known.0 == name) else {
                    return Err(format!(
                        "there is no option {name}{}",
                        similar(name, OPTIONS.iter().map(|o| o.0))
                    ));
                };
                let value = match (known.1, given) {
                    (true, Some(value)) => value,
                    (true, None) => words
                        .next()
                        .cloned()
                        .ok_or_else(|| format!("{name} needs a value"))?,
                    (false, None) => String::new(),
                    (false, Some(_)) => return Err(format!("{name} takes no value")),
                };
                options.push((known.0, value));
            }
            _ => plain.push(word.clone()),
        }
    }
    let given = |name: &str| options.iter().any(|option| option.0 == name);
    if given("--version") {
        return Ok(Parsed::Version);
    }
    let mut plain = plain.into_iter();
    let verb = match plain.next().as_deref() {
        None if given("--help") => return Ok(Parsed::Help(None)),
        None => {
            return Err(
                "expected a verb: devices, ops, explain, bench, check, pack, tune or registry"
                    .to_owned(),
            );
        }
        Some("help") => {
            return plain
                .next()
                .map(|name| verb(&name))
                .transpose()
                .map(Parsed::Help);
        }
        Some(name) => verb(name)?,
    };
    if given("--help") {
        return Ok(Parsed::Help(Some(verb)));
    }
    let operands: Vec<String> = plain.collect();
    if let (false, Some(word)) = (TAKE_OPERANDS.contains(&verb), operands.first()) {
        return Err(format!("{} takes no operands, got: {word}", verb.name()));
    }
    let foreign = |option: &&(&str, String)| {
        OPTIONS
            .iter()
            .any(|known| known.0 == option.0 && !known.2.is_empty() && !known.2.contains(&verb))
    };
    if let Some((name, _)) = options.iter().find(foreign) {
        return Err(format!("{} has no option {name}", verb.name()));
    }
    let config = config(&options);
    Ok(Parsed::Run(Box::new(Arguments {
        verb,
        json: given("--json"),
        config,
        options,
        operands,
    })))
}

fn verb(name: &str) -> Result<Verb, String> {
    let found = VERBS.iter().find(|row| row.0 == name).map(|row| row.1);
    found.ok_or_else(|| {
        format!(
            "there is no verb {name}{}",
            similar(name, VERBS.iter().map(|row| row.0))
        )
    })
}

/// The environment's configuration with the options applied.
fn config(options: &[(&'static str, String)]) -> Config {
    let mut config = Config::from_env();
    let mut packs = Vec::new();
    for (name, value) in options {
        match *name {
            "--device" => config.device = DeviceChoice::parse(value),
            "--registry" => {
                config.registry = Some(PathBuf::from(value));
                // Who runs the tool has the last word.
                config.registry_override = None;
            }
            "--cache" => config.cache_dir = Some(PathBuf::from(value)),
            "--packs" => packs.extend(std::env::split_paths(value)),
            "--validation" => config.validation = true,
            "--checked" => config.checked = true,
            _ => {}
        }
    }
    if !packs.is_empty() {
        config.packs = packs;
        config.environment.packs.clear();
    }
    config
}

/// `; did you mean X?`, where one of the names is close.
pub(crate) fn similar<'a>(word: &str, names: impl Iterator<Item = &'a str>) -> String {
    let closest = names.map(|name| (distance(word, name), name)).min();
    match closest {
        Some((distance, name)) if distance <= 2.max(word.len() / 3) => {
            format!("; did you mean {name}?")
        }
        _ => String::new(),
    }
}

/// Edits that turn one word into the other (Levenshtein 1966).
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.iter().enumerate() {
            let best = (diagonal + usize::from(x != *y))
                .min(row[j] + 1)
                .min(row[j + 1] + 1);
            diagonal = std::mem::replace(&mut row[j + 1], best);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Parsed, String> {
        parse(
            &line
                .split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>(),
        )
    }

    fn run(line: &str) -> Arguments {
        match parsed(line) {
            Ok(Parsed::Run(arguments)) => *arguments,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn options_stand_anywhere_and_with_or_without_equals() {
        let arguments = run("--json explain dot f32[2,2] --attr axes=0,1 f32[2,2] --out=f32[2]");
        assert!(arguments.json);
        assert_eq!(arguments.operands, ["dot", "f32[2,2]", "f32[2,2]"]);
        assert_eq!(arguments.values("--attr").collect::<Vec<_>>(), ["axes=0,1"]);
        assert_eq!(arguments.value("--out"), Some("f32[2]"));
        assert_eq!(run("check --seed 7").number::<u64>("--seed"), Ok(Some(7)));
        assert!(run("check --seed x").number::<u64>("--seed").is_err());
        assert!(run("bench --host").has("--host") && !run("bench").has("--host"));
    }

    #[test]
    fn options_of_the_host_end_up_in_its_config() {
        let config =
            run("ops --device 1 --packs a:b --packs c --registry r.toml --validation --checked")
                .config;
        assert_eq!(config.device, DeviceChoice::Index(1));
        assert_eq!(config.packs, ["a", "b", "c"].map(PathBuf::from));
        assert_eq!(config.registry, Some(PathBuf::from("r.toml")));
        assert!(config.validation && config.checked);
    }

    #[test]
    fn help_is_had_in_three_ways() {
        assert_eq!(parsed("--help"), Ok(Parsed::Help(None)));
        assert_eq!(parsed("help"), Ok(Parsed::Help(None)));
        for line in ["help bench", "bench --help", "-h bench"] {
            assert_eq!(parsed(line), Ok(Parsed::Help(Some(Verb::Bench))), "{line}");
        }
    }

    #[test]
    fn mistakes_are_named() {
        for (line, message) in [
            ("", "expected a verb"),
            ("expalin", "did you mean explain?"),
            ("bench --fliter x", "did you mean --filter?"),
            ("bench --filter", "--filter needs a value"),
            ("check --json=yes", "--json takes no value"),
            ("devices --seed 1", "devices has no option --seed"),
            ("ops f32[2]", "ops takes no operands"),
            ("help nothing", "there is no verb nothing"),
        ] {
            let got = parsed(line).unwrap_err();
            assert!(got.contains(message), "{line}: {got}");
        }
    }
}
