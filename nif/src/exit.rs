//! The end of the VM: no thread may be inside a driver when the process runs the driver's destructors.

use crate::device;
use rustler::Env;

/// Makes `erlang:halt` stop the threads of this library and wait for its NIFs that still run, where the VM can (OTP 26).
#[cfg(unix)]
pub(crate) fn prepare_halt(env: Env) {
    type SetOption = unsafe extern "C" fn(*mut libc::c_void, libc::c_int, ...) -> libc::c_int;
    type OnHalt = extern "C" fn(*mut libc::c_void);
    const DELAY_HALT: libc::c_int = 1;
    const ON_HALT: libc::c_int = 2;

    extern "C" fn on_halt(_: *mut libc::c_void) {
        device::stop_threads();
    }

    // SAFETY: the name is a C string; the lookup is among what the process has loaded.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"enif_set_option".as_ptr()) };
    if !found.is_null() {
        // SAFETY: the VM exports this function with this signature since NIF 2.17; the first option takes no argument,
        // the second a function, and this library stays mapped.
        unsafe {
            let set_option = std::mem::transmute::<*mut libc::c_void, SetOption>(found);
            set_option(env.as_c_arg().cast(), DELAY_HALT);
            set_option(env.as_c_arg().cast(), ON_HALT, on_halt as OnHalt);
        }
    }
}

/// Other systems have no such options.
#[cfg(not(unix))]
pub(crate) fn prepare_halt(_env: Env) {}
