//! Values of this library in references of the VM. They outlive an upgrade of the Erlang module, which those of rustler
//! do not, because it opens their types anew.

use crate::misfit::misfit;
use rustler::{
    Decoder, Encoder, Env, Error, NifResult, Term,
    sys::{
        ErlNifEnv, ErlNifResourceDtor, ErlNifResourceFlags, ErlNifResourceType,
        ErlNifResourceTypeInit, enif_alloc_resource, enif_get_resource, enif_keep_resource,
        enif_make_resource, enif_open_resource_type_x, enif_release_resource,
    },
};
use std::{
    ffi::{CStr, c_void},
    ops::Deref,
    ptr::{NonNull, null, null_mut},
    sync::atomic::{AtomicPtr, Ordering},
};

/// Alignment of the memory that the VM gives a resource.
const ALIGN: usize = 8;

/// A type whose values references of the VM may own.
pub(crate) trait Resource: Sized + Send + Sync + 'static {
    /// What the VM calls the type.
    const NAME: &'static CStr;

    /// What stands for one in a message.
    const EXPECTED: &'static str;

    /// Where the VM's handle of the type is kept.
    fn class() -> &'static Class;
}

/// The VM's handle of a type.
#[derive(Debug)]
pub(crate) struct Class(AtomicPtr<ErlNifResourceType>);

impl Class {
    /// Before any module has opened it.
    pub(crate) const fn unopened() -> Class {
        Class(AtomicPtr::new(null_mut()))
    }

    fn handle(&self) -> *const ErlNifResourceType {
        self.0.load(Ordering::Acquire)
    }
}

/// Opens the type for a module that is being loaded. Live values of the module that it replaces become its own. False
/// when the VM refuses.
pub(crate) fn open<T: Resource>(env: Env) -> bool {
    const { assert!(align_of::<T>() <= ALIGN) };
    let callbacks = ErlNifResourceTypeInit {
        dtor: release::<T> as *const ErlNifResourceDtor,
        stop: null(),
        down: null(),
    };
    let open = |flags| {
        let mut opened = flags;
        // SAFETY: the VM is calling a load or upgrade function with this env, and copies the name and the callbacks.
        unsafe {
            enif_open_resource_type_x(
                env.as_c_arg(),
                T::NAME.as_ptr(),
                &callbacks,
                flags,
                &mut opened,
            )
        }
    };
    let mut handle = open(ErlNifResourceFlags::ERL_NIF_RT_TAKEOVER);
    if handle.is_null() {
        handle = open(ErlNifResourceFlags::ERL_NIF_RT_CREATE);
    }
    if !handle.is_null() {
        T::class().0.store(handle.cast_mut(), Ordering::Release);
    }
    !handle.is_null()
}

unsafe extern "C" fn release<T: Resource>(_: *mut ErlNifEnv, value: *mut c_void) {
    // SAFETY: the VM calls this once for each resource, when nothing refers to it any more; `new` put a T there.
    let dropped = std::panic::catch_unwind(|| unsafe { value.cast::<T>().drop_in_place() });
    // A panic was printed, and must not reach the VM.
    drop(dropped);
}

/// A counted reference to a value that the VM owns.
#[derive(Debug)]
pub(crate) struct ResourceArc<T: Resource>(NonNull<T>);

// SAFETY: the VM counts references atomically, and `Resource` asks for types that threads may share.
unsafe impl<T: Resource> Send for ResourceArc<T> {}
// SAFETY: as above.
unsafe impl<T: Resource> Sync for ResourceArc<T> {}

impl<T: Resource> ResourceArc<T> {
    /// Gives `value` to the VM.
    pub(crate) fn new(value: T) -> ResourceArc<T> {
        // SAFETY: the type is open, since this runs in a function of a loaded module; the VM gives memory for a T, which
        // nobody else knows yet, or ends.
        unsafe {
            let memory = enif_alloc_resource(T::class().handle(), size_of::<T>()).cast::<T>();
            memory.write(value);
            ResourceArc(NonNull::new_unchecked(memory))
        }
    }
}

impl<T: Resource> Deref for ResourceArc<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the value lives while this reference is counted.
        unsafe { self.0.as_ref() }
    }
}

impl<T: Resource> Drop for ResourceArc<T> {
    fn drop(&mut self) {
        // SAFETY: this reference was counted when it was made.
        unsafe { enif_release_resource(self.0.as_ptr().cast()) };
    }
}

impl<T: Resource> Encoder for ResourceArc<T> {
    fn encode<'a>(&self, env: Env<'a>) -> Term<'a> {
        // SAFETY: the value is a live resource.
        unsafe {
            Term::new(
                env,
                enif_make_resource(env.as_c_arg(), self.0.as_ptr().cast()),
            )
        }
    }
}

impl<'a, T: Resource> Decoder<'a> for ResourceArc<T> {
    fn decode(term: Term<'a>) -> NifResult<ResourceArc<T>> {
        let mut value = null();
        // SAFETY: term and env belong together. The VM answers non-zero only for a live resource of this type, which is
        // counted before the term can go.
        unsafe {
            let env = term.get_env().as_c_arg();
            if enif_get_resource(env, term.as_c_arg(), T::class().handle(), &mut value) == 0 {
                return Err(misfit(term, T::EXPECTED));
            }
            enif_keep_resource(value);
        }
        NonNull::new(value.cast_mut().cast())
            .map(ResourceArc)
            .ok_or(Error::BadArg)
    }
}
