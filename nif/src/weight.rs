//! What large results weigh with the process that is given them. The VM collects the garbage of a process by its heap and by the
//! binaries it was given, and does not see what a reference owns.

use rustler::{
    Env,
    sys::{ErlNifEnv, ErlNifTerm, enif_alloc_env, enif_make_copy, enif_make_new_binary},
};
use std::{mem::MaybeUninit, sync::OnceLock};

/// Bytes of the binary that is given: a third of what makes the VM collect.
const BYTES: usize = 128 << 10;

/// A binary that all processes share, in an environment of its own.
struct Weight {
    _env: *mut ErlNifEnv,
    binary: ErlNifTerm,
}

// SAFETY: nothing changes the environment or the binary once they are made, and the VM counts references to it atomically.
unsafe impl Send for Weight {}
// SAFETY: as above.
unsafe impl Sync for Weight {}

/// Counts a large result with the process that calls, as garbage that is collected with the next two or three of them: freed
/// soon, its memory is still in a CPU's caches when the next result is written there, which takes half as long.
pub(crate) fn count(env: Env) {
    static WEIGHT: OnceLock<Weight> = OnceLock::new();
    // SAFETY: the environment is never freed, and the bytes are the binary's own. A copy is a reference to the same bytes.
    unsafe {
        let weight = WEIGHT.get_or_init(|| {
            let own = enif_alloc_env();
            let mut binary = MaybeUninit::uninit();
            let bytes = enif_make_new_binary(own, BYTES, binary.as_mut_ptr());
            bytes.write_bytes(0, BYTES);
            Weight {
                _env: own,
                binary: binary.assume_init(),
            }
        });
        enif_make_copy(env.as_c_arg(), weight.binary);
    }
}
