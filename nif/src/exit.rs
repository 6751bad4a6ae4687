//! The end of the VM: no thread may be inside a driver when the process runs the driver's destructors.

use rustler::Env;

/// Makes `erlang:halt` wait for the NIFs of this library that still run, where the VM can (OTP 26).
#[cfg(unix)]
pub(crate) fn delay_halt(env: Env) {
    type SetOption = unsafe extern "C" fn(*mut libc::c_void, libc::c_int, ...) -> libc::c_int;
    const DELAY_HALT: libc::c_int = 1;

    // SAFETY: the name is a C string; the lookup is among what the process has loaded.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"enif_set_option".as_ptr()) };
    if !found.is_null() {
        // SAFETY: the VM exports this function with this signature since NIF 2.17, and the option takes no argument.
        unsafe {
            let set_option = std::mem::transmute::<*mut libc::c_void, SetOption>(found);
            set_option(env.as_c_arg().cast(), DELAY_HALT);
        }
    }
}

/// Other systems have no such option.
#[cfg(not(unix))]
pub(crate) fn delay_halt(_env: Env) {}
