//! Lines that fit shared memory, and lines from which so few elements are wanted that what is chosen of them does.

use crate::job::{Job, Steps, subgroup};
use nx_vulkan_abi::{BufArg, DeviceInfo, DeviceKind, Features, Plan, Refusal, Request};
use nx_vulkan_pack_kit::{
    grid,
    steps::{number, read},
};

/// Entries of a workgroup whose lines are shorter, and the most of one.
const ENTRIES: u64 = 1024;
const MOST_ENTRIES: u64 = 4096;
/// Entries of an invocation; a CPU's compiler takes long over many.
const ITEMS: u64 = 8;
const CPU_ITEMS: u64 = 4;
/// Elements of which `choose.comp` chooses, and its invocations.
const TILE: u64 = 4096;
const CHOOSERS: u64 = 256;
/// Groups of them, at least: the first elements of so many, twice as many as are wanted, tell what is none of these.
const LEAST_GROUPS: u64 = 64;

/// Elements of a line for each that is wanted, at least, and of a line, for which choosing them takes less than sorting all on a GPU.
const SPARSE: u64 = 16;
const LONG: u64 = 512;

/// Whether lines fit shared memory.
pub(crate) fn fits(job: &Job, device: &DeviceInfo<'_>) -> bool {
    job.lines.extent <= most(job, device)
}

/// Whether so few elements are wanted of lines that fit shared memory that these are chosen first.
pub(crate) fn wants_few(job: &Job, device: &DeviceInfo<'_>) -> bool {
    let extent = job.lines.extent;
    device.kind != DeviceKind::CPU
        && extent >= LONG.max(SPARSE * job.keep)
        && groups(job) <= CHOOSERS
        && u64::from(grid::threads(device, 256)) >= CHOOSERS
}

/// Of how many groups of a tile the first elements tell what is none of those that are wanted.
fn groups(job: &Job) -> u64 {
    (job.keep * 2).next_power_of_two().max(LEAST_GROUPS)
}

/// The longest line that shared memory holds, with the key and the index of each entry.
fn most(job: &Job, device: &DeviceInfo<'_>) -> u64 {
    let entry = job.dtype.size().max(4) + 4;
    // Every 33rd cell is left out.
    let entries = (u64::from(device.shared_bytes) - 1024) * 32 / (33 * entry);
    let most = (entries + 1).next_power_of_two() / 2;
    most.min(match device.kind {
        DeviceKind::CPU => ENTRIES,
        _ => MOST_ENTRIES,
    })
}

pub(crate) fn plan(job: &Job, request: &Request<'_>) -> Result<Plan, Refusal> {
    let mut steps = Steps::new(job, request.device);
    sort(&mut steps, job, job.lines.extent, None)?;
    Ok(steps.plan)
}

/// The plan where elements are chosen; nothing where too many are wanted.
pub(crate) fn chosen(job: &Job, request: &Request<'_>) -> Result<Option<Plan>, Refusal> {
    let device = request.device;
    let most = most(job, device);
    if job.keep * 4 > TILE.min(most * 2) || u64::from(grid::threads(device, 256)) < CHOOSERS {
        return Ok(None);
    }
    let mut steps = Steps::new(job, device);
    let (mut extent, mut from) = (job.lines.extent, None);
    while extent > most || from.is_none() {
        let tile = extent.next_power_of_two().clamp(CHOOSERS, TILE);
        let tiles = extent.div_ceil(tile);
        let last = extent - (tiles - 1) * tile;
        let left = (tiles - 1) * job.keep + job.keep.min(last);
        let to = steps.scratch(job.lines.count * left * 4)?;
        let mut defines = job.defines(None);
        defines.push(number("TILE", tile));
        let groups = groups(job);
        defines.extend((groups <= CHOOSERS).then(|| number("FEW", groups)));
        let mut args = vec![BufArg::params(), BufArg::input(0), to];
        if let Some(from) = from {
            defines.push(number("CHOSEN", 3u64));
            args.push(from);
        }
        let words = [
            job.lines.first as u32,
            job.lines.strides[0] as u32,
            job.lines.count as u32,
            steps.axes_count,
            extent as u32,
            job.keep as u32,
            tiles as u32,
            left as u32,
        ];
        steps.dispatch(
            "choose.comp",
            defines,
            &words,
            args,
            job.lines.count * tiles,
            0,
        )?;
        (extent, from) = (left, Some(read(to)));
    }
    sort(&mut steps, job, extent, from)?;
    Ok(Some(steps.plan))
}

/// Adds the sort of lines of `extent` elements, all of them or the chosen ones.
fn sort(
    steps: &mut Steps<'_>,
    job: &Job,
    extent: u64,
    from: Option<BufArg>,
) -> Result<(), Refusal> {
    // At least four entries for each line, so that there are few starts.
    let line = extent.next_power_of_two().max(4);
    let entries = line.max(ENTRIES.min(most(job, steps.device)));
    let items = match steps.device.kind {
        DeviceKind::CPU => CPU_ITEMS,
        _ => ITEMS,
    };
    let workgroup = u64::from(grid::threads(steps.device, 512)).min(entries.div_ceil(items));
    let lines = match entries == line {
        true => 1,
        false => entries / 4,
    };
    let mut defines = job.defines(job.indices.map(|(_, dtype)| dtype));
    defines.extend([
        number("WORKGROUP", workgroup),
        number("ENTRIES", entries),
        number("LINES", lines),
    ]);
    let mut args = vec![BufArg::params(), BufArg::input(0)];
    let mut bind = |name: &str, arg: Option<BufArg>| {
        if let Some(arg) = arg {
            defines.push(number(name, args.len() as u64));
            args.push(arg);
        }
    };
    bind("VALUES", job.values.map(BufArg::output));
    bind(
        "INDICES",
        job.indices.map(|(index, _)| BufArg::output(index)),
    );
    bind("CHOSEN", from);
    let beside = job.lines.strides[1] != 1;
    let words = [
        job.lines.first as u32,
        job.lines.strides[0] as u32,
        job.lines.strides[1] as u32,
        job.lines.count as u32,
        steps.axes_count,
        extent as u32,
        job.keep as u32,
        line.ilog2(),
        u32::from(beside),
    ];
    let groups = job.lines.count.div_ceil(entries / line);
    let lanes = subgroup(steps.device, Features::SUBGROUP_SHUFFLE, workgroup);
    steps.dispatch("short.comp", defines, &words, args, groups, lanes)
}
