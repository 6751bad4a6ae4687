//! A registry of its own for one pack file, so that it can be run without being installed.

use nx_vulkan_host::{Config, Error, Kind, Result, Runtime, Times};
use nx_vulkan_registry::{self as registry, private::Temporary};
use std::{
    env::{
        self,
        consts::{DLL_PREFIX, DLL_SUFFIX},
    },
    path::Path,
    sync::Arc,
};

/// What the pack competes with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum With {
    /// The CPU kernels.
    Nobody,
    /// Every pack of the folders that the configuration names.
    Others,
}

/// A pack file with a configuration that loads it. Its folder goes when it does.
#[derive(Debug)]
pub struct Session {
    /// Holds the registry.
    _folder: Temporary,
    /// It loads this pack.
    pub config: Config,
    /// What the file says of itself.
    pub facts: registry::FileFacts,
}

impl Session {
    /// The pack whose own test this process is: cargo puts its library beside the test.
    ///
    /// # Errors
    /// Those of [`Session::new`].
    pub fn of_test(pack: &str) -> Result<Session> {
        let test = env::current_exe().map_err(|error| Error::new(Kind::Io, error.to_string()))?;
        let library = format!("{DLL_PREFIX}nx_vulkan_pack_{pack}{DLL_SUFFIX}");
        Session::new(
            &Config::from_env(),
            &test.with_file_name(library),
            With::Nobody,
        )
    }

    /// Only `file` is loaded, or `with` it others.
    ///
    /// # Errors
    /// When the file is no pack, or there is no place for temporary files.
    pub fn new(base: &Config, file: &Path, with: With) -> Result<Session> {
        let facts = registry::facts(file)?;
        let folder = Temporary::new()?;
        let mut pack = toml_edit::Table::new();
        pack.insert("file", toml_edit::value(file.to_string_lossy().as_ref()));
        let mut document = toml_edit::DocumentMut::new();
        document.insert("schema", toml_edit::value(1));
        // A kernel is looked at whatever it promises about rounding.
        document["defaults"]["numerics"] = toml_edit::value("relaxed");
        // What happens here is the author's to see, and must not put the file aside for those who use it.
        document["dev"]["probe"] = toml_edit::value(false);
        let store = folder.path().join("store");
        document["search"]["store"] = toml_edit::value(store.to_string_lossy().as_ref());
        document["pack"][&facts.id] = toml_edit::Item::Table(pack);
        let path = folder.write("registry.toml", document.to_string().as_bytes())?;
        let mut config = base.clone();
        config.registry = Some(path);
        config.registry_override = None;
        config.times = Times::Ignored;
        if with == With::Nobody {
            config.packs.clear();
            config.environment.packs.clear();
        }
        Ok(Session {
            _folder: folder,
            config,
            facts,
        })
    }

    /// A runtime in which the pack is loaded.
    ///
    /// # Errors
    /// Those of [`Runtime::open`], and why the pack is refused.
    pub fn runtime(&self) -> Result<Arc<Runtime>> {
        let runtime = Runtime::open(&self.config)?;
        let table = runtime.table();
        let sha256 = &self.facts.sha256;
        if table.packs.iter().any(|pack| pack.sha256 == *sha256) {
            return Ok(runtime);
        }
        let why: Vec<String> = table.rejected.iter().map(ToString::to_string).collect();
        let text = format!("pack {} does not load: {}", self.facts.id, why.join("; "));
        Err(Error::new(Kind::Pack, text))
    }
}
