//! Tensors by address, and by the name of shared memory.

use crate::{
    device::DeviceRef,
    notes::notes,
    reply,
    resource::ResourceArc,
    tensor::TensorRef,
    terms::{ShapeTerm, TypeTerm},
};
use nx_vulkan_host::Error;
use nx_vulkan_host::shared_memory;
use rustler::{Env, Term};

/// `{:ok, address}` of the elements, which lie there as long as the reference does or one that [`from_address`] made of it.
#[rustler::nif(schedule = "DirtyIo")]
fn address_of<'a>(env: Env<'a>, tensor: ResourceArc<TensorRef>) -> Term<'a> {
    let address = || {
        loop {
            let held = tensor.tensor()?;
            let (exposed, address) = tensor.runtime.expose(&held)?;
            // What is written there must be seen by everybody who reads this reference.
            if tensor.swap(&held, exposed)? {
                return Ok(address as u64);
            }
        }
    };
    reply::encode(env, address())
}

/// `{:ok, ref}` of the elements that lie at an address of this process.
#[rustler::nif(schedule = "DirtyIo")]
fn from_address<'a>(
    env: Env<'a>,
    device: ResourceArc<DeviceRef>,
    dtype: TypeTerm,
    shape: ShapeTerm,
    address: u64,
) -> Term<'a> {
    let runtime = &device.runtime;
    let made = || {
        let beyond = || Error::bad_input(format!("{address:#x} is no address on this system"));
        let address = usize::try_from(address).map_err(|_| beyond())?;
        let tensor = runtime.tensor_at(address, dtype.0, &shape.0)?;
        Ok(TensorRef::new(runtime, tensor))
    };
    reply::encode(env, made())
}

/// `{:ok, name}` of shared memory with a copy of the elements, which is there as long as the reference is.
#[rustler::nif(schedule = "DirtyIo")]
fn share<'a>(env: Env<'a>, tensor: ResourceArc<TensorRef>, permissions: u32) -> Term<'a> {
    let name = || {
        if let Some(name) = tensor.shared_as(permissions) {
            return Ok(name);
        }
        let bytes = tensor.runtime.download(&*tensor.tensor()?, None)?;
        let segment = shared_memory::Segment::new(&bytes, permissions)?;
        tensor.keep_shared(segment, permissions)
    };
    reply::encode(env, name())
}

/// `{:ok, ref}` of a copy of the elements in shared memory.
#[rustler::nif(schedule = "DirtyIo")]
fn from_shared<'a>(
    env: Env<'a>,
    device: ResourceArc<DeviceRef>,
    dtype: TypeTerm,
    shape: ShapeTerm,
    name: &str,
) -> Term<'a> {
    let runtime = &device.runtime;
    let made = || {
        let len = nx_vulkan_host::tensor::byte_len(dtype.0, &shape.0)?;
        let bytes = shared_memory::read(name, len)?;
        let tensor = runtime.upload(dtype.0, &shape.0, &bytes)?;
        Ok(TensorRef::new(runtime, tensor))
    };
    reply::encode(env, made())
}

/// Shared memory with the elements of a tensor, by the permissions it has.
#[derive(Default)]
pub(crate) struct Shared(Vec<(u32, shared_memory::Segment)>);

impl Shared {
    /// The name of that with such permissions.
    pub(crate) fn named(&self, permissions: u32) -> Option<String> {
        let mut all = self.0.iter();
        let (_, segment) = all.find(|(these, _)| *these == permissions)?;
        Some(segment.name().to_owned())
    }

    /// Keeps one as long as the tensor is there, and says its name.
    pub(crate) fn keep(&mut self, segment: shared_memory::Segment, permissions: u32) -> String {
        let name = segment.name().to_owned();
        self.0.push((permissions, segment));
        name
    }
}

impl Drop for Shared {
    /// The names go now. The system frees the pages of what has none at once, 0.2 s for a GiB, and this may be a scheduler: another
    /// thread has it do that.
    fn drop(&mut self) {
        let all = std::mem::take(&mut self.0);
        let all = all.into_iter().filter_map(|(_, segment)| segment.unnamed());
        let all: Vec<_> = all.collect();
        if !all.is_empty()
            && let Ok(notes) = notes()
        {
            // Without the thread it goes with what could not be sent.
            let _ = notes.send(Box::new(move || drop(all)));
        }
    }
}
