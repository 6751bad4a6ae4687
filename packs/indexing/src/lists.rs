//! Updates that are added by lists, one for each place, where most places have few of them: an update enters the list of its
//! place by one atomic exchange, and every element of the result sorts and adds its own list. Long lists are collected and
//! sorted by workgroups.

use crate::{
    emit::Words,
    scatter::Scatter,
    walk::{LIMIT, Side, component_defines},
};
use nx_vulkan_abi::{Access, BufArg, Define, Plan, Refusal, glsl};
use nx_vulkan_pack_kit::{
    grid,
    steps::{Step, number, read, scratch},
};

const WORKGROUP: u32 = 256;
/// Elements of the result that a thread takes.
const ELEMENTS: u64 = 2;
/// Updates of a list that a thread sorts, and of one that a workgroup does.
const LIST: u64 = 32;
const SORTED: u64 = 2048;
/// Elements of a place, each of which goes through its list: as many as a workgroup has invocations.
const MOST_PART: u64 = WORKGROUP as u64;
/// Updates that places have on the average, at most; a sort is faster from 64 on.
const AVERAGE: u64 = 8;
/// Workgroups that look for long lists.
const GROUPS: u64 = 512;
/// Words of a long list, beside the one that counts them.
const LONG_WORDS: u64 = 3;

/// Whether lists suit: places have few updates and few elements, and lie in the result as their numbers say.
pub(crate) fn suit(scatter: &Scatter<'_>) -> bool {
    let request = scatter.request;
    let part: u64 = scatter.part.iter().product();
    let most = MOST_PART.min(grid::threads(request.device, WORKGROUP).into());
    let axes = request.ints("axes");
    let is_first = axes.iter().zip(0..).all(|(axis, place)| *axis == place);
    let in_order = request.inputs[0].is_contiguous() && request.inputs[2].is_contiguous();
    let fits = scatter.places * 4 <= request.device.max_buffer_range && scatter.rows < LIMIT / 2;
    is_first && in_order && part <= most && scatter.rows <= AVERAGE * scatter.places && fits
}

pub(crate) fn add(scatter: &Scatter<'_>) -> Result<Plan, Refusal> {
    let (request, device) = (scatter.request, scatter.request.device);
    let [tensor, _, updates] = request.inputs.as_slice() else {
        return Err(Refusal::Internal("three operands".to_owned()));
    };
    let result = &request.outputs[0];
    let part: u64 = scatter.part.iter().product();
    let longs = scatter.rows / (LIST + 1) + 1;
    let mut plan = Plan::default();
    let heads = scatter.zeros(scatter.places, scatter.places, &mut plan)?;
    let lists = scatter.zeros(1 + longs * LONG_WORDS, 1, &mut plan)?;
    let next = scratch(&mut plan, scatter.rows * 4);
    let collected = scratch(&mut plan, scatter.rows * 4);
    let both = |arg: BufArg| BufArg {
        access: Access::READ_WRITE,
        ..arg
    };
    let linked = vec![number("LINKED", 2u64)];
    scatter.rows(both(heads), &[next], linked, &mut plan)?;

    let [from, to] = [(tensor, BufArg::input(0)), (result, BufArg::output(0))];
    let from = Side::of(from.0, from.1, Vec::new(), device)?;
    let to = Side::of(to.0, to.1, Vec::new(), device)?;
    let own = Side::of(updates, BufArg::input(2), Vec::new(), device)?;
    let workgroup = grid::threads(device, WORKGROUP);
    let count = result.elements();
    let mut defines = glsl::operand("R", result.dtype);
    defines.extend([
        number("WORKGROUP", workgroup),
        number("ELEMENTS", ELEMENTS),
        number("LIST", LIST),
    ]);
    let step = Step {
        file: "lists.comp",
        defines,
        args: vec![
            from.arg,
            own.arg,
            to.arg,
            both(heads),
            read(next),
            both(lists),
        ],
        groups: grid::spread(count.div_ceil(u64::from(workgroup) * ELEMENTS), device)?,
        ..Step::default()
    };
    let mut words = Words::default();
    words.push(count as i64);
    words.extent(part);
    words.push(from.at);
    words.push(own.at);
    words.add_to(step, &mut plan, device);

    for (stage, groups) in [("COUNT", None), ("FIRST", Some(1)), ("PLACE", None)] {
        let all = scatter.rows.div_ceil(u64::from(workgroup));
        let groups = groups.unwrap_or(all.min(GROUPS));
        let step = Step {
            file: "collect.comp",
            defines: defines_of(scatter, workgroup, 2, number(stage, 1u64)),
            args: vec![
                both(lists),
                read(heads),
                scatter.indices.arg,
                both(next),
                collected,
            ],
            groups: [groups as u32, 1, 1],
            ..Step::default()
        };
        let mut words = Words::default();
        words.push(scatter.rows as i64);
        words.push(groups as i64);
        scatter.index_words(&mut words);
        words.add_to(step, &mut plan, device);
    }

    let mut defines = defines_of(scatter, workgroup, 3, number("SORTED", SORTED));
    defines.extend(glsl::operand("R", result.dtype));
    let groups = longs.min(GROUPS);
    let to = BufArg {
        access: Access::READ_WRITE,
        ..to.arg
    };
    let step = Step {
        file: "sum_long.comp",
        defines,
        args: vec![
            from.arg,
            own.arg,
            to,
            scatter.indices.arg,
            read(lists),
            read(collected),
        ],
        groups: [groups as u32, 1, 1],
        ..Step::default()
    };
    let mut words = Words::default();
    let lanes = part.next_power_of_two();
    for word in [
        scatter.rows as i64,
        part as i64,
        from.at,
        own.at,
        groups as i64,
        lanes as i64,
    ] {
        words.push(word);
    }
    scatter.index_words(&mut words);
    words.add_to(step, &mut plan, device);
    Ok(plan)
}

fn defines_of(scatter: &Scatter<'_>, workgroup: u32, index: usize, own: Define) -> Vec<Define> {
    let mut defines = component_defines(&scatter.components, index);
    defines.extend([number("WORKGROUP", workgroup), own]);
    defines
}
