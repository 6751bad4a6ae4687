//! How a runtime is opened: which device, which packs, where caches lie.

use nx_vulkan_abi::DeviceKind;
use nx_vulkan_registry::{
    self as registry, FromEnvironment, PACKS_VARIABLE, REGISTRY_VARIABLE, private::Rule,
};
use std::{
    ffi::{CStr, OsStr, OsString},
    fmt,
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
    time::Duration,
};

/// Options of [`crate::Runtime::open`]. `Config::from_env()` is what the tool and the NIF start from.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Config {
    /// Which device to open.
    pub device: DeviceChoice,
    /// The registry file that the application names; without any, built-in defaults.
    pub registry: Option<PathBuf>,
    /// The file that `$NX_VULKAN_REGISTRY` names. It is read in place of `registry`, unless that is in mode locked.
    pub registry_override: Option<PathBuf>,
    /// Folders with packs, searched before those of the registry file.
    pub packs: Vec<PathBuf>,
    /// Folder for compiled shaders, pipelines, crash markers and the quarantine; without one that of the environment,
    /// then `.cache/nx_vulkan` in the home folder that the system's user database names.
    pub cache_dir: Option<PathBuf>,
    /// The `nxv` executable that tries in a process of its own what may end one: new packs, and the shaders of strangers.
    /// Without one nothing is tried.
    pub prober: Option<PathBuf>,
    /// How long the compiler or the driver may take for one shader of a stranger.
    pub build_timeout: Duration,
    /// Whether to run under the Vulkan validation layers.
    pub validation: bool,
    /// Whether to watch files as the registry's `[dev]` says.
    pub watch: bool,
    /// What is done with measured times of kernels.
    pub times: Times,
    /// Whether accesses of shaders through `tensor.glsl` are checked against the arrays' lengths. Every op then waits
    /// for its result.
    pub checked: bool,
    /// How long a command may take before the device counts as lost. The device tells how far it is once per batch of up
    /// to 64 commands, and a batch may take so long for each of them; a queue that advances may take any time.
    /// `None` is two minutes, and ten on a CPU, whose driver compiles as it runs and has to share its cores.
    pub timeout: Option<Duration>,
    /// How much memory may be taken from the driver.
    pub memory: MemoryBudget,
    /// How much of that may hold what kernels made of operands that are used again, such as packed weights. A share is one of
    /// `memory`; without anything said it is an eighth.
    pub kept: MemoryBudget,
    /// Whether programs that run again and again are recorded once; on a GPU, where nothing is said.
    pub replays: Option<bool>,
    /// Whether elementwise ops wait until somebody needs their results, and run as one; on a GPU, where nothing is said.
    pub lazy: Option<bool>,
    /// What the environment says. Under a registry in mode locked none of it counts.
    pub environment: Environment,
}

/// What a runtime does with measured times of kernels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Times {
    /// Nothing: kernels are asked in the order that they have without any.
    Ignored,
    /// Kernels are ordered by those that were measured before.
    Read,
    /// The same, and kernels are timed where the registry's `measure` says so.
    Taken,
}

/// Which device to open.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub enum DeviceChoice {
    /// The first of [`crate::device::list`]: discrete, then integrated, virtual, CPU.
    #[default]
    Auto,
    /// By its position in [`crate::device::list`].
    Index(usize),
    /// By a part of its name, case-insensitive.
    Name(String),
    /// By its UUID in hexadecimal, with or without dashes.
    Uuid(String),
}

impl DeviceChoice {
    /// Reads an index, a UUID of 32 hexadecimal digits, or a part of a name.
    pub fn parse(text: &str) -> DeviceChoice {
        let digits = text.replace('-', "");
        if let Ok(index) = text.parse() {
            DeviceChoice::Index(index)
        } else if digits.len() == 32 && digits.bytes().all(|b| b.is_ascii_hexdigit()) {
            DeviceChoice::Uuid(digits)
        } else {
            DeviceChoice::Name(text.to_owned())
        }
    }
}

impl fmt::Display for DeviceChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DeviceChoice::Auto => f.write_str("any"),
            DeviceChoice::Index(index) => write!(f, "the index {index}"),
            DeviceChoice::Name(name) => write!(f, "the name `{name}`"),
            DeviceChoice::Uuid(uuid) => write!(f, "the UUID {uuid}"),
        }
    }
}

/// How much memory a runtime may take from the driver: for tensors, uploads and reading back together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum MemoryBudget {
    /// 0.9 of the device's memory; where that is the system's, no more than 0.75 of what is free there when the device
    /// opens, as the system and its control groups say.
    #[default]
    Auto,
    /// Thousandths of the device's memory, or of what is free where that is the system's and less.
    Share(u16),
    /// So many bytes.
    Bytes(u64),
}

/// What variables of the environment say about which code runs and where it and its data come from. The choice of a
/// device is not among them: it decides neither.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Environment {
    /// `$NX_VULKAN_PACKS`: folders with packs, searched before all others.
    pub packs: Vec<PathBuf>,
    /// `$NX_VULKAN_CACHE`: the cache folder, where the application names none.
    pub cache_dir: Option<PathBuf>,
    /// `nx_vulkan` in the user's folder for caches, by `$XDG_CACHE_HOME` or `$HOME`; the cache folder where nothing else
    /// names one.
    pub user_cache: Option<PathBuf>,
    /// `$NX_VULKAN_PROBER`: takes the place of [`Config::prober`].
    pub prober: Option<PathBuf>,
    /// `$NX_VULKAN_VALIDATION` is `1`.
    pub validation: bool,
    /// `$NX_VULKAN_CHECKED` is `1`.
    pub checked: bool,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            device: DeviceChoice::Auto,
            registry: None,
            registry_override: None,
            packs: Vec::new(),
            cache_dir: None,
            prober: None,
            build_timeout: Duration::from_secs(20),
            validation: false,
            watch: false,
            times: Times::Read,
            checked: false,
            timeout: None,
            memory: MemoryBudget::Auto,
            kept: MemoryBudget::Auto,
            replays: None,
            lazy: None,
            environment: Environment::default(),
        }
    }
}

const TIMEOUT: Duration = Duration::from_secs(120);
const TIMEOUT_ON_CPU: Duration = Duration::from_secs(600);

const CACHE_VARIABLE: &str = "NX_VULKAN_CACHE";
const PROBER_VARIABLE: &str = "NX_VULKAN_PROBER";
const VALIDATION_VARIABLE: &str = "NX_VULKAN_VALIDATION";
const CHECKED_VARIABLE: &str = "NX_VULKAN_CHECKED";

impl Config {
    /// Whether programs are recorded on a device of that kind. A CPU takes longer to run the smallest op than to record it.
    pub(crate) fn replays_on(&self, kind: DeviceKind) -> bool {
        self.replays.unwrap_or(kind != DeviceKind::CPU)
    }

    /// Whether elementwise ops wait on a device of that kind. A CPU takes longer to compile what runs as one than that saves.
    pub(crate) fn lazy_on(&self, kind: DeviceKind) -> bool {
        self.lazy.unwrap_or(kind != DeviceKind::CPU)
    }

    /// How long a command may take on a device of that kind.
    pub(crate) fn timeout_on(&self, kind: DeviceKind) -> Duration {
        let default = match kind {
            DeviceKind::CPU => TIMEOUT_ON_CPU,
            _ => TIMEOUT,
        };
        self.timeout.unwrap_or(default)
    }

    /// The defaults, with `$NX_VULKAN_DEVICE` (an index, a UUID or a part of the name), `$NX_VULKAN_REGISTRY` (a
    /// file) and [`Environment`] applied. The prober is this executable, where it is `nxv`.
    pub fn from_env() -> Config {
        let device = variable("NX_VULKAN_DEVICE");
        Config {
            device: device.map_or(DeviceChoice::Auto, |value| {
                DeviceChoice::parse(&value.to_string_lossy())
            }),
            registry_override: variable(REGISTRY_VARIABLE).map(PathBuf::from),
            prober: own_executable(),
            environment: Environment::read(),
            ..Config::default()
        }
    }

    /// What [`registry::load`] needs of it.
    pub fn registry_options(&self) -> registry::Options {
        let store = |cache: PathBuf| cache.join("packs");
        let environment = &self.environment;
        registry::Options {
            registry: self.registry.clone(),
            registry_override: self.registry_override.clone(),
            packs: self.packs.clone(),
            store: self.cache_dir(true).map(store).unwrap_or_default(),
            prober: self.prober.clone(),
            environment: FromEnvironment {
                packs: environment.packs.clone(),
                store: self.cache_dir(false).map(store),
                prober: environment.prober.clone(),
            },
        }
    }

    /// What tries the shaders of strangers. The environment has no say in mode locked.
    pub(crate) fn builder(&self, is_locked: bool) -> Option<PathBuf> {
        let other = self.environment.prober.as_ref().filter(|_| !is_locked);
        other.or(self.prober.as_ref()).cloned()
    }

    /// The cache folder under a registry of that mode, and what it has to be; `None` where nothing names one.
    pub(crate) fn cache(&self, is_locked: bool) -> Option<(PathBuf, Rule)> {
        let rule = if is_locked {
            Rule::Private
        } else {
            Rule::Sticky
        };
        self.cache_dir(is_locked).map(|dir| (dir, rule))
    }

    /// Whether the validation layers are on under a registry of that mode.
    pub(crate) fn validates(&self, is_locked: bool) -> bool {
        self.validation || self.environment.validation && !is_locked
    }

    /// Whether shaders check their accesses under a registry of that mode.
    pub(crate) fn checks(&self, is_locked: bool) -> bool {
        self.checked || self.environment.checked && !is_locked
    }

    fn cache_dir(&self, is_locked: bool) -> Option<PathBuf> {
        let Environment {
            cache_dir,
            user_cache,
            ..
        } = &self.environment;
        let named = cache_dir.as_ref().or(user_cache.as_ref());
        let named = named.filter(|_| !is_locked).cloned();
        let known = || Some(home()?.join(".cache").join("nx_vulkan"));
        self.cache_dir.clone().or(named).or_else(known)
    }
}

impl Environment {
    fn read() -> Environment {
        let is_on = |name| variable(name).is_some_and(|value| value == "1");
        let path = |name| variable(name).map(PathBuf::from);
        let user_cache = path("XDG_CACHE_HOME").or_else(|| Some(path("HOME")?.join(".cache")));
        Environment {
            packs: folders(&variable(PACKS_VARIABLE).unwrap_or_default()),
            cache_dir: path(CACHE_VARIABLE),
            user_cache: user_cache.map(|caches| caches.join("nx_vulkan")),
            prober: path(PROBER_VARIABLE),
            validation: is_on(VALIDATION_VARIABLE),
            checked: is_on(CHECKED_VARIABLE),
        }
    }

    /// The variables that a registry in mode locked ignores, those that are set; others say nothing about this host.
    pub(crate) fn ignored(&self) -> Vec<&'static str> {
        let set = [
            (CACHE_VARIABLE, self.cache_dir.is_some()),
            (PROBER_VARIABLE, self.prober.is_some()),
            (VALIDATION_VARIABLE, self.validation),
            (CHECKED_VARIABLE, self.checked),
        ];
        let set = set.into_iter().filter(|(_, is_set)| *is_set);
        set.map(|(name, _)| name).collect()
    }
}

/// The folders of a path list. An empty entry names none.
fn folders(list: &OsStr) -> Vec<PathBuf> {
    let folders = std::env::split_paths(list);
    folders.filter(|folder| *folder != Path::new("")).collect()
}

fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// The home folder of this user by the system's user database, which the environment cannot change.
fn home() -> Option<PathBuf> {
    let mut text = vec![0 as libc::c_char; 1 << 14];
    let mut found = std::ptr::null_mut();
    let mut entry = std::mem::MaybeUninit::<libc::passwd>::uninit();
    // SAFETY: entry and text may be written, text has the size that is told, and both outlive what `found` points to.
    let home = unsafe {
        let (entry, user) = (entry.as_mut_ptr(), libc::geteuid());
        libc::getpwuid_r(user, entry, text.as_mut_ptr(), text.len(), &mut found);
        match found.is_null() || (*found).pw_dir.is_null() {
            true => return None,
            false => CStr::from_ptr((*found).pw_dir),
        }
    };
    let home = PathBuf::from(OsStr::from_bytes(home.to_bytes()));
    home.is_absolute().then_some(home)
}

/// The running executable, where it is `nxv`.
fn own_executable() -> Option<PathBuf> {
    std::env::current_exe().ok().filter(|path| {
        path.file_stem()
            .is_some_and(|name| name == "nxv" || name == "nxv-child")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_environment_says_counts_in_mode_dev_only() {
        let mut config = Config {
            environment: Environment {
                packs: folders(OsStr::new(":/a::/b:")),
                cache_dir: Some("/cache".into()),
                user_cache: Some("/user/nx_vulkan".into()),
                prober: Some("/prober".into()),
                validation: true,
                checked: true,
            },
            ..Config::default()
        };
        let cache = |config: &Config, is_locked| config.cache(is_locked).map(|cache| cache.0);
        let known = home().map(|home| home.join(".cache/nx_vulkan"));
        assert_eq!(config.environment.packs, ["/a", "/b"].map(PathBuf::from));
        assert_eq!(cache(&config, false), Some("/cache".into()));
        assert_eq!(cache(&config, true), known);
        assert!(config.validates(false) && config.checks(false));
        assert!(!config.validates(true) && !config.checks(true));
        assert_eq!(config.environment.ignored().len(), 4);

        config.environment.cache_dir = None;
        assert_eq!(cache(&config, false), Some("/user/nx_vulkan".into()));
        assert_eq!(cache(&config, true), known);
        config.environment.user_cache = None;
        assert_eq!(cache(&config, false), known);

        // What the application says holds in both modes.
        config.cache_dir = Some("/named".into());
        config.environment.cache_dir = Some("/cache".into());
        (config.validation, config.checked) = (true, true);
        for is_locked in [false, true] {
            assert_eq!(cache(&config, is_locked), Some("/named".into()));
            assert!(config.validates(is_locked) && config.checks(is_locked));
        }
    }

    #[test]
    fn device_choices_are_told_apart() {
        assert_eq!(DeviceChoice::parse("1"), DeviceChoice::Index(1));
        assert_eq!(
            DeviceChoice::parse("llvmpipe"),
            DeviceChoice::Name("llvmpipe".to_owned())
        );
        let uuid = "6d657361-3235-2e30-2e37-2d3200000000";
        assert_eq!(
            DeviceChoice::parse(uuid),
            DeviceChoice::Uuid(uuid.replace('-', ""))
        );
    }
}
