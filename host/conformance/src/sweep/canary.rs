//! Guards around results: blocks with a known pattern before and after, and another where a result will lie.

use nx_vulkan_abi::DType;
use nx_vulkan_host::{Result, Runtime, Tensor};
use std::collections::{HashMap, HashSet};

/// Free blocks of one size between guards; more than the pool keeps before it hands them out again.
const BLOCKS: usize = 24;
/// Results beyond this size have no guards.
const LARGEST: u64 = 256 << 10;
/// What guards hold.
const GUARD: u8 = 0x5d;

/// Guarded blocks of one runtime.
#[derive(Debug)]
pub(super) struct Canaries<'a> {
    runtime: &'a Runtime,
    /// Rows of blocks by the size of a block.
    rows: HashMap<u64, Row>,
    /// Blocks that hold the pattern of the last preparation.
    filled: HashSet<Place>,
}

/// Slab and offset of a block.
type Place = (u64, u64);

/// Blocks in a row: guards, and between them blocks that the pool may hand out.
#[derive(Debug)]
struct Row {
    guards: HashMap<Place, Tensor>,
    between: HashSet<Place>,
}

/// What was found around a result.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Found {
    /// Nothing but the patterns, on both sides.
    Untouched,
    /// The result lies elsewhere.
    Unguarded,
    /// Another byte, here.
    Overwritten(String),
}

impl<'a> Canaries<'a> {
    pub(super) fn new(runtime: &'a Runtime) -> Canaries<'a> {
        Canaries {
            runtime,
            rows: HashMap::new(),
            filled: HashSet::new(),
        }
    }

    /// Fills the blocks from which the next result of `bytes` bytes will be taken with `pattern`. `live` are the
    /// tensors that keep their blocks.
    ///
    /// # Errors
    /// Those of [`Runtime::upload`].
    pub(super) fn prepare(&mut self, bytes: u64, pattern: u8, live: &[Tensor]) -> Result<()> {
        self.filled.clear();
        let (_, _, size) = self
            .runtime
            .block(&self.runtime.zeros(DType::U8, &[bytes])?);
        if size > LARGEST {
            return Ok(());
        }
        if !self.rows.contains_key(&size) {
            let row = self.row(size)?;
            self.rows.insert(size, row);
        }
        // Blocks that the device may still use are not refilled.
        self.runtime.sync()?;
        let row = &self.rows[&size];
        let fill = vec![pattern; size as usize];
        let mut held = Vec::new();
        let taken = live
            .iter()
            .filter(|tensor| row.between.contains(&self.place(tensor)));
        let free = row.between.len() - taken.count();
        while self.filled.len() < free && held.len() < 2 * BLOCKS {
            let tensor = self.runtime.upload(DType::U8, &[size], &fill)?;
            let place = self.place(&tensor);
            if row.between.contains(&place) {
                self.filled.insert(place);
            }
            held.push(tensor);
        }
        self.runtime.sync()
    }

    /// Looks around `result`, before which [`Canaries::prepare`] was called with `pattern`.
    ///
    /// # Errors
    /// Those of [`Runtime::download`].
    pub(super) fn look(&self, result: &Tensor, pattern: u8) -> Result<Found> {
        let (slab, offset, size) = self.runtime.block(result);
        let end = result.storage_len() as usize;
        let (true, Some(row)) = (self.filled.contains(&(slab, offset)), self.rows.get(&size))
        else {
            return Ok(Found::Unguarded);
        };
        let bytes = self.runtime.download_block(result)?;
        if let Some(at) = bytes[end..].iter().position(|&byte| byte != pattern) {
            return Ok(Found::Overwritten(format!(
                "byte {} of a result of {end}",
                end + at
            )));
        }
        for (neighbour, side) in [
            (offset.wrapping_sub(size), "before"),
            (offset + size, "after"),
        ] {
            let Some(guard) = row.guards.get(&(slab, neighbour)) else {
                return Ok(Found::Unguarded);
            };
            let bytes = self.runtime.download(guard, None)?;
            if let Some(at) = bytes.iter().position(|&byte| byte != GUARD) {
                return Ok(Found::Overwritten(format!(
                    "byte {at} of the {size} {side} the block of a result of {end} bytes"
                )));
            }
        }
        Ok(Found::Untouched)
    }

    fn place(&self, tensor: &Tensor) -> Place {
        let (slab, offset, _) = self.runtime.block(tensor);
        (slab, offset)
    }

    /// Every second block of a new row stays here as a guard; the others go back to the pool.
    fn row(&self, size: u64) -> Result<Row> {
        let fill = vec![GUARD; size as usize];
        let mut row = Vec::new();
        for _ in 0..2 * BLOCKS + 1 {
            let tensor = self.runtime.upload(DType::U8, &[size], &fill)?;
            row.push((self.place(&tensor), tensor));
        }
        row.sort_by_key(|(place, _)| *place);
        let places: Vec<Place> = row.iter().map(|(place, _)| *place).collect();
        let middle = |three: &[Place]| {
            let [before, own, after] = [three[0], three[1], three[2]];
            let follows = |a: Place, b: Place| a.0 == b.0 && a.1 + size == b.1;
            (follows(before, own) && follows(own, after)).then_some(own)
        };
        let between: HashSet<Place> = places.windows(3).step_by(2).filter_map(middle).collect();
        let guards = row
            .into_iter()
            .filter(|(place, _)| !between.contains(place))
            .collect();
        Ok(Row { guards, between })
    }
}
