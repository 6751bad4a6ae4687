//! The driver's cache of compiled pipelines on disk.

use crate::{
    device::DeviceRef,
    reply::{self, Failure},
    resource::ResourceArc,
};
use rustler::{Env, Term};

/// `{:ok, path}`, or an error where there is no cache folder.
#[rustler::nif]
fn pipeline_cache_path<'a>(env: Env<'a>, device: ResourceArc<DeviceRef>) -> Term<'a> {
    let file = device.runtime.pipeline_cache_file();
    let path = file.map(|file| file.to_string_lossy().into_owned());
    reply::encode(env, path.map_err(Failure::from))
}

/// The driver's UUID for data that it can read, in hexadecimal.
#[rustler::nif]
fn pipeline_cache_uuid(device: ResourceArc<DeviceRef>) -> String {
    device.runtime.pipeline_cache_uuid()
}

/// `:ok` when the file was written.
#[rustler::nif(schedule = "DirtyIo")]
fn persist_pipelines<'a>(env: Env<'a>, device: ResourceArc<DeviceRef>) -> Term<'a> {
    reply::encode_unit(env, device.runtime.persist_pipelines())
}

/// `:ok` when the file was read, or is not there.
#[rustler::nif(schedule = "DirtyIo")]
fn load_pipelines<'a>(env: Env<'a>, device: ResourceArc<DeviceRef>) -> Term<'a> {
    reply::encode_unit(env, device.runtime.load_pipelines())
}

/// `:ok` when the file is gone.
#[rustler::nif(schedule = "DirtyIo")]
fn clear_pipelines<'a>(env: Env<'a>, device: ResourceArc<DeviceRef>) -> Term<'a> {
    reply::encode_unit(env, device.runtime.clear_pipelines())
}
