//! The options of every verb.

use nx_vulkan_host::{Config, DeviceChoice};
use std::{
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
};

// No doc comment: clap would take it for what the program is about.
#[derive(Debug, clap::Args)]
pub(crate) struct Global {
    /// Print JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,

    /// An index of `nxv devices`, a UUID, or a part of the name
    #[arg(long, global = true)]
    pub(crate) device: Option<String>,

    /// The registry file
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) registry: Option<PathBuf>,

    /// Folders with kernel packs, a path list
    #[arg(long, global = true, value_name = "DIRS")]
    pub(crate) packs: Vec<OsString>,

    /// Where compiled shaders are kept
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) cache: Option<PathBuf>,

    /// Run under the Vulkan validation layers
    #[arg(long, global = true)]
    validation: bool,

    /// Report accesses of shaders outside of their arrays, where they use nxv_load and nxv_store
    #[arg(long, global = true)]
    checked: bool,
}

impl Global {
    /// The environment's configuration with the options applied.
    pub(crate) fn config(&self) -> Config {
        let mut config = Config::from_env();
        if let Some(device) = &self.device {
            config.device = DeviceChoice::parse(device);
        }
        if let Some(registry) = &self.registry {
            config.registry = Some(registry.clone());
            // Who runs the tool has the last word.
            config.registry_override = None;
        }
        if let Some(cache) = &self.cache {
            config.cache_dir = Some(cache.clone());
        }
        if !self.packs.is_empty() {
            config.packs = self.packs.iter().flat_map(std::env::split_paths).collect();
            config.environment.packs.clear();
        }
        config.validation |= self.validation;
        config.checked |= self.checked;
        config
    }

    /// The options as they are given on a command line, each with a space before it; not `--json`.
    pub(crate) fn again(&self) -> String {
        let values = [
            ("--device", self.device.as_deref().map(OsStr::new)),
            ("--registry", self.registry.as_deref().map(Path::as_os_str)),
            ("--cache", self.cache.as_deref().map(Path::as_os_str)),
        ];
        let values = values
            .into_iter()
            .filter_map(|(name, value)| Some((name, value?)));
        let packs = self.packs.iter().map(|dirs| ("--packs", dirs.as_os_str()));
        let options = values
            .chain(packs)
            .map(|(name, value)| format!(" {name} {}", quoted(&value.to_string_lossy())));
        let flags = [
            ("--validation", self.validation),
            ("--checked", self.checked),
        ];
        let flags = flags
            .into_iter()
            .filter(|flag| flag.1)
            .map(|flag| format!(" {}", flag.0));
        options.chain(flags).collect()
    }
}

/// A word as a shell reads it.
pub(crate) fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./,:=+@%".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Cli {
        #[command(flatten)]
        global: Global,
    }

    #[test]
    fn they_end_up_in_the_config() {
        let line = "nxv --device 1 --packs a:b --packs c --registry r.toml --validation --checked";
        let config = Cli::parse_from(line.split(' ')).global.config();
        assert_eq!(config.device, DeviceChoice::Index(1));
        assert_eq!(config.packs, ["a", "b", "c"].map(PathBuf::from));
        assert_eq!(config.registry, Some(PathBuf::from("r.toml")));
        assert!(config.validation && config.checked);
    }

    #[test]
    fn they_are_told_as_a_shell_reads_them() {
        let line = "nxv --json --packs a:b --checked --device 1 --packs c --registry r.toml";
        let global = Cli::parse_from(line.split(' ')).global;
        let again = " --device 1 --registry r.toml --packs a:b --packs c --checked";
        assert_eq!(global.again(), again);
        let global = Cli::parse_from(["nxv", "--device", "NVIDIA H200"]).global;
        assert_eq!(global.again(), " --device 'NVIDIA H200'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted(""), "''");
    }
}
