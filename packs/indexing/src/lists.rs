//! Updates that are added by lists, one for each group of neighbouring places, where most places have few of them: an update
//! enters the list of its group by one atomic exchange, and every group sorts and adds its own list. Groups whose lists are long
//! go in chunks.

use crate::{
    chunks::{self, Crowd},
    deal::Update,
    emit::Words,
    few::Elements,
    scatter::{Scatter, both},
    walk::LIMIT,
};
use nx_vulkan_abi::{Plan, Refusal};
use nx_vulkan_pack_kit::{
    grid,
    steps::{Step, number, read, scratch},
};

const WORKGROUP: u32 = 256;
/// Places of a group, at most: as many numbers of 32 bits as memory moves at once.
const MOST_PLACES: u64 = 8;
/// Bytes of what a group adds up, at most.
const GROUP_BYTES: u64 = 64;
/// Updates that groups of several places have on the average, at most.
const CALM: u64 = 2;
/// Updates of a list that a thread sorts.
const LIST: u64 = 32;
/// Updates that places have on the average, at most, and where they are wide; chunks are faster from there on.
const AVERAGE: u64 = 8;
const WIDE_AVERAGE: u64 = 24;
/// Elements of a place that is wide.
const WIDE: u64 = 16;
/// Vectors of an invocation, where there are so many that enough invocations are left.
const VECTORS: u64 = 4;
const MANY_VECTORS: u64 = 1 << 20;

/// Places of a group.
fn places_of_group(scatter: &Scatter<'_>) -> u64 {
    let bytes = chunks::value_bytes(scatter);
    // Each invocation has a sum for each place, and a word.
    let shared = u64::from(scatter.request.device.shared_bytes) / u64::from(WORKGROUP + 32);
    let most = MOST_PLACES
        .min(GROUP_BYTES / bytes)
        .min(shared.saturating_sub(4) / bytes);
    let mut places = 1;
    while scatter.part_elements() == 1
        && places * 2 <= most
        && scatter.rows * places * 2 <= CALM * scatter.places
    {
        places *= 2;
    }
    places
}

/// Whether lists suit: places have few updates and few elements, and lie in the result as their numbers say.
pub(crate) fn suit(scatter: &Scatter<'_>) -> bool {
    let range = scatter.request.device.max_buffer_range;
    let group = places_of_group(scatter);
    let fits = (scatter.places.div_ceil(group) + 4) * 4 <= range
        && scatter.rows * group < LIMIT
        && scatter.request.outputs[0].elements() < LIMIT;
    let average = if scatter.part_elements() < WIDE {
        AVERAGE
    } else {
        WIDE_AVERAGE
    };
    fits && scatter.rows <= average * scatter.places && chunks::reach(scatter)
}

pub(crate) fn add(scatter: &Scatter<'_>) -> Result<Plan, Refusal> {
    let (request, device) = (scatter.request, scatter.request.device);
    let group = places_of_group(scatter);
    let groups = scatter.places.div_ceil(group);
    let most = scatter.rows / (LIST + 1) + 1;
    let mut plan = Plan::default();
    let heads = scatter.zeros(groups + 1, groups + 1, &mut plan)?;
    let next = scratch(&mut plan, scatter.rows * 4);
    let crowded = scratch(&mut plan, most * 4);
    let linked = vec![number("LINKED", 2u64), number("GROUP", group)];
    scatter.rows(both(heads), &[next], linked, &mut plan)?;

    let Elements {
        tensor,
        tensor_at,
        updates: own,
        result,
        width,
        mut defines,
    } = Elements::of(scatter, Update::Add)?;
    let workgroup = grid::threads(device, WORKGROUP);
    let part = scatter.part_elements();
    let count = request.outputs[0].elements() / width;
    let vectors = if group == 1 && count >= MANY_VECTORS {
        VECTORS
    } else {
        1
    };
    defines.extend([
        number("VECTORS", vectors),
        number("WORKGROUP", workgroup),
        number("GROUP", group),
        number("LIST", LIST),
        number("CROWDED", groups),
    ]);
    let step = Step {
        file: "lists.comp",
        defines,
        args: vec![
            tensor.arg,
            own.arg,
            result.arg,
            both(heads),
            read(next),
            crowded,
        ],
        groups: grid::spread(
            count.div_ceil(u64::from(workgroup) * group * vectors),
            device,
        )?,
        ..Step::default()
    };
    let mut words = Words::default();
    words.push(count as i64);
    words.extent(part / width);
    words.push(tensor_at);
    words.push(own.at / width as i64);
    words.add_to(step, &mut plan, device);

    let crowd = Crowd {
        heads: read(heads),
        crowded: read(crowded),
        groups,
        places: group,
        most,
    };
    let sums = chunks::sums(scatter, Some(&crowd), &mut plan)?;
    chunks::places(scatter, Some(&crowd), sums, &mut plan)?;
    Ok(plan)
}
