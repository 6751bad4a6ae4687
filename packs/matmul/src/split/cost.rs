//! How a product of split operands is cut up, by a small model of the device, and whether it pays at all.

use super::{DEPTH, Exact, OWNED, Parts, Side, depth};
use crate::{
    cores::{
        COLUMNS,
        cost::{BYTES, DISPATCH, SPLITS, expect_large},
    },
    operand::Operand,
    problem::{Problem, binds_at_most},
    table::Table,
    tiled,
};
use nx_vulkan_abi::{DeviceInfo, Refusal};
use nx_vulkan_pack_kit::matrix::{expect_memory, memory};

/// How a product is cut up.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Shape {
    /// Parts of the contracted axis.
    pub(super) splits: u32,
    /// Fragments along k of one part, an even number.
    pub(super) chunk: u32,
}

/// Rate of a unit that is full, in relation to the best of f16 and bf16, and what one workgroup on a unit does of that.
/// Measured on an H200 with driver 580.159.04.
const SPEED: f64 = 0.96;
/// What is left of it where the ALU adds up sums of few products.
const ROUNDED: f64 = 0.73;
const ALONE: f64 = 0.7;

/// Seconds that a unit takes for the beginnings and ends of its workgroups, each.
const AROUND: f64 = 0.6e-6;
/// Seconds that the last results need to memory, and the bytes that a result counts as which goes through shared memory
/// first, since no packs fit its row.
const STORES: f64 = 2e-6;
const STAGED: f64 = 7.6;

/// Part of the other kernel's time below which the estimates are sure enough: of the shapes timed on an
/// H200, driver 580.159.04, four of the five above gained nothing, or lost up to a third. The plain kernel was dispatched behind
/// all of them, which the estimates counted.
const GAIN: f64 = 0.9;

impl Shape {
    /// The fastest one, and why.
    ///
    /// # Errors
    /// A decline where the plain kernel is as fast, or where the device has too little memory.
    pub(super) fn of(
        problem: &Problem,
        parts: Parts,
        device: &DeviceInfo<'_>,
        table: &Table,
    ) -> Result<(Shape, String), Refusal> {
        expect_large(problem, false)?;
        let plain = tiled::choose(problem, device, &table.tile)?;
        let units = f64::from(device.compute_units.max(8));
        let rates = table.rates(device.name.as_str());
        // Errors of n roundings in each of p parts are as √n / p. Where elements are rounded one by one n is 16 times as large,
        // so that half as many parts leave half the error.
        let most = (2 * plain.cut.chunk / DEPTH).next_multiple_of(2);
        let depth = depth(problem);
        let choices = SPLITS.into_iter().map(|splits| {
            let chunk = depth.div_ceil(splits).next_multiple_of(2);
            Shape {
                splits: depth.div_ceil(chunk),
                chunk,
            }
        });
        let choices = choices.filter(|shape| shape.chunk <= most);
        let least = choices.clone().map(|shape| shape.bytes(problem, parts));
        expect_memory(least.min().unwrap_or(u64::MAX), device)?;
        let fits = |shape: &Shape| {
            shape.partial_bytes(problem) <= binds_at_most(device)
                && shape.bytes(problem, parts) <= memory(device)
        };
        let choices = choices.filter(fits);
        let rate = rates.matrix * 1e9;
        let choices = choices.map(|shape| (shape, shape.seconds(problem, parts, rate, units)));
        let (shape, seconds) = choices
            .min_by(|x, y| x.1.total_cmp(&y.1))
            .ok_or_else(|| Refusal::decline("no cut is both exact and small enough"))?;
        let apart = match problem.finishes_apart() {
            false => 0.0,
            true => apart(problem, 1, units),
        };
        let is_staged = plain.cut.splits == 1 && !problem.n.is_multiple_of(4);
        let staged = if is_staged { STAGED - 4.0 } else { 0.0 };
        let staged = problem.elements() as f64 * staged / (BYTES * units);
        let otherwise = plain.seconds(rates) + apart + staged;
        if seconds < GAIN * otherwise {
            let why = format!(
                "each element as up to {} bf16, {} products of them, {} parts of {} along k, {:.1} us \
                 against {:.1} us of dot_tiled",
                parts.orders,
                parts.products(),
                shape.splits,
                shape.chunk * DEPTH,
                seconds * 1e6,
                otherwise * 1e6
            );
            return Ok((shape, why));
        }
        Err(Refusal::decline(format!(
            "matrix units would take {:.1} us and the general ones {:.1} us",
            seconds * 1e6,
            otherwise * 1e6
        )))
    }

    /// Workgroups along m and n.
    pub(super) fn blocks(&self, problem: &Problem) -> [u32; 2] {
        [
            problem.m.div_ceil(2 * OWNED),
            problem.n.div_ceil(2 * COLUMNS),
        ]
    }

    /// Workgroups in all.
    pub(super) fn jobs(&self, problem: &Problem) -> u64 {
        let [m, n] = self.blocks(problem).map(u64::from);
        m * n * u64::from(problem.batches) * u64::from(self.splits)
    }

    /// Whether sums go to memory first: where there are several of each, or where they are finished apart, as those are whose
    /// results the kernel does not store.
    pub(super) fn is_partial(&self, problem: &Problem) -> bool {
        problem.is_partial(self.splits) || problem.result().size() > 4
    }

    /// Bytes of the sums of all parts that go to memory first.
    pub(super) fn partial_bytes(&self, problem: &Problem) -> u64 {
        match self.is_partial(problem) {
            false => 0,
            true => problem.elements() * u64::from(self.splits) * 4,
        }
    }

    /// Bytes of the packed operands and of the partial results.
    fn bytes(&self, problem: &Problem, parts: Parts) -> u64 {
        let packed = |side| parts.packed(problem, side).bytes;
        let packed = packed(Side::A).saturating_add(packed(Side::B));
        packed.saturating_add(self.partial_bytes(problem))
    }

    /// Estimated seconds: packing, the product and the sum of its parts.
    fn seconds(&self, problem: &Problem, parts: Parts, rate: f64, units: f64) -> f64 {
        let packed = |rows: u32, operand: &Operand, parts: u32| {
            let read = f64::from(problem.k) * operand.dtype.size() as f64;
            let written = f64::from(depth(problem)) * f64::from(DEPTH * 2 * parts);
            operand.batches() as f64 * f64::from(rows) * (read + written)
        };
        let [of_a, of_b] = parts.of;
        let packed = packed(problem.m, &problem.a, of_a) + packed(problem.n, &problem.b, of_b);
        let flops = f64::from(2 * OWNED)
            * f64::from(2 * COLUMNS)
            * f64::from(self.chunk * DEPTH)
            * f64::from(2 * parts.products());
        // The unit with the most workgroups sets the pace.
        let most = (self.jobs(problem) as f64 / units).ceil();
        let rounded = match parts.exact {
            Exact::High => ROUNDED,
            Exact::Full | Exact::Relaxed => 1.0,
        };
        let product = most * flops / (rate * rounded * SPEED * (most * ALONE).min(1.0));
        let product = product + most * AROUND;
        let results = match self.is_partial(problem) {
            true => apart(problem, self.splits, units),
            false => {
                let each = if problem.n.is_multiple_of(4) {
                    4.0
                } else {
                    STAGED
                };
                STORES + problem.elements() as f64 * each / (BYTES * units)
            }
        };
        3.0 * DISPATCH + packed / (BYTES * units) + product + results
    }
}

/// Seconds of a dispatch that adds up so many parts, or finishes one.
fn apart(problem: &Problem, splits: u32, units: f64) -> f64 {
    DISPATCH + problem.elements() as f64 * f64::from(8 * splits) / (BYTES * units)
}
