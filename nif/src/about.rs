//! What references stand for: type, shape and device, also of tensors that are gone.

use crate::{
    device::DeviceRef,
    resource::ResourceArc,
    tensor::TensorRef,
    terms::{ShapeTerm, TypeTerm},
};
use nx_vulkan_abi::layout::contiguous_strides;
use rustler::{Encoder, Env, Term};
use std::sync::Arc;

/// What a reference stands for.
#[derive(rustler::NifMap)]
#[rustler(encode)]
struct TensorMap {
    r#type: TypeTerm,
    shape: ShapeTerm,
    strides: Option<Vec<i64>>,
    /// The UUID of its device.
    device: String,
    /// Whether the memory is still there.
    live: bool,
}

#[rustler::nif]
fn tensor_info(tensor: ResourceArc<TensorRef>) -> TensorMap {
    let live = tensor.held().ok();
    let strides = live.as_ref().map(|held| match held.made() {
        Some(made) => made.strides().to_vec(),
        None => contiguous_strides(&tensor.shape),
    });
    TensorMap {
        r#type: TypeTerm(tensor.dtype),
        shape: ShapeTerm(tensor.shape.to_vec()),
        strides,
        device: tensor.runtime.device().summary().uuid.clone(),
        live: live.is_some(),
    }
}

/// The device a tensor lives on.
#[rustler::nif]
fn device_of<'a>(env: Env<'a>, tensor: ResourceArc<TensorRef>) -> Term<'a> {
    ResourceArc::new(DeviceRef {
        runtime: tensor.runtime.clone(),
    })
    .encode(env)
}

/// Whether a tensor lives on `device`.
#[rustler::nif]
fn same_device(tensor: ResourceArc<TensorRef>, device: ResourceArc<DeviceRef>) -> bool {
    Arc::ptr_eq(&tensor.runtime, &device.runtime)
}
