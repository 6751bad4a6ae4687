//! A kernel of a pack as the host asks it. In which order kernels are asked is the table's.

use super::folder::{plan, row::Row};
use nx_vulkan_abi::{DType, DTypeSet, Features, Numerics, Offers, Reply, Request};
use std::sync::Arc;

/// Largest rank of a kernel.
pub(super) const MAX_RANK: u32 = 255;

/// A kernel of a loaded pack.
#[derive(Debug, Clone)]
pub struct KernelEntry {
    /// Index of its pack in [`crate::Table::packs`], once there is a table.
    pub pack: usize,
    /// Id, unique in the pack.
    pub id: String,
    /// Op that it runs.
    pub op: String,
    /// The pack's own number for it.
    pub row: u32,
    /// Element types that every input must be of.
    pub inputs: DTypeSet,
    /// Element types that every output must be of.
    pub outputs: DTypeSet,
    /// Device capabilities without which it is not asked.
    pub needs: Features,
    /// Promise about rounding.
    pub numerics: Numerics,
    /// Preference, 0 to 255; higher is asked first.
    pub rank: u32,
    /// What it runs beyond the plain op.
    pub offers: Offers,
    pub(super) plan: Planner,
}

/// Who answers a kernel's requests.
#[derive(Debug, Clone)]
pub(super) enum Planner {
    /// A function of the pack.
    Code(extern "C" fn(u32, &Request<'_>) -> Reply),
    /// The host, from the pack's table.
    Table(Arc<Row>),
}

impl Planner {
    /// The answer of kernel `number`. \[thread-safe\]
    pub(super) fn plan(&self, number: u32, request: &Request<'_>) -> Reply {
        match self {
            Planner::Code(plan) => plan(number, request),
            Planner::Table(row) => plan::plan(row, request),
        }
    }
}

impl KernelEntry {
    /// Whether it is for operands and results of these types on a device of these capabilities, else why not.
    ///
    /// # Errors
    /// What it does not take, as text.
    pub fn takes(
        &self,
        inputs: &[DType],
        outputs: &[DType],
        device: Features,
    ) -> std::result::Result<(), String> {
        if let Some(dtype) = inputs.iter().find(|dtype| !self.inputs.has(**dtype)) {
            return Err(format!("it does not take {dtype}"));
        }
        if let Some(dtype) = outputs.iter().find(|dtype| !self.outputs.has(**dtype)) {
            return Err(format!("it does not give {dtype}"));
        }
        match device.has(self.needs) {
            true => Ok(()),
            false => Err("the device lacks what it needs".to_owned()),
        }
    }

    /// Asks the pack, or its table, how it would run `request`. \[thread-safe\]
    pub fn plan(&self, request: &Request<'_>) -> Reply {
        self.plan.plan(self.row, request)
    }
}
