//! Leapfrog chains: K steps for any number of chains in one dispatch of a module, bytes in and bytes out.
//!
//! Bindings of set 0: 0 q, 1 p, 2 extras, then the outputs 3 q, 4 p, 5 gradient (each `chains * K * d`) and 6 log
//! density (`chains * K`), then what the module wants besides: resident data, scratch. One workgroup runs one chain.
//! Push constants start with four words, K, n_obs, d and the number of chains, and a float, the step size.

use nx_vulkan_abi::DType;
use nx_vulkan_host::{
    Error, Module, Runtime, Tensor,
    module::{ALIGN, Binding, Launch},
    tensor::byte_len,
};

/// Most bytes of push constants.
const MAX_PUSH: usize = 128;
/// Invocations of a workgroup of the modules that come with a fixed one.
const MAX_COORDINATES: u64 = 256;

/// A chain's inputs, little-endian.
#[derive(Debug, Clone, Copy)]
pub struct Chain<'a> {
    /// Positions, `chains * d`.
    pub q: &'a [u8],
    /// Momenta, as long.
    pub p: &'a [u8],
    /// For each chain what [`Layout`] says.
    pub extras: &'a [u8],
    /// The whole push block.
    pub push: &'a [u8],
    /// Steps; the push block says the same.
    pub k: u32,
    /// Type of every element: [`DType::F32`] or [`DType::F64`].
    pub dtype: DType,
    /// What the buffers hold.
    pub layout: Layout<'a>,
}

/// What the extras hold, and how many chains there are.
#[derive(Debug, Clone, Copy)]
pub enum Layout<'a> {
    /// One chain: observations, then the inverse mass of each coordinate.
    Single,
    /// The same for each of the chains that the push block counts.
    Batch,
    /// For each chain its step size, then its inverse masses; observations lie in `data`, where there are any, at binding 7.
    /// `scratch` elements for each chain lie at binding 8, where there are any. Any number of coordinates.
    Resident {
        /// Observations, shared by all chains.
        data: Option<&'a Tensor>,
        /// Elements of scratch memory for each chain.
        scratch: u64,
        /// Invocations of a workgroup: specialization constant 0.
        workgroup: u32,
    },
}

/// Why a chain was not run.
#[derive(Debug)]
pub enum Refusal {
    /// Lengths do not agree with each other or with the push block.
    SizeMismatch,
    /// A count is 0 or out of range, or the push block is too short, too long, or says another K.
    BadInput,
    /// The host's error.
    Failed(Error),
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Refusal {
        Refusal::Failed(error)
    }
}

/// Sizes that passed the guards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) d: u64,
    pub(crate) chains: u64,
}

impl Chain<'_> {
    /// Whether the sizes agree.
    ///
    /// # Errors
    /// The [`Refusal`] that running it gives.
    pub fn check(&self) -> std::result::Result<(), Refusal> {
        self.counts().map(drop)
    }

    pub(crate) fn counts(&self) -> std::result::Result<Counts, Refusal> {
        let size = self.dtype.size();
        let header = 16 + size as usize;
        if self.q.len() != self.p.len() {
            return Err(Refusal::SizeMismatch);
        }
        if self.k == 0 || self.push.len() > MAX_PUSH || self.push.len() < header {
            return Err(Refusal::BadInput);
        }
        let word = |at: usize| {
            let bytes = self.push[at..at + 4].try_into();
            u32::from_le_bytes(bytes.expect("four bytes"))
        };
        let (n_obs, d) = (u64::from(word(4)), u64::from(word(8)));
        let resident = matches!(self.layout, Layout::Resident { .. });
        let chains = match self.layout {
            Layout::Single => 1,
            _ => u64::from(word(12)),
        };
        if word(0) != self.k || chains == 0 || !resident && d > MAX_COORDINATES {
            return Err(Refusal::BadInput);
        }
        let stride = if resident { 1 } else { n_obs } + d;
        let fits = |bytes: &[u8], elements: u64| {
            let wanted = elements
                .checked_mul(chains)
                .and_then(|n| n.checked_mul(size));
            wanted == Some(bytes.len() as u64)
        };
        if d > 0 && fits(self.q, d) && fits(self.extras, stride) {
            Ok(Counts { d, chains })
        } else {
            Err(Refusal::SizeMismatch)
        }
    }
}

/// Runs a chain, waits for it, and gives `take` the chains of q, of p, of the gradient and of the log density.
///
/// # Errors
/// A [`Refusal`]; as [`Runtime::launch`] and [`Runtime::download`] where it is the host's.
pub fn run<T>(
    runtime: &Runtime,
    module: &Module,
    chain: &Chain<'_>,
    take: impl FnOnce([&[u8]; 4]) -> T,
) -> std::result::Result<T, Refusal> {
    let counts = chain.counts()?;
    let Counts { d, chains } = counts;
    let rows = chains
        .checked_mul(chain.k.into())
        .ok_or(Refusal::SizeMismatch)?;
    let mut inputs = Vec::new();
    let inputs_at = [chain.q, chain.p, chain.extras].map(|bytes| {
        inputs.resize(inputs.len().next_multiple_of(ALIGN as usize), 0);
        inputs.extend_from_slice(bytes);
        ((inputs.len() - bytes.len()) as u64, bytes.len() as u64)
    });
    let large = byte_len(chain.dtype, &[rows, d])?;
    let mut end = 0;
    let outputs_at = [large, large, large, byte_len(chain.dtype, &[rows])?].map(|len| {
        let start = end;
        end = len.saturating_add(start).next_multiple_of(ALIGN);
        (start, len)
    });
    let inputs = runtime.upload(DType::U8, &[inputs.len() as u64], &inputs)?;
    let outputs = runtime.reserve(end)?;
    let range = |tensor, (offset, len), writes| Binding {
        tensor,
        offset,
        len,
        writes,
    };
    let mut bindings = Vec::with_capacity(9);
    bindings.extend(inputs_at.map(|at| range(&inputs, at, false)));
    bindings.extend(outputs_at.map(|at| range(&outputs, at, true)));
    let (mut constants, mut scratch_buffer) = (None, None);
    let data = match chain.layout {
        Layout::Resident { data, .. } => data.map(|data| runtime.contiguous(data)).transpose()?,
        _ => None,
    };
    if let Layout::Resident {
        scratch, workgroup, ..
    } = chain.layout
    {
        constants = Some((0, workgroup));
        if scratch > 0 {
            scratch_buffer = Some(runtime.reserve(byte_len(chain.dtype, &[chains, scratch])?)?);
        }
        // A binding that nothing uses still wants a buffer where a later one follows.
        let spare = scratch_buffer.as_ref().map(|_| &inputs);
        bindings.extend(data.as_ref().or(spare).map(Binding::read));
        bindings.extend(scratch_buffer.as_ref().map(Binding::write));
    }
    let launch = Launch {
        bindings: &bindings,
        constants: constants.as_slice(),
        push: chain.push,
        groups: [u32::try_from(chains).unwrap_or(u32::MAX), 1, 1],
    };
    runtime.launch(module, &launch)?;
    let (last, len) = outputs_at[3];
    Ok(runtime.download_with(&outputs, last + len, |bytes| {
        take(outputs_at.map(|(at, len)| &bytes[at as usize..(at + len) as usize]))
    })?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn push(words: [u32; 4], dtype: DType) -> Vec<u8> {
        let mut push: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
        push.resize(16 + dtype.size() as usize, 0);
        push
    }

    /// The kind of refusal of a chain with these sizes in elements; `None` where it is taken.
    fn refusal(
        q: u64,
        p: u64,
        extras: u64,
        push: &[u8],
        k: u32,
        layout: Layout<'_>,
    ) -> Option<&'static str> {
        let bytes = |n: u64| vec![0; n as usize * 8];
        let chain = Chain {
            q: &bytes(q),
            p: &bytes(p),
            extras: &bytes(extras),
            push,
            k,
            dtype: DType::F64,
            layout,
        };
        match chain.counts() {
            Ok(_) => None,
            Err(Refusal::SizeMismatch) => Some("size_mismatch"),
            Err(Refusal::BadInput) => Some("bad_input"),
            Err(Refusal::Failed(_)) => Some("failed"),
        }
    }

    #[test]
    fn every_guard_fires_on_its_side_of_the_boundary() {
        use Layout::{Batch, Single};
        let block = |k, n_obs, d, chains| push([k, n_obs, d, chains], DType::F64);
        let good = block(4, 5, 3, 0);
        assert_eq!(refusal(3, 3, 8, &good, 4, Single), None);
        assert_eq!(refusal(3, 4, 8, &good, 4, Single), Some("size_mismatch"));
        assert_eq!(refusal(2, 2, 8, &good, 4, Single), Some("size_mismatch"));
        assert_eq!(refusal(3, 3, 7, &good, 4, Single), Some("size_mismatch"));
        assert_eq!(refusal(3, 3, 9, &good, 4, Single), Some("size_mismatch"));
        assert_eq!(refusal(3, 3, 8, &good, 5, Single), Some("bad_input"));
        let none = block(0, 5, 3, 0);
        assert_eq!(refusal(3, 3, 8, &none, 0, Single), Some("bad_input"));
        assert_eq!(
            refusal(0, 0, 5, &block(4, 5, 0, 0), 4, Single),
            Some("size_mismatch")
        );
        assert_eq!(refusal(3, 3, 8, &good[..23], 4, Single), Some("bad_input"));
        assert_eq!(refusal(3, 3, 8, &[], 4, Single), Some("bad_input"));
        let longest = [&good[..], &[0; 104]].concat();
        assert_eq!(refusal(3, 3, 8, &longest, 4, Single), None);
        let too_long = [&good[..], &[0; 105]].concat();
        assert_eq!(refusal(3, 3, 8, &too_long, 4, Single), Some("bad_input"));
        assert_eq!(
            refusal(256, 256, 256, &block(1, 0, 256, 0), 1, Single),
            None
        );
        let wide = block(1, 0, 257, 0);
        assert_eq!(refusal(257, 257, 257, &wide, 1, Single), Some("bad_input"));
        assert_eq!(refusal(6, 6, 16, &block(4, 5, 3, 2), 4, Batch), None);
        assert_eq!(
            refusal(6, 6, 16, &block(4, 5, 3, 0), 4, Batch),
            Some("bad_input")
        );
        assert_eq!(
            refusal(6, 6, 15, &block(4, 5, 3, 2), 4, Batch),
            Some("size_mismatch")
        );
        let huge = block(1, u32::MAX, 3, u32::MAX);
        assert_eq!(refusal(3, 3, 8, &huge, 1, Batch), Some("size_mismatch"));
        let resident = Layout::Resident {
            data: None,
            scratch: 0,
            workgroup: 32,
        };
        assert_eq!(
            refusal(600, 600, 602, &block(1, 0, 300, 2), 1, resident),
            None
        );
    }
}
