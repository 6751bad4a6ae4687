//! Tensors as references: made from binaries, read back, freed by the garbage collector or by hand.

use crate::{
    binary,
    device::DeviceRef,
    held::{Held, settled},
    later::{SHORT, later},
    pointer::Shared,
    reply::{self, Failure},
    resource::{Class, Resource, ResourceArc},
    terms::{Bytes, ShapeTerm, TypeTerm},
    turn::Turn,
};
use nx_vulkan_abi::DType;
use nx_vulkan_host::{Lazy, Operand, Runtime, Spec, Tensor, shared_memory::Segment};
use parking_lot::Mutex;
use rustler::{Atom, Binary, Encoder, Env, Term, schedule::SchedulerFlags};
use smallvec::SmallVec;
use std::{ffi::CStr, sync::Arc};

/// Bytes read at most in a call that stays on its scheduler.
const MOST_AT_ONCE: u64 = 64 << 10;
/// Bytes written at most in such a call: copying more holds a scheduler for too long.
const MOST_UPLOADED: usize = 1 << 20;
/// Bytes of a binary that stay known to the VM when the device has a copy.
const MOST_KNOWN: usize = 8 << 10;

mod atoms {
    rustler::atoms! { ok, already_deallocated }
}

/// A tensor on a device. The tensor is gone once the reference was deallocated; what it was stays known.
pub(crate) struct TensorRef {
    /// Runtime that made it.
    pub(crate) runtime: Arc<Runtime>,
    /// Element type.
    pub(crate) dtype: DType,
    /// Extents.
    pub(crate) shape: SmallVec<[u64; 4]>,
    slot: Mutex<Option<Slot>>,
}

/// What a reference holds until it is deallocated.
struct Slot {
    held: Held,
    /// The value of every element, where the VM knows it.
    element: Option<Element>,
    /// All elements in row-major order, where the VM knows them: few that came from it.
    uploaded: Option<Arc<[u8]>>,
    /// Shared memory that holds the elements, with the permissions it has.
    shared: Shared,
}

impl Slot {
    /// One of which the VM knows nothing else.
    fn new(held: Held) -> Slot {
        Slot {
            held,
            element: None,
            uploaded: None,
            shared: Shared::default(),
        }
    }

    /// What it holds by now: a result that is there is no longer one to come.
    fn held(&mut self) -> &Held {
        if let Held::Lazy(lazy) = &self.held
            && let Some(tensor) = lazy.made()
        {
            self.held = Held::Made(tensor);
        }
        &self.held
    }

    /// The element that each is, or the only one, where the VM knows it.
    fn single(&self) -> Option<Element> {
        let Held::Made(tensor) = &self.held else {
            return None;
        };
        let uploaded = self.uploaded.as_deref().filter(|_| tensor.elements() == 1);
        let element = || uploaded.map(Element::from_slice);
        self.element.clone().or_else(element)
    }
}

/// The bytes of one element.
pub(crate) type Element = SmallVec<[u8; 16]>;

impl Resource for TensorRef {
    const NAME: &CStr = c"tensor";
    const EXPECTED: &str = "a tensor of this VM that was not collected";

    fn class() -> &'static Class {
        static CLASS: Class = Class::unopened();
        &CLASS
    }
}

impl TensorRef {
    /// A reference to `tensor`.
    pub(crate) fn new(runtime: &Arc<Runtime>, tensor: Tensor) -> ResourceArc<TensorRef> {
        TensorRef::holding(runtime, tensor, None, None)
    }

    /// A reference to `tensor`, which holds `bytes`.
    fn uploaded(runtime: &Arc<Runtime>, tensor: Tensor, bytes: &[u8]) -> ResourceArc<TensorRef> {
        let known = (bytes.len() <= MOST_KNOWN).then(|| bytes.into());
        TensorRef::holding(runtime, tensor, None, known)
    }

    /// A reference to `tensor`, all of whose elements are `element`.
    pub(crate) fn constant(
        runtime: &Arc<Runtime>,
        tensor: Tensor,
        element: &[u8],
    ) -> ResourceArc<TensorRef> {
        TensorRef::holding(runtime, tensor, Some(element.into()), None)
    }

    /// A reference to a view of this tensor, which is `of`. Every element of a constant's is still known, and a single one of few
    /// that came from the VM.
    pub(crate) fn view(&self, of: &Tensor, view: Tensor) -> ResourceArc<TensorRef> {
        let known = self.known().filter(|_| view.elements() == 1);
        let single = known.and_then(|known| {
            let size = view.dtype().size() as usize;
            let start = (view.offset().checked_sub(of.offset())?) as usize * size;
            known.get(start..start + size).map(Arc::from)
        });
        TensorRef::holding(&self.runtime, view, self.element(), single)
    }

    /// A reference to a view of the same elements in the same order.
    pub(crate) fn same_order(&self, view: Tensor) -> ResourceArc<TensorRef> {
        TensorRef::holding(&self.runtime, view, self.element(), self.known())
    }

    fn holding(
        runtime: &Arc<Runtime>,
        tensor: Tensor,
        element: Option<Element>,
        uploaded: Option<Arc<[u8]>>,
    ) -> ResourceArc<TensorRef> {
        let (dtype, shape) = (tensor.dtype(), tensor.shape().into());
        let mut slot = Slot::new(Held::Made(Arc::new(tensor)));
        (slot.element, slot.uploaded) = (element, uploaded);
        TensorRef::of(runtime, dtype, shape, slot)
    }

    /// A reference to a result of that type and shape that may wait.
    pub(crate) fn lazy(
        runtime: &Arc<Runtime>,
        (dtype, shape): &Spec,
        lazy: Arc<Lazy>,
    ) -> ResourceArc<TensorRef> {
        let slot = Slot::new(Held::Lazy(lazy));
        TensorRef::of(runtime, *dtype, shape[..].into(), slot)
    }

    fn of(
        runtime: &Arc<Runtime>,
        dtype: DType,
        shape: SmallVec<[u64; 4]>,
        slot: Slot,
    ) -> ResourceArc<TensorRef> {
        ResourceArc::new(TensorRef {
            runtime: runtime.clone(),
            dtype,
            shape,
            slot: Mutex::new(Some(slot)),
        })
    }

    /// What it holds; fails when it was deallocated.
    pub(crate) fn held(&self) -> Result<Held, Failure> {
        let mut slot = self.slot.lock();
        let slot = slot.as_mut().ok_or(Failure::Deallocated)?;
        Ok(slot.held().clone())
    }

    /// A handle on the tensor, once its op has run; fails when it was deallocated.
    pub(crate) fn tensor(&self) -> Result<Arc<Tensor>, Failure> {
        settled(&[self], true).map(|mut tensors| tensors.remove(0))
    }

    /// As [`TensorRef::tensor`]; `None` where that would wait.
    pub(crate) fn try_tensor(&self) -> Result<Option<Arc<Tensor>>, Failure> {
        Ok(settled(&[self], false)?.pop())
    }

    /// The tensor as an operand of what may wait; `None` where it was deallocated.
    pub(crate) fn operand(&self) -> Option<Operand> {
        let mut slot = self.slot.lock();
        let slot = slot.as_mut()?;
        Some(match slot.held().clone() {
            Held::Made(tensor) => Operand::Made(tensor, slot.single()),
            Held::Lazy(lazy) => Operand::Lazy(lazy),
        })
    }

    /// The only element of an integer, or that of each element of a constant, where the VM knows it.
    pub(crate) fn exact(&self) -> Option<Element> {
        let slot = self.slot.lock();
        slot.as_ref()?.single().filter(|_| self.dtype.is_integer())
    }

    /// The value of every element, where the VM knows it and the tensor is there.
    pub(crate) fn element(&self) -> Option<Element> {
        self.slot.lock().as_ref()?.element.clone()
    }

    /// All elements in row-major order, where they came from the VM, are few, and the tensor is there.
    fn known(&self) -> Option<Arc<[u8]>> {
        self.slot.lock().as_ref()?.uploaded.clone()
    }

    /// Puts another tensor of the same type and shape in its place.
    pub(crate) fn replace(&self, tensor: Tensor) {
        *self.slot.lock() = Some(Slot::new(Held::Made(Arc::new(tensor))));
    }

    /// Puts `other`, which has the same elements in memory that somebody may write, in the place of `tensor`. False when that
    /// is not there any more; fails when the reference was deallocated.
    pub(crate) fn swap(&self, tensor: &Arc<Tensor>, other: Tensor) -> Result<bool, Failure> {
        let mut slot = self.slot.lock();
        let slot = slot.as_mut().ok_or(Failure::Deallocated)?;
        let made = slot.held.made();
        if !made.is_some_and(|made| Arc::ptr_eq(&made, tensor)) {
            return Ok(false);
        }
        slot.held = Held::Made(Arc::new(other));
        (slot.element, slot.uploaded) = (None, None);
        Ok(true)
    }

    /// The name of shared memory with the elements and such permissions.
    pub(crate) fn shared_as(&self, permissions: u32) -> Option<String> {
        self.slot.lock().as_ref()?.shared.named(permissions)
    }

    /// Keeps shared memory with the elements as long as the tensor is there, and says its name.
    pub(crate) fn keep_shared(
        &self,
        segment: Segment,
        permissions: u32,
    ) -> Result<String, Failure> {
        let mut slot = self.slot.lock();
        let held = slot.as_mut().ok_or(Failure::Deallocated)?;
        Ok(held.shared.keep(segment, permissions))
    }

    /// Whether it was not deallocated.
    pub(crate) fn is_live(&self) -> bool {
        self.slot.lock().is_some()
    }

    /// Size of the elements, in bytes.
    pub(crate) fn byte_size(&self) -> u64 {
        self.shape.iter().product::<u64>() * self.dtype.size()
    }

    /// The bytes of the first `limit` elements, where they are few and there soon.
    pub(crate) fn read_now(&self, limit: Option<u64>) -> Result<Option<Vec<u8>>, Failure> {
        let Some(tensor) = self.try_tensor()? else {
            return Ok(None);
        };
        let count = tensor.elements().min(limit.unwrap_or(u64::MAX));
        if count * tensor.dtype().size() > MOST_AT_ONCE {
            return Ok(None);
        }
        if let Some(element) = self.element() {
            self.runtime.check()?;
            return Ok(Some(element.repeat(count as usize)));
        }
        if let Some(known) = self.known() {
            self.runtime.check()?;
            let bytes = known.get(..(count * tensor.dtype().size()) as usize);
            return Ok(bytes.map(<[u8]>::to_vec));
        }
        Ok(self.runtime.try_download(&tensor, limit, SHORT)?)
    }
}

/// `{:ok, ref}`.
#[rustler::nif]
fn upload<'a>(
    env: Env<'a>,
    device: ResourceArc<DeviceRef>,
    dtype: TypeTerm,
    shape: ShapeTerm,
    bytes: Binary<'a>,
) -> Term<'a> {
    let _turn = Turn::begin(env);
    let runtime = &device.runtime;
    let made = match bytes.len() {
        0..=MOST_UPLOADED => runtime.try_upload(dtype.0, &shape.0, bytes.as_slice()),
        _ => Ok(None),
    };
    match made {
        Ok(Some(tensor)) => {
            let made = TensorRef::uploaded(runtime, tensor, bytes.as_slice());
            (atoms::ok(), made).encode(env)
        }
        Ok(None) => {
            let kept = [bytes.to_term(env)];
            later(env, SchedulerFlags::DirtyIo, &kept, move |env, kept| {
                let upload = |bytes: Binary| {
                    let tensor = device.runtime.upload(dtype.0, &shape.0, bytes.as_slice())?;
                    let bytes = bytes.as_slice();
                    Ok(TensorRef::uploaded(&device.runtime, tensor, bytes))
                };
                let bytes = kept.first().and_then(|bytes| bytes.decode().ok());
                let lost = || Failure::bad_input("expected a binary");
                reply::encode(env, bytes.ok_or_else(lost).and_then(upload))
            })
        }
        Err(error) => reply::encode_error(env, &Failure::Host(error)),
    }
}

/// `{:ok, ref}` of a tensor whose elements are all `element`.
#[rustler::nif]
fn constant<'a>(
    env: Env<'a>,
    device: ResourceArc<DeviceRef>,
    dtype: TypeTerm,
    shape: ShapeTerm,
    element: Binary,
) -> Term<'a> {
    let runtime = &device.runtime;
    match runtime.try_constant(dtype.0, &shape.0, element.as_slice()) {
        Ok(Some(tensor)) => {
            let made = TensorRef::constant(runtime, tensor, element.as_slice());
            (atoms::ok(), made).encode(env)
        }
        Ok(None) => {
            let element = element.as_slice().to_vec();
            later(env, SchedulerFlags::DirtyIo, &[], move |env, _| {
                let tensor = device.runtime.constant(dtype.0, &shape.0, &element);
                let made =
                    tensor.map(|tensor| TensorRef::constant(&device.runtime, tensor, &element));
                reply::encode(env, made.map_err(Failure::from))
            })
        }
        Err(error) => reply::encode_error(env, &Failure::Host(error)),
    }
}

/// The element of a tensor whose elements are all known to be the same: one that [`constant`] made, a view of it, or what an
/// elementwise op makes of such. `nil` for any other tensor.
#[rustler::nif]
fn constant_of<'a>(env: Env<'a>, tensor: ResourceArc<TensorRef>) -> Term<'a> {
    let element = tensor.element();
    element.map(|element| Bytes(element.into_vec())).encode(env)
}

/// All elements of a tensor in row-major order: of one that [`upload`] made of a few kilobytes, of a reshaped view of it or of a
/// view of one element, or of a constant's scalar. `nil` for any other tensor.
#[rustler::nif]
fn known<'a>(env: Env<'a>, tensor: ResourceArc<TensorRef>) -> Term<'a> {
    let bytes = match tensor.element() {
        Some(element) if tensor.shape.is_empty() => Some(element.into_vec()),
        _ => tensor.known().map(|known| known.to_vec()),
    };
    bytes.map(Bytes).encode(env)
}

/// `{:ok, binary}` of the first `limit` elements, or of all for `nil`.
#[rustler::nif]
fn download<'a>(env: Env<'a>, tensor: ResourceArc<TensorRef>, limit: Option<u64>) -> Term<'a> {
    let _turn = Turn::begin(env);
    match tensor.read_now(limit) {
        Ok(None) => later(env, SchedulerFlags::DirtyIo, &[], move |env, _| {
            let read = || binary::download(env, &tensor.runtime, &*tensor.tensor()?, limit);
            reply::encode(env, read())
        }),
        Ok(Some(bytes)) => (atoms::ok(), Bytes(bytes)).encode(env),
        Err(failure) => reply::encode_error(env, &failure),
    }
}

/// Frees the memory now, or once no result to come needs it: `:ok`, or `:already_deallocated`.
#[rustler::nif]
fn deallocate(tensor: ResourceArc<TensorRef>) -> Atom {
    let gone = tensor.slot.lock().take();
    if gone.is_some() {
        atoms::ok()
    } else {
        atoms::already_deallocated()
    }
}
