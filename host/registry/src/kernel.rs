//! A kernel of a pack as the host asks it. In which order kernels are asked is the table's.

use super::folder::{plan, row::Row};
use nx_vulkan_abi::{
    DType, DTypeSet, Features, Numerics, Offers, Precision, Reply, Request, lasting,
};
use nx_vulkan_ops::{Attr, epilogue, find, precision};
use std::{borrow::Cow, sync::Arc};

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

    /// The attributes with which it is asked for a request that has `attrs`: those that permit something are told to kernels that
    /// offer to use them.
    ///
    /// # Errors
    /// What the request wants and the kernel does not offer, as text.
    pub fn asked_with<'a>(
        &self,
        attrs: &'a [Attr],
    ) -> std::result::Result<Cow<'a, [Attr]>, String> {
        if epilogue::has(attrs) && !self.offers.has(Offers::EPILOGUE) {
            return Err("it takes no epilogue".to_owned());
        }
        let precision = precision::of(&self.op, attrs);
        if precision == Precision::Highest && self.numerics > Numerics::IEEE {
            return Err("precision is highest, and it is relaxed".to_owned());
        }
        let is_told = |attr: &Attr| match &*attr.name {
            precision::ATTRIBUTE => {
                precision == Precision::High && self.offers.has(Offers::PRECISION)
            }
            lasting::ATTRIBUTE => self.offers.has(Offers::LASTING),
            _ => true,
        };
        let is_own = |attr: &Attr| find(&self.op).is_some_and(|op| op.has(&attr.name));
        let is_left = |attr: &Attr| is_told(attr) || !is_own(attr);
        Ok(match attrs.iter().all(is_left) {
            true => attrs.into(),
            false => attrs.iter().filter(|attr| is_left(attr)).cloned().collect(),
        })
    }

    /// Asks the pack, or its table, how it would run `request`. \[thread-safe\]
    pub fn plan(&self, request: &Request<'_>) -> Reply {
        self.plan.plan(self.row, request)
    }
}
