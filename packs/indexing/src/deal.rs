//! Updates that are dealt to buckets of places: chunks of them are put in the order of their buckets, and a workgroup for each
//! bucket then takes what every chunk has of it and links it by its places in shared memory.

use crate::{
    chunks,
    emit::Words,
    scatter::Scatter,
    walk::{Side, component_defines},
};
use nx_vulkan_abi::{
    BufArg, DType, Define, DeviceKind, Plan, Refusal,
    glsl::{self, define},
};
use nx_vulkan_pack_kit::{
    grid,
    steps::{Step, number, read, scratch},
};

/// Invocations of a workgroup that deals, and of one that takes: the latter are as many as registers allow for several.
const DEALERS: u32 = 512;
const TAKERS: u32 = 256;
/// Updates of a chunk.
const LEAST_CHUNK: u64 = 256;
const MOST_CHUNK: u64 = 4096;
/// Chunks, where their size leaves a choice.
const CHUNKS: u64 = 256;
/// Updates of a chunk that an invocation adds up.
const RUN: u64 = 32;
/// Updates of a chunk that go to one bucket, at most, unless those of a place become one first.
const CROWD: u64 = 32;
const MOST_BUCKETS: u64 = 2048;
/// Places of a bucket, at most: their heads are in shared memory, and an H200 (driver 580.159.04) runs as many workgroups at a
/// time as need about 100 KiB of it.
const MOST_PLACES: u64 = 1 << NEXT_BITS;
/// Places of a vector.
const WIDTH: u64 = 4;
/// Neighbours that go to one bucket.
const PIECE: u64 = 64;
/// Updates of a bucket that are linked at once; buckets have half as many on the average.
const SLOTS: u64 = 1024;
/// Updates of a place that are put in order by looking for the next one.
const SHORT: u64 = 12;
/// Bits of the slot behind another one, beside which the number of an update has the rest of a word.
const NEXT_BITS: u32 = SLOTS.ilog2() + 1;
const MOST_ROWS: u64 = 1 << (u32::BITS - NEXT_BITS);

/// What becomes of updates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Update {
    /// They are added to what is there.
    Add,
    /// The last one takes its place.
    Put,
}

/// How updates are dealt.
#[derive(Debug, Clone, Copy)]
struct Deal {
    update: Update,
    dtype: DType,
    chunk: u64,
    chunks: u64,
    buckets: u64,
    /// Places of a bucket.
    places: u64,
    dealers: u32,
    takers: u32,
}

/// Whether updates are dealt: on a GPU, where that suits. Drivers on CPUs take long for barriers.
pub(crate) fn serves(scatter: &Scatter<'_>, update: Update) -> bool {
    scatter.request.device.kind != DeviceKind::CPU && Deal::of(scatter, update).is_some()
}

pub(crate) fn plan(scatter: &Scatter<'_>, update: Update) -> Result<Plan, Refusal> {
    let deal = Deal::of(scatter, update);
    let deal = deal.ok_or_else(|| Refusal::decline("these updates are not dealt to buckets"))?;
    let mut plan = Plan::default();
    let records = scratch(&mut plan, deal.chunks * deal.chunk * 8);
    let table = scratch(&mut plan, deal.chunks * deal.buckets * 4);
    deal.deal(scatter, [records, table], &mut plan)?;
    deal.take(scatter, [records, table].map(read), &mut plan)?;
    Ok(plan)
}

impl Deal {
    /// How to deal where places have an element of 32 bits and an update or none on the average.
    fn of(scatter: &Scatter<'_>, update: Update) -> Option<Deal> {
        let device = scatter.request.device;
        let dtype = scatter.request.outputs[0].dtype;
        let bytes = match update {
            Update::Add => dtype.register().size(),
            Update::Put => dtype.size(),
        };
        let chunk = (scatter.rows / CHUNKS).next_power_of_two();
        let chunk = chunk.clamp(LEAST_CHUNK, MOST_CHUNK);
        let pieces = scatter.places.div_ceil(PIECE);
        let buckets = pieces
            .div_ceil(MOST_PLACES / PIECE)
            .max((2 * scatter.rows).div_ceil(SLOTS))
            .next_power_of_two()
            .min(pieces.next_power_of_two());
        let mut deal = Deal {
            update,
            dtype,
            chunk,
            chunks: 0,
            buckets,
            places: pieces.div_ceil(buckets) * PIECE,
            dealers: 0,
            takers: grid::threads(device, TAKERS),
        };
        while deal.chunk > LEAST_CHUNK && deal.dealers_bytes() > device.shared_bytes.into() {
            deal.chunk /= 2;
        }
        deal.dealers = grid::threads(device, DEALERS.min(deal.chunk as u32));
        deal.chunks = scatter.rows.div_ceil(deal.chunk);
        let shared = deal.dealers_bytes().max(deal.takers_bytes());
        let fits = bytes == 4
            && scatter.part_elements() == 1
            && scatter.rows <= scatter.places
            && buckets <= MOST_BUCKETS
            && deal.chunks * deal.chunk < MOST_ROWS
            && deal.places.next_multiple_of(u64::from(deal.takers) * WIDTH)
                <= u64::from(deal.takers * u32::BITS)
            && shared <= device.shared_bytes.into();
        (fits && chunks::reach(scatter)).then_some(deal)
    }

    /// Shared memory of a workgroup that deals.
    fn dealers_bytes(&self) -> u64 {
        let counts = self.buckets.max(DEALERS.into());
        8 * self.chunk + 4 * (counts + self.chunk / RUN + 1)
    }

    /// Shared memory of a workgroup that takes.
    fn takers_bytes(&self) -> u64 {
        let heads = self.places.next_multiple_of(u64::from(self.takers) * WIDTH);
        8 * (SLOTS + self.chunks.next_power_of_two()) + 4 * (heads + 2)
    }

    fn deal(
        &self,
        scatter: &Scatter<'_>,
        [records, table]: [BufArg; 2],
        plan: &mut Plan,
    ) -> Result<(), Refusal> {
        let (request, device) = (scatter.request, scatter.request.device);
        let updates = Side::of(&request.inputs[2], BufArg::input(2), Vec::new(), device)?;
        let mut defines = self.defines(self.dealers);
        defines.extend(component_defines(&scatter.components, 3));
        defines.extend([number("RUN", RUN), number("CROWD", CROWD)]);
        let step = Step {
            file: "deal.comp",
            defines,
            args: vec![records, table, updates.arg, scatter.indices.arg],
            groups: grid::spread(self.chunks, device)?,
            ..Step::default()
        };
        let mut words = Words::default();
        words.push(scatter.rows as i64);
        words.push(updates.at);
        scatter.index_words(&mut words);
        words.add_to(step, plan, device);
        Ok(())
    }

    fn take(
        &self,
        scatter: &Scatter<'_>,
        [records, table]: [BufArg; 2],
        plan: &mut Plan,
    ) -> Result<(), Refusal> {
        let (request, device) = (scatter.request, scatter.request.device);
        let tensor = Side::of(&request.inputs[0], BufArg::input(0), Vec::new(), device)?;
        let result = Side::of(&request.outputs[0], BufArg::output(0), Vec::new(), device)?;
        let storage = match self.update {
            Update::Add => glsl::types(self.dtype).map_or("", |(storage, _)| storage),
            Update::Put => "uint",
        };
        let is_even = scatter.places.is_multiple_of(WIDTH)
            && (scatter.is_same() || tensor.at % WIDTH as i64 == 0);
        let vector = glsl::vector(storage, WIDTH).filter(|_| is_even);
        let mut defines = self.defines(self.takers);
        defines.extend(scatter.same(storage));
        defines.extend([
            number("WIDTH", if vector.is_some() { WIDTH } else { 1 }),
            define("R_VECTOR", vector.unwrap_or(storage)),
            define("ELEMENT(v, k)", if vector.is_some() { "v[k]" } else { "v" }),
            number("SLOTS", SLOTS),
            number("SHORT", SHORT),
            number("NEXT_BITS", NEXT_BITS),
            number("CHUNKS", self.chunks.next_power_of_two()),
        ]);
        let step = Step {
            file: "take.comp",
            defines,
            args: vec![tensor.arg, result.arg, records, table],
            groups: grid::spread(self.buckets, device)?,
            ..Step::default()
        };
        let mut words = Words::default();
        words.push(scatter.places as i64);
        words.push(tensor.at);
        words.push(self.chunks as i64);
        words.add_to(step, plan, device);
        Ok(())
    }

    fn defines(&self, threads: u32) -> Vec<Define> {
        let mut defines = match self.update {
            Update::Add => glsl::operand("R", self.dtype),
            Update::Put => {
                let raw = ["R_STORAGE", "R_VALUE"].map(|name| define(name, "uint"));
                let as_is = ["R_LOAD(x)", "R_STORE(x)"].map(|name| define(name, "(x)"));
                [raw, as_is].concat()
            }
        };
        let is_float = self.update == Update::Add && self.dtype.register() == DType::F32;
        let (bits, value) = match is_float {
            true => ("floatBitsToUint(x)", "uintBitsToFloat(x)"),
            false => ("uint(x)", "R_VALUE(x)"),
        };
        let join = match self.update {
            Update::Add => "((a) + (b))",
            Update::Put => "(b)",
        };
        defines.extend([
            define("BITS(x)", bits),
            define("VALUE(x)", value),
            define("JOIN(a, b)", join),
            number("WORKGROUP", threads),
            number("CHUNK", self.chunk),
            number("ROW_BITS", self.chunk.trailing_zeros()),
            number("BUCKETS", self.buckets),
            number("BUCKET_BITS", self.buckets.trailing_zeros()),
            number("PLACES", self.places),
            number("PIECE", PIECE),
        ]);
        defines
    }
}
