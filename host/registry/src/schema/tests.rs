//! The defaults and words of the table against what the reader makes of them.

use super::*;
use crate::{config::Config, document};
use std::path::Path;

/// The configuration that `table.key = value` makes, as text.
fn config(table: &str, key: &str, value: &str) -> String {
    let dotted = [table.trim_matches(['[', ']']), key].join(".");
    let dotted = dotted.trim_start_matches("the file.");
    let text = format!("schema = 1\n{dotted} = {value}\n");
    let config = document::parse(Path::new("r"), text).unwrap();
    format!(
        "{:?}",
        Config {
            source: Config::default().source,
            ..config
        }
    )
}

#[test]
fn control_characters_are_refused() {
    for escape in ["\\u001b[31m", "\\u0000"] {
        let text = format!("schema = 1\n[search]\nstore = \"{escape}\"\n");
        let found = document::parse(Path::new("r"), text).unwrap_err();
        let codes: Vec<String> = found.iter().map(|one| one.code.to_string()).collect();
        assert_eq!(codes, ["NXR035"]);
    }
}

#[test]
fn the_defaults_are_those_that_hold() {
    // What points into the file is left out.
    let places = |text: String| {
        let mut text = text;
        for name in ["mode_at", "fallback_at", "numerics_at"] {
            let start = text.find(name).unwrap();
            let end = start + text[start..].find(", ").unwrap();
            text.replace_range(start..end, name);
        }
        text
    };
    let otherwise = places(format!("{:?}", Config::default()));
    for block in [&FILE, &SEARCH, &TRUST, &DEFAULTS, &DEV] {
        for key in block.keys.iter().filter(|key| !key.default.is_empty()) {
            let same = places(config(block.name, key.name, key.default));
            assert_eq!(same, otherwise, "{}: {}", block.name, key.name);
        }
    }
}

#[test]
fn every_word_means_something_of_its_own() {
    for block in [&FILE, &TRUST, &DEFAULTS] {
        for key in block.keys {
            let Value::Word(words) = &key.value else {
                continue;
            };
            let mut meant: Vec<String> = words
                .iter()
                .map(|word| config(block.name, key.name, &format!("\"{word}\"")))
                .collect();
            meant.sort();
            meant.dedup();
            assert_eq!(meant.len(), words.len(), "{}", key.name);
        }
    }
}
