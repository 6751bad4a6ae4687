//! Profiles: what a device runs from one call to another, as a map.

use crate::{
    device::DeviceRef,
    reply::{self, Failure},
    resource::{Class, Resource, ResourceArc},
    tensor::TensorRef,
    terms::List,
};
use nx_vulkan_host::{Profile, ProfileRow, Profiling};
use parking_lot::Mutex;
use rustler::{Env, NifMap, Term};
use std::ffi::CStr;

/// A profile, while it is on. It ends with the process that has it.
pub(crate) struct ProfilingRef(Mutex<Option<Profiling>>);

impl Resource for ProfilingRef {
    const NAME: &CStr = c"profile";
    const EXPECTED: &str = "a profile of this VM that was not collected";

    fn class() -> &'static Class {
        static CLASS: Class = Class::unopened();
        &CLASS
    }
}

#[derive(NifMap)]
#[rustler(encode)]
struct ProfileMap {
    rows: Vec<RowMap>,
    device_us: f64,
    span_us: f64,
    dropped: u64,
    text: String,
}

#[derive(NifMap)]
#[rustler(encode)]
struct RowMap {
    op: String,
    kernel: String,
    step: String,
    index: usize,
    steps: usize,
    groups: Option<(u32, u32, u32)>,
    start_us: f64,
    us: f64,
}

impl From<&ProfileRow> for RowMap {
    fn from(row: &ProfileRow) -> RowMap {
        RowMap {
            op: row.op.to_string(),
            kernel: row.kernel.to_string(),
            step: row.step.to_string(),
            index: row.index,
            steps: row.steps,
            groups: row.groups,
            start_us: row.start_us,
            us: row.us,
        }
    }
}

impl From<Profile> for ProfileMap {
    fn from(profile: Profile) -> ProfileMap {
        ProfileMap {
            text: profile.to_string(),
            rows: profile.rows.iter().map(RowMap::from).collect(),
            device_us: profile.device_us,
            span_us: profile.span_us,
            dropped: profile.dropped,
        }
    }
}

/// `{:ok, profile}` once everything recorded so far has run.
#[rustler::nif(schedule = "DirtyIo")]
fn begin_profile<'a>(env: Env<'a>, device: ResourceArc<DeviceRef>) -> Term<'a> {
    let profiling = device.runtime.begin_profile();
    let profiling = profiling.map(|on| ResourceArc::new(ProfilingRef(Mutex::new(Some(on)))));
    reply::encode(env, profiling.map_err(Failure::from))
}

/// `{:ok, map}` once everything recorded so far has run, and what the results wait for.
#[rustler::nif(schedule = "DirtyIo")]
fn end_profile<'a>(
    env: Env<'a>,
    profile: ResourceArc<ProfilingRef>,
    results: List<ResourceArc<TensorRef>>,
) -> Term<'a> {
    let Some(profiling) = profile.0.lock().take() else {
        let why = "expected a profile that is on, got: one that has ended";
        return reply::encode_error(env, &Failure::bad_input(why));
    };
    // Whoever reads one is told why it cannot be computed.
    results.0.iter().for_each(|result| drop(result.tensor()));
    let profile = profiling.end().map(ProfileMap::from);
    reply::encode(env, profile.map_err(Failure::from))
}
