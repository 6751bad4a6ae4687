//! What the VM finds when it loads this library: its functions, and what to do when the Erlang module is loaded, or
//! replaced by a new version of itself.
//!
//! This is what `rustler::init!` writes, and upgrades, of which it knows nothing. Devices, threads, loaded packs and live
//! tensors belong to the mapped library, so it is only ever the library that goes on; the module around it changes.

use crate::{
    device::DeviceRef, exit, image, later::Waiting, logger, module::ModuleRef, pin,
    profile::ProfilingRef, program::ProgramRef, resource, tensor::TensorRef,
};
use rustler::{
    Env, Nif, Term,
    codegen_runtime::inventory,
    sys::{ErlNifEntry, ErlNifEnv, ErlNifTerm},
};
use std::{
    ffi::{c_int, c_void},
    path::Path,
    sync::{
        OnceLock,
        atomic::{AtomicBool, Ordering},
    },
};

/// The VM or the library failed.
const FAILED: c_int = 1;
/// Another build lies where this one was loaded from, or another library serves the module.
const OTHER_BUILD: c_int = 2;

struct Entry(ErlNifEntry);
// SAFETY: what it points to is never changed and lives as long as the library.
unsafe impl Send for Entry {}
// SAFETY: as above.
unsafe impl Sync for Entry {}

static ENTRY: OnceLock<Entry> = OnceLock::new();

/// Its address tells this library from another one.
static MARK: AtomicBool = AtomicBool::new(false);

#[cfg(not(windows))]
#[unsafe(no_mangle)]
extern "C" fn nif_init() -> *const ErlNifEntry {
    entry(|| {
        // SAFETY: the VM calls this before any function of the library.
        unsafe { rustler::codegen_runtime::internal_write_symbols() }
    })
}

#[cfg(windows)]
#[unsafe(no_mangle)]
extern "C" fn nif_init(
    callbacks: *mut rustler::codegen_runtime::DynNifCallbacks,
) -> *const ErlNifEntry {
    entry(|| {
        // SAFETY: as above; the VM gives its table of functions.
        unsafe { rustler::codegen_runtime::internal_set_symbols(callbacks) }
    })
}

fn entry(connect: impl FnOnce()) -> *const ErlNifEntry {
    let make = || {
        connect();
        let functions: Vec<_> = inventory::iter::<Nif>().map(Nif::get_def).collect();
        let mut entry = ErlNifEntry::new(c"Elixir.Nx.Vulkan.NativeV", functions.leak(), load);
        entry.upgrade = Some(upgrade);
        Entry(entry)
    };
    &ENTRY.get_or_init(make).0
}

unsafe extern "C" fn load(
    env: *mut ErlNifEnv,
    private: *mut *mut c_void,
    info: ErlNifTerm,
) -> c_int {
    // SAFETY: the VM gives its env, a place for a pointer, and a term of that env.
    unsafe { start(env, private, info) }
}

unsafe extern "C" fn upgrade(
    env: *mut ErlNifEnv,
    private: *mut *mut c_void,
    old: *mut *mut c_void,
    info: ErlNifTerm,
) -> c_int {
    // SAFETY: as for `load`; the module that is replaced was loaded, and has a place of its own.
    unsafe {
        if *old != mark() {
            return OTHER_BUILD;
        }
        start(env, private, info)
    }
}

/// # Safety
/// The arguments are those of a load or upgrade function.
unsafe fn start(env: *mut ErlNifEnv, private: *mut *mut c_void, info: ErlNifTerm) -> c_int {
    let lifetime = ();
    // SAFETY: as the caller says; the env is good until this returns.
    let (env, info) = unsafe {
        let env = Env::new(&lifetime, env);
        (env, Term::new(env, info))
    };
    let started = std::panic::catch_unwind(|| {
        let ran_before = MARK.swap(true, Ordering::AcqRel);
        if ran_before && !is_current(info) {
            return OTHER_BUILD;
        }
        pin::keep_mapped();
        exit::prepare_halt(env);
        logger::install();
        let open = resource::open::<DeviceRef>(env)
            && resource::open::<TensorRef>(env)
            && resource::open::<ModuleRef>(env)
            && resource::open::<ProgramRef>(env)
            && resource::open::<ProfilingRef>(env)
            && resource::open::<Waiting>(env);
        if open { 0 } else { FAILED }
    });
    // SAFETY: as the caller says.
    unsafe { *private = mark() };
    started.unwrap_or(FAILED)
}

/// Whether this build still lies at the path, without its extension, that the module names.
fn is_current(path: Term) -> bool {
    let extension = if cfg!(windows) { "dll" } else { "so" };
    path.decode::<&str>()
        .is_ok_and(|path| image::is_in(Path::new(&format!("{path}.{extension}"))))
}

fn mark() -> *mut c_void {
    (&raw const MARK).cast_mut().cast()
}
