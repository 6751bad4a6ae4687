//! `nxv pack pin`: the registry entry that lets exactly this file in.

use super::file::{path, trouble};
use crate::{
    global::Global,
    output::{Answer, Outcome, Problem, shown},
};
use nx_vulkan_host::{Error, Kind};
use nx_vulkan_registry as registry;
use std::{
    io::Write as _,
    path::{Path, PathBuf},
};
use toml_edit::{Decor, DocumentMut, Item, Table, value};

/// Print the registry entry with the sha256 of the pack, or put it into the file of --registry.
#[derive(Debug, clap::Args)]
pub(crate) struct Pin {
    /// The library of the pack, or the folder of one without code
    #[arg(value_parser = path())]
    file: PathBuf,
}

impl Pin {
    /// Prints the entry, or puts it into the registry file and keeps everything else of that file as it is.
    pub(crate) fn run(&self, global: &Global) -> Answer {
        let facts = registry::facts(&self.file)?;
        let target = registry::target();
        let name = self.file.file_name().unwrap_or_default().to_string_lossy();
        let entry = Entry {
            id: &facts.id,
            version: &facts.version,
            file: &name,
            target: &target,
            sha256: &facts.sha256,
        };
        let text = match &global.registry {
            None => {
                let mut document = DocumentMut::new();
                entry.put(&mut document).map_err(failure)?;
                document.to_string()
            }
            Some(registry) => {
                let before = match std::fs::read_to_string(registry) {
                    Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                        "schema = 1\n".to_owned()
                    }
                    read => read.map_err(|error| trouble(registry, &error))?,
                };
                let mut document: DocumentMut = before
                    .parse()
                    .map_err(|error| failure(format!("{}: {error}", registry.display())))?;
                entry
                    .put(&mut document)
                    .map_err(|why| failure(format!("{}: {why}", registry.display())))?;
                let mut text = document.to_string();
                let lines = before.matches('\n').count();
                if lines > 0 && before.matches("\r\n").count() == lines {
                    text = text.replace("\r\n", "\n").replace('\n', "\r\n");
                }
                replace(registry, &text)?;
                format!(
                    "{}: pack {} {} is pinned to {} for {target}\n",
                    registry.display(),
                    facts.id,
                    facts.version,
                    facts.sha256
                )
            }
        };
        let json = serde_json::json!({
            "id": facts.id, "version": facts.version, "target": target, "sha256": facts.sha256,
            "registry": global.registry.as_deref().map(shown),
        });
        Ok(Outcome::good(text, json))
    }
}

struct Entry<'a> {
    id: &'a str,
    version: &'a str,
    file: &'a str,
    target: &'a str,
    sha256: &'a str,
}

impl Entry<'_> {
    /// Sets the sha256 of this target, and what a new entry needs besides. Pins of other targets stay; a pin without a
    /// target would say of them all what is true of this one, so it makes way.
    fn put(&self, document: &mut DocumentMut) -> Result<(), String> {
        let packs = document.entry("pack").or_insert_with(|| implicit().into());
        let packs = packs.as_table_like_mut().ok_or("`pack` is not a table")?;
        let new = !packs.contains_key(self.id);
        if new {
            packs.insert(self.id, Table::new().into());
        }
        let entry = packs.get_mut(self.id).ok_or("`pack` is not a table")?;
        let entry = entry
            .as_table_like_mut()
            .ok_or_else(|| format!("`pack.{}` is not a table", self.id))?;
        if new {
            entry.insert("version", value(format!("={}", self.version)));
            entry.insert("file", value(self.file));
        }
        // What follows a value on its line is a comment of the user.
        let mut decor = Decor::default();
        if !entry.get("sha256").is_some_and(Item::is_table_like) {
            if let Some(old) = entry.get("sha256").and_then(Item::as_value) {
                decor = old.decor().clone();
            }
            entry.insert("sha256", Table::new().into());
        }
        let pins = entry.get_mut("sha256").and_then(Item::as_table_like_mut);
        let pins = pins.ok_or("`sha256` is not a table")?;
        match pins.get_mut(self.target).and_then(Item::as_value_mut) {
            Some(old) => {
                let decor = old.decor().clone();
                *old = self.sha256.into();
                *old.decor_mut() = decor;
            }
            None => {
                pins.insert(self.target, value(self.sha256));
                if let Some(new) = pins.get_mut(self.target).and_then(Item::as_value_mut) {
                    *new.decor_mut() = decor;
                }
            }
        }
        Ok(())
    }
}

fn implicit() -> Table {
    let mut table = Table::new();
    table.set_implicit(true);
    table
}

/// Replaces the file by renaming, so that a running VM that watches it never reads half of it. Where it is a link, that stays one.
fn replace(path: &Path, text: &str) -> Result<(), Problem> {
    let file = path.canonicalize().or_else(|_| {
        // It leads to a file that is yet to come.
        let to = path.read_link()?;
        Ok::<_, std::io::Error>(path.parent().unwrap_or(Path::new("")).join(to))
    });
    let path = file.as_deref().unwrap_or(path);
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(format!(".{}.tmp", std::process::id()));
    let temporary = Path::new(&temporary);
    let create = || {
        // Never through a link that somebody else put there.
        let mut file = std::fs::File::create_new(temporary)?;
        if let Ok(old) = path.metadata() {
            file.set_permissions(old.permissions())?;
        }
        file.write_all(text.as_bytes())
    };
    create()
        .and_then(|()| std::fs::rename(temporary, path))
        .map_err(|error| {
            // The error that matters is the first one.
            drop(std::fs::remove_file(temporary));
            trouble(path, &error)
        })
}

fn failure(why: String) -> Problem {
    Problem::Failure(Error::new(Kind::Registry, why))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENTRY: Entry<'_> = Entry {
        id: "demo",
        version: "1.2.3",
        file: "libdemo.so",
        target: "x86_64-unknown-linux-gnu",
        sha256: "ab",
    };

    fn put(text: &str) -> Result<String, String> {
        let mut document: DocumentMut = text.parse().unwrap();
        ENTRY.put(&mut document).map(|()| document.to_string())
    }

    #[test]
    fn a_new_entry_has_version_file_and_pin() {
        let text = put("schema = 1\n").unwrap();
        let expected = "schema = 1\n\n[pack.demo]\nversion = \"=1.2.3\"\nfile = \"libdemo.so\"\n\n\
            [pack.demo.sha256]\nx86_64-unknown-linux-gnu = \"ab\"\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn an_old_entry_keeps_comments_other_targets_and_its_range() {
        let text = "# ours\n[pack.demo]\nversion = \"^1\" # range\n[pack.demo.sha256]\n\
            aarch64-apple-darwin = \"cd\"\nx86_64-unknown-linux-gnu = \"00\" # built by CI\n\n[[deny]]\n";
        assert_eq!(put(text).unwrap(), text.replace("\"00\"", "\"ab\""));
        let inline = put("[pack]\ndemo = { version = \"^1\", sha256 = { x = \"cd\" } }\n").unwrap();
        assert!(
            inline.contains("x86_64-unknown-linux-gnu = \"ab\""),
            "{inline}"
        );
        let bare = put("[pack.demo]\nsha256 = \"00\"\n").unwrap();
        assert!(!bare.contains("00") && bare.contains("\"ab\""), "{bare}");
        let bare = put("[pack.demo]\nsha256 = \"00\" # ours\n").unwrap();
        assert!(bare.contains("\"ab\" # ours\n"), "{bare}");
        let inline = put("pack = { demo = { priority = 3 } }\n").unwrap();
        let parsed: DocumentMut = inline.parse().unwrap();
        assert_eq!(
            parsed["pack"]["demo"]["sha256"][ENTRY.target].as_str(),
            Some("ab")
        );
        assert_eq!(parsed["pack"]["demo"]["priority"].as_integer(), Some(3));
        let other = put("pack = { other = { priority = 3 } }\n").unwrap();
        let parsed: DocumentMut = other.parse().unwrap();
        assert_eq!(parsed["pack"]["demo"]["file"].as_str(), Some("libdemo.so"));
    }

    #[test]
    fn a_file_that_is_something_else_is_refused() {
        assert_eq!(put("pack = 1\n").unwrap_err(), "`pack` is not a table");
        assert!(put("[pack]\ndemo = 3\n").is_err());
    }
}
