//! Untyped buffers, for callers without Nx. A buffer is a tensor of u8 with one axis.

use crate::{
    binary, device::DeviceRef, later::later, reply::Failure, resource::ResourceArc,
    tensor::TensorRef, terms::Bytes,
};
use nx_vulkan_host::{DType, Runtime, Tensor};
use rustler::{Binary, Encoder, Env, Term, schedule::SchedulerFlags};
use std::sync::Arc;

mod atoms {
    rustler::atoms! { ok, error, bad_input, size_mismatch, upload_failed, download_failed }
}

/// `{:ok, ref}`, `{:error, :bad_input}` or `{:error, :upload_failed, message}`.
#[rustler::nif(schedule = "DirtyIo")]
fn buffer_upload<'a>(env: Env<'a>, device: ResourceArc<DeviceRef>, bytes: Term<'a>) -> Term<'a> {
    match bytes.decode::<Binary>() {
        Ok(bytes) => encode(env, &device.runtime, upload(&device.runtime, &bytes)),
        Err(_) => bad_input(env),
    }
}

/// `{:ok, ref}` of zeros; errors as [`buffer_upload`].
#[rustler::nif(schedule = "DirtyIo")]
fn buffer_alloc<'a>(env: Env<'a>, device: ResourceArc<DeviceRef>, size: Term<'a>) -> Term<'a> {
    match size.decode::<u64>() {
        Ok(size) => encode(
            env,
            &device.runtime,
            device.runtime.zeros(DType::U8, &[size]),
        ),
        Err(_) => bad_input(env),
    }
}

/// `{:ok, binary}`, `{:error, :bad_input}` or `{:error, :download_failed, message}`.
#[rustler::nif]
fn buf_download<'a>(env: Env<'a>, buffer: Term<'a>) -> Term<'a> {
    let Ok(buffer) = buffer.decode::<ResourceArc<TensorRef>>() else {
        return bad_input(env);
    };
    // Taken here: who writes it later does not change what this reads.
    let tensor = buffer.try_tensor();
    match buffer.read_now(None).transpose() {
        Some(Err(Failure::Deallocated)) => bad_input(env),
        Some(read) => downloaded(env, read.map(Bytes)),
        None => later(env, SchedulerFlags::DirtyIo, &[], move |env, _| {
            let tensor = tensor.and_then(|tensor| tensor.map_or_else(|| buffer.tensor(), Ok));
            let read = tensor.and_then(|t| binary::download(env, &buffer.runtime, &t, None));
            downloaded(env, read)
        }),
    }
}

fn downloaded<'a>(env: Env<'a>, read: Result<impl Encoder, Failure>) -> Term<'a> {
    match read {
        Ok(bytes) => (atoms::ok(), bytes).encode(env),
        Err(error) => (atoms::error(), atoms::download_failed(), error.to_string()).encode(env),
    }
}

/// Size in bytes.
#[rustler::nif]
fn buf_byte_size(buffer: ResourceArc<TensorRef>) -> u64 {
    buffer.byte_size()
}

/// `:ok`, `{:error, :size_mismatch}`, or the errors of [`buffer_upload`]. Readers that started before see the old bytes.
#[rustler::nif(schedule = "DirtyIo")]
fn buf_upload_into<'a>(env: Env<'a>, buffer: Term<'a>, bytes: Term<'a>) -> Term<'a> {
    let (Ok(buffer), Ok(bytes)) = (
        buffer.decode::<ResourceArc<TensorRef>>(),
        bytes.decode::<Binary>(),
    ) else {
        return bad_input(env);
    };
    if !buffer.is_live() {
        return bad_input(env);
    }
    if bytes.len() as u64 != buffer.byte_size() {
        return (atoms::error(), atoms::size_mismatch()).encode(env);
    }
    match buffer.runtime.upload(buffer.dtype, &buffer.shape, &bytes) {
        Ok(tensor) => {
            buffer.replace(tensor);
            atoms::ok().encode(env)
        }
        Err(error) => (atoms::error(), atoms::upload_failed(), error.to_string()).encode(env),
    }
}

fn upload(runtime: &Runtime, bytes: &[u8]) -> nx_vulkan_host::Result<Tensor> {
    runtime.upload(DType::U8, &[bytes.len() as u64], bytes)
}

fn encode<'a>(
    env: Env<'a>,
    runtime: &Arc<Runtime>,
    made: nx_vulkan_host::Result<Tensor>,
) -> Term<'a> {
    match made {
        Ok(tensor) => (atoms::ok(), TensorRef::new(runtime, tensor)).encode(env),
        Err(error) => (atoms::error(), atoms::upload_failed(), error.to_string()).encode(env),
    }
}

fn bad_input<'a>(env: Env<'a>) -> Term<'a> {
    (atoms::error(), atoms::bad_input()).encode(env)
}
