//! Updates of few places that have many: chunks of them are sorted by workgroups, each place has a sum or several in every
//! chunk, and these are added up in the order of the chunks.

use crate::{
    emit::Words,
    scatter::Scatter,
    walk::{LIMIT, Side, component_defines},
};
use nx_vulkan_abi::{BufArg, Define, Plan, Refusal, glsl};
use nx_vulkan_pack_kit::{
    grid,
    steps::{Step, number, read, scratch},
};

const WORKGROUP: u32 = 256;
/// Updates of a chunk, where places have few elements and where they have more; and how many an invocation adds up: a power of
/// two each.
const CHUNK: u64 = 1024;
const WIDE_CHUNK: u64 = 256;
const RUN: u64 = 32;
/// Elements of a place that are few.
const FEW: u64 = 16;
/// Elements of a place for which a workgroup sums a chunk, at most: more of them where there are many tiles.
const TILE: u64 = 64;
const LARGE_TILE: u64 = 256;
const MANY_TILES: u64 = 1024;
/// Elements of a place for which a workgroup adds up many chunks.
const LANES: u64 = 32;
/// Elements of a place, at most: each of its tiles sorts the chunks anew.
const MOST_PART: u64 = 4096;
/// Places of all chunks together, at most; a sort is faster from there on.
const BEGINNINGS: u64 = 1 << 24;
/// Workgroups that add up what chunks have of places.
const GROUPS: u64 = 1024;
const GROUPS_OF_CROWDS: u64 = 256;

/// Groups of places whose lists are too long.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Crowd {
    /// Where the list of each group begins, or that it is crowded, and behind them the number of crowded ones.
    pub(crate) heads: BufArg,
    /// Their numbers.
    pub(crate) crowded: BufArg,
    /// Groups of all places.
    pub(crate) groups: u64,
    /// Places of one.
    pub(crate) places: u64,
    /// How many may be crowded.
    pub(crate) most: u64,
}

/// What chunks have.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sums {
    /// Places of sorted updates, and sums of those of one place.
    places: BufArg,
    sums: BufArg,
    /// Where those of each place begin, if all places count.
    beginnings: Option<BufArg>,
}

/// Bytes of an element in registers.
pub(crate) fn value_bytes(scatter: &Scatter<'_>) -> u64 {
    scatter.request.outputs[0].dtype.register().size()
}

/// Updates of a chunk.
fn chunk_of(scatter: &Scatter<'_>) -> u64 {
    if scatter.part_elements() < FEW {
        CHUNK
    } else {
        WIDE_CHUNK
    }
}

/// Whether chunks may be taken: places lie in the result as their numbers say.
pub(crate) fn reach(scatter: &Scatter<'_>) -> bool {
    let request = scatter.request;
    let part = scatter.part_elements();
    let axes = request.ints("axes");
    let is_first = axes.iter().zip(0..).all(|(axis, place)| *axis == place);
    let in_order = (scatter.is_same() || request.inputs[0].is_contiguous())
        && request.inputs[2].is_contiguous();
    let rows = scatter.rows.next_multiple_of(chunk_of(scatter));
    let fits = rows * part * value_bytes(scatter) <= request.device.max_buffer_range
        && rows * part < LIMIT;
    is_first && in_order && fits
}

/// Whether chunks suit.
pub(crate) fn suit(scatter: &Scatter<'_>) -> bool {
    let beginnings = scatter
        .places
        .saturating_mul(scatter.rows.div_ceil(chunk_of(scatter)));
    reach(scatter) && scatter.part_elements() <= MOST_PART && beginnings <= BEGINNINGS
}

/// All sums of updates.
pub(crate) fn add(scatter: &Scatter<'_>) -> Result<Plan, Refusal> {
    let mut plan = Plan::default();
    let sums = sums(scatter, None, &mut plan)?;
    places(scatter, None, sums, &mut plan)?;
    Ok(plan)
}

/// What chunks have of each place.
pub(crate) fn sums(
    scatter: &Scatter<'_>,
    crowd: Option<&Crowd>,
    plan: &mut Plan,
) -> Result<Sums, Refusal> {
    let (request, device) = (scatter.request, scatter.request.device);
    let (part, chunk) = (scatter.part_elements(), chunk_of(scatter));
    let many = scatter.rows.div_ceil(chunk) * part.div_ceil(TILE) > MANY_TILES;
    let tile = part.min(if many { LARGE_TILE } else { TILE });
    let tiles = part.div_ceil(tile);
    let updates = Side::of(&request.inputs[2], BufArg::input(2), Vec::new(), device)?;
    let rows = scatter.rows.next_multiple_of(chunk);
    let places = scratch(plan, rows * 4);
    let sums = scratch(plan, rows * part * value_bytes(scatter));
    let beginnings = crowd
        .is_none()
        .then(|| scratch(plan, scatter.places * (rows / chunk) * 4));
    let mut defines = defines_of(scatter, crowd);
    defines.extend(component_defines(&scatter.components, 3));
    // Their numbers go into one word beside that of an update in its chunk; one is none.
    if scatter.places < (1 << 32) / chunk {
        defines.push(number("NARROW", 1u64));
    }
    let args = [places, sums, updates.arg, scatter.indices.arg];
    let step = Step {
        file: "chunks.comp",
        defines,
        args: args
            .into_iter()
            .chain(crowd.map(|crowd| crowd.heads))
            .chain(beginnings)
            .collect(),
        groups: grid::spread(rows / chunk * tiles, device)?,
        ..Step::default()
    };
    let mut words = Words::default();
    words.push(scatter.rows as i64);
    words.push(scatter.places as i64);
    words.push(part as i64);
    words.extent(tile);
    words.extent(tiles);
    words.push(updates.at);
    scatter.index_words(&mut words);
    words.add_to(step, plan, device);
    Ok(Sums {
        places: read(places),
        sums: read(sums),
        beginnings: beginnings.map(read),
    })
}

/// Adds them to the result.
pub(crate) fn places(
    scatter: &Scatter<'_>,
    crowd: Option<&Crowd>,
    sums: Sums,
    plan: &mut Plan,
) -> Result<(), Refusal> {
    let (request, device) = (scatter.request, scatter.request.device);
    let tensor = Side::of(&request.inputs[0], BufArg::input(0), Vec::new(), device)?;
    let result = Side::of(&request.outputs[0], BufArg::output(0), Vec::new(), device)?;
    let part = scatter.part_elements();
    let chunks = scatter.rows.div_ceil(chunk_of(scatter)).next_power_of_two();
    let threads = u64::from(grid::threads(device, WORKGROUP));
    let most = (threads / chunks).max(LANES.min(threads));
    let lanes = part.next_power_of_two().min(most);
    let tiles = part.div_ceil(lanes);
    let (places, most) = match crowd {
        Some(crowd) => (crowd.most * crowd.places, GROUPS_OF_CROWDS),
        None => (scatter.places, GROUPS),
    };
    let groups = places.saturating_mul(tiles).min(most);
    let mut defines = defines_of(scatter, crowd);
    defines.extend(scatter.same("R_STORAGE"));
    let mut args = vec![tensor.arg, result.arg, sums.places, sums.sums];
    args.extend(sums.beginnings);
    args.extend(crowd.iter().flat_map(|crowd| [crowd.heads, crowd.crowded]));
    let step = Step {
        file: "places.comp",
        defines,
        args,
        groups: [groups as u32, 1, 1],
        ..Step::default()
    };
    let mut words = Words::default();
    for word in [
        scatter.places,
        part,
        scatter.rows.div_ceil(chunk_of(scatter)),
        groups,
        lanes,
    ] {
        words.push(word as i64);
    }
    words.extent(tiles);
    words.push(tensor.at);
    words.add_to(step, plan, device);
    Ok(())
}

fn defines_of(scatter: &Scatter<'_>, crowd: Option<&Crowd>) -> Vec<Define> {
    let request = scatter.request;
    let mut defines = glsl::operand("R", request.outputs[0].dtype);
    defines.extend([
        number("WORKGROUP", grid::threads(request.device, WORKGROUP)),
        number("CHUNK", chunk_of(scatter)),
        number("RUN", RUN),
    ]);
    if let Some(crowd) = crowd {
        defines.extend([
            number("CROWDED", crowd.groups),
            number("GROUP", crowd.places),
        ]);
    }
    defines
}
