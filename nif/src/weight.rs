//! What large results weigh with the process that is given them. The VM collects the garbage of a process by its heap and by the
//! binaries it was given, and does not see what a reference owns.

use crate::{resource::ResourceArc, tensor::TensorRef};
use nx_vulkan_host::Runtime;
use rustler::{
    Env,
    sys::{ErlNifEnv, ErlNifTerm, enif_alloc_env, enif_make_copy, enif_make_new_binary},
};
use std::{mem::MaybeUninit, sync::OnceLock};

/// Bytes of the binary that is given: a third of what makes the VM collect.
const BYTES: usize = 128 << 10;
/// So many make the VM collect at once.
const ENOUGH: usize = 4;

/// Bytes of a result on a CPU whose memory is worth having back soon.
const LARGE: u64 = 1 << 20;

/// A binary that all processes share, in an environment of its own.
struct Weight {
    _env: *mut ErlNifEnv,
    binary: ErlNifTerm,
}

// SAFETY: nothing changes the environment or the binary once they are made, and the VM counts references to it atomically.
unsafe impl Send for Weight {}
// SAFETY: as above.
unsafe impl Sync for Weight {}

/// Counts results with the process that calls, as garbage.
///
/// On a CPU each large one, so that two or three of them are collected together: freed soon, its memory is still in the caches
/// when the next result is written there, which takes half as long. On any other device each time that the results of all
/// processes have come to a part of its memory: what nobody collects is taken from the driver anew, which takes milliseconds,
/// until none is left for anybody else.
pub(crate) fn count(env: Env, runtime: &Runtime, results: &[ResourceArc<TensorRef>]) {
    let times = if runtime.device().summary().kind == "cpu" {
        results
            .iter()
            .filter(|result| bytes(result) >= LARGE)
            .count()
    } else if runtime.note_results(results.iter().map(|result| bytes(result)).sum()) {
        ENOUGH
    } else {
        0
    };
    (0..times).for_each(|_| count_one(env));
}

fn bytes(tensor: &TensorRef) -> u64 {
    let elements: u64 = tensor.shape.iter().product();
    elements.saturating_mul(tensor.dtype.size())
}

fn count_one(env: Env) {
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
