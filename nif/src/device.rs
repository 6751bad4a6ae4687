//! Devices: one runtime per physical device, opened on first use and kept for the life of the VM.

use crate::{
    later::{SHORT, later},
    maps::{DeviceMap, RuntimeStatsMap},
    reply::{self, Failure},
    resource::{Class, Resource, ResourceArc},
    terms::List,
};
use nx_vulkan_host::{Config, DeviceChoice, MemoryBudget, Runtime, Times, device};
use parking_lot::Mutex;
use rustler::{Decoder, Encoder, Env, Error, NifResult, Term, schedule::SchedulerFlags};
use std::{ffi::CStr, path::PathBuf, sync::Arc, time::Duration};

mod atoms {
    rustler::atoms! { auto, ok }
}

/// An open device.
pub(crate) struct DeviceRef {
    /// What runs its ops.
    pub(crate) runtime: Arc<Runtime>,
}

impl Resource for DeviceRef {
    const NAME: &CStr = c"device";
    const EXPECTED: &str = "a device of this VM that was not collected";

    fn class() -> &'static Class {
        static CLASS: Class = Class::unopened();
        &CLASS
    }
}

static OPEN: Mutex<Vec<(DeviceChoice, Arc<Runtime>)>> = Mutex::new(Vec::new());

/// `:auto`, an index, or the text of a UUID or of a part of a name.
pub(crate) struct ChoiceTerm(Option<DeviceChoice>);

impl<'a> Decoder<'a> for ChoiceTerm {
    fn decode(term: Term<'a>) -> NifResult<ChoiceTerm> {
        if let Ok(index) = term.decode::<usize>() {
            Ok(ChoiceTerm(Some(DeviceChoice::Index(index))))
        } else if let Ok(text) = term.decode::<&str>() {
            Ok(ChoiceTerm(Some(DeviceChoice::parse(text))))
        } else if atoms::auto() == term {
            Ok(ChoiceTerm(None))
        } else {
            Err(Error::BadArg)
        }
    }
}

/// How the host is set up.
#[derive(rustler::NifMap)]
#[rustler(decode)]
pub(crate) struct Settings {
    registry: Option<String>,
    packs: List<String>,
    cache_dir: Option<String>,
    /// The `nxv` that comes with this library.
    prober: Option<String>,
    /// Milliseconds for one shader of a stranger.
    shader_timeout: Option<u64>,
    validation: bool,
    /// Whether kernels may be timed to find out which is faster.
    measure: bool,
    /// Milliseconds that a command may take.
    timeout_ms: Option<u64>,
    /// Bytes that may be taken from the driver, or else thousandths of the device's memory.
    memory_bytes: Option<u64>,
    memory_share: Option<u16>,
    /// Of these what may hold packed operands, in the same way.
    kept_bytes: Option<u64>,
    kept_share: Option<u16>,
    /// Whether compiled programs are recorded once.
    replays: Option<bool>,
    /// Whether elementwise ops wait for who needs their results.
    lazy: Option<bool>,
}

/// Settings, of which a wrong one is a bad argument like any other.
pub(crate) struct SettingsTerm(Settings);

impl<'a> Decoder<'a> for SettingsTerm {
    fn decode(term: Term<'a>) -> NifResult<SettingsTerm> {
        let settings = term.decode().map_err(|_| Error::BadArg);
        settings.map(SettingsTerm)
    }
}

/// `{:ok, device}`. The settings count for the first opening of a device only.
#[rustler::nif(schedule = "DirtyIo")]
fn open_device<'a>(env: Env<'a>, choice: ChoiceTerm, settings: SettingsTerm) -> Term<'a> {
    reply::encode(
        env,
        open(choice.0, settings.0).map(|runtime| ResourceArc::new(DeviceRef { runtime })),
    )
}

fn open(choice: Option<DeviceChoice>, settings: Settings) -> Result<Arc<Runtime>, Failure> {
    let mut config = Config::from_env();
    config.device = choice.unwrap_or(config.device);
    config.registry = settings.registry.map(PathBuf::from).or(config.registry);
    config
        .packs
        .extend(settings.packs.0.into_iter().map(PathBuf::from));
    config.cache_dir = settings.cache_dir.map(PathBuf::from).or(config.cache_dir);
    config.prober = settings.prober.map(PathBuf::from);
    if let Some(limit) = settings.shader_timeout {
        config.build_timeout = Duration::from_millis(limit);
    }
    config.validation |= settings.validation;
    let timeout = settings.timeout_ms.map(Duration::from_millis);
    config.timeout = timeout.or(config.timeout);
    let budget = |bytes: Option<u64>, share: Option<u16>| {
        let bytes = bytes.map(MemoryBudget::Bytes);
        bytes.or(share.map(MemoryBudget::Share))
    };
    config.memory = budget(settings.memory_bytes, settings.memory_share).unwrap_or(config.memory);
    config.kept = budget(settings.kept_bytes, settings.kept_share).unwrap_or(config.kept);
    config.replays = settings.replays;
    config.lazy = settings.lazy;
    config.watch = true;
    config.times = match settings.measure {
        true => Times::Taken,
        false => Times::Ignored,
    };

    // Held while a device opens, so that two processes that start at once open it once.
    let mut open = OPEN.lock();
    let known = open
        .iter()
        .find(|(known, runtime)| *known == config.device || is_uuid_of(&config.device, runtime));
    if let Some((_, runtime)) = known {
        runtime.check()?;
        return Ok(runtime.clone());
    }
    let fresh = Runtime::open(&config)?;
    let uuid = &fresh.device().summary().uuid;
    let runtime = match open
        .iter()
        .find(|(_, known)| known.device().summary().uuid == *uuid)
    {
        Some((_, known)) => {
            known.check()?;
            known.clone()
        }
        None => fresh,
    };
    open.push((config.device, runtime.clone()));
    Ok(runtime)
}

fn is_uuid_of(choice: &DeviceChoice, runtime: &Runtime) -> bool {
    matches!(choice, DeviceChoice::Uuid(uuid) if uuid.eq_ignore_ascii_case(&runtime.device().summary().uuid.replace('-', "")))
}

/// `{:ok, [map]}`: every Vulkan device of the machine.
#[rustler::nif(schedule = "DirtyIo")]
fn list_devices<'a>(env: Env<'a>) -> Term<'a> {
    reply::encode(
        env,
        device::list()
            .map(List::<DeviceMap>::from)
            .map_err(Failure::from),
    )
}

/// The map that describes an open device.
#[rustler::nif]
fn device_info(device: ResourceArc<DeviceRef>) -> DeviceMap {
    device.runtime.device().summary().clone().into()
}

/// Memory and work counters of an open device.
#[rustler::nif]
fn device_stats(device: ResourceArc<DeviceRef>) -> RuntimeStatsMap {
    device.runtime.stats().into()
}

/// `:ok` when everything recorded so far has run.
#[rustler::nif]
fn sync_device<'a>(env: Env<'a>, device: ResourceArc<DeviceRef>) -> Term<'a> {
    match device.runtime.try_sync(SHORT) {
        Ok(true) => atoms::ok().encode(env),
        Ok(false) => later(env, SchedulerFlags::DirtyIo, &[], move |env, _| {
            reply::encode_unit(env, device.runtime.sync())
        }),
        Err(error) => reply::encode_error(env, &Failure::Host(error)),
    }
}

/// What the validation layers reported since the VM started.
#[rustler::nif]
fn validation_messages() -> Vec<String> {
    device::validation_messages()
}
