//! The runtime: takes op requests, finds out once who runs them, and runs them.

mod ending;
mod forced;
mod host_memory;
mod key;
mod lazy;
mod live;
mod measuring;
mod modules;
mod pipelines;
mod pointers;
mod profiling;
mod program;
mod replay;
mod reports;
mod routing;
mod running;
mod scarce;
mod stats;
mod tensors;
mod transfer;
mod watching;

use crate::{
    Error, Kind, Request, Result, Spec,
    builder::Builder,
    config::{Config, Times},
    device::Device,
    explain::{self, Explanation},
    failures::{Expiry, Failures},
    fragments,
    live::{Live, watch::Watch},
    measured::Measured,
    memory::{Budget, Kept, Made, Patience, Pool, Use, now, would_wait},
    module::Module,
    pipeline::Pipelines,
    queue::{Quiet, Stream},
    route::Planner,
    shader::Shaders,
    tensor::Tensor,
};
pub use forced::{Forced, Rival};
use key::with_key;
use lazy::Lazies;
pub use lazy::{Lazy, Operand};
use nx_vulkan_abi::{DType, DeviceInfo};
use nx_vulkan_registry as registry;
use nx_vulkan_registry::{Stamp, Table, cache::Cache, private::Rule};
use parking_lot::{Mutex, RwLock};
pub use profiling::Profiling;
pub use program::{Progress, RanProgram};
use replay::Replays;
pub use replay::{ReplayStats, Routine};
use routing::Current;
use rustc_hash::FxHashMap;
pub use stats::RuntimeStats;
use std::{
    collections::HashMap,
    path::PathBuf,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU32, AtomicU64},
    },
    time::Duration,
};

/// Routes kept before the cache starts anew.
const MAX_ROUTES: usize = 16_384;
/// Dispatches of such routes, some hundred bytes each: a factorisation has thousands.
const MAX_DISPATCHES: usize = 1 << 20;
const SHOWN_WARNINGS: usize = 3;
/// Requests whose last choice is known, to tell when it changes.
const MAX_CHOICES: usize = 65_536;

/// A device with its packs. Safe to use from any number of threads.
#[derive(Debug)]
pub struct Runtime {
    // The order of the fields is the order in which they are dropped: the queue stops first.
    watch: OnceLock<Watch>,
    stream: Arc<Stream>,
    current: RwLock<Current>,
    live: Live,
    failures: Failures,
    /// When the routes that are kept are no longer right.
    expiry: Expiry,
    choices: Mutex<FxHashMap<u64, Arc<str>>>,
    constants: Mutex<HashMap<(DType, Vec<u8>), Tensor>>,
    lent: pointers::Lent,
    kept: Kept,
    replays: Replays,
    lazies: Lazies,
    made: Made,
    tensors: Arc<Pool>,
    literals: Arc<Pool>,
    readback: Arc<Pool>,
    upload: Arc<Pool>,
    shaders: Shaders,
    builder: Arc<Builder>,
    // Modules hold pipelines.
    module_files: Mutex<HashMap<PathBuf, (Stamp, Arc<Module>)>>,
    module_texts: Mutex<HashMap<[u8; 32], Arc<Module>>>,
    pipelines: Pipelines,
    cache: Arc<Cache>,
    /// The cache folder once the registry is in mode locked.
    locked_cache: Option<(PathBuf, Rule)>,
    measured: RwLock<Measured>,
    /// Whether the configuration allows to measure; held by the one who does.
    measuring: Mutex<bool>,
    served: Mutex<HashMap<(String, String), u64>>,
    fallbacks: AtomicU64,
    /// Kernels that run on the CPU now.
    on_host: AtomicU32,
    /// Who serves views.
    viewed: Arc<str>,
    device: Arc<Device>,
}

/// Results of a request, with who ran it.
#[derive(Debug)]
pub struct Ran {
    /// Results, in the op's order.
    pub outputs: Vec<Tensor>,
    /// `pack/kernel`, or `host`.
    pub served_by: Arc<str>,
    /// Whether it ran on the host because no pack runs it.
    pub is_fallback: bool,
}

impl Runtime {
    /// Opens the device and loads the packs.
    ///
    /// # Errors
    /// [`Kind::NoDevice`] without a usable device, [`Kind::Registry`] when the registry file is missing or wrong.
    pub fn open(config: &Config) -> Result<Arc<Runtime>> {
        let options = config.registry_options();
        let table = Arc::new(registry::load(&options)?);
        let is_locked = table.is_locked();
        for name in config.environment.ignored().iter().filter(|_| is_locked) {
            log::warn!("mode \"locked\" ignores ${name}");
        }
        for rejected in &table.rejected {
            log::error!("the pack {rejected}");
        }
        for warning in table.warnings.iter().take(SHOWN_WARNINGS) {
            log::warn!("{warning}");
        }
        if let Some(more) = table.warnings.len().checked_sub(SHOWN_WARNINGS + 1) {
            log::warn!("and {} more like these", more + 1);
        }
        for note in table.notes.iter().take(SHOWN_WARNINGS) {
            log::info!("{note}");
        }
        let cache = Cache::open(config.cache(is_locked));
        let builder = Arc::new(Builder::new(
            config.builder(is_locked),
            &cache,
            config.build_timeout,
        ));
        builder.prepare_for(&table);
        let device = Device::open(&config.device, config.validates(is_locked))?;
        builder.set_device(&device.summary().uuid);
        if let Some(found) = fragments::of(&device, &cache, config.validates(is_locked)) {
            device.learn(found);
        }
        let new_budget = |heap| Budget::new(&device, config.memory, heap);
        let tensors = Pool::new(&device, Use::Tensors, new_budget)?;
        let same = |_| tensors.budget().clone();
        let literals = Pool::new(&device, Use::Literals, same)?;
        let readback = Pool::new(&device, Use::Readback, same)?;
        let upload = Pool::new(&device, Use::Upload, same)?;
        let pipelines = Pipelines::new(&device, &cache)?.with_builder(&builder);
        let writer = pipelines.cache().clone();
        let resting = builder.clone();
        // A cache that cannot be written costs the next start some time, nothing else.
        let when_quiet = Quiet(Box::new(move || {
            drop(writer.persist_new());
            resting.rest();
        }));
        let timeout = config.timeout_on(device.info().kind);
        let runtime = Arc::new(Runtime {
            watch: OnceLock::new(),
            stream: Stream::new(&device, timeout, tensors.is_cached(), when_quiet)?,
            current: RwLock::new(Current::new(table.clone())),
            live: Live::new(options),
            failures: Failures::default(),
            expiry: Expiry::default(),
            choices: Mutex::default(),
            constants: Mutex::default(),
            lent: pointers::Lent::default(),
            made: Made::default(),
            kept: Kept::new(config.kept, tensors.budget().stats().limit),
            replays: Replays::new(
                config.replays_on(device.info().kind),
                tensors.budget().stats().limit,
            ),
            lazies: Lazies::new(
                config.lazy_on(device.info().kind),
                tensors.budget().stats().limit,
            ),
            tensors,
            literals,
            readback,
            upload,
            shaders: Shaders::new(Some(cache.clone()))
                .checked(config.checks(is_locked))
                .with_target(device.target())
                .with_builder(&builder),
            builder,
            module_files: Mutex::default(),
            module_texts: Mutex::default(),
            pipelines,
            measured: RwLock::new(match config.times {
                Times::Ignored => Measured::default(),
                Times::Read | Times::Taken => Measured::open(&cache, &device),
            }),
            measuring: Mutex::new(config.times == Times::Taken),
            cache,
            locked_cache: config.cache(true),
            served: Mutex::default(),
            fallbacks: AtomicU64::new(0),
            on_host: AtomicU32::new(0),
            viewed: "view".into(),
            device,
        });
        runtime
            .live
            .remember(&table.packs, table.dev().keep_versions);
        if config.watch && !table.dev().watch.is_empty() {
            runtime.start_watch()?;
        }
        Ok(runtime)
    }

    /// The device.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Fails when the device was lost, or the process ends.
    ///
    /// # Errors
    /// [`Kind::DeviceLost`].
    pub fn check(&self) -> Result<()> {
        self.device.usable()
    }

    /// Limits and capabilities, as packs see them.
    pub fn device_info(&self) -> DeviceInfo<'_> {
        self.device.info()
    }

    /// The measured times that kernels are chosen by.
    pub fn measured(&self) -> Measured {
        self.measured.read().clone()
    }

    /// A compiler of shaders as they are outside of checked mode, with this runtime's cache.
    pub(crate) fn plain_shaders(&self) -> Shaders {
        Shaders::new(Some(self.cache.clone()))
            .with_target(self.device.target())
            .with_builder(&self.builder)
    }

    /// The packs and rules in force.
    pub fn table(&self) -> Arc<Table> {
        self.current().table.clone()
    }

    /// Waits for all recorded work, spinning for at most `budget`; whether it is done, and nothing is left to record.
    ///
    /// # Errors
    /// [`Kind::DeviceLost`].
    pub fn try_sync(&self, budget: Duration) -> Result<bool> {
        Ok(self.lazies.are_settled() && self.stream.spin(self.stream.sequence(), budget)?)
    }

    /// Runs a request. Returns at once when a pack runs it; reading a result waits.
    ///
    /// # Errors
    /// Bad input that breaks the op's contract; [`Kind::Unsupported`] when nobody runs it on these types;
    /// [`Kind::FallbackForbidden`]; [`Kind::OutOfMemory`]; [`Kind::DeviceLost`].
    pub fn run(&self, request: &Request<'_, &Tensor>) -> Result<Vec<Tensor>> {
        self.run_reported(request).map(|ran| ran.outputs)
    }

    /// Like [`Runtime::run`], and says who ran it.
    ///
    /// # Errors
    /// As [`Runtime::run`].
    pub fn run_reported(&self, request: &Request<'_, &Tensor>) -> Result<Ran> {
        self.run_by(request, Patience::Waits)
    }

    /// Runs a request whose plan is known, without ever waiting or compiling; `None` when [`Runtime::run`] is needed.
    ///
    /// # Errors
    /// As [`Runtime::run`].
    pub fn try_run_cached(&self, request: &Request<'_, &Tensor>) -> Result<Option<Ran>> {
        now(self.run_by(request, Patience::Never))
    }

    fn run_by(&self, request: &Request<'_, &Tensor>, patience: Patience) -> Result<Ran> {
        self.device.usable()?;
        let route = match (with_key(request, |key| self.cached(key)), patience) {
            (Some(route), Patience::Waits) => route,
            (Some(route), Patience::Never) if route.is_prompt() => route,
            (None, Patience::Waits) => self.find_route(request)?,
            (_, Patience::Never) => return Err(would_wait()),
        };
        let ran = self.execute(&route, request, patience);
        let ran = ran.or_else(|error| self.run_in_less(route, request, patience, error));
        ran.map_err(|error| describe(error, request))
    }

    /// Who would run a request, and why the others would not. Plans it, but runs nothing.
    ///
    /// # Errors
    /// Bad input that breaks the op's contract.
    pub fn explain(&self, request: &Request<'_, Spec>) -> Result<Explanation> {
        explain::explain(&self.planner(&self.table()), request)
    }

    /// Who would run a request, as [`Runtime::explain`] says it, from plans and shaders alone: the driver is not asked for
    /// pipelines, which is what takes time.
    ///
    /// # Errors
    /// Bad input that breaks the op's contract.
    pub fn picked(&self, request: &Request<'_, Spec>) -> Result<Option<String>> {
        let table = self.table();
        let planner = Planner {
            pipelines: None,
            ..self.planner(&table)
        };
        Ok(explain::explain(&planner, request)?.picked)
    }

    /// Whether some kernel, of a pack or of the host, is for that op.
    pub fn has_op(&self, op: &str) -> bool {
        nx_vulkan_ops::find(op).is_some() || self.current().table.has_op(op)
    }

    /// Submits recorded work without waiting.
    ///
    /// # Errors
    /// [`Kind::DeviceLost`].
    pub fn flush(&self) -> Result<()> {
        self.device.usable()?;
        self.stream.flush()
    }

    /// Runs what waits for its reader, but what was only on the way to something else, and waits for all recorded work.
    ///
    /// # Errors
    /// [`Kind::DeviceLost`].
    pub fn sync(&self) -> Result<()> {
        self.settle_last();
        self.stream.wait(self.stream.sequence())
    }
}

/// Names the op, its types and shapes in errors that lack them.
fn describe(error: Error, request: &Request<'_, &Tensor>) -> Error {
    match error.kind() {
        Kind::BadInput | Kind::Arithmetic | Kind::WouldWait => error,
        _ => error.context(request),
    }
}
