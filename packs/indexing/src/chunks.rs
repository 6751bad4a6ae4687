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
/// Updates of a chunk, and of those how many an invocation adds up: a power of two each.
const CHUNK: u64 = 1024;
const RUN: u64 = 32;
/// Elements of a place, at most: as many as a workgroup has invocations.
const MOST_PART: u64 = WORKGROUP as u64;
/// Places of all chunks together, at most; a sort is faster from there on.
const BEGINNINGS: u64 = 1 << 24;
/// Places whose numbers go into one word beside that of an update in its chunk, at most: one is none.
const NARROW: u64 = (1 << 32) / CHUNK - 1;
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

/// Whether chunks may be taken: places have few elements, and lie in the result as their numbers say.
pub(crate) fn reach(scatter: &Scatter<'_>) -> bool {
    let request = scatter.request;
    let part = scatter.part_elements();
    let most = MOST_PART.min(grid::threads(request.device, WORKGROUP).into());
    let axes = request.ints("axes");
    let is_first = axes.iter().zip(0..).all(|(axis, place)| *axis == place);
    let in_order = request.inputs[0].is_contiguous() && request.inputs[2].is_contiguous();
    let rows = scatter.rows.next_multiple_of(CHUNK);
    let fits = rows * part * value_bytes(scatter) <= request.device.max_buffer_range
        && rows * part < LIMIT;
    is_first && in_order && part <= most && fits
}

/// Whether chunks suit.
pub(crate) fn suit(scatter: &Scatter<'_>) -> bool {
    let beginnings = scatter.places.saturating_mul(scatter.rows.div_ceil(CHUNK));
    reach(scatter) && beginnings <= BEGINNINGS
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
    let part = scatter.part_elements();
    let updates = Side::of(&request.inputs[2], BufArg::input(2), Vec::new(), device)?;
    let rows = scatter.rows.next_multiple_of(CHUNK);
    let places = scratch(plan, rows * 4);
    let sums = scratch(plan, rows * part * value_bytes(scatter));
    let beginnings = crowd
        .is_none()
        .then(|| scratch(plan, scatter.places * (rows / CHUNK) * 4));
    let mut defines = defines_of(scatter, crowd);
    defines.extend(component_defines(&scatter.components, 3));
    if scatter.places <= NARROW {
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
        groups: grid::spread(rows / CHUNK, device)?,
        ..Step::default()
    };
    let mut words = Words::default();
    words.push(scatter.rows as i64);
    words.push(scatter.places as i64);
    words.extent(part);
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
    let groups = match crowd {
        Some(crowd) => (crowd.most * crowd.places).min(GROUPS_OF_CROWDS),
        None => scatter.places.min(GROUPS),
    };
    let mut args = vec![tensor.arg, result.arg, sums.places, sums.sums];
    args.extend(sums.beginnings);
    args.extend(crowd.iter().flat_map(|crowd| [crowd.heads, crowd.crowded]));
    let step = Step {
        file: "places.comp",
        defines: defines_of(scatter, crowd),
        args,
        groups: [groups as u32, 1, 1],
        ..Step::default()
    };
    let part = scatter.part_elements();
    let mut words = Words::default();
    for word in [
        scatter.places,
        part,
        scatter.rows.div_ceil(CHUNK),
        groups,
        part.next_power_of_two(),
    ] {
        words.push(word as i64);
    }
    words.push(tensor.at);
    words.add_to(step, plan, device);
    Ok(())
}

fn defines_of(scatter: &Scatter<'_>, crowd: Option<&Crowd>) -> Vec<Define> {
    let request = scatter.request;
    let mut defines = glsl::operand("R", request.outputs[0].dtype);
    defines.extend([
        number("WORKGROUP", grid::threads(request.device, WORKGROUP)),
        number("CHUNK", CHUNK),
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
