//! The end of the VM: no thread may be inside a driver when the process runs the driver's destructors.

use nx_vulkan_host::exit;
use rustler::Env;

/// Makes `erlang:halt` stop what the host does, where the VM can (OTP 26). The VM is not asked to wait for NIFs that still
/// run: one that hangs in a driver would keep it for ever.
#[cfg(unix)]
pub(crate) fn prepare_halt(env: Env) {
    type SetOption = unsafe extern "C" fn(*mut libc::c_void, libc::c_int, ...) -> libc::c_int;
    type OnHalt = extern "C" fn(*mut libc::c_void);
    const ON_HALT: libc::c_int = 2;

    extern "C" fn on_halt(_: *mut libc::c_void) {
        exit::stop();
        log::logger().flush();
    }

    // SAFETY: the name is a C string; the lookup is among what the process has loaded.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"enif_set_option".as_ptr()) };
    if !found.is_null() {
        // SAFETY: the VM exports this function with this signature since NIF 2.17; the option takes a function, and this
        // library stays mapped.
        unsafe {
            let set_option = std::mem::transmute::<*mut libc::c_void, SetOption>(found);
            set_option(env.as_c_arg().cast(), ON_HALT, on_halt as OnHalt);
        }
    }
}

/// Other systems have no such option.
#[cfg(not(unix))]
pub(crate) fn prepare_halt(_env: Env) {}
