//! The parts of a request that selection looks at. What is asked, and why, is decided elsewhere.

use nx_vulkan_abi::{DType, DeviceInfo, Features};

/// A kernel by its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CandidateKernel {
    /// Index in [`crate::Table::packs`], index in [`crate::LoadedPack::kernels`].
    Pack(usize, usize),
    /// The CPU kernel.
    Host,
}

/// The parts of a request that selection looks at.
#[derive(Clone, Copy)]
pub struct Asked<'a> {
    /// Name of the op.
    pub op: &'a str,
    /// Type and shape of each input.
    pub inputs: &'a [(DType, &'a [u64])],
    /// Type and shape of each output.
    pub outputs: &'a [(DType, &'a [u64])],
    /// The device it would run on.
    pub device: &'a DeviceInfo<'a>,
    /// How long a kernel takes for such a request, in microseconds, where that was measured.
    pub measured: &'a dyn Fn(CandidateKernel) -> Option<f64>,
}

impl Asked<'_> {
    /// The measured time, or infinity without one and where it does not count.
    pub(super) fn time(&self, kernel: CandidateKernel, counts: bool) -> f64 {
        let time = counts.then(|| (self.measured)(kernel)).flatten();
        time.filter(|time| time.is_finite())
            .unwrap_or(f64::INFINITY)
    }
}

pub(super) fn features_missing(needs: Features, device: Features) -> Option<String> {
    if device.has(needs) {
        return None;
    }
    let missing = Features(needs.0 & !device.0);
    let known = missing.names();
    let names = if known.is_empty() {
        "a feature this host does not know".to_owned()
    } else {
        known.join(", ")
    };
    Some(format!("the device lacks {names}"))
}
