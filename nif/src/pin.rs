//! Keeps this library mapped for the life of the VM.

/// Takes a reference to this library that is never given back.
///
/// The VM unmaps a NIF library when its module is purged. The device, its threads and the buffers that live
/// references still own run code of this image, so it has to outlive the module.
#[cfg(unix)]
pub(crate) fn keep_mapped() {
    let here = keep_mapped as fn() as *const libc::c_void;
    let mut info = std::mem::MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: `here` is an address inside this image and `info` is writable; dladdr fills it when it answers non-zero.
    let path = unsafe {
        if libc::dladdr(here, info.as_mut_ptr()) == 0 {
            return;
        }
        info.assume_init().dli_fname
    };
    // SAFETY: dladdr gave a C string owned by the loader; RTLD_NOLOAD opens only what is mapped already.
    unsafe {
        libc::dlopen(
            path,
            libc::RTLD_NOW | libc::RTLD_NOLOAD | libc::RTLD_NODELETE,
        )
    };
}

/// Nothing to do: other systems are not asked to unload it.
#[cfg(not(unix))]
pub(crate) fn keep_mapped() {}
