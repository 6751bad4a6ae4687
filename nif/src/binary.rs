//! Binaries of the VM that are written as bytes arrive.

use crate::reply::Failure;
use nx_vulkan_host::{Runtime, Sink, Tensor};
use rustler::{
    Env, Term,
    sys::{ErlNifBinary, enif_alloc_binary, enif_make_binary, enif_release_binary},
};
use std::mem::MaybeUninit;

/// One that is being written.
#[derive(Default)]
pub(crate) struct Written {
    binary: Option<Owned>,
    bytes: usize,
}

/// A binary of ours, whose bytes are not all written.
struct Owned(ErlNifBinary);

// SAFETY: the binary belongs to no process, and nobody else knows it.
unsafe impl Send for Owned {}

impl Drop for Owned {
    fn drop(&mut self) {
        // SAFETY: it was allocated, and no term was made of it.
        unsafe { enif_release_binary(&mut self.0) };
    }
}

impl Sink for Written {
    fn room(&mut self, len: u64) -> bool {
        let mut binary = MaybeUninit::uninit();
        // SAFETY: the VM fills in the struct where it answers that there is memory.
        self.binary = usize::try_from(len).ok().and_then(|len| unsafe {
            (enif_alloc_binary(len, binary.as_mut_ptr()) != 0).then(|| Owned(binary.assume_init()))
        });
        self.bytes = 0;
        self.binary.is_some()
    }

    fn append(&mut self, bytes: &[u8]) {
        let Some(Owned(binary)) = &mut self.binary else {
            return;
        };
        let room = binary.size - self.bytes;
        let bytes = &bytes[..bytes.len().min(room)];
        // SAFETY: the binary has room for that many bytes more.
        unsafe {
            let to = binary.data.add(self.bytes);
            to.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
        }
        self.bytes += bytes.len();
    }
}

impl Written {
    /// The term, `None` where not all was written.
    fn term(mut self, env: Env<'_>) -> Option<Term<'_>> {
        let whole = |owned: &Owned| owned.0.size == self.bytes;
        let owned = self.binary.take().filter(whole)?;
        let mut owned = std::mem::ManuallyDrop::new(owned);
        // SAFETY: all bytes are written, and the term takes the binary over.
        Some(unsafe { Term::new(env, enif_make_binary(env.as_c_arg(), &mut owned.0)) })
    }
}

/// The bytes of the first `limit` elements. Waits.
pub(crate) fn download<'a>(
    env: Env<'a>,
    runtime: &Runtime,
    tensor: &Tensor,
    limit: Option<u64>,
) -> Result<Term<'a>, Failure> {
    let mut written = Written::default();
    runtime.download_to(tensor, limit, &mut written)?;
    let term = written.term(env);
    term.ok_or_else(|| Failure::bad_input("expected all bytes of a tensor, got: some"))
}
